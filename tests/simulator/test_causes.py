"""The causes that `demo` plants are in the ledger with the stated size, and are there as values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from math import exp, sqrt
from typing import Final

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pytest

from gamelens.simulator import Scenario, load_scenario
from gamelens.simulator.events.event_columns import event_columns_of
from gamelens.simulator.output.external_files import outside_files
from gamelens.simulator.output.play import block_tasks, play_task
from gamelens.simulator.population.monetisation import PAYDAYS
from gamelens.simulator.scenarios.causes import Cause
from gamelens.simulator.scenarios.timeline import HardLevel, Incident, LostSessions
from support.played_scenario import ENDS_ON

pytestmark = pytest.mark.slow

PLAYERS: Final = 18_000
DEMO: Final = load_scenario("demo", players=PLAYERS)
TILES, RUNNER, REALMS = (game.title for game in DEMO.games)
BEGINS: Final = ENDS_ON - timedelta(days=DEMO.days)
WANTED: Final = (
    "game_id, player, session, day, installed, category, country_code, platform, build, ab_variant_id, "
    "install_publisher, ilrd_network_name, ilrd_nano, amount, currency, event_id"
)


class World:
    """A scenario played, asked in SQL: `events` has a row for each event, with its player's install day."""

    def __init__(self, scenario: Scenario, *, games: Sequence[int] = (0, 1, 2)) -> None:
        self._connection = duckdb.connect()
        tables, players, sessions = [], 0, 0
        for task in (task for task in block_tasks(scenario) if task.game in games):
            block, ids = play_task(scenario, BEGINS, task)
            game = scenario.games[task.game]
            rows = event_columns_of(block, ids, game=game, game_id=game.title, scenario=scenario)
            player, session = block.sessions.player[block.events.session], block.events.session
            added = {
                "player": player + players,
                "session": session + sessions,
                "day": block.events.ts_s // 86_400 - (BEGINS - date(1970, 1, 1)).days,
                "installed": block.players.install_day[player],
            }
            dropped = [name for name in rows.column_names if name not in WANTED.split(", ")]
            tables.append(
                pa.table(
                    {name: pa.array(values) for name, values in added.items()}
                    | {name: rows[name] for name in rows.column_names if name not in dropped}
                )
            )
            players, sessions = players + len(block.players), sessions + len(block.sessions.player)
        self._connection.register("made", pa.concat_tables(tables))
        self._connection.execute(f"CREATE TABLE events AS SELECT {WANTED} FROM made")

    def one(self, select: str, where: str) -> float:
        """Return one number about the events of a condition."""
        ((found,),) = self._connection.execute(f"SELECT {select} FROM events WHERE {where}").fetchall()
        return float(found)

    def share_back(self, where: str) -> tuple[float, int]:
        """Return D1 of the players of a condition who installed before the last day, and their number."""
        back = "count(DISTINCT player) FILTER (day = installed + 1)"
        where += f" AND installed < {DEMO.days - 4}"  # the last three days lose sessions
        count = self.one("count(DISTINCT player)", where)
        return self.one(back, where) / count, int(count)


@pytest.fixture(scope="module")
def demo() -> World:
    """The demo, with fewer players."""
    return World(DEMO)


def without(*kinds: type[Incident]) -> Scenario:
    """Return the demo without some incidents: all other draws are the same."""
    incidents = tuple(incident for incident in DEMO.incidents if not isinstance(incident, kinds))
    return msgspec.structs.replace(DEMO, incidents=incidents)


@pytest.fixture(scope="module")
def whole() -> World:
    """The first game of the demo, without the hard level."""
    return World(without(HardLevel), games=(0,))


def cause(kind: str, measure: str = "") -> Cause:
    """Return the only cause of this kind whose measure ends like that."""
    (found,) = (cause for cause in DEMO.causes if cause.kind == kind and cause.measure.endswith(measure))
    return found


def odds(share: float) -> float:
    return share / (1 - share)


