"""Power of an experiment: the players it needs, and the effect that its players can show.

The formulas are statsmodels' for the test of two shares, whose variance is pooled under equal shares, two-sided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.experiments.arm_outcomes import MEASURE, VARIANT, key_columns, outcomes_of
from gamelens.analysis.experiments.arm_pairs import ArmPair, arm_pairs
from gamelens.analysis.experiments.constants import MOST_DAYS, QUARTER_DAYS
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns
from gamelens.errors import BadQuery

_COUNTS: Final = (
    "players",
    "control_players",
    "comparisons",
    "players_needed",
    "control_players_needed",
    "days_needed",
)
_SHARES: Final = ("control_value", "minimal_effect", "minimal_lift", "quarter_lift", "lift")


def power(control: float, treated: float, players: float, control_players: float, *, confidence: float = 0.95) -> float:
    """Return the probability of detecting the difference of two true shares.

        experiments.power(0.40, 0.42, players=5_000, control_players=5_000)

    Args:
        control: the true share of the control.
        treated: the true share of the variant.
        players: players in the variant.
        control_players: players in the control.
        confidence: confidence level of the test.

    Raises:
        BadQuery: a share is not between 0 and 1.
    """
    for field, value in (("control", control), ("treated", treated), ("confidence", confidence)):
        _check_share(field, value)
    if control == treated or {control, treated} <= {0.0, 1.0}:  # no variance under one of the two hypotheses
        return 1 - confidence if control == treated else 1.0
    from statsmodels.stats.proportion import power_proportions_2indep

    ratio = control_players / players
    found = power_proportions_2indep(treated - control, control, players, ratio=ratio, alpha=1 - confidence)
    return float(found.power)


def sample_size(
    control: float, treated: float, *, chance: float = 0.8, ratio: float = 1.0, confidence: float = 0.95
) -> int:
    """Return the players that the control needs to detect the difference of two shares.

        experiments.sample_size(0.40, 0.42, chance=0.9)

    The variant needs *ratio* times as many. *chance* is the power wanted.

    Raises:
        BadQuery: the shares are the same, or one is not between 0 and 1.
    """
    for field, value in (("control", control), ("treated", treated), ("chance", chance), ("confidence", confidence)):
        _check_share(field, value)
    if control == treated:
        raise BadQuery("treated", treated, "is the control's share: no number of players can detect a difference of 0")
    from statsmodels.stats.proportion import samplesize_proportions_2indep_onetail

    needed = samplesize_proportions_2indep_onetail(
        treated - control, control, chance, ratio=1 / ratio, alpha=1 - confidence
    )
    return ceil(float(needed) / ratio)


def minimal_effect(
    control: float, players: float, control_players: float, *, chance: float = 0.8, confidence: float = 0.95
) -> float:
    """Return the smallest rise of the control's share detected with probability *chance*.

        experiments.minimal_effect(0.4, players=5_000, control_players=5_000)

    A share: 0.01 is one percentage point. NaN if no rise can be detected with so few players.
    """
    if not players or not control_players or not 0 <= control < 1:
        return float("nan")
    from scipy.optimize import brentq

    def lack(rise: float) -> float:
        return power(control, min(control + rise, 1.0), players, control_players, confidence=confidence) - chance

    most = 1 - control
    return float("nan") if lack(most) < 0 else float(brentq(lack, 0.0, most, xtol=1e-9))


@requires(frames=ANY)
@returns(
    KEYS,
    "players control_players",
    Column("comparisons", "count"),
    named("control_value", kind="share", unit="", scale="", about="the control's share"),
    named("minimal_effect", na="if no rise can be detected"),
    named("minimal_lift", na="if no rise can be detected"),
    named("players_needed", about="for a relative *lift* at this split"),
    "control_players_needed",
    named("days_needed", about="install days at the present pace, from the first on"),
    named("quarter_lift", about="the minimal lift after 91 install days"),
    named("lift", about="as given"),
    "last_day",
    named("is_running", about="no other arm of the measure has later install days"),
)
def detectable_effects(
    *frames: DataFrame,
    arm: str = VARIANT,
    control: str | None = None,
    by: str | Sequence[str] | None = None,
    lift: float = 0.05,
    chance: float = 0.8,
    confidence: float = 0.95,
) -> DataFrame:
    """Return the smallest effect that each comparison can show, and how long a *lift* takes.

        split, is_member = ["ab_id", "ab_variant_id"], ~gl.dim.ab_id.is_null()
        came_back = lens.retention([7], by=split, where=is_member, over="last 28 complete days")
        experiments.detectable_effects(came_back, lift=0.1)

    *frames*, *arm*, *control* and *by* are as in `experiments.compare`. Measures that are not shares of players have no
    row, but count as comparisons. The arms are as unequal as they are, and the level is divided by the number of
    comparisons, as a correction for all of them would in the worst case.

    Keys are ab_id and *by*, if there, measure and the arm. Claims: "reach", one a row.

    Raises:
        BadQuery: *control* has no players; a frame or an argument is not as described; a number is unknown.
    """
    outcomes, name = outcomes_of(frames, arm=arm, by=by)
    pairs = arm_pairs(outcomes, arm=name, control=control)
    level = 1 - (1 - confidence) / max(len(pairs), 1)
    keys = [*key_columns(outcomes, name), name]
    columns = [*keys, *_COUNTS[:3], *_SHARES[:3], *_COUNTS[3:], *_SHARES[3:], "last_day", "is_running"]
    more = {"comparisons": len(pairs), "lift": lift}
    rows = [_reach(pair, lift, chance, level) | more for pair in pairs if pair.is_counted]
    result = DataFrame(rows, columns=columns)
    return result.assign(last_day=pd.to_datetime(result["last_day"], utc=True))


@reads("experiments.detectable_effects", row_by_row=True)
def _read_reach(reach: DataFrame) -> Iterator[Finding]:
    """Say of each comparison what its players can show, and how long a lift takes."""
    keys = [*reach.columns][: [*reach.columns].index("players")]
    for row in reach.to_dict("records"):
        names = [str(row[key]) for key in reversed(keys) if key != MEASURE and pd.notna(row[key])]
        yield Finding(
            kind="reach",
            case="blind" if pd.isna(row["minimal_lift"]) else "shows",
            subject={key: str(row[key]) for key in keys if key != MEASURE and pd.notna(row[key])},
            size=row["minimal_lift"],
            unit="ratio",
            judged="planned",
            numbers={
                "measure": str(row[MEASURE]),
                "name": names[0] + (f" ({', '.join(names[1:])})" if names[1:] else ""),
                "quarter_lift": row["quarter_lift"],
                "lift": row["lift"],
                **days_in_words(row["days_needed"]),
            },
        )


def days_in_words(needed: Any) -> dict[str, int | None]:
    """Return the numbers of a sentence about a time: the days, or that they are more than a year."""
    days = None if pd.isna(needed) else int(needed)
    is_long = days is not None and days > MOST_DAYS
    return {"days_needed": None if is_long else days, "most_days": MOST_DAYS if is_long else None}


def _reach(pair: ArmPair, lift: float, chance: float, level: float) -> dict[str, Any]:
    """Return the row of `detectable_effects` for one pair."""
    players, base_players = pair.treated.players.sum(), pair.base.players.sum()
    _, share = pair.values()
    informative = pair.sizes()
    effect = minimal_effect(share, *informative, chance=chance, confidence=level)
    row: dict[str, Any] = pair.keys | {
        "players": int(players),
        "control_players": int(base_players),
        "control_value": share,
        "minimal_effect": effect,
        "minimal_lift": effect / share if share else np.nan,
        "last_day": pair.last_day,
        "is_running": pair.is_running,
    }
    days = len(pair.base.players) if pair.design == "within days" else 0
    if days and players and share:
        more = [size * QUARTER_DAYS / days for size in informative]
        row["quarter_lift"] = minimal_effect(share, *more, chance=chance, confidence=level) / share
    if not players or not 0 < share < 1 or not 0 < share * (1 + lift) < 1:
        return row
    ratio = players / base_players
    needed = sample_size(share, share * (1 + lift), chance=chance, ratio=ratio, confidence=level)
    row |= {"players_needed": ceil(needed * ratio), "control_players_needed": needed}
    # a split that changes from day to day is less informative than its sum
    waste = base_players * ratio / (1 + ratio) / (informative[0] * informative[1] / sum(informative))
    return row | ({"days_needed": ceil(days * needed * waste / base_players)} if days else {})


def _check_share(field: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadQuery(field, value, "must lie between 0 and 1")
