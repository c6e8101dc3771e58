"""Pairs of an arm and its control: their days, and the estimate of their difference.

Arms are compared within install days wherever the control has players of the same days. Then a day's campaign, its
weekday and the time since then are the same for both, and a share of players that changes from day to day (a ramp)
changes nothing. Arms that follow each other, as builds do, are compared between their install days.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.experiments.arm_outcomes import OTHERS, VARIANT, Unit, control_of, groups, key_columns
from gamelens.analysis.over_days import FEWEST_DAYS, mean_over_days, over_days
from gamelens.analysis.significance import ratio_bounds
from gamelens.analysis.wilson_intervals import newcombe, newcombe_p, newcombe_ratio
from gamelens.errors import BadQuery

Design = Literal["within days", "between days", "in total"]
Floats = NDArray[np.float64]

_NAN: Final = float("nan")


class ArmDifference(NamedTuple):
    """The difference of two arms, with its interval, its standard error and its p-value.

    *relative_low* and *relative_high* are the interval of the difference divided by the control's value.
    """

    value: float
    control_value: float
    low: float = _NAN
    high: float = _NAN
    error: float = _NAN
    p_value: float = _NAN
    relative_low: float = _NAN
    relative_high: float = _NAN

    @property
    def intervals(self) -> dict[str, float]:
        """The bounds of the difference and of the relative one, by column of a comparison."""
        names = ("low", "high", "relative_low", "relative_high")
        return {name: float(getattr(self, name)) for name in names}


class ArmDays(msgspec.Struct, frozen=True):
    """Players of an arm and what they brought, one value for each install day with players."""

    days: NDArray[np.datetime64]
    players: Floats
    amount: Floats

    def take(self, places: Any) -> ArmDays:
        """Return the days at *places*: positions, or a mask."""
        return ArmDays(self.days[places], self.players[places], self.amount[places])

    def day_numbers(self) -> NDArray[np.int64]:
        """Return the days since 1970-01-01."""
        return self.days.astype("datetime64[D]").astype("int64")


class ArmPair(msgspec.Struct, frozen=True, kw_only=True):
    """One arm and its control, for one measure.

    Attributes:
        keys: experiment, split, measure and arm, by column.
        control: name of the control.
        unit: unit of the measure.
        is_counted: whether each player is at most one success.
        is_random: whether players were assigned to the arms at random, each for itself.
        design: the comparison. Within days both arms have values for the same days.
        treated, base: the days of the arm and of its control.
        last_day: last install day of the arm, NaT without days.
        is_running: whether no other arm of the measure has later install days.
    """

    keys: dict[str, Any]
    control: str
    unit: Unit
    is_counted: bool
    is_random: bool
    design: Design
    treated: ArmDays
    base: ArmDays
    last_day: pd.Timestamp
    is_running: bool

    def sizes(self) -> tuple[float, float]:
        """Return the players of both arms that would be as informative at a constant split."""
        n, base_n = self.treated.players, self.base.players
        if self.design != "within days" or not len(n):
            return float(n.sum()), float(base_n.sum())
        size, base_size = informative_players(np.stack([n, base_n], axis=1))
        return float(size), float(base_size)

    def values(self) -> tuple[float, float]:
        """Return the value per player of both arms, on the same mixture of days within days."""
        n, base_n = self.treated.players, self.base.players
        if not n.sum() or not base_n.sum():
            return _mean(self.treated), _mean(self.base)
        if self.design == "between days":
            return _mean(self.treated), _mean(self.base)
        weight = n * base_n / (n + base_n) / (n * base_n / (n + base_n)).sum()
        return float((weight * self.treated.amount / n).sum()), float((weight * self.base.amount / base_n).sum())

    def estimate(self, confidence: float = 0.95) -> ArmDifference:
        """Return the estimate of the difference.

        Counted successes of random arms: Mantel and Haenszel's risk difference, with Newcombe's interval for as many
        players as are as informative (`informative_players`). All others rest on days: within days on each day's
        difference, which Student's t takes for independent where players were assigned at random, else on `over_days`,
        as between days. Days that happen to differ less than chance makes counts differ do not narrow it. Without
        `FEWEST_DAYS` days there is no interval.

        The p-value always agrees with both intervals: it is below 1 - *confidence* if they exclude 0, and only then.
        The relative one is the ratios r for which `value - r * control_value` may be 0 (`ratio_bounds`), between days
        the interval of the ratio itself. *error* is the standard error of the narrowest normal
        interval that covers the interval of the difference.

        Raises:
            BadQuery: *confidence* is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise BadQuery("confidence", confidence, "must lie between 0 and 1")
        value, base = self.values()
        if np.isnan(value) or np.isnan(base):
            return ArmDifference(value, base)
        if self.is_counted and self.is_random and self.design != "between days":
            return self._counted(value, base, confidence)
        estimate = self._between_days if self.design == "between days" else self._within_days
        return estimate(value, base, confidence)

    def _counted(self, value: float, base: float, confidence: float) -> ArmDifference:
        from scipy.special import ndtri

        size, base_size = self.sizes()
        if self.design == "within days":
            players, amount = (
                np.stack([getattr(arm, name) for arm in (self.treated, self.base)], axis=1)
                for name in ("players", "amount")
            )
            size, base_size = map(float, informative_players(players, amount))
        normal = float(ndtri((1 + confidence) / 2))
        low, high = newcombe(value, base, size, base_size, normal)
        error = max(value - base - low, high - value + base) / normal
        p, ratios = newcombe_p(value, base, size, base_size), newcombe_ratio(value, base, size, base_size, normal)
        return ArmDifference(value, base, low, high, error, p, ratios[0] - 1, ratios[1] - 1)

    def _between_days(self, value: float, base: float, confidence: float) -> ArmDifference:
        from scipy.special import ndtri

        arms = (self.treated, self.base)
        amount, players = (np.concatenate([getattr(arm, name) for arm in arms]) for name in ("amount", "players"))
        days = np.concatenate([arm.day_numbers() for arm in arms])
        found = over_days(
            amount,
            players,
            days,
            later=np.repeat([True, False], [len(arm.players) for arm in arms]),
            counted="shares" if self.is_counted else None,
            is_balanced=False,
        )
        gap, apart = value - base, float(found.log[0])
        scale = (
            gap / apart if apart else base
        )  # the logarithmic mean: this interval holds 0 where the interval of the ratio holds 1
        of_log = float(found.half_width(confidence)[0])
        half, ratios = of_log * scale, np.expm1([apart - of_log, apart + of_log])
        widened = half / float(ndtri((1 + confidence) / 2))  # a normal error as wide as this interval
        return ArmDifference(
            value, base, gap - half, gap + half, widened, float(found.p_value()[0]), *map(float, ratios)
        )

    def _within_days(self, value: float, base: float, confidence: float) -> ArmDifference:
        from scipy import stats

        sizes, gap = (self.treated.players, self.base.players), value - base
        if len(sizes[0]) < FEWEST_DAYS:
            return ArmDifference(value, base)
        means, weight = (
            np.stack([self.treated.amount / sizes[0], self.base.amount / sizes[1]]),
            sizes[0] * sizes[1] / sum(sizes),
        )
        daily, by_days, freedom = means[0] - means[1], *_covariance(means, weight)
        normal, variance_by_day, by_chance = float(stats.norm.ppf((1 + confidence) / 2)), None, np.zeros((2, 2))
        if self.is_counted:
            shares = (value * (1 - value), base * (1 - base))
            variance_by_day = shares[0] / sizes[0] + shares[1] / sizes[1]
            by_chance = np.diag([share / n for share, n in zip(shares, self.sizes(), strict=True)])
        gap_of = np.array([1.0, -1.0])  # the difference of both means
        variances = [float(gap_of @ found @ gap_of) for found in (by_days, by_chance)]
        if self.is_random:  # then differences of successive days have nothing in common
            error = float(np.sqrt(max(variances)))
            half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
            p = float(2 * stats.t.sf(abs(gap) / error, freedom)) if error else float(gap == 0)
        else:
            found = mean_over_days(daily, weight, self.treated.day_numbers(), chance=variance_by_day)
            half, p = float(found.half_width(confidence)[0]), float(found.p_value()[0])
        ratios = _NAN, _NAN
        if base > 0 and max(variances) > 0:
            both = (by_days, by_chance)[int(np.argmax(variances))] * half**2 / max(variances)
            ratios = ratio_bounds(value, base, (both[0, 0], both[0, 1], both[1, 1]))
            if min(self.treated.amount.min(), self.base.amount.min()) >= 0:
                ratios = max(ratios[0], 0.0), ratios[1]
        return ArmDifference(value, base, gap - half, gap + half, half / normal, p, ratios[0] - 1, ratios[1] - 1)


