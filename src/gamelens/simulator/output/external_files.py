"""Outside files that fit a scenario: ad invoices, holidays, store ranks, exchange rates.

Analysts get such tables from ad platforms, calendars, app stores and banks, in formats of their own. These are made
from the scenario of the players, so that they agree with it: money was spent on the days, in the countries and with the
publishers the players were bought from, and a game ranks high in the store while many install it. The same scenario
with the same last day gives the same bytes.

    ad_spend.csv        Day, Game, Channel, Geo, Spend   in euros, Britain is "UK", a few lines are billed in two parts
    holidays.csv        date, country, holiday           by rules of dates, and from the scenario
    store_rank.csv      Date, App, Country, Rank         the store of one country; beyond the chart it says "200+"
    exchange_rates.csv  date, usd_per_eur, usd_per_gbp   no rates on Saturdays and Sundays, as banks have it
    google_ads.csv      the part of Google Ads as its own export: lines above, a column of currencies, a total
    meta_ads.csv        the part of Meta Ads as its own export: one row for the last four weeks

Our choice, as no scenario says it: the cost of an install (`_COST`, a plausible guess by tier of the country and by
publisher), the effect of installs on a rank, and the daily moves of exchange rates around the sandbox's own table.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Final

import numpy as np

from gamelens.simulator.output.play import first_day
from gamelens.simulator.population.arrays import Floats
from gamelens.simulator.population.installs import plan_installs
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.wire.currencies import USD_PER_UNIT

HEADERS: Final = {
    "ad_spend.csv": ("Day", "Game", "Channel", "Geo", "Spend"),
    "holidays.csv": ("date", "country", "holiday"),
    "store_rank.csv": ("Date", "App", "Country", "Rank"),
    "exchange_rates.csv": ("date", "usd_per_eur", "usd_per_gbp"),
    "google_ads.csv": ("Day", "Campaign", "Currency code", "Cost"),
    "meta_ads.csv": ("Reporting starts", "Reporting ends", "Campaign name", "Country", "Amount spent (EUR)"),
}
"""The files and their columns."""

FileRow = tuple[str, ...]

_COST: Final = {1: 0.90, 2: 0.40, 3: 0.10}
"""US dollars for one install, by the tier of the country.

