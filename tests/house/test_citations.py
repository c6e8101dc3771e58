"""Citations of the wire room's README: `Wire 2.7, Filters.` names a section that is there, by number and title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "src" / "gamelens" / "wire" / "README.md"
FOLDERS = ("src", "tests", "notebooks", "data")
SUFFIXES = (".py", ".md", ".toml", ".ipynb")

_PART = re.compile(r"^# (\d+) ", re.MULTILINE)
_SECTION = re.compile(r"^## (\d+\.\d+) (.+)$", re.MULTILINE)
_REFERENCES = re.compile(r"\((\d\.\d+(?:(?:, | to )\d\.\d+)*)\)")
_LINE_END = re.compile(r"\s*\n\s*(?:#:?\s*)?")  # of a docstring or of a comment that goes on
_CITED = re.compile(r"\bWire (\d+\.\d+)(?:, (.{0,80}))?")


def sections() -> dict[str, str]:
    """Title of each section of the README, by number, in the order of the file."""
    return dict(_SECTION.findall(README.read_text()))


def wrong_citations(text: str, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield the citations in *text* whose number or title is not one of *titles*."""
    for cited in _CITED.finditer(_LINE_END.sub(" ", text)):
        number, said = cited[1], cited[2] or ""
        title = titles.get(number)
        if title is None or not re.match(rf"{re.escape(title)}(?!\w)", said):
            yield cited[0]


def cited_files() -> list[Path]:
    """Every file that may cite a section."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [*sorted(found), ROOT / "README.md"]


def test_every_citation_names_a_section_by_number_and_title() -> None:
    """A citation that leads nowhere is worse than none."""
    titles = sections()
    wrong = {
        str(path.relative_to(ROOT)): cited
        for path in cited_files()
        if path != Path(__file__) and (cited := list(wrong_citations(path.read_text(), titles)))
    }
    assert wrong == {}


def test_sections_are_numbered_consecutively() -> None:
    """Parts count from 1, and so do the sections of each."""
    text = README.read_text()
    parts = [int(number) for number in _PART.findall(text)]
    assert parts == list(range(1, len(parts) + 1))
    numbers = [number for number, _ in _SECTION.findall(text)]
    assert numbers == [
        f"{part}.{place}"
        for part in parts
        for place in range(1, 1 + sum(number.startswith(f"{part}.") for number in numbers))
    ]


def test_no_two_sections_have_one_title() -> None:
    """A title alone says which section is meant."""
    titles = list(sections().values())
    assert len(set(titles)) == len(titles)


def test_sections_refer_to_sections_that_exist() -> None:
    """The README cites itself by number, in parentheses."""
    cited = {number for group in _REFERENCES.findall(README.read_text()) for number in re.findall(r"\d\.\d+", group)}
    assert len(cited) > 30
    assert cited <= sections().keys()


@pytest.mark.parametrize(
    "text",
    [
        "Wire 2.7, Filters.",
        "a filter (Wire 2.7, Filters)",
        "Wire 2.7, Filters: null matches no equality.",
        "Wire 1.4, Signature; Wire 2.7, Filters",
        "Wire 2.7,\n    Filters.",
        "x = 1  # one (Wire 2.7,\n# Filters)",
        "Wire 2.8, Intervals\n    and buckets.",
    ],
)
def test_a_right_citation_is_recognised(text: str) -> None:
    """Also one that is wrapped, in a docstring or a comment."""
    assert list(wrong_citations(text, sections())) == []


@pytest.mark.parametrize(
    "text", ["Wire 2.7.", "Wire 2.7, Filter.", "Wire 2.6, Filters.", "Wire 9.1, Filters.", "Wire 2.7, Filterset."]
)
def test_a_wrong_citation_is_found(text: str) -> None:
    """Another number, another title, no title."""
    assert len(list(wrong_citations(text, sections()))) == 1
