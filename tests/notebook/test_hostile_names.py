"""Hostile names pass through reprs, figures, sentences, tables and exports as plain text.

Games, studios, ad networks, ad units and builds of one organisation have such names. They are queried through the real
service and checked wherever a name is shown or written: nothing runs, loads, breaks a line or turns text around.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import markdown_it
import openpyxl
import pandas as pd
import plotly.io
import pytest
from click.testing import CliRunner
from pandas import DataFrame

import gamelens as gl
from gamelens import dim
from gamelens._text import markdown_table
from gamelens.analysis import ads, health, retention
from gamelens.analysis.tidy_frames.frame_columns import series_names
from gamelens.cli import cli
from gamelens.client.sync_client import Client
from gamelens.investigations.health_check import HealthReport, check_health
from gamelens.notebook import charts, conclusions
from gamelens.notebook.accessor import Accessor
from gamelens.notebook.escaping import plain, text_of
from gamelens.notebook.tables.frame_table import show_sources
from gamelens.notebook.widgets import explorer
from support.hostile_names import CONFIG, NAMES, TITLES, Elements, obeyed, played
from support.notebook_shell import notebook_shell
from support.sandbox_stage import Stage
from support.served_metrics import serving
from support.watched_service import quick

pytestmark = pytest.mark.slow
OVER = "2026-11-17/2026-11-19"
NETWORK = "ilrd_network_name"
EVERY_NAME = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


class World(NamedTuple):
    """A client of the organisation, its environment, and the frames it returned."""

    client: Client
    environment: dict[str, str]
    networks: DataFrame
    by_day: DataFrame
    games: DataFrame
    cohorts: DataFrame


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Serve the organisation with hostile names and query it."""
    # One for each event loop: places for queries belong to the loop of their server.
    stage, own = (played(Stage(tmp_path_factory.mktemp("hostile") / "state", tenants=CONFIG)) for _ in range(2))
    with serving(stage) as served:
        client = quick(own.metrics_app)
        yield World(
            client=client,
            environment={"GAMELENS_API_KEY": "key-of-acme", "GAMELENS_METRICS_URL": served.world().address},
            networks=client.query("ilrd_revenue", by=NETWORK, over=OVER, every="all", fields="all", progress=False),
            by_day=client.query("ilrd_revenue", by=NETWORK, over=OVER, fields="all", progress=False),
            games=client.query(["revenue", "user_unique"], by="game", over=OVER, progress=False),
            cohorts=client.retention([1, 2], by="game", over=OVER, when_unavailable="clip", progress=False),
        )
    own.sandbox.close()


@pytest.fixture(scope="module")
def figures(world: World) -> dict[str, Any]:
    """Return one figure of every kind, with hostile names wherever a name may stand."""
    scores = health.score_days(health.measured(world.games, {"revenue": TITLES[0], "user_unique": TITLES[1]}))
    scores["is_flagged"] = True
    renamed = world.networks.rename(columns={"ilrd_revenue": NAMES["tag"], "ilrd_revenue_mean": NAMES["mathjax"]})
    return {
        "lines": charts.draw_lines(world.by_day),
        "lines of games": charts.draw_lines(world.games, "revenue", title=NAMES["tag"]),
        "bars": charts.draw_bars(world.networks),
        "bars of strange columns": charts.draw_bars(renamed, [NAMES["tag"], NAMES["mathjax"]], by=NETWORK),
        "panels": charts.draw_panels(world.by_day, by=NETWORK),
        "cohorts": charts.draw_cohorts(accessor(world.cohorts).matrix("game"), title=NAMES["end of script"]),
        "curves": charts.draw_curve(retention.average_curve(world.cohorts, by="game"), by="game"),
        "bands": charts.draw_bands(scores),
        "one plot": accessor(world.games).plot("revenue"),
    }


def accessor(frame: DataFrame) -> Accessor:
    """Return `frame.lens`, whose type the stubs of pandas do not know."""
    return cast("Accessor", frame.lens)


def html_table(frame: DataFrame) -> str:
    """Return the table that a notebook shows for *frame*."""
    return str(cast("Any", frame)._repr_html_())


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in decoded JSON, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


# Queries and answers: names are data and stay as they are.


