"""The origin of numbers: what is simulated, what is the same, what is mixed, and its words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gamelens.receipts import Provenance, Receipt, merge_provenance, merge_receipts, mixture_warnings

REAL = Provenance(kind="real", url="https://metrics.example.com")
SANDBOX = Provenance(kind="sandbox", url="http://127.0.0.1:1", scenario="demo")
OTHERS: list[dict[str, Any]] = [
    {"kind": "real", "url": "http://127.0.0.1:1"},
    {"kind": "replay", "url": "recorded"},
    {"kind": "sandbox", "scenario": "portfolio"},
    {"kind": "unknown"},
]


@pytest.mark.parametrize("other", OTHERS)
def test_numbers_of_several_origins_are_mixed(other: dict[str, Any]) -> None:
    """A mix names its parts, whichever comes first, and the merged receipt has a warning with both."""
    one = msgspec.convert(other, Provenance)
    merged = merge_receipts([Receipt(provenance=SANDBOX), Receipt(provenance=one)])
    assert merged.provenance == Provenance(kind="mixed", sources=(SANDBOX, one))
    (warning,) = merged.warnings
    assert "sandbox, scenario demo and " in warning
    assert merge_provenance([one, SANDBOX]).sources == (one, SANDBOX)


def test_a_sandbox_is_recognised_by_its_scenario() -> None:
    """After a restart the address is another; two addresses without a scenario are two sandboxes."""
    again = msgspec.structs.replace(SANDBOX, url="http://127.0.0.1:2")
    assert merge_provenance([SANDBOX, again]) == Provenance(kind="sandbox", scenario="demo")
    bare = [msgspec.structs.replace(each, scenario=None) for each in (SANDBOX, again)]
    assert merge_provenance(bare).kind == "mixed"


def test_a_mix_is_merged_part_by_part() -> None:
    """Merging a mix with one of its parts changes nothing, and warns of the same."""
    mix = merge_provenance([SANDBOX, REAL])
    assert merge_provenance([mix, REAL]) == merge_provenance([mix, mix]) == mix
    assert len(merge_receipts([Receipt(provenance=mix, warnings=tuple(mixture_warnings(mix)))] * 2).warnings) == 1


@pytest.mark.parametrize(
    ("provenance", "badge", "text"),
    [
        (REAL, "", "metrics.example.com"),
        (SANDBOX, "demo data", "sandbox, scenario demo"),
        (Provenance(kind="replay", url="q3"), "", "replay of q3"),
        (Provenance(kind="replay", url="q3", sources=(REAL,)), "", "replay of q3, metrics.example.com"),
        (
            Provenance(kind="replay", url="q3", scenario="demo", sources=(SANDBOX,)),
            "demo data",
            "replay of q3, sandbox, scenario demo",
        ),
        (
            Provenance(kind="mixed", sources=(SANDBOX, REAL)),
            "partly demo data",
            "sandbox, scenario demo and metrics.example.com",
        ),
        (Provenance(kind="mixed", sources=(REAL, Provenance())), "", "metrics.example.com and an unknown source"),
        (Provenance(kind="mixed"), "", "several sources"),
        (Provenance(), "", ""),
    ],
)
def test_an_origin_has_a_badge_and_words(provenance: Provenance, badge: str, text: str) -> None:
    """Simulated numbers have a badge, also in a replay and in a mix."""
    assert (provenance.badge, provenance.text, provenance.is_simulated) == (badge, text, bool(badge))


def test_the_sources_are_written_only_where_there_are_some() -> None:
    """The keys of a written provenance are kind, url and scenario; a mix lists its parts in the same form."""
    assert Receipt(provenance=REAL).to_json()["provenance"] == {"kind": "real", "url": REAL.url, "scenario": None}
    mix = Receipt(provenance=merge_provenance([SANDBOX, REAL]))
    assert [set(part) for part in mix.to_json()["provenance"]["sources"]] == [{"kind", "url", "scenario"}] * 2
    assert Receipt.of({"gamelens": mix.to_json()}) == mix


def test_damaged_sources_are_dropped_one_by_one() -> None:
    """Sources of another type are left out, however deep they are nested."""
    sources = [{"kind": "real", "url": 3}, "text"]
    assert Receipt.of({"gamelens": {"provenance": {"kind": "mixed", "sources": sources}}}).provenance == Provenance(
        kind="mixed", sources=(Provenance(kind="real"),)
    )
    deep: dict[str, Any] = {"kind": 3}
    for _ in range(5000):
        deep = {"kind": "mixed", "sources": [deep]}
    assert Receipt.of({"gamelens": {"requests": 2, "provenance": deep}}).requests == 2
