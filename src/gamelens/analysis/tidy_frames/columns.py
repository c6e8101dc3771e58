"""What each column of a result is: its kind, title and unit, one row a column.

An analysis lists the columns that it returns (`returned_columns`); everything that shows a frame asks
`written_columns`. A name that means something else in one analysis is a `Column` beside that analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gamelens._scales import NumberKind
from gamelens.catalog import CATALOG, METRICS, Catalog

ColumnKind = Literal[
    "money",
    "share",
    "count",
    "number",
    "ratio",
    "change",
    "points",
    "p",
    "of the row",
    "difference",
    "unit",
    "category",
    "text",
    "flag",
    "day",
    "span",
    "texts",
]
"""What a column holds.

Numbers are US dollars, fractions of 1, whole numbers, plain numbers, multiples, changes, differences of fractions,
p-values, or in the unit that a column of kind "unit" says in their row, and differences of such numbers. "day" is a
time, "span" a length of time, "texts" a list.
"""

_DTYPES: Final = {"count": "Int64", "category": "category", "text": "str", "flag": "bool", "unit": "category"}
_AS_THEY_ARE: Final = ("day", "span", "texts")
_WRITTEN: Final[tuple[NumberKind, ...]] = ("money", "share", "count", "change", "points")
_OF_UNITS: Final[dict[str, ColumnKind]] = {"USD": "money", "share": "share"}
OF_MEASURE: Final = "measure"
"""As the *scale* of a column: rows of one measure have the same decimal places."""
OF_ROW: Final = ("of the row", "difference")
"""The kinds whose unit stands in their row."""


class Bounds(msgspec.Struct, frozen=True):
    """The two columns of an interval.

    Attributes:
        low, high: their names.
        about: how the interval is found, and when it is missing.
    """

    low: str
    high: str
    about: str = ""


class Column(msgspec.Struct, frozen=True):
    """One column of a result.

    Attributes:
        name: the name in the frame.
        kind: what it holds; the dtype follows.
        title: the heading. Empty is the name in words.
        unit: words for the unit, empty where the kind says it.
        about: what it is, for the reference.
        na: when it is missing. Empty means never.
        bounds: the intervals around it, which follow it in the frame.
        scale: a name that columns with the same decimal places share.
        values: the values of a closed category, in their order.
        is_sum: whether a missing row means 0, so that a missing day can be drawn as 0.
    """

    name: str
    kind: ColumnKind
    title: str = ""
    unit: str = ""
    about: str = ""
    na: str = ""
    bounds: tuple[Bounds, ...] = ()
    scale: str = ""
    values: tuple[str, ...] = ()
    is_sum: bool = False

    @property
    def dtype(self) -> str | None:
        """The dtype of the column, None for times, which keep theirs."""
        if self.kind == "flag" and self.na:
            return "boolean"
        return None if self.kind in _AS_THEY_ARE else _DTYPES.get(self.kind, "float64")

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.dtype in ("Int64", "float64")

    @property
    def written(self) -> NumberKind:
        """How its numbers are written."""
        return next((kind for kind in _WRITTEN if kind == self.kind), "number")

    @property
    def heading(self) -> str:
        """The title, or the name in words; the name of a flag loses its "is"."""
        return self.title or name_of(self.name.removeprefix("is_") if self.kind == "flag" else self.name)

    @property
    def unit_of_claim(self) -> str:
        """The unit in one word, as claims name it: "USD", "share", "ads"."""
        return {"money": "USD", "share": "share"}.get(self.kind, self.unit.partition(" ")[0])

    @property
    def unit_words(self) -> str:
        """Words for the unit, or the heading where there are none."""
        return self.unit or self.heading


def _columns(*rows: Column) -> dict[str, Column]:
    return {row.name: row for row in rows}


COLUMNS: Final = _columns(
    # dimensions and names
    Column("ab_id", "category", "Experiment"),
    Column("ab_variant_id", "category", "Variant"),
    Column("ad_sdk_name", "category", "Network"),
    Column("ad_type", "category", "Ad format"),
    Column("build", "category", "Build"),
    Column("country_code", "category", "Country"),
    Column("first_build", "category", "Build"),
    Column("format", "category", "Ad format", about="canonical name"),
    Column("geo", "category", "Country"),
    Column("ilrd_adunit_format", "category", "Ad format"),
    Column("ilrd_adunit_name", "category", "Ad unit"),
    Column("ilrd_network_name", "category", "Network"),
    Column("install_publisher", "category", "Publisher"),
    Column("network", "category", about="canonical name"),
    Column(
        "network_unknown",
        "category",
        about='"undisclosed" where the network gave no permission to show its name, "not reported" where the SDK named '
        "none",
        na="where the network is known",
    ),
    Column("game_id", "category", "Game ID"),
    Column("game", "category", about="its title"),
    Column("user_id", "category", "Player"),
    Column("platform", "category"),
    Column("timestamp", "day"),
    # players
    Column("installs", "count", unit="players", is_sum=True),
    Column("paid_installs", "count", about="of rows with spend"),
    Column("players", "count", unit="players", is_sum=True),
    Column("control_players", "count"),
    Column("expected_players", "number"),
    Column("players_needed", "count", na="if the control's share is 0 or the lifted one is 1 or more"),
    Column("control_players_needed", "count", na="like players_needed"),
    Column("player_days", "count", unit="active player-days", is_sum=True),
    Column("paying_player_days", "count"),
    Column("payers", "count"),
    Column("payer_share", "share", unit="share of active players", na="without players"),
    Column("successes", "count"),
    Column("sessions", "count"),
    Column("returned", "count", na="where the age is not reached"),
    Column("mean_dau", "number", "Mean DAU", "players"),
    # money
    Column("ad_arpdau", "money", "Ad ARPDAU", "USD per player per day", na="without players"),
    Column("ad_revenue", "money", "Ad revenue", "USD", is_sum=True),
    Column("arpdau", "money", "ARPDAU", "USD per player per day", na="without players"),
    Column("arppu", "money", unit="USD per payer", na="without payers"),
    Column(
        "behind",
        "text",
        "Largest part in",
        about="the segment with the largest part of the effect",
        na="without other dimensions",
    ),
    Column("behind_effect", "money", "Effect there", "USD", na="without other dimensions"),
    Column(
        "blended_cpi",
        "money",
        "Blended CPI",
        "USD per install, organic included",
        about="spend / installs",
        na="without installs or spend",
    ),
    Column(
        "cpi",
        "money",
        "Cost per install",
        "USD per paid install",
        about="spend / paid_installs",
        na="without installs or spend",
    ),
    Column("credited", "money", unit="USD"),
    Column("ecpm", "money", "eCPM", "USD per 1,000 impressions", na="without impressions"),
    Column("effect", "money", unit="USD"),
    Column("iap_arpdau", "money", "Purchase ARPDAU", "USD per player per day", na="without players"),
    Column("iap_revenue", "money", "Purchases", "USD", is_sum=True),
    Column("ltv", "money", "LTV", "USD per new player"),
    Column("money", "money", unit="USD", is_sum=True),
    Column("revenue", "money", unit="USD", is_sum=True),
    Column("spend", "money", "Ad spend", "USD", is_sum=True),
    Column("total_revenue", "money", "Revenue", "USD", is_sum=True),
    Column("worth", "money", unit="USD at the average eCPM"),
    # ads
    Column("ads_shown", "count", unit="ads", is_sum=True),
    Column("ads_share", "share", unit="share of revenue"),
    Column("breaks", "count", unit="ad breaks", is_sum=True),
    Column("click_rate", "share", unit="clicked / shown", na="where none was shown"),
    Column("clicked", "count"),
    Column("comparable_share", "share", unit="share of impressions"),
    Column("dimension", "category"),
    Column("equal_to", "number", "Equal shares"),
    Column("events", "count", unit="events", is_sum=True),
    Column("fail_rate", "share", unit="failed / attempted shows", na="where none was attempted"),
    Column("failed", "count"),
    Column("fill_rate", "share", unit="shown / requested", na="without requests"),
    Column("hhi", "number", "HHI", na="without revenue"),
    Column("impression_share", "share", unit="share of impressions"),
    Column("impressions", "count", unit="impressions", is_sum=True),
    Column("impressions_per_dau", "number", "Ads per player", "ads per player per day", na="without players"),
    Column("impressions_per_session", "number", "Ads per session", "ads per session", na="without sessions"),
    Column("index", "number"),
    Column("largest_share", "share", unit="share of ad revenue"),
    Column("lead", "number"),
    Column("loaded", "count"),
    Column("requested", "count"),
    Column("requests", "count", unit="requests", is_sum=True),
    Column("revenue_share", "share", "Revenue share", "share of ad revenue"),
    Column("share", "share", unit="share"),
    Column("share_of_requests", "share", "Share of the requests", unit="of the requests"),
    Column("share_of_step_before", "share", "Share of the step before", unit="of the step before"),
    Column("show_rate", "share", unit="shown / loaded", na="without loads"),
    Column("shown", "count"),
    Column("unknown_share", "share", unit="share of ad revenue"),
    # changes and decisions
    Column("control", "category"),
    Column("control_days", "count"),
    Column("days", "count"),
    Column("days_needed", "count"),
    Column("expected", "of the row"),
    Column("is_running", "flag", na="without a time"),
    Column("last_day", "day"),
    Column("measure", "category"),
    Column("change", "change", unit="change"),
    Column("chance_best", "share", "Probability of being the best", "probability of being the best"),
    Column("control_value", "of the row", "Value of the control", scale="values"),
    Column("before", "of the row", scale="values"),
    Column("difference", "difference", scale="values"),
    Column("expected_loss", "share", unit="of players, on average"),
    Column("expected_share", "share", unit="expected share"),
    Column("is_suspect", "flag"),
    Column("largest_day", "share", unit="extra share of the money"),
    Column("level_change", "change", unit="change"),
    Column("lift", "share", unit="of the control's value"),
    Column("like_for_like", "change", unit="like for like"),
    Column("minimal_effect", "share", unit="share of players"),
    Column("minimal_lift", "share", "Smallest detectable change", "of the control's value"),
    Column("of_previous", "share", "Share of the step before", unit="of the step before"),
    Column("p", "p", "P-value"),
    Column("q", "p", "Q-value"),
    Column("p_adjusted", "p", "P-value, corrected"),
    Column("p_days", "p", "P-value of the days"),
    Column("p_value", "p", "P-value"),
    Column("p_worst_day", "p", "P-value of the worst day"),
    Column("quarter_lift", "share", "After three months", "of the control's value"),
    Column("ratio", "ratio"),
    Column("relative", "change", "Relative difference", unit="of the control's value"),
    Column("share_of_change", "share", "Share of the change", "share of the change"),
    Column("sure_from", "share", "Needed to be sure", "probability"),
    Column("value", "of the row", scale="values"),
    Column("variance_kept", "share", unit="of the variance"),
    Column("weight", "share", unit="weight"),
    # retention and lifetime value
    Column("cohorts", "count", about="install days"),
    Column("model", "category"),
    Column("age", "count", about="days since install"),
    Column("fit_p_value", "p", "P-value of the fit"),
    Column("held_out_error", "number", "Held-out error"),
    Column("held_out_misfit", "number", "Held-out misfit"),
    Column("is_chosen", "flag"),
    Column("is_moved", "flag"),
    Column("is_outside", "flag"),
    Column("is_paid_back", "flag"),
    Column("is_projected", "flag"),
    Column("ltv_to_cpi", "share", "LTV / CPI", "of the cost of an install"),
    Column("d1_retention_week_before", "share", "D1 retention, week before", "share"),
    Column("d7_retention_week_before", "share", "D7 retention, week before", "share"),
    Column("retention", "share", unit="share of new players"),
    Column("roas", "share", "Return on ad spend", "share of ad spend"),
    # words
    Column("api", "number", "API"),
    Column("says", "text", "Finding"),
    Column("unit", "unit"),
)
"""Each column that several analyses return, by name."""


def column_named(name: str, metrics: Sequence[str] | None = None, catalog: Catalog = CATALOG) -> Column:
    """Return what the column *name* of a frame is, by its name alone.

    Args:
        name: name of the column.
        metrics: the metrics of the frame's query, whose fields come first. None means all.
        catalog: has the own metrics of the frame.
    """
    for metric in metrics or METRICS:
        known = catalog.find(metric)
        for field in known.fields if known is not None else ():
            if known is not None and known.columns[field.name] == name:
                kind = _OF_UNITS.get(field.unit.partition(" ")[0], "count" if field.kind == "count" else "number")
                return Column(name, kind, name_of(name, catalog), field.unit, is_sum=field.combines == "sum")
    return COLUMNS.get(name) or Column(name, "number")


def name_of(name: str, catalog: Catalog = CATALOG) -> str:
    """Return the readable name of a column or metric; *catalog* has the own metrics. It is not escaped.

    Capitals stay: a column may be the title of a game.
    """
    metric = catalog.find(name)
    known = None if name in catalog.own else COLUMNS.get(name)
    words = name.replace("_", " ")
    return (known and known.title) or (metric and metric.title) or words[:1].upper() + words[1:]