def informative_players(players: Floats, amount: Floats | None = None) -> Floats:
    """Return for each arm the players that would be as informative in a single day as these are in several.

    *players* and *amount* have the shape (days, arms), and each arm has players on each day. Days have the weights of
    Mantel and Haenszel. With *amount*, counted successes, chance is what players of one day differ by, which is less
    than what players of good and bad days differ by: the variance is the one in the test of Cochran, Mantel and
    Haenszel, the interval a stratified one (as Yan and Su's of 2010, which needs many players a day). The effective
    players of a single day are its players.
    """
    by_day, inverse = players.sum(axis=1), 1 / players
    weight = 1 / inverse.sum(axis=1)
    weight = weight / weight.sum()
    sizes = np.asarray(1 / (weight**2 @ inverse), dtype="float64")
    if amount is None:
        return sizes
    chance, share = weight**2 * inverse.sum(axis=1), amount.sum(axis=1) / by_day
    # a day on which all players did the same could have had one who did not
    within = max((chance * share * (1 - share) * by_day / np.maximum(by_day - 1, 1)).sum(), (chance / by_day).max())
    mean, total = ((weight @ (amount / players)) * sizes).sum() / sizes.sum(), sizes.sum()
    pooled = chance.sum() * mean * (1 - mean) * total / max(total - 1, 1)
    return np.asarray(sizes * pooled / within if pooled > 0 else sizes)