With them the publishers of the demo return a fifth to two thirds of their cost within two weeks. Its players bring less
than published ones do, because their sessions are thinned, and so do installs cost less.
"""
_MAX_PRICE_FACTOR: Final = 1.6  # publishers cost between 1 / 1.6 and 1.6 times the usual price
_BILLING_NOISE: Final = 0.08
_MIN_SPEND_EUR: Final = 0.005
_SPLIT_INVOICES: Final = 3
_STORE: Final = "US"
_USUAL_RANK: Final = 60
_RANK_POWER: Final = 1.3
_RANK_NOISE: Final = 0.12
_CHART: Final = 200
_DAILY_STEP: Final = 0.004
_SATURDAY: Final = 5
_COUNTRY_NAMES: Final = {"GB": "UK"}
_GOOGLE, _META, _META_DAYS = "Google Ads", "Meta Ads", 28

_FIXED: Final = {
    "US": "1/1 New Year's Day, 6/19 Juneteenth, 7/4 Independence Day, 11/11 Veterans Day, 12/25 Christmas Day",
    "GB": "1/1 New Year's Day, 12/25 Christmas Day, 12/26 Boxing Day",
    "JP": (
        "1/1 New Year's Day, 2/11 National Foundation Day, 2/23 Emperor's Birthday, 4/29 Showa Day, "
        "5/3 Constitution Day, 5/4 Greenery Day, 5/5 Children's Day, 8/11 Mountain Day, 11/3 Culture Day, "
        "11/23 Labour Thanksgiving Day"
    ),
    "DE": (
        "1/1 New Year's Day, 5/1 Labour Day, 10/3 German Unity Day, 12/25 Christmas Day, 12/26 Second Day of Christmas"
    ),
    "FR": (
        "1/1 New Year's Day, 5/1 Labour Day, 5/8 Victory Day, 7/14 Bastille Day, 8/15 Assumption, "
        "11/1 All Saints' Day, 11/11 Armistice Day, 12/25 Christmas Day"
    ),
    "BR": (
        "1/1 New Year's Day, 4/21 Tiradentes Day, 5/1 Labour Day, 9/7 Independence Day, "
        "10/12 Our Lady of Aparecida, 11/2 All Souls' Day, 11/15 Republic Day, 11/20 Black Consciousness Day, "
        "12/25 Christmas Day"
    ),
    "IN": "1/26 Republic Day, 8/15 Independence Day, 10/2 Gandhi Jayanti, 12/25 Christmas Day",
}
"""Holidays on a fixed date: month and day."""
_MONDAYS: Final = {
    "US": "1/3 Martin Luther King Day, 2/3 Presidents' Day, 5/-1 Memorial Day, 9/1 Labor Day, 10/2 Columbus Day",
    "GB": "5/1 Early May Bank Holiday, 5/-1 Spring Bank Holiday, 8/-1 Summer Bank Holiday",
    "JP": "1/2 Coming of Age Day, 7/3 Marine Day, 9/3 Respect for the Aged Day, 10/2 Sports Day",
}
"""Holidays on a Monday: month and number of the Monday in it, -1 for the last."""
_EASTER: Final = {
    "GB": "-2 Good Friday, 1 Easter Monday",
    "DE": "-2 Good Friday, 1 Easter Monday, 39 Ascension Day, 50 Whit Monday",
    "FR": "1 Easter Monday, 39 Ascension Day, 50 Whit Monday",
    "BR": "-47 Carnival, -2 Good Friday",
    "IN": "-2 Good Friday",
}
"""Holidays relative to Easter: days after Easter Sunday."""


def outside_files(scenario: Scenario, *, ends_on: date | None = None) -> dict[str, str]:
    """Return the text of each file by its name.

    The last day is the one before *ends_on* (today in UTC by default).
    """
    days = [first_day(scenario, ends_on) + timedelta(days=day) for day in range(scenario.days)]
    rates = _rates(scenario, days)
    spend = _spend(scenario, days, rates[0])
    google = _of_google(spend)
    tables: dict[str, Iterable[FileRow]] = {
        "ad_spend.csv": spend,
        "google_ads.csv": google,
        "meta_ads.csv": _of_meta(spend, days),
        "holidays.csv": sorted(
            [
                *(row for country in scenario.countries for row in holidays(country.code, days[0], days[-1])),
                *(
                    (days[holiday.day].isoformat(), code, holiday.name)
                    for holiday in scenario.holidays
                    if holiday.day < scenario.days
                    for code in holiday.countries
                ),
            ]
        ),
        "store_rank.csv": _ranks(scenario, days),
        "exchange_rates.csv": [
            (day.isoformat(), f"{euro:.4f}", f"{pound:.4f}")
            for day, euro, pound in zip(days, *rates, strict=True)
            if day.weekday() < _SATURDAY
        ],
    }
    texts = {name: _csv(HEADERS[name], rows) for name, rows in tables.items()}
    if google:
        period = " - ".join(f"{day:%B} {day.day}, {day.year}" for day in (days[0], days[-1]))
        texts["google_ads.csv"] = f'Campaign report\n"{period}"\n{texts["google_ads.csv"]}'
    return texts


def empty_files() -> dict[str, str]:
    """Return the files for a service without a scenario: only headers."""
    return {name: _csv(header, ()) for name, header in HEADERS.items()}


def _spend(scenario: Scenario, days: Sequence[date], usd_per_eur: Floats) -> list[FileRow]:
    """Return the cost of the bought players by day, game, publisher and country.

    The few largest amounts are split into an invoice and a correction.
    """
    rng = np.random.default_rng([scenario.seed, 1])
    rows: list[tuple[FileRow, float]] = []
    for game, count in zip(scenario.games, scenario.players_by_game(), strict=True):
        install_plan = plan_installs(game, scenario=scenario, first_weekday=days[0].weekday())
        costs = np.array([_COST[scenario.country(code).tier] for code in game.countries])
        price_factor = _MAX_PRICE_FACTOR ** rng.uniform(-1, 1, len(install_plan.publishers))
        for place, publisher in enumerate(install_plan.publishers):
            sources = install_plan.publisher == place
            paid_for = install_plan.installs[sources] * install_plan.cost[sources, None]
            billed = count * np.einsum("sd,sc->dc", paid_for, install_plan.country[sources])
            noise = rng.lognormal(0, _BILLING_NOISE, billed.shape)
            euros = billed * noise * costs * price_factor[place] / usd_per_eur[:, None]
            rows += [
                (
                    (days[day].isoformat(), game.title, publisher, _COUNTRY_NAMES.get(code, code)),
                    float(euros[day, column]),
                )
                for day in range(len(days))
                for column, code in enumerate(game.countries)
                if euros[day, column] >= _MIN_SPEND_EUR
            ]
    split_rows = sorted(range(len(rows)), key=lambda place: -rows[place][1])[:_SPLIT_INVOICES]
    lines: list[FileRow] = []
    for row_place, (key, amount) in enumerate(rows):
        cents = round(100 * amount)
        parts = (cents * 9 // 10, cents - cents * 9 // 10) if row_place in split_rows else (cents,)
        lines += [(*key, f"€{part // 100}.{part % 100:02}") for part in parts]
    return sorted(lines)


def _of_google(spend: Sequence[FileRow]) -> list[FileRow]:
    """Return the costs of Google Ads by day and game, a campaign each, with their total."""
    cents = _sums((row for row in spend if row[2] == _GOOGLE), lambda row: row[:2])
    rows = [(*key, "EUR", _amount(total)) for key, total in sorted(cents.items())]
    return [*rows, ("Total: Campaigns", " --", "EUR", _amount(sum(cents.values())))] if rows else []


def _of_meta(spend: Sequence[FileRow], days: Sequence[date]) -> list[FileRow]:
    """Return the costs of Meta Ads by game and country, one row for the last four weeks."""
    first, last = days[-_META_DAYS:][0].isoformat(), days[-1].isoformat()
    lines = (row for row in spend if row[2] == _META and row[0] >= first)
    return [(first, last, *key, _amount(total)) for key, total in sorted(_sums(lines, lambda row: row[1::2]).items())]


def _sums(spend: Iterable[FileRow], key: Callable[[FileRow], FileRow]) -> Counter[FileRow]:
    """Return the cents of lines of ad spend by their *key*, which is the line without its amount."""
    cents = Counter[FileRow]()
    for *names, amount in spend:
        cents[key(tuple(names))] += round(100 * float(amount[1:]))
    return cents


def _amount(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _ranks(scenario: Scenario, days: Sequence[date]) -> Iterator[FileRow]:
    """Yield the store rank of each game and day. Many installs give a small number."""
    rng = np.random.default_rng([scenario.seed, 2])
    for game in scenario.games:
        if _STORE not in game.countries:
            continue
        install_plan = plan_installs(game, scenario=scenario, first_weekday=days[0].weekday())
        installs = install_plan.country[:, [*game.countries].index(_STORE)] @ install_plan.installs
        usual = float(np.median(installs[installs > 0])) if (installs > 0).any() else 1.0
        noise = rng.lognormal(0, _RANK_NOISE, len(days))
        place = _USUAL_RANK * (np.maximum(installs, usual / 100) / usual) ** -_RANK_POWER * noise
        for day, rank in zip(days, place, strict=True):
            shown = str(max(1, round(rank))) if rank <= _CHART else f"{_CHART}+"
            yield day.isoformat(), game.title, _STORE, shown


def _rates(scenario: Scenario, days: Sequence[date]) -> tuple[Floats, Floats]:
    """Return US dollars for a euro and for a pound on each day. Weekends repeat Friday."""
    rng = np.random.default_rng([scenario.seed, 3])
    is_open = np.array([day.weekday() < _SATURDAY for day in days])
    steps = rng.normal(0, _DAILY_STEP, (2, len(days))) * is_open
    euro, pound = (
        float(USD_PER_UNIT[code]) * np.exp(np.cumsum(row)) for row, code in zip(steps, ("EUR", "GBP"), strict=True)
    )
    return np.round(euro, 4), np.round(pound, 4)


def holidays(country: str, first: date, last: date) -> list[FileRow]:
    """Return the public holidays of *country* from *first* to *last*, both included: day, country and name.

    They are those whose date follows from a rule in the whole country. Left out are days that a moon, an equinox or a
    government sets anew each year (Diwali, Eid, the Japanese equinoxes, substitute days). A country without rules here
    has none.
    """
    found: list[tuple[date, str]] = []
    for year in range(first.year, last.year + 1):
        found += [(date(year, *month_and_day), name) for month_and_day, name in _rules(_FIXED, country)]
        found += [(_weekday_of(year, month, "Mon", nth), name) for (month, nth), name in _rules(_MONDAYS, country)]
        found += [(easter(year) + timedelta(days=after), name) for (after,), name in _rules(_EASTER, country)]
        if country == "US":
            found.append((_weekday_of(year, 11, "Thu", 4), "Thanksgiving"))
    return [(day.isoformat(), country, name) for day, name in sorted(found) if first <= day <= last]


def _rules(table: Mapping[str, str], country: str) -> Iterator[tuple[list[int], str]]:
    for holiday in filter(None, table.get(country, "").split(", ")):
        numbers, name = holiday.split(" ", 1)
        yield [int(number) for number in numbers.split("/")], name


def easter(year: int) -> date:
    """Return Easter Sunday in the Gregorian calendar (Meeus, Jones and Butcher)."""
    century, of_century = divmod(year, 100)
    golden = year % 19
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (of_century // 4) - epact - of_century % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _weekday_of(year: int, month: int, weekday: str, nth: int) -> date:
    """Return the *nth* *weekday* of the month, from 1, or the last for -1."""
    start = np.datetime64(f"{year}-{month:02}") + np.timedelta64(1 if nth < 0 else 0, "M")
    nth_weekday = np.busday_offset(start, nth if nth < 0 else nth - 1, roll="forward", weekmask=weekday)
    return date.fromisoformat(str(nth_weekday))


def _csv(header: FileRow, rows: Iterable[FileRow]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
