"""issue, Must show: hostile names go through every repr, figure, sentence, table and export and run nowhere.

One organisation whose games, studios, networks, ad units and builds are called like that, asked through the real
service and followed to wherever a name is shown.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import markdown_it
import openpyxl
import pandas as pd
import plotly.io
import pytest
from click.testing import CliRunner
from pandas import DataFrame

import gamelens as gl
import gamelens.notebook.accessor  # registers df.lens
from conftest import Stage
from gamelens import dim
from gamelens.analysis import ads, health, retention
from gamelens.analysis.tidy_frames import series_names
from gamelens.cli import cli
from gamelens.client.sync_client import Client
from gamelens.notebook import charts, say
from gamelens.notebook.health_check import HealthReport, check_health
from gamelens.notebook.labels import plain, text_of
from gamelens.notebook.widgets import explorer
from support.hostile_names import CONFIG, NAMES, TITLES, Elements, obeyed, played
from support.served_metrics import serving
from support.watched_service import quick

pytestmark = pytest.mark.slow
OVER = "2026-11-17/2026-11-19"
NETWORK = "ilrd_network_name"
EVERY = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


class World(NamedTuple):
    """Clients of the organisation, and what they got from it."""

    lens: Client
    environment: dict[str, str]
    networks: DataFrame
    by_day: DataFrame
    games: DataFrame
    cohorts: DataFrame


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    stage = played(Stage(tmp_path_factory.mktemp("hostile") / "state", tenants=CONFIG))
    with serving(stage) as served:
        lens = quick(stage.metrics_app)
        yield World(
            lens=lens,
            environment={"GAMELENS_API_KEY": "key-of-acme", "GAMELENS_METRICS_URL": served.world().address},
            networks=lens.query("ilrd_revenue", by=NETWORK, over=OVER, every="all", progress=False),
            by_day=lens.query("ilrd_revenue", by=NETWORK, over=OVER, progress=False),
            games=lens.query(["revenue", "user_unique"], by="game", over=OVER, progress=False),
            cohorts=lens.retention([1, 2], by="game", over=OVER, when_unavailable="clip", progress=False),
        )


@pytest.fixture(scope="module")
def figures(world: World) -> dict[str, Any]:
    """One of every kind, names wherever a name may stand."""
    scores = health.score_days(health.measured(world.games, {"sum": TITLES[0], "user_unique": TITLES[1]}))
    scores["is_flagged"] = True
    renamed = world.networks.rename(columns={"sum": NAMES["tag"], "mean": NAMES["mathjax"]})
    return {
        "lines": charts.draw_lines(world.by_day),
        "lines of games": charts.draw_lines(world.games, "sum", title=NAMES["tag"]),
        "bars": charts.draw_bars(world.networks),
        "bars of strange columns": charts.draw_bars(renamed, [NAMES["tag"], NAMES["mathjax"]], by=NETWORK),
        "panels": charts.draw_panels(world.by_day, by=NETWORK),
        "cohorts": charts.draw_cohorts(world.cohorts.lens.matrix("game"), title=NAMES["end of script"]),
        "curves": charts.draw_curve(retention.average_curve(world.cohorts, by="game"), by="game"),
        "bands": charts.draw_bands(scores),
        "one plot": world.games.lens.plot("sum"),
    }


def _texts(value: Any) -> Iterator[str]:
    """Every text in what JSON says."""
    if isinstance(value, str):
        yield value
    for part in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


# What is asked and answered: names are data, and stay what they are.


@EVERY
def test_a_name_is_answered_as_it_was_sent(world: World, name: str) -> None:
    assert name in {*world.networks[NETWORK].dropna()}


@EVERY
def test_a_name_can_be_asked_for(world: World, name: str) -> None:
    asked = world.lens.query("event_count", over=OVER, every="all", where=getattr(dim, NETWORK) == name, progress=False)
    assert asked["event_count"].tolist() == [6]


def test_titles_are_answered_as_they_were_set(world: World) -> None:
    assert {*world.games["game"]} == {*TITLES}
    assert {*world.lens.studios(over=OVER)["studio"]} == {NAMES["mathjax"], NAMES["terminal"]}


def test_wide_has_a_column_for_each_name(world: World) -> None:
    wide = world.by_day.lens.wide("sum")
    assert {*wide.columns} == {"timestamp", *NAMES.values()}
    assert wide[NAMES["tag"]].tolist() == pytest.approx([0.06, 0.06])


def test_matrix_keeps_games_apart(world: World) -> None:
    assert {*world.cohorts.lens.matrix("game").index.get_level_values(0)} == {*TITLES}


# What a notebook shows.


def test_tables_hold_no_element_of_a_name(world: World) -> None:
    frames = [world.networks, world.games, world.cohorts.lens.matrix("game"), world.by_day.lens.wide("sum")]
    frames += [ads.earnings(world.networks, by=NETWORK), world.lens.games(over=OVER)]
    with pd.option_context("display.max_colwidth", None, "display.max_rows", None, "display.max_columns", None):
        shown = [Elements(frame._repr_html_()) for frame in frames]
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
    """JupyterLab's MathJax leaves what has this class alone."""
    (table,) = [attributes for name, attributes in Elements(world.networks._repr_html_()).found if name == "table"]
    assert "mathjax_ignore" in str(table["class"]).split()


