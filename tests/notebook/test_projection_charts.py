"""Figures of projections, which mark what is projected."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest
from pandas import DataFrame

from gamelens.analysis import retention
from gamelens.analysis.tidy_frames import dimension_columns
from gamelens.notebook import charts
from gamelens.receipts import Receipt
from gamelens.simulator import fit_retention
from support.retention_frames import expected_frame

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
AGES = [1, 2, 3, 5, 7, 14]


@pytest.fixture(scope="module")
def frame() -> DataFrame:
    """A game with a hostile title, and one of which only two ages are known."""
    counted = expected_frame(fit_retention(0.37, 0.125, 0.04).retention, AGES, installs=500).assign(game=HOSTILE)
    both = pd.concat([counted, counted[counted["age"] <= 2].assign(game="Farm")]).astype({"game": "category"})
    both.attrs = counted.attrs
    return both.reset_index(drop=True)


@pytest.fixture(scope="module")
def alone(frame: DataFrame) -> DataFrame:
    """The rows of the hostile game, without its title."""
    rows = frame[frame["game"] == HOSTILE].drop(columns="game")
    rows.attrs = frame.attrs
    return rows


def money_of(frame: DataFrame, dollars: float = 0.1) -> DataFrame:
    """Return money of install days: each player's day brings *dollars*, by install day a tenth more or less."""
    known = frame[frame["returned"].notna()]
    back = known["timestamp"] + pd.to_timedelta(known["age"].astype("int64"), unit="D")
    first = frame.groupby(["timestamp", *dimension_columns(frame)], observed=True)["installs"].max().reset_index()
    days = [first.assign(day=first["timestamp"], players=first["installs"])]
    days.append(known.assign(day=back, players=known["returned"]))
    cells = pd.concat([each[[*dimension_columns(frame), "timestamp", "day", "players"]] for each in days])
    installed = pd.Categorical(cells["timestamp"].dt.strftime("%Y-%m-%d"))
    worth = dollars * (1 + 0.1 * np.sin(cells["timestamp"].dt.day.to_numpy()))
    money = cells.assign(installed_on=installed, revenue=worth * cells["players"].astype("float64"))
    money = money.drop(columns="timestamp").rename(columns={"day": "timestamp", "players": "user_unique"})
    money.attrs = {}
    return money


def lines(figure: go.Figure, dash: str) -> list[go.Scatter]:
    """Return the lines of *figure* that are drawn with *dash*."""
    return [trace for trace in figure.data if trace.mode == "lines" and trace.line.dash == dash]


def test_only_projected_ages_are_dashed(alone: DataFrame) -> None:
    """Observed ages are drawn solid, and projected ones dashed."""
    figure = charts.draw_projection(retention.project_retention(alone), retention.average_curve(alone))
    (solid,), (dashed,) = lines(figure, "solid"), lines(figure, "dash")
    assert (min(solid.x), max(solid.x), min(dashed.x), max(dashed.x)) == (1, 14, 14, 90)


def test_counted_points_carry_their_interval(alone: DataFrame) -> None:
    """Observed points have the interval of the average curve as error bars."""
    curve = retention.average_curve(alone)
    figure = charts.draw_projection(retention.project_retention(alone), curve)
    points = next(trace for trace in figure.data if trace.name == "counted")
    assert points.x.tolist() == AGES
    assert (points.y + points.error_y.array).tolist() == pytest.approx(curve["high"].tolist())
    assert (points.y - points.error_y.arrayminus).tolist() == pytest.approx(curve["low"].tolist())


def test_d30_and_d90_are_told_with_their_band(alone: DataFrame) -> None:
    """D30 and D90 are annotated with value and band."""
    rows = retention.project_retention(alone, ages=[30, 90])
    figure = charts.draw_projection(rows)
    texts = [f"D{row.age} {row.retention:.1%}</b><br>{row.low:.1%} to {row.high:.1%}" for row in rows.itertuples()]
    assert [text.text.removeprefix("<b>") for text in figure.layout.annotations[:2]] == texts


def test_only_the_chosen_curve_has_a_band(alone: DataFrame) -> None:
    """With all curves drawn only the chosen one has a band."""
    figure = charts.draw_projection(retention.project_retention(alone, model="all"))
    assert [trace.legendgroup for trace in figure.data if trace.fill == "toself"] == ["BG/BB"]
    assert len(lines(figure, "solid")) == 4


def test_a_game_without_a_curve_shows_its_observed_points(frame: DataFrame) -> None:
    """A game with too few ages for a curve shows its observed points alone."""
    figure = charts.draw_projection(
        retention.project_retention(frame, "game"), retention.average_curve(frame, "game"), by="game"
    )
    assert [trace.x.tolist() for trace in figure.data if trace.name == "counted"] == [AGES, [1, 2]]
    assert len(lines(figure, "solid")) == 1


