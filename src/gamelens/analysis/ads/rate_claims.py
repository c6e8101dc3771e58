"""Claims about rates: filled requests, empty ad breaks, clicks, ads and money per player.

A rate is a ratio of two sums. Its interval comes from the differences between days, which are the repetitions: it tells
what to expect of days like these. A frame with one row for the whole interval has no days, so its rates are counted:
they hold for that interval, and no value is said to be clearly above another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens._text import NumberKind, format_number
from gamelens.analysis.ads.ad_revenue import earnings, fill_rates
from gamelens.analysis.ads.canonical_names import named_for
from gamelens.analysis.claims import Claim, direction_of
from gamelens.analysis.over_days import Counted, day_numbers, over_days
from gamelens.analysis.tidy_frames import column_of, display_values, with_ids
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires

Floats = NDArray[np.float64]

_ACTIONS: Final = FrameRequirements(metrics=("event_count",), splits=("ad_action",))
_NOTHING: Final = "No ads were asked for in this period."
_PART, _WHOLE = "_part", "_whole"


@dataclass(frozen=True, eq=False, slots=True)
class DayRate:
    """A ratio of two sums over days.

    Attributes:
        name: the value it is of, empty for all together.
        value: the ratio, NaN without a denominator.
        low, high: its 95 % interval, NaN where the days do not show one.
        parts: the daily numerators and denominators as shares of their sums, shape (2, days).
        days: days since 1970-01-01.
        kind: how the ratio is written.
    """

    name: str
    value: float
    low: float
    high: float
    parts: Floats
    days: NDArray[np.int64]
    kind: NumberKind

    def text(self) -> str:
        """Return the ratio, with its interval where it has one."""
        number = format_number(self.value, self.kind)
        if math.isnan(self.low):
            return number
        return f"{number} ({format_number(self.low, self.kind)} to {format_number(self.high, self.kind)})"

    def ratio_to(self, other: DayRate, *, confidence: float) -> tuple[float, float, float]:
        """Return this rate as a multiple of *other* with its interval, on the same days."""
        if not (self.value > 0 and other.value > 0):
            return math.nan, math.nan, math.nan
        size, half = self.value / other.value, math.nan
        if not (math.isnan(self.low) or math.isnan(other.low)):
            weight = (self.parts[1] + other.parts[1]) / 2
            apart = (self.parts[0] - self.parts[1]) - (other.parts[0] - other.parts[1])
            half = float(over_days(weight + apart, weight, self.days, is_balanced=False).half_width(confidence)[0])
        return size, size * math.exp(-half), size * math.exp(half)


def day_rates(frame: DataFrame, by: str | None, part: str, whole: str, kind: NumberKind) -> list[DayRate]:
    """Return *part* / *whole* for each value of *by*, highest first.

    Values without a denominator are left out, and so are those without an interval where others have one: a network
    with five requests is not a leader.
    """
    keys = with_ids(frame, by)
    numbers = {_PART: frame[part].astype("float64"), _WHOLE: frame[whole].astype("float64")}
    rows = frame[keys].assign(day=frame.get("timestamp", pd.Timestamp(0, tz="UTC")), **numbers)
    days = pd.Index(rows["day"].unique()).sort_values()
    names, sums = [], []
    for _, own in rows.groupby(keys, observed=True, dropna=False, sort=False) if keys else [((), rows)]:
        by_day = own.groupby("day")[[_PART, _WHOLE]].sum().reindex(days, fill_value=0.0).to_numpy().T
        if by_day[1].sum() > 0:
            names.append(display_values(own[by]).iloc[0] if by else "")
            sums.append(by_day)
    if not sums:
        return []
    above, below = np.stack(sums, axis=1)
    values, number = above.sum(axis=1) / below.sum(axis=1), day_numbers(days)
    counted: Counted | None = "shares" if kind == "share" else None
    low, high = over_days(above, below, number, counted=counted, is_balanced=False).bounds()
    ends = np.minimum(high, 1.0) if kind == "share" else high
    shares = np.stack(
        [above / np.maximum(above.sum(axis=1, keepdims=True), 1e-300), below / below.sum(axis=1)[:, None]]
    )
    rates = [
        DayRate(name, float(values[place]), float(low[place]), float(ends[place]), shares[:, place], number, kind)
        for place, name in enumerate(names)
    ]
    sure = [rate for rate in rates if not math.isnan(rate.low)]
    return sorted(sure or rates, key=lambda rate: -rate.value)


def level_claim(rates: list[DayRate], kind: str, sentence: str, *, unit: str, otherwise: str = _NOTHING) -> Claim:
    """Return the claim of the first rate in *sentence*, which has `{rate}` for it."""
    if not rates:
        return Claim(kind=kind, direction="unknown", unit=unit, text=otherwise)
    rate = rates[0]
    text = sentence.format(rate=rate.text())
    return Claim(kind=kind, direction="unknown", size=rate.value, low=rate.low, high=rate.high, unit=unit, text=text)


def leader_claim(rates: list[DayRate], by: str, kind: str, sentence: str, *, otherwise: str = _NOTHING) -> Claim:
    """Return the claim that the first value of *by* has the highest rate.

    *sentence* has `{name}` and `{rate}`. Size, low and high are the multiple of the next one, whose interval is
    corrected for the values that might have been the next (Bonferroni). The direction is "higher" only if the whole
    interval is above 1.
    """
    if not rates:
        return Claim(kind=kind, direction="unknown", unit="ratio", text=otherwise)
    best, *rest = rates
    text, subject = sentence.format(name=best.name, rate=best.text()), {by: best.name}
    if not rest:
        return Claim(kind=kind, subject=subject, direction="unknown", unit="ratio", text=f"{text}.")
    size, low, high = best.ratio_to(rest[0], confidence=1 - 0.05 / len(rest))
    direction = direction_of(low, high, neutral=1.0)
    following = {"higher": "clearly more than", "unknown": "followed by"}.get(direction, "not clearly more than")
    text += f", {following} {rest[0].name} with {rest[0].text()}"
    text += f"; the least is {rest[-1].name} with {rest[-1].text()}." if len(rest) > 1 else "."
    return Claim(
        kind=kind, subject=subject, direction=direction, size=size, low=low, high=high, unit="ratio", text=text
    )


@requires(frame=_ACTIONS)
def fill_claim(frame: DataFrame, by: str = "network") -> Claim:
    """Return the value of *by* that fills most of its requests.

    *frame* is event_count by ad_action. Filled is as in `fill_rates`: loaded, or shown where not every SDK reports
    loads. Of days the rates have intervals; of one row for the whole interval they are counted.
    """
    frame = named_for(frame, by)
    rates = fill_rates(frame, by)
    reports = set(display_values(rates[by])[rates["loaded"].notna()])
    is_loaded = display_values(frame[by]).isin(reports)
    action = frame["ad_action"].astype("object")
    filled = (is_loaded & (action == "loaded")) | (~is_loaded & (action == "show"))
    sentence = "{name} fills the largest share of its requests, {rate}"
    return leader_claim(_action_rates(frame, by, filled, action == "request"), by, f"fill rate by {by}", sentence)


@requires(frame=_ACTIONS)
def empty_break_claims(frame: DataFrame, by: str = "ad_type") -> list[Claim]:
    """Return the share of empty ad breaks, and the value of *by* with most.

    An ad break is one that showed an ad or failed to show any. Of days the shares have intervals; of one row for the
    whole interval they are counted. From event_count by ad_action.
    """
    frame = named_for(frame, by)
    action = frame["ad_action"].astype("object")
    is_empty, is_break = action == "failed_show", action.isin(["show", "failed_show"])
    whole = _action_rates(frame, None, is_empty, is_break)
    if not whole or not whole[0].value:
        text = "No ad break stayed empty." if whole else _NOTHING
        return [Claim(kind="empty ad breaks", direction="unknown", size=0.0 if whole else math.nan, text=text)]
    return [
        level_claim(whole, "empty ad breaks", "{rate} of the ad breaks stayed empty.", unit="share"),
        leader_claim(
            _action_rates(frame, by, is_empty, is_break),
            by,
            f"empty ad breaks by {by}",
            "Those for {name} stay empty most often, {rate}",
        ),
    ]


@requires(frame=_ACTIONS)
def click_claim(frame: DataFrame) -> Claim:
    """Return the share of shown ads that were clicked, from event_count by ad_action."""
    action = frame["ad_action"].astype("object")
    rates = _action_rates(frame, None, action == "clicked", action == "show")
    shown = fill_rates(frame)["shown"].sum()
    sentence = f"{format_number(shown, 'count')} ads were shown and {{rate}} of them clicked."
    return level_claim(rates, "click rate", sentence, unit="share")


@requires(frame=_ACTIONS, daily=FrameRequirements(metrics=("ecpm",)))
def empty_break_worth(frame: DataFrame, daily: DataFrame) -> Claim:
    """Return the worth of the empty ad breaks of *frame* at the average eCPM of *daily*.

    Both numbers are counted, so the claim has no interval. An ad that no network offered may have paid less than the
    average.
    """
    kind = "worth of empty ad breaks"
    lost, ecpm = int(fill_rates(frame)["failed"].sum()), earnings(daily)["ecpm"]
    if not lost or not len(ecpm) or pd.isna(ecpm.iloc[0]):
        text = "No ad break stayed empty." if not lost else "What the empty ad breaks would have earned is unknown."
        return Claim(kind=kind, direction="unknown", size=math.nan if lost else 0.0, unit="USD", text=text)
    worth = lost / 1000 * float(ecpm.iloc[0])
    text = (
        f"{format_number(lost, 'count')} ad breaks stayed empty: {format_number(worth, 'money')} at the average eCPM, "
    )
    text += "less if the ads that were not offered pay less."
    return Claim(kind=kind, direction="unknown", size=worth, unit="USD", text=text)


@requires(
    frame=FrameRequirements(
        metrics=("ilrd_revenue", "ad_impressions_count", "user_unique", "session_unique"),
        every=("day",),
        counts_players=True,
    )
)
def per_player_claims(frame: DataFrame, by: str = "game") -> list[Claim]:
    """Return ads per player and session, ad ARPDAU, and the value of *by* with the highest.

    The intervals come from the differences between days.
    """
    ads, players = column_of(frame, "ad_impressions_count", "ad_impressions_count"), _players(frame)
    sessions, money = column_of(frame, "session_unique", "session_unique"), column_of(frame, "ilrd_revenue", "sum")
    otherwise = "No players were active in this period."
    shown = day_rates(frame, None, ads, players, "number")
    if not shown:
        return [Claim(kind="ads per player and day", direction="unknown", text=otherwise)]
    worth, by_value = (day_rates(frame, split, money, players, "money") for split in (None, by))
    return [
        level_claim(shown, "ads per player and day", "A player sees {rate} ads a day.", unit="ads"),
        level_claim(
            day_rates(frame, None, ads, sessions, "number"),
            "ads per session",
            "A session has {rate} of them.",
            unit="ads",
        ),
        level_claim(worth, "ad ARPDAU", "In ads, a player's day is worth {rate}.", unit="USD"),
        leader_claim(by_value, by, f"ad ARPDAU by {by}", "It is worth most in {name}, {rate}"),
    ]


def _players(frame: DataFrame) -> str:
    return column_of(frame, "user_unique", "user_unique")


def _action_rates(frame: DataFrame, by: str | None, part: pd.Series[bool], whole: pd.Series[bool]) -> list[DayRate]:
    """Return the rates of the events of some ad actions to those of others."""
    count = frame[column_of(frame, "event_count", "event_count")]
    numbers = {_PART: count.where(part, 0), _WHOLE: count.where(whole, 0)}
    return day_rates(frame.assign(**numbers), by, _PART, _WHOLE, "share")
