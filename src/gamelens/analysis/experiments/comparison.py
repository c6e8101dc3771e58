"""Comparison of the arms of any split: variants, builds, platforms, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Clause, Direction, Finding, JudgedBy, case_among, direction_among, reads
from gamelens.analysis.experiments.arm_outcomes import MEASURE, VARIANT, key_columns, outcomes_of
from gamelens.analysis.experiments.arm_pairs import ArmPair, arm_pairs
from gamelens.analysis.experiments.constants import TYPICAL_LIFT
from gamelens.analysis.significance import LEVEL, always_valid_half_width, holm
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns

_NUMBERS: Final = (
    *("days", "control_days", "players", "control_players"),
    *("value", "control_value", "difference", "low", "high", "always_low", "always_high"),
    *("relative", "relative_low", "relative_high", "p_value"),
)
COMPARED: Final = (
    KEYS,
    named("control", about="the arm that is compared with"),
    Column("unit", "unit", about="share, money or number"),
    Column("design", "category", about="within days, between days or in total"),
    *map(named, ("days", "control_days", "players", "control_players", "value", "control_value")),
    between(
        between("difference", "right for one look at a planned end", low="low", high="high"),
        "holds at every look",
        low="always_low",
        high="always_high",
    ),
    between(
        named("relative", na="where the control's value is 0; its bounds also where it may be 0"), "as low and high"
    ),
    named("p_value"),
    named("p_adjusted", about="Holm, for all rows"),
)
"""The columns of a comparison. Its keys are ab_id and *by*, if there, measure and the arm."""


@requires(frames=ANY)
@returns(*COMPARED)
def compare(
    *frames: DataFrame,
    arm: str = VARIANT,
    control: str | None = None,
    by: str | Sequence[str] | None = None,
    since: Any = None,
    within_days: bool | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the difference between each arm of *frames* and the control, measure by measure.

        split, is_member = ["ab_id", "ab_variant_id"], ~gl.dim.ab_id.is_null()
        came_back = lens.retention([1, 7], by=split, where=is_member, over="last 28 complete days")
        experiments.compare(came_back)

    Variants of an experiment: `compare(came_back, conversions)`. Builds: `compare(came_back, arm="first_build",
    control="1.9.0")`. Before and after a day: `compare(came_back, since="2026-11-03")`.

    Arms are compared within install day (`ArmPair.estimate`), which a changing split does not bias. Arms that share too
    few days are compared between days: then all that changed meanwhile is in the difference, `design` says so, and both
    arms need 7 install days. low and high are right for one look at a planned end; in rows with p_adjusted below 0.05
    they are corrected for having been selected (Benjamini and Yekutieli 2005). relative_low and relative_high bound the
    difference as a share of the control's value, and exclude 0 where low and high do. always_low and always_high hold
    all true differences of the frame on every day of the test at once (a mixture of sequential tests, corrected for the
    number of rows by Bonferroni), so they may be read each morning.

    Args:
        frames: of `Client.retention`, of `per_new_player`, of a query for a ratio, or with the columns measure,
            the arm, players and successes or money; with or without timestamp.
        arm: the column whose values are compared.
        control: the arm to compare with; None is `ctrl`, else the first variant by name, else the arm seen first.
            `OTHERS` compares each arm with all others together: choosing the best of many would find differences that
            are none.
        by: columns to compare within, such as country_code. Other columns are added up; experiments never are.
        since: first day of the arm `after`; all earlier days are `before`. Replaces *arm*.
        within_days: whether to compare within install days; None does where half of an arm's players allow it.
        confidence: level of the intervals.

    Values are those within days, of equally large days. Claims: "difference", one a row.

    Raises:
        BadQuery: *control* has no players; a frame or an argument is not as described; a number is unknown.
    """
    outcomes, name = outcomes_of(frames, arm=arm, by=by, since=since)
    pairs = arm_pairs(outcomes, arm=name, control=control, within_days=within_days)
    texts = [*key_columns(outcomes, name), name, "control", "unit", "design"]
    rows = [_row(pair, confidence, looks=len(pairs)) for pair in pairs]
    adjusted = holm(Series([row["p_value"] for row in rows], dtype="float64"))
    selected = np.flatnonzero(adjusted < LEVEL)
    level = 1 - (1 - confidence) * len(selected) / max(1, adjusted.notna().sum())
    for place in selected:
        rows[place] |= pairs[place].estimate(level).intervals
    result = DataFrame(rows, columns=[*texts, *_NUMBERS])
    result = result.astype({text: pd.CategoricalDtype([*result[text].dropna().unique()]) for text in texts})
    return result.assign(p_adjusted=adjusted)