def test_every_figure_holds_names_as_text(figures: dict[str, Any]) -> None:
    for kind, figure in figures.items():
        inside = plotly.io.to_json(figure)
        assert not [
            mark for mark in ("<img", "<svg", "<script", "</script", "<iframe", "$\\\\href") if mark in inside
        ], kind


def test_every_figure_in_a_page_is_a_div_and_scripts_of_plotly(figures: dict[str, Any]) -> None:
    """`</script>` in the JSON of a figure would end the script around it."""
    for kind, figure in figures.items():
        page = Elements(plotly.io.to_html(figure, include_plotlyjs=False, full_html=False))
        assert (page.dangers(), page.names()) == ([], {"div", "script"}), kind
        assert len([name for name, _ in page.found if name == "script"]) == 1, kind


def test_no_text_of_a_figure_turns_around_or_breaks(figures: dict[str, Any]) -> None:
    for kind, figure in figures.items():
        assert [text for text in _texts(json.loads(plotly.io.to_json(figure))) if obeyed(text)] == [], kind


def test_every_text_alternative_is_one_harmless_line(figures: dict[str, Any]) -> None:
    for kind, figure in figures.items():
        said = charts.alt_text(figure)
        assert not obeyed(said), kind
        assert not {*"<>\"'`"} & {*said}, kind


def test_long_names_leave_room_for_the_figure(figures: dict[str, Any]) -> None:
    shown = figures["bars"].layout.yaxis.ticktext
    assert max(len(text) for text in shown) < 36 * 6  # 36 letters, each of them an entity at most
    assert all(figure.layout.height < 2000 for figure in figures.values())


@EVERY
def test_a_sentence_says_a_name_and_nothing_else(name: str) -> None:
    told = markdown_it.MarkdownIt("commonmark", {"html": True}).render(
        say("{game} grew by **{by:share}**.", game=name, by=0.1).data
    )
    page = Elements(told)
    assert (page.dangers(), page.names()) == ([], {"p", "strong"} | ({"span"} if "$" in name else set()))


def test_sentences_of_findings_are_names_too(world: World) -> None:
    scores = health.score_days(health.measured(world.games, {"sum": TITLES[2]}))
    scores["is_flagged"], scores["expected"], scores["change"] = True, 1.0, 4.0
    told = [say("- {sentence}", sentence=sentence).data for sentence in health.flagged(scores)["sentence"]]
    assert not Elements("\n".join(told)).found


@pytest.fixture(scope="module")
def board(world: World) -> HealthReport:
    """What stands out: every game lost its players."""
    return check_health(world.lens, drills=3)


