"""Frames that an analysis refuses: a wrong bucket, a cut or incomplete frame, a missing split, unequal periods."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isfunction
from typing import Any, Final

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens import analysis
from gamelens.analysis import ads, changes, decomposition, health, outside_data, retention, revenue, tidy_frames
from gamelens.analysis.tidy_frames.frame_requirements import declared_requirements
from gamelens.analysis.tidy_frames.results import public_name
from gamelens.catalog import ALIASES, DIMENSIONS, METRICS
from gamelens.client.query.arguments import query_arguments
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.receipts import Gap, QueryRecord, Receipt
from support.query_arguments import given
from support.tidy_frames import tidy_frame

PLAYER_METRICS = ("revenue", "ilrd_revenue", "user_unique", "paying_users", "ad_impressions_count")
NOT_JUDGED: Final[dict[str, set[str]]] = {"health.score_days": {"restatements"}, "claims.of": {"result"}}
"""Arguments that are frames of the client, or of any analysis, and no answers to a query."""
EVERY = {"day": "D", "week": "7D", "month": "MS"}


def asked(frame: DataFrame, **record: Any) -> DataFrame:
    """Return *frame* with the receipt of a query with these arguments."""
    more = {name: record.pop(name) for name in ("truncated", "gaps", "clipped", "requests") if name in record}
    frame.attrs["gamelens"] = Receipt(asked=QueryRecord(**record), version="1", **more).to_json()
    return frame


def player_frame(every: str | None, *, buckets: int = 4, names: tuple[str, ...] = ("US", "BR")) -> DataFrame:
    """Return money and players by country in *buckets* buckets, without a receipt."""
    days = pd.date_range(
        "2026-10-05" if every != "month" else "2026-07-01", periods=buckets, freq=EVERY[every or "day"]
    )
    return tidy_frame(
        timestamp=[str(day.date()) for day in days for _ in names],
        country_code=[*names] * buckets,
        revenue=[4.0, 1.0] * buckets,
        ilrd_revenue_event_count=[900, 300] * buckets,
        ilrd_revenue=[2.0, 0.5] * buckets,
        user_unique=[100, 50] * buckets,
        paying_users=[4, 1] * buckets,
        ad_impressions_count=[1000, 400] * buckets,
    )


def ads_frame(names: list[str], *, day: str = "2026-11-02", days: int = 1) -> DataFrame:
    """Return ad revenue by country on *days* days, the first name with most revenue."""
    stamps = [str(one.date()) for one in pd.date_range(day, periods=days)]
    values = [2.0**-place for place in range(len(names))]
    return tidy_frame(
        timestamp=[stamp for stamp in stamps for _ in names],
        country_code=names * days,
        ilrd_revenue_event_count=[100] * len(names) * days,
        ilrd_revenue=values * days,
    )


def ad_record(**record: Any) -> dict[str, Any]:
    """Return the arguments of a query of ad revenue by country over November 2 to 8."""
    interval = "2026-11-02T00:00Z/2026-11-09T00:00Z"
    return {
        "metric": "ilrd_revenue",
        "by": ("country_code",),
        "over": "last week",
        "every": "day",
        "interval": interval,
    } | record


def query_in(error: pytest.ExceptionInfo[BadQuery]) -> dict[str, Any]:
    """Return the arguments of the `lens.query(...)` that ends the message, once the client accepts them."""
    text = re.search(r"lens\.query\(.*\)", str(error.value))
    assert text is not None, error.value
    call = ast.parse(text[0], mode="eval").body
    assert isinstance(call, ast.Call)
    keywords = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    keywords["metric"] = ast.literal_eval(call.args[0])
    query_arguments(given(Client.query, **keywords))
    return keywords


PER_PLAYER_DAY: dict[str, Callable[[DataFrame, str], DataFrame]] = {
    "revenue.arpdau": revenue.arpdau,
    "revenue.payer_share": revenue.payer_share,
    "ads.per_player": ads.per_player,
}


@pytest.mark.parametrize("function", PER_PLAYER_DAY)
@pytest.mark.parametrize("every", ["week", "month", "all"])
def test_numbers_per_player_and_day_take_days_only(function: str, every: str) -> None:
    """A player counts once in a week: revenue per player is another number under the same name."""
    frame = asked(
        player_frame("week" if every == "all" else every),
        metric=PLAYER_METRICS,
        by=("country_code",),
        over="last 4 complete weeks",
        every=every,
    )
    with pytest.raises(BadQuery, match=re.escape(f"{function}(frame) needs ")) as refused:
        PER_PLAYER_DAY[function](frame, "country_code")
    assert query_in(refused) == {
        "metric": [*PLAYER_METRICS],
        "by": "country_code",
        "over": "last 4 complete weeks",
        "every": "day",
    }


@pytest.mark.parametrize("function", PER_PLAYER_DAY)
@pytest.mark.parametrize("every", ["week", "month"])
def test_weeks_are_seen_without_a_receipt(function: str, every: str) -> None:
    """A frame from elsewhere is judged by the spacing of its timestamps."""
    with pytest.raises(BadQuery, match=f"one row a {every}") as refused:
        PER_PLAYER_DAY[function](player_frame(every), "country_code")
    assert query_in(refused)["every"] == "day"


def test_hours_are_seen_without_a_receipt() -> None:
    """A player counts once in each hour, so hours do not add up to the players of the day."""
    frame = player_frame("day", buckets=2)
    hours = pd.Series(pd.to_timedelta([0, 0, 20, 20], unit="h"))
    hourly = frame.assign(timestamp=frame["timestamp"].min() + hours)
    with pytest.raises(BadQuery, match="needs one row a day, but has several rows a day"):
        revenue.arpdau(hourly, "country_code")


@pytest.mark.parametrize("function", PER_PLAYER_DAY)
def test_days_are_taken_with_and_without_a_receipt(function: str) -> None:
    """Negative control: the frames that the functions are for."""
    for frame in (player_frame("day"), asked(player_frame("day"), metric=PLAYER_METRICS, every="day")):
        assert len(PER_PLAYER_DAY[function](frame, "country_code")) == 2


CUT: dict[str, Callable[[DataFrame], object]] = {
    "ads.earnings": lambda frame: ads.earnings(frame, "country_code"),
    "ads.concentration": lambda frame: ads.concentration(frame, "country_code"),
    "decomposition.decompose": lambda frame: decomposition.decompose(frame, frame, "country_code"),
}


@pytest.mark.parametrize("every", ["all", "day"])
@pytest.mark.parametrize("function", CUT)
def test_a_top_cut_is_no_whole(function: str, every: str) -> None:
    """Shares of the three largest add up to 1, and a country below the top of a day has not vanished."""
    frame = asked(ads_frame(["US", "BR", "DE"]), **ad_record(top=3, every=every), truncated=True)
    with pytest.raises(BadQuery, match=rf"{re.escape(function)}\(\w+\) .*the top 3") as refused:
        CUT[function](frame)
    rest = {"top": 3, "other": True} if (function, every) == ("ads.earnings", "all") else {}
    whole = {"metric": "ilrd_revenue", "by": "country_code", "over": "last week", "every": every}
    assert query_in(refused) == whole | rest


@pytest.mark.parametrize("function", ["ads.concentration", "decomposition.decompose"])
@pytest.mark.parametrize("has_receipt", [False, True])
def test_the_row_other_is_no_country(function: str, has_receipt: bool) -> None:
    """The rest of a top is many values: as one it changes the concentration, and hides who vanished."""
    frame = ads_frame(["US", "BR", "(other)"])
    if has_receipt:
        frame = asked(frame, **ad_record(top=2, other=True, every="all"), truncated=True)
    with pytest.raises(BadQuery, match=re.escape("(other)")) as refused:
        CUT[function](frame)
    assert {"top", "other"}.isdisjoint(query_in(refused))


def test_earnings_take_the_row_other_of_one_bucket() -> None:
    """With the rest in one row the shares are those of the whole: 4/7 of 1 + 1/2 + 1/4."""
    frame = asked(ads_frame(["US", "BR", "(other)"]), **ad_record(top=2, other=True, every="all"), truncated=True)
    assert ads.earnings(frame, "country_code")["revenue_share"].iloc[0] == pytest.approx(4 / 7)


def test_earnings_refuse_the_row_other_of_several_buckets() -> None:
    """A country in the top of one day lies in the rest of another: its sum is that of some days."""
    frame = asked(ads_frame(["US", "BR", "(other)"], days=2), **ad_record(top=2, other=True), truncated=True)
    with pytest.raises(BadQuery, match=re.escape("(other)")):
        ads.earnings(frame, "country_code")
    assert ads.earnings(frame)["ad_revenue"].tolist() == pytest.approx([3.5])


def test_a_value_that_is_called_other_is_no_rest() -> None:
    """A country that the service itself calls so is judged by the receipt: nothing was cut."""
    frame = asked(ads_frame(["US", "(other)"]), **ad_record(every="all"))
    assert ads.concentration(frame, "country_code")["values"].tolist() == [2]


def test_a_frame_with_gaps_is_asked_again() -> None:
    """Sums of a frame whose requests failed are too low, and nothing in them shows it."""
    gap = Gap(metric="ilrd_revenue", interval="2026-11-03/2026-11-05", error="503")
    with pytest.raises(BadQuery, match=r"1 failed requests are missing: run lens\.query\(.*\) again"):
        ads.earnings(asked(ads_frame(["US"]), **ad_record(), gaps=(gap,)), "country_code")
    elsewhere = Gap(metric="user_unique", interval="2026-11-03/2026-11-05", error="503")
    assert len(ads.earnings(asked(ads_frame(["US"]), **ad_record(), gaps=(elsewhere,)), "country_code")) == 1


@pytest.mark.parametrize("has_receipt", [False, True])
def test_halves_are_halves_of_days(has_receipt: bool) -> None:
    """Of four weeks the last two would be kept, as two days."""
    weeks = pd.concat([ads_frame(["US", "BR"], day=f"2026-10-{day:02}") for day in (5, 12, 19, 26)], ignore_index=True)
    if has_receipt:
        weeks = asked(weeks, **ad_record(over="last 4 complete weeks", every="week"))
    with pytest.raises(
        BadQuery, match=re.escape("decomposition.split_in_halves(frame) needs one row a day")
    ) as refused:
        decomposition.split_in_halves(weeks)
    assert query_in(refused)["every"] == "day"


def test_unequal_periods_are_not_compared() -> None:
    """31 days differ from 30 in volume for that reason alone; of calendar months everybody knows it."""
    october, november, late = (
        asked(ads_frame(["US"]), **ad_record(every="all", interval=interval))
        for interval in (
            "2026-10-01T00:00Z/2026-11-01T00:00Z",
            "2026-11-01T00:00Z/2026-12-01T00:00Z",
            "2026-11-02T00:00Z/2026-12-02T00:00Z",
        )
    )
    with pytest.raises(BadQuery, match=r"before has 31 days .*after has 30 ") as refused:
        decomposition.decompose(october, late, "country_code")
    assert query_in(refused)["over"] == "2026-10-02/2026-11-01"
    with pytest.raises(BadQuery, match=r"before has 30 days .*after has 31 "):
        decomposition.decompose(late, october, "country_code")
    decomposition.decompose(november, november, "country_code")
    decomposition.decompose(october, november, "country_code")


def test_unequal_periods_without_a_receipt_are_seen() -> None:
    """Three days against seven; also of two parts of one frame, whose receipts say the same."""
    for frame in (ads_frame(["US"], days=10), asked(ads_frame(["US"], days=10), **ad_record())):
        days = frame["timestamp"].dt.day
        with pytest.raises(BadQuery, match=r"before has 3 days .*after has 7 "):
            decomposition.decompose(frame[days < 5], frame[days >= 5], "country_code")


def test_halves_with_a_silent_edge_are_equal() -> None:
    """A day without revenue has no row, and the half is as long as the other nevertheless."""
    interval = "2026-11-02T00:00Z/2026-11-16T00:00Z"
    frame = asked(ads_frame(["US", "BR"], days=14), **ad_record(interval=interval), requests=3)
    silent = frame[~frame["timestamp"].dt.day.isin([8, 9])]
    before, after = decomposition.split_in_halves(silent)
    parts = decomposition.decompose(before, after, "country_code")
    assert len(parts) == 2
    intervals = [str(Receipt.of(part.attrs).interval) for part in (before, after, parts)]
    assert intervals == [
        "2026-11-02T00:00Z/2026-11-09T00:00Z",
        "2026-11-09T00:00Z/2026-11-16T00:00Z",
        "2026-11-02T00:00Z/2026-11-16T00:00Z",
    ]
    assert Receipt.of(parts.attrs).requests == 3


def test_periods_that_overlap_are_told_apart() -> None:
    """The query to use is the period before the shorter one, not that one again."""
    week = asked(ads_frame(["US"]), **ad_record(every="all", interval="2026-11-02T00:00Z/2026-11-09T00:00Z"))
    days = asked(ads_frame(["US"]), **ad_record(every="all", interval="2026-11-04T00:00Z/2026-11-09T00:00Z"))
    with pytest.raises(BadQuery, match=re.escape("use before = lens.query(")) as refused:
        decomposition.decompose(week, days, "country_code")
    assert query_in(refused)["over"] == "2026-10-30/2026-11-04"


def install_money(every: str | None) -> tuple[DataFrame, DataFrame]:
    """Return spend of ten install days, and 160 dollars of revenue by install day."""
    days = [str(day.date()) for day in pd.date_range("2026-11-02", periods=10)]
    spend = tidy_frame(timestamp=days, install_publisher=["ads"] * 10, spend=[10.0] * 10)
    money = tidy_frame(
        timestamp=(days if every == "day" else [days[0]] * 7 + [days[7]] * 3) + days[7:] * 2,
        installed_on=days + days[:6],
        install_publisher=["ads"] * 16,
        revenue=[10.0] * 16,
    )
    if every is not None:
        money = asked(
            money, metric="revenue", by=("installed_on", "install_publisher"), over="2026-11-02/P10D", every=every
        )
    return spend, money


@pytest.mark.parametrize("receipt", ["week", None])
def test_return_on_spend_needs_money_by_day(receipt: str | None) -> None:
    """Money of a week is counted on its Monday, before most of its installs: those days lose it."""
    spend, money = install_money(receipt)
    if receipt is None:
        money = money[money["timestamp"].dt.day.isin([2, 9])]
    with pytest.raises(BadQuery, match=re.escape("outside_data.return_on_spend(money) needs one row a day")) as refused:
        outside_data.return_on_spend(spend, money)
    assert query_in(refused)["by"] == ["installed_on", "install_publisher"]
    outside_data.return_on_spend(*install_money("day"))


def test_return_on_spend_needs_the_money_of_all_installs() -> None:
    """Money that begins after the first install day lacks the first days of its cohorts."""
    spend, money = install_money("day")
    late = asked(
        money, metric="revenue", by=("installed_on",), every="day", interval="2026-11-05T00:00Z/2026-11-12T00:00Z"
    )
    with pytest.raises(BadQuery, match="begins on 2026-11-05, after the first row of spend on 2026-11-02") as refused:
        outside_data.return_on_spend(spend, late)
    assert query_in(refused)["over"] == "2026-11-02/2026-11-12"


def test_money_has_the_column_that_makes_the_groups(cohorts: DataFrame) -> None:
    """Without it every game would be given the mean money of all."""
    days = ["2026-11-01", "2026-11-02"]
    money = tidy_frame(
        ["revenue", "ilrd_revenue", "user_unique"],
        timestamp=days,
        installed_on=days,
        revenue=[1.0, 2.0],
        ilrd_revenue=[1.0, 2.0],
        user_unique=[10, 10],
    )
    with pytest.raises(BadQuery, match=re.escape("retention.ltv(money) has no game")):
        retention.ltv(cohorts, money, by="game")


def public_analyses() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield name and function of every public analysis that is given frames."""
    for topic in set(analysis.__all__) - {"tidy_frames"}:
        module = import_module(f"gamelens.analysis.{topic}")
        for name in getattr(module, "__all__", vars(module)):
            function = getattr(module, name)
            is_own = isfunction(function) and function.__module__.startswith(f"gamelens.analysis.{topic}")
            if is_own and not name.startswith("_") and frame_arguments(function):
                yield f"{topic}.{name}", function


