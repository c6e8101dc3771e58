"""The pages of the documentation: complete, in the navigation, and without a number that was typed."""

from __future__ import annotations

import gc
import re
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click
import pandas as pd
import pytest

import gamelens
from docs import build
from docs.first_screens import FOLDER, KEPT, gallery, notebooks, record_first_screens, write_first_screens
from docs.method_tables import mathml
from docs.name_uses import examples_in
from docs.outside_formats import formats_page
from docs.page_runner import PageError, PageRunner
from docs.page_text import run_page
from docs.public_names import GROUPS, docstring_examples, headings, public_names
from docs.reference import commands_page, dimensions_page, metrics_page
from gamelens import errors
from gamelens.analysis.outside_data.roles import vendors
from gamelens.catalog import ALIASES, METRICS
from gamelens.cli import cli
from gamelens.wire.dimensions import DIMENSIONS
from house.source import ROOT, modules
from support.notebook_files import markdown_cell, notebook_of, write_notebook

PAGES = sorted((ROOT / "docs" / "pages").rglob("*.md"))
CITATION = r"\[[^\]]*\]\(https://(?:doi|www\.jstor)\.org/[^)]*\)"
CODE = re.compile(CITATION + r"|^```.*?^```|`[^`\n]+`|\{\{ .+? \}\}|\]\([^)]*\)|\{ #.+? \}", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?!\w)")
RULES = frozenset(
    {
        "Python 3.11",  # pyproject.toml
        "95%",  # of intervals
        "95 of 100",
        "exits with 1",
        "answering 429",
        "UTF-8",
        "UTF-16",
        "512 levels",  # json_lines.MOST_LEVELS
        "before 2000",  # event_time
    }
)
"""Numbers that pages may state: they are rules, and no result of a run."""


def prose(text: str) -> str:
    """Return the text of a page without code, computed values, addresses and the rules it may state."""
    shown = CODE.sub("", text)
    for rule in RULES:
        shown = shown.replace(rule, "")
    return shown


@pytest.mark.parametrize("path", PAGES, ids=lambda it: it.stem)
def test_no_number_is_typed(path: Path) -> None:
    """Numbers in the text are computed by the code above them, so that no run contradicts them."""
    assert NUMBER.findall(prose(path.read_text(encoding="utf-8"))) == []


def test_a_typed_number_is_found() -> None:
    """A rule that finds nothing would pass every page."""
    assert NUMBER.findall(prose("Of {{ n }} players 33.3 % came back, `top=5` of 1,204.")) == ["33.3", "1,204."]


@pytest.mark.parametrize("path", PAGES, ids=lambda it: it.stem)
def test_every_block_of_python_is_one_that_is_run(path: Path) -> None:
    """With no other word behind the language, which would leave it out."""
    fences = re.findall(r"^```(\w+)(?: (.*))?$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {how for language, how in fences if language == "python"} <= {"", "raises", "silent"}
    languages = {"python", "console", "text", "toml", "yaml", "math", "figures", "constants", "engines", "screens"}
    assert {language for language, _ in fences} <= languages


def test_the_sample_files_end_on_the_last_day_of_the_answers() -> None:
    """Costs of other days would find no partner, and the page on return on ad spend would show no rows."""
    days = pd.read_csv(build.OUTSIDE / "ad_spend.csv").Day
    with gamelens.Client(replay=build.RECORDED) as lens:
        assert days.max() == str(lens.available().end.date() - timedelta(days=1))


def listed() -> list[str]:
    """Return the pages of the navigation."""
    project = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))["project"]
    return [name for section in project["nav"] for entry in section.values() for name in build.names_in(entry)]


def test_every_page_is_in_the_navigation_once() -> None:
    """Hand-written pages, notebooks, READMEs and the generated reference."""
    made = {path.relative_to(ROOT / "docs" / "pages").as_posix() for path in PAGES}
    made |= {f"tutorial/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    made |= {*build.READMES.values(), *(f"reference/{group}.md" for group in GROUPS)}
    made |= {f"reference/{name}.md" for name in ("metrics", "dimensions", "commands", "outside-formats")}
    assert sorted(listed()) == sorted(made)


def test_there_are_fifteen_tasks() -> None:
    """Each how-to page is one."""
    assert sum(name.startswith("how-to/") for name in listed()) >= 15


def test_every_readme_has_a_page() -> None:
    """A room that is added is documented."""
    readmes = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("README.md")}
    assert readmes <= build.READMES.keys()


