"""Own metrics: each is the formula of the columns beside it, in every row of every query."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gamelens
from gamelens.client.async_client import AsyncClient
from gamelens.client.connection.settings import client_catalog
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotAdditive, PartialResult, ServiceError
from gamelens.notebook import accessor as accessor  # df.lens
from support.hypothesis_profiles import examples
from support.query_oracle import RANGES
from support.watched_service import KEY, Sent, World, quick

pytestmark = pytest.mark.slow

METRICS = {
    "ads_per_payer": "ad_impressions_count / paying_users",
    "money_per_player": "(revenue + ilrd_revenue) / user_unique",
    "net_revenue": {"formula": "0.7 * revenue - ad_revenue", "title": "Net money"},
    "ads_value": {"formula": "1000 * ad_revenue / ad_impressions_count", "unit": "USD per 1,000 ads"},
    "half_arpdau": "arpdau / 2",
    "not_paying": "1 - conversion",
    "returning_share": "returning_users / user_unique",
    "sessions_per_dau": "session_unique / dau",
    "odd_payers": "new_users / (paying_users - 1)",
    "nested": {"formula": "revenue / (ad_revenue / ilrd_id_unique)", "unit": "strange"},
    "twice": "ads_per_payer + ads_per_payer",
    "per_buyer": "arppu - arpu * 2",
    "monthly": "stickiness * 1",
}
WRITTEN_OUT = {
    "ads_per_payer": "ad_impressions_count / paying_users",
    "money_per_player": "(revenue + ilrd_revenue) / user_unique",
    "net_revenue": "0.7 * revenue - ad_revenue",
    "ads_value": "1000 * ad_revenue / ad_impressions_count",
    "half_arpdau": "(iap_revenue + ad_revenue) / player_days / 2",
    "not_paying": "1 - paying_users / user_unique",
    "returning_share": "returning_users / user_unique",
    "sessions_per_dau": "session_unique / dau",
    "odd_payers": "new_users / (paying_users - 1)",
    "nested": "revenue / (ad_revenue / ilrd_id_unique)",
    "twice": "ad_impressions_count / paying_users + ad_impressions_count / paying_users",
    "per_buyer": "revenue / paying_users - revenue / user_unique * 2",
    "monthly": "mean_dau / mau * 1",
}
"""Each formula of the columns of a frame."""
PARTS = {
    name: [word for word in formula.replace("(", " ").replace(")", " ").split() if word.isidentifier()]
    for name, formula in WRITTEN_OUT.items()
}
QUERIED = {  # what brings a column that is no metric itself
    "iap_revenue": "arpdau",
    "player_days": "arpdau",
    "mean_dau": "stickiness",
}
FILTERS = (None, 'platform == "ios"', 'country_code in ["US", "DE"]', "country_code is null")


def computed(frame: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return the formula of *name* of the columns of *frame*, as pandas computes it, NaN where it divides by 0."""
    floats = frame[[*dict.fromkeys(PARTS[name])]].astype("float64")
    values = pd.Series(floats.eval(WRITTEN_OUT[name], engine="python"), index=frame.index)
    zero = {"nested": (frame["ad_revenue"] == 0) | (frame["ilrd_id_unique"] == 0)} if name == "nested" else {}
    return values.where(np.isfinite(values) & ~zero.get(name, pd.Series(False, index=frame.index)).fillna(True))


def query_of(random: Random, name: str) -> dict[str, Any]:
    """Return a random query of the own metric *name*."""
    by = random.sample(["platform", "country_code", "game", "ad_type", "is_paying", "studio"], random.choice((0, 1, 2)))
    every = "month" if name == "monthly" else random.choice(("day", "day", "week", "month", "all"))
    query: dict[str, Any] = {
        "by": by,
        "every": every,
        "over": random.choice([*RANGES]),
        "where": random.choice(FILTERS),
    }
    query["when_unavailable"] = "clip"
    if random.random() < 0.2:
        query["games"] = ["1001"]
    return query


