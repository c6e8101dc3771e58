"""The ledger: every metric on a tiny case computed by hand, and totals of what was sent."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gamelens.catalog import METRICS
from gamelens.errors import BadQuery
from gamelens.simulator import Ledger
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.wire.filters import dim
from support.played_scenario import PlayedScenario

DAY = "2026-11-02/P1D"
DAYS = "2026-11-02/P3D"
EVER = "2026-10-01/2026-12-01"

Row = dict[str, Any]


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"2026-11-{text}+00:00").timestamp())


def event(player: str, when: str, category: str = "user", *, game: str = "g1", **more: Any) -> Row:
    """Return a ledger row of *player* at *when* (day and time of November 2026)."""
    base = {
        "game_id": game,
        "user_id": player,
        "session_id": f"{player}-{when[:2]}",
        "client_ts": at(when),
        "category": category,
        "platform": "ios",
        "build": "1",
    }
    return base | more


def bought(player: str, when: str, amount: int, currency: str = "USD", **more: Any) -> Row:
    return event(player, when, "business", amount=amount, currency=currency, **more)


def shown(player: str, when: str, nano: int = 0, currency: str | None = None, **more: Any) -> Row:
    return event(player, when, "impression", ilrd_nano=nano, ilrd_currency=currency, **more)


TINY = Ledger.of(
    [
        # a installs on the 2nd on build 1, is back on the 3rd on build 2, buys twice
        event("a", "02T10:00"),
        event("a", "02T10:01", "ads", ad_action="request", ad_type="banner"),
        event("a", "02T10:02", "ads", ad_action="show", ad_type="banner"),
        event("a", "02T10:09", "session_end", length=540),
        bought("a", "03T09:00", 199, build="2"),
        bought("a", "03T09:30", 30000, "JPY", build="2"),
        # b installs on the 2nd, is back on the 4th
        event("b", "02T23:59", platform="android", country_code="DE"),
        event("b", "04T00:00", platform="android", country_code="DE"),
        event("b", "04T00:10", "session_end", length=600, platform="android", country_code="DE"),
        # the same device in another game is another player
        event("a", "03T12:00", game="g2"),
        bought("a", "03T12:30", 499, "EUR", game="g2"),
        # a diagnostic event without a player
        event("a", "03T13:00", "sdk_error") | {"user_id": None, "session_id": None},
    ]
)


def numbers(name: str, field: str, ledger: Ledger = TINY, **query: Any) -> list[Any]:
    """Return *field* of each row of a metric, by default per day of three days."""
    return [row[field] for row in ledger.metric(name, **{"interval": DAYS} | query)]


def grouped(name: str, field: str, by: str, **query: Any) -> dict[str | None, Any]:
    """Return *field* by the value of dimension *by*, over all days."""
    query = {"interval": EVER, "granularity": "all"} | query
    return {row[by]: row[field] for row in TINY.metric(name, **query, by=(by,))}


def test_event_count_counts_events_of_any_category() -> None:
    """`event_count` counts all categories, diagnostics included (Wire 4.11, Metrics)."""
    assert numbers("event_count", "event_count") == [5, 5, 2]


def test_user_unique_counts_a_player_per_game_and_none_for_diagnostics() -> None:
    """One device in two games is two players, an event without user none (Wire 4.2, Player)."""
    assert numbers("user_unique", "user_unique") == [2, 2, 1]


def test_user_unique_over_all_is_not_the_sum_of_days() -> None:
    """A player of several days counts once over all: 3, not 5 (Wire 4.14, Adding up)."""
    assert numbers("user_unique", "user_unique", granularity="all") == [3]


def test_session_unique_counts_sessions_once_a_bucket() -> None:
    """A session counts once in each bucket with an event of it (Wire 4.3, Session)."""
    assert numbers("session_unique", "session_unique") == [2, 2, 1]


def test_session_length_is_the_mean_of_those_that_ended() -> None:
    """`session_length` averages `session_end` events only (Wire 4.11, Metrics)."""
    assert TINY.metric("session_length", interval=EVER, granularity="all")[0] == {
        "timestamp": datetime(2026, 10, 1, tzinfo=UTC),
        "session_length": 570.0,
        "session_unique": 2,
        "total_session_length": 1140,
    }


def test_new_users_counts_installs_in_their_bucket() -> None:
    """A player is new in the bucket of the install, not in later ones (Wire 4.4, Install)."""
    assert numbers("new_users", "new_users") == [2, 1, 0]


def test_new_users_are_grouped_by_the_install_event() -> None:
    """New players group by the build at install, not a later one (Wire 4.4, Install)."""
    assert grouped("new_users", "new_users", "build") == {"1": 3}


def test_returning_users_are_active_after_their_install_day() -> None:
    """A player returns on any UTC day after the install day (Wire 4.11, Metrics)."""
    assert numbers("returning_users", "returning_users") == [0, 1, 1]


def test_returning_users_with_since_days_ago_are_exactly_that_old() -> None:
    """With `since_days_ago` 2 only players who installed exactly two days before count."""
    assert numbers("returning_users", "returning_users", since_days_ago=2) == [0, 0, 1]


def test_installs_ratio_divides_new_by_active() -> None:
    """`installs_ratio` is new users by active users of the bucket (Wire 4.11, Metrics)."""
    assert numbers("installs_ratio", "installs_ratio") == [1.0, 0.5, 0.0]


def test_retention_is_the_share_of_a_days_installs_active_n_days_later() -> None:
    """D1 stands on the day of return, a cohort without one has no row (Wire 4.12, Retention)."""
    rows = TINY.metric("retention_retro", interval=DAYS, since_days_ago=1)
    assert rows == [{"timestamp": datetime(2026, 11, 3, tzinfo=UTC), "game_id": "g1", "retention": 0.5}]


def test_retention_splits_by_install_values() -> None:
    """Retention is split by install values, and a group without a return has no row."""
    rows = TINY.metric("retention_retro", interval=DAYS, since_days_ago=1, by=("platform",))
    assert [(row["platform"], row["game_id"], row["retention"]) for row in rows] == [("ios", "g1", 1.0)]


def test_retention_keeps_the_whole_install_day_when_the_interval_begins_inside_a_day() -> None:
    """The cohort is the whole install day if the interval starts at 8 (Wire 4.12, Retention)."""
    rows = TINY.metric("retention_retro", interval="2026-11-03T08:00/2026-11-04T00:00", since_days_ago=1)
    assert [row["retention"] for row in rows] == [0.5]


def test_retention_counts_only_activity_inside_the_interval() -> None:
    """A return before the interval starts does not count (Wire 4.12, Retention)."""
    assert TINY.metric("retention_retro", interval="2026-11-03T10:00/2026-11-04T00:00", since_days_ago=1) == []


def test_retention_filters_the_cohort_by_install_values() -> None:
    """A filter on build applies to the install: the later build of a player selects no cohort."""
    rows = TINY.metric("retention_retro", interval=DAYS, since_days_ago=1, where=dim.build == "2")
    assert rows == []


def test_revenue_sums_every_currency_exactly() -> None:
    """1.99 USD + 300 JPY x 0.0065 + 4.99 EUR x 1.1621 (Wire 4.13, Numbers)."""
    row = TINY.metric("revenue", interval=EVER, granularity="all")[0]
    assert row["sum"] == pytest.approx(1.99 + 300 * 0.0065 + 4.99 * 1.1621, rel=1e-15)
    assert (row["event_count"], row["mean"]) == (3, pytest.approx(row["sum"] / 3, rel=1e-15))
    assert row["sum_cents"] == pytest.approx(row["sum"] * 100, rel=1e-15)


def test_money_without_events_is_zero_and_its_mean_null() -> None:
    """Revenue of no purchase is 0.0 and its mean is null (Wire 4.13, Numbers)."""
    row = TINY.metric("revenue", interval=DAY)[0]
    assert (row["event_count"], row["mean"], row["sum"], row["sum_cents"]) == (0, None, 0.0, 0.0)


def test_paying_users_counts_payers_once() -> None:
    """A player with two purchases on one day is one paying user (Wire 4.11, Metrics)."""
    assert numbers("paying_users", "paying_users") == [0, 2, 0]


def test_converting_users_are_grouped_by_their_first_purchase() -> None:
    """Converting users group by the build of their first purchase (Wire 4.5, Purchase)."""
    assert grouped("converting_users", "converting_users", "build") == {"1": 1, "2": 1}


def test_conversion_divides_payers_by_active() -> None:
    """`conversion` is paying users by active users of the bucket (Wire 4.11, Metrics)."""
    assert numbers("conversion", "conversion") == [0.0, 1.0, 0.0]


def test_conversion_ft_divides_first_payers_by_active() -> None:
    """`conversion_ft` is converting users by active users of the bucket (Wire 4.11, Metrics)."""
    assert numbers("conversion_ft", "conversion_ft", games=["g1"]) == [0.0, 1.0, 0.0]


def test_arpu_divides_exact_revenue_and_rounds_the_total_to_cents() -> None:
    """`arpu` divides unrounded revenue, `total_revenue` is whole cents (Wire 4.13, Numbers)."""
    row = TINY.metric("arpu", interval=EVER, granularity="all", games=["g1"])[0]
    assert row["arpu"] == pytest.approx((1.99 + 1.95) / 2)
    assert (row["user_unique"], row["total_revenue"]) == (2, 394)


def test_total_revenue_rounds_half_to_even() -> None:
    """0.5 cents round to 0 and 1.5 to 2: one BBD is half a US dollar (Wire 4.13, Numbers)."""
    for amount, cents in ((1, 0), (3, 2)):
        ledger = Ledger.of([bought("a", "02T00:00", amount, "BBD")])
        assert numbers("arppu", "total_revenue", ledger, interval=DAY) == [cents]


def test_arppu_without_payers_is_null() -> None:
    """`arppu` is null in a bucket without paying users (Wire 4.13, Numbers)."""
    assert numbers("arppu", "arppu") == [None, pytest.approx((1.99 + 1.95 + 4.99 * 1.1621) / 2), None]


def test_ads_shown_are_show_actions_only() -> None:
    """Of a request and a show, one shown ad counts (Wire 4.7, Shown ad)."""
    assert numbers("ad_impressions_count", "ad_impressions_count") == [1, 0, 0]


def test_ads_per_session_divide_by_every_session() -> None:
    """Ads per session divide by all sessions, also those without ads (Wire 4.11, Metrics)."""
    assert numbers("ad_impressions_per_session", "ad_impressions_per_session") == [0.5, 0.0, 0.0]


def test_impression_revenue_converts_and_no_currency_is_usd() -> None:
    """Nano-units are converted, and no currency means US dollars (Wire 4.6, Impression)."""
    ledger = Ledger.of([shown("a", "02T00:00", 12_340_000), shown("a", "02T00:01", 10_000_000, "EUR")])
    assert numbers("ilrd_revenue", "sum", ledger, interval=DAY) == [pytest.approx(0.01234 + 0.011621, rel=1e-15)]


def test_impressions_count_once_by_vendor_id_else_event_uuid_else_each() -> None:
    """Identity is the vendor id, else `event_uuid`, else the event (Wire 4.6, Impression)."""
    ledger = Ledger.of(
        [
            shown("a", "02T00:00", ilrd_id="x"),
            shown("a", "02T00:01", ilrd_id="x"),
            shown("a", "02T00:02", ilrd_id="x", game="g2"),
            shown("a", "02T00:03", event_uuid="u"),
            shown("a", "02T00:04", event_uuid="u"),
            shown("a", "02T00:05"),
            shown("a", "02T00:06"),
        ]
    )
    assert numbers("ilrd_id_unique", "ilrd_id_unique", ledger, interval=DAY) == [5]


def test_is_paying_is_true_from_the_first_purchase_on() -> None:
    """Events before the first purchase of a player are "false" (Wire 4.10, Dimensions)."""
    assert grouped("event_count", "event_count", "is_paying") == {"true": 3, "false": 8, None: 1}


def test_is_converting_is_true_on_the_day_of_the_first_purchase() -> None:
    """All events of the UTC day of the first purchase are "true" (Wire 4.10, Dimensions)."""
    assert grouped("event_count", "event_count", "is_converting") == {"true": 4, "false": 7, None: 1}


def test_first_build_is_the_build_of_the_install() -> None:
    """`first_build` stays the install's build after an update (Wire 4.10, Dimensions)."""
    assert grouped("event_count", "event_count", "first_build") == {"1": 11, None: 1}


