"""Claims about retention: who installed, who came back, and who will still be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens._text import counted, format_number
from gamelens.analysis.claims import Claim, Direction, direction_of
from gamelens.analysis.retention.retention_rates import day_spread, pooled
from gamelens.analysis.significance import LEVEL, difference_of
from gamelens.analysis.tidy_frames import display_values
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, requires, result_of

_SIZES: Final = result_of("retention.cohort_sizes(frame, by=...)", "timestamp", "installs")
_CURVE: Final = result_of("retention.average_curve(frame)", "age", "retention", "low", "high")
_AHEAD: Final = result_of("retention.project_retention(frame)", "model", "age", "retention", "low", "high")
_DEFINITIONS: Final = result_of("gl.retention_definitions(lake, ...)", "definition", "age", "retention")
_GAP: Final = result_of("gl.retention_gap(lake, ...)", "age", "term", "amount", "players")
_NOBODY: Final = "There are no new players in this period."


@requires(sizes=_SIZES)
def installs_claim(sizes: DataFrame, by: str = "game") -> Claim:
    """Return how many players installed, and the value of *by* with most of them.

    *sizes* is the frame of `cohort_sizes`. Players are counted, not estimated, so the claim has no interval.
    """
    kind, total = f"installs by {by}", int(sizes["installs"].sum())
    if not total:
        return Claim(kind=kind, direction="unknown", unit="players", text=_NOBODY)
    names = display_values(sizes[by]).rename(by)
    won = sizes.groupby(names, sort=False)["installs"].sum().sort_values(ascending=False)
    days = int(sizes["timestamp"].nunique())
    text = f"{total:,} players installed on {counted(days, 'day')}"
    text += f"; {won.index[0]} won the most, {won.iloc[0]:,}." if len(won) > 1 else f", all of them {won.index[0]}'s."
    size = float(won.iloc[0])
    return Claim(kind=kind, subject={by: str(won.index[0])}, direction="higher", size=size, unit="players", text=text)


@requires(frame=RETENTION)
def day_range_claim(frame: DataFrame) -> Claim:
    """Return the range of install days at the first age, and whether it is more than chance.

    Size is the standard deviation of install days beyond chance, relative to retention (`day_spread`). The direction is
    "higher" if a test of homogeneity at the first age says that days differ (p < 0.05), and "no clear difference" if it
    does not. The range itself is counted.
    """
    kind, cohorts = "variation of install days", pooled(frame)
    first_age = cohorts[cohorts["age"] == cohorts["age"].min()]
    shares = first_age["retention"].dropna()
    if shares.empty:
        text = "No install day has reached the first age yet." if len(cohorts) else _NOBODY
        return Claim(kind=kind, direction="unknown", unit="ratio", text=text)
    low, high = (format_number(share, "share") for share in (shares.min(), shares.max()))
    between = f"Between {low} and {high}" if len(shares) > 1 else low
    oldest = cohorts[cohorts["age"] == cohorts["age"].max()]
    spread = day_spread(frame).iloc[0]
    direction: Direction = "higher" if spread["p_value"] < LEVEL else "no clear difference"
    words = {"higher": "Install days differ by more than chance", "unknown": "One day shows no variation"}
    direction = "unknown" if pd.isna(spread["p_value"]) else direction
    text = (
        f"{between} of a day's new players were back on day {first_age['age'].iloc[0]}. "
        f"{words.get(direction, 'Install days are not seen to differ by more than chance')}; "
        f"{oldest['retention'].notna().sum():,} of {len(oldest):,} have reached day {oldest['age'].iloc[0]}."
    )
    return Claim(kind=kind, direction=direction, size=float(spread["spread"]), unit="ratio", text=text)


@requires(curve=_CURVE)
def level_claims(curve: DataFrame, by: str | None = None, *, ages: Sequence[int] | None = None) -> list[Claim]:
    """Return the retention of each row of `average_curve`, with its interval.

    *ages* are those wanted, None is all. A level is compared with nothing, so the direction is "unknown".
    """
    rows = curve if ages is None else curve[curve["age"].isin(ages)]
    names = display_values(rows[by]) if by else Series("", index=rows.index)
    return [_level_claim(row, by, name) for name, row in zip(names, rows.to_dict("records"), strict=True)]


@requires(ahead=_AHEAD)
def longest_claim(ahead: DataFrame, by: str) -> Claim:
    """Return the value of *by* that keeps most players until the last projected age.

    *ahead* is the frame of `project_retention`. It is "higher" only if its difference from the next one has an interval
    above zero: bands that overlap may still differ.
    """
    last = ahead["age"].max()
    kind = f"D{last} retention by {by}"
    at_end = ahead[(ahead["age"] == last) & ahead["retention"].notna()].sort_values("retention", ascending=False)
    if not len(at_end):
        return Claim(kind=kind, direction="unknown", unit="pp", text="How many will still be there is not known yet.")
    name, *rest = display_values(at_end[by])
    best, *others = at_end.to_dict("records")
    text = f"On day {last}, {name} is projected to still have {_with_interval(best)} of its new players"
    subject = {by: name}
    if not rest:
        return Claim(kind=kind, subject=subject, direction="unknown", unit="pp", text=f"{text}.")
    estimates = [(row["retention"], row["low"], row["high"]) for row in (best, others[0])]
    size, low, high = (100 * value for value in difference_of(*estimates))
    direction = direction_of(low, high)
    compared = "more than" if direction == "higher" else "not clearly more than"
    text += f": {compared} {rest[0]}, {format_number(others[0]['retention'], 'share')}."
    return Claim(kind=kind, subject=subject, direction=direction, size=size, low=low, high=high, unit="pp", text=text)


def _level_claim(row: dict[Any, Any], by: str | None, name: str) -> Claim:
    kind, subject = f"D{row['age']} retention", {by: name} if by else {}
    keeps = f"{name} keeps {_with_interval(row)}" if by else f"{_with_interval(row)} are back"
    if pd.isna(row["retention"]):
        text = f"On day {row['age']}, {name or 'retention'} is not known yet."
        return Claim(kind=kind, subject=subject, direction="unknown", unit="share", text=text)
    return Claim(
        kind=kind,
        subject=subject,
        direction="unknown",
        size=row["retention"],
        low=row["low"],
        high=row["high"],
        unit="share",
        text=f"On day {row['age']}, {keeps}.",
    )


def _with_interval(row: dict[Any, Any]) -> str:
    """Return retention as `12.3% (11.0% to 13.9%)`."""
    value, low, high = (format_number(row[name], "share") for name in ("retention", "low", "high"))
    return f"{value} ({low} to {high})"


@requires(shown=_DEFINITIONS)
def definitions_claim(shown: DataFrame, age: int) -> Claim:
    """Return how far apart the definitions of `gl.retention_definitions` are at one *age*.

    Players are counted, not estimated, so the claim has no interval. Size is the largest retention less the smallest,
    in percentage points.
    """
    kind, rows = f"D{age} retention by definition", shown[(shown["age"] == age) & shown["retention"].notna()]
    if rows.empty:
        text = f"No definition has a player who has reached day {age}."
        return Claim(kind=kind, direction="unknown", unit="pp", text=text)
    ordered = rows.sort_values("retention")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    text = (
        f"D{age} retention is {format_number(low['retention'], 'share')} by one definition ({low['definition']}) and "
        f"{format_number(high['retention'], 'share')} by another ({high['definition']}), of the same events."
    )
    size = 100 * float(high["retention"] - low["retention"])
    return Claim(kind=kind, direction="unknown", size=size, unit="pp", text=text)


@requires(gap=_GAP)
def gap_claim(gap: DataFrame, age: int) -> Claim:
    """Return the terms of `gl.retention_gap` at one *age*, and their sum.

    Size is that sum in percentage points, counted.
    """
    kind, rows = f"gap of D{age} retention", gap[(gap["age"] == age) & gap["amount"].notna()]
    terms = rows[rows["amount"] != 0]
    if terms.empty:
        text = f"D{age} retention is the same by both definitions." if len(rows) else f"Nobody has reached day {age}."
        return Claim(kind=kind, direction="unknown", unit="pp", text=text)
    size = 100 * float(terms["amount"].sum())
    parts = [
        f"{100 * row['amount']:+.1f} from {counted(int(row['players']), 'player')} ({row['term']})"
        for row in terms.to_dict("records")
    ]
    direction: Direction = "higher" if size > 0 else "lower"
    text = f"By the second definition D{age} retention differs by {size:+.1f} percentage points: {', '.join(parts)}."
    return Claim(kind=kind, direction=direction, size=size, unit="pp", text=text)