def test_ltv_starts_on_the_install_day(alone: DataFrame) -> None:
    """Lifetime value starts at age 0 with the money of the install day, in dollars per new player."""
    figure = charts.draw_ltv(retention.ltv(alone, money_of(alone)))
    (solid,) = lines(figure, "solid")
    assert (solid.x[0], solid.y[0]) == (0, pytest.approx(0.1, rel=0.1))
    assert "USD per new player" in figure.layout.title.text


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("by", [None, "game"])
@pytest.mark.parametrize("rows", [slice(0), slice(2)], ids=["nothing", "one age"])
def test_an_empty_frame_is_a_figure_that_says_so(frame: DataFrame, by: str | None, rows: slice) -> None:
    """An empty frame, or install days without money, give a figure that says it has no data."""
    few = frame.sort_values("age")[rows]
    charts.draw_projection(retention.project_retention(few, by), retention.average_curve(few, by), by=by)
    figure = charts.draw_ltv(retention.ltv(few, money_of(few)[:0], by), by=by)
    assert "no data in this interval" in [annotation.text for annotation in figure.layout.annotations]


def test_without_a_curve_the_measured_ages_are_drawn(frame: DataFrame) -> None:
    """Two ages are too few for a curve: what was measured is drawn, and nothing is dashed."""
    few = frame[frame["age"] <= 2]
    figure = charts.draw_ltv(retention.ltv(few, money_of(few)))
    (solid,), (dashed,) = lines(figure, "solid"), lines(figure, "dash")
    assert solid.x.tolist()[:3] == [0, 1, 2]
    assert not len(dashed.x)


def test_hostile_names_are_text(frame: DataFrame) -> None:
    """A hostile name is escaped in projections and in lifetime values."""
    lifetime = retention.ltv(frame, money_of(frame), "game")
    for figure in (
        charts.draw_projection(
            retention.project_retention(frame, "game"), retention.average_curve(frame, "game"), by="game"
        ),
        charts.draw_ltv(lifetime, by="game", title=HOSTILE),
    ):
        page = json.dumps(json.loads(plotly.io.to_json(figure)))
        assert "<img" not in page
        assert "&#60;img" in page


def test_the_alternative_text_has_the_marked_ages(frame: DataFrame) -> None:
    """The alternative text has the annotated ages with value and band."""
    values = retention.ltv(frame, money_of(frame), "game")
    last = values[values["game"] == HOSTILE].iloc[-1]
    text = charts.alt_text(charts.draw_ltv(values, by="game"))
    assert f"D90 ${last.ltv:.2f} (${last.low:.2f} to ${last.high:.2f})" in text
    assert "<img" not in text


def test_a_curve_of_another_source_warns(alone: DataFrame) -> None:
    """Counted points of a sandbox beside the projection of a real service: the figure says that it is mixed."""
    curve, projection = retention.average_curve(alone), retention.project_retention(alone)
    one, other = {"kind": "real", "url": "https://metrics.example.com"}, {"kind": "sandbox", "scenario": "demo"}
    for each, provenance in ((projection, one), (curve, other)):
        each.attrs["gamelens"] = Receipt(version="0.1.0").to_json() | {"provenance": provenance}
    with pytest.warns(UserWarning, match="numbers of different sources"):
        figure = charts.draw_projection(projection, curve)
    assert "partly demo data (metrics.example.com and sandbox, scenario demo)" in charts.alt_text(figure)
    assert figure.layout.meta["badge"] == "partly demo data"


def bands(figure: go.Figure) -> list[str]:
    """Return the names of the curves of *figure* that have a band."""
    return [trace.legendgroup for trace in figure.data if trace.fill == "toself"]


@pytest.fixture(scope="module")
def six(alone: DataFrame) -> DataFrame:
    """Six games, of which each has more installs than the one before."""
    games = [
        alone.assign(game=f"Game {n}", installs=alone["installs"] * n, returned=alone["returned"] * n)
        for n in range(1, 7)
    ]
    frame = pd.concat(games, ignore_index=True).astype({"game": "category"})
    frame.attrs = alone.attrs
    return frame


@pytest.mark.wide
def test_bands_that_would_cover_each_other_are_not_drawn(six: DataFrame) -> None:
    """Of six curves the three with the most installs have one, as the subtitle says; hovering shows each interval."""
    curve, ahead = retention.average_curve(six, by="game"), retention.project_retention(six, by="game")
    figures = {
        "curve": charts.draw_curve(curve, by="game"),
        "projection": charts.draw_projection(ahead, curve, by="game"),
        "ltv": charts.draw_ltv(retention.ltv(six, money_of(six), by="game", to=30), by="game"),
    }
    for name, figure in figures.items():
        assert sorted(bands(figure)) == ["Game 4", "Game 5", "Game 6"], name
        assert "largest 3" in figure.layout.title.text, name
        named = {trace.name for trace in figure.data if trace.hovertemplate and "customdata[1]" in trace.hovertemplate}
        assert named == {f"Game {n}" for n in range(1, 7)}, name


def test_three_curves_keep_their_bands(six: DataFrame) -> None:
    """The subtitle then does not speak of the largest."""
    few = six[six["game"].isin(["Game 1", "Game 2", "Game 6"])]
    few.attrs = six.attrs
    curve = retention.average_curve(few, by="game")
    for figure in (
        charts.draw_curve(curve, by="game"),
        charts.draw_projection(retention.project_retention(few, by="game")),
    ):
        assert sorted(bands(figure)) == ["Game 1", "Game 2", "Game 6"]
        assert "largest" not in figure.layout.title.text
