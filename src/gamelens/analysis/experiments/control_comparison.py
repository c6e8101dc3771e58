"""Variants beside their control: who is compared with whom, and the frame that says how they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.significance import holm
from gamelens.analysis.tidy_frames import ratio, with_receipts_of
from gamelens.errors import BadQuery

EXPERIMENT: Final = "ab_id"
VARIANT: Final = "ab_variant_id"
MEASURE: Final = "measure"
CONTROL: Final = "ctrl"
"""What the collector calls the variant of a control group (Collector, Remote configuration)."""


def control_of(frame: DataFrame) -> str | None:
    """The variant others are compared with: `ctrl` where it is there, else the first by name; None of no variants."""
    names = sorted(str(name) for name in frame[VARIANT].dropna().unique())
    return CONTROL if CONTROL in names else next(iter(names), None)


def groups(frame: DataFrame, keys: Sequence[str]) -> Iterator[DataFrame]:
    """The rows of each value of those *keys* that the frame has, in their order; all rows when it has none."""
    there = [name for name in keys if name in frame]
    if not len(frame):
        return
    if not there:
        yield frame
        return
    for _, rows in frame.groupby(there, observed=True, sort=False):
        yield rows


def pair_with_control(frame: DataFrame, control: str | None, columns: Sequence[str]) -> DataFrame:
    """The frame's rows without those of the control, whose *columns* stand beside each as `control_<name>`.

    Within each experiment and measure. A column control (str) names it.

    Raises:
        BadQuery: nobody is in *control*.
    """
    keys = [name for name in (EXPERIMENT, MEASURE) if name in frame]
    names = frame[VARIANT].astype(str)
    wanted = _controls(frame, keys, names) if control is None else Series(control, index=frame.index)
    is_control = names == wanted
    beside = frame.loc[is_control, [*keys, *columns]].rename(columns={name: f"control_{name}" for name in columns})
    rows = frame[~is_control].assign(control=wanted[~is_control])
    made = rows.merge(beside, on=keys, how="left", indicator=True)
    if (made["_merge"] == "left_only").any():
        raise BadQuery("control", control, "is not a variant", sorted(names.unique()))
    return made.drop(columns="_merge")


def _controls(frame: DataFrame, keys: list[str], names: Series[str]) -> Series[str]:
    """For each row the control of its experiment and measure."""
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
    """The frame of `differences` and `money_differences` from its parts, in the order of *pairs*."""
    keys = [name for name in (EXPERIMENT, MEASURE, VARIANT) if name in pairs]
    made = pairs[[*keys, "players", "control_players"]].copy()
    made.insert(len(keys), "unit", unit)
    difference = value - control_value
    numbers = {"value": value, "control_value": control_value, "difference": difference, "low": low, "high": high}
    numbers |= {"relative": ratio(difference, control_value), "p_value": p_value, "p_adjusted": holm(p_value)}
    return with_receipts_of(made.assign(**{name: column.astype("float64") for name, column in numbers.items()}), source)


def concat_comparisons(*frames: DataFrame) -> DataFrame:
    """Frames of the same columns one under the other, such as shares of several measures; p_adjusted is found anew.

    Columns: those of the frames; texts stay categories, with those of all frames.
    """
    texts = [name for name in (EXPERIMENT, MEASURE, VARIANT) if name in frames[0]]
    made = pd.concat([frame.astype(dict.fromkeys(texts, "object")) for frame in frames if len(frame)] or [frames[0]])
    made = made.reset_index(drop=True)
    for name in texts:
        made[name] = made[name].astype(pd.CategoricalDtype([*dict.fromkeys(made[name].dropna())]))
    if "p_value" in made:
        made["p_adjusted"] = holm(made["p_value"])
    return with_receipts_of(made, *frames)
