"""What to do about each comparison of an experiment: decide, go on, or stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims.findings import Clause, Finding, direction_among, direction_of, reads
from gamelens.analysis.experiments.arm_outcomes import MEASURE
from gamelens.analysis.experiments.comparison import COMPARED, comparison_finding
from gamelens.analysis.experiments.constants import QUARTER_DAYS
from gamelens.analysis.experiments.power_analysis import days_in_words
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import named, returns

STEPS: Final = ("decide", "planned end", "large enough", "stop", "ended", "go on", "not known")
_OF_REACH: Final = ("lift", "days_needed", "quarter_lift", "last_day", "is_running")


@requires(
    compared=result_of(
        "experiments.compare(frame, arm=...)", "control", "unit", "difference", "low", "high", "p_adjusted"
    ),
    reach=result_of("experiments.detectable_effects(frame, arm=...)", "minimal_lift", "days_needed"),
)
@returns(
    *COMPARED,
    Column("step", "category", about="of `STEPS`", values=STEPS),
    *(named(name, about="of *reach*", na="of measures that are no shares") for name in _OF_REACH),
    Column("days_left", "count", about="to the planned end", na='of other steps than "go on"'),
)
def next_steps(compared: DataFrame, reach: DataFrame, *, measures: Sequence[str] | None = None) -> DataFrame:
    """Return what to do about each comparison, read each morning.

        split, is_member = ["ab_id", "ab_variant_id"], ~gl.dim.ab_id.is_null()
        came_back = lens.retention([1, 7], by=split, where=is_member, over="last 28 complete days")
        changed, reach = experiments.compare(came_back), experiments.detectable_effects(came_back)
        experiments.next_steps(changed, reach, measures=["D7 retention"])

    Args:
        compared: the frame of `experiments.compare`.
        reach: the frame of `experiments.detectable_effects` for the same frames.
        measures: those that the experiment was made for, in the order of the rows; None is all of them.

    Steps are "decide" if the always-valid interval excludes 0, "planned end" if only the interval of one look does,
    after the correction for all rows, "large enough" if more players are unlikely to decide it, "ended" if no player
    joins it any more, "stop" if a change of *lift* takes more than a quarter, "go on", and "not known" without a time.
    Claims: "next step", one a row.
    """
    keys = [name for name in _keys(compared) if name in reach]
    rows = compared.merge(reach[[*keys, *_OF_REACH]], on=keys, how="left")
    if measures is not None:
        places = rows[MEASURE].astype("object").map({name: place for place, name in enumerate(measures)})
        rows = rows.loc[places.dropna().sort_values(kind="stable").index].reset_index(drop=True)
    steps = [_step(row) for row in rows.to_dict("records")]
    rows["step"] = pd.Categorical(steps, categories=[*STEPS])
    left = (rows["days_needed"] - rows["days"]).where(rows["step"] == "go on")
    return rows.assign(days_left=left)


@reads("experiments.next_steps", row_by_row=True)
def _read_steps(steps: DataFrame) -> Iterator[Finding]:
    """Say of each comparison what to do, with the interval that holds on every morning."""
    for row in steps.to_dict("records"):
        side = direction_of(row["low"], row["high"])
        once = {"once": row["difference"], "once_low": row["low"], "once_high": row["high"]}
        numbers = once | {name: row[name] for name in (*_OF_REACH, "days_left")} | {"side": side}
        case = "single_look" if side == "no clear difference" else "after_correction"
        numbers |= days_in_words(row["days_needed"])
        yield comparison_finding(
            row,
            _keys(steps),
            kind="next step",
            case=str(row["step"]).replace(" ", "_"),
            direction=direction_of(row["always_low"], row["always_high"]),
            bounds=("always_low", "always_high"),
            numbers={name: None if pd.isna(value) else value for name, value in numbers.items()}
            | {"looked": [] if side == "unknown" else [Clause(case)]},
        )


def _step(row: dict[Any, Any]) -> str:
    """Return the step of a comparison."""
    if direction_of(row["always_low"], row["always_high"]) in ("higher", "lower"):
        return "decide"
    if direction_among(row["low"], row["high"], row["p_adjusted"]) in ("higher", "lower"):
        return "planned end"
    if pd.isna(row["days_needed"]):
        return "not known"
    if row["days_needed"] <= row["days"]:
        return "large enough"
    if not row["is_running"]:
        return "ended"
    return "stop" if row["days_needed"] > QUARTER_DAYS else "go on"


def _keys(compared: DataFrame) -> list[str]:
    """Return the columns that name a row: all before the control."""
    return [*compared.columns][: [*compared.columns].index("control")]