def arm_pairs(
    outcomes: DataFrame, *, arm: str = VARIANT, control: str | None = None, within_days: bool | None = None
) -> list[ArmPair]:
    """Return each arm of an outcome frame with its control, measure by measure.

    *within_days* None compares within days where the control has players on the days of at least half of the arm's
    players.

    Raises:
        BadQuery: no measure has the arm *control*.
    """
    names = sorted(set(outcomes[arm]))
    if control is not None and control != OTHERS and names and control not in names:
        raise BadQuery("control", control, "is not an arm: it has no players in the frame", names)
    last = outcomes.groupby("measure")["timestamp"].max()
    keys = key_columns(outcomes, arm)
    return [
        pair
        for rows in groups(outcomes, keys)
        for pair in _pairs_of(rows, keys, arm, control_of(rows, arm, control), within_days, last)
    ]


def _pairs_of(
    rows: DataFrame, keys: Sequence[str], arm: str, control: str, within_days: bool | None, last: Series[Any]
) -> list[ArmPair]:
    """Return the pairs of one measure. *last* is the last day of each measure."""
    first, names = rows.iloc[0], rows[arm].to_numpy()
    columns = (rows["timestamp"].to_numpy("datetime64[us]"), *(rows[name].to_numpy() for name in ("players", "amount")))
    whole = ArmDays(*columns)
    end = last[first["measure"]]
    pairs = []
    for name in dict.fromkeys(names):
        of_arm = whole.take(names == name)
        base = _added_up(whole.take(names != name)) if control == OTHERS else whole.take(names == control)
        if name == control or not len(base.players):
            continue
        design, treated, beside = _designed(of_arm, base, within_days)
        last_day = pd.Timestamp(of_arm.days.max()).tz_localize("UTC")
        pairs.append(
            ArmPair(
                keys={key: first[key] for key in keys} | {arm: name},
                control=control,
                unit=first["unit"],
                is_counted=bool(first["is_counted"]),
                is_random=arm == VARIANT or design == "in total",
                design=design,
                treated=treated,
                base=beside,
                last_day=last_day,
                is_running=bool(pd.isna(last_day) or last_day == end),
            )
        )
    return pairs


def _designed(treated: ArmDays, base: ArmDays, within_days: bool | None) -> tuple[Design, ArmDays, ArmDays]:
    """Return the design of a comparison and the days that it uses of both arms."""
    if np.isnat(treated.days).all():
        return "in total", treated, base
    treated, base = treated.take(treated.players > 0), base.take(base.players > 0)
    _, places, base_places = np.intersect1d(treated.days, base.days, assume_unique=True, return_indices=True)
    is_within = within_days
    if is_within is None:
        is_within = bool(treated.players[places].sum() >= treated.players.sum() / 2)
    return (
        ("within days", treated.take(places), base.take(base_places)) if is_within else ("between days", treated, base)
    )


def _added_up(arms: ArmDays) -> ArmDays:
    """Return the days of several arms as if they were one arm."""
    days, place = np.unique(arms.days, return_inverse=True)
    players, amount = (
        np.bincount(place, amounts, len(days)).astype("float64") for amounts in (arms.players, arms.amount)
    )
    return ArmDays(days, players, amount)


def _mean(arm: ArmDays) -> float:
    players = arm.players.sum()
    return float(arm.amount.sum() / players) if players else _NAN


def _covariance(values: Floats, weights: Floats) -> tuple[Floats, float]:
    """Return the covariance of both arms' means over independent days, (arms, arms), and its degrees of freedom.

    *values* has the shape (arms, days), *weights* (days,). With equal weights these are ordinary means. Unequal weights
    leave as many degrees of freedom as there would be equally large days with the same information (Kish).
    """
    share = weights / weights.sum()
    deviation = values - (values @ share)[:, None]
    return (deviation * share**2 / (1 - share)) @ deviation.T, float(1 / (share**2).sum() - 1)