def test_every_metric_dimension_and_error_is_in_the_reference() -> None:
    """By its name, as a heading or in the table."""
    metrics, dimensions = metrics_page(), dimensions_page()
    assert [name for name in (*METRICS, *ALIASES) if f"\n### {name} " not in metrics] == []
    assert [name for name in DIMENSIONS if f"\n| `{name}` |" not in dimensions] == []
    page = (ROOT / "docs" / "pages" / "reference" / "errors.md").read_text(encoding="utf-8")
    named = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert [name for name in named if not re.search(rf"^##+ {name} ", page, re.MULTILINE)] == []


@pytest.mark.wide
def test_every_format_of_an_outside_file_has_an_entry() -> None:
    """With the headers that it is recognised by, and each column that the table of formats says something of."""
    page = formats_page()
    for vendor in vendors():
        entry = page.partition(f"\n## {vendor.name} {{")[2].partition("\n## ")[0]
        headers = [name for names in (*vendor.table["needs"], *vendor.table["columns"]) for name in names.split("|")]
        named = {text.strip("`") for text in re.findall(r"`[^`]+`", entry)}
        alike = {names for names in vendor.table["columns"] if named & {*names.split("|")}}
        assert alike == {*vendor.table["columns"]}, vendor.name
        assert {name for names in vendor.table["needs"] for name in names.split("|")} <= named, vendor.name
        assert headers
        assert entry.count("| --- |") >= 1


def commands(group: click.Group, path: str) -> Iterator[str]:
    """Yield every command below *group*, as it is typed."""
    for name, command in group.commands.items():
        yield from commands(command, f"{path} {name}") if isinstance(command, click.Group) else [f"{path} {name}"]


def test_every_command_is_in_the_reference() -> None:
    """With a heading of its own."""
    page = commands_page()
    assert [name for name in commands(cli, "gamelens") if f"\n## {name}\n" not in page] == []


def test_every_public_name_is_in_the_reference() -> None:
    """Names of gamelens and of what it lists; commands and errors have pages of their own."""
    shown = {name for group in GROUPS for name, _ in public_names(group)}
    packages = [it.name for it in modules() if it.is_package]
    public = {
        f"{package}.{name}"
        for package in packages
        if not package.startswith("gamelens.cli")
        for name in getattr(__import__(package, fromlist=["__all__"]), "__all__", ())
    }
    own_pages = {f"gamelens.{name}" for name in errors.__all__}
    rooms = {it.name for it in modules()}
    assert public - shown - own_pages - rooms == set()
    assert {f"gamelens.{name}" for name in gamelens.__all__} <= shown | own_pages


def test_every_public_name_has_an_example() -> None:
    """In its docstring, or in a notebook or page, whose code is run when the site is built."""
    examples = {name for group in GROUPS for name, _ in docstring_examples(group)}
    examples |= {*examples_in((name, name, text) for name, text, _ in build.sources())}
    assert [name for group in GROUPS for name in headings(group) if name not in examples] == []


def examples(code: str) -> dict[str, str]:
    """Return the example of each name in a page with this *code*."""
    found = examples_in([("page.md", "Page", f"```python\n{code}\n```\n")])
    return {name.removeprefix("gamelens."): use.code for name, use in found.items()}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import gamelens as gl\nlens = gl.connect()\nlens.plan('revenue')", "Client.plan"),
        ("import gamelens as gl\nlens = gl.connect()\nlens.plan('revenue')", "Plan"),
        ("import gamelens as gl\nasync with gl.AsyncClient() as lens:\n    await lens.games()", "AsyncClient.games"),
        ("import gamelens as gl\ndays = gl.Interval.parse('P1D/2026-11-01').buckets('day')", "Interval.buckets"),
        ("def show(frame):\n    return frame.lens.receipt.within(None)", "Receipt.within"),
        ("import gamelens as gl\ndef end(player: gl.PlayerSession):\n    player.flush()", "PlayerSession.flush"),
        ("from gamelens import simulator as s\n[event.at(0) for event in s.play_day()]", "simulator.LiveEvent.at"),
        ("from gamelens.analysis import ads\nads.SPREAD", "analysis.ads.SPREAD"),
    ],
)
def test_a_name_is_found_behind_variables(code: str, name: str) -> None:
    """What a variable is follows from the signatures of gamelens."""
    assert name in examples(code)