@pytest.mark.shown_by(3)
@EVERY_NAME
def test_a_name_is_answered_as_it_was_sent(world: World, name: str) -> None:
    """Answers carry names unchanged: values are not trimmed or folded (Wire 4.10, Dimensions)."""
    assert name in {*world.networks[NETWORK].dropna()}


@pytest.mark.shown_by(3)
@EVERY_NAME
def test_a_name_can_be_filtered_by(world: World, name: str) -> None:
    """A filter compares the name exactly, so it finds its six events (Wire 2.7, Filters)."""
    where = getattr(dim, NETWORK) == name
    frame = world.client.query("event_count", over=OVER, every="all", where=where, progress=False)
    assert frame["event_count"].tolist() == [6]


def test_titles_are_answered_as_they_were_set(world: World) -> None:
    """Titles of games and names of studios are those of the configuration (Wire 2.11, Lists)."""
    assert {*world.games["game"]} == {*TITLES}
    assert {*world.client.studios(over=OVER)["studio"]} == {NAMES["mathjax"], NAMES["terminal"]}


def test_wide_has_a_column_for_each_name(world: World) -> None:
    """`wide` keeps every name as a column of its own, with its values."""
    wide = accessor(world.by_day).wide("ilrd_revenue")
    assert {*wide.columns} == {"timestamp", *NAMES.values()}
    assert wide[NAMES["tag"]].tolist() == pytest.approx([0.06, 0.06])


def test_matrix_keeps_games_apart(world: World) -> None:
    """`matrix` keeps every title as a level of its index."""
    assert {*accessor(world.cohorts).matrix("game").index.get_level_values(0)} == {*TITLES}


# Output of a notebook.


def test_tables_hold_no_element_of_a_name(world: World) -> None:
    """The HTML of a frame has table elements only: names are escaped."""
    frames = [
        world.networks,
        world.games,
        accessor(world.cohorts).matrix("game"),
        accessor(world.by_day).wide("ilrd_revenue"),
    ]
    frames += [ads.earnings(world.networks, by=NETWORK), world.client.games(over=OVER)]
    with pd.option_context("display.max_colwidth", None, "display.max_rows", None, "display.max_columns", None):
        shown = [Elements(html_table(frame)) for frame in frames]
    assert [danger for page in shown for danger in page.dangers()] == []
    assert {name for page in shown for name in page.names()} <= {
        "div",
        "style",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
    }


def test_no_formula_of_tex_is_read_in_a_table(world: World) -> None:
    """Tables of a notebook have the class that MathJax of JupyterLab ignores, so `$` starts no formula."""
    with notebook_shell() as shell:
        show_sources()
        shown, _ = shell.display_formatter.format(world.networks)
    (table,) = [attributes for name, attributes in Elements(shown["text/html"]).found if name == "table"]
    assert "mathjax_ignore" in str(table["class"]).split()


def test_every_figure_holds_names_as_text(figures: dict[str, Any]) -> None:
    """The JSON of a figure has no markup of a name, neither HTML nor a TeX link."""
    for kind, figure in figures.items():
        inside = plotly.io.to_json(figure)
        assert not [
            mark for mark in ("<img", "<svg", "<script", "</script", "<iframe", "$\\\\href") if mark in inside
        ], kind


def test_every_figure_in_a_page_is_a_div_and_scripts_of_plotly(figures: dict[str, Any]) -> None:
    """A `</script>` in a name does not end the script that holds the figure's JSON."""
    for kind, figure in figures.items():
        page = Elements(plotly.io.to_html(figure, include_plotlyjs=False, full_html=False))
        assert (page.dangers(), page.names()) == ([], {"div", "script"}), kind
        assert len([name for name, _ in page.found if name == "script"]) == 1, kind


def test_no_text_of_a_figure_has_control_characters(figures: dict[str, Any]) -> None:
    """No text of a figure has control characters, line breaks or bidirectional marks."""
    for kind, figure in figures.items():
        assert [text for text in _texts(json.loads(plotly.io.to_json(figure))) if obeyed(text)] == [], kind


def test_every_text_alternative_is_one_harmless_line(figures: dict[str, Any]) -> None:
    """Alternative text is one line without control characters, quotes and angle brackets."""
    for kind, figure in figures.items():
        text = charts.alt_text(figure)
        assert not obeyed(text), kind
        assert not {*"<>\"'`"} & {*text}, kind