def keys_of(frame: pd.DataFrame, by: list[str]) -> pd.MultiIndex:
    """Return bucket and values of each row."""
    return pd.MultiIndex.from_frame(frame[["timestamp", *by]].astype("object").fillna("null"))


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("seed", range(examples(60)))
def test_it_is_the_formula_of_the_columns_beside_it(world: World, seed: int, tmp_path: Path) -> None:
    """Alone, beside other metrics that fill rows, with `top` and the rest, with gaps, cold and from the cache."""
    random = Random(seed)
    name = [*METRICS][seed % len(METRICS)]
    watch = world.watch()
    lens = quick(watch, cache=tmp_path / "cache" if seed % 2 else None, metrics=METRICS)
    query = query_of(random, name)
    frame = lens.query(name, **query)
    pd.testing.assert_series_equal(frame[name], computed(frame, name), check_names=False, rtol=1e-12)
    beside = lens.query([name, "event_count"], **query)
    pd.testing.assert_series_equal(beside[name], computed(beside, name), check_names=False, rtol=1e-12)
    queried = [*dict.fromkeys(QUERIED.get(part, part) for part in PARTS[name])]
    parts = lens.query([*queried, "event_count"], **query)
    assert beside[[*PARTS[name]]].sum().to_dict() == pytest.approx(parts[[*PARTS[name]]].sum().to_dict())
    assert {*keys_of(frame, query["by"])} <= {*keys_of(parts, query["by"])}
    again = lens.query(name, **query)
    pd.testing.assert_frame_equal(again, frame)
    if not query["by"]:
        return
    top = lens.query(name, **query, top=2)
    pd.testing.assert_series_equal(top[name], computed(top, name), check_names=False, rtol=1e-12)
    for moment, rows in frame.groupby("timestamp"):
        largest = rows[name].astype("float64").fillna(-np.inf).nlargest(2).tolist()
        assert top[top["timestamp"] == moment][name].fillna(-np.inf).tolist() == pytest.approx(largest)
    with suppress(NotAdditive):
        rest = lens.query(name, **query, top=1, other=True)
        pd.testing.assert_series_equal(rest[name], computed(rest, name), check_names=False, rtol=1e-9)
    watch.fails = lambda sent: sent.body is not None and Random(f"{seed} {sent}").random() < 0.4
    try:
        holed = quick(watch, metrics=METRICS).query(name, **query, on_error="gaps")
    except PartialResult as partial:
        holed = partial.frame
    except ServiceError:  # the only request
        return
    pd.testing.assert_series_equal(holed[name], computed(holed, name), check_names=False, rtol=1e-12)


ADS = {"ads_per_payer": "ad_impressions_count / paying_users"}
MONEY = {"net_revenue": {"formula": "0.7 * revenue + ad_revenue", "title": "Net money"}}
OVER = "2026-11-01/2026-11-20"


def test_the_studios_of_a_metric_per_game_are_found(world: World) -> None:
    """Beside one that is not, by studio: its games are pooled in their studio."""
    lens = quick(world.watch(), metrics=METRICS)
    frame = lens.query("returning_share", by="studio", over=OVER, every="week")
    assert frame["studio_id"].notna().all()
    assert frame["returning_users"].sum() > 0


def test_they_are_completed_described_and_suggested(world: World) -> None:
    """A misspelt name suggests an own metric; `describe` prints its formula, its unit and what it adds up over."""
    lens = quick(world.watch(), metrics=ADS)
    described = lens.describe("ads_per_payer")
    assert (described.kind, described.definition) == ("own metric", "ad_impressions_count / paying_users")
    assert (described.unit, described.additivity[:10]) == ("ads per player", "over games")
    assert [field.name for field in described.fields] == ["ads_per_payer", "ad_impressions_count", "paying_users"]
    for ask in (lens.plan, lens.query):
        with pytest.raises(BadQuery, match="Did you mean `ads_per_payer`"):
            ask("ads_per_payers", over=OVER)
    with pytest.raises(BadQuery, match="Did you mean `ads_per_payer`"):
        lens.describe("ads_per_payr")


def test_a_plan_is_that_of_its_metrics(world: World) -> None:
    """Two metrics are two requests, shared with the same metrics beside it."""
    lens = quick(world.watch(), metrics=ADS)
    pieces = lens.plan(["ads_per_payer", "paying_users"], over=OVER).pieces
    assert sorted(piece.metric for piece in pieces) == ["ad_impressions_count", "paying_users"]


def test_rows_are_sorted_by_it(world: World) -> None:
    """`sort` takes an own metric and its parts."""
    frame = quick(world.watch(), metrics=ADS).query("ads_per_payer", by="game", over=OVER, sort="ads_per_payer")
    values = frame["ads_per_payer"].dropna()
    assert values.is_monotonic_decreasing
    assert len(values) > 1