def test_a_variable_that_is_bound_anew_is_something_else() -> None:
    """An example would be of a name that the line does not use."""
    code = "import gamelens as gl\nlens = gl.connect()\nlens = other()\nlens.games()"
    assert "Client.games" not in examples(code)


def test_the_example_is_the_shortest_line_that_names_it() -> None:
    """Within blocks too; a value that a call returns is second to the name itself."""
    block = "import gamelens as gl\nwith gl.Client() as lens:\n    there = lens.available()\n"
    found = examples(f"{block}gl.Interval.parse('2026-11-01/P7D')")
    assert found["Client.available"] == "there = lens.available()"
    assert found["Interval"] == "gl.Interval.parse('2026-11-01/P7D')"


@pytest.fixture(scope="module")
def runner() -> Iterator[PageRunner]:
    """A shell for the pages of this module.

    It collects garbage before each page, and need not look through what this process has anyway.
    """
    gc.freeze()
    runner = PageRunner()
    yield runner
    runner.close()
    gc.unfreeze()


def run(text: str, runner: PageRunner, tmp_path: Path) -> str:
    """Return the twin of a page with *text*."""
    with runner.page(tmp_path):
        return run_page("page.md", text, runner, lambda figure: ("", "")).twin


def test_a_page_shows_what_its_code_shows(runner: PageRunner, tmp_path: Path) -> None:
    """Printed lines, the value of the last line, and values in the text."""
    text = "# Title\n\n```python\nn = 6\nprint('six')\nn * 7\n```\n\nThat is {{ n / 4:.1f }}.\n"
    shown = run(text, runner, tmp_path)
    assert re.findall(r"```text\n(.*)\n```", shown) == ["six", "42"]
    assert shown.endswith("\n\nThat is 1.5.\n")


def test_the_page_on_the_log_shows_every_request(runner: PageRunner, tmp_path: Path) -> None:
    """Metric, days, status, duration and attempt, and the wait that a 429 asks for."""
    text = (ROOT / "docs" / "pages" / "how-to" / "log.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", run(text, runner, tmp_path), re.MULTILINE | re.DOTALL)
    lines = re.sub(r"\d+ ms", "ms", re.sub(r"\d{4}-\d\d-\d\d", "DAY", shown)).splitlines()
    refused = "revenue" if "DEBUG revenue DAY/P7D: 429 in ms, attempt 1" in lines else "new_users"
    answered = "new_users" if refused == "revenue" else "revenue"
    assert sorted(lines) == sorted(
        [
            "DEBUG interval: 200 in ms, attempt 1",
            f"DEBUG {answered} DAY/P7D: 200 in ms, attempt 1",
            f"DEBUG {refused} DAY/P7D: 429 in ms, attempt 1",
            f"INFO {refused} DAY/P7D: 429, attempt 2 in 1.0 s",
            f"DEBUG {refused} DAY/P7D: 200 in ms, attempt 2",
        ]
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```python\n1 / 0\n```", "ends in ZeroDivisionError"),
        ("```python raises\n1\n```", "raises no error"),
        ("```python raises\n1 / 0\n```", "ends in ZeroDivisionError"),
        ("```python\nimport sys\nprint('x', file=sys.stderr)\n```", "writes to standard error"),
        ("{{ nothing }}", "in the text ends in NameError"),
    ],
)
def test_a_block_that_fails_stops_the_build(text: str, why: str, runner: PageRunner, tmp_path: Path) -> None:
    """A block that should fail and does not stops it as well."""
    with pytest.raises(PageError, match=why):
        run(f"{text}\n", runner, tmp_path)


def test_pages_share_no_names(runner: PageRunner, tmp_path: Path) -> None:
    """A page cannot use a variable of another page, because a reader starts with an empty session."""
    run("```python\nleft = 1\n```\n", runner, tmp_path)
    with pytest.raises(PageError, match="NameError"):
        run("{{ left }}\n", runner, tmp_path)


