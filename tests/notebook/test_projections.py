"""Figures of what has not come say that it has not."""

from __future__ import annotations

import json

import pandas as pd
import plotly.io
import pytest

from gamelens.analysis import retention
from gamelens.notebook import charts
from gamelens.simulator import fit_retention
from support.retention_frames import expected_frame

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
AGES = [1, 2, 3, 5, 7, 14]


@pytest.fixture(scope="module")
def frame():
    """A game with a hostile title beside one of which only two ages are known."""
    known = expected_frame(fit_retention(0.37, 0.125, 0.04).retention, AGES, installs=500).assign(game=HOSTILE)
    made = pd.concat([known, known[known["age"] <= 2].assign(game="Farm")]).astype({"game": "category"})
    made.attrs = known.attrs
    return made.reset_index(drop=True)


@pytest.fixture(scope="module")
def alone(frame):
    """The hostile one alone, as if all games were pooled."""
    made = frame[frame["game"] == HOSTILE].drop(columns="game")
    made.attrs = frame.attrs
    return made


def lines(figure, dash):
    return [trace for trace in figure.data if trace.mode == "lines" and trace.line.dash == dash]


def test_what_has_not_come_is_dashed_and_nothing_else(alone) -> None:
    figure = charts.draw_projection(retention.project_retention(alone), retention.average_curve(alone))
    (solid,), (dashed,) = lines(figure, "solid"), lines(figure, "dash")
    assert (min(solid.x), max(solid.x), min(dashed.x), max(dashed.x)) == (1, 14, 14, 90)


def test_counted_points_carry_their_interval(alone) -> None:
    curve = retention.average_curve(alone)
    figure = charts.draw_projection(retention.project_retention(alone), curve)
    points = next(trace for trace in figure.data if trace.name == "counted")
    assert points.x.tolist() == AGES
    assert (points.y + points.error_y.array).tolist() == pytest.approx(curve["high"].tolist())
    assert (points.y - points.error_y.arrayminus).tolist() == pytest.approx(curve["low"].tolist())


def test_d30_and_d90_are_told_with_their_band(alone) -> None:
    rows = retention.project_retention(alone, ages=[30, 90])
    figure = charts.draw_projection(rows)
    told = [f"D{row.age} {row.retention:.1%}</b><br>{row.low:.1%} to {row.high:.1%}" for row in rows.itertuples()]
    assert [text.text.removeprefix("<b>") for text in figure.layout.annotations[:2]] == told


def test_of_several_curves_only_the_one_taken_has_a_band(alone) -> None:
    figure = charts.draw_projection(retention.project_retention(alone, model="all"))
    assert [trace.legendgroup for trace in figure.data if trace.fill == "toself"] == ["BG/BB"]
    assert len(lines(figure, "solid")) == 3


def test_a_game_without_a_curve_still_shows_what_was_counted(frame) -> None:
    figure = charts.draw_projection(
        retention.project_retention(frame, "game"), retention.average_curve(frame, "game"), by="game"
    )
    assert [trace.x.tolist() for trace in figure.data if trace.name == "counted"] == [AGES, [1, 2]]
    assert len(lines(figure, "solid")) == 1


def test_ltv_starts_on_the_install_day(alone) -> None:
    figure = charts.draw_ltv(retention.ltv(alone, 0.1))
    (solid,) = lines(figure, "solid")
    assert (solid.x[0], solid.y[0]) == (0, pytest.approx(0.1))
    assert "USD per new player" in figure.layout.title.text


@pytest.mark.parametrize("by", [None, "game"])
@pytest.mark.parametrize("rows", [slice(0), slice(2)], ids=["nothing", "one age"])
def test_of_nothing_comes_an_empty_figure(frame, by, rows) -> None:
    few = frame.sort_values("age")[rows]
    charts.draw_projection(retention.project_retention(few, by), retention.average_curve(few, by), by=by)
    figure = charts.draw_ltv(retention.ltv(few, 0.1, by), by=by)
    assert "nothing in this interval" in [annotation.text for annotation in figure.layout.annotations]


def test_hostile_names_are_text(frame) -> None:
    """issue 7, Must show: hostile names go through every figure without running."""
    lifetime = retention.ltv(frame, 0.1, "game")
    for figure in (
        charts.draw_projection(
            retention.project_retention(frame, "game"), retention.average_curve(frame, "game"), by="game"
        ),
        charts.draw_ltv(lifetime, by="game", title=HOSTILE),
    ):
        page = json.dumps(json.loads(plotly.io.to_json(figure)))
        assert "<img" not in page
        assert "&#60;img" in page


def test_who_does_not_see_the_figure_is_told_the_marked_ages(frame) -> None:
    values = retention.ltv(frame, 0.1, "game")
    last = values[values["game"] == HOSTILE].iloc[-1]
    told = charts.alt_text(charts.draw_ltv(values, by="game"))
    assert f"D90 ${last.ltv:.2f} (${last.low:.2f} to ${last.high:.2f})" in told
    assert "<img" not in told