def frame_arguments(function: Callable[..., Any]) -> list[str]:
    """Return the arguments of *function* that are annotated as frames."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if "DataFrame" in str(parameter.annotation)]


def test_every_public_analysis_declares_its_frames() -> None:
    """Each argument that is a frame has its requirements, and the message names the function as users call it."""
    analyses = dict(public_analyses())
    assert len(analyses) > 40
    for name, function in analyses.items():
        assert set(frame_arguments(function)) <= set(declared_requirements(function)) | NOT_JUDGED.get(name, set()), (
            name
        )
        assert public_name(function) == name


def test_a_declaration_names_real_arguments_metrics_and_dimensions() -> None:
    """A misspelt argument would never be judged, and a misspelt metric would not be a query."""
    for name, function in public_analyses():
        declared = declared_requirements(function)
        assert set(declared) <= set(inspect.signature(function).parameters), name
        for requirements in declared.values():
            assert set(requirements.metrics) <= {*METRICS, *ALIASES, "retention"}, name
            assert set(requirements.splits) <= set(DIMENSIONS), name


def test_a_result_of_another_analysis_names_its_source() -> None:
    """A frame that is not a result of the analysis before has another meaning, or fails in its middle."""
    with pytest.raises(
        BadQuery, match=r"payback_ages\(roas\) has no age, money, roas: use outside_data.return_on_spend\("
    ):
        outside_data.payback_ages(tidy_frame(install_publisher=["ads"], spend=[1.0]))


def test_a_frame_of_query_is_no_retention_frame() -> None:
    """The message has the call of `retention`, over the same days."""
    frame = asked(player_frame("day"), metric="user_unique", by=("country_code",), over="last week", every="day")
    with pytest.raises(BadQuery) as refused:
        retention.average_curve(frame)
    assert str(refused.value) == (
        "retention.average_curve(frame) has no age, retention, installs, returned: "
        'use lens.retention(days=[1, 3, 7, 14, 28], by="country_code", over="last week").'
    )


RETENTION_READERS: Final = [
    (function, argument)
    for _, function in public_analyses()
    for argument, requirements in declared_requirements(function).items()
    if "returned" in requirements.columns
]


@pytest.mark.parametrize(("function", "argument"), RETENTION_READERS, ids=lambda value: getattr(value, "__name__", ""))
def test_more_who_returned_than_installed_are_refused(function: Callable[..., Any], argument: str) -> None:
    """Their share is no probability: a curve, an interval or money from it would be a number of nothing."""
    days, ages = pd.date_range("2026-11-02", periods=14, tz="UTC"), [1, 2, 7]
    rows = [(day, age, 100.0, 20.0) for day in days for age in ages]
    rows[4] = (*rows[4][:2], 100.0, 130.0)
    cohorts = DataFrame(rows, columns=["timestamp", "age", "installs", "returned"]).assign(retention=0.2)
    others = {
        name: cohorts.assign(returned=20.0)
        for name in frame_arguments(function)
        if name != argument and inspect.signature(function).parameters[name].default is inspect.Parameter.empty
    }
    with pytest.raises(BadQuery) as refused:
        function(**{argument: cohorts, **others})
    assert f"{public_name(function)}({argument}) has 1 row with more returned than installs" in str(refused.value)
    assert "130 of 100" in str(refused.value)


def test_players_by_network_are_no_players() -> None:
    """A player who saw ads of two networks counts in both."""
    frame = asked(
        player_frame("day").rename(columns={"country_code": "ilrd_network_name"}),
        metric=PLAYER_METRICS,
        by=("game", "ilrd_network_name"),
        over="last week",
        every="day",
    )
    with pytest.raises(BadQuery, match="is split by ilrd_network_name, so a player counts once for each") as refused:
        ads.per_player(frame)
    assert query_in(refused)["by"] == "game"


def test_the_query_to_use_has_all_that_was_asked() -> None:
    """Filter, games and clipping are those of the frame, in a form that the client takes."""
    frame = asked(
        player_frame("week"),
        metric=PLAYER_METRICS,
        by=("game", "country_code"),
        over="2026-10-05 to 2026-11-01",
        interval="2026-10-05T00:00Z/2026-11-02T00:00Z",
        clipped="2026-10-05T00:00Z/2026-11-01T11:00Z",
        every="week",
        where={"and": [{"platform": "ios"}, {"not": {"build": "2"}}]},
        games=('Tile "Deluxe"',),
    )
    with pytest.raises(BadQuery) as refused:
        revenue.arpdau(frame)
    assert query_in(refused) == {
        "metric": [*PLAYER_METRICS],
        "by": ["game", "country_code"],
        "over": "2026-10-05/2026-11-02",
        "every": "day",
        "where": {"and": [{"platform": "ios"}, {"not": {"build": "2"}}]},
        "games": ['Tile "Deluxe"'],
        "when_unavailable": "clip",
    }


def test_answers_may_come_one_by_one() -> None:
    """A generator of frames is judged and read all the same."""
    assert len(health.daily(frame for frame in [asked(player_frame("day"), metric="user_unique", every="day")])) > 0
    with pytest.raises(BadQuery, match=re.escape("health.daily(answers) needs one row a day")):
        health.daily(frame for frame in [asked(player_frame("week"), metric="user_unique", every="week")])


def test_a_call_with_wrong_arguments_is_a_type_error() -> None:
    """The declaration leaves the signature as it is."""
    with pytest.raises(TypeError, match=r"concentration\(\) missing 1 required positional argument: 'by'"):
        ads.concentration(ads_frame(["US"]))  # type: ignore[call-arg]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scipy, an analysis that needs it says which extra to install."""
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    days = ["2026-11-02", "2026-11-03"]
    frame = tidy_frame(
        timestamp=days,
        game=["A", "A"],
        country_code=["US", "US"],
        ilrd_revenue_event_count=[9, 9],
        ilrd_revenue=[1.0, 2.0],
    )
    with pytest.raises(ModuleNotFoundError, match=r"price_changes needs scipy: pip install 'gamelens\[analysis\]'"):
        decomposition.price_changes(frame, frame, "country_code")


