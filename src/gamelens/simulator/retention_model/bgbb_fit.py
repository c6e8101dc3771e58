"""The BG/BB population for given retention targets, and the nearest feasible targets.

With m the mean of p, D-n / m is the probability of not having dropped out by day n. For a given m, D1 and D7 determine
gamma and delta, and the D28 that follows rises with m. So m is found by search between the two ends of the feasible
range, which always converges. At the lower end all players drop out with the same probability. At the upper end every
player who has not dropped out plays.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from gamelens.errors import BadQuery
from gamelens.simulator.retention_model.bgbb import BgbbModel, Floats

DEFAULT_CONCENTRATION: Final = 3.0
_LAST_PRECISION: Final = 30.0  # log of gamma + delta; beyond it all players are alike to double precision
_INSIDE: Final = 0.02  # distance from the edge of the feasible range, as a share of its width
_EDGE: Final = 1e-9


@lru_cache(maxsize=1024)
def fit_retention(
    d1: float, d7: float, d28: float, both: float | None = None, *, habit: float = DEFAULT_CONCENTRATION
) -> BgbbModel:
    """Return the population with these D1, D7 and D28.

    Args:
        d1: share of players who play 1 day after install.
        d7: share of players who play 7 days after install.
        d28: share of players who play 28 days after install.
        both: share of players who play on day 1 and on day 7. It determines how much p differs between players.
        habit: alpha + beta of the distribution of p, used without *both*. A small one makes players differ more.

    Raises:
        BadQuery: no population has these values. The message gives the nearest that one has.
    """
    targets = tuple(float(target) for target in ((d1, d7, d28) if both is None else (d1, d7, d28, both)))
    if not all(0 < target < 1 for target in targets):
        raise BadQuery("retention", targets, "must be shares between 0 and 1")
    mean = _mean_of_p(d1, d7, d28) if d28 < d7 < d1 else None
    if mean is None or (both is not None and not d7 * mean < both < d7):
        raise BadQuery(
            "retention",
            targets,
            f"cannot be fitted by a BG/BB population; the nearest that can: {_format_targets(*targets)}",
        )
    if both is not None:
        habit = (1 - both / d7) / (both / d7 - mean)
    precision = float(_precision(np.array([d1 / mean]), np.array([d7 / mean]))[0])
    return BgbbModel(mean * habit, (1 - mean) * habit, (1 - d1 / mean) * precision, d1 / mean * precision)


def nearest_feasible(d1: float, d7: float, d28: float, both: float | None = None) -> tuple[float, ...]:
    """Return the targets nearest to these that `fit_retention` accepts, with the same D1.

    The distance is the sum of the squared differences of the logarithms.
    """
    d1 = min(max(d1, 0.001), 0.99)
    # Candidates for D7 from the lower to the upper end of the feasible range, each with the D28 nearest to the target.
    candidates = np.exp(np.linspace(7 * np.log(d1), np.log(d1), 4001)[20:-20])
    if d1**7 * (1 + _INSIDE) < d7 < d1 * (1 - _INSIDE):
        candidates = np.append(candidates, d7)
    least, most = _d28_range(d1, candidates)
    log_margin = _INSIDE * np.log(most / least)
    d28_reached = np.exp(np.clip(np.log(max(d28, 1e-9)), np.log(least) + log_margin, np.log(most) - log_margin))
    cost = np.log(candidates / max(d7, 1e-9)) ** 2 + np.log(d28_reached / max(d28, 1e-9)) ** 2
    best = int(np.argmin(cost))
    nearest = (d1, float(candidates[best]), float(d28_reached[best]))
    if both is None:
        return nearest
    mean = _mean_of_p(*nearest)
    if mean is None:
        raise ArithmeticError(f"no population for {nearest}, although it is feasible")
    margin = _INSIDE * (1 - mean)
    return (*nearest, nearest[1] * min(max(both / nearest[1], mean + margin), 1 - margin))


def _format_targets(*targets: float) -> str:
    names = ("d1", "d7", "d28", "d1_and_d7")
    return ", ".join(f"{name} = {value:.8g}" for name, value in zip(names, nearest_feasible(*targets), strict=False))


def _mean_of_p(d1: float, d7: float, d28: float) -> float | None:
    """Return the mean of p for these targets, or None if no population has them."""
    low, high = d1 * (d1 / d7) ** (1 / 6), 1.0
    if not low < high * (1 - _EDGE):
        return None
    least, most = _d28_range(d1, np.array([d7]))
    if not least[0] * (1 + _EDGE) < d28 < most[0] * (1 - _EDGE):
        return None
    for _ in range(10):
        means = np.linspace(low, high, 66)
        d28_reached = _d28(d1 / means[1:-1], d7 / means[1:-1]) * means[1:-1]
        index = int(np.searchsorted(d28_reached, d28))
        low, high = means[index], means[index + 1]
    return float((low + high) / 2)


def _d28_range(d1: float, d7: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of D28 for *d1* and each of *d7*, both exclusive."""
    return d1 * (d7 / d1) ** (27 / 6), _d28(np.full(len(d7), d1), d7)


def _d28(present_1: Floats, present_7: Floats) -> Floats:
    """Return the survival to day 28, given the survival to days 1 and 7."""
    present: Floats = np.exp(_log_survival(present_1, _precision(present_1, present_7), 28))
    return present


def _precision(present_1: Floats, present_7: Floats) -> Floats:
    """Return the gamma + delta that yields this survival to days 1 and 7.

    Survival to day 7 falls as gamma + delta grows, so bisection finds it, for all elements at once.
    """
    low, high = np.full(len(present_1), -_LAST_PRECISION), np.full(len(present_1), _LAST_PRECISION)
    for _ in range(70):
        middle = (low + high) / 2
        is_above = _log_survival(present_1, np.exp(middle), 7) > np.log(present_7)
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    precision: Floats = np.exp((low + high) / 2)
    return precision


def _log_survival(present_1: Floats, precision: Floats, day: int) -> Floats:
    k = np.arange(day)[:, None]
    log_survival: Floats = np.log((present_1 * precision + k) / (precision + k)).sum(axis=0)
    return log_survival
