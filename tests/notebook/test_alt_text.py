"""Alternative text of figures, computed from their data (WCAG 2.2, 1.1.1)."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest
from pandas import DataFrame

from gamelens.analysis import health, retention
from gamelens.notebook import charts

pytestmark = pytest.mark.slow
SOURCE = "Source: gamelens 0.1.0 · last 2 complete days · data as of 18 Nov 2026 09:00 UTC."


def test_lines_name_range_leader_and_last_values(networks: DataFrame) -> None:
    """The text of lines has title, unit, range, the leader, every last value and the source."""
    assert charts.alt_text(networks.lens.plot()) == (
        "Ad revenue by network. USD per day. 3 lines from 16 Nov 2026 to 17 Nov 2026, AdMob leads: AdMob ends at "
        f"$1.00, (unknown) ends at $0.50, ‹img src=x onerror=alert(1)› ends at $0.10. {SOURCE}"
    )


def test_the_last_value_is_of_a_whole_bucket(players: DataFrame) -> None:
    """An unfinished last bucket is left out: the text ends with the one before."""
    players.attrs["gamelens"]["clipped"] = "2026-11-16T00:00Z/2026-11-17T09:00Z"
    assert "1 line on 16 Nov 2026: all ends at 10." in charts.alt_text(players.lens.plot())


def test_bars_name_the_largest_first(networks: DataFrame) -> None:
    """The text of bars has every value, the largest first."""
    text = charts.alt_text(networks[:3].lens.plot())
    assert "3 bars: AdMob $1.00, (unknown) $0.50, ‹img src=x onerror=alert(1)› $0.10." in text


def test_beyond_five_the_rest_is_counted(networks: DataFrame) -> None:
    """After five values the text has the number of the others."""
    many = pd.concat([networks[:1].assign(ilrd_network_name=f"n{place}") for place in range(9)], ignore_index=True)
    many.attrs = networks.attrs
    assert "n4 $1.00, and 4 more." in charts.alt_text(charts.draw_bars(many))


def test_cohorts_say_highest_and_lowest(cohorts: DataFrame) -> None:
    """The text of a cohort figure has its highest and lowest cell with day and age."""
    text = charts.alt_text(charts.draw_cohorts(retention.pooled(cohorts).lens.matrix()))
    assert "3 cells from 16 Nov 2026 to 17 Nov 2026: highest 42.9% (16 Nov 2026, D1) and lowest 14.3%" in text


def test_curves_say_ages(cohorts: DataFrame) -> None:
    """The text of a retention curve has its ages and its last value."""
    text = charts.alt_text(charts.draw_curve(retention.average_curve(cohorts)))
    assert "1 line from D1 to D2: all ends at 14.3%." in text


def test_panels_say_every_last_value(networks: DataFrame) -> None:
    """The text of small multiples has the leader and every last value."""
    text = charts.alt_text(charts.draw_panels(networks, "ilrd_revenue", by="ilrd_network_name"))
    assert "3 lines from 16 Nov 2026 to 17 Nov 2026, AdMob leads: AdMob ends at $1.00" in text


def test_bands_say_what_was_flagged(players: DataFrame) -> None:
    """The text of bands has every flagged day, or says that nothing is flagged."""
    scores = health.score_days(health.measured(players.assign(game="Tile"), {"user_unique": "Active players"}))
    assert "1 panel, nothing flagged." in charts.alt_text(charts.draw_bands(scores))
    scores.loc[0, "is_flagged"] = True
    assert "1 panel, flagged: Active players of Tile on 16 Nov 2026." in charts.alt_text(charts.draw_bands(scores))


def test_a_name_in_two_traces_is_one_line() -> None:
    """Two traces of one name, as of counted and projected values, are one line."""
    figure = go.Figure([go.Scatter(x=[1, 2], y=[3, 4], name="a"), go.Scatter(x=[2, 5], y=[4, 6], name="a")])
    assert charts.alt_text(figure) == "1 line from 1 to 5: a ends at 6."


def test_a_question_keeps_its_mark(networks: DataFrame) -> None:
    """A title that ends with a question mark gets no full stop."""
    assert charts.alt_text(charts.draw_lines(networks, title="Who pays?")).startswith("Who pays? USD per day.")


def test_an_empty_figure_says_so(networks: DataFrame) -> None:
    """The text of a figure without data says so, and has the source."""
    assert ". No data in this interval. Source" in charts.alt_text(networks[:0].lens.plot())


def test_any_plotly_figure_has_a_text() -> None:
    """A figure made with plotly alone has a text, without the markup of its title."""
    figure = go.Figure(go.Bar(x=["a", "b"], y=[1, 2]), layout={"title": "Mine<br><sub>and more</sub>"})
    assert charts.alt_text(figure) == "Mine and more. 2 bars: a 1, b 2."
    assert charts.alt_text(go.Figure()) == "A figure."


def test_a_name_cannot_leave_an_attribute(networks: DataFrame) -> None:
    """The text has no characters that end an HTML attribute, even if it is not escaped."""
    text = charts.alt_text(charts.draw_lines(networks, title='"><script>alert(1)</script>'))
    assert not {*"<>\"'`"} & {*text}


@pytest.mark.parametrize(
    "trace",
    [
        {"type": "bar", "x": [1, 2], "y": ["low", "high"]},
        {"type": "scatter", "x": ["a", 1], "y": [1, 2]},
        {"type": "heatmap", "z": [[1, 2]]},
        {"type": "table"},
    ],
)
def test_a_figure_that_cannot_be_described_has_its_title(trace: dict[str, Any]) -> None:
    """The text of traces with data of other kinds is the figure's title."""
    assert charts.alt_text({"data": [trace], "layout": {"title": {"text": "Mine"}}}) == "Mine."


def test_the_json_of_a_figure_has_the_same_text(networks: DataFrame) -> None:
    """A page holds figures as JSON with numbers in base64: their text is that of the figure."""
    figure = go.Figure(go.Bar(x=["a", "b"], y=pd.Series([1.0, 2.0]).to_numpy()), layout={"title": "Mine"})
    grid = go.Figure(go.Heatmap(x=["a", "b"], y=["c"], z=pd.DataFrame({"a": [1.0], "b": [2.0]}).to_numpy()))
    for each in (figure, grid, networks.lens.plot()):
        assert charts.alt_text(json.loads(each.to_json())) == charts.alt_text(each)