def test_installed_on_is_the_install_day() -> None:
    """`installed_on` is the UTC day of the install as text (Wire 4.10, Dimensions)."""
    assert grouped("user_unique", "user_unique", "installed_on") == {"2026-11-02": 2, "2026-11-03": 1}


def test_of_equal_times_the_first_sent_is_the_install() -> None:
    """Of two events at one time the first to arrive is the install (Wire 4.4, Install)."""
    ledger = Ledger.of([event("a", "02T00:00", build="9"), event("a", "02T00:00", build="1")])
    assert [row["build"] for row in ledger.metric("new_users", interval=DAY, by=("build",))] == ["9"]


def test_an_earlier_event_sent_later_is_the_install() -> None:
    """A late event with an earlier time becomes the install (Wire 4.9, Late events)."""
    ledger = Ledger.of([event("a", "03T00:00"), event("a", "02T00:00")])
    assert numbers("new_users", "new_users", ledger) == [1, 0, 0]


def test_a_missing_value_is_a_group_of_its_own() -> None:
    """Events without a country form the group null (Wire 4.10, Dimensions)."""
    assert grouped("event_count", "event_count", "country_code") == {"DE": 3, None: 9}


def test_negation_selects_missing_values() -> None:
    """`country_code != "DE"` selects events without a country too (Wire 2.7, Filters)."""
    assert numbers("event_count", "event_count", granularity="all", where=dim.country_code != "DE") == [9]


