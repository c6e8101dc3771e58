"""Who is behind a change: contributions that add up, the mix, Simpson's paradox, and the questions to ask."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.analysis.health import WATCHED, HealthQuery
from gamelens.errors import BadQuery

FIRST = pd.Timestamp("2026-10-05", tz="UTC")
DAYS = 30
LAST = FIRST + pd.Timedelta(days=DAYS - 1)


def by_country(**values: tuple[float, float]) -> DataFrame:
    """User counts by country: the usual one of a country, and that of the last day."""
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
    """Installs and day 1 retention by country: usual installs and share, and those of the last cohort."""
    rows = []
    for country, (installs, share, installs_now, share_now) in values.items():
        for day in range(DAYS):
            number = installs_now if day == DAYS - 2 else installs
            back = share_now if day == DAYS - 1 else share
            rows.append(
                {
                    "timestamp": FIRST + pd.Timedelta(days=day),
                    "country_code": country,
                    "new_users": number,
                    "retention": back,
                }
            )
    return DataFrame(rows).astype({"country_code": "category", "new_users": "Int64"})


def counts(frame: DataFrame) -> DataFrame:
    return health.segments(frame, WATCHED["user_unique"], "country_code", day=LAST)


def shares(frame: DataFrame) -> DataFrame:
    return health.segments(frame, WATCHED["retention_d1"], "country_code", day=LAST)


def test_contributions_of_a_sum_add_up_to_its_change() -> None:
    moved = counts(by_country(US=(400, 400), BR=(300, 100), DE=(100, 110)))
    assert moved["contribution"].sum() == pytest.approx(-190)
    assert moved["share_of_change"].sum() == pytest.approx(1)
    assert moved["segment"].tolist() == ["BR", "DE", "US"]


def test_one_country_is_behind_it() -> None:
    assert health.verdict(counts(by_country(US=(400, 398), BR=(300, 100), DE=(100, 101)))) == "one segment"


def test_all_countries_fell_alike() -> None:
    assert health.verdict(counts(by_country(US=(400, 200), BR=(300, 150), DE=(100, 50)))) == "all alike"


def test_what_one_lost_the_other_won() -> None:
    moved = counts(by_country(US=(400, 150), BR=(100, 330)))
    assert health.verdict(moved) == "against each other"
    assert health.moved_sentence(moved, "against each other", "count") == "by country, what US lost went to BR"


def test_contributions_of_a_share_add_up_to_its_change() -> None:
    frame = came_back(US=(100, 0.4, 150, 0.38), BR=(100, 0.2, 50, 0.12))
    moved = shares(frame)
    now, usual = (150 * 0.38 + 50 * 0.12) / 200, 0.3
    assert moved["contribution"].sum() == pytest.approx(now - usual, abs=1e-9)


def test_simpson_each_country_rose_and_the_whole_fell() -> None:
    moved = shares(came_back(US=(300, 0.40, 100, 0.44), BR=(100, 0.10, 300, 0.12)))
    assert moved["contribution"].sum() < 0
    assert (moved["value"] > moved["expected"]).all()
    assert health.verdict(moved) == "opposite"


def test_the_mix_moved_and_the_countries_did_not() -> None:
    assert health.verdict(shares(came_back(US=(300, 0.40, 100, 0.40), BR=(100, 0.10, 300, 0.10)))) == "the mix"


def test_a_build_that_is_new_is_held_against_the_others() -> None:
    old = came_back(old=(200, 0.40, 0, 0.0))
    new = came_back(new=(0, 0.0, 200, 0.20))[lambda it: it["timestamp"] >= LAST - pd.Timedelta(days=1)]
    frame = pd.concat([old.astype({"country_code": str}), new.astype({"country_code": str})])
    frame = frame[(frame["new_users"] > 0) | (frame["retention"] > 0)].rename(columns={"country_code": "build"})
    moved = health.segments(frame, WATCHED["retention_d1"], "build", day=LAST)
    top = moved.iloc[0]
    assert (top["segment"], top["expected"], top["value"]) == ("new", pytest.approx(0.4), pytest.approx(0.2))
    assert health.verdict(moved) == "one segment"
    sentence = health.moved_sentence(moved, "one segment", "share")
    assert sentence == "build new, new on 2026-11-02, makes up 100% of it (20.0% instead of 40.0%)"


def test_a_network_that_is_dead_on_one_platform() -> None:
    rows = [
        {
            "timestamp": FIRST + pd.Timedelta(days=day),
            "platform": platform,
            "ilrd_network_name": network,
            "event_count": 0 if (platform, network, day) == ("android", "Beta", DAYS - 1) else size,
            "sum": 1.0,
        }
        for platform, size in (("android", 400), ("ios", 100))
        for network in ("Alpha", "Beta", None)
        for day in range(DAYS)
    ]
    frame = DataFrame(rows).astype({"event_count": "Int64"})
    moved = health.segments(frame, WATCHED["network_share"], "platform", day=LAST, segment="Beta")
    assert health.verdict(moved) == "one segment"
    assert moved.iloc[0][["segment", "value"]].tolist() == ["android", 0.0]


def test_a_null_segment_stays_one() -> None:
    frame = by_country(US=(400, 400), BR=(300, 100))
    frame["country_code"] = frame["country_code"].astype("object").where(frame["country_code"] != "BR", None)
    moved = counts(frame)
    assert moved["segment"].isna().tolist() == [True, False]
    assert "(unknown)" in health.moved_sentence(moved, "one segment", "count")


def test_nobody_is_behind_nothing() -> None:
    moved = counts(by_country(US=(400, 400))[:0])
    assert len(moved) == 0
    assert health.verdict(moved) == "unclear"
    assert health.moved_sentence(moved, "unclear", "count") == ""


def test_a_frame_that_was_not_split_is_refused() -> None:
    with pytest.raises(BadQuery, match="platform"):
        health.segments(by_country(US=(1, 1)), WATCHED["user_unique"], "platform", day=LAST)


def test_a_board_asks_one_question_for_each_way_to_split() -> None:
    asked = health.questions(health.watches())
    assert [question.by for question in asked] == [("game",), ("game", "country_code"), ("game", "ilrd_network_name")]
    assert sum(len(question.metric) for question in asked) == 7


def test_what_is_not_wanted_is_not_asked() -> None:
    (asked,) = health.questions(health.watches(["revenue", "user_unique", "purchases"]))
    assert asked == HealthQuery(metric=("revenue", "user_unique"))


def test_any_metric_of_the_service_can_be_watched() -> None:
    conversion, length = health.watches(["conversion", "session_length"])
    assert (conversion.kind, conversion.part, conversion.whole) == ("share", "paying_users", "user_unique")
    assert length.kind == "number"


def test_a_metric_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadQuery, match="user_unique"):
        health.watches(["user_uniqe"])


def row(**fields: object) -> dict[str, object]:
    return {"watch": "user_unique", "game_id": "7", "dimension": None, "segment": None, "is_silent": False, **fields}


def test_a_sum_is_looked_into_by_each_of_its_dimensions() -> None:
    asked = health.drill_questions(row())
    assert list(asked) == ["country_code", "platform", "build"]
    assert asked["build"].arguments == {"metric": ["user_unique"], "by": ["build"], "games": ["7"]}


def test_retention_of_a_country_is_looked_into_within_it() -> None:
    asked = health.drill_questions(row(watch="retention_d1", dimension="country_code", segment="BR"))
    assert asked["build"].arguments["where"] == {"country_code": "BR"}
    assert asked["build"].since_days_ago == 1


def test_a_network_is_looked_into_beside_all_others() -> None:
    asked = health.drill_questions(row(watch="network_share", dimension="ilrd_network_name", segment=None))
    assert asked["platform"].by == ("platform", "ilrd_network_name")


def test_a_silent_game_has_no_segments() -> None:
    assert health.drill_questions(row(is_silent=True)) == {}
