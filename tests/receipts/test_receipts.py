"""The receipt of a frame: read from any `attrs`, written as plain JSON, merged from several."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gamelens as gl
from gamelens.receipts import Gap, JoinRecord, Provenance, QueryRecord, Receipt, RestatementRecord, merge_receipts
from gamelens.wire.intervals import Interval

WRITTEN: dict[str, Any] = {
    "asked": {
        "metric": "revenue",
        "by": ["platform"],
        "over": "last complete week",
        "every": "day",
        "where": {"type": "not", "field": {"type": "selector", "dimension": "platform", "value": None}},
        "top": 3,
        "games": ["1"],
        "studios": None,
        "since_days_ago": None,
        "other": True,
        "interval": "2026-11-01T00:00Z/2026-11-08T00:00Z",
    },
    "asked_at": "2026-11-20T10:00:03+00:00",
    "as_of": "2026-11-20T10:00:00+00:00",
    "available": "2026-08-22T00:00Z/2026-11-20T10:00Z",
    "requests": 4,
    "retries": 1,
    "cached_share": 0.25,
    "gaps": [{"metric": "revenue", "interval": "2026-11-02/P1D", "scope": {"platform": None}, "error": "late"}],
    "clipped": None,
    "truncated": True,
    "warnings": ["a warning"],
    "titles": ["Tile Saga"],
    "version": "0.1.0",
    "joined": [{"source": "a.csv", "on": {"country": "c"}, "how": "left", "matched_share": 0.5, "share_of": "rows"}],
    "restated": [],
    "provenance": {"kind": "sandbox", "url": "http://127.0.0.1:1", "scenario": "demo"},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda member: st.lists(member, max_size=3) | st.dictionaries(st.text(), member, max_size=3),
    max_leaves=8,
)
ASKED = st.sampled_from([*QueryRecord.__struct_fields__, "unknown"])
KEYS = st.sampled_from([*Receipt.__struct_fields__, "unknown"])


def test_a_receipt_is_written_as_it_was_read() -> None:
    """Reading and writing a receipt changes neither keys nor values, and unknown keys are left out."""
    assert Receipt.of({"gamelens": WRITTEN | {"of_a_later_version": 1}}).to_json() == WRITTEN


def test_a_receipt_survives_json() -> None:
    """The written form has only JSON types: decoding its encoding gives the same."""
    receipt = Receipt(asked=QueryRecord(metric=("a", "b"), days=(1, 7)), gaps=(Gap(metric="a", scope={"age": 1}),))
    assert json.loads(json.dumps(receipt.to_json())) == receipt.to_json()
    assert Receipt.of({"gamelens": receipt.to_json()}) == receipt


def test_the_keys_without_a_value_stay() -> None:
    """An empty receipt has the documented keys; those of joins, titles and refreshes only appear with a value."""
    written = Receipt().to_json()
    assert set(WRITTEN) - set(written) == {"titles", "joined", "restated"}
    assert set(WRITTEN["asked"]) - set(written["asked"]) == {"other"}
    assert Receipt(restated=()).to_json()["restated"] == []


@pytest.mark.parametrize("attrs", [None, 3, {}, {"gamelens": None}, {"gamelens": "text"}, {"gamelens": [1]}])
def test_a_frame_without_a_receipt_has_an_empty_one(attrs: object) -> None:
    """Whatever `attrs` hold, reading them raises nothing, and a missing receipt is false."""
    assert Receipt.of(attrs) == Receipt()
    assert not Receipt.of(attrs)
    assert Receipt.of({"gamelens": WRITTEN})


def test_a_damaged_value_leaves_the_others() -> None:
    """A value of another type becomes the default; the members of lists are repaired one by one."""
    damaged = WRITTEN | {
        "requests": "four",
        "asked": WRITTEN["asked"] | {"every": "fortnight", "top": [], 5: 6},
        "gaps": [{"metric": "revenue", "interval": 7}, "text"],
        "joined": "text",
        "restated": [{"rows": None, "field": "sum"}],
        "provenance": {"kind": "invented", "url": "http://127.0.0.1:1"},
    }
    receipt = Receipt.of({"gamelens": damaged})
    assert (receipt.requests, receipt.retries, receipt.version) == (0, 1, "0.1.0")
    assert (receipt.asked.every, receipt.asked.top, receipt.asked.over) == (None, None, "last complete week")
    assert (receipt.gaps, receipt.joined) == ((Gap(metric="revenue"),), ())
    assert receipt.restated == (RestatementRecord(field="sum"),)
    assert receipt.provenance == Provenance(url="http://127.0.0.1:1")


@given(st.dictionaries(KEYS, JSON | st.dictionaries(ASKED, JSON, max_size=4) | st.lists(st.just({})), max_size=6))
def test_no_receipt_is_too_damaged_to_read(damaged: dict[str, Any]) -> None:
    """Any JSON object can be read, merged and written, and is then the same when it is read again."""
    receipt = Receipt.of({"gamelens": damaged})
    merged = merge_receipts([receipt, receipt])
    assert Receipt.of({"gamelens": merged.to_json()}) == merged
    assert receipt.interval is None or isinstance(receipt.interval, Interval)


def test_foreign_objects_are_written_as_text() -> None:
    """An object that JSON does not know, where anything may be, becomes its text."""
    receipt = Receipt.of({"gamelens": {"asked": {"where": {"at": Interval, "several": (1, 2)}}}})
    where = json.loads(json.dumps(receipt.to_json()))["asked"]["where"]
    assert where == {"at": str(Interval), "several": [1, 2]}


def test_the_interval_is_the_clipped_one() -> None:
    """The interval is the clipped one, else the requested one, and None where neither can be read."""
    whole = QueryRecord(interval="2026-11-01/P7D")
    assert Receipt(asked=whole).interval == Interval.parse("2026-11-01/P7D")
    assert Receipt(asked=whole, clipped="2026-11-01/P2D").interval == Interval.parse("2026-11-01/P2D")
    assert Receipt(asked=QueryRecord(interval="last week")).interval is None
    assert Receipt(available="2026-11-01/P7D").interval is None
    assert (Gap(interval="2026-11-01/P1D").times, Gap(interval="?").times) == (Interval.parse("2026-11-01/P1D"), None)


def test_gaps_and_top_make_a_frame_incomplete() -> None:
    """A frame is complete without gaps and without values beyond `top`."""
    assert Receipt().is_complete
    assert not Receipt(truncated=True).is_complete
    assert not Receipt(gaps=(Gap(),)).is_complete


def test_merging_lists_metrics_and_what_is_missing() -> None:
    """Metrics, gaps and warnings are listed, requests added, the oldest data counts; the rest is the first's."""
    first = Receipt.of({"gamelens": WRITTEN})
    second = Receipt(
        asked=QueryRecord(metric=("installs", "revenue"), top=9),
        requests=2,
        cached_share=0.75,
        as_of="2026-11-19T00:00:00+00:00",
        warnings=("another",),
        titles=("Ember",),
        clipped="2026-11-01/P2D",
        gaps=(Gap(metric="installs"),),
        provenance=Provenance(kind="sandbox", url="http://127.0.0.1:2", scenario="demo"),
    )
    merged = merge_receipts([first, second])
    assert (merged.asked.metrics, merged.asked.top) == (("revenue", "installs"), 3)
    assert (merged.requests, merged.retries, merged.cached_share) == (6, 1, 0.5)
    assert (merged.as_of, merged.asked_at) == ("2026-11-19T00:00:00+00:00", "2026-11-20T10:00:03+00:00")
    assert ([gap.metric for gap in merged.gaps], merged.warnings) == (["revenue", "installs"], ("a warning", "another"))
    assert (merged.titles, merged.truncated) == (("Ember", "Tile Saga"), True)
    assert merged.clipped == "2026-11-01T00:00Z/2026-11-08T00:00Z"
    assert merged.joined == (
        JoinRecord(source="a.csv", on={"country": "c"}, how="left", matched_share=0.5, share_of="rows"),
    )
    assert merged.provenance == Provenance(kind="sandbox", scenario="demo")


