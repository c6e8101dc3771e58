"""Segments behind a change: contributions, mix, Simpson's paradox and drill-down queries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.analysis.health import WATCHED, HealthQuery
from gamelens.analysis.health.watched_metrics import WatchedMetric
from gamelens.catalog import METRICS, Metric, Quotient
from gamelens.errors import BadQuery
from support.said import said

FIRST = pd.Timestamp("2026-10-05", tz="UTC")
DAYS = 30
LAST = FIRST + pd.Timedelta(days=DAYS - 1)


def by_country(**values: tuple[float, float]) -> DataFrame:
    """Return daily players by country, each with a usual number and that of the last day."""
    rows = [
        {
            "timestamp": FIRST + pd.Timedelta(days=day),
            "country_code": country,
            "user_unique": int(now if day == DAYS - 1 else usual),
        }
        for country, (usual, now) in values.items()
        for day in range(DAYS)
    ]
    return DataFrame(rows).astype({"country_code": "category", "user_unique": "Int64"})


def came_back(**values: tuple[int, float, int, float]) -> DataFrame:
    """Return installs and D1 retention by country, the usual ones and the last cohort's."""
    rows = []
    for country, (installs, share, installs_now, share_now) in values.items():
        for day in range(DAYS):
            number = installs_now if day == DAYS - 2 else installs
            retention = share_now if day == DAYS - 1 else share
            rows.append(
                {
                    "timestamp": FIRST + pd.Timedelta(days=day),
                    "country_code": country,
                    "new_users": number,
                    "retention_retro": retention,
                }
            )
    return DataFrame(rows).astype({"country_code": "category", "new_users": "Int64"})


def counts(frame: DataFrame) -> DataFrame:
    """Return the segments of daily players by country on the last day."""
    return health.segments(frame, WATCHED["user_unique"], "country_code", day=LAST)


def shares(frame: DataFrame) -> DataFrame:
    """Return the segments of D1 retention by country on the last day."""
    return health.segments(frame, WATCHED["retention_d1"], "country_code", day=LAST)


def verdict(segments: DataFrame) -> str:
    """Return the verdict, which is the same in all rows."""
    (found,) = segments["verdict"].unique()
    return str(found)


def test_contributions_of_a_sum_add_up_to_its_change() -> None:
    """Contributions add up to the change of a count, and the largest comes first."""
    segments = counts(by_country(US=(400, 400), BR=(300, 100), DE=(100, 110)))
    assert segments["contribution"].sum() == pytest.approx(-190)
    assert segments["share_of_change"].sum() == pytest.approx(1)
    assert segments["segment"].tolist() == ["BR", "DE", "US"]


def test_what_is_expected_of_the_segments_adds_up_to_what_is_expected_of_all() -> None:
    """As an alarm about all of them says: "982 instead of about 2,474" is a share of its change."""
    rng = np.random.default_rng(3)
    days = [FIRST + pd.Timedelta(days=day) for day in range(DAYS)]
    rows = [
        {
            "timestamp": day,
            "game_id": "1",
            "game": "Tile",
            "country_code": country,
            "user_unique": int(rng.poisson(mean)),
        }
        for country, mean in (("US", 900), ("BR", 60), ("DE", 30))
        for day in days
    ]
    frame = DataFrame(rows).astype({"country_code": "category", "user_unique": "Int64"})
    whole = frame.groupby(["timestamp", "game_id", "game"], as_index=False)[["user_unique"]].sum()
    scored = health.score_days(health.measured(whole, {"user_unique": "Active players"})).iloc[-1]
    segments = counts(frame)
    assert segments["expected"].sum() == pytest.approx(scored["expected"])
    assert segments["contribution"].sum() == pytest.approx(scored["value"] - scored["expected"])


def test_one_country_is_behind_it() -> None:
    """A change from one segment alone has the verdict "one segment": BR lost 200 of the 201 fewer."""
    segments = counts(by_country(US=(400, 398), BR=(300, 100), DE=(100, 101)))
    assert verdict(segments) == "one segment"
    (claim,) = said(segments)
    assert (claim.subject, claim.direction, claim.size) == ("BR", "lower", pytest.approx(200 / 201))
    assert claim.text == "By country, BR makes up 99.5% of the change (100 instead of about 300)."


def test_all_countries_fell_alike() -> None:
    """Equal relative changes of all segments have the verdict "all alike"."""
    assert verdict(counts(by_country(US=(400, 200), BR=(300, 150), DE=(100, 50)))) == "all alike"


def test_what_one_lost_the_other_won() -> None:
    """A shift between segments has the verdict "against each other", and a sentence."""
    segments = counts(by_country(US=(400, 150), BR=(100, 330)))
    assert verdict(segments) == "against each other"
    (claim,) = said(segments)
    assert (claim.case, claim.name, claim.other) == ("against_each_other_down", "US", "BR")
    assert claim.text == "By country, US lost and BR gained."


