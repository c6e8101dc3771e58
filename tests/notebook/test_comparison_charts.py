"""Figures of revenue changes, ad funnels, experiments, payback and holidays."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from itertools import pairwise

import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, decomposition, experiments, outside_data
from gamelens.notebook import charts

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
DAYS = pd.date_range("2026-11-01", periods=28, tz="UTC").astype("datetime64[us, UTC]")


def parts(money: float = 3.0) -> DataFrame:
    """Return the revenue change of a hostile and a null network, to *money* of the first."""

    def period(amounts: dict[str | None, float]) -> DataFrame:
        """Return impressions and *amounts* of each network."""
        counts = pd.array([100] * len(amounts), dtype="Int64")
        names = pd.Categorical(list(amounts))
        frame = DataFrame(
            {"ilrd_network_name": names, "ilrd_revenue_event_count": counts, "ilrd_revenue": [*amounts.values()]}
        )
        frame.attrs["gamelens"] = {"asked": {"metric": "ilrd_revenue"}, "requests": 1}
        return frame

    before, after = period({HOSTILE: 1.0, None: 2.0}), period({HOSTILE: money, None: 2.0})
    return decomposition.decompose(before, after, by="ilrd_network_name")


def actions() -> DataFrame:
    """Return ad events of one day by action."""
    names = pd.Categorical(["request", "loaded", "show", "clicked"])
    return DataFrame({"ad_action": names, "event_count": pd.array([100, 90, 60, 3], dtype="Int64")})


def shares() -> DataFrame:
    """Return successes and players of a control and a variant with a hostile name."""
    return DataFrame(
        {
            "measure": pd.Categorical(["D1 retention"] * 2),
            "ab_variant_id": pd.Categorical(["ctrl", HOSTILE]),
            "players": pd.array([1000, 1000], dtype="Int64"),
            "successes": pd.array([400, 300], dtype="Int64"),
        }
    )


def roas() -> DataFrame:
    """Return the return on spend of a publisher with a hostile name."""
    spend = DataFrame({"timestamp": DAYS[:1], "install_publisher": pd.Categorical([HOSTILE]), "spend": [10.0]})
    money = DataFrame({"timestamp": DAYS[:2], "installed_on": ["2026-11-01"] * 2, "install_publisher": [HOSTILE] * 2})
    return outside_data.return_on_spend(spend, money.assign(revenue=[4.0, 8.0]), ages=[0, 1])


def special() -> DataFrame:
    """Return a holiday with a hostile name and half more players than other days."""
    frame = DataFrame({"timestamp": DAYS, "user_unique": [100.0] * 27 + [150.0], "holiday": [None] * 27 + [HOSTILE]})
    frame = frame.assign(country_code="US").astype({"country_code": "category"})
    return outside_data.compare_with_weekdays(frame, "user_unique")


DRAWN: dict[str, tuple[Callable[..., object], Callable[[], DataFrame]]] = {
    "decomposition": (charts.draw_decomposition, parts),
    "contributions": (lambda frame: charts.draw_contributions(frame, by="ilrd_network_name"), parts),
    "funnel": (charts.draw_funnel, lambda: ads.waterfall(actions())),
    "differences": (charts.draw_differences, lambda: experiments.compare(shares())),
    "chances": (charts.draw_chances, lambda: experiments.probability_best(shares(), draws=100)),
    "payback": (charts.draw_payback, roas),
    "occasions": (lambda frame: charts.draw_occasions(frame, by=["holiday", "country_code"]), special),
}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(("draw", "make"), DRAWN.values(), ids=DRAWN)
def test_hostile_names_are_text_and_nothing_is_lost(
    draw: Callable[..., go.Figure], make: Callable[[], DataFrame]
) -> None:
    """A hostile name is escaped in every figure, and the figure has data."""
    page = plotly.io.to_json(draw(make()), validate=True)
    assert "<img" not in json.dumps(json.loads(page))
    assert "no data in this interval" not in page


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(("draw", "make"), DRAWN.values(), ids=DRAWN)
def test_an_empty_frame_is_a_figure_that_says_so(draw: Callable[..., go.Figure], make: Callable[[], DataFrame]) -> None:
    """An empty frame gives a figure that says it has no data."""
    assert "no data in this interval" in [note.text for note in draw(make()[:0]).layout.annotations]


def test_the_bridge_leads_from_before_to_after() -> None:
    """The bridge starts at the revenue before and its steps lead to the revenue after."""
    bars = charts.draw_decomposition(parts()).data[0]
    assert bars.y[0] + sum(bars.y[1:4]) == pytest.approx(5.0)
    assert [*bars.measure] == ["absolute", "relative", "relative", "relative", "total"]
    assert bars.text[-1] == "$5.00"


def test_small_steps_are_seen_and_the_cut_axis_is_said() -> None:
    """For small steps the axis does not start at 0, and the title says so."""
    figure = charts.draw_decomposition(parts(money=1.01))
    assert figure.layout.yaxis.range[0] > 0
    assert "does not start at 0" in figure.layout.title.text
    assert charts.draw_decomposition(parts()).layout.yaxis.range is None


def test_bars_of_each_network_add_up_to_its_change() -> None:
    """Volume, mix and price of a network add up to the marker of its total change."""
    *bars, change = charts.draw_contributions(parts(), by="ilrd_network_name").data
    sums = [sum(values) for values in zip(*(bar.x for bar in bars), strict=True)]
    assert sums == pytest.approx([*change.x])


def test_the_funnel_says_the_share_of_the_step_before() -> None:
    """A step is labelled with its share of the step before: 60 shown of 90 loaded."""
    bar = charts.draw_funnel(ads.waterfall(actions())).data[0]
    assert [*bar.y] == ["Requested", "Loaded", "Shown", "Clicked"]
    assert "66&#46;7&#37;" in bar.text[2] or "66.7" in bar.text[2]


def test_only_differences_beyond_chance_are_filled() -> None:
    """The marker of a difference is filled only if the difference is significant."""
    same = shares().assign(successes=pd.array([400, 401], dtype="Int64"))
    sure, unsure = (charts.draw_differences(experiments.compare(frame)).data[0] for frame in (shares(), same))
    assert sure.marker.color[0] == sure.marker.line.color[0]
    assert unsure.marker.color[0] != unsure.marker.line.color[0]
    assert sure.x[0] == pytest.approx(-10.0)
    one_of_many = charts.draw_differences(experiments.compare(shares()).assign(p_adjusted=0.2)).data[0]
    assert one_of_many.marker.color[0] != one_of_many.marker.line.color[0]


def test_shares_and_money_have_axes_of_their_own() -> None:
    """Differences of shares and of money have separate axes."""
    money = shares().assign(money=[4.0, 3.0], measure="revenue per player").drop(columns="successes")
    both = experiments.compare(shares(), money)
    assert {trace.xaxis for trace in charts.draw_differences(both).data} == {"x", "x2"}


def test_a_difference_without_an_interval_is_a_cross() -> None:
    """A difference whose bounds are NaN has a cross as marker instead of a dot."""
    rows = experiments.compare(shares()).assign(low=float("nan"), high=float("nan"))
    assert charts.draw_differences(rows).data[0].marker.symbol == ("x-thin",)


def test_paid_back_is_a_line_only_where_it_is_near() -> None:
    """The line of payback is drawn only if returns come near it."""
    assert len(charts.draw_payback(roas()).layout.shapes) == 1
    far = roas().assign(roas=[0.1, 0.2])
    assert len(charts.draw_payback(far).layout.shapes) == 0


def test_holidays_outside_the_range_of_their_weekday_are_filled() -> None:
    """The marker of a holiday is filled if it lies outside the range of its weekday."""
    figure = charts.draw_occasions(special(), by=["holiday", "country_code"])
    point = figure.data[-1]
    assert point.x[0] == pytest.approx(0.5)
    assert point.marker.color[0] == point.marker.line.color


def test_a_special_day_has_the_decimals_of_its_table() -> None:
    """Ad revenue per player of 0.21 is not 0 instead of about 0."""
    frame = DataFrame({"timestamp": DAYS, "ad_arpdau": [0.14] * 27 + [0.21], "holiday": [None] * 27 + ["New Year"]})
    frame = frame.assign(country_code="US").astype({"country_code": "category"})
    days = outside_data.compare_with_weekdays(frame, "ad_arpdau")
    (text,) = charts.draw_occasions(days, by=["holiday", "country_code"]).data[-1].text
    assert unescape(text) == "0.210 instead of about 0.140, +50.0%"


def drivers() -> DataFrame:
    """Return what moved the money of two games: a clear rise of one, and a small fall within variation."""
    return DataFrame(
        {
            "game": [HOSTILE, HOSTILE, "B"],
            "driver": ["players", "ecpm", "players"],
            "effect": [12.0, -2.0, 1.0],
            "p_adjusted": [0.01, 0.4, 0.9],
        }
    )


def test_what_moved_the_money_has_a_row_for_each_game_and_colours_what_is_clear() -> None:
    """The largest change is on top; its label has the money now and before, and what is usual is grey."""
    now, before = pd.Series({HOSTILE: 30.0, "B": 6.0}), pd.Series({HOSTILE: 20.0, "B": 5.0})
    figure = charts.draw_money_drivers(drivers(), now, before)
    top = figure.layout.yaxis.ticktext[-1]
    assert unescape(top).replace("<br>", " ").startswith(HOSTILE[:10])
    assert "$30.00, before $20.00" in unescape(top)
    colours = {bar.name: dict(zip(bar.y, bar.marker.color, strict=True)) for bar in figure.data}
    assert colours["players"][1] != colours["players"][0] == colours["ecpm"][1]
    assert f"{'B'} $6.00 against $5.00: players +$1.00" in charts.alt_text(figure)
    assert charts.draw_money_drivers(drivers().head(0), now, before).layout.xaxis.visible is False


def test_more_than_six_games_are_counted() -> None:
    many = pd.concat([drivers().head(1).assign(game=str(place), effect=float(place)) for place in range(9)])
    nothing = pd.Series(dtype="float64")
    figure = charts.draw_money_drivers(many, nothing, nothing)
    assert len(figure.layout.yaxis.ticktext) == 6
    assert "largest 6 of 9" in figure.layout.title.text


def test_a_bridge_leads_from_one_answer_to_the_other() -> None:
    """A cause that moved nothing has no step, and the steps have the opposite sign of the first less the second."""
    causes = DataFrame({"cause": ["late arrivals", "time zone", "bots"], "amount": [-216.0, 214.0, 0.0]})
    figure = charts.draw_causes(causes, 28_295, 28_297, names=("Other answer", HOSTILE))
    (bridge,) = figure.data
    assert [*bridge.y[:-1]] == [28_295, 216, -214]
    assert [*bridge.text] == ["28,295", "+216", "-214", "28,297"]
    assert "does not start at 0" in figure.layout.title.text
    assert HOSTILE not in "".join(bridge.x)


def test_what_players_bring_back_is_compared_with_what_they_cost() -> None:
    """A filled mark where the interval excludes 100%, a cross without one; a row without a value is left out."""
    returns = DataFrame(
        {
            "install_publisher": [HOSTILE, "B", "C", "D"],
            "spend": [900.0, 800.0, 700.0, 600.0],
            "cpi": [0.5, 2.0, 1.0, 1.0],
            "ltv_to_cpi": [0.1, 1.5, 0.9, None],
            "low": [0.05, 0.9, None, None],
            "high": [0.2, 3.0, None, None],
        }
    )
    (marks,) = charts.draw_returns(returns).data
    assert [*marks.x] == pytest.approx([10.0, 150.0, 90.0])
    assert [*marks.marker.symbol] == ["circle", "circle", "x-thin"]
    assert len({*marks.marker.color[1:]} | {marks.marker.color[0]}) == 2
    assert marks.marker.color[0] != marks.marker.color[1]
    assert "B, $800.00 at $2.00 an install: 150.0% of it comes back, 90.0% to 300.0%" in charts.alt_text(
        charts.draw_returns(returns)
    )
    assert charts.draw_returns(returns.tail(1)).layout.title.text


def test_what_to_do_stands_beside_an_effect() -> None:
    """The words of the column step, in bold where it is to decide."""
    compared = experiments.compare(shares(), arm="ab_variant_id")
    figure = charts.draw_differences(compared.assign(step="decide"))
    (words,) = (trace for trace in figure.data if trace.mode == "text")
    assert [*words.text] == ["  <b>decide now</b>"]
    assert words.x[0] >= compared["always_high"].max() * 100
    assert "decide" not in figure.layout.yaxis.ticktext[0]


def test_a_funnel_of_players_has_the_names_of_its_steps() -> None:
    steps = DataFrame(
        {
            "step": [1, 2],
            "name": ["user", HOSTILE],
            "players": [400, 300],
            "share": [1.0, 0.75],
            "of_previous": [None, 0.75],
        }
    )
    (bar,) = charts.draw_funnel(steps).data
    assert [*bar.x] == [400, 300]
    assert "75.0% of the step before" in unescape(bar.text[1])
    assert HOSTILE not in "".join(bar.y)


def test_the_step_that_clearly_loses_most_has_a_colour() -> None:
    """It alone, in the colour of alarms and in bold; where no loss is clear, all steps have one colour."""
    steps = DataFrame({"step": [1, 2, 3, 4], "name": ["user", "level 1", "level 2", "level 3"]})

    def colours(players: list[int]) -> tuple[list[str], list[bool]]:
        shares = [count / players[0] for count in players]
        before = [float("nan"), *(after / first for first, after in pairwise(players))]
        (bar,) = charts.draw_funnel(steps.assign(players=players, share=shares, of_previous=before)).data
        return [*bar.marker.color], ["<b>" in text for text in bar.text]

    chosen, in_bold = colours([1000, 900, 500, 450])
    assert len({*chosen}) == 2
    assert [colour == chosen[2] for colour in chosen] == in_bold == [False, False, True, False]
    assert len({*colours([1000, 900, 810, 729])[0]}) == 1