METHODS = [path for path in PAGES if path.stem.startswith("method-")]
PAPER = re.compile(r"\[([^\]]*)\]\((https://(?:doi\.org/(?P<doi>[^)]*)|www\.jstor\.org/stable/\d+))\)")
DOI = re.compile(r"10\.\d{4,9}/[\w./:;%-]+[\w%]")


@pytest.mark.parametrize("path", METHODS, ids=lambda it: it.stem)
def test_each_paper_is_among_the_references(path: Path) -> None:
    """A paper that a page cites stands below it with authors and year; addresses of DOIs are well-formed."""
    body, _, references = path.read_text(encoding="utf-8").partition("## References")
    listed = {found[2]: found[1] for found in PAPER.finditer(references)}
    assert {found[2] for found in PAPER.finditer(body)} <= listed.keys()
    assert [name for name in listed.values() if not re.fullmatch(r"[A-Z][\w, ]+ (19|20)\d\d", name)] == []
    dois = [found["doi"] for found in PAPER.finditer(body + references) if found["doi"]]
    assert [doi for doi in dois if not DOI.fullmatch(doi)] == []


def test_a_paper_has_one_name() -> None:
    """References of all pages name the authors and the year of a paper alike, and no two papers have one name."""
    names: dict[str, set[str]] = {}
    for path in METHODS:
        for found in PAPER.finditer(path.read_text(encoding="utf-8").partition("## References")[2]):
            names.setdefault(found[2], set()).add(found[1])
    assert {address: found for address, found in names.items() if len(found) > 1} == {}
    assert len({name for found in names.values() for name in found}) == len(names)


@pytest.mark.parametrize("path", METHODS, ids=lambda it: it.stem)
def test_formulas_have_no_command_left(path: Path) -> None:
    """A command of LaTeX that the converter does not know would stand in the text of the page."""
    text = path.read_text(encoding="utf-8")
    formulas = re.findall(r"```math\n(.*?)```", text, re.DOTALL) + re.findall(r"\$`([^`]+)`\$", text)
    shown = [re.sub(r"<[^>]*>", "", mathml(formula)) for formula in formulas]
    assert [formula for formula in shown if "\\" in formula] == []


def test_the_gallery_has_each_notebook_with_its_command() -> None:
    """Its picture by day and by night leads to its page."""
    shown = gallery("")
    for path in notebooks():
        assert f"$ gamelens report {path.stem}\n" in shown
        for scheme in ("light", "dark"):
            assert f"{FOLDER}/{path.stem}-{scheme}.png#only-{scheme})" in shown
        assert f"](tutorial/{path.stem}.md)" in shown
    assert shown.count("<div markdown>") == shown.count("</div>") - 1 == len([*notebooks()])


@pytest.mark.wide
@pytest.mark.slow
def test_first_screens_are_pictures_of_reports(tmp_path: Path) -> None:
    """Those of the light and of the dark page, 1,040 pixels wide, with what is on the first screen alone."""
    document = notebook_of("from IPython.display import Markdown\nMarkdown('seven')")
    document.cells = [markdown_cell("# Made"), markdown_cell("## To know"), *document.cells, markdown_cell("## Later")]
    document.cells[1].metadata["tags"] = ["conclusions"]
    notebook = write_notebook(document, tmp_path / "made.ipynb")
    record_first_screens(tmp_path, tmp_path / "kept", [notebook])
    kept = (tmp_path / "kept" / "made.html").read_text()
    assert ("seven" in kept, "Later" in kept) == (True, False)
    write_first_screens(tmp_path, tmp_path / "kept")
    light, dark = ((tmp_path / FOLDER / f"made-{scheme}.png").read_bytes() for scheme in ("light", "dark"))
    assert int.from_bytes(light[16:20]) == 1040
    assert light != dark


def test_each_notebook_has_a_first_screen_of_the_story() -> None:
    """As `python -m docs.build --record` writes them; only the differing answers of 07 are of a smaller population."""
    assert sorted(path.stem for path in KEPT.glob("*.html")) == [path.stem for path in notebooks()]
    for path in KEPT.glob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert page.count('<section class="answer">') == 1
        assert "<script" not in page
        assert ("scenario small" in page) == (path.stem == "07_why_numbers_differ")
