"""Retention by install day, computed from `retention_retro` by activity day.

That its numbers are those of the events, however they are split and pooled, is in `test_query_walks.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import date, timedelta
from typing import Any

import pandas as pd
import pytest
from starlette.responses import JSONResponse

from gamelens.analysis.totals import total
from gamelens.client.sync_client import Client
from gamelens.errors import ServiceError
from gamelens.wire.intervals import Interval
from support.scripted_service import Script

Make = Callable[..., Client]

# Installs of two games by install day, game and platform, and the players who were back at an age.
INSTALLS = {
    ("2026-11-01", "1001", "ios"): 10,
    ("2026-11-01", "1001", "android"): 4,
    ("2026-11-01", "2001", "ios"): 30,
    ("2026-11-02", "1001", "ios"): 3,
    ("2026-11-18", "1001", None): 5,
}
RETURNED = {
    (1, "2026-11-01", "1001", "ios"): 5,
    (1, "2026-11-01", "2001", "ios"): 3,
    (7, "2026-11-01", "1001", "android"): 1,
    (1, "2026-11-02", "1001", "ios"): 1,
    (1, "2026-11-18", "1001", None): 2,
}


def stamp(day: str) -> str:
    """Return the timestamp of *day* as the service writes it."""
    return f"{day}T00:00:00.000Z"


def days_of(body: dict[str, Any]) -> tuple[str, str]:
    """Return first day and end day of the interval of *body*."""
    interval = Interval.parse(body["interval"])
    return f"{interval.start:%F}", f"{interval.end:%F}"


def new_users(body: dict[str, Any]) -> list[Any]:
    """Return installs by game_id, or by platform and game_id (Wire 2.9, Answer shapes)."""
    start, end = days_of(body)
    rows = {key: number for key, number in INSTALLS.items() if start <= key[0] < end}
    if body["query"]["type"] == "split":
        return [
            {"event": {"platform": platform, "game_id": game, "new_users": number}, "timestamp": stamp(day)}
            for (day, game, platform), number in rows.items()
        ]
    answer: dict[str, dict[str, int]] = {}
    for (day, game, _), number in rows.items():
        games = answer.setdefault(day, {})
        games[game] = games.get(game, 0) + number
    return [
        {"result": [{"game_id": game, "new_users": number} for game, number in games.items()], "timestamp": stamp(day)}
        for day, games in answer.items()
    ]


def retention_retro(body: dict[str, Any]) -> list[Any]:
    """Return a row per game and value with returning users (Wire 4.12, Retention)."""
    start, end = days_of(body)
    groups: dict[tuple[str, str, str | None], list[int]] = {}
    split = body["split_by"]
    for (day, game, platform), installs in INSTALLS.items():
        group = (day, game, platform if split == "platform" else game)
        back = RETURNED.get((body["since_days_ago"], day, game, platform), 0)
        total = groups.setdefault(group, [0, 0])
        total[0], total[1] = total[0] + back, total[1] + installs
    answer = []
    for (day, game, value), (back, installs) in groups.items():
        active = str(date.fromisoformat(day) + timedelta(days=body["since_days_ago"]))
        if back and start <= active < end:
            row = {split: value, "game_id": game, "retention": back / installs}
            answer.append({"result": row, "timestamp": stamp(active)})
    return sorted(answer, key=lambda row: row["timestamp"])


def revenue(body: dict[str, Any]) -> list[Any]:
    """Return five dollars on 18 November."""
    paid = {"sum": 5.0, "event_count": 1, "mean": 5.0, "sum_cents": 500.0}
    return [{"result": paid, "timestamp": stamp("2026-11-18")}]


@pytest.fixture
def lens(make_lens: Make, script: Script) -> Client:
    """Return a client of a service with the installs and returns above."""
    script.answers = {"new_users": new_users, "retention_retro": retention_retro}
    return make_lens()


def table(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of *columns*, days as month and day, null as None."""
    plain = frame.assign(timestamp=frame["timestamp"].dt.strftime("%m-%d")).astype(object)
    return list(plain.where(plain.notna(), None)[list(columns)].itertuples(index=False, name=None))


def test_an_answer_without_installs_has_the_same_dtypes(lens: Client) -> None:
    """Retention without installs is an empty frame with the same dtypes."""
    empty, full = lens.retention(1, over="2026-10-01"), lens.retention(1, over="2026-11-01")
    assert (len(empty), empty.dtypes.tolist()) == (0, full.dtypes.tolist())


