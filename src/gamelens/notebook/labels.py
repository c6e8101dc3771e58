"""Labels for people: units, formats of numbers and names made safe to show.

Titles, networks and countries come from outside, and plotly, Markdown and HTML all interpret markup in them. Every
text that is shown passes through `escape`.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, get_args

import pandas as pd

from gamelens._text import one_line
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.catalog import METRICS, find_metric
from gamelens.wire.intervals import Interval

Kind = Literal["money", "share", "count", "number"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class ColumnUnit(NamedTuple):
    """The unit of a column.

    Attributes:
        kind: how its numbers are written.
        words: the unit as text.
        is_sum: whether a missing row means 0, so that a missing day can be drawn as 0.
    """

    kind: Kind
    words: str
    is_sum: bool = False


_MARKUP: Final = re.compile(r"[!-$&'*;-@\[-`{-~]|:(?=/)")
_PLAIN: Final = str.maketrans("<>\"'`", "‹›”’’")
_KINDS: Final[dict[str, Kind]] = {"USD": "money", "share": "share"}
_COLUMNS: Final[dict[str, ColumnUnit]] = {
    "ad_arpdau": ColumnUnit("money", "USD per player and day"),
    "ad_revenue": ColumnUnit("money", "USD", is_sum=True),
    "share_of_change": ColumnUnit("share", "share of the change"),
    "ads_share": ColumnUnit("share", "share of revenue"),
    "ads_shown": ColumnUnit("count", "ads", is_sum=True),
    "arpdau": ColumnUnit("money", "USD per player and day"),
    "blended_cpi": ColumnUnit("money", "USD per install, organic ones too"),
    "chance_best": ColumnUnit("share", "chance to be the best"),
    "click_rate": ColumnUnit("share", "clicked / shown"),
    "change": ColumnUnit("share", "change"),
    "cpi": ColumnUnit("money", "USD per paid install"),
    "ecpm": ColumnUnit("money", "USD per 1,000 impressions"),
    "events": ColumnUnit("count", "events", is_sum=True),
    "fail_rate": ColumnUnit("share", "failed / shows tried"),
    "fill_rate": ColumnUnit("share", "shown / requested"),
    "iap_arpdau": ColumnUnit("money", "USD per player and day"),
    "iap_revenue": ColumnUnit("money", "USD", is_sum=True),
    "impression_share": ColumnUnit("share", "share of impressions"),
    "impressions": ColumnUnit("count", "impressions", is_sum=True),
    "impressions_per_dau": ColumnUnit("number", "ads per player and day"),
    "impressions_per_session": ColumnUnit("number", "ads per session"),
    "installs": ColumnUnit("count", "players", is_sum=True),
    "minimal_lift": ColumnUnit("share", "of the control's value"),
    "payer_share": ColumnUnit("share", "share of active players"),
    "ltv": ColumnUnit("money", "USD per new player"),
    "players": ColumnUnit("count", "players", is_sum=True),
    "player_days": ColumnUnit("count", "active player-days", is_sum=True),
    "requests": ColumnUnit("count", "requests", is_sum=True),
    "retention": ColumnUnit("share", "share of new players"),
    "revenue": ColumnUnit("money", "USD", is_sum=True),
    "revenue_share": ColumnUnit("share", "share of ad revenue"),
    "roas": ColumnUnit("share", "share of ad spend"),
    "spend": ColumnUnit("money", "USD", is_sum=True),
    "total_revenue": ColumnUnit("money", "USD", is_sum=True),
}
_NAMES: Final = {
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
    "iap_arpdau": "Purchases",
    "iap_revenue": "Purchases",
    "format": "ad format",
    "ilrd_adunit_format": "ad format",
    "ilrd_adunit_name": "ad unit",
    "ilrd_id_unique": "Ad impressions",
    "ilrd_network_name": "network",
    "ilrd_revenue": "Ad revenue",
    "impressions_per_dau": "Ads per player and day",
    "impressions_per_session": "Ads per session",
    "install_publisher": "publisher",
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


def escape(text: object) -> str:
    """Return *text* on one line, each character that is markup replaced by an HTML entity.

    Covers the markup of HTML, plotly, Markdown and TeX.
    """
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", one_line(text))


def plain(text: object) -> str:
    """Return *text* on one line for a place without markup, such as an attribute.

    Its angle brackets and quotation marks are replaced by harmless characters that look like them.
    """
    return one_line(text).translate(_PLAIN).strip()


def shorten(text: str, longest: int = 36) -> str:
    """Return *text* with its middle left out where it is longer than *longest*.

    Package and class names differ at their end, so most of what is kept is the end.
    """
    head = longest // 4
    return text if len(text) <= longest else f"{text[:head]}…{text[head + 1 - longest :]}"


def name_of(column: str) -> str:
    """Return the readable name of a column or metric. It is not escaped.

    Capitals stay: a column may be the title of a game.
    """
    words = column.replace("_", " ")
    return _NAMES.get(column) or words[:1].upper() + words[1:]


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


def tick_format(kind: Kind, largest: float) -> str:
    """Return the d3 format of an axis whose largest number is *largest*."""
    if kind == "share":
        return ".0%" if largest >= 0.05 else ".1%"
    sign = "$" if kind == "money" else ""
    if largest >= 1000:
        return f"{sign}~s"
    if kind == "count" or largest >= 20:
        return f"{sign},.0f"
    return f"{sign},.2~f" if largest >= 0.5 else f"{sign},.2f" if largest >= 0.05 else f"{sign},.4~f"


def hover_format(kind: Kind, largest: float) -> str:
    """Return the d3 format of a tooltip, for numbers of which the largest is *largest*."""
    places = {"share": ".1%", "count": ",.0f"}.get(kind)
    few = ",.0f" if largest >= 10_000 else ",.2f" if largest >= 0.5 else ",.4f"
    return places or f"{'$' if kind == 'money' else ''}{few}"


def day(moment: datetime) -> str:
    """Return *moment* as a readable day: `20 Nov 2026`."""
    return f"{moment.day} {moment:%b %Y}"


def bucket_heading(every: str | None) -> str:
    """Return what the timestamps of a frame with the bucket *every* are: `Day`, `Week of`, `Month`, `Period from`."""
    return {"week": "Week of", "month": "Month", "all": "Period from"}.get(every or "", "Day")


def bucket_text(start: datetime, every: str | None) -> str:
    """Return the bucket *every* that begins at *start*: `Nov 2026` for a month, `20 Nov 2026` for others."""
    return f"{start:%b %Y}" if every == "month" else day(start)


def period_text(interval: Interval) -> str:
    """Return *interval* in words: `25 Oct 2026 to 21 Nov 2026, 28 days`, both days included."""
    days = -(-(interval.end - interval.start) // timedelta(days=1))
    last = day(interval.end - timedelta(microseconds=1))
    return last if days <= 1 else f"{day(interval.start)} to {last}, {days} days"


def text_of(value: object) -> str:
    """Return a name from outside, escaped. A null becomes `(unknown)`."""
    is_null = value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return escape(UNKNOWN if is_null else value)
