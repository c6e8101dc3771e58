"""Units and names of columns, for people. Names are not escaped."""

from __future__ import annotations

from typing import Final, NamedTuple

from pandas import DataFrame

from gamelens._scales import NumberKind
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
    "minimal_lift": ColumnUnit("share", "of the control's value"),
    "money": ColumnUnit("money", "USD", is_sum=True),
    "of_previous": ColumnUnit("share", "of the step before"),
    "payer_share": ColumnUnit("share", "share of active players"),
    "expected_loss": ColumnUnit("share", "of players, on average"),
    "largest_day": ColumnUnit("share", "extra share of the money"),
    "largest_share": ColumnUnit("share", "share of ad revenue"),
    "ltv": ColumnUnit("money", "USD per new player"),
    "ltv_to_cpi": ColumnUnit("share", "of the cost of an install"),
    "players": ColumnUnit("count", "players", is_sum=True),
    "player_days": ColumnUnit("count", "active player-days", is_sum=True),
    "quarter_lift": ColumnUnit("share", "of the control's value"),
    "requests": ColumnUnit("count", "requests", is_sum=True),
    "retention": ColumnUnit("share", "share of new players"),
    "revenue": ColumnUnit("money", "USD", is_sum=True),
    "revenue_share": ColumnUnit("share", "share of ad revenue"),
    "roas": ColumnUnit("share", "share of ad spend"),
    "share": ColumnUnit("share", "share"),
    "spend": ColumnUnit("money", "USD", is_sum=True),
    "sure_from": ColumnUnit("share", "probability"),
    "total_revenue": ColumnUnit("money", "USD", is_sum=True),
    "unknown_share": ColumnUnit("share", "share of ad revenue"),
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