def test_the_other_is_one_that_moved_the_other_way() -> None:
    """Of two that fell and two that rose, the largest fall stands against the largest rise."""
    (claim,) = said(counts(by_country(US=(400, 300), DE=(400, 302), BR=(100, 195), JP=(100, 190))))
    assert (claim.name, claim.other) == ("US", "BR")


def test_contributions_of_a_share_add_up_to_its_change() -> None:
    """Contributions add up to the change of a share, with the mix of segments included."""
    frame = came_back(US=(100, 0.4, 150, 0.38), BR=(100, 0.2, 50, 0.12))
    segments = shares(frame)
    now, usual = (150 * 0.38 + 50 * 0.12) / 200, 0.3
    assert segments["contribution"].sum() == pytest.approx(now - usual, abs=1e-9)


def test_simpson_each_country_rose_and_the_whole_fell() -> None:
    """All segments rise and the total falls: the verdict is "opposite" (Simpson's paradox)."""
    segments = shares(came_back(US=(300, 0.40, 100, 0.44), BR=(100, 0.10, 300, 0.12)))
    assert segments["contribution"].sum() < 0
    assert (segments["value"] > segments["expected"]).all()
    assert verdict(segments) == "opposite"


def test_the_mix_moved_and_the_countries_did_not() -> None:
    """A change from the sizes of segments alone has the verdict "the mix"."""
    assert verdict(shares(came_back(US=(300, 0.40, 100, 0.40), BR=(100, 0.10, 300, 0.10)))) == "the mix"


def test_a_build_that_is_new_is_held_against_the_others() -> None:
    """A segment without history is expected to be like the others, and its day is named."""
    old = came_back(old=(200, 0.40, 0, 0.0))
    new = came_back(new=(0, 0.0, 200, 0.20)).loc[lambda rows: rows["timestamp"] >= LAST - pd.Timedelta(days=1)]
    frame = pd.concat([old.astype({"country_code": str}), new.astype({"country_code": str})])
    frame = frame[(frame["new_users"] > 0) | (frame["retention_retro"] > 0)].rename(columns={"country_code": "build"})
    segments = health.segments(frame, WATCHED["retention_d1"], "build", day=LAST)
    top = segments.iloc[0]
    assert (top["segment"], top["expected"], top["value"]) == ("new", pytest.approx(0.4), pytest.approx(0.2))
    assert verdict(segments) == "one segment"
    (claim,) = said(segments)
    assert (claim.case, claim.direction, claim.size) == ("all_of_it", "lower", pytest.approx(1))
    numbers = "(20.0% instead of about 40.0%)"
    assert claim.text == f"By build, new, new on 2 Nov 2026, makes up all of the change {numbers}."


def test_a_network_that_is_dead_on_one_platform() -> None:
    """The share of one network is split by platform, and the dead platform is found."""
    rows = [
        {
            "timestamp": FIRST + pd.Timedelta(days=day),
            "platform": platform,
            "ilrd_network_name": network,
            "ilrd_revenue_event_count": 0 if (platform, network, day) == ("android", "Beta", DAYS - 1) else size,
            "ilrd_revenue": 1.0,
        }
        for platform, size in (("android", 400), ("ios", 100))
        for network in ("Alpha", "Beta", None)
        for day in range(DAYS)
    ]
    frame = DataFrame(rows).astype({"ilrd_revenue_event_count": "Int64"})
    segments = health.segments(frame, WATCHED["network_share"], "platform", day=LAST, segment="Beta")
    assert verdict(segments) == "one segment"
    assert segments.iloc[0][["segment", "value"]].tolist() == ["android", 0.0]


def test_a_null_segment_stays_one() -> None:
    """The null segment has a row of its own and is called (unknown)."""
    frame = by_country(US=(400, 400), BR=(300, 100))
    frame["country_code"] = frame["country_code"].astype("object").where(frame["country_code"] != "BR", None)
    segments = counts(frame)
    assert segments["segment"].isna().tolist() == [True, False]
    (claim,) = said(segments)
    assert (claim.case, claim.name) == ("all_of_it", "(unknown)")


def test_an_empty_frame_has_no_segments() -> None:
    """An empty frame has no segments, and says so; one segment alone stands out from nothing."""
    segments = counts(by_country(US=(400, 400))[:0])
    assert len(segments) == 0
    assert said(segments)[0].text == "There is no change to look into."
    (claim,) = said(counts(by_country(US=(400, 200))))
    assert (claim.case, claim.direction, claim.text) == ("unclear", "unknown", "By country, no segment stands out.")


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].kinds != "retention"])
def test_a_mean_is_weighed_by_its_denominator(name: str) -> None:
    """Contributions to a mean or ratio add up to its change, each segment with the weight of its denominator.

    `session_length` is a mean over `session_end` events, of which a session may have several. A sum weighs nothing.
    """
    metric = METRICS[name]
    quotient = next(field.combines for field in metric.fields if field.name == metric.sorts_by)
    if not isinstance(quotient, Quotient) and name != "session_length":
        assert health.segments(_of_ratio(metric, None), _watch(name), "country_code", day=LAST)["mix"].eq(0).all()
        return
    moved = health.segments(_of_ratio(metric, quotient), _watch(name), "country_code", day=LAST)
    worth = quotient.worth if isinstance(quotient, Quotient) else 1
    before, after = worth * (0.1 * 400 + 0.3 * 900) / 1300, worth * (0.1 * 400 + 0.6 * 900) / 1300
    assert moved["contribution"].sum() == pytest.approx(after - before)
    assert moved["z"].isna().all() == (metric.unit != "share")


