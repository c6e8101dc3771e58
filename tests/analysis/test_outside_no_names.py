"""Texts that stand for no name, among countries, networks and platforms: they are no value, and never a code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.ads import canonical_values
from gamelens.analysis.ads.canonical_names import canonical_name, says_nothing
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

NO_COUNTRIES = ["N/A", "n/a", "#N/A", "(not set)", "Unknown", "-", "–", "n. a.", "k. A.", "неизвестно", "<null>"]


@pytest.mark.parametrize("text", NO_COUNTRIES)
def test_no_name_is_never_a_country(text: str) -> None:
    assert says_nothing(text, "country")
    assert canonical_name(text, "country") is None


@pytest.mark.parametrize("text", ["NA", "Namibia", "NAM", "No", "🇩🇪", "Niue", "ND"])
def test_names_of_countries_say_something(text: str) -> None:
    assert not says_nothing(text, "country")


def test_canonical_countries_are_null_where_the_text_says_nothing() -> None:
    frame = tidy_frame("new_users", country_code=["N/A", "NA", "Deutschland"], new_users=[1, 2, 3])
    values = canonical_values(frame["country_code"], "country")
    assert values.isna().tolist() == [True, False, False]
    assert values.dropna().tolist() == ["NA", "DE"]


@pytest.mark.parametrize("text", NO_COUNTRIES)
def test_cost_of_no_country_is_not_the_cost_of_namibia(file: WriteFile, text: str) -> None:
    installs = tidy_frame("new_users", country_code=["NA", "ZA"], new_users=[10, 20])
    path = file(f"Market,Cost (USD)\n{text},70\nZA,30\nNA,5\n")
    joined = gl.join(installs, path, columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].tolist() == [5, 30]
    assert any(f"{text!r} of Market is no name" in warning for warning in joined.report.warnings)
    assert len(joined.report.only_right) == 1


def test_no_name_meets_the_group_without_a_country(file: WriteFile) -> None:
    installs = tidy_frame("new_users", country_code=["NA", None], new_users=[10, 20])
    joined = gl.join(installs, file("Market,Cost (USD)\nn/a,70\nNA,5\n"), columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].tolist() == [5, 70]


def test_name_that_the_frame_has_as_well_is_compared(file: WriteFile) -> None:
    installs = tidy_frame("new_users", country_code=["unknown", "ZA"], new_users=[10, 20])
    joined = gl.join(installs, file("Market,Cost (USD)\nunknown,70\nZA,5\n"), columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].tolist() == [70, 5]


def test_two_letters_among_codes_of_three_are_no_country(file: WriteFile) -> None:
    installs = tidy_frame("new_users", country_code=["NA", "DE", "FR", "JP"], new_users=[10, 20, 30, 40])
    path = file("Market,Cost (USD)\nNA,70\nDEU,30\nFRA,5\nJPN,6\n")
    joined = gl.join(installs, path, columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].isna().tolist() == [True, False, False, False]
    assert any("'NA' of Market is no name" in warning for warning in joined.report.warnings)
    named = gl.join(installs, path, columns=["Cost (USD)"], names={"NA": "NA"})
    assert named.frame["Cost (USD)"].tolist() == [70, 30, 5, 6]


def test_other_two_letters_among_codes_of_three_are_asked_about(file: WriteFile) -> None:
    installs = tidy_frame("new_users", country_code=["IT", "DE", "FR", "JP"], new_users=[10, 20, 30, 40])
    path = file("Market,Cost (USD)\nIT,70\nDEU,30\nFRA,5\nJPN,6\n")
    with pytest.raises(BadQuery, match=r"names=\{'IT': 'IT'\} says what it means"):
        gl.join(installs, path, columns=["Cost (USD)"])
    named = gl.join(installs, path, columns=["Cost (USD)"], names={"IT": "IT"})
    assert named.frame["Cost (USD)"].tolist() == [70, 30, 5, 6]


@pytest.mark.parametrize("field", ["platform", "network", "format"])
def test_no_name_of_other_kinds_meets_the_group_without_one(file: WriteFile, field: str) -> None:
    names = {"platform": "ios", "network": "Unity Ads", "format": "banner"}
    frame = tidy_frame("new_users", **{field: [names[field], None]}, new_users=[10, 20])
    path = file(f"{field.title()},Cost (USD)\n(not set),70\n{names[field]},5\n")
    joined = gl.join(frame, path, on={field: field.title()}, columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].tolist() == [5, 70]
    assert any("'(not set)'" in warning for warning in joined.report.warnings)


def test_cost_of_no_publisher_never_meets_the_players_without_one(file: WriteFile) -> None:
    installs = tidy_frame("new_users", install_publisher=["Meta Ads", None], new_users=[10, 20])
    path = file("Network,Cost (USD)\nunbekannt,70\nMeta Ads,5\n")
    costs = outside_data.cost_per_install(installs, by="install_publisher", spend=path)
    assert costs.dropna(subset=["install_publisher"])["spend"].tolist() == [5]
