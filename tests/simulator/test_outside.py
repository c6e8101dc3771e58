"""Other people's books about a scenario fit the scenario."""

from __future__ import annotations

import csv
import io
import runpy
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from gamelens.simulator import load_scenario
from gamelens.simulator.output.external_files import HEADERS, empty_files, outside_files
from gamelens.simulator.output.holidays import easter, holidays

ENDS_ON = date(2026, 11, 21)
DATA = Path(__file__).parents[2] / "data"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return outside_files(load_scenario("demo"), ends_on=ENDS_ON)


def test_the_same_scenario_and_day_give_the_same_bytes(files) -> None:
    assert outside_files(load_scenario("demo"), ends_on=ENDS_ON) == files
    assert outside_files(load_scenario("demo", seed=1), ends_on=ENDS_ON)["ad_spend.csv"] != files["ad_spend.csv"]


def test_files_cover_the_days_of_the_scenario(files) -> None:
    days = {row["Day"] for row in rows(files["ad_spend.csv"])}
    assert (min(days), max(days)) == ("2026-09-22", "2026-11-20")


def test_a_campaign_costs_money_on_its_days_and_in_its_countries_only(files) -> None:
    """demo: X Ads bring Ember Realms players in Japan on days 17 to 20, and nobody else anywhere."""
    spent = [row for row in rows(files["ad_spend.csv"]) if row["Channel"] == "X Ads"]
    assert {(row["Game"], row["Geo"]) for row in spent} == {("Ember Realms", "JP")}
    assert {row["Day"] for row in spent} == {str(date(2026, 9, 22) + timedelta(days=day)) for day in range(17, 21)}


def test_only_publishers_of_the_scenario_are_paid(files) -> None:
    scenario = load_scenario("demo")
    known = {name for game in scenario.games for name in game.paid.publishers} | {
        it.publisher for it in scenario.campaigns
    }
    assert {row["Channel"] for row in rows(files["ad_spend.csv"])} == known


def test_spend_has_the_warts_its_readme_promises(files) -> None:
    spent = rows(files["ad_spend.csv"])
    assert {row["Spend"][0] for row in spent} == {"€"}
    assert "UK" in {row["Geo"] for row in spent}
    assert "GB" not in {row["Geo"] for row in spent}
    keys = Counter((row["Day"], row["Game"], row["Channel"], row["Geo"]) for row in spent)
    assert sorted(keys.values())[-4:] == [1, 2, 2, 2]


def test_an_install_costs_about_what_its_country_costs() -> None:
    """Twice the players cost twice as much, to the cents that rounding takes."""
    few, many = (outside_files(load_scenario("demo", players=count), ends_on=ENDS_ON) for count in (20_000, 40_000))
    few_spent, many_spent = (sum(float(row["Spend"][1:]) for row in rows(made["ad_spend.csv"])) for made in (few, many))
    assert many_spent / few_spent == pytest.approx(2, rel=0.01)
    assert 1000 < few_spent < 10_000


def test_a_game_stands_higher_on_the_days_of_its_campaign(files) -> None:
    """demo: Tile Harbor is advertised in the US on days 24 to 26."""
    ranks = [int(row["Rank"].strip("+")) for row in rows(files["store_rank.csv"]) if row["App"] == "Tile Harbor"]
    assert np.mean(ranks[24:27]) < np.mean(ranks[:24])


def test_banks_have_no_rates_at_weekends(files) -> None:
    days = [date.fromisoformat(row["date"]) for row in rows(files["exchange_rates.csv"])]
    assert {day.weekday() for day in days} == {0, 1, 2, 3, 4}
    assert all(1.0 < float(row["usd_per_eur"]) < 1.35 for row in rows(files["exchange_rates.csv"]))


def test_a_service_nobody_knows_has_headers_alone() -> None:
    assert {name: tuple(text.strip().split(",")) for name, text in empty_files().items()} == HEADERS


def test_the_files_in_data_are_what_the_script_makes() -> None:
    """data/README.md: `python data/make_outside.py` makes them for the days of the recorded answers."""
    made = runpy.run_path(str(DATA / "make_outside.py"))["made"]()
    assert made == {path.name: path.read_text(encoding="utf-8") for path in (DATA / "outside").iterdir()}


@pytest.mark.parametrize(
    ("year", "sunday"),
    [(2024, date(2024, 3, 31)), (2025, date(2025, 4, 20)), (2026, date(2026, 4, 5)), (2038, date(2038, 4, 25))],
)
def test_easter_is_where_the_almanac_has_it(year, sunday) -> None:
    assert easter(year) == sunday


@pytest.mark.parametrize(
    ("country", "day", "name"),
    [
        ("US", date(2026, 11, 26), "Thanksgiving"),
        ("US", date(2026, 5, 25), "Memorial Day"),
        ("US", date(2026, 10, 12), "Columbus Day"),
        ("GB", date(2026, 8, 31), "Summer Bank Holiday"),
        ("JP", date(2026, 9, 21), "Respect for the Aged Day"),
        ("DE", date(2026, 5, 25), "Whit Monday"),
        ("BR", date(2026, 2, 17), "Carnival"),
        ("IN", date(2026, 4, 3), "Good Friday"),
    ],
)
def test_holidays_fall_where_the_calendar_has_them(country, day, name) -> None:
    assert [each.name for each in holidays(country, day, day)] == [name]


def test_a_country_nobody_knows_has_no_holidays() -> None:
    assert holidays("NA", date(2026, 1, 1), date(2026, 12, 31)) == []


def test_holidays_run_over_the_end_of_a_year() -> None:
    found = holidays("GB", date(2026, 12, 26), date(2027, 1, 1))
    assert [each.name for each in found] == ["Boxing Day", "New Year's Day"]
