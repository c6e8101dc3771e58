"""What must be true of the page of a notebook in any world: its numbers are those of the events of its period.

Numbers of a page also agree with each other: key numbers and sentences with the tables below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from gamelens.local.sample_data import write_files
from gamelens.simulator.output.external_files import empty_files, outside_files
from support.executed_notebooks import OF_A_LAKE
from support.notebook_pages import Page, defaults_of, is_number
from support.report_worlds import SCENARIO, TODAY, World

RANGES: Final = {"yesterday": 1, **{f"last {days} complete days": days for days in (3, 7, 14, 28, 31, 56, 112)}}
"""The days of the ranges that pages are asked for; all of them end with the last complete day."""
NO_DATA: Final = "the service has no data yet. Ask again when its first events are processed"
_END: Final = "What to take away"
_MONEY: Final = r"(-?\$[\d,]+(?:\.\d+)?)"
_NOTHING: Final = re.compile(r"(?:brought|cost) \$0(?:\.0+)?(?![\d.]*[1-9])|[+-]0(?:\.0+)?%|\(0% of|[+-]0\.0 pp from")
"""A part of money or of a change that is none."""
_UNKNOWN: Final = re.compile(r"\b(?:nan|NaN|NaT|None(?! of| pays| can)|inf)\b")


def checked_page(notebook: str, world: World, files: Path, parameters: Mapping[str, Any] | None = None) -> Page:
    """Return the page of *notebook* about *world*, after all checks.

    Args:
        notebook: its name.
        world: what it is about.
        files: a folder for the outside files that the page reads unless *parameters* name others.
        parameters: those that are not the defaults.
    """
    given = dict(parameters or {})
    if notebook in OF_A_LAKE:  # which their parameter `state` names
        given["state"] = str(world.lake())
    if notebook == "04_outside_data" and "folder" not in given:
        texts = outside_files(SCENARIO, ends_on=TODAY) if world.name == "demo" else empty_files()
        given["folder"] = str(write_files(texts, files))
    page = world.page(notebook, given)
    if not world.events and notebook != "00_monday":
        assert NO_DATA in page.complaint, page.complaint
        return page
    assert not page.complaint, page.complaint
    assert [page.text[max(0, it.start() - 60) : it.end() + 20] for it in _UNKNOWN.finditer(page.text)] == []
    assert [it[0] for it in _NOTHING.finditer(page.text)] == []
    assert page.below(_END).strip()
    known = defaults_of(notebook) | given
    known["games"] = [games] if isinstance(games := known.get("games"), str) else games
    if known.get("over") in RANGES and "| Number" in page.text:
        assert page.period.partition(". ")[0] == period_text(world.covered(RANGES[known["over"]]))
    if notebook in CHECKS:
        CHECKS[notebook](page, world, known)
    return page


def period_text(days: range) -> str:
    """Return the days as pages name them."""
    first, last = (f"{it.day} {it:%b %Y}" for it in map(date.fromordinal, (days.start, days.stop - 1)))
    return last if len(days) == 1 else f"{first} to {last}, {len(days)} days"


def _check_monday(page: Page, world: World, known: dict[str, Any]) -> None:
    """The headline has the money of the last complete week, that of the week before, and the games they are of."""
    monday = TODAY.toordinal() - TODAY.weekday()
    week = range(monday - 7, monday)
    if not world.events:
        assert "The service has no data yet: ask again when its first events are processed." in page.below(_END)
        return
    if week.start < world.covered(10**4).start:
        assert "There is no complete week yet." in page.below(_END)
        return
    games = known["games"]
    before = world.before(week)
    now, then = (
        world.ad_revenue(days, games=games) + world.purchases(days, games=games) if days else 0.0
        for days in (week, before)
    )
    lines = [line for line in page.below(_END).splitlines() if line.startswith("- ")]
    assert is_number(page.key_numbers["Revenue"]["Value"], now)
    earned = next(line for line in lines if " earned " in line)  # behind a number that left its usual range
    found = re.fullmatch(rf"- (.+) earned {_MONEY} in the week of (\d+ \w+)(.*)\.", earned)
    assert found, earned
    who, money, day, rest = found.groups()
    active = {world.titles[event["game_id"]] for days in (week, before or range(0)) for event in world.of(days)}
    chosen = {world.titles[game] for game in games} if games is not None else active
    assert ({"All games"} if games is None and len(active) != 1 else chosen) == {*who.split(", ")}
    assert (is_number(money, now), day) == (True, f"{date.fromordinal(week.start):%-d %B}")
    if before and then >= 0.005:
        share, earlier = re.findall(rf"([+-]?[\d,.]+%) from {_MONEY} in the week before", rest)[0]
        assert is_number(earlier, then)
        assert is_number(share, now / then - 1)
    else:
        assert "%" not in rest


def _check_ad_revenue(page: Page, world: World, known: dict[str, Any]) -> None:
    """Ad revenue is that of the period, its change is from as many days right before, and tables have the same sums."""
    games = known["games"]
    days = world.covered(RANGES[known["over"]])
    before, now = world.before(days), world.ad_revenue(days, games=games)
    numbers, end = page.key_numbers, page.below(_END)
    assert is_number(numbers["Ad revenue"]["Value"], now)
    shown = len(world.of(days, games=games, category="impression"))
    assert is_number(numbers["Ad impressions"]["Value"], shown)
    for heading in ("By day", "By network"):
        assert is_number(page.row(heading, "Total")[0], now)
    if before is None:
        assert "There are no data of the whole period before" in end
        assert "Changes are from" not in end
        return
    then = world.ad_revenue(before, games=games)
    assert page.period.endswith(f"Changes are from {period_text(before)}.")
    total = page.row("Why it changed", "Total")
    assert is_number(total[0], then)
    assert is_number(total[1], now)
    assert is_number(total[2], now - then)
    assert bool(numbers["Ad revenue"].get("Change")) == (then >= 0.005)  # no number has one: no column
    if then >= 0.005:
        assert is_number(numbers["Ad revenue"]["Change"], now / then - 1)
    if then >= 0.005 and now > 0 and abs(now - then) >= 0.005:
        rise, earlier, later = re.findall(rf"Ad revenue (?:rose|fell) by ([\d.,]+%), from {_MONEY} to {_MONEY}", end)[0]
        assert is_number(rise, abs(now / then - 1))
        assert is_number(earlier, then)
        assert is_number(later, now)
    if now > 0:
        money, number = re.findall(rf"Ads earned {_MONEY} in (\d+) days?\b", page.below("By day"))[0]
        assert (is_number(money, now), int(number)) == (True, len(days))


def _check_retention(page: Page, world: World, known: dict[str, Any]) -> None:
    """New players are those of the period, and so is the share that came back on the first of the ages."""
    days, age = world.covered(RANGES[known["over"]]), min(known["ages"])
    games = known["games"]
    numbers, new = page.key_numbers, world.installs(days, games=games)
    assert is_number(numbers["New players"]["Value"], len(new))
    rate = world.retention(days, age, games=games)
    shown = [cells["Value"] for name, cells in numbers.items() if name.startswith(f"D{age} retention")]
    assert len(shown) == (rate is not None)
    assert rate is None or is_number(shown[0], rate)


def _check_health(page: Page, world: World, known: dict[str, Any]) -> None:
    """The number by hand is that of the last days, and the alarms are counted."""
    watched = world.covered(RANGES[known["over"]])
    sizes = {game: sum(world.active[day, game] for day in watched) for game in known["games"] or world.titles}
    largest = [world.active[day, max(sizes, key=sizes.__getitem__)] for day in watched]
    counted = [number for number in largest if number][-7:]  # a day without players has no row
    lines = page.below("One number by hand").splitlines()
    rows = [line.split()[-1] for line in lines if re.match(r" *\d+ \w+ 2026\S* ", line)]
    assert [int(row) for row in rows[: len(counted)]] == counted
    assert is_number(page.key_numbers["Alarms"]["Value"], len(page.names["seen"].alarms))


def _check_outside_data(page: Page, world: World, known: dict[str, Any]) -> None:
    """Spend is what the files say of the days and games, in dollars."""
    assert is_number(page.key_numbers["Ad spend"]["Value"], float(page.names["costs"].spend.sum()))


def _check_experiments(page: Page, world: World, known: dict[str, Any]) -> None:
    """The arms are the new players of each variant."""
    new = world.installs(world.covered(RANGES[known["over"]]), games=known["games"])
    within = (
        {event.get("ab_id") for event in world.events} - {None} if not known["experiment"] else {known["experiment"]}
    )
    arms = {(event["game_id"], event["user_id"]) for event in world.events if event.get("ab_id") in within}
    assert page.names["arms"].players.sum() == sum(player in arms for player in new)


def _check_raw_events(page: Page, world: World, known: dict[str, Any]) -> None:
    """New players and events of the page are those that were sent."""
    days = world.covered(RANGES[known["over"]])
    games = known["games"]
    numbers = page.key_numbers
    assert is_number(numbers["New players"]["Value"], len(world.installs(days, games=games)))
    if known["zone"] == "UTC":
        assert is_number(numbers["Events, days of UTC"]["Value"], len(world.of(days, games=games)))


CHECKS: Final[dict[str, Callable[[Page, World, dict[str, Any]], None]]] = {
    "00_monday": _check_monday,
    "01_ad_revenue": _check_ad_revenue,
    "02_retention": _check_retention,
    "03_health": _check_health,
    "04_outside_data": _check_outside_data,
    "05_experiments": _check_experiments,
    "06_raw_events": _check_raw_events,
}
"""The checks of each notebook that has some of its own."""