def test_filters_combine() -> None:
    """`and`, `or` and `isin` select by plain boolean logic (Wire 2.7, Filters)."""
    where = (dim.platform == "ios") & (dim.build.isin(["2"]) | (dim.category == "ads"))
    assert numbers("event_count", "event_count", granularity="all", where=where) == [4]


def test_games_narrow() -> None:
    """`games` restricts the events, and an unknown id adds none (Wire 2.13, Scope)."""
    assert numbers("event_count", "event_count", granularity="all", games=["g2", "unknown"]) == [2]


def test_the_interval_is_half_open() -> None:
    """An event at the end of the interval does not count (Wire 2.8, Intervals and buckets)."""
    assert numbers("event_count", "event_count", interval="2026-11-02T10:00/2026-11-02T10:01", granularity="all") == [1]


def test_week_buckets_start_on_monday_and_keep_their_start_when_cut() -> None:
    """A cut week keeps the timestamp of its Monday (Wire 2.8, Intervals and buckets)."""
    rows = TINY.metric("event_count", interval="2026-11-03/2026-11-10", granularity="week")
    assert [(row["timestamp"].date().isoformat(), row["event_count"]) for row in rows] == [
        ("2026-11-02", 7),
        ("2026-11-09", 0),
    ]


def test_rows_without_a_count_do_not_exist_in_groups() -> None:
    """A group whose counts are all 0 has no row (Wire 2.10, Row order)."""
    assert {row["build"] for row in TINY.metric("new_users", interval=DAYS, by=("build",))} == {"1"}