def test_a_health_board_in_markdown_holds_no_element_of_a_name(board: HealthReport) -> None:
    assert len(board.alarms) >= len(TITLES)
    page = Elements(markdown_it.MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(board.markdown()))
    assert page.dangers() == []
    assert page.names() <= {"h1", "h2", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "strong"}


def test_an_explorer_shows_names(world: World) -> None:
    """Its table, code and figure; the code runs."""
    asked = explorer(world.lens, metric="ilrd_revenue", by=NETWORK, over=OVER, every="all", top=None)
    assert asked.settled()
    page = Elements(asked.static().html)
    assert page.dangers() == []
    assert not [mark for mark in ("<img", "<svg", "</script") if mark in plotly.io.to_json(asked.static().figure)]
    assert len(eval(asked.code, {"lens": world.lens})) == len(NAMES)
    asked.close()


@EVERY
def test_an_explorer_asks_for_a_name(world: World, name: str) -> None:
    asked = explorer(world.lens, metric="event_count", over=OVER, every="all", where={NETWORK: name})
    assert asked.settled()
    assert eval(asked.code, {"lens": world.lens})["event_count"].tolist() == [6]
    asked.close()


# What is printed.


def test_an_explanation_has_its_own_lines_only(world: World) -> None:
    asked = world.lens.query(
        "ilrd_revenue", over=OVER, every="all", where=getattr(dim, NETWORK) == NAMES["lines"], progress=False
    )
    asked.attrs["gamelens"] |= {
        "warnings": [NAMES["terminal"]],
        "gaps": [
            {"metric": "revenue", "interval": OVER, "scope": {NETWORK: NAMES["lines"]}, "error": NAMES["turned around"]}
        ],
    }
    told = asked.lens.explain().split("\n")
    assert len(told) == 4
    assert [line for line in told if obeyed(line)] == []


def test_reprs_are_one_printable_line(world: World) -> None:
    other = DataFrame({"network": [*NAMES.values()], "spend": 1.0})
    joined = gl.join(world.networks, other, on={NETWORK: "network"})
    for shown in (world.lens, world.games.lens, joined.report, world.lens.plan("revenue", by="game", over=OVER)):
        assert not obeyed(repr(shown).replace("\n", ""))


@EVERY
def test_an_error_is_one_printable_line(world: World, name: str) -> None:
    """A wrong name is answered with the ones there are."""
    with pytest.raises(gl.BadQuery) as caught:
        world.by_day.lens.wide("sum").lens.plot(name + "?")
    assert not obeyed(str(caught.value))


def test_a_join_says_what_did_not_match_line_by_line(world: World) -> None:
    left = [NAMES[kind] for kind in ("lines", "terminal", "turned around", "unseen")]
    other = DataFrame({"network": [name for name in NAMES.values() if name not in left], "spend": 1.0})
    told = gl.join(world.networks, other, on={NETWORK: "network"}).report.explain()
    assert (obeyed(told.replace("\n", "")), len(told.split("\n"))) == (set(), 4)


def test_a_join_finds_every_name(world: World) -> None:
    other = DataFrame({"network": [*NAMES.values()], "spend": 1.0})
    joined = gl.join(world.networks.dropna(subset=NETWORK), other, on={NETWORK: "network"})
    assert (joined.report.matched_share, len(joined.report.only_right)) == (1.0, 0)


@pytest.mark.parametrize("by", [NETWORK, "game", "build"])
def test_the_command_prints_a_line_for_each_row(world: World, by: str) -> None:
    asked = ["query", "ilrd_revenue", "--by", by, "--over", OVER, "--every", "all", "--no-cache"]
    said = CliRunner(env=world.environment).invoke(cli, asked)
    lines = said.stdout.removesuffix("\n").split("\n")
    assert said.exit_code == 0, said.stderr
    assert len(lines) == 1 + {NETWORK: len(NAMES), "game": len(TITLES), "build": 1}[by]
    assert [line for line in lines if obeyed(line)] == []