def test_each_age_is_requested_over_days_shifted_by_it(lens: Client, script: Script) -> None:
    """An age is requested over its activity days (Wire 4.12, Retention)."""
    lens.retention([1, 7], over=("2026-11-01", "2026-11-03"))
    intervals = {body.get("since_days_ago"): str(Interval.parse(body["interval"])) for body in script.bodies}
    assert intervals == {
        None: "2026-11-01T00:00Z/2026-11-04T00:00Z",
        1: "2026-11-02T00:00Z/2026-11-05T00:00Z",
        7: "2026-11-08T00:00Z/2026-11-11T00:00Z",
    }


def test_long_ranges_are_cut_into_pieces_of_31_days(lens: Client, script: Script) -> None:
    """Sixty days are two requests per metric (Wire 2.8, Intervals and buckets)."""
    lens.retention([1], over="last 60 complete days")
    assert len(script.bodies) == 4


def test_days_that_have_not_come_are_not_requested(lens: Client, script: Script) -> None:
    """If no activity day has come, only installs are requested."""
    lens.retention([28], over="2026-11-18")
    assert [body["query"]["type"] for body in script.bodies] == ["group"]


def test_an_unfinished_install_day_counts_its_available_part(lens: Client, script: Script) -> None:
    """With "clip" the installs of an unfinished day are those available."""
    lens.retention(1, over=("2026-11-18", "2026-11-20"), when_unavailable="clip")
    assert script.bodies[0]["interval"] == "2026-11-18T00:00:00Z/P2DT11H"


def test_a_row_without_retention_is_a_service_error(lens: Client, script: Script) -> None:
    """A `retention_retro` row without its field is a `ServiceError`."""
    script.answers["retention_retro"] = lambda _: [
        {"result": {"game_id": "1001", "retention": None}, "timestamp": stamp("2026-11-02")}
    ]
    with pytest.raises(ServiceError, match="retention"):
        lens.retention(1, over="2026-11-01")


def test_the_receipt_has_the_ages(lens: Client) -> None:
    """The receipt of retention has the metric "retention" and its days."""
    query = lens.retention([1, 7], over="2026-11-01").attrs["gamelens"]["asked"]
    assert (query["metric"], query["days"]) == ("retention", [1, 7])


def test_a_week_with_a_day_that_has_not_come_is_na(lens: Client) -> None:
    """Two days after 18 November has not come, so the whole month has no number yet; its other age has."""
    with pytest.warns(UserWarning, match="D2 retention is NA in each month: day 2 after 2026-11-18 is not over yet"):
        frame = lens.retention([1, 2], over=("2026-11-01", "2026-11-18"), every="month")
    assert table(frame, "age", "installs", "returned") == [(1, 52, 11), (2, 52, None)]
    weeks = lens.retention(2, over=("2026-11-01", "2026-11-18"), every="week")  # an earlier week has a number
    assert weeks["retention"].notna().any()


@pytest.mark.parametrize(
    ("age", "over", "rows", "warnings"),
    [
        (1, ("2026-11-01", "2026-11-18"), [(52, 11)], []),
        (
            2, ("2026-11-01", "2026-11-18"), [(47, 0)],
            ["D2 retention leaves out 1 of 18 install days, 2026-11-18: day 2 after it is not over yet"],
        ),
        (
            12, ("2026-11-01", "2026-11-18"), [(47, 0)],
            ["D12 retention leaves out 11 of 18 install days, 2026-11-08 to 2026-11-18: "
             "day 12 after them is not over yet"],
        ),
        (2, "2026-11-18", [(5, None)], ["D2 retention is NA: day 2 after 2026-11-18 is not over yet"]),
    ],
)  # fmt: skip
def test_a_whole_period_counts_the_days_that_are_old_enough(
    lens: Client, age: int, over: Any, rows: list[Any], warnings: list[str]
) -> None:
    """A warning says how many install days it leaves out; a period without an old enough day is NA."""
    with pytest.warns(UserWarning, match=r"^D\d+ retention") if warnings else nullcontext():
        frame = lens.retention(age, over=over, every="all")
    assert table(frame, "installs", "returned") == rows
    assert frame.attrs["gamelens"].get("warnings", []) == warnings


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        (None, [(11 / 52, 52)]),
        ("game_id", [("2001", 0.1, 30), ("1001", 8 / 22, 22)]),
        ("platform", [("ios", 9 / 43, 43), ("android", 0.0, 4), (None, 0.4, 5)]),
    ],
)
def test_a_metric_of_one_age_counts_the_days_that_are_old_enough(lens: Client, by: str | None, rows: list[Any]) -> None:
    """One day of nineteen is too young: the share is that of the others, with one warning."""
    with pytest.warns(UserWarning, match=r"D1 retention leaves out 1 of 19 install days, 2026-11-19") as seen:
        frame = lens.query("d1_retention", over=("2026-11-01", "2026-11-19"), every="all", by=by)
    assert len(seen) == 1
    assert table(frame, *([by] if by else []), "d1_retention", "d1_installs") == rows


