"""Incidents: open until the series returns or a person accepts the level, and what explains them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.analysis.health import Accepted, Annotation, BoardNotes
from gamelens.analysis.health.incidents import Incidents
from gamelens.errors import BadQuery
from support.said import said

FIRST = pd.Timestamp("2026-08-31", tz="UTC")
DAYS = 80
BROKEN, HEALED = 40, 70
WEEK = (0.94, 0.92, 0.93, 0.95, 1.04, 1.14, 1.08)
ACCEPTED = """
[[accept]]
game = "Tile"
metric = "user_unique"
since = 2026-10-10
by = "Ana Lima"
on = 2026-10-20
why = "the event is over"
"""


def day_text(number: int) -> str:
    """Return a day, counted from 0, as sentences have it."""
    return f"{day(number).day} {day(number):%b %Y}"


Scores = Callable[..., DataFrame]


def day(number: int) -> pd.Timestamp:
    """Return the timestamp of a day, counted from 0."""
    return FIRST + pd.Timedelta(days=number)


def players(change: Callable[[int], float] = lambda _: 1.0, *, size: float = 1000.0, seed: int = 3) -> DataFrame:
    """Return the daily players of one game, with chance, weekdays and a *change* by day."""
    chance = np.random.default_rng(seed)
    counts = [int(chance.poisson(size * WEEK[number % 7] * change(number))) for number in range(DAYS)]
    rows = {"timestamp": [day(number) for number in range(DAYS)], "game_id": "1", "game": "Tile", "user_unique": counts}
    return DataFrame(rows).astype({"timestamp": "datetime64[us, UTC]", "user_unique": "Int64"})


def scores_of(frame: DataFrame, notes: BoardNotes | None = None) -> DataFrame:
    """Return the scores of daily players."""
    return health.score_days(health.measured(frame, {"user_unique": "Active players"}), notes=notes)


def open_days(scores: DataFrame) -> list[int]:
    """Return the numbers of the flagged days."""
    flagged = scores.loc[scores["is_flagged"].astype(bool), "timestamp"]
    return ((flagged - FIRST).dt.days).tolist()


def broken(number: int) -> float:
    """Return the factor of a fault that takes a third of the players, for a month."""
    return 0.65 if BROKEN <= number < HEALED else 1.0


def test_a_fault_that_lasts_stays_open_and_closes_when_it_is_mended() -> None:
    """A fall of a month is flagged on each of its days, and on none from the third day after it."""
    found = open_days(scores_of(players(broken)))
    assert set(range(BROKEN, HEALED)) <= set(found)
    assert max(found) < HEALED + 3
    assert min(found) == BROKEN


def test_the_baseline_does_not_follow_a_fault() -> None:
    """What is expected on the last day of a fault is what was usual before it."""
    scores = scores_of(players(broken))
    last = scores.iloc[HEALED - 1]
    assert last["expected"] == pytest.approx(1000 * WEEK[(HEALED - 1) % 7], rel=0.08)
    assert (last["since"], last["open_days"]) == (day(BROKEN), HEALED - BROKEN)


def test_the_sentence_says_since_when_it_is_open() -> None:
    """The sentence of an open incident has its first day."""
    scores = scores_of(players(broken)[:HEALED])
    (sentence,) = health.board(scores)["sentence"]
    assert f"open since {day_text(BROKEN)} (" in sentence


def test_a_share_that_lasts_lower_stays_open() -> None:
    """A share too noisy for one day is found over weeks, dated to a few days, and open on the last one."""
    chance = np.random.default_rng(4)
    rows = [
        {
            "timestamp": day(number),
            "game_id": "1",
            "game": "Tile",
            "conversion": (returned := int(chance.binomial(40, 0.17 if number >= BROKEN else 0.35))) / 40,
            "paying_users": returned,
            "user_unique": 40,
        }
        for number in range(DAYS)
    ]
    frame = DataFrame(rows).astype({"timestamp": "datetime64[us, UTC]"})
    scores = health.score_days(health.daily([frame], health.watches(["conversion"])))
    assert bool(scores["is_flagged"].iloc[-1])
    assert abs((scores["since"].iloc[-1] - day(BROKEN)).days) <= 3
    assert scores["expected"].iloc[-1] == pytest.approx(0.35, abs=0.04)


def test_an_accepted_level_is_the_usual_one(tmp_path: Path) -> None:
    """From the accepted day on the level is usual: nothing is open, and the note names who and why."""
    (tmp_path / "health.toml").write_text(ACCEPTED)
    notes = BoardNotes.read(tmp_path / "health.toml")
    scores = scores_of(players(lambda number: 0.65 if number >= BROKEN else 1.0), notes)
    assert open_days(scores) == []
    assert scores["expected"].iloc[-1] == pytest.approx(650 * WEEK[(DAYS - 1) % 7], rel=0.08)
    assert "accepted by Ana Lima on 2026-10-20: the event is over" in scores["note"].iloc[-1]


def test_a_fall_below_an_accepted_level_is_found() -> None:
    """An accepted level has a baseline of its own, from which the next fault stands out."""
    accepted = Accepted(
        game="Tile", metric="Active players", since=day(BROKEN).date(), by="A", on=date(2026, 10, 20), why="w"
    )
    levels = {0: 1.0, 1: 0.65, 2: 0.4}
    frame = players(lambda number: levels[(number >= BROKEN) + (number >= HEALED + 5)])
    assert min(open_days(scores_of(frame, BoardNotes(accepted=(accepted,))))) == HEALED + 5


def test_an_accepted_level_of_another_row_changes_nothing() -> None:
    """An entry about another metric leaves the incident open, and is named."""
    accepted = Accepted(game="Tile", metric="revenue", since=day(BROKEN).date(), by="A", on=date(2026, 10, 20), why="w")
    notes = BoardNotes(accepted=(accepted,))
    frame = players(broken)[:HEALED]
    daily = health.measured(frame, {"user_unique": "Active players"})
    assert bool(health.score_days(daily, notes=notes)["is_flagged"].iloc[-1])
    assert health.unmatched_notes(daily, notes) == ["accept: revenue of Tile is not on this board"]


@pytest.mark.parametrize("is_exempt", [True, False])
def test_a_campaign_explains_or_exempts(is_exempt: bool) -> None:
    """An exempt campaign raises no alarm; another one is named in the sentence of the alarm."""
    campaign = Annotation(
        kind="campaign", name="Autumn", begins=day(50).date(), ends=day(54).date(), game="Tile", is_exempt=is_exempt
    )
    scores = scores_of(players(lambda number: 1.6 if 50 <= number <= 54 else 1.0), BoardNotes(annotations=(campaign,)))
    flagged = health.flagged(scores)
    assert (len(flagged) == 0) is is_exempt
    assert flagged["sentence"].str.contains("campaign Autumn").all()


def test_the_days_after_an_exempt_campaign_are_judged_by_those_before_it() -> None:
    """Exempt days are not part of the baseline."""
    campaign = Annotation(kind="campaign", name="Long", begins=day(40).date(), ends=day(67).date(), is_exempt=True)
    scores = scores_of(players(lambda number: 2.0 if 40 <= number <= 67 else 1.0), BoardNotes(annotations=(campaign,)))
    assert open_days(scores) == []
    assert scores["expected"].iloc[-1] == pytest.approx(1000 * WEEK[(DAYS - 1) % 7], rel=0.08)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[acept]]", "acept"),
        ("[[accept]]\ngame = 'T'", "accept.metric is missing"),
        (ACCEPTED.replace("2026-10-10", "'10 October'"), "accept.since = '10 October' must be a day"),
        (ACCEPTED.replace('"Ana Lima"', '""'), "accept.by = '' must be a non-empty text"),
        (ACCEPTED + "level = 3", "accept.level = 3 is not a key"),
        ("[[annotation]]\nkind='sale'\nname='n'\nfrom=2026-10-01\nto=2026-10-02", "annotation.kind = 'sale'"),
        ("[[annotation]]\nkind='other'\nname='n'\nfrom=2026-10-03\nto=2026-10-02", "must not be before from"),
        ("accept = 3", "accept = 3 must be a list of tables"),
        ("[[accept]\n", "is not TOML"),
    ],
)
def test_a_note_that_breaks_a_rule_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error names the entry, its value and what to write instead."""
    path = tmp_path / "health.toml"
    path.write_text(text)
    with pytest.raises(BadQuery) as caught:
        BoardNotes.read(path)
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing file is an error that names it."""
    with pytest.raises(BadQuery, match="cannot be read"):
        BoardNotes.read(tmp_path / "none.toml")


def test_a_headline_has_the_days_of_the_findings_it_counts() -> None:
    """A board of a week whose only finding is four days old names that day, not the last one."""
    board = health.board(scores_of(players(lambda number: 0.4 if number == DAYS - 4 else 1.0)), days=7)
    headline = said(health.headline(board))[0]
    assert headline.text.startswith(f"1 critical on {day_text(DAYS - 4)}: ")
    assert day_text(DAYS - 1) not in headline.text


def test_a_headline_of_an_open_incident_has_its_first_day() -> None:
    """The headline says since when the oldest finding is open."""
    headline = said(health.headline(health.board(scores_of(players(broken)[:HEALED]))))[0]
    assert headline.text.startswith(f"1 warning on {day_text(HEALED - 1)}, open since {day_text(BROKEN)}: ")
    assert (headline.direction, headline.size) == ("lower", 1.0)


def test_an_alarm_is_a_claim() -> None:
    """Each alarm has subject, direction, size and an interval that holds the size."""
    (claim,) = said(health.board(scores_of(players(broken)[:HEALED])))
    assert (claim.kind, claim.subject, claim.direction) == ("number", "Tile", "lower")
    assert claim.low < claim.size < claim.high < 0


def by_build(critical: Callable[[int, str], float]) -> list[DataFrame]:
    """Return errors and sessions of two builds, the newer one from day 60 on."""
    chance, errors, sessions = np.random.default_rng(8), [], []
    for number in range(DAYS):
        for build, size in (("1.0", 2000 if number < 60 else 800), ("1.1", 0 if number < 60 else 1200)):
            if size:
                about = {"timestamp": day(number), "game_id": "1", "game": "Tile", "build": build}
                sessions.append({**about, "session_unique": size})
                errors.append({**about, "event_count": int(chance.poisson(size * critical(number, build)))})
    interval = f"{FIRST:%Y-%m-%dT%H:%MZ}/{day(DAYS):%Y-%m-%dT%H:%MZ}"
    frames = [DataFrame(rows).astype({"timestamp": "datetime64[us, UTC]"}) for rows in (errors, sessions)]
    for frame, metric, where in zip(
        frames, ("event_count", "session_unique"), ({"severity": "critical"}, None), strict=True
    ):
        frame.attrs["gamelens"] = {"asked": {"metric": metric, "every": "day", "where": where, "interval": interval}}
    return frames


def test_the_errors_of_a_new_build_are_judged_by_the_builds_before_it() -> None:
    """A build with four times the critical errors is flagged within three days of its release."""
    answers = by_build(lambda _, build: 0.012 if build == "1.1" else 0.003)
    scores = health.score_days(health.daily(answers, health.watches(["critical_errors"])))
    flagged = scores[scores["is_flagged"].astype(bool) & (scores["segment"] == "1.1")]
    assert flagged["timestamp"].min() <= day(62)
    assert flagged["severity"].iloc[-1] == "critical"
    assert flagged["expected"].iloc[-1] == pytest.approx(0.003, rel=0.3)


def test_a_new_build_without_more_errors_is_no_alarm() -> None:
    """A release alone raises no alarm."""
    answers = by_build(lambda *_: 0.003)
    scores = health.score_days(health.daily(answers, health.watches(["critical_errors"])))
    assert not scores["is_flagged"].any()
    assert set(scores["segment"].dropna()) == {"1.0", "1.1"}


def wandering(strength: float, *, series: int, days: int) -> np.ndarray:
    """Return autocorrelated deviations of many series."""
    chance = np.random.default_rng(12)
    steps = chance.normal(0, 0.1, (series, days))
    for number in range(1, days):
        steps[:, number] += strength * steps[:, number - 1]
    return steps


@pytest.mark.wide
def test_a_share_that_wanders_a_little_is_no_new_level() -> None:
    """P below 0.001 comes on at most 1.5 days in a thousand if a share wanders by less than the chance of a day.

    300 series by 28 days, the mean of 28 % to 32 %, AR(0.8), of 1,000 players a day. Weeks together would show each of
    these waves beyond chance.
    """
    series, days = 300, 70
    chance = np.random.default_rng(14)
    shares = 0.3 * np.exp(0.35 * wandering(0.8, series=series, days=days))
    returned = chance.binomial(1000, shares)
    frame = DataFrame(
        {
            "timestamp": np.tile(pd.date_range(FIRST, periods=days, freq="D", unit="us"), series),
            "game": np.repeat([f"Game {number}" for number in range(series)], days),
            "conversion": returned.ravel() / 1000,
            "paying_users": returned.ravel(),
            "user_unique": 1000,
        }
    )
    scores = health.score_days(health.daily([frame], health.watches(["conversion"])))
    late = scores[scores["timestamp"] >= day(42)]
    is_usual = late["since"].isna() | (late["open_days"] == 1)
    assert (late.loc[is_usual, "p"] < 0.001).mean() <= 0.0015
    assert late["p"].notna().mean() > 0.95


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("strength", [0.0, 0.8, 1.0])
def test_a_p_value_holds_for_series_that_wander(strength: float) -> None:
    """P below 0.001 comes on at most 1.5 days in a thousand: Poisson, AR(0.8) and random walks.

    200 series by 28 days, after six weeks of history.
    """
    series, days = 200, 70
    level = 800 * np.tile(WEEK, 10)[:days] * np.exp(wandering(strength, series=series, days=days) * (strength > 0))
    counts = np.random.default_rng(13).poisson(level).astype("float64")
    frame = DataFrame(
        {
            "timestamp": np.tile(pd.date_range(FIRST, periods=days, freq="D", unit="us"), series),
            "game": np.repeat([f"Game {number}" for number in range(series)], days),
            "user_unique": counts.ravel().astype(int),
        }
    )
    scores = health.score_days(health.measured(frame, {"user_unique": "Players"}))
    late = scores[scores["timestamp"] >= day(42)]
    is_usual = late["since"].isna() | (late["open_days"] == 1)
    assert (late.loc[is_usual, "p"] < 0.001).mean() <= 0.0015
    assert late["p"].notna().mean() > 0.95


def test_the_days_of_an_open_incident_are_not_usual() -> None:
    """From its first day to the last one seen, so that the baseline stays what it was before."""
    incidents = Incidents(1, 5)
    for number, z in enumerate((0.0, 0.0, -9.0, -9.0)):
        is_low, nothing = np.array([z < 0]), np.array([False])
        incidents.update(
            number, np.array([z]), side=np.array([-1.0]), codes=np.array([3]), is_flagged=is_low, is_silent=nothing
        )
    assert incidents.since.tolist() == [2]
    assert incidents.is_usual.tolist() == [[True, True, False, False, True]]


def risen(number: int) -> float:
    """Return the factor of a level that is half as high again from `BROKEN` on."""
    return 1.5 if number >= BROKEN else 1.0


def test_a_rise_that_lasts_is_a_new_level_after_two_weeks() -> None:
    """It is open for fourteen days, the last of which says so once; then days are judged against it."""
    scores = scores_of(players(risen))
    assert open_days(scores) == list(range(BROKEN, BROKEN + 14))
    said_on = scores.index[scores["note"].str.contains("new level")].tolist()
    assert said_on == [BROKEN + 13]
    assert scores["note"][BROKEN + 13] == "new level since 10 Oct 2026, against which days are judged from now on"
    after = scores[BROKEN + 14 :]
    assert after["expected"].between(1300, 1900).all()
    assert not after["is_flagged"].any()


def test_a_day_within_a_new_level_stands_out() -> None:
    """Half of the new level on one day is three quarters of the old one, which nobody would have seen."""
    day_of_fall = BROKEN + 20
    scores = scores_of(players(lambda number: risen(number) * (0.5 if number == day_of_fall else 1.0)))
    assert scores["is_flagged"][day_of_fall]
    assert scores["change"][day_of_fall] == pytest.approx(-0.5, abs=0.1)


def test_a_fall_that_lasts_stays_open() -> None:
    """A fault that lasts is no level: nobody may get used to it."""
    scores = scores_of(players(lambda number: 0.6 if number >= BROKEN else 1.0))
    assert open_days(scores) == list(range(BROKEN, DAYS))
    assert not scores["note"].str.contains("new level").any()