@pytest.mark.parametrize("form", [[], ["--markdown", "-"]])
def test_the_command_says_what_stands_out_line_by_line(world: World, form: list[str]) -> None:
    said = CliRunner(env=world.environment).invoke(cli, ["health", *form])
    assert said.exit_code == 0, said.stderr
    assert [line for line in said.stdout.split("\n") if obeyed(line)] == []
    assert "critical" in said.stdout


def test_the_command_gives_names_as_json(world: World) -> None:
    asked = ["query", "ilrd_revenue", "--by", NETWORK, "--over", OVER, "--every", "all", "--json", "--no-cache"]
    said = CliRunner(env=world.environment).invoke(cli, asked)
    assert {row[NETWORK] for row in json.loads(said.stdout)} == {*NAMES.values()}
    assert not obeyed(said.stdout.removesuffix("\n"))


# What is written.


def _runs(cell: str) -> bool:
    """Whether a spreadsheet takes the text for a formula (OWASP, CSV injection)."""
    return cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))


@pytest.mark.parametrize("shape", ["long", "wide", "matrix"])
def test_no_cell_of_a_csv_runs(world: World, tmp_path: Path, shape: str) -> None:
    frame = {
        "long": world.networks,
        "wide": world.by_day.lens.wide("sum"),
        "matrix": world.cohorts.lens.matrix("game"),
    }[shape]
    with gl.export_csv(frame, tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.reader(file)]
    assert [cell for row in rows for cell in row if _runs(cell)] == []
    assert len(rows) == 1 + len(frame)


def test_the_command_writes_no_cell_that_runs(world: World, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    asked = [
        "query",
        "ilrd_revenue",
        "--by",
        NETWORK,
        "--over",
        OVER,
        "--every",
        "all",
        "--out",
        str(path),
        "--no-cache",
    ]
    said = CliRunner(env=world.environment).invoke(cli, asked)
    assert said.exit_code == 0, said.stderr
    with path.open(newline="", encoding="utf-8") as file:
        assert [cell for row in csv.reader(file) for cell in row if _runs(cell)] == []


def test_a_csv_comes_back_name_by_name(world: World, tmp_path: Path) -> None:
    path = gl.export_csv(world.networks.assign(spend=1.0)[[NETWORK, "spend"]], tmp_path / "out.csv")
    joined = gl.join(world.networks, path, on=NETWORK)
    assert joined.report.matched_share == 1.0


def test_a_workbook_is_read_name_by_name(world: World, tmp_path: Path) -> None:
    """All but the two that Excel's XML cannot hold."""
    book = openpyxl.Workbook()
    kept = [name for kind, name in NAMES.items() if kind not in ("terminal", "lines")]
    for row in [[NETWORK, "spend"], *([name, 1.0] for name in kept)]:
        book.active.append(row)
    for cell in book.active["A"]:
        cell.data_type = "s"
    book.save(tmp_path / "spend.xlsx")
    joined = gl.join(world.networks, tmp_path / "spend.xlsx", on=NETWORK)
    assert {*joined.report.only_left[NETWORK]} == {NAMES["terminal"], NAMES["lines"]}


def test_a_page_of_a_figure_holds_no_element_of_a_name(figures: dict[str, Any], tmp_path: Path) -> None:
    page = Elements(charts.save(figures["bars"], tmp_path / "bars.html").read_text())
    assert page.dangers() == []


# How names are made safe.


@EVERY
def test_escaped_is_one_line_of_text(name: str) -> None:
    assert Elements(text_of(name)).found == []
    assert "\n" not in text_of(name)
    assert "$" not in text_of(name)


@EVERY
def test_plain_is_obeyed_by_nobody(name: str) -> None:
    assert not obeyed(plain(name))


def test_names_stay_different_where_it_matters(world: World) -> None:
    """Two names that look the same are still two series."""
    assert series_names(world.networks).nunique() == len(NAMES)
