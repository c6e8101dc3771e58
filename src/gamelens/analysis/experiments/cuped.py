"""Comparison of arms player by player, with a covariate that was known before (CUPED)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.experiments.arm_outcomes import EXPERIMENT, MEASURE, VARIANT, control_of, groups
from gamelens.analysis.experiments.comparison import difference_finding
from gamelens.analysis.significance import holm, ratio_bounds, two_sided
from gamelens.analysis.tidy_frames.columns import column_named
from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]

_COUNTS: Final = ("players", "control_players")
_NUMBERS: Final = (
    *("value", "control_value", "difference", "low", "high"),
    *("relative", "relative_low", "relative_high", "variance_kept", "p_value"),
)


@requires(frame=ANY)
@returns(
    KEYS,
    "control players control_players",
    named("value", about="mean, adjusted by the covariate"),
    "control_value",
    between("difference", low="low", high="high"),
    between(named("relative", na="where the control's value is 0; its bounds also where it may be 0 or less")),
    named("variance_kept", about="that the covariate leaves"),
    "p_value",
    named("p_adjusted", about="Holm, for all rows"),
    named("unit", about='of *value*: "money", "share", "count" or "number"'),
)
def compare_players(
    frame: DataFrame,
    value: str,
    *,
    covariate: str | None = None,
    arm: str = VARIANT,
    control: str | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the difference between each arm and the control, from one row for each player.

        money = raw_events.player_money(lake, "last 14 complete days", days=3, when_unavailable="clip")
        experiments.compare_players(money, "ad_revenue")

    It compares the means of *value*, with the variance between the players of each arm (Welch's t-test).
    Money of few large spenders is far from normal: with under some thousand players the interval is a rough one. A
    *covariate* takes out of the variance what was known of a player before the experiment could change it (CUPED, Deng
    et al. 2013): never what it may have changed, which would hide a part of the effect. Players without an arm are left
    out.

    Args:
        frame: a row for each player, such as of `raw_events.player_money`.
        value: the column to compare.
        covariate: a column of numbers, such as money before the experiment, or the mean money of the player's country
            among players outside of it.
        arm: the column whose values are compared.
        control: the arm to compare with; None is `ctrl`, else the first variant by name, else the arm seen first.
        confidence: level of the intervals.

    Claims: "difference", one a row.

    Raises:
        BadQuery: a column is missing, a number is unknown, the control has no players, or *confidence* is not between
            0 and 1.
    """
    if not 0 < confidence < 1:
        raise BadQuery("confidence", confidence, "must lie between 0 and 1")
    numbers = [value] if covariate is None else [value, covariate]
    for field, name in (("value", value), ("covariate", numbers[-1]), ("arm", arm)):
        if name not in frame:
            raise BadQuery(field, name, "is not a column of the frame", map(str, frame.columns))
        if field != "arm" and frame[name].isna().any():
            raise BadQuery(field, name, "is unknown for some players: fill it, or leave these players out")
    experiment = [EXPERIMENT] if EXPERIMENT in frame and arm == VARIANT else []
    texts = [*experiment, arm, "control"]
    compared = frame.loc[frame[arm].notna()].astype(dict.fromkeys((*experiment, arm), "object"))
    rows = [
        row
        for group in groups(compared, experiment)
        for row in _rows(group, numbers, arm, control, confidence, experiment)
    ]
    result = DataFrame(rows, columns=[*texts, *_COUNTS, *_NUMBERS])
    result = result.astype({"p_value": "float64"})
    return result.assign(p_adjusted=holm(result["p_value"]), unit=column_named(value).kind)


@reads("experiments.compare_players", row_by_row=True)
def _read_players(compared: DataFrame, value: str, arm: str) -> Iterator[Finding]:
    """Say of each arm how its players differ from the control's, after the correction for all rows."""
    measured = {MEASURE: f"{value.replace('_', ' ')} per player", "design": "players"}
    keys = [name for name in (EXPERIMENT, arm) if name in compared]
    for row in compared.to_dict("records"):
        yield difference_finding(row | measured, keys)


def _rows(
    rows: DataFrame, numbers: list[str], arm: str, control: str | None, confidence: float, experiment: list[str]
) -> list[dict[str, Any]]:
    """Return the rows of one experiment."""
    base = control_of(_with_counts(rows), arm, control)
    by_arm = {str(name): group[numbers].to_numpy("float64") for name, group in rows.groupby(arm, sort=True)}
    if base not in by_arm:
        raise BadQuery("control", base, "has no players", by_arm)
    keys = {name: rows[name].iloc[0] for name in experiment}
    return [
        {**keys, arm: name, "control": base, **_difference(values, by_arm[base], confidence)}
        for name, values in by_arm.items()
        if name != base
    ]


def _with_counts(rows: DataFrame) -> DataFrame:
    """Return the rows with what `control_of` reads."""
    days = rows["timestamp"] if "timestamp" in rows else pd.Timestamp(0, tz="UTC")
    return rows.assign(timestamp=days, players=1)


def _difference(treated: Floats, base: Floats, confidence: float) -> dict[str, float]:
    """Return the numbers of one pair of arms. A second column, if there is one, is the covariate."""
    from scipy.special import stdtrit

    first, second, kept = _adjusted(treated, base)
    parts = [_variance(values) / len(values) for values in (first, second)]
    error, freedom = float(np.sqrt(sum(parts))), _freedom(parts, [len(first), len(second)])
    mean, control = float(first.mean()), float(second.mean())
    point = float(stdtrit(freedom, 0.5 + confidence / 2))
    half, squares = point * error, [point**2 * part for part in parts]
    ratios = (
        ratio_bounds(mean, control, (squares[0], 0.0, squares[1])) if control > 0 and error > 0 else (np.nan, np.nan)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = float(two_sided(np.asarray(np.divide(mean - control, error)), freedom))
    return {
        "players": len(first),
        "control_players": len(second),
        "value": mean,
        "control_value": control,
        "difference": mean - control,
        "low": mean - control - half,
        "high": mean - control + half,
        "relative": (mean - control) / control if control else np.nan,
        "relative_low": ratios[0] - 1,
        "relative_high": ratios[1] - 1,
        "variance_kept": kept,
        "p_value": p_value,
    }


def _adjusted(treated: Floats, base: Floats) -> tuple[Floats, Floats, float]:
    """Return both arms' values less what the covariate explains, and the variance left."""
    if treated.shape[1] == 1:
        return treated[:, 0], base[:, 0], 1.0
    centred = np.concatenate([treated - treated.mean(axis=0), base - base.mean(axis=0)])
    spread = float(centred[:, 1] @ centred[:, 1])
    slope = float(centred[:, 0] @ centred[:, 1]) / spread if spread else 0.0
    middle = float(np.concatenate([treated[:, 1], base[:, 1]]).mean())
    before, after = float(centred[:, 0] @ centred[:, 0]), centred[:, 0] - slope * centred[:, 1]
    kept = float(after @ after) / before if before else 1.0
    first, second = (values[:, 0] - slope * (values[:, 1] - middle) for values in (treated, base))
    return first, second, kept


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else float("nan")


def _freedom(parts: list[float], counts: list[int]) -> float:
    """Return the degrees of freedom of Welch and Satterthwaite."""
    below = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True) if count > 1)
    return sum(parts) ** 2 / below if below else float("nan")