def test_another_client_does_not_know_it(world: World) -> None:
    """Nothing is registered for the process."""
    quick(world.watch(), metrics=ADS)
    with pytest.raises(BadQuery):
        quick(world.watch()).query("ads_per_payer", over=OVER)


def test_the_receipt_alone_repeats_the_query(world: World) -> None:
    """A client that never heard of the metric refreshes the frame, with the formula of its receipt."""
    frame = quick(world.watch(), metrics=METRICS).query(["twice", "revenue"], by="platform", over=OVER)
    asked = frame.attrs["gamelens"]["asked"]
    assert [formula["name"] for formula in asked["formulas"]] == ["ads_per_payer", "twice"]
    other = quick(world.watch(), metrics={"twice": "revenue / 2"})
    again = other.refresh(frame)
    pd.testing.assert_frame_equal(again, frame)
    assert again.attrs["gamelens"]["asked"] == asked
    assert again.attrs["gamelens"]["restated"] == []
    assert "twice is ads_per_payer + ads_per_payer." in frame.lens.explain().splitlines()


def test_a_change_of_a_part_restates_it(world: World) -> None:
    """`refresh` lists the own metric beside its part, without a total where its rows do not add up."""
    watch = world.watch()
    lens = quick(watch, metrics=MONEY)
    frame = lens.query("net_revenue", by="platform", over=OVER)

    def more(sent: Sent, answer: Any) -> Any:
        for bucket in answer["result"] if sent.name == "revenue" else ():
            for row in bucket["result"]:
                row |= {"sum": row["sum"] + 1, "sum_cents": row["sum_cents"] + 100}
                row["mean"] = row["sum"] / row["event_count"] if row["event_count"] else None
        return answer

    watch.changes = more
    restated = {entry["field"]: entry for entry in lens.refresh(frame).attrs["gamelens"]["restated"]}
    assert {*restated} == {"net_revenue", "revenue", "ad_revenue"}
    assert restated["net_revenue"]["before"] is None
    assert restated["revenue"]["after"] > restated["revenue"]["before"]


def test_a_total_is_the_formula_of_the_totals(world: World) -> None:
    """Money adds up over days and countries; a ratio of players does not, and the error names the query that counts."""
    lens = quick(world.watch(), metrics={**METRICS})
    frame = lens.query("net_revenue", by="country_code", over=OVER)
    total = frame.lens.total()
    assert total["net_revenue"].iloc[0] == pytest.approx(0.7 * frame["revenue"].sum() - frame["ad_revenue"].sum())
    games = lens.query("ads_per_payer", by="game", over=OVER, every="all")
    parts = games[["ad_impressions_count", "paying_users"]].sum()
    assert games.lens.total()["ads_per_payer"].iloc[0] == pytest.approx(parts.iloc[0] / parts.iloc[1])
    days = lens.query("ads_per_payer", over=OVER)
    with pytest.raises(NotAdditive, match=r'lens.query\("ads_per_payer", over=".*", every="all"\)'):
        days.lens.total()


def test_figures_tables_and_changes_call_it_by_its_title(world: World) -> None:
    """Titles and units come from the receipt of the frame."""
    lens = quick(world.watch(), metrics=MONEY)
    frame = lens.query("net_revenue", by="platform", over="2026-11-01/2026-11-15")
    figure = frame.lens.plot()
    assert "Net money by platform" in figure.layout.title.text
    assert "Net money" in str(frame.lens.table())
    changed = frame.lens.change()
    assert {*changed["unit"]} == {"USD"}
    assert {*changed.lens.claims()["measure"]} == {"Net money"}


def test_a_recording_answers_it(world: World, tmp_path: Path) -> None:
    """What is recorded are its metrics, so that a replay takes any formula of them."""
    transport = httpx.ASGITransport(world.watch())
    folder = tmp_path / "recorded"
    with Client(api_key=KEY, metrics_url="http://127.0.0.1:9", transport=transport, record=folder, metrics=ADS) as lens:
        frame = lens.query("ads_per_payer", over=OVER)
    with Client(replay=folder, metrics={"payers_per_ad": "paying_users / ad_impressions_count"} | ADS) as lens:
        again = lens.query("ads_per_payer", over=OVER)
        inverse = lens.query("payers_per_ad", over=OVER)
    pd.testing.assert_frame_equal(again, frame)
    both = (frame["ads_per_payer"] > 0) & (inverse["payers_per_ad"] > 0)
    assert both.any()
    assert (frame["ads_per_payer"] * inverse["payers_per_ad"])[both].tolist() == pytest.approx([1.0] * both.sum())