def test_the_demo_has_each_cause_of_its_story() -> None:
    """Kind, game, where and first day; entries of one incident in two countries are one cause."""
    found = {(one.kind, one.game): (dict(one.where), one.day, one.days) for one in DEMO.causes}
    assert [one.day for one in DEMO.causes if one.kind == "holiday"] == [43, 44]
    assert found == {
        ("price_change", TILES): ({"ilrd_network_name": ("Mintegral",), "country_code": ("US", "JP")}, 33, 27),
        ("bad_build", RUNNER): ({"build": ("1.10.1",), "platform": ("android",)}, 45, None),
        ("lost_sessions", TILES): ({"platform": ("android",)}, 57, 3),
        ("hard_level", TILES): ({"level": ("4",)}, 47, None),
        ("campaign", REALMS): (
            {"install_publisher": ("Liftoff",), "country_code": ("DE", "FR", "BR", "IN")},
            40,
            20,
        ),
        ("experiment", TILES): ({"ab_id": ("starter_price",), "ab_variant_id": ("lower_price",)}, 22, None),
        ("experiment", REALMS): ({"ab_id": ("gem_price",), "ab_variant_id": ("higher_price",)}, 36, None),
        ("holiday", ""): ({"country_code": ("US", "GB", "JP", "DE", "FR")}, 44, 1),
    }
    assert all(one.day >= DEMO.days // 3 for one in DEMO.causes)


def test_a_scenario_without_entries_has_no_causes() -> None:
    """What is not planted is not listed."""
    nothing = msgspec.structs.replace(DEMO, incidents=(), campaigns=(), experiments=(), holidays=())
    assert nothing.causes == ()


def test_a_cause_lasts_for_its_days() -> None:
    """From its first day on, to the end of the scenario if it has no length."""
    assert [cause("lost_sessions").lasts(day) for day in (56, 57, 59, 60)] == [False, True, True, False]
    assert [cause("bad_build").lasts(day) for day in (44, 45, 1000)] == [False, True, True]


@pytest.mark.wide
@pytest.mark.parametrize("country", ["US", "JP"])
def test_the_lower_price_has_its_size_in_both_countries(demo: World, country: str) -> None:
    """The mean of the network's impressions falls by the factor, of one format and country."""
    lower = cause("price_change")
    where = f"game_id = '{TILES}' AND ilrd_network_name = 'Mintegral' AND country_code = '{country}'"
    means = [demo.one("avg(ilrd_nano)", f"{where} AND day {sign} {lower.day}") for sign in ("<", ">=")]
    assert means[1] / means[0] == pytest.approx(lower.size, rel=0.12)


def test_the_same_network_pays_as_before_elsewhere(demo: World) -> None:
    """In Germany it pays what it paid."""
    where = f"game_id = '{TILES}' AND ilrd_network_name = 'Mintegral' AND country_code = 'DE'"
    means = [demo.one("avg(ilrd_nano)", f"{where} AND day {sign} 33") for sign in ("<", ">=")]
    assert means[1] / means[0] == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(("platform", "is_hit"), [("android", True), ("ios", False)])
def test_the_bad_build_loses_first_days_on_one_platform(demo: World, platform: str, is_hit: bool) -> None:
    """D1 of those who install it is `stay` times the usual one, and as ever on the other platform."""
    bad = cause("bad_build")
    where = f"game_id = '{RUNNER}' AND platform = '{platform}' AND installed >= {bad.day}"
    share, count = demo.share_back(where)
    expected = DEMO.games[1].retention.d1 * (bad.size if is_hit else 1)
    assert abs(share - expected) < 3 * sqrt(expected * (1 - expected) / count)


@pytest.mark.wide
def test_a_broken_sdk_loses_its_share_of_sessions(demo: World) -> None:
    """On its platform and days, and nowhere else; all else is drawn as without it."""
    broken = cause("lost_sessions")
    days = f"day >= {broken.day} AND day < {broken.day + 3} AND game_id = '{TILES}'"
    sessions = "count(DISTINCT session)"
    kept = World(without(LostSessions), games=(0,))
    on_android = f"{days} AND platform = 'android'"
    assert demo.one(sessions, on_android) / kept.one(sessions, on_android) == pytest.approx(broken.size, abs=0.03)
    elsewhere = f"game_id = '{TILES}' AND NOT ({on_android})"
    assert demo.one("count(*)", elsewhere) == kept.one("count(*)", elsewhere)


def rounds_of_level(world: World, event: str, level: int, where: str) -> float:
    return world.one("count(*)", f"event_id = '{event}:world01:level{level:03d}' AND game_id = '{TILES}' AND {where}")


@pytest.mark.wide
def test_a_hard_level_is_completed_less_often_and_loses_players(demo: World, whole: World) -> None:
    """Its rounds from its first day on, and no rounds of the level before; fewer players reach the next one."""
    wall = cause("hard_level")
    (hard,) = (incident for incident in DEMO.incidents if isinstance(incident, HardLevel))
    since = f"day >= {wall.day}"

    def completed(world: World, level: int) -> float:
        """Return the share of the level's rounds, begun and ended, that were completed."""
        parts = [rounds_of_level(world, event, level, since) for event in ("Complete", "Fail")]
        return parts[0] / sum(parts)

    assert completed(demo, 4) / completed(whole, 4) == pytest.approx(wall.size, rel=0.1)
    assert completed(demo, 3) == pytest.approx(completed(whole, 3), rel=0.02)
    players = f"event_id = 'Start:world01:level005' AND game_id = '{TILES}' AND installed >= {wall.day}"
    reached = [world.one("count(DISTINCT player)", players) for world in (demo, whole)]
    # Of those who begin the level, at most all who do not complete it leave, or stay at it to the end.
    assert 0.06 < 1 - reached[0] / reached[1] < 1 - hard.complete
    before = f"game_id = '{TILES}' AND day < {wall.day}"
    # A session that runs into the next day may end a second sooner or later.
    assert demo.one("count(*)", before) == pytest.approx(whole.one("count(*)", before), rel=1e-4)


def test_who_leaves_at_a_hard_level_does_not_come_back(demo: World, whole: World) -> None:
    """D1 of the same new players is lower, since some have left at the level on their first day."""
    where = f"game_id = '{TILES}' AND installed >= {cause('hard_level').day}"
    (hard, count), (usual, same) = demo.share_back(where), whole.share_back(where)
    assert count == same
    assert 0.02 < usual - hard < 0.1


def test_the_campaign_brings_players_who_leave_and_do_not_pay(demo: World) -> None:
    """So many of an ordinary day, with the stated D1, and payers by the stated odds."""
    size, stay, spend = (cause("campaign", end) for end in ("installs", "retention", "ever paying"))
    days = f"installed >= {size.day} AND installed < {size.day + 20}"
    brought = f"game_id = '{REALMS}' AND install_publisher = 'Liftoff' AND {days}"
    others = f"game_id = '{REALMS}' AND install_publisher IS DISTINCT FROM 'Liftoff'"
    ordinary = demo.one("count(DISTINCT player)", others) / DEMO.days
    assert demo.one("count(DISTINCT player)", brought) / 20 / ordinary == pytest.approx(size.size, rel=0.12)
    share, count = demo.share_back(brought)
    expected = DEMO.games[2].retention.d1 * stay.size
    assert abs(share - expected) < 3 * sqrt(expected * (1 - expected) / count)
    payers = demo.one("count(DISTINCT player)", f"{brought} AND category = 'business'")
    usual = DEMO.games[2].purchases.payers
    most = odds(usual) * exp(spend.size)
    assert payers <= count * most + 3 * sqrt(count * most)


def test_the_campaign_costs_less() -> None:
    """Its installs cost the stated part of what the same installs would cost."""
    cost = cause("campaign", "the cost of an install")
    usual = msgspec.structs.replace(DEMO.campaigns[0], cost=1.0)
    texts = [
        outside_files(scenario, ends_on=ENDS_ON)["ad_spend.csv"]
        for scenario in (DEMO, msgspec.structs.replace(DEMO, campaigns=(usual,)))
    ]
    paid, full = (sum(float(line.split("€")[1]) for line in text.splitlines() if "Liftoff" in line) for text in texts)
    assert paid / full == pytest.approx(cost.size, rel=1e-3)


@pytest.mark.parametrize(("game", "variant"), [(TILES, "lower_price"), (REALMS, "higher_price")])
def test_a_price_test_changes_prices_and_payers(demo: World, game: str, variant: str) -> None:
    """Everything costs the stated part, and the odds of paying move by the stated step."""
    price, spend = (
        next(one for one in DEMO.causes if one.game == game and one.kind == "experiment" and one.measure.endswith(end))
        for end in ("prices", "ever paying")
    )
    arms = [f"game_id = '{game}' AND ab_variant_id = '{name}'" for name in (variant, "ctrl")]
    listed = {
        amount
        for item in DEMO.games[0].purchases.items + DEMO.games[2].purchases.items
        for amount in [item.price["USD"]]
    }
    for arm, factor in zip(arms, (price.size, 1.0), strict=True):
        bought = f"{arm} AND category = 'business' AND currency = 'USD'"
        allowed = {round(amount * factor) for amount in listed}
        assert demo.one(f"count(*) FILTER (amount NOT IN ({', '.join(map(str, sorted(allowed)))}))", bought) == 0
    players = [demo.one("count(DISTINCT player)", arm) for arm in arms]
    payers = [demo.one("count(DISTINCT player)", f"{arm} AND category = 'business'") for arm in arms]
    shares = [part / count for part, count in zip(payers, players, strict=True)]
    error = sqrt(sum(1 / part for part in payers))
    assert abs(np.log(odds(shares[0]) / odds(shares[1])) - spend.size) < 3 * error


@pytest.mark.wide
def test_a_holiday_brings_more_players_where_it_is_one(demo: World) -> None:
    """The odds that an earlier player plays move by the step in its countries, and elsewhere they do not."""
    holiday = next(one for one in DEMO.causes if one.kind == "holiday" and one.day == 44)
    quiet = World(msgspec.structs.replace(DEMO, holidays=()), games=(0,))
    old = f"game_id = '{TILES}' AND installed < {holiday.day} AND day = {holiday.day}"
    for code in ("US", "BR"):
        where = f"{old} AND country_code = '{code}'"
        more = demo.one("count(DISTINCT player)", where) / quiet.one("count(DISTINCT player)", where)
        if code in holiday.where["country_code"]:
            assert 1.15 < more < exp(holiday.size)
        else:
            assert more == 1


def test_purchases_gather_on_paydays(demo: World) -> None:
    """The same payers buy as often, but more of it on the first and fifteenth of a month."""
    usual = World(msgspec.structs.replace(DEMO, payday=1.0), games=(0,))
    days = [day for day in range(DEMO.days) if (BEGINS + timedelta(days=day)).day in PAYDAYS]
    bought = f"game_id = '{TILES}' AND category = 'business'"
    on_paydays = f"{bought} AND day IN ({', '.join(map(str, days))})"
    more = demo.one("count(*)", on_paydays) / usual.one("count(*)", on_paydays)
    assert 1.1 < more < DEMO.payday
    assert demo.one("count(*)", bought) == pytest.approx(usual.one("count(*)", bought), rel=0.05)
