"""Comparison of variants with their control: the pairs, and the frame of differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.significance import holm
from gamelens.analysis.tidy_frames import ratio, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.errors import BadQuery

EXPERIMENT: Final = "ab_id"
VARIANT: Final = "ab_variant_id"
MEASURE: Final = "measure"
CONTROL: Final = "ctrl"
"""Variant of a control group (Wire 1.13, Configs and experiments)."""
SHARES: Final = result_of("experiments.retention_shares(frame)", VARIANT, "players", "successes")
"""The shares frame of `variant_tests`."""


@requires(frame=result_of("experiments.arms(installs)", VARIANT))
def control_of(frame: DataFrame) -> str | None:
    """Return the variant to compare with: `ctrl`, else the first by name.

    None without variants.
    """
    names = sorted(str(name) for name in frame[VARIANT].dropna().unique())
    return CONTROL if CONTROL in names else next(iter(names), None)


def groups(frame: DataFrame, keys: Sequence[str]) -> Iterator[DataFrame]:
    """Yield the rows of each value of *keys*, in the frame's order.

    Keys that are no column are ignored; without any, all rows are one group.
    """
    present = [name for name in keys if name in frame]
    if not len(frame):
        return
    if not present:
        yield frame
        return
    for _, rows in frame.groupby(present, observed=True, sort=False):
        yield rows


def pair_with_control(frame: DataFrame, control: str | None, columns: Sequence[str]) -> DataFrame:
    """Return the rows of all variants but the control, with the control's *columns* added.

    Pairs are made within each experiment and measure. The control's columns are called `control_<name>`, and a column
    control (str) names it.

    Raises:
        BadQuery: *control* has no players.
    """
    keys = [name for name in (EXPERIMENT, MEASURE) if name in frame]
    names = frame[VARIANT].astype(str)
    control_names = _controls(frame, keys, names) if control is None else Series(control, index=frame.index)
    is_control = names == control_names
    controls = frame.loc[is_control, [*keys, *columns]].rename(columns={name: f"control_{name}" for name in columns})
    rows = frame[~is_control].assign(control=control_names[~is_control])
    pairs = rows.merge(controls, on=keys, how="left", indicator=True)
    if (pairs["_merge"] == "left_only").any():
        raise BadQuery("control", control, "is not a variant", sorted(names.unique()))
    return pairs.drop(columns="_merge")


def _controls(frame: DataFrame, keys: list[str], names: Series[str]) -> Series[str]:
    """Return for each row the control of its experiment and measure."""
    by = [frame[key] for key in keys]
    has_one = (names == CONTROL).groupby(by, observed=True, sort=False).transform("any")
    return names.groupby(by, observed=True, sort=False).transform("min").mask(has_one, CONTROL)


def differences_frame(
    pairs: DataFrame,
    source: DataFrame,
    *,
    unit: Literal["share", "money"],
    value: Series[Any],
    control_value: Series[Any],
    low: Series[Any],
    high: Series[Any],
    p_value: Series[Any],
) -> DataFrame:
    """Build the frame of `differences` and `money_differences` from its columns.

    The rows are in the order of *pairs*; the receipt is that of *source*.
    """
    keys = [name for name in (EXPERIMENT, MEASURE, VARIANT) if name in pairs]
    result = pairs[[*keys, "players", "control_players"]].copy()
    result.insert(len(keys), "unit", unit)
    difference = value - control_value
    numbers = {"value": value, "control_value": control_value, "difference": difference, "low": low, "high": high}
    numbers |= {"relative": ratio(difference, control_value), "p_value": p_value, "p_adjusted": holm(p_value)}
    return with_receipts_of(
        result.assign(**{name: column.astype("float64") for name, column in numbers.items()}), source
    )


@requires(frames=result_of("experiments.differences(shares)", MEASURE, VARIANT))
def concat_comparisons(*frames: DataFrame) -> DataFrame:
    """Return frames of the same columns one below the other, such as shares and money.

    p_adjusted is computed again over all rows.

    Columns: those of the frames; texts stay categories, with those of all frames.
    """
    texts = [name for name in (EXPERIMENT, MEASURE, VARIANT) if name in frames[0]]
    result = pd.concat([frame.astype(dict.fromkeys(texts, "object")) for frame in frames if len(frame)] or [frames[0]])
    result = result.reset_index(drop=True)
    for name in texts:
        result[name] = result[name].astype(pd.CategoricalDtype([*dict.fromkeys(result[name].dropna())]))
    if "p_value" in result:
        result["p_adjusted"] = holm(result["p_value"])
    return with_receipts_of(result, *frames)
