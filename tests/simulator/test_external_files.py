"""External files (ad spend, store ranks, exchange rates) agree with their scenario."""

from __future__ import annotations

import csv
import io
import runpy
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

import gamelens
from gamelens.simulator import load_scenario
from gamelens.simulator.output.external_files import HEADERS, empty_files, outside_files

ENDS_ON = date(2026, 11, 21)
DATA = Path(__file__).parents[2] / "data"


def rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Return the files of `calm`."""
    return outside_files(load_scenario("calm"), ends_on=ENDS_ON)


@pytest.mark.wide
def test_the_same_scenario_and_day_give_the_same_bytes(files: dict[str, str]) -> None:
    """Files are reproducible, and another seed gives another ad spend."""
    assert outside_files(load_scenario("calm"), ends_on=ENDS_ON) == files
    assert outside_files(load_scenario("calm", seed=1), ends_on=ENDS_ON)["ad_spend.csv"] != files["ad_spend.csv"]


def test_files_cover_the_days_of_the_scenario(files: dict[str, str]) -> None:
    """Ad spend begins on the first and ends on the last day of the scenario."""
    days = {row["Day"] for row in rows(files["ad_spend.csv"])}
    assert (min(days), max(days)) == ("2026-09-22", "2026-11-20")


def test_a_campaign_costs_money_on_its_days_and_in_its_countries_only(files: dict[str, str]) -> None:
    """X Ads in `calm` cost money for Ember Realms, in Japan, on days 17 to 20 only."""
    x_ads = [row for row in rows(files["ad_spend.csv"]) if row["Channel"] == "X Ads"]
    assert {(row["Game"], row["Geo"]) for row in x_ads} == {("Ember Realms", "JP")}
    assert {row["Day"] for row in x_ads} == {str(date(2026, 9, 22) + timedelta(days=day)) for day in range(17, 21)}


def test_only_publishers_of_the_scenario_are_paid(files: dict[str, str]) -> None:
    """The channels are the publishers of paid installs and of campaigns."""
    scenario = load_scenario("calm")
    publishers = {name for game in scenario.games if game.paid for name in game.paid.publishers}
    publishers |= {campaign.publisher for campaign in scenario.campaigns}
    assert {row["Channel"] for row in rows(files["ad_spend.csv"])} == publishers


def test_ad_spend_has_the_irregularities_of_the_readme(files: dict[str, str]) -> None:
    """Amounts are in euros, Britain is "UK", and three lines are billed in two parts."""
    spent = rows(files["ad_spend.csv"])
    assert {row["Spend"][0] for row in spent} == {"€"}
    assert "UK" in {row["Geo"] for row in spent}
    assert "GB" not in {row["Geo"] for row in spent}
    keys = Counter((row["Day"], row["Game"], row["Channel"], row["Geo"]) for row in spent)
    assert sorted(keys.values())[-4:] == [1, 2, 2, 2]


def test_files_as_networks_export_them_have_the_costs_of_the_ad_spend(files: dict[str, str], tmp_path: Path) -> None:
    """Each is understood without a word about it."""
    spent = Counter[str]()
    for row in rows(files["ad_spend.csv"]):
        spent[row["Channel"]] += round(100 * float(row["Spend"][1:]))
        if row["Day"] >= "2026-10-24":
            spent[f"{row['Channel']} of 28 days"] += round(100 * float(row["Spend"][1:]))
    tables = {}
    for name in ("google_ads.csv", "meta_ads.csv"):
        (tmp_path / name).write_text(files[name], encoding="utf-8")
        tables[name] = gamelens.read_table(tmp_path / name)
    google, meta = tables["google_ads.csv"], tables["meta_ads.csv"]
    assert (google.vendor, google.period, google.column("Cost").currency) == ("Google Ads", "day", "EUR")
    assert round(100 * google.column("Cost").values.sum()) == spent["Google Ads"]
    assert (meta.vendor, meta.period, meta.column("Amount spent (EUR)").currency) == (
        "Meta Ads Manager", "period", "EUR",
    )  # fmt: skip
    assert round(100 * meta.column("Amount spent (EUR)").values.sum()) == spent["Meta Ads of 28 days"]


def test_an_install_costs_about_what_its_country_costs() -> None:
    """Twice the players cost twice as much, to within the rounding of cents."""
    few, many = (outside_files(load_scenario("calm", players=count), ends_on=ENDS_ON) for count in (20_000, 40_000))
    few_spent, many_spent = (
        sum(float(row["Spend"][1:]) for row in rows(texts["ad_spend.csv"])) for texts in (few, many)
    )
    assert many_spent / few_spent == pytest.approx(2, rel=0.01)
    assert 1000 < few_spent < 10_000


def test_a_game_stands_higher_on_the_days_of_its_campaign(files: dict[str, str]) -> None:
    """Tile Harbor, advertised on days 24 to 26 of `calm`, ranks better on these days."""
    ranks = [int(row["Rank"].strip("+")) for row in rows(files["store_rank.csv"]) if row["App"] == "Tile Harbor"]
    assert np.mean(ranks[24:27]) < np.mean(ranks[:24])


def test_banks_have_no_rates_at_weekends(files: dict[str, str]) -> None:
    """Exchange rates exist from Monday to Friday only, and are plausible."""
    days = [date.fromisoformat(row["date"]) for row in rows(files["exchange_rates.csv"])]
    assert {day.weekday() for day in days} == {0, 1, 2, 3, 4}
    assert all(1.0 < float(row["usd_per_eur"]) < 1.35 for row in rows(files["exchange_rates.csv"]))


def test_files_for_an_unknown_service_have_headers_only() -> None:
    """The empty files hold their header line and no rows."""
    assert {name: tuple(text.strip().split(",")) for name, text in empty_files().items()} == HEADERS


def test_the_files_in_data_are_what_the_script_makes() -> None:
    """`data/outside` holds what `data/make_outside.py` makes for the recorded answers."""
    texts = runpy.run_path(str(DATA / "make_outside.py"))["outside_texts"]()
    assert texts == {path.name: path.read_text(encoding="utf-8") for path in (DATA / "outside").iterdir()}
