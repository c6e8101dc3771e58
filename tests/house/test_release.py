"""Files of a release: license, changelog, and a description that a package index can show."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from datetime import date
from types import ModuleType

import pytest

from house.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^## \[(.+?)\](?: - (\S+))?$", re.MULTILINE)


@pytest.fixture(scope="module")
def hatch_build() -> ModuleType:
    """The hooks of the build."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_license_is_the_declared_one() -> None:
    """With the authors that are declared."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith(f"{PROJECT['license']} License\n")
    assert PROJECT["authors"][0]["name"] in text


def test_the_changelog_begins_with_what_is_not_released_and_has_the_version() -> None:
    """In the order of Keep a Changelog: unreleased changes, then versions, the newest first, each with its day."""
    headings = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    (first, no_day), *versions = headings
    assert (first, no_day) == ("Unreleased", "")
    assert versions[0][0] == PROJECT["version"]
    assert all(date.fromisoformat(day) for _, day in versions if day)
    assert [day for _, day in versions[1:] if not day] == []  # only the newest may still be without one


def test_without_an_address_the_description_has_no_picture_and_no_link_to_a_file(hatch_build: ModuleType) -> None:
    """A package index would show both broken."""
    text = hatch_build.described(README, "")
    assert "*Retention by game: the share" in text
    assert not re.search(r"<picture|<img alt|\]\((?!https?:|#)", text)


def test_with_an_address_pictures_and_links_are_below_it(hatch_build: ModuleType) -> None:
    """They show on a package index then."""
    text = hatch_build.described(README, "https://example.org/raw/v1")
    assert "](https://example.org/raw/v1/data/pictures/retention_light.png)" in text
    assert "](https://example.org/raw/v1/src/gamelens/README.md)" in text
    assert not re.search(r"<picture|\]\((?!https?:|#)", text)
