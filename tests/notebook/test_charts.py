"""Figures of tidy frames: values, titles, colours, gaps and hostile names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, health, retention
from gamelens.errors import BadQuery
from gamelens.notebook import charts
from gamelens.notebook.charts.cohort_charts import MOST_ROWS
from support.tidy_frames import tidy_frame

pytestmark = pytest.mark.slow


def _texts(figure: go.Figure) -> list[str]:
    """Return the texts of all annotations of *figure*."""
    return [annotation.text for annotation in figure.layout.annotations]


def _game_frame(players: DataFrame, titles: Sequence[str]) -> DataFrame:
    """Return *players* once per title, as games of those titles."""
    parts = [players.assign(game_id=str(place), game=title) for place, title in enumerate(titles)]
    frame = pd.concat(parts, ignore_index=True).astype({"game_id": "category", "game": "category"})
    frame.attrs = players.attrs
    return frame


def test_lines_over_time_bars_for_one_bucket(networks: DataFrame) -> None:
    """`plot` draws lines over several buckets and bars for one."""
    assert {trace.type for trace in networks.lens.plot().data} == {"scatter"}
    assert {trace.type for trace in networks[:3].lens.plot().data} == {"bar"}


def test_retention_is_cohorts_or_with_a_split_curves(cohorts: DataFrame) -> None:
    """`plot` draws a retention frame as a heatmap, or as curves if it is split."""
    assert cohorts.lens.plot().data[0].type == "scatter"
    pooled = retention.pooled(cohorts)
    assert pooled.lens.plot().data[0].type == "heatmap"


def test_the_main_number_is_what_the_metric_sorts_by(networks: DataFrame) -> None:
    """The number drawn by default is the sort field of the metric (Wire 2.10, Row order)."""
    assert charts.main_value(networks) == "ilrd_revenue"


def test_title_and_unit_come_from_the_receipt(networks: DataFrame) -> None:
    """Title and unit come from the metric and the dimensions of the receipt."""
    assert networks.lens.plot().layout.title.text.startswith("<b>Ad revenue by network</b>")
    assert "USD per day" in networks.lens.plot().layout.title.text


def test_the_source_stands_under_the_figure(networks: DataFrame) -> None:
    """The last annotation is the source line."""
    assert _texts(networks.lens.plot())[-1].startswith("Source: gamelens 0.1.0")


def test_a_frame_of_ones_own_has_the_source_that_is_named(networks: DataFrame) -> None:
    """`source=` of lines, bars and tables; the frame itself stays without a receipt."""
    own = networks.groupby("timestamp")["ilrd_revenue"].sum().reset_index()
    day = own.head(1).assign(what="all")
    own.attrs, day.attrs = {}, {}
    lines = charts.draw_lines(own, "ilrd_revenue", source=networks)
    bars = charts.draw_bars(day, "ilrd_revenue", by="what", source=networks)
    texts = (_texts(lines)[-1], _texts(bars)[-1], str(own.lens.table(source=networks)).splitlines()[-1])
    assert all(text.startswith("Source: gamelens 0.1.0") for text in texts)
    assert not own.lens.receipt


def test_null_is_called_unknown(networks: DataFrame) -> None:
    """The line of the null group is labelled (unknown)."""
    assert "(unknown)" in [trace.name for trace in networks.lens.plot().data]


@pytest.mark.parametrize("rows", [6, 3])
def test_hostile_names_are_text(networks: DataFrame, rows: int) -> None:
    """A hostile name is escaped in lines and in bars."""
    figure = networks[:rows].lens.plot()
    page = json.dumps(json.loads(plotly.io.to_json(figure)))
    assert "<img" not in page
    assert "&#60;img" in page


def test_a_hostile_title_is_text(networks: DataFrame) -> None:
    """A title given by the caller is escaped like a name."""
    assert "<script" not in charts.draw_lines(networks, title="<script>").layout.title.text


def test_a_game_keeps_its_colour_in_every_figure(players: DataFrame) -> None:
    """A game has the same colour alone and beside another one."""
    both = charts.draw_lines(_game_frame(players, ["Tile", "Farm"]))
    alone = charts.draw_lines(_game_frame(players, ["Farm"]))
    colours = {trace.name: trace.line.color for trace in both.data}
    assert alone.data[0].line.color == colours["Farm"] != colours["Tile"]


def test_a_missing_day_of_a_count_is_drawn_as_zero(networks: DataFrame) -> None:
    """A bucket without a row is 0 for a count."""
    figure = charts.draw_lines(networks[1:], "ilrd_revenue")
    assert next(trace for trace in figure.data if trace.name == "AdMob").y.tolist() == [0, 1]


def test_a_missing_day_of_a_mean_is_left_open(networks: DataFrame) -> None:
    """A bucket without a row is a gap in the line of a mean."""
    figure = charts.draw_lines(networks[1:], "ilrd_revenue_mean")
    assert pd.isna(next(trace for trace in figure.data if trace.name == "AdMob").y[0])


def test_beyond_the_top_nothing_is_known_to_be_zero(networks: DataFrame) -> None:
    """In a truncated frame a bucket without a row is a gap, not 0."""
    networks.attrs["gamelens"]["truncated"] = True
    figure = charts.draw_lines(networks[1:], "ilrd_revenue")
    assert pd.isna(next(trace for trace in figure.data if trace.name == "AdMob").y[0])


def test_an_unfinished_bucket_is_dotted_and_said(players: DataFrame) -> None:
    """The line to an unfinished bucket is dotted, and the title says why."""
    players.attrs["gamelens"]["clipped"] = "2026-11-16T00:00Z/2026-11-17T09:00Z"
    figure = players.lens.plot()
    assert [trace.line.dash for trace in figure.data] == [None, "dot"]
    assert "dotted: incomplete day" in figure.layout.title.text


def test_more_than_eight_lines_stay_pale_and_unnamed(players: DataFrame) -> None:
    """Only the eight largest lines are in the legend."""
    figure = charts.draw_lines(_game_frame(players, [f"Game {place}" for place in range(12)]))
    assert sum(trace.showlegend for trace in figure.data) == 8


def test_rows_are_never_added_up_on_the_way(networks: DataFrame) -> None:
    """Several rows in one bucket raise `BadQuery`, since a mean cannot be added up."""
    two = pd.concat([networks, networks])
    with pytest.raises(BadQuery, match="several rows in one bucket"):
        charts.draw_lines(two, "ilrd_revenue_mean", by="ilrd_network_name")


def test_bars_of_several_buckets_are_refused(networks: DataFrame) -> None:
    """Bars of several buckets raise `BadQuery` that names `every='all'`."""
    with pytest.raises(BadQuery, match="every='all'"):
        charts.draw_bars(networks)


def test_bars_are_labelled_with_readable_numbers(networks: DataFrame) -> None:
    """Bars carry their values as money."""
    bars = charts.draw_bars(ads.earnings(networks, by="ilrd_network_name"), "ad_revenue", by="ilrd_network_name")
    assert list(bars.data[0].text) == ["$0.20", "$1.00", "$2.00"]


def test_cohorts_are_blank_where_the_age_is_not_reached(cohorts: DataFrame) -> None:
    """A cell whose age is not reached is blank and without hover text."""
    heatmap = charts.draw_cohorts(cohorts.lens.matrix()).data[0]
    assert pd.isna(heatmap.z[1][1])
    assert not heatmap.hoverongaps


def test_cohorts_of_a_split_name_value_and_day(cohorts: DataFrame) -> None:
    """The rows of a split cohort figure are called by value and day."""
    assert charts.draw_cohorts(cohorts.lens.matrix("platform")).layout.yaxis.ticktext[0] == "android · 16 Nov 2026"


def test_two_hundred_install_days_fit_a_page(cohorts: DataFrame) -> None:
    """With 200 install days rows are flatter and few are labelled, below 1600 pixels."""
    matrix = cohorts.lens.matrix()
    many = pd.concat([matrix] * 100)
    figure = charts.draw_cohorts(many)
    assert figure.layout.height < 1600
    assert len(figure.layout.yaxis.ticktext) <= MOST_ROWS
    assert "from 16 Nov 2026 to 17 Nov 2026" in charts.alt_text(figure)


def test_curves_beyond_the_eighth_are_counted(cohorts: DataFrame) -> None:
    """With nine curves the title says that the largest eight are drawn."""
    curve = retention.average_curve(cohorts)
    many = pd.concat([curve.assign(platform=f"p{place}") for place in range(9)], ignore_index=True)
    assert "largest 8 of 9" in charts.draw_curve(many, by="platform").layout.title.text


def test_one_day_is_a_point_in_every_figure_of_days(players: DataFrame) -> None:
    """A line of one day is drawn as a point."""
    one = _game_frame(players[:1], ["Tile"])
    assert "markers" in charts.draw_panels(one).data[0].mode
    one.attrs["gamelens"] |= {"clipped": "2026-11-16T00:00Z/2026-11-16T09:00Z"}
    assert [trace.mode for trace in charts.draw_lines(one).data][1] == "markers"


def test_a_curve_has_its_interval(cohorts: DataFrame) -> None:
    """A retention curve is drawn with the band of its interval."""
    band, line = charts.draw_curve(retention.average_curve(cohorts)).data
    assert band.fill == "toself"
    assert list(line.y) == [15 / 35, 2 / 14]


def test_bands_show_every_game_and_metric(players: DataFrame) -> None:
    """A figure of bands has a panel for each game, and the metric in its title."""
    daily = health.measured(_game_frame(players, ["Tile", "Farm"]), {"user_unique": "Active players"})
    figure = charts.draw_bands(health.score_days(daily))
    assert _texts(figure)[:2] == ["<b>Tile</b>  ", "<b>Farm</b>  "]
    assert "Active players" in figure.layout.title.text


def test_a_segment_has_a_band_of_its_own(players: DataFrame) -> None:
    """A segment has a panel called by game and value, shares in percent."""
    daily = health.measured(_game_frame(players, ["Tile"]), {"user_unique": "Active players"})
    parts = [
        health.score_days(daily).assign(dimension=name, segment=value)
        for name, value in ((None, None), ("platform", "ios"), ("platform", None))
    ]
    figure = charts.draw_bands(pd.concat(parts, ignore_index=True).assign(kind="share"))
    assert _texts(figure)[:3] == ["<b>Tile</b>  ", "<b>Tile · ios</b>  ", "<b>Tile · (unknown)</b>  "]
    assert figure.layout.yaxis.tickformat == ",.0%"


def test_what_several_days_show_is_a_line_over_them() -> None:
    """Days are drawn as they are, and below the band of their level a thick line; a flagged day is a diamond."""
    days = pd.date_range("2026-11-01", periods=10, tz="UTC").astype("datetime64[us, UTC]")
    scores = DataFrame({"timestamp": days, "game": "Tile", "metric": "Day 1 retention", "kind": "share"})
    scores["value"] = [0.4] * 7 + [0.3] * 3
    scores["part"], scores["whole"] = [40.0] * 7 + [32.0, 24.0, 34.0], 100.0
    scores["expected"], scores["low"], scores["high"] = 0.4, [0.1] * 9 + [0.35], [0.7] * 9 + [0.45]
    scores["z"], scores["window_days"] = -4.0, [1] * 9 + [3]
    scores["is_flagged"], scores["since"] = [False] * 8 + [True] * 2, days[7]
    figure = charts.draw_bands(scores)
    day_band, level_band, line, level, diamonds = figure.data
    assert [max(band.y) for band in (day_band, level_band)] == [0.7, 0.45]
    assert ({*day_band.x}, {*level_band.x}) == ({*days[:7]}, {*days[7:]})
    assert [*line.y] == pytest.approx([0.4] * 7 + [0.3, 0.3, 0.34])
    assert ({*pd.to_datetime(level.x, utc=True)}, {*level.y}) == ({*days[7:]}, {0.3})
    assert not len(diamonds.x)
    assert "thick where several days together show it" in figure.layout.title.text
    of_days = charts.draw_bands(scores.assign(window_days=1))
    assert [*pd.to_datetime(of_days.data[-1].x, utc=True)] == [*days[8:]]
    assert "thick" not in of_days.layout.title.text


@pytest.mark.wide
def test_panels_are_the_largest_24(players: DataFrame) -> None:
    """With 30 games the figure has the 24 largest, and the title says so."""
    figure = charts.draw_panels(_game_frame(players, [f"Game {place}" for place in range(30)]))
    assert len([trace for trace in figure.data if trace.name]) == charts.MOST_PANELS == 24
    assert "largest 24 of 30" in figure.layout.title.text


def test_a_panel_names_its_game_and_the_last_value(players: DataFrame) -> None:
    """A panel of one game is headed by its title and the last value, 12 players."""
    assert _texts(charts.draw_panels(_game_frame(players, ["Tile"])))[0] == "<b>Tile</b>  12"


@pytest.mark.parametrize(("is_same_scale", "scales"), [(False, [1.1 * 12, 1.1 * 24]), (True, [1.1 * 24] * 2)])
def test_panels_have_their_own_scale_or_one(players: DataFrame, is_same_scale: bool, scales: list[float]) -> None:
    """Panels have scales of their own, or one with `is_same_scale`, and a shared time axis."""
    frame = _game_frame(players, ["Tile", "Farm"])
    frame["user_unique"] = [10, 12, 20, 24]
    figure = charts.draw_panels(frame, is_same_scale=is_same_scale)
    tops = [figure.layout[name].range[1] for name in ("yaxis", "yaxis2")]
    assert sorted(tops) == pytest.approx(scales)
    assert figure.layout.xaxis2.matches == "x"


def test_panels_show_negative_values(networks: DataFrame) -> None:
    """The axis of a panel reaches below 0 for negative values."""
    figure = charts.draw_panels(
        networks.assign(ilrd_revenue=[-1.0, 2.0, 3.0] * 2), "ilrd_revenue", by="ilrd_network_name"
    )
    assert min(figure.layout[f"yaxis{place}"].range[0] for place in ("", "2", "3")) == pytest.approx(-1.1)


def test_names_that_look_the_same_stay_two(networks: DataFrame) -> None:
    """Names that are shortened to the same text stay separate lines and bars."""
    names = ["a" + "x" * 60 + "b" + "y" * 30, "a" + "x" * 61 + "b" + "y" * 30, "z"]
    networks["ilrd_network_name"] = pd.Categorical(names * 2)
    lines = networks.lens.plot().data
    assert len({trace.legendgroup for trace in lines}) == 3
    assert list(networks[:3].lens.plot().data[0].y) == [0, 1, 2]


@pytest.mark.parametrize("many", [3, 8])
def test_a_long_headline_and_legend_have_room(players: DataFrame, many: int) -> None:
    """Long titles and legends make the figure higher, so that nothing overlaps.

    At 800 pixels wide: two lines of title, one below, and a row of the legend for every two long names.
    """
    names = [f"A game with a title as long as this one, number {place}" for place in range(many)]
    short = charts.draw_lines(_game_frame(players, ["Tile", "Farm"]))
    long = charts.draw_lines(_game_frame(players, names), title="Words " * 20)
    more = 22 * (1 + -(-many // 2) - 1)
    assert long.layout.margin.t - short.layout.margin.t == more
    assert long.layout.height - short.layout.height == more


@pytest.mark.parametrize("draw", [charts.draw_lines, charts.draw_bars, charts.draw_panels])
def test_an_empty_frame_is_a_figure_that_says_so(networks: DataFrame, draw: Callable[..., go.Figure]) -> None:
    """An empty frame gives a figure that says it has no data."""
    assert "no data in this interval" in _texts(draw(networks[:0], by="ilrd_network_name"))


def test_empty_curves_and_cohorts_say_so(cohorts: DataFrame) -> None:
    """Empty curves and cohorts give figures that say they have no data."""
    assert "no data in this interval" in _texts(charts.draw_curve(retention.average_curve(cohorts[:0])))
    assert "no data in this interval" in _texts(charts.draw_cohorts(cohorts[:0].lens.matrix()))


def test_empty_scores_say_so(players: DataFrame) -> None:
    """Empty scores give a figure that says it has no data."""
    scores = health.score_days(health.measured(players[:0], {"user_unique": "Active players"}))
    assert "no data in this interval" in _texts(charts.draw_bands(scores))


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("every", "tick", "tooltip", "of_mean", "first"),
    [
        ("day", "%-d %b", "%a %-d %b %Y", "", "2 Nov 2026"),
        ("week", "%-d %b", "Week of %-d %b %Y", ", by week", "2 Nov 2026"),
        ("month", "%b %Y", "%B %Y", ", by month", "Nov 2026"),
    ],
)
@pytest.mark.parametrize("draw", [charts.draw_lines, charts.draw_panels])
def test_a_time_axis_names_its_bucket(
    draw: Callable[..., go.Figure], every: str, tick: str, tooltip: str, of_mean: str, first: str
) -> None:
    """In ticks, tooltips, subtitle and alternative text: a month is not its first day."""
    days = ["2026-11-02", "2026-12-07"]
    frame = tidy_frame(
        "ilrd_revenue", timestamp=days, game=["Tile", "Tile"], ilrd_revenue=[3.0, 4.0], ilrd_revenue_mean=[0.5, 0.25]
    )
    frame.attrs["gamelens"]["asked"] |= {"every": every}
    figure = draw(frame, "ilrd_revenue")
    assert (figure.layout.xaxis.tickformat, figure.layout.xaxis.hoverformat) == (tick, tooltip)
    assert f">USD per {every}" in figure.layout.title.text
    of_panels = ", each on its own scale, number: latest value"
    assert f">USD{of_mean}<" in draw(frame, "ilrd_revenue_mean").layout.title.text.replace(of_panels, "")
    assert f"from {first} to " in figure.layout.meta["alt"]


def two_weeks() -> tuple[DataFrame, DataFrame]:
    """Return one week of two games and the one before."""
    days = [day for day in pd.date_range("2026-11-02", periods=14).strftime("%Y-%m-%d") for _ in range(2)]
    frame = tidy_frame("user_unique", timestamp=days, game=["A", "B"] * 14, user_unique=[*range(28)])
    middle = pd.Timestamp("2026-11-09", tz="UTC")
    return frame[frame.timestamp >= middle], frame[frame.timestamp < middle]


@pytest.mark.parametrize("draw", [charts.draw_lines, charts.draw_panels])
def test_the_period_before_is_a_pale_line_on_the_same_days(draw: Callable[..., go.Figure]) -> None:
    this, before = two_weeks()
    figure = draw(this, by="game", previous=before)
    pale = [trace for trace in figure.data if trace.line.color.startswith("rgba(")]
    assert len(pale) == 2
    assert [*pd.DatetimeIndex(pale[0].x)] == [*this.timestamp.drop_duplicates()]
    assert [*pale[0].y] == [1, 3, 5, 7, 9, 11, 13]
    assert ", faint: 2 Nov 2026 to 8 Nov 2026" in figure.layout.title.text


def test_days_with_a_note_are_shaded_where_they_are_about_the_game(tmp_path: Path) -> None:
    """Notes about other days are not drawn, and names of notes are escaped."""
    this, _ = two_weeks()
    notes = tmp_path / "notes.toml"
    entries = [("<b>all", "2026-11-10", ""), ("of one", "2026-11-11", 'game = "A"'), ("none", "2001-01-01", "")]
    notes.write_text(
        "".join(
            f'[[annotation]]\nkind = "release"\nname = "{name}"\nfrom = {day}\nto = {day}\n{game}\n'
            for name, day, game in entries
        )
    )
    panels = charts.draw_panels(this, by="game", notes=notes)
    assert len(panels.layout.shapes) == 3
    assert "shaded: " in panels.layout.title.text
    assert "<b>all" not in str(panels.to_json())
    assert len(this.lens.plot(notes=notes).layout.shapes) == 2