@reads("experiments.compare", row_by_row=True)
def _read_differences(compared: DataFrame) -> Iterator[Finding]:
    """Say of each row how the arm differs."""
    keys = [*compared.columns][: [*compared.columns].index("control")]
    for row in compared.to_dict("records"):
        yield difference_finding(row, keys)


def difference_finding(row: Mapping[Any, Any], keys: Sequence[str]) -> Finding:
    """Return how the arm of a row differs from its control; it is clear if it stays so after the correction."""
    direction = direction_among(row["low"], row["high"], row["p_adjusted"])
    case = case_among(direction, row["low"], row["high"])
    if direction == "unknown":
        is_zero = row["value"] == row["control_value"] == 0
        case = "nobody" if pd.isna(row["difference"]) else "zero" if is_zero else case
    return comparison_finding(row, keys, kind="difference", case=case, direction=direction)


def comparison_finding(
    row: Mapping[Any, Any],
    keys: Sequence[str],
    *,
    kind: str,
    case: str,
    direction: Direction,
    bounds: tuple[str, str] = ("low", "high"),
    numbers: Mapping[str, Any] | None = None,
) -> Finding:
    """Return the finding about one row of `compare`, whose arm is named by *keys*."""
    names = [str(row[key]) for key in reversed(keys) if key != MEASURE and pd.notna(row[key])]
    judged: JudgedBy = "players" if row["design"] != "between days" else "days"
    words = {
        "measure": str(row[MEASURE]),
        "name": names[0] + (f" ({', '.join(names[1:])})" if names[1:] else ""),
        "control": str(row["control"]),
        "arms": keys[-1],
        "between": [Clause("between")] if row["design"] == "between days" else [],
        **{name: row[name] for name in ("value", "control_value")},
    }
    return Finding(
        kind=kind,
        case=case,
        subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
        direction=direction,
        size=row["difference"],
        low=row[bounds[0]],
        high=row[bounds[1]],
        unit={"share": "share", "money": "USD"}.get(row["unit"], "number"),
        judged=None if pd.isna(row["low"]) else judged,
        numbers={**words, **(numbers or {})},
    )


def _row(pair: ArmPair, confidence: float, *, looks: int) -> dict[str, Any]:
    """Return the row of `compare` for one pair of so many as *looks*."""
    found = pair.estimate(confidence)
    difference, scale = found.value - found.control_value, TYPICAL_LIFT * (found.value + found.control_value) / 2
    level = 1 - (1 - confidence) / looks
    error = found.error if looks == 1 else pair.estimate(level).error  # so that it holds the interval of one look
    half = always_valid_half_width(error, scale, confidence=level)
    bound = 1.0 if pair.unit == "share" else np.inf
    is_timed = pair.design != "in total"
    return pair.keys | {
        "control": pair.control,
        "unit": pair.unit,
        "design": pair.design,
        "days": len(pair.treated.players) if is_timed else pd.NA,
        "control_days": len(pair.base.players) if is_timed else pd.NA,
        "players": int(pair.treated.players.sum()),
        "control_players": int(pair.base.players.sum()),
        "value": found.value,
        "control_value": found.control_value,
        "difference": difference,
        **found.intervals,
        "always_low": np.maximum(difference - half, -bound),
        "always_high": np.minimum(difference + half, bound),
        "relative": difference / found.control_value if found.control_value else np.nan,
        "p_value": found.p_value,
    }