def test_merging_two_periods_covers_both() -> None:
    """A change from one week to the next is of two weeks, not of the first; what has no period leaves the first one."""
    before, after = (
        Receipt(asked=QueryRecord(metric="ecpm", over=over, interval=interval))
        for over, interval in (("2026-11-02/P7D", "2026-11-02/P7D"), ("last 7 complete days", "2026-11-09/P7D"))
    )
    whole = "2026-11-02T00:00Z/2026-11-16T00:00Z"
    for receipts in ([before, after], [after, before]):
        merged = merge_receipts(receipts)
        assert (str(merged.interval), merged.asked.over, merged.clipped) == (whole, whole, None)
    assert merge_receipts([after, after]).asked.over == "last 7 complete days"
    assert merge_receipts([after, Receipt(requests=1)]).interval == after.interval


def test_merging_one_receipt_changes_nothing() -> None:
    """One receipt is returned as it is, and none gives an empty one."""
    receipt = Receipt.of({"gamelens": WRITTEN})
    assert merge_receipts([receipt]) is receipt
    assert merge_receipts([]) == Receipt()


def test_the_receipt_is_public() -> None:
    """`gl.Receipt` is the struct."""
    assert gl.Receipt is Receipt


def test_filled_rows_are_counted_by_metric() -> None:
    """The key appears only where rows were filled; receipts of several frames add up."""
    one, other = Receipt(filled={"revenue": 2}), Receipt(filled={"revenue": 1, "new_users": 4})
    assert "filled" not in Receipt(requests=1).to_json()
    assert Receipt.of({"gamelens": one.to_json()}).filled == {"revenue": 2}
    assert merge_receipts([one, other]).filled == {"revenue": 3, "new_users": 4}
