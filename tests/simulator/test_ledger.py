"""The ledger holds what was sent, and its metrics are those of cases computed by hand (Metrics, Metric)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from gamelens.catalog import METRICS
from gamelens.errors import BadQuery
from gamelens.simulator import Ledger
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.wire.filters import dim

DAY = "2026-11-02/P1D"
DAYS = "2026-11-02/P3D"
EVER = "2026-10-01/2026-12-01"


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"2026-11-{text}+00:00").timestamp())


def event(player: str, when: str, category: str = "user", *, game: str = "g1", **more) -> dict:
    told = {
        "game_id": game,
        "user_id": player,
        "session_id": f"{player}-{when[:2]}",
        "client_ts": at(when),
        "category": category,
        "platform": "ios",
        "build": "1",
    }
    return told | more


def bought(player: str, when: str, amount: int, currency: str = "USD", **more) -> dict:
    return event(player, when, "business", amount=amount, currency=currency, **more)


def shown(player: str, when: str, nano: int = 0, currency: str | None = None, **more) -> dict:
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
        # a diagnostic of nobody
        event("a", "03T13:00", "sdk_error") | {"user_id": None, "session_id": None},
    ]
)


def numbers(name: str, field: str, ledger: Ledger = TINY, **asked) -> list:
    return [row[field] for row in ledger.metric(name, **{"interval": DAYS} | asked)]


def grouped(name: str, field: str, by: str, **asked) -> dict:
    return {
        row[by]: row[field] for row in TINY.metric(name, **{"interval": EVER, "granularity": "all"} | asked, by=(by,))
    }


def test_event_count_counts_events_of_any_category() -> None:
    assert numbers("event_count", "event_count") == [5, 5, 2]


def test_user_unique_counts_a_player_per_game_and_nobody_for_diagnostics() -> None:
    assert numbers("user_unique", "user_unique") == [2, 2, 1]


def test_user_unique_over_all_is_not_the_sum_of_days() -> None:
    assert numbers("user_unique", "user_unique", granularity="all") == [3]


def test_session_unique_counts_sessions_once_a_bucket() -> None:
    assert numbers("session_unique", "session_unique") == [2, 2, 1]


def test_session_length_is_the_mean_of_those_that_ended() -> None:
    assert TINY.metric("session_length", interval=EVER, granularity="all")[0] == {
        "timestamp": datetime(2026, 10, 1, tzinfo=UTC),
        "session_length": 570.0,
        "session_unique": 2,
        "total_session_length": 1140,
    }


def test_new_users_counts_installs_in_their_bucket() -> None:
    assert numbers("new_users", "new_users") == [2, 1, 0]


def test_new_users_are_grouped_by_the_install_event() -> None:
    assert grouped("new_users", "new_users", "build") == {"1": 3}


def test_returning_users_are_active_after_their_install_day() -> None:
    assert numbers("returning_users", "returning_users") == [0, 1, 1]


def test_returning_users_with_since_days_ago_are_exactly_that_old() -> None:
    assert numbers("returning_users", "returning_users", since_days_ago=2) == [0, 0, 1]


def test_installs_ratio_divides_new_by_active() -> None:
    assert numbers("installs_ratio", "installs_ratio") == [1.0, 0.5, 0.0]


def test_retention_is_the_share_of_a_days_installs_active_n_days_later() -> None:
    rows = TINY.metric("retention_retro", interval=DAYS, since_days_ago=1)
    assert rows == [{"timestamp": datetime(2026, 11, 3, tzinfo=UTC), "game_id": "g1", "retention": 0.5}]


def test_retention_splits_by_install_values() -> None:
    rows = TINY.metric("retention_retro", interval=DAYS, since_days_ago=1, by=("platform",))
    assert [(row["platform"], row["game_id"], row["retention"]) for row in rows] == [("ios", "g1", 1.0)]


def test_retention_keeps_the_whole_install_day_when_the_interval_begins_inside_a_day() -> None:
    rows = TINY.metric("retention_retro", interval="2026-11-03T08:00/2026-11-04T00:00", since_days_ago=1)
    assert [row["retention"] for row in rows] == [0.5]


def test_retention_counts_only_activity_inside_the_interval() -> None:
    assert TINY.metric("retention_retro", interval="2026-11-03T10:00/2026-11-04T00:00", since_days_ago=1) == []


def test_retention_filters_the_cohort_by_install_values() -> None:
    """b is on build 1 at install, whatever a does later on build 2."""
    asked = {"interval": DAYS, "since_days_ago": 1}
    assert TINY.metric("retention_retro", **asked, where=dim.build == "2") == []


def test_revenue_sums_every_currency_exactly() -> None:
    """1.99 USD + 300 JPY x .0065 + 4.99 EUR x 1.1621."""
    row = TINY.metric("revenue", interval=EVER, granularity="all")[0]
    assert row["sum"] == pytest.approx(1.99 + 300 * 0.0065 + 4.99 * 1.1621, rel=1e-15)
    assert (row["event_count"], row["mean"]) == (3, pytest.approx(row["sum"] / 3, rel=1e-15))
    assert row["sum_cents"] == pytest.approx(row["sum"] * 100, rel=1e-15)


def test_money_without_events_is_zero_and_its_mean_null() -> None:
    row = TINY.metric("revenue", interval=DAY)[0]
    assert (row["event_count"], row["mean"], row["sum"], row["sum_cents"]) == (0, None, 0.0, 0.0)


def test_paying_users_counts_payers_once() -> None:
    assert numbers("paying_users", "paying_users") == [0, 2, 0]


def test_converting_users_are_grouped_by_their_first_purchase() -> None:
    assert grouped("converting_users", "converting_users", "build") == {"1": 1, "2": 1}


def test_conversion_divides_payers_by_active() -> None:
    assert numbers("conversion", "conversion") == [0.0, 1.0, 0.0]


def test_conversion_ft_divides_first_payers_by_active() -> None:
    assert numbers("conversion_ft", "conversion_ft", games=["g1"]) == [0.0, 1.0, 0.0]


def test_arpu_divides_exact_revenue_and_rounds_the_total_to_cents() -> None:
    row = TINY.metric("arpu", interval=EVER, granularity="all", games=["g1"])[0]
    assert row["arpu"] == pytest.approx((1.99 + 1.95) / 2)
    assert (row["user_unique"], row["total_revenue"]) == (2, 394)


def test_total_revenue_rounds_half_to_even() -> None:
    """3 x 0.5 US cents: BBD is .5 US dollars."""
    for amount, cents in ((1, 0), (3, 2)):
        ledger = Ledger.of([bought("a", "02T00:00", amount, "BBD")])
        assert numbers("arppu", "total_revenue", ledger, interval=DAY) == [cents]


def test_arppu_without_payers_is_null() -> None:
    assert numbers("arppu", "arppu") == [None, pytest.approx((1.99 + 1.95 + 4.99 * 1.1621) / 2), None]


def test_ads_shown_are_show_actions_only() -> None:
    assert numbers("ad_impressions_count", "ad_impressions_count") == [1, 0, 0]


def test_ads_per_session_divide_by_every_session() -> None:
    assert numbers("ad_impressions_per_session", "ad_impressions_per_session") == [0.5, 0.0, 0.0]


def test_impression_revenue_converts_and_no_currency_is_usd() -> None:
    ledger = Ledger.of([shown("a", "02T00:00", 12_340_000), shown("a", "02T00:01", 10_000_000, "EUR")])
    assert numbers("ilrd_revenue", "sum", ledger, interval=DAY) == [pytest.approx(0.01234 + 0.011621, rel=1e-15)]


def test_impressions_count_once_by_vendor_id_else_event_uuid_else_each() -> None:
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
    assert grouped("event_count", "event_count", "is_paying") == {"true": 3, "false": 8, None: 1}


def test_is_converting_is_true_on_the_day_of_the_first_purchase() -> None:
    assert grouped("event_count", "event_count", "is_converting") == {"true": 4, "false": 7, None: 1}


def test_first_build_is_the_build_of_the_install() -> None:
    assert grouped("event_count", "event_count", "first_build") == {"1": 11, None: 1}


def test_installed_on_is_the_install_day() -> None:
    assert grouped("user_unique", "user_unique", "installed_on") == {"2026-11-02": 2, "2026-11-03": 1}


def test_of_equal_times_the_first_sent_is_the_install() -> None:
    ledger = Ledger.of([event("a", "02T00:00", build="9"), event("a", "02T00:00", build="1")])
    assert [row["build"] for row in ledger.metric("new_users", interval=DAY, by=("build",))] == ["9"]


def test_an_earlier_event_sent_later_is_the_install() -> None:
    ledger = Ledger.of([event("a", "03T00:00"), event("a", "02T00:00")])
    assert numbers("new_users", "new_users", ledger) == [1, 0, 0]


def test_a_missing_value_is_a_group_of_its_own() -> None:
    assert grouped("event_count", "event_count", "country_code") == {"DE": 3, None: 9}


def test_negation_selects_missing_values() -> None:
    assert numbers("event_count", "event_count", granularity="all", where=dim.country_code != "DE") == [9]


def test_filters_combine() -> None:
    where = (dim.platform == "ios") & (dim.build.isin(["2"]) | (dim.category == "ads"))
    assert numbers("event_count", "event_count", granularity="all", where=where) == [4]


def test_games_narrow() -> None:
    assert numbers("event_count", "event_count", granularity="all", games=["g2", "unknown"]) == [2]


def test_the_interval_is_half_open() -> None:
    assert numbers("event_count", "event_count", interval="2026-11-02T10:00/2026-11-02T10:01", granularity="all") == [1]


def test_week_buckets_start_on_monday_and_keep_their_start_when_cut() -> None:
    rows = TINY.metric("event_count", interval="2026-11-03/2026-11-10", granularity="week")
    assert [(row["timestamp"].date().isoformat(), row["event_count"]) for row in rows] == [
        ("2026-11-02", 7),
        ("2026-11-09", 0),
    ]


def test_rows_without_a_count_do_not_exist_in_groups() -> None:
    assert {row["build"] for row in TINY.metric("new_users", interval=DAYS, by=("build",))} == {"1"}


def test_rows_sort_by_the_metric_highest_first_then_by_value_null_last() -> None:
    rows = TINY.metric("session_unique", interval=DAYS, granularity="all", by=("country_code",))
    assert [row["country_code"] for row in rows] == [None, "DE"]
    rows = TINY.metric("session_unique", interval="2026-11-02/P1D", by=("country_code",))
    assert [row["country_code"] for row in rows] == ["DE", None]


def test_two_dimensions_give_a_row_for_each_pair() -> None:
    rows = TINY.metric("user_unique", interval=EVER, granularity="all", by=("game_id", "platform"))
    assert [(row["game_id"], row["platform"], row["user_unique"]) for row in rows] == [
        ("g1", "android", 1),
        ("g1", "ios", 1),
        ("g2", "ios", 1),
    ]


def test_amounts_beyond_64_bits_add_up() -> None:
    ledger = Ledger.of([bought("a", "02T00:00", 2**53 - 1) for _ in range(1100)])
    assert numbers("revenue", "sum_cents", ledger, interval=DAY) == [float(1100 * (2**53 - 1))]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_the_fields_of_the_catalog(name) -> None:
    days_ago = 1 if name == "retention_retro" else None
    for row in TINY.metric(name, interval=DAYS, by=("platform",), since_days_ago=days_ago):
        assert row.keys() - {"timestamp", "platform", "game_id"} == {field.name for field in METRICS[name].fields}


@pytest.mark.parametrize("name", METRICS)
def test_an_empty_ledger_answers_every_metric(name) -> None:
    rows = Ledger().metric(name, interval=DAYS, since_days_ago=1 if name == "retention_retro" else None)
    assert len(rows) == (0 if name == "retention_retro" else 3)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"name": "revenues"}, "Did you mean `revenue`"),
        ({"name": "revenue", "by": ("platfrom",)}, "Did you mean `platform`"),
        ({"name": "revenue", "where": dim.platfrom == "ios"}, "Did you mean `platform`"),
        ({"name": "revenue", "since_days_ago": 1}, "does not apply"),
        ({"name": "retention_retro"}, "must be there"),
        ({"name": "returning_users", "since_days_ago": 0}, "1 or more"),
        ({"name": "revenue", "by": ("build", "build")}, "different"),
        ({"name": "revenue", "interval": "2026-11-02/2026-11-02"}, "interval"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(asked, message) -> None:
    with pytest.raises(BadQuery, match=message):
        TINY.metric(**{"interval": DAY} | asked)


def test_a_ledger_read_back_is_the_same(played, tmp_path) -> None:
    played.ledger.write(tmp_path / "truth.parquet")
    again = Ledger.read(tmp_path / "truth.parquet")
    assert again.summary() == played.ledger.summary()
    assert again.metric("revenue", interval=EVER, by=("country_code",)) == played.ledger.metric(
        "revenue", interval=EVER, by=("country_code",)
    )


def test_what_is_no_ledger_is_refused(tmp_path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(BadQuery, match="is no ledger"):
        Ledger.read(tmp_path / "x.parquet")


def test_the_ledger_holds_every_event_sent(played) -> None:
    assert len(played.ledger) == len(played.events)


@pytest.mark.slow
def test_columns_taken_from_the_generator_are_what_the_json_says(played) -> None:
    """Two ways to the same event: the arrays, and the bytes read again as the vendor's documents say."""
    rows = [row for table in played.ledger._tables for row in table.to_pylist()]
    for row, sent in zip(rows, played.events, strict=True):
        assert row == {name: _told(sent).get(name) for name in SCHEMA.names}


def _told(sent: dict) -> dict:
    """A sent event as a row of the ledger, read key by key (public-facts 2.5 and 2.6)."""
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


def test_summary_agrees_with_the_bytes(played) -> None:
    told = Counter(event["category"] for event in played.events)
    summary = played.ledger.summary()
    assert (summary["events"], summary["purchases"], summary["impressions"]) == (
        len(played.events),
        told["business"],
        told["impression"],
    )
    assert summary["players"] == len({(event["game_id"], event["user_id"]) for event in played.events})
