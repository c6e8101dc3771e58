"""Narrow figures: the layout of a figure for a phone."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame
from plotly.subplots import make_subplots

from gamelens.notebook import charts
from gamelens.notebook.reports.narrow_figures import NARROW, flat, narrow

LONG = "Ad revenue per player per day in every country of the portfolio"


def as_json(figure: go.Figure) -> dict[str, Any]:
    """Return *figure* as plain JSON values."""
    values: dict[str, Any] = figure.to_plotly_json()
    return {"data": [dict(trace) for trace in values["data"]], "layout": dict(values["layout"])}


def bars(*, title: str) -> dict[str, Any]:
    """Return a bar chart of one row, with the given title."""
    frame = DataFrame({"game": ["Tile", "Ember"], "installs": [7, 5]})
    return as_json(charts.draw_bars(frame, "installs", by="game", title=title))


def test_it_is_as_wide_as_a_phone() -> None:
    """Width and margins are those of a narrow screen, and the wide figure stays as it was."""
    wide = bars(title=LONG)
    before = repr(wide)
    assert narrow(wide)["layout"]["width"] == NARROW
    assert repr(wide) == before


def test_a_long_title_takes_more_lines_and_more_room() -> None:
    """Words of a title are kept, in more lines, and the drawing begins below them."""
    short, long = (narrow(bars(title=title))["layout"] for title in ("Short", LONG))
    assert long["title"]["text"].count("<br>") > short["title"]["text"].count("<br>")
    assert "portfolio" in long["title"]["text"]
    assert long["margin"]["t"] > short["margin"]["t"]


def test_panels_stand_below_each_other() -> None:
    """Panels side by side get the whole width each, the first one on top."""
    figure = make_subplots(rows=1, cols=3)
    for column in (1, 2, 3):
        figure.add_trace(go.Bar(x=[1], y=[2]), row=1, col=column)
    layout = narrow(as_json(figure))["layout"]
    assert [layout[name]["domain"] for name in ("xaxis", "xaxis2", "xaxis3")] == [[0, 1]] * 3
    tops = [layout[name]["domain"][1] for name in ("yaxis", "yaxis2", "yaxis3")]
    assert tops == sorted(tops, reverse=True)
    assert len(set(tops)) == 3


def test_names_from_outside_stay_escaped() -> None:
    """A broken title has its entities, and no markup of a name."""
    text = narrow(bars(title="<img src=x onerror=alert(1)> & more"))["layout"]["title"]["text"]
    assert "<img" not in text


def test_a_legend_of_many_rows_is_shown_as_a_whole() -> None:
    """The limit of a wide legend, two rows, is not that of a narrow one."""
    arms = [f"{name} {arm}" for name in ("first_gate", "starter_price") for arm in ("control", "half_price")]
    frame = DataFrame({"timestamp": ["2026-11-01"] * 4, "arm": arms, "installs": [1, 2, 3, 4]})
    frame["timestamp"] = frame["timestamp"].astype("datetime64[us, UTC]")
    wide = as_json(charts.draw_lines(frame, "installs", by="arm"))
    assert narrow(wide)["layout"]["legend"]["maxheight"] == 1


def test_no_name_beside_a_row_covers_the_next() -> None:
    """Rows are as far apart as the lines of the longest name need."""
    long = DataFrame({"path": [f"user > progression > event_{number}" for number in range(8)], "sessions": range(8)})
    short = DataFrame({"path": [str(number) for number in range(8)], "sessions": range(8)})
    layouts = [narrow(as_json(charts.draw_bars(frame, "sessions", by="path")))["layout"] for frame in (long, short)]
    drawn = [layout["height"] - layout["margin"]["t"] - layout["margin"]["b"] for layout in layouts]
    lines = max(text.count("<br>") + 1 for text in layouts[0]["yaxis"]["ticktext"])
    assert drawn[0] >= 8 * 13 * lines > drawn[1]


def test_ticks_stay_apart_and_narrow_cells_have_no_text() -> None:
    """Of near ages the highest is kept; a matrix of ten columns shows colours alone, one of three its shares."""
    axis = {
        "tickvals": [1, 2, 3, 4, 5, 6, 7, 14, 21, 28],
        "ticktext": [f"D{age}" for age in (*range(1, 8), 14, 21, 28)],
    }
    assert narrow({"layout": {"xaxis": axis, "yaxis": {}}})["layout"]["xaxis"]["ticktext"] == [
        "D3",
        "D7",
        "D14",
        "D21",
        "D28",
    ]
    for columns, has_texts in ((10, False), (3, True)):
        cells = {"type": "heatmap", "x": [f"D{age}" for age in range(columns)], "texttemplate": "%{z:.0%}"}
        assert ("texttemplate" in narrow({"data": [cells]})["data"][0]) == has_texts


def test_a_note_beside_a_point_is_one_line() -> None:
    """The interval below a projected number has no room; the heading of a panel keeps its lines."""
    notes = [{"x": 90, "y": 1, "text": "<b>D90 1.1%</b><br>0.8% to 1.5%"}, {"xref": "x domain", "text": "Game<br>7"}]
    layout = narrow({"layout": {"xaxis": {}, "yaxis": {}, "annotations": notes}})["layout"]
    assert [note["text"] for note in layout["annotations"]] == ["<b>D90 1.1%</b>", "Game<br>7"]


def test_lines_become_lower_and_rows_with_names_keep_their_height() -> None:
    """A figure of lines fills the width of a printed page, and names beside rows stay apart."""
    line, row = {"layout": {"height": 436, "xaxis": {}, "yaxis": {}}}, bars(title="Short")
    assert flat(line)["layout"]["height"] == 332
    assert flat(row)["layout"].get("height") == row["layout"].get("height")
    assert line["layout"]["height"] == 436
