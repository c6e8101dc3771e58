"""Power of an experiment: the players it needs, and the effect that its players can show.

The formulas are those of the score test of two shares (`experiments.differences`), two-sided. None needs scipy.
"""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist
from typing import Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.experiments.control_comparison import EXPERIMENT, MEASURE, SHARES, VARIANT, control_of, groups
from gamelens.analysis.tidy_frames import with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.errors import BadQuery

_NORMAL: Final = NormalDist()
_HALVINGS: Final = 60


def power(control: float, treated: float, players: float, control_players: float, *, confidence: float = 0.95) -> float:
    """Return the probability of detecting the difference of two true shares.

    Args:
        control: the true share of the control.
        treated: the true share of the variant.
        players: players in the variant.
        control_players: players in the control.
        confidence: confidence level of the test.

    Raises:
        BadQuery: a share is not between 0 and 1.
    """
    _check_share("control", control)
    _check_share("treated", treated)
    pooled = (control * control_players + treated * players) / (players + control_players)
    expected = sqrt(pooled * (1 - pooled) * (1 / players + 1 / control_players))
    real = sqrt(treated * (1 - treated) / players + control * (1 - control) / control_players)
    if not real:
        return float(control != treated)
    bar, gap = _critical_z(confidence) * expected, abs(treated - control)
    return _NORMAL.cdf((gap - bar) / real) + _NORMAL.cdf((-gap - bar) / real)


def sample_size(
    control: float, treated: float, *, chance: float = 0.8, ratio: float = 1.0, confidence: float = 0.95
) -> int:
    """Return the players that the control needs to detect the difference of two shares.

    The variant needs *ratio* times as many. *chance* is the power wanted.

    Raises:
        BadQuery: the shares are the same, or one is not between 0 and 1.
    """
    _check_share("control", control)
    _check_share("treated", treated)
    _check_share("chance", chance)
    if control == treated:
        raise BadQuery("treated", treated, "is the control's share: no number of players finds no difference")
    pooled = (control + ratio * treated) / (1 + ratio)
    expected = sqrt(pooled * (1 - pooled) * (1 + 1 / ratio))
    real = sqrt(control * (1 - control) + treated * (1 - treated) / ratio)
    wanted = _critical_z(confidence) * expected + _NORMAL.inv_cdf(chance) * real
    return ceil((wanted / (treated - control)) ** 2)


def minimal_effect(
    control: float, players: float, control_players: float, *, chance: float = 0.8, confidence: float = 0.95
) -> float:
    """Return the smallest rise of the control's share detected with probability *chance*.

    A share: 0.01 is one percentage point. NaN if no rise can be detected with so few players.
    """
    if not players or not control_players or not 0 <= control < 1:
        return float("nan")
    low, high = 0.0, 1 - control
    if power(control, 1.0, players, control_players, confidence=confidence) < chance:
        return float("nan")
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_detected = power(control, control + middle, players, control_players, confidence=confidence) >= chance
        low, high = (low, middle) if is_detected else (middle, high)
    return high


@requires(shares=SHARES)
def detectable_effects(
    shares: DataFrame, *, lift: float = 0.05, control: str | None = None, chance: float = 0.8
) -> DataFrame:
    """Return the smallest effect that each measure of an experiment can show with its players.

    Columns: ab_id (category, if there), measure (category), players (Int64, of the smallest arm), control_value
    (float64, share), minimal_effect (float64, share), minimal_lift (float64, of the control's value), players_needed
    (Int64, in each arm for a relative *lift*, NA if the control's share is 0 or the lifted one is above 1).

    Raises:
        BadQuery: *control* is not a variant.
    """
    records = []
    for rows in groups(shares, [EXPERIMENT, MEASURE]):
        name = control_of(rows) if control is None else control
        control_rows = rows[rows[VARIANT].astype("object") == name]
        if not len(control_rows):
            raise BadQuery("control", control, "is not a variant", sorted(map(str, rows[VARIANT].unique())))
        players, base_players = int(rows["players"].min()), int(control_rows["players"].iloc[0])
        share = int(control_rows["successes"].iloc[0]) / base_players if base_players else float("nan")
        effect = minimal_effect(share, players, base_players, chance=chance)
        is_possible = 0 < share < 1 and 0 < share * (1 + lift) < 1
        keys = {key: rows[key].iloc[0] for key in (EXPERIMENT, MEASURE) if key in rows}
        records.append(
            keys
            | {
                "players": players,
                "control_value": share,
                "minimal_effect": effect,
                "minimal_lift": effect / share if share else float("nan"),
                "players_needed": sample_size(share, share * (1 + lift), chance=chance) if is_possible else pd.NA,
            }
        )
    numbers = {"players": "Int64", "players_needed": "Int64"}
    numbers |= dict.fromkeys(("control_value", "minimal_effect", "minimal_lift"), "float64")
    names = [name for name in (EXPERIMENT, MEASURE) if name in shares]
    columns = [*names, "players", "control_value", "minimal_effect", "minimal_lift", "players_needed"]
    types = numbers | dict.fromkeys(names, "category")
    return with_receipts_of(DataFrame(records, columns=columns).astype(types), shares)


def _critical_z(confidence: float) -> float:
    """Return the two-sided critical value of the standard normal distribution."""
    _check_share("confidence", confidence)
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def _check_share(field: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadQuery(field, value, "must lie between 0 and 1")
