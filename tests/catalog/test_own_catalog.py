"""Own metrics in the catalog: what they are made of, what they add up over, and which are refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gamelens.catalog import ALIASES, CATALOG, METRICS, Catalog
from gamelens.errors import BadQuery
from gamelens.formulas import MetricFormula
from gamelens.receipts import QueryRecord, Receipt, merge_receipts


def made(**metrics: Any) -> Catalog:
    """Return a catalog with own metrics."""
    return Catalog.defined(metrics)


@pytest.mark.parametrize(
    ("formula", "adds", "columns"),
    [
        ("ad_revenue / ad_impressions_count", "everywhere", "ad_revenue ad_impressions_count"),
        ("ad_impressions_count / paying_users", "over games", "ad_impressions_count paying_users"),
        ("arpdau * 1", "over time and games", "iap_revenue ad_revenue player_days"),
        ("revenue / dau", "over games", "revenue dau"),
        ("arpu", "over games", "revenue user_unique"),
        ("1 - conversion", "over games", "paying_users user_unique"),
        ("ecpm", "everywhere", "ad_revenue impressions"),
        ("new_users - converting_users", "everywhere", "new_users converting_users"),
    ],
)
def test_it_is_made_of_columns_that_are_summed(formula: str, adds: str, columns: str) -> None:
    """Ratios among its metrics are written out, so that a total is computed from the totals of the parts."""
    own = made(x=formula).own["x"]
    assert own.adds == adds
    assert [field.name for field in own.fields] == ["x", *columns.split()]
    assert own.shown == ("x", *columns.split())


def test_own_metrics_may_be_made_of_own_metrics_in_any_order() -> None:
    """They are put in order, and a query records those that it needs."""
    catalog = made(b="a + a", a="revenue / user_unique", other="revenue")
    assert [formula.name for formula in catalog.formulas] == ["a", "b", "other"]
    assert [formula.name for formula in catalog.formulas_of(["b", "dau"])] == ["a", "b"]
    assert catalog.own["b"].unit == "USD per player"
    assert Catalog(catalog.formulas) == catalog


def test_a_bucket_is_that_of_its_metrics() -> None:
    """A formula of stickiness is counted by month, as stickiness is."""
    assert made(x="stickiness - 0.1").own["x"].every == "month"


def test_unit_and_title_may_be_stated() -> None:
    """A table has them beside the formula."""
    table = {"formula": "revenue * user_unique", "unit": "USD players", "title": "Odd product"}
    own = made(x=table).own["x"]
    assert (own.unit, own.title) == ("USD players", "Odd product")


@pytest.mark.parametrize(
    ("metrics", "field", "rule"),
    [
        ({"revenue": "user_unique"}, "metrics.revenue", "needs another name: revenue is a metric"),
        ({"dau": "user_unique"}, "metrics.dau", "dau is a metric"),
        ({"platform": "revenue"}, "metrics.platform", "platform is a dimension"),
        ({"game": "revenue"}, "metrics.game", "game is a dimension"),
        ({"player_days": "revenue"}, "metrics.player_days", "is a column of arpdau"),
        ({"timestamp": "revenue"}, "metrics.timestamp", "is a column of frames"),
        ({"1x": "revenue"}, "metrics", "is no name"),
        ({"a-b": "revenue"}, "metrics", "is no name"),
        ({"": "revenue"}, "metrics", "is no name"),
        ({"lambda": "revenue"}, "metrics", "is no name"),
        ({"x" * 61: "revenue"}, "metrics", "is no name"),
        ({3: "revenue"}, "metrics", "is no name"),
        ({"x": "revenue / paying_user"}, "metrics.x", "Did you mean `paying_users`"),
        ({"x": "payers / revenue"}, "metrics.x", "Did you mean `paying_users`"),
        ({"x": "net_reveue", "net_revenue": "0.7 * revenue"}, "metrics.x", "Did you mean `net_revenue`"),
        ({"x": "x + 1"}, "metrics.x", r"needs itself \(x -> x\)"),
        ({"x": "y", "y": "z / 2", "z": "x"}, "metrics.x", "x -> y -> z -> x"),
        ({"x": "5"}, "metrics.x", "names no metric"),
        ({"x": "revenue / 0"}, "metrics.x", "divides by zero"),
        ({"x": "wau / mau"}, "metrics.x", "wau by week, mau by month"),
        ({"x": "d7_retention"}, "metrics.x", "retention of an age"),
        ({"x": "retention_retro / 2"}, "metrics.x", "retention of an age"),
        ({"x": "session_length"}, "metrics.x", "comes without its parts"),
        ({"x": "revenue + user_unique"}, "metrics.x", '"unit": "..."'),
        ({"x": 5}, "metrics.x", "must be a formula"),
        ({"x": {"unit": "USD"}}, "metrics.x", "must be a formula"),
        ({"x": {"formula": "revenue", "titel": "T"}}, "metrics.x.titel", "Did you mean `title`"),
        ({"x": {"formula": "revenue", "title": 5}}, "metrics.x.title", "must be a string"),
        ({"x": {"formula": "revenue", "unit": "u" * 61}}, "metrics.x.unit", "at most 60 letters"),
        ({"x": {"formula": "revenue", "title": "a\x1bb"}}, "metrics.x.title", "at most 60 letters"),
        (["revenue"], "metrics", "must be a table"),
    ],
)
def test_what_cannot_be_defined_is_refused(metrics: Any, field: str, rule: str) -> None:
    """The error names the metric, the rule, and the next step."""
    with pytest.raises(BadQuery, match=rule) as refused:
        Catalog.defined(metrics)
    assert refused.value.field == field


def test_formulas_that_grow_without_end_are_refused_at_once() -> None:
    """Thirty doublings would be a formula of a billion signs."""
    doubled = {f"m{step}": f"m{step - 1} + m{step - 1}" for step in range(1, 30)}
    began = time.perf_counter()
    with pytest.raises(BadQuery, match="written out"):
        Catalog.defined({"m0": "revenue", **doubled})
    assert time.perf_counter() - began < 5


def test_the_catalog_of_all_stays_as_it_is() -> None:
    """A definition is known to its own catalog alone."""
    assert made(x="revenue").find("x") is not None
    assert CATALOG.find("x") is None
    assert CATALOG.metrics.keys() == {*METRICS, *ALIASES}


def test_a_receipt_that_this_version_cannot_read_leaves_out_what_it_cannot() -> None:
    """A receipt may be damaged, or of a version with other metrics."""
    formulas = tuple(
        MetricFormula(name=name, formula=formula)
        for name, formula in (("a", "revenue"), ("b", "metric_of_tomorrow"), ("", ""), ("c", "a / user_unique"))
    )
    catalog = Catalog.recorded(formulas)
    assert [*catalog.own] == ["a", "c"]


def test_receipts_keep_the_formulas_as_json() -> None:
    """Only the receipts of queries with own metrics have them."""
    formulas = made(x="revenue / user_unique").formulas
    receipt = Receipt(asked=QueryRecord(metric="x", formulas=formulas))
    written = receipt.to_json()
    assert written["asked"]["formulas"] == [
        {"name": "x", "formula": "revenue / user_unique", "unit": "USD per player", "title": ""}
    ]
    assert Receipt.of({"gamelens": written}) == receipt
    assert "formulas" not in Receipt(asked=QueryRecord(metric="dau")).to_json()["asked"]


def test_frames_put_together_keep_all_formulas_and_say_where_they_differ() -> None:
    """The first formula of a name counts; another one under the same name is a warning."""
    records = [
        Receipt(asked=QueryRecord(metric=tuple(own), formulas=Catalog.defined(own).formulas))
        for own in ({"x": "revenue"}, {"x": "ad_revenue", "y": "revenue / 2"})
    ]
    merged = merge_receipts(records)
    assert [(formula.name, formula.formula) for formula in merged.asked.formulas] == [
        ("x", "revenue"),
        ("y", "revenue / 2"),
    ]
    assert merged.warnings == ("x is revenue in one frame and ad_revenue in another",)