def test_long_names_leave_room_for_the_figure(figures: dict[str, Any]) -> None:
    """A long name is cut to 36 characters, and no figure grows beyond 2000 pixels."""
    shown = figures["bars"].layout.yaxis.ticktext
    assert max(len(text) for text in shown) < 36 * 6  # 36 letters, each of them an entity at most
    assert all(figure.layout.height < 2000 for figure in figures.values())


@EVERY_NAME
def test_a_name_in_a_sentence_adds_no_markup(name: str) -> None:
    """A sentence with a hostile name renders to an entry of a list only."""
    html = markdown_it.MarkdownIt("commonmark", {"html": True}).render(conclusions(f"{name} grew.").data)
    page = Elements(html)
    assert (page.dangers(), page.names()) == ([], {"ul", "li"} | ({"span"} if "$" in name else set()))


def test_sentences_of_the_health_board_add_no_markup(world: World) -> None:
    """Sentences of flagged series are escaped before they are rendered."""
    scores = health.score_days(health.measured(world.games, {"revenue": TITLES[2]}))
    scores["is_flagged"], scores["expected"], scores["change"] = True, 1.0, 4.0
    page = Elements(conclusions(*health.flagged(scores)["sentence"]).data)
    assert (page.dangers(), page.names()) == ([], {"span"})  # around the dollars


@pytest.fixture(scope="module")
def board(world: World) -> HealthReport:
    """Return the health board: every game lost its players."""
    return check_health(world.client, drills=3)


def test_a_health_board_in_markdown_holds_no_element_of_a_name(board: HealthReport) -> None:
    """The rendered Markdown of a health board has headings, lists and tables only, and no control characters."""
    assert len(board.alarms) >= len(TITLES)
    assert not obeyed(board.markdown().replace("\n", ""))
    page = Elements(markdown_it.MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(board.markdown()))
    assert page.dangers() == []
    assert page.names() <= {"h1", "h2", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "strong"}


def test_an_explorer_shows_names(world: World) -> None:
    """Table and figure of an explorer have no markup of a name, and its code runs."""
    widget = explorer(world.client, metric="ilrd_revenue", by=NETWORK, over=OVER, every="all", top=None)
    assert widget.settled()
    page = Elements(widget.static().html)
    assert page.dangers() == []
    assert not [mark for mark in ("<img", "<svg", "</script") if mark in plotly.io.to_json(widget.static().figure)]
    assert len(eval(widget.code, {"lens": world.client})) == len(NAMES)
    widget.close()


@pytest.mark.shown_by(3)
@EVERY_NAME
def test_an_explorer_filters_by_a_name(world: World, name: str) -> None:
    """The code of an explorer quotes any name of a filter so that it returns the same rows."""
    widget = explorer(world.client, metric="event_count", over=OVER, every="all", where={NETWORK: name})
    assert widget.settled()
    assert eval(widget.code, {"lens": world.client})["event_count"].tolist() == [6]
    widget.close()


# Printed text.


def test_an_explanation_has_its_own_lines_only(world: World) -> None:
    """An explanation has a line each for query, answer, origin, gap and warning, whatever names they hold."""
    frame = world.client.query(
        "ilrd_revenue", over=OVER, every="all", where=getattr(dim, NETWORK) == NAMES["lines"], progress=False
    )
    frame.attrs["gamelens"] |= {
        "warnings": [NAMES["terminal"]],
        "gaps": [
            {"metric": "revenue", "interval": OVER, "scope": {NETWORK: NAMES["lines"]}, "error": NAMES["turned around"]}
        ],
    }
    lines = accessor(frame).explain().split("\n")
    assert len(lines) == 5
    assert [line for line in lines if obeyed(line)] == []


@pytest.mark.wide
def test_reprs_are_one_printable_line(world: World) -> None:
    """Reprs of a client, an accessor, a join report and a plan are printable."""
    other = DataFrame({"network": [*NAMES.values()], "spend": 1.0})
    joined = gl.join(world.networks, other, on={NETWORK: "network"})
    for shown in (world.client, world.games.lens, joined.report, world.client.plan("revenue", by="game", over=OVER)):
        assert not obeyed(repr(shown).replace("\n", ""))