def test_rows_sort_by_the_metric_highest_first_then_by_value_null_last() -> None:
    """Rows sort by the metric, highest first, then by value, null last (Wire 2.10, Row order)."""
    rows = TINY.metric("session_unique", interval=DAYS, granularity="all", by=("country_code",))
    assert [row["country_code"] for row in rows] == [None, "DE"]
    rows = TINY.metric("session_unique", interval="2026-11-02/P1D", by=("country_code",))
    assert [row["country_code"] for row in rows] == ["DE", None]


def test_two_dimensions_give_a_row_for_each_pair() -> None:
    """Two dimensions give a row per existing pair, ties by first, then second value."""
    rows = TINY.metric("user_unique", interval=EVER, granularity="all", by=("game_id", "platform"))
    assert [(row["game_id"], row["platform"], row["user_unique"]) for row in rows] == [
        ("g1", "android", 1),
        ("g1", "ios", 1),
        ("g2", "ios", 1),
    ]


def test_amounts_beyond_64_bits_add_up() -> None:
    """A sum of amounts beyond 64 bits is exact, without overflow (Wire 4.13, Numbers)."""
    ledger = Ledger.of([bought("a", "02T00:00", 2**53 - 1) for _ in range(1100)])
    assert numbers("revenue", "sum_cents", ledger, interval=DAY) == [float(1100 * (2**53 - 1))]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_the_fields_of_the_catalog(name: str) -> None:
    """Besides timestamp and dimensions a row has the catalog's fields (Wire 4.11, Metrics)."""
    days_ago = 1 if name == "retention_retro" else None
    for row in TINY.metric(name, interval=DAYS, by=("platform",), since_days_ago=days_ago):
        assert row.keys() - {"timestamp", "platform", "game_id"} == {field.name for field in METRICS[name].fields}