def _watch(name: str) -> WatchedMetric:
    (watch,) = health.watches([name])
    return watch


def _of_ratio(metric: Metric, quotient: object) -> DataFrame:
    """Return a frame in which a segment of 900 goes from a quotient of 0.3 to 0.6, beside one of 400 with 0.1."""
    rows = []
    for country, usual, now, whole in (("US", 0.1, 0.1, 400), ("DE", 0.3, 0.6, 900)):
        for day in range(DAYS):
            level = now if day == DAYS - 1 else usual
            row: dict[str, object] = dict.fromkeys(metric.columns.values(), 7)
            match quotient:
                case Quotient():
                    row[metric.columns[quotient.part]], row[metric.columns[quotient.whole]] = level * whole, whole
                    row |= {metric.columns[quotient.plus]: 0} if quotient.plus else {}
                    row[metric.name] = quotient.worth * level
                case None if metric.name == "session_length":  # two events of most sessions
                    row = {
                        "session_length": level,
                        "session_length_sum": level * whole,
                        "session_length_count": whole - 150,
                    }
            rows.append({"timestamp": FIRST + pd.Timedelta(days=day), "country_code": country, **row})
    return DataFrame(rows).astype({"country_code": "category"})


def test_a_frame_that_was_not_split_is_refused() -> None:
    """A frame without the dimension raises `BadQuery` that names it."""
    with pytest.raises(BadQuery, match="platform"):
        health.segments(by_country(US=(1, 1)), WATCHED["user_unique"], "platform", day=LAST)


def test_a_board_needs_one_query_for_each_split_and_filter() -> None:
    """A board takes seven queries, and asks sessions by game too: those by build do not add up to them."""
    queries = health.board_queries(health.watches())
    assert [(query.by, query.metric[-1], query.where) for query in queries] == [
        (("game",), "session_length", None),
        (("game", "country_code"), "retention_retro", None),
        (("game", "ilrd_network_name"), "ilrd_revenue", None),
        (("game",), "event_count", {"ad_action": "failed_show"}),
        (("game", "build"), "event_count", {"category": "error"}),
        (("game", "build"), "session_unique", None),
        (("game", "build"), "event_count", {"severity": "critical"}),
    ]
    assert "session_unique" in queries[0].metric


def test_only_the_chosen_metrics_are_queried() -> None:
    """A board of chosen metrics queries these alone, metrics computed from others included."""
    (query,) = health.board_queries(health.watches(["revenue", "user_unique", "purchases"]))
    assert query == HealthQuery(metric=("revenue", "user_unique"))


def test_any_metric_of_the_service_can_be_watched() -> None:
    """Metrics outside the default board have kind, part and total from the catalog."""
    conversion, length = health.watches(["conversion", "session_length"])
    assert (conversion.kind, conversion.part, conversion.whole) == ("share", "paying_users", "user_unique")
    assert length.kind == "number"


def test_a_metric_that_does_not_exist_is_refused_with_the_nearest() -> None:
    """An unknown metric raises `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery, match="user_unique"):
        health.watches(["user_uniqe"])


def row(**fields: object) -> dict[str, object]:
    """Return a row of the board with *fields* in place of the usual ones."""
    return {"watch": "user_unique", "game_id": "7", "dimension": None, "segment": None, "is_silent": False, **fields}


def test_a_sum_is_looked_into_by_each_of_its_dimensions() -> None:
    """The drill-down of a count is one query per dimension, for that game only."""
    queries = health.drill_queries(row())
    assert list(queries) == ["country_code", "platform", "build"]
    assert queries["build"].arguments == {"metric": ["user_unique"], "by": ["build"], "games": ["7"]}


def test_retention_of_a_country_is_looked_into_within_it() -> None:
    """The drill-down of a segment is filtered by it and keeps `since_days_ago`."""
    queries = health.drill_queries(row(watch="retention_d1", dimension="country_code", segment="BR"))
    assert queries["build"].arguments["where"] == {"country_code": "BR"}
    assert queries["build"].since_days_ago == 1


def test_a_network_is_looked_into_beside_all_others() -> None:
    """The drill-down of a network's share needs all networks, so it is not filtered."""
    queries = health.drill_queries(row(watch="network_share", dimension="ilrd_network_name", segment=None))
    assert queries["platform"].by == ("platform", "ilrd_network_name")


def test_a_silent_game_has_no_segments() -> None:
    """A silent game has no drill-down."""
    assert health.drill_queries(row(is_silent=True)) == {}