@pytest.mark.shown_by(3)
@EVERY_NAME
def test_an_error_is_one_printable_line(world: World, name: str) -> None:
    """The message of `BadQuery`, which lists the names there are, is one printable line."""
    with pytest.raises(gl.BadQuery) as raised:
        accessor(accessor(world.by_day).wide("ilrd_revenue")).plot(name + "?")
    assert not obeyed(str(raised.value))


def test_a_join_report_is_one_line_per_part(world: World) -> None:
    """Unmatched names add no line to the explanation of a join."""
    left = [NAMES[kind] for kind in ("lines", "terminal", "turned around", "unseen")]
    other = DataFrame({"network": [name for name in NAMES.values() if name not in left], "spend": 1.0})
    text = gl.join(world.networks, other, on={NETWORK: "network"}).report.explain()
    assert (obeyed(text.replace("\n", "")), len(text.split("\n"))) == (set(), 5)  # the last: the table has no days


def test_a_join_finds_every_name(world: World) -> None:
    """A join matches every name exactly."""
    other = DataFrame({"network": [*NAMES.values()], "spend": 1.0})
    joined = gl.join(world.networks.dropna(subset=NETWORK), other, on={NETWORK: "network"})
    assert (joined.report.matched_share, len(joined.report.only_right)) == (1.0, 0)


@pytest.mark.parametrize("by", [NETWORK, "game", "build"])
def test_the_command_prints_a_line_for_each_row(world: World, by: str) -> None:
    """`gamelens query` prints a header and one clean line a row, whatever the names hold."""
    command = ["query", "ilrd_revenue", "--by", by, "--over", OVER, "--every", "all", "--no-cache"]
    result = CliRunner(env=world.environment).invoke(cli, command)
    lines = result.stdout.removesuffix("\n").split("\n")
    assert result.exit_code == 0, result.stderr
    assert len(lines) == 1 + {NETWORK: len(NAMES), "game": len(TITLES), "build": 1}[by]
    assert [line for line in lines if obeyed(line)] == []


COMMANDS = {
    "query --json": ["query", "ilrd_revenue", "--by", NETWORK, "game", "studio", "--over", OVER, "--json"],
    "plan": ["plan", "ilrd_revenue", "--by", NETWORK, "game", "studio", "--over", OVER],
    "plan of a title": ["plan", "revenue", "--over", OVER, "--games", TITLES[0]],
    "an unknown game": ["query", "revenue", "--over", OVER, "--games", TITLES[0] + "?"],
    "an unknown studio": ["query", "revenue", "--over", OVER, "--studios", NAMES["terminal"] + "?"],
    "an unknown value": ["query", "revenue", "--over", OVER, "--where", f"build == {NAMES['terminal']!r}"],
    "an expression": ["query", "revenue", "--over", OVER, "--where", NAMES["terminal"]],
    "an option": ["query", "revenue", "--over", NAMES["turned around"]],
    "a file": ["query", "revenue", "--over", OVER, "--out", NAMES["terminal"]],
    "an argument": ["report", NAMES["terminal"]],
    "doctor": ["doctor"],
    "health --json": ["health", "--json"],
}


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(world: World, arguments: list[str]) -> None:
    """Whatever names and arguments hold, both streams have line ends and no other control character."""
    result = CliRunner(env=world.environment | {"CI": "true"}).invoke(cli, arguments)  # without a progress bar
    assert result.output
    assert not obeyed(result.output.replace("\n", ""))


@pytest.mark.wide
@pytest.mark.parametrize("form", [[], ["--markdown", "-"]])
def test_the_health_command_prints_clean_lines(world: World, form: list[str]) -> None:
    """`gamelens health` prints lines without control characters, in text and in Markdown."""
    result = CliRunner(env=world.environment).invoke(cli, ["health", "--stale", "5000w", *form])
    assert result.exit_code == 0, result.stderr
    assert [line for line in result.stdout.split("\n") if obeyed(line)] == []
    assert "critical" in result.stdout


