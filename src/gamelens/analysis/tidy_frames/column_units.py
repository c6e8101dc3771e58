"""Units and names of columns, for people, and how their numbers are written. Names are not escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from pandas import DataFrame
from pandas.api.types import is_float_dtype, is_numeric_dtype

from gamelens._scales import NumberKind, Scale
from gamelens.analysis.tidy_frames.results import CELLS
from gamelens.catalog import METRICS, find_metric
from gamelens.receipts import Receipt

ROW_UNITS: Final[tuple[NumberKind, ...]] = ("money", "share", "count", "number")
"""The units that a row of a frame may name in its column `unit` or `kind`."""


class ColumnUnit(NamedTuple):
    """The unit of a column.

    Attributes:
        kind: how its numbers are written.
        words: the unit as text.
        is_sum: whether a missing row means 0, so that a missing day can be drawn as 0.
    """

    kind: NumberKind
    words: str
    is_sum: bool = False


_KINDS: Final[dict[str, NumberKind]] = {"USD": "money", "share": "share"}
_COLUMNS: Final[dict[str, ColumnUnit]] = {
    "ad_arpdau": ColumnUnit("money", "USD per player per day"),
    "ad_revenue": ColumnUnit("money", "USD", is_sum=True),
    "share_of_change": ColumnUnit("share", "share of the change"),
    "ads_share": ColumnUnit("share", "share of revenue"),
    "ads_shown": ColumnUnit("count", "ads", is_sum=True),
    "arppu": ColumnUnit("money", "USD per payer"),
    "arpdau": ColumnUnit("money", "USD per player per day"),
    "blended_cpi": ColumnUnit("money", "USD per install, organic included"),
    "breaks": ColumnUnit("count", "ad breaks", is_sum=True),
    "behind_effect": ColumnUnit("money", "USD"),
    "chance_best": ColumnUnit("share", "probability of being the best"),
    "effect": ColumnUnit("money", "USD"),
    "click_rate": ColumnUnit("share", "clicked / shown"),
    "change": ColumnUnit("change", "change"),
    "comparable_share": ColumnUnit("share", "share of impressions"),
    "conversion": ColumnUnit("share", "conversion"),
    "cpi": ColumnUnit("money", "USD per paid install"),
    "ecpm": ColumnUnit("money", "USD per 1,000 impressions"),
    "expected_share": ColumnUnit("share", "expected share"),
    "credited": ColumnUnit("money", "USD"),
    "events": ColumnUnit("count", "events", is_sum=True),
    "fail_rate": ColumnUnit("share", "failed / attempted shows"),
    "fill_rate": ColumnUnit("share", "shown / requested"),
    "iap_arpdau": ColumnUnit("money", "USD per player per day"),
    "iap_revenue": ColumnUnit("money", "USD", is_sum=True),
    "impression_share": ColumnUnit("share", "share of impressions"),
    "impressions": ColumnUnit("count", "impressions", is_sum=True),
    "impressions_per_dau": ColumnUnit("number", "ads per player per day"),
    "impressions_per_session": ColumnUnit("number", "ads per session"),
    "installs": ColumnUnit("count", "players", is_sum=True),
    "minimal_effect": ColumnUnit("share", "share of players"),
    "minimal_lift": ColumnUnit("share", "of the control's value"),
    "money": ColumnUnit("money", "USD", is_sum=True),
    "of_previous": ColumnUnit("share", "of the step before"),
    "payer_share": ColumnUnit("share", "share of active players"),
    "expected_loss": ColumnUnit("share", "of players, on average"),
    "largest_day": ColumnUnit("share", "extra share of the money"),
    "largest_share": ColumnUnit("share", "share of ad revenue"),
    "level_change": ColumnUnit("change", "change"),
    "like_for_like": ColumnUnit("change", "like for like"),
    "lift": ColumnUnit("share", "of the control's value"),
    "ltv": ColumnUnit("money", "USD per new player"),
    "ltv_to_cpi": ColumnUnit("share", "of the cost of an install"),
    "players": ColumnUnit("count", "players", is_sum=True),
    "player_days": ColumnUnit("count", "active player-days", is_sum=True),
    "quarter_lift": ColumnUnit("share", "of the control's value"),
    "relative": ColumnUnit("change", "of the control's value"),
    "requests": ColumnUnit("count", "requests", is_sum=True),
    "retention": ColumnUnit("share", "share of new players"),
    "revenue": ColumnUnit("money", "USD", is_sum=True),
    "revenue_share": ColumnUnit("share", "share of ad revenue"),
    "roas": ColumnUnit("share", "share of ad spend"),
    "share": ColumnUnit("share", "share"),
    "share_of_requests": ColumnUnit("share", "of the requests"),
    "share_of_step_before": ColumnUnit("share", "of the step before"),
    "spend": ColumnUnit("money", "USD", is_sum=True),
    "sure_from": ColumnUnit("share", "probability"),
    "total_revenue": ColumnUnit("money", "USD", is_sum=True),
    "unknown_share": ColumnUnit("share", "share of ad revenue"),
    "variance_kept": ColumnUnit("share", "of the variance"),
    "weight": ColumnUnit("share", "weight"),
    "worth": ColumnUnit("money", "USD at the average eCPM"),
}
_NAMES: Final = {
    "behind": "Largest part in",
    "behind_effect": "Effect there",
    "ab_id": "experiment",
    "ab_variant_id": "variant",
    "ad_arpdau": "Ads",
    "ad_impressions_count": "Ads shown",
    "ad_revenue": "Ads",
    "ad_sdk_name": "network",
    "ad_type": "ad format",
    "arpdau": "ARPDAU",
    "arppu": "Revenue per payer",
    "arpu": "Revenue per player",
    "blended_cpi": "Blended CPI",
    "build": "build",
    "country_code": "country",
    "cpi": "CPI",
    "dap": "Daily active payers",
    "dau": "DAU",
    "ecpm": "eCPM",
    "event_count": "Events",
    "iap_arpdau": "Purchases",
    "iap_revenue": "Purchases",
    "format": "ad format",
    "ilrd_adunit_format": "ad format",
    "ilrd_adunit_name": "ad unit",
    "ilrd_id_unique": "Ad impressions",
    "ilrd_network_name": "network",
    "ilrd_revenue": "Ad revenue",
    "impressions_per_dau": "Ads per player per day",
    "impressions_per_session": "Ads per session",
    "install_publisher": "publisher",
    "ltv": "LTV",
    "ltv_to_cpi": "LTV / CPI",
    "mau": "MAU",
    "mean_dau": "Mean DAU",
    "new_users": "New players",
    "revenue": "Purchase revenue",
    "roas": "Return on ad spend",
    "session_unique": "Sessions",
    "share_of_change": "Share of the change",
    "spend": "Ad spend",
    "total_revenue": "Revenue",
    "user_unique": "Active players",
    "wau": "WAU",
}

Bounds = dict[str, list[tuple[int, int]]]
"""Places of the lower and upper bounds of intervals, by the number that they are about."""
UNIT: Final = "unit"
_MEASURED: Final = "measured_in"
"""The unit of what a claim compares. Its column `unit` says the unit of `size`, such as a ratio."""
_OF_ROW: Final = ("value", "control_value", "before", "difference")
"""Columns that are in the unit of their row, if the frame has a column for it."""
_RATIO: Final = "ratio"
_AMOUNTS: Final = ("before", "after", "change", "volume", "mix", "price")
"""Columns of a decomposition, all of them money."""


def kind_of_unit(unit: str) -> NumberKind:
    """Return how numbers of a *unit* are written, such as "USD per player", "share" or "players"."""
    first = str(unit).partition(" ")[0]
    return _KINDS.get(first, next((kind for kind in ROW_UNITS if kind == first), "number"))


def name_of(column: str) -> str:
    """Return the readable name of a column or metric. It is not escaped.

    Capitals stay: a column may be the title of a game.
    """
    words = column.replace("_", " ")
    return _NAMES.get(column) or words[:1].upper() + words[1:]


def joined_unit(frame: DataFrame, column: str) -> ColumnUnit | None:
    """Return the unit of a column that a join brought, by the record of the join or the currency beside it.

    Money in another currency than US dollars is a number in that currency. None for any other column.
    """
    described = [each.columns[column] for each in Receipt.of(frame.attrs).joined if column in each.columns]
    beside = frame.get(f"{column}_currency")
    codes = [] if beside is None else [str(code) for code in beside.dropna().unique()]
    if described and described[-1].kind != "money":
        kind: NumberKind = next((kind for kind in ROW_UNITS if kind == described[-1].kind), "number")
        return ColumnUnit(kind, name_of(column))
    if not described and not codes:
        return None
    currency = codes[0] if len(codes) == 1 else described[-1].unit if described and not codes else ""
    return ColumnUnit("money" if currency == "USD" else "number", currency)


def unit_of(column: str, metrics: list[str] | None = None) -> ColumnUnit:
    """Return the unit of a value column.

    Args:
        column: name of the column.
        metrics: the metrics of the frame's query. None means all.
    """
    for metric in metrics or METRICS:
        known = find_metric(metric)
        if known is None:
            continue
        columns = known.columns
        for field in known.fields:
            if columns[field.name] == column:
                is_sum = field.combines == "sum"
                kind = _KINDS.get(field.unit.partition(" ")[0], "count" if field.kind == "count" else "number")
                return ColumnUnit(kind, field.unit, is_sum)
    return _COLUMNS.get(column, ColumnUnit("number", name_of(column)))


def units_of(frame: DataFrame, metrics: list[str] | None = None) -> list[ColumnUnit]:
    """Return the unit of each column of *frame*, that of bounds being the unit of their number.

    The cells of `df.lens.wide()` and `matrix()` have the unit of the number that was spread.
    """
    cells = frame.attrs.get(CELLS) or {}
    spread = dict.fromkeys(cells.get("columns", ()), cells.get("of", ""))
    return [
        ColumnUnit("money", "USD")
        if _is_amount(frame, name)
        else joined_unit(frame, name) or unit_of(spread.get(name, name), metrics)
        for name in numbers_of(frame)
    ]


def numbers_of(frame: DataFrame) -> list[str]:
    """Return the name of each column of *frame*, for bounds that of the number which their interval is about."""
    numbers = [str(name) for name in frame.columns]
    for name, pairs in bounds_of(frame).items():
        for place in chain.from_iterable(pairs):
            numbers[place] = name
    return numbers


def bounds_of(frame: DataFrame) -> Bounds:
    """Return the places of the bounds of intervals, lower and upper, by the number that they are about.

    Of `x_low` that is `x`, else the last float before it, or "" if there is none.
    """
    names, found = [str(name) for name in frame.columns], Bounds()
    for place, name in enumerate(names):
        upper = f"{name.removesuffix('low')}high"
        is_bound = (name == "low" or name.endswith("_low")) and upper in names
        if not (is_bound and is_numeric_dtype(frame.dtypes.iloc[place])):
            continue
        number = name.removesuffix("_low")
        if number == name or number not in names:
            before = zip(names[:place], frame.dtypes.iloc[:place], strict=True)
            floats = [each for each, dtype in before if is_float_dtype(dtype) and not each.endswith(("low", "high"))]
            number = floats[-1] if floats else ""
        found.setdefault(number, []).append((place, names.index(upper)))
    return found


def has_units(frame: DataFrame) -> bool:
    """Return whether each row has a unit of its own."""
    return UNIT in frame and bool(frame[UNIT].notna().all()) and not is_numeric_dtype(frame[UNIT].dtype)


def scales_of(frame: DataFrame, number: str, kind: NumberKind, bounds: Bounds) -> tuple[list[Any], Mapping[Any, Scale]]:
    """Return what each row's scale is found by, empty if all have one, and the scales of a number and its *bounds*.

    The names of the frame's columns are text.
    Numbers that are subtracted from each other share a scale, rows of different units or measures do not.
    """
    of_row = number in (*_OF_ROW, _RATIO) and has_units(frame)
    own = _AMOUNTS if _is_amount(frame, number) else _OF_ROW if of_row and number != _RATIO else [number]
    family = [name for name in own if name in frame]
    values = frame[family].select_dtypes("number").astype("float64").to_numpy(na_value=math.nan)
    pairs = [
        frame.iloc[:, [*pair]].to_numpy("float64", na_value=math.nan) for name in own for pair in bounds.get(name, ())
    ]
    halves = np.concatenate([(pair[:, 1:] - pair[:, :1]) / 2 for pair in pairs] or [np.empty((len(frame), 0))], axis=1)
    if not of_row:
        return [], {"": Scale.of(kind, values.ravel(), halves.ravel())}
    units = frame[UNIT].astype("object")
    if _MEASURED in frame:
        units = units.where(frame[_MEASURED].isna(), frame[_MEASURED])
    rows = [*zip(units, frame.get("measure", frame.get("metric", units)), strict=True)]
    found = {key: [place for place, row in enumerate(rows) if row == key] for key in dict.fromkeys(rows)}
    scales = {}
    for key, own_rows in found.items():
        kind = "number" if number == _RATIO else kind_of_unit(key[0])
        kind = "points" if kind == "share" and number == "difference" else kind
        scale = Scale.of(kind, values[own_rows].ravel(), halves[own_rows].ravel())
        scales[key] = scale._replace(places=max(2, scale.places)) if number == _RATIO else scale
    return rows, scales


def _is_amount(frame: DataFrame, column: str) -> bool:
    """Return whether a column is an amount of a decomposition: its name means something else elsewhere."""
    return column in _AMOUNTS and all(name in frame for name in ("volume", "mix", "price", "change"))