def test_the_asynchronous_client_has_them(world: World) -> None:
    """`AsyncClient` takes the same argument."""

    async def ask() -> pd.DataFrame:
        transport = httpx.ASGITransport(world.watch())
        address = "http://127.0.0.1:9"
        async with AsyncClient(api_key=KEY, metrics_url=address, transport=transport, cache=False, metrics=ADS) as lens:
            return await lens.query("ads_per_payer", over="2026-11-10")

    frame = asyncio.run(ask())
    pd.testing.assert_series_equal(frame["ads_per_payer"], computed(frame, "ads_per_payer"), check_names=False)


def test_the_config_file_has_them_and_an_argument_takes_precedence(tmp_path: Path) -> None:
    """[metrics] has a formula or a table by name; a bad one names the file."""
    file = tmp_path / "config.toml"
    file.write_text(
        '[metrics]\na = "revenue / 2"\nb = "a / user_unique"\n[metrics.c]\nformula = "revenue"\ntitle = "Money"\n'
    )
    stored = client_catalog(None, file=file)
    assert {name: own.title for name, own in stored.own.items()} == {"a": "", "b": "", "c": "Money"}
    both = client_catalog({"a": "revenue / 3", "d": "c * 2"}, file=file)
    assert {name: own.meaning for name, own in both.own.items()} == {
        "a": "revenue / 3",
        "b": "a / user_unique",
        "c": "revenue",
        "d": "c * 2",
    }
    assert client_catalog(None, file=tmp_path / "none.toml").own == {}
    for text in ('[metrics]\na = "revenu / 2"\n', "metrics = 5\n", "[metrics]\na = 5\n"):
        file.write_text(text)
        with pytest.raises(BadQuery, match=re.escape(str(file))):
            client_catalog({"b": "revenue"}, file=file)


def test_a_metric_that_cannot_be_defined_is_refused_before_anything_starts(world: World) -> None:
    """The client is not made; `gl.demo` starts no sandbox."""
    with pytest.raises(BadQuery, match="Did you mean `paying_users`"):
        Client(api_key=KEY, metrics_url="http://127.0.0.1:9", metrics={"x": "revenue / paying_user"})
    with pytest.raises(BadQuery, match="Did you mean `paying_users`"):
        gamelens.demo("no_such_scenario", metrics={"x": "revenue / paying_user"})


def test_beside_retention_and_in_every_kind_of_frame(world: World) -> None:
    """The columns follow the order of the query; Arrow and polars frames carry the formula in their receipt."""
    lens = quick(world.watch(), metrics=ADS)
    query: dict[str, Any] = {"by": "platform", "over": "2026-10-10/2026-10-20", "every": "week"}
    frame = lens.query(["d1_retention", "ads_per_payer"], **query)
    assert [*frame.columns[2:]] == [
        *("d1_retention", "d1_returned", "d1_installs"),
        *("ads_per_payer", "ad_impressions_count", "paying_users"),
    ]
    pd.testing.assert_series_equal(frame["ads_per_payer"], computed(frame, "ads_per_payer"), check_names=False)
    table = lens.query("ads_per_payer", **query, to="arrow")
    receipt = json.loads(table.schema.metadata[b"gamelens"])
    assert receipt["asked"]["formulas"][0]["formula"] == "ad_impressions_count / paying_users"
    assert table.schema.field("ads_per_payer").type == pa.float64()


def test_a_row_that_the_service_lacks_has_the_formula_of_zeros(world: World) -> None:
    """Beside a metric with more rows, money is 0, and a ratio without players NA."""
    lens = quick(world.watch(), metrics=MONEY | ADS)
    frame = lens.query(["net_revenue", "ads_per_payer", "event_count"], by=["platform", "country_code"], over=OVER)
    filled = frame.attrs["gamelens"]["filled"]
    assert filled["net_revenue"] > 0
    assert filled["ads_per_payer"] > 0
    assert frame["net_revenue"].to_list() == pytest.approx((0.7 * frame["revenue"] + frame["ad_revenue"]).to_list())
    assert frame["ads_per_payer"].isna().to_list() == (frame["paying_users"] == 0).to_list()