def test_a_restated_week_is_listed_by_its_start(lens: Client, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new answer has the days of the week that changed as one bucket."""
    frame = lens.retention([1], over=("2026-11-01", "2026-11-07"), every="week")
    monkeypatch.setitem(RETURNED, (1, "2026-11-02", "1001", "ios"), 2)
    again = lens.refresh(frame)
    assert table(again, "timestamp", "returned") == [("10-26", 8), ("11-02", 2)]
    assert {row["timestamp"][:10] for row in again.attrs["gamelens"]["restated"]} == {"2026-11-02"}


def test_metrics_of_ages_stand_beside_others(make_lens: Make, script: Script) -> None:
    """One column each in the order of the query; a bucket whose day has not come is NA, and its parts too."""
    revenue = [
        {"result": {"sum": 5.0, "event_count": 1, "mean": 5.0, "sum_cents": 500.0}, "timestamp": stamp("2026-11-18")}
    ]
    script.answers = {"new_users": new_users, "retention_retro": retention_retro, "revenue": lambda body: revenue}
    frame = make_lens().query(["d7_retention", "revenue", "d1_retention"], over=("2026-11-18", "2026-11-18"))
    assert [*frame] == [
        *("timestamp", "d7_retention", "d7_returned", "d7_installs"),
        *("revenue", "d1_retention", "d1_returned", "d1_installs"),
    ]
    assert table(frame, "revenue", "d1_retention", "d1_installs", "d7_retention", "d7_installs") == [
        (5.0, 2 / 5, 5, None, None)
    ]
    assert {str(frame[name].dtype) for name in ("d1_returned", "d7_installs")} == {"Int64"}


def test_a_total_of_retention_is_made_of_its_parts(lens: Client) -> None:
    """11 of 52 came back over all days, whose mean of shares would be another number."""
    frame = lens.query("d1_retention", over=("2026-11-01", "2026-11-18"))
    assert total(frame)["d1_retention"].iloc[0] == pytest.approx(11 / 52)


def test_a_failed_piece_of_an_age_is_a_gap(make_lens: Make, script: Script) -> None:
    """The other metric keeps its rows, and the failed one is NA with its gap in the receipt."""
    script.answers = {"new_users": new_users, "retention_retro": lambda body: JSONResponse({}, 404), "revenue": revenue}
    frame = make_lens().query(["revenue", "d1_retention"], over="2026-11-18", on_error="gaps")
    assert table(frame, "revenue", "d1_retention", "d1_installs") == [(5.0, None, None)]
    assert [gap["metric"] for gap in frame.attrs["gamelens"]["gaps"]] == ["retention_retro"]


def test_a_plan_counts_the_requests_of_an_age(lens: Client, script: Script) -> None:
    """One request for the installs and one for the age, and as many are sent."""
    plan = lens.plan("d1_retention", over="2026-11-01")
    assert [piece.metric for piece in plan.pieces] == ["new_users", "retention_retro"]


def test_a_frame_with_an_age_is_refreshed(lens: Client, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed is listed under the columns of the frame."""
    frame = lens.query("d1_retention", over=("2026-11-01", "2026-11-02"))
    monkeypatch.setitem(RETURNED, (1, "2026-11-02", "1001", "ios"), 2)
    again = lens.refresh(frame)
    assert table(again, "timestamp", "d1_returned") == [("11-01", 8), ("11-02", 2)]
    restated = again.attrs["gamelens"]["restated"]
    assert {(row["metric"], row["timestamp"][:10]) for row in restated} == {("d1_retention", "2026-11-02")}


@pytest.mark.shown_by(2)
@pytest.mark.filterwarnings("ignore:D[17] retention")
@pytest.mark.parametrize("every", ["day", "all"])
@pytest.mark.parametrize("metric", [None, "d1_retention", ["d1_retention", "d7_retention"]])
def test_a_day_that_has_come_since_restates_nothing(make_lens: Make, script: Script, every: Any, metric: Any) -> None:
    """A frame of 18 and 19 November has a day more to count on the 21st; what a day says of itself may be restated."""
    script.answers = {"new_users": new_users, "retention_retro": retention_retro}
    installs = INSTALLS | {("2026-11-19", "1001", "ios"): 8}
    over = ("2026-11-18", "2026-11-19")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.INSTALLS", installs)
        lens = make_lens(refresh_s=0)
        frame = (
            lens.retention(1, over=over, every=every) if metric is None else lens.query(metric, over=over, every=every)
        )
        script.available = "2026-08-22T00:00:00Z/2026-11-21T11:00:00Z"
        again = lens.refresh(frame)
        assert again.attrs["gamelens"]["as_of"] > frame.attrs["gamelens"]["as_of"]
        assert again.attrs["gamelens"].get("restated", []) == []
        if every == "day":
            patch.setitem(RETURNED, (1, "2026-11-18", "1001", None), 3)
            assert [row["timestamp"][:10] for row in lens.refresh(frame).attrs["gamelens"]["restated"]][:1] == [
                "2026-11-18"
            ]


@pytest.mark.filterwarnings("ignore:D1 retention leaves out")
def test_more_install_days_restate_no_metric_beside_them(make_lens: Make, script: Script) -> None:
    """Of a whole period, retention counts a day more on the 21st; the events beside it are compared all the same."""
    events = [30]

    def event_count(_: dict[str, Any]) -> list[Any]:
        return [{"result": [{"game_id": "1001", "event_count": events[-1]}], "timestamp": stamp("2026-11-18")}]

    script.answers = {"new_users": new_users, "retention_retro": retention_retro, "event_count": event_count}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.INSTALLS", INSTALLS | {("2026-11-19", "1001", "ios"): 8})
        lens = make_lens(refresh_s=0)
        over = ("2026-11-18", "2026-11-19")
        frame = lens.query(["event_count", "d1_retention"], over=over, every="all", by="game_id")
        script.available = "2026-08-22T00:00:00Z/2026-11-21T11:00:00Z"
        assert lens.refresh(frame).attrs["gamelens"].get("restated", []) == []
        events.append(31)
        (restated,) = lens.refresh(frame).attrs["gamelens"]["restated"]
    assert [restated[name] for name in ("metric", "before", "after")] == ["event_count", 30, 31]


def test_groups_to_which_nobody_returned_are_counted(lens: Client, script: Script) -> None:
    """The rows are those of the service, and a warning says how many groups with installs have none."""
    over, by = ("2026-11-02", "2026-11-03"), ["platform", "game_id"]
    assert len(lens.plan("retention_retro", over=over, by=by, since_days_ago=1).pieces) == 2
    with pytest.warns(UserWarning, match=r"1 of 3 groups have none at all, and 1 of 4 by day.*lens\.retention\(1, by="):
        frame = lens.query("retention_retro", over=over, by=by, since_days_ago=1)
    assert table(frame, "timestamp", "platform", "game_id", "retention_retro") == [
        ("11-02", "ios", "1001", 0.5),
        ("11-02", "ios", "2001", 0.1),
        ("11-03", "ios", "1001", 1 / 3),
    ]
    assert len(script.bodies) == 2
    again = lens.retention(1, over=("2026-11-01", "2026-11-02"), by=by)
    assert len(again) == 4


def test_groups_beside_their_installs_are_not_warned_of(lens: Client, script: Script) -> None:
    """A frame with new_users has a row for each group, and one of which all came back has nothing to say."""
    frame = lens.query(["new_users", "retention_retro"], over="2026-11-02", by="game_id", since_days_ago=1)
    assert len(frame) == 2
    frame = lens.query("retention_retro", over="2026-11-02", by="game_id", since_days_ago=1)
    assert len(frame) == 2


def test_installs_that_are_not_answered_cost_no_row(make_lens: Make, script: Script) -> None:
    """Without the count of groups the rows are the same, without a gap, and the remark has no number."""
    script.answers = {"new_users": lambda _: JSONResponse({}, 404), "retention_retro": retention_retro}
    with pytest.warns(UserWarning, match="number of such groups is not known"):
        frame = make_lens().query("retention_retro", over="2026-11-02", by=["platform", "game_id"], since_days_ago=1)
    assert len(frame) == 2
    assert frame.attrs["gamelens"]["gaps"] == []