@pytest.mark.parametrize("name", METRICS)
def test_an_empty_ledger_answers_every_metric(name: str) -> None:
    """Without events every metric has a row per day, retention none (Wire 2.9, Answer shapes)."""
    rows = Ledger().metric(name, interval=DAYS, since_days_ago=1 if name == "retention_retro" else None)
    assert len(rows) == (0 if name == "retention_retro" else 3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"name": "revenues"}, "Did you mean `revenue`"),
        ({"name": "revenue", "by": ("platfrom",)}, "Did you mean `platform`"),
        ({"name": "revenue", "where": dim.platfrom == "ios"}, "Did you mean `platform`"),
        ({"name": "revenue", "since_days_ago": 1}, "does not apply"),
        ({"name": "retention_retro"}, "is required for retention_retro"),
        ({"name": "returning_users", "since_days_ago": 0}, "1 or more"),
        ({"name": "revenue", "by": ("build", "build")}, "different"),
        ({"name": "revenue", "interval": "2026-11-02/2026-11-02"}, "interval"),
    ],
)
def test_an_invalid_query_is_refused(query: dict[str, Any], message: str) -> None:
    """Unknown names and misplaced arguments raise `BadQuery` with the nearest name, if any."""
    with pytest.raises(BadQuery, match=message):
        TINY.metric(**{"interval": DAY} | query)


def test_a_ledger_read_back_is_the_same(played: PlayedScenario, tmp_path: Path) -> None:
    """A ledger written to Parquet and read again has equal totals and equal metrics."""
    played.ledger.write(tmp_path / "truth.parquet")
    again = Ledger.read(tmp_path / "truth.parquet")
    assert again.summary() == played.ledger.summary()
    assert again.metric("revenue", interval=EVER, by=("country_code",)) == played.ledger.metric(
        "revenue", interval=EVER, by=("country_code",)
    )


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    """A file of another kind raises `BadQuery` instead of an error of the Parquet reader."""
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(BadQuery, match="is not a ledger"):
        Ledger.read(tmp_path / "x.parquet")


def test_the_ledger_holds_every_event_sent(played: PlayedScenario) -> None:
    """The ledger has as many rows as there are events in the batches."""
    assert len(played.ledger) == len(played.events)


@pytest.mark.slow
def test_ledger_columns_equal_the_fields_of_the_sent_json(played: PlayedScenario) -> None:
    """The generator's arrays equal the sent JSON read back, field by field, for every event."""
    rows = [row for table in played.ledger._tables for row in table.to_pylist()]
    for row, sent in zip(rows, played.events, strict=True):
        expected = _ledger_row(sent)
        assert row == {name: expected.get(name) for name in SCHEMA.names}


def _ledger_row(sent: Row) -> Row:
    """Return a sent event as a ledger row, read key by key (Wire 3.6, Impression payloads)."""
    if sent["category"] == "resource":
        return sent | {"amount": None}
    if sent["category"] != "impression":
        return sent
    data = sent["impression_data"]
    in_micros = sent["ad_network_name"] == "admob"
    return sent | {
        "ilrd_sdk_vendor": sent["ad_network_name"],
        "ilrd_network_name": data.get("network_name") or data.get("ad_network") or data.get("network_class_name"),
        "ilrd_adunit_name": data.get("adunit_id") or data.get("instance_name"),
        "ilrd_adunit_format": data.get("adunit_format") or data.get("ad_unit"),
        "ilrd_id": data.get("auction_id"),
        "ilrd_nano": data["revenue"] * 1000 if in_micros else round(data["revenue"] * 10**9),
        "ilrd_currency": data.get("currency", "USD"),
    }


def test_summary_agrees_with_the_bytes(played: PlayedScenario) -> None:
    """The totals of the summary equal those counted in the sent batches."""
    counts = Counter(event["category"] for event in played.events)
    summary = played.ledger.summary()
    assert (summary["events"], summary["purchases"], summary["impressions"]) == (
        len(played.events),
        counts["business"],
        counts["impression"],
    )
    assert summary["players"] == len({(event["game_id"], event["user_id"]) for event in played.events})