def test_the_command_gives_names_as_json(world: World) -> None:
    """`--json` prints the names unchanged, with control characters escaped."""
    command = ["query", "ilrd_revenue", "--by", NETWORK, "--over", OVER, "--every", "all", "--json", "--no-cache"]
    result = CliRunner(env=world.environment).invoke(cli, command)
    assert {row[NETWORK] for row in json.loads(result.stdout)} == {*NAMES.values()}
    assert not obeyed(result.stdout.removesuffix("\n"))


# Written files.


def _runs(cell: str) -> bool:
    """Return whether a spreadsheet reads *cell* as a formula (OWASP, CSV injection)."""
    return cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))


@pytest.mark.parametrize("shape", ["long", "wide", "matrix"])
def test_no_cell_of_a_csv_runs(world: World, tmp_path: Path, shape: str) -> None:
    """No cell that `export_csv` writes is a formula, in a long, wide or matrix frame."""
    frame = {
        "long": world.networks,
        "wide": accessor(world.by_day).wide("ilrd_revenue"),
        "matrix": accessor(world.cohorts).matrix("game"),
    }[shape]
    with gl.export_csv(frame, tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.reader(file)]
    assert [cell for row in rows for cell in row if _runs(cell)] == []
    assert {letter for row in rows for cell in row for letter in obeyed(cell)} <= {*"\t\r\n"}
    assert len(rows) == 1 + len(frame)


def test_the_command_writes_no_cell_that_runs(world: World, tmp_path: Path) -> None:
    """No cell that `gamelens query --out` writes is a formula."""
    path = tmp_path / "out.csv"
    command = ["query", "ilrd_revenue", "--by", NETWORK, "--over", OVER, "--every", "all", "--no-cache"]
    command += ["--out", str(path)]
    result = CliRunner(env=world.environment).invoke(cli, command)
    assert result.exit_code == 0, result.stderr
    with path.open(newline="", encoding="utf-8") as file:
        assert [cell for row in csv.reader(file) for cell in row if _runs(cell)] == []


def test_a_csv_comes_back_name_by_name(world: World, tmp_path: Path) -> None:
    """A join with an exported CSV matches every name: escaping of formulas is undone."""
    path = gl.export_csv(world.networks.assign(spend=1.0)[[NETWORK, "spend"]], tmp_path / "out.csv")
    joined = gl.join(world.networks, path, on=NETWORK)
    assert joined.report.matched_share == 1.0


def test_a_workbook_is_read_name_by_name(world: World, tmp_path: Path) -> None:
    """A join with a workbook matches all names but the two that Excel's XML cannot hold."""
    book = openpyxl.Workbook()
    storable = [name for kind, name in NAMES.items() if kind not in ("terminal", "lines")]
    for row in [[NETWORK, "spend"], *([name, 1.0] for name in storable)]:
        book.active.append(row)
    for cell in book.active["A"]:
        cell.data_type = "s"
    book.save(tmp_path / "spend.xlsx")
    joined = gl.join(world.networks, tmp_path / "spend.xlsx", on=NETWORK)
    assert {*joined.report.only_left[NETWORK]} == {NAMES["terminal"], NAMES["lines"]}


def test_a_page_of_a_figure_holds_no_element_of_a_name(figures: dict[str, Any], tmp_path: Path) -> None:
    """A figure saved as HTML has no element that runs, loads or leads elsewhere."""
    page = Elements(charts.save(figures["bars"], tmp_path / "bars.html").read_text())
    assert page.dangers() == []


# How names are made safe.


@EVERY_NAME
def test_escaped_is_one_line_of_text(name: str) -> None:
    """`text_of` gives one line without elements and without `$`."""
    assert Elements(text_of(name)).found == []
    assert "\n" not in text_of(name)
    assert "$" not in text_of(name)


@EVERY_NAME
def test_plain_has_no_control_characters(name: str) -> None:
    """`plain` removes control characters, line breaks and bidirectional marks."""
    assert not obeyed(plain(name))


@EVERY_NAME
def test_a_cell_of_markdown_has_no_control_characters(name: str) -> None:
    """A Markdown table has a line for each row, and nothing in it is obeyed."""
    lines = markdown_table(["name"], [[name]]).split("\n")
    assert (len(lines), [line for line in lines if obeyed(line)]) == (3, [])


def test_names_stay_different_where_it_matters(world: World) -> None:
    """Two names that look alike are still two series."""
    assert series_names(world.networks).nunique() == len(NAMES)