@pytest.mark.parametrize(
    ("metric", "field", "about", "meant"),
    [("revenue", "summ", "field", "sum"), ("revenu", "sum", "metric", "revenue"), ("arpdau", "sum", "metric", "arpu")],
)
def test_a_name_that_no_metric_has_is_refused_with_the_nearest(metric: str, field: str, about: str, meant: str) -> None:
    """Of a column that an analysis of one's own looks for."""
    frame = tidy_frame("revenue", timestamp=["2026-11-01"], revenue=[4.0])
    with pytest.raises(BadQuery) as refused:
        tidy_frames.column_of(frame, metric, field)
    assert (refused.value.field, refused.value.did_you_mean) == (about, meant)


def test_a_metric_without_its_fields_is_left_out_of_all_and_refused_by_name() -> None:
    """A query of revenue has no number of purchases; whoever asks for them is told how to query it."""
    money = tidy_frame("revenue", timestamp=["2026-11-01"], game=["Tile"], revenue=[4.0])
    assert health.daily([money])["watch"].unique().tolist() == ["revenue"]
    with pytest.raises(BadQuery, match='query revenue with fields="all" as well'):
        health.daily([money], health.watches("purchases"))
    with pytest.raises(BadQuery, match="has no timestamp: use lens"):
        health.daily([money.drop(columns="timestamp")])
    with pytest.raises(BadQuery, match="mean `revenue`"):
        health.measured(money, {"revenu": "Money"})


def test_no_days_are_refused_in_a_sentence() -> None:
    """The change of a frame without a time has nothing to be of."""
    with pytest.raises(BadQuery, match="frame has no days to compare: query days with data"):
        changes.change(DataFrame({"game": ["Tile"], "revenue": [4.0]}))
