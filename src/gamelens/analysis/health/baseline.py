"""Baseline of a day, from the usual days before it alone, for all series at once.

Counts and money are compared with the median of the same weekday in the four weeks before, shifted by the drift of the
preceding days. Their noise is the spread (MAD) of those days, and for counts at least the noise of chance. Shares and
rates are compared with the pooled four weeks before, outliers left out. Their noise is chance, widened if the days
before deviated further. Several days together are also compared with how far a share wanders in such weeks.

Usual days are those outside of incidents: while one is open its baseline stays what it was before. Where days follow
each other (autocorrelation), a day is compared with what the day before it leads to, and the noise is the error
of such predictions.

Each kind is judged on a scale on which its noise is the same everywhere: square roots for counts and rates, logarithms
for money, where one large purchase multiplies a day, arcsines for shares. Numbers in brackets are the formulas of the
page "Health" (`docs/pages/explanation/method-health.md`). Arrays have the shape (series, days), or (series,) where they
are about the one day that is judged.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from gamelens.analysis.health.constants import (
    BAND_Z,
    CAP,
    CAPPED_TO_SIGMA,
    CHANCE_DAYS,
    CLEAR_MEMORY,
    DAYS_OF_MEDIAN,
    DOUBT,
    FAR,
    FEWEST_DAYS,
    FEWEST_POOLED_DAYS,
    FEWEST_WEEKDAYS,
    LASTING_DAYS,
    LEAST_NOISE,
    MAD_TO_SIGMA,
    MEDIAN_VARIANCE,
    MEMORY_DAYS,
    MEMORY_NOISE,
    POOLED_DAYS,
    RARE_DAYS,
    SMALL,
    SPREAD_DAYS,
    T_QUANTILE,
    WANDER_SIZE,
    WANDERING,
    WEEKS,
    WIDE,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Baseline(msgspec.Struct, frozen=True):
    """Expected value and deviation of one day, arrays by series.

    All are NaN while the history is short.

    Attributes:
        expected: the expected value.
        low: lower end of the band of usual days.
        high: upper end of the band.
        z: deviation of the value in units of noise.
        noise_days: number of days that the noise was estimated from, infinite if it is chance alone.
        own_low, own_high: the value with all noise of its comparison with *expected*, including the noise of the
            baseline. Divided by *expected* they are the 95% interval of the ratio.
    """

    expected: Floats
    low: Floats
    high: Floats
    z: Floats
    noise_days: Floats
    own_low: Floats
    own_high: Floats


class Levels:
    """The series of one kind, judged day by day: counts, or amounts that are never negative.

    Days must be judged in order: the deviation of each day from its weekdays is kept for those that follow.
    """

    def __init__(self, values: Floats, *, is_count: bool) -> None:
        self._values, self._is_count = values, is_count
        self._residuals = np.full(values.shape, np.nan)
        if is_count:
            self._least, self._scaled = 1.0, 2 * np.sqrt(np.maximum(values, 0) + 0.375)  # (1)
            return
        self._least = LEAST_NOISE
        self._positive = np.where(values > 0, values, np.nan)

    def judge(self, day: int, is_usual: Flags) -> Baseline:
        """Return the baseline of number *day*, from the days before it flagged in *is_usual*.

        Rare amounts have no usual size and get none.
        """
        if self._is_count:
            return self._score(day, self._scaled[:, : day + 1], is_usual, _count_of)
        typical = np.nan_to_num(_median(self._positive[:, : day + 1]), nan=1.0)[:, None]
        scaled = np.log(np.maximum(self._values[:, : day + 1], 0) / typical + SMALL)  # (1)
        size = typical[:, 0]
        baseline = self._score(day, scaled, is_usual, lambda numbers: size * (np.exp(numbers) - SMALL))
        rare = _is_rare(self._values[:, :day], is_usual[:, :day])
        return Baseline(*(np.where(rare, np.nan, getattr(baseline, name)) for name in Baseline.__struct_fields__))

    def adopt(self, rows: NDArray[np.int64], day: int) -> None:
        """Take the last `LASTING_DAYS` up to *day* of *rows* for the level that days are judged against from now on.

        The deviation of each is taken from the same weekday of the other week, as no day before belongs to the level.
        """
        days = slice(day + 1 - LASTING_DAYS, day + 1)
        if self._is_count:
            level = self._scaled[rows, days]
        else:
            typical = np.nan_to_num(_median(self._positive[rows, : day + 1]), nan=1.0)[:, None]
            level = np.log(np.maximum(self._values[rows, days], 0) / typical + SMALL)
        self._residuals[rows, : day + 1] = np.nan
        self._residuals[rows, days] = level - np.roll(level, LASTING_DAYS // 2, axis=1)

    def _score(self, day: int, scaled: Floats, is_usual: Flags, back: Callable[[Floats], Floats]) -> Baseline:
        """Return the baseline on a scale of constant noise, which *back* converts to values."""
        if day < 7 * FEWEST_WEEKDAYS:
            return Baseline(*(np.full(len(scaled), np.nan) for _ in Baseline.__struct_fields__))
        value = scaled[:, -1]
        usual = np.where(is_usual[:, :day], scaled[:, :-1], np.nan)
        weekdays = _newest(usual[:, ::-1][:, 6::7][:, ::-1], WEEKS)  # the same weekday, (series, weeks)
        weeks = np.isfinite(weekdays).sum(axis=1)
        same_weekday = np.where(weeks >= FEWEST_WEEKDAYS, _median(weekdays), np.nan)  # (2)
        self._residuals[:, day] = value - same_weekday
        past = _newest(np.where(is_usual[:, :day], self._residuals[:, :day], np.nan), MEMORY_DAYS)
        days = np.isfinite(past).sum(axis=1)
        drift = _median(past)  # (3)
        memory = _Memory(past - drift[:, None])
        spread = _spread(memory.errors)
        least = self._least * np.sqrt(1 + MEDIAN_VARIANCE[weeks])
        noise = np.fmax(spread, least) * np.sqrt(1 + DAYS_OF_MEDIAN / np.maximum(days, 1)) * memory.widening  # (6)
        is_known = (days >= FEWEST_DAYS) & np.isfinite(same_weekday)
        centre = np.where(is_known, same_weekday + drift + memory.prediction, np.nan)
        expected, low, high = (np.maximum(back(centre + reach * noise), 0.0) for reach in (0, -BAND_Z, BAND_Z))
        chance_days = np.where(self._is_count & (days >= FEWEST_POOLED_DAYS), np.inf, days)
        noise_days = np.where(is_known, np.where(spread > least, memory.spread_days, chance_days), np.nan)
        if self._is_count:
            count = self._values[:, day]
            bounds = _own_bounds(count, np.ones_like(count), expected, noise, noise_days, is_rate=True)
        else:
            reach = np.polyval(T_QUANTILE, 1 / noise_days) * noise
            bounds = back(value - reach), back(value + reach)
        own_low, own_high = (np.where(is_known, np.maximum(bound, 0.0), np.nan) for bound in bounds)
        return Baseline(expected, low, high, (value - centre) / noise, noise_days, own_low, own_high)  # (7)


def judge_shares(
    part: Floats, whole: Floats, is_usual: Flags, *, days: int = 1, is_rate: bool = False, least_z: float = 0.0
) -> Baseline:
    """Return the baseline of the share *part* / *whole* over the last *days* days.

    The earlier days that are flagged in *is_usual* make the baseline. A rate may be larger than 1. Several days
    together are not judged in a series that varies much more than chance does: it may wander, and their mean with it.
    Series that chance alone keeps within *least_z* are left out (NaN), which saves most of the time.
    """
    baseline = Baseline(*(np.full(len(part), np.nan) for _ in Baseline.__struct_fields__))
    if part.shape[1] <= max(days, FEWEST_POOLED_DAYS):
        return baseline
    usual = _usual_share(part[:, :-days], whole[:, :-days], is_usual[:, :-days], is_rate)  # (8)
    window = [np.where(np.isfinite(part[:, -days:]), array[:, -days:], np.nan) for array in (part, whole)]
    recent_part, recent_whole = (_sum(array) for array in window)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.sqrt(1 + recent_whole / usual.near_whole)  # of the window and of the baseline
        deviation = _deviations(recent_part, recent_whole, usual.share, is_rate)
        is_judged = (usual.is_known.sum(axis=1) >= FEWEST_POOLED_DAYS) & (recent_whole > 0)
        is_judged &= np.abs(deviation) >= least_z * chance
    rows = np.flatnonzero(is_judged)
    if not len(rows):
        return baseline
    usual, share = usual.of(rows), usual.share[rows]
    deviations = _only(_deviations(usual.parts, usual.wholes, share[:, None], is_rate), usual.is_known)
    memory = _Memory(deviations)
    spread, chance_days = _widened_chance(
        _spread(memory.errors if days == 1 else deviations), usual.is_known.sum(axis=1)
    )  # (9)
    deviation, noise = deviation[rows], spread * chance[rows]
    if days == 1:
        before = np.nan_to_num(_deviations(part[rows, -2], whole[rows, -2], share, is_rate))
        deviation = deviation - np.where(is_usual[rows, -2], memory.strength * before, 0.0)
        noise = noise * memory.widening
    else:
        within = _around_own_share(window[0][rows], window[1][rows], is_rate)
        varied = _spread(np.concatenate([deviations, within], axis=1))
        most = _wander_of(share, recent_whole[rows] / np.isfinite(within).sum(axis=1), is_rate)
        if_wandering = _widening_if_wandering(varied, most, days)  # (10)
        noise = np.fmax(noise * memory.widening_over(days), chance[rows] * if_wandering)
        deviation = np.where(varied > WIDE, np.nan, deviation)
    reach = BAND_Z * noise / (2 * np.sqrt(recent_whole[rows] + 0.5))
    noise_days = memory.spread_days + np.where(memory.strength > 0, 0.0, 2 * chance_days)
    noise_days = np.where(spread > 1.0, noise_days, np.inf)
    bounds = _own_bounds(recent_part[rows], recent_whole[rows], share, noise, noise_days, is_rate=is_rate)  # (11)
    band = (_share_at(share, sign * reach, is_rate) for sign in (-1, 1))
    lines = share, *band, deviation / noise, noise_days, *bounds
    for name, line in zip(Baseline.__struct_fields__, lines, strict=True):
        getattr(baseline, name)[rows] = np.where(np.isfinite(deviation), line, np.nan)
    return baseline


class _UsualShare(msgspec.Struct, frozen=True):
    """The share of the usual days before a window, and these days.

    Attributes:
        share: by series, outliers left out.
        near_whole: denominator of all days but outliers, by series.
        parts, wholes: numerators and denominators by series and day, 0 on other days.
        is_known: the usual days.
    """

    share: Floats
    near_whole: Floats
    parts: Floats
    wholes: Floats
    is_known: Flags

    def of(self, rows: NDArray[np.int64]) -> _UsualShare:
        """Return the usual shares of *rows*."""
        return _UsualShare(*(getattr(self, name)[rows] for name in self.__struct_fields__))


def _usual_share(part: Floats, whole: Floats, is_usual: Flags, is_rate: bool) -> _UsualShare:
    """Return the share of the last days flagged in *is_usual*."""
    is_known = _is_newest(is_usual & np.isfinite(part) & (whole > 0), POOLED_DAYS)
    first = int(np.argmax(is_known.any(axis=0)))
    is_known = is_known[:, first:]
    parts, wholes = (np.where(is_known, array[:, first:], 0.0) for array in (part, whole))
    share = _pooled_share(parts, wholes, is_rate)
    deviations = _only(_deviations(parts, wholes, share[:, None], is_rate), is_known)
    is_near = np.abs(deviations) <= FAR * np.maximum(_spread(deviations), 1)[:, None]
    near_wholes = np.where(is_near, wholes, 0.0)
    share = _pooled_share(np.where(is_near, parts, 0.0), near_wholes, is_rate)
    return _UsualShare(share, near_wholes.sum(axis=1), parts, wholes, is_known)


def _widening_if_wandering(varied: Floats, most: Floats, days: int) -> Floats:
    """Return the factor of the noise of *days* days together, of a share that wanders.

    What days vary by beyond chance may last. *varied* is the spread of days in units of chance, *most* the largest
    variance of a usual wander in those units. A few weeks of history cannot tell noise of `WANDERING` autocorrelation
    from independent days, nor its variance.
    """
    lags = np.arange(1, days)
    together = 1 + 2 * ((1 - lags / days) * WANDERING**lags).sum()
    return np.asarray(np.sqrt(1 + np.clip(DOUBT * varied**2 - 1, 0, most) * together))


def _wander_of(share: Floats, whole: Floats, is_rate: bool) -> Floats:
    """Return the variance of a wander by `WANDER_SIZE` of *share*.

    Its unit is the variance of chance on a day of *whole*.
    """
    return np.asarray(WANDER_SIZE**2 * share * whole / (1.0 if is_rate else np.maximum(1 - share, 1e-9)))


def _around_own_share(part: Floats, whole: Floats, is_rate: bool) -> Floats:
    """Return the deviations of days from their own share, in units of chance noise."""
    share = _pooled_share(np.nan_to_num(part), np.nan_to_num(np.where(np.isfinite(part), whole, 0.0)), is_rate)
    return _deviations(part, whole, share[:, None], is_rate)


class _Memory:
    """The autocorrelation of deviations, oldest first, and what it says of the day after them: (4).

    Attributes:
        strength: correlation of neighbouring days by series, 0 if it is not clear.
        errors: what remains of each day once the day before it is taken into account.
        prediction: expected deviation of the day after the last one.
        widening: factor of its noise, larger the further the last usual day lies back.
        spread_days: number of observations that a spread of *errors* is worth.
    """

    def __init__(self, deviations: Floats) -> None:
        spread = np.nan_to_num(_spread(deviations))
        limits = FAR * spread[:, None]
        capped = np.clip(deviations, -limits, limits)
        before, after = capped[:, :-1], capped[:, 1:]
        is_pair = np.isfinite(before) & np.isfinite(after)
        pairs = np.maximum(is_pair.sum(axis=1), 1)
        products, squares = (np.where(is_pair, before * other, 0.0).sum(axis=1) for other in (after, before))
        with np.errstate(divide="ignore", invalid="ignore"):
            measured = np.nan_to_num(products / squares)
        # The mean of a short series follows the series: its autocorrelation is measured too small (Kendall, 1954).
        corrected = np.minimum(measured + (1 + 3 * measured) / pairs, 1.0)
        least = np.where(pairs < FEWEST_POOLED_DAYS, 0.0, CLEAR_MEMORY / np.sqrt(pairs))
        self.strength = np.where(corrected > least, corrected, 0.0)
        has_memory = (self.strength > 0)[:, None]
        follows = np.full(deviations.shape, np.nan)
        follows[:, 1:] = deviations[:, 1:] - self.strength[:, None] * capped[:, :-1]
        self.errors = np.where(has_memory, follows, deviations)
        is_there = np.isfinite(deviations)
        self.spread_days = SPREAD_DAYS * is_there.sum(axis=1)
        self._gap = np.where(is_there.any(axis=1), np.argmax(is_there[:, ::-1], axis=1) + 1, 1)
        last = capped[np.arange(len(capped)), capped.shape[1] - self._gap] if capped.shape[1] else np.zeros(len(capped))
        self.prediction = np.nan_to_num(last) * self.strength**self._gap
        self.widening = np.where(
            self.strength > 0, MEMORY_NOISE * np.sqrt(_geometric(self.strength**2, self._gap)), 1.0
        )

    def widening_over(self, days: int) -> Floats:
        """Return the factor of the noise of *days* days together, which vary together."""
        lags = np.arange(1, days)
        return np.asarray(np.sqrt(1 + 2 * ((1 - lags / days) * self.strength[:, None] ** lags).sum(axis=1)))


def _geometric(ratio: Floats, powers: NDArray[np.int64]) -> Floats:
    """Return the sum of the first *powers* of *ratio*, from 0 on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(ratio < 1, (1 - ratio**powers) / (1 - ratio), powers), dtype="float64")


def _widened_chance(spread: Floats, days: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the spread of days, which is at least what chance gives, and the days that chance counts as.

    These are fourteen more days, or a noisy estimate of the spread would hide half of a fall, and fewer the further the
    estimate is from chance.
    """
    square = np.nan_to_num(spread) ** 2
    chance_days = CHANCE_DAYS / np.maximum(square, 1)
    return np.sqrt(np.maximum((chance_days + days * square) / (chance_days + days), 1.0)), chance_days


def _count_of(scaled: Floats) -> Floats:
    return (np.maximum(scaled, 0) / 2) ** 2 - 0.375


def _deviations(part: Floats, whole: Floats, share: Floats, is_rate: bool) -> Floats:
    """Return the deviation of *part* of *whole* from *share*, in units of chance noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if is_rate:
            return np.asarray(2 * (np.sqrt(part + 0.375) - np.sqrt(share * whole + 0.375)))
        angle = np.arcsin(np.sqrt(np.clip((part + 0.375) / (whole + 0.75), 0, 1)))
        deviations: Floats = 2 * (angle - np.arcsin(np.sqrt(share))) * np.sqrt(whole + 0.5)
    return deviations


def _own_bounds(
    part: Floats, whole: Floats, expected: Floats, noise: Floats, noise_days: Floats, *, is_rate: bool
) -> tuple[Floats, Floats]:
    """Return the bounds of *part* of *whole*, where *noise* is the noise of its deviation from *expected*.

    Noise beyond chance is relative: a number that fell has less of it. Chance alone gives nearly the bounds of exact
    intervals, of small counts too.
    """
    total = whole if is_rate else whole + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.maximum(noise**2 - 1, 0.0) * (part / whole) / expected
        reach = np.polyval(T_QUANTILE, 1 / noise_days) * np.sqrt(1 + beyond) / (2 * np.sqrt(total))
    return _share_at(part / total, -reach, is_rate), _share_at((part + 1) / total, reach, is_rate)


def _share_at(share: Floats, reach: Floats, is_rate: bool) -> Floats:
    """Return the share at a distance of *reach* on the scale of its noise."""
    if is_rate:
        return np.asarray(np.maximum(np.sqrt(share) + reach, 0) ** 2)
    return np.asarray(np.sin(np.clip(np.arcsin(np.sqrt(share)) + reach, 0, np.pi / 2)) ** 2)


def _pooled_share(parts: Floats, wholes: Floats, is_rate: bool) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = parts.sum(axis=-1) / wholes.sum(axis=-1)
    return np.clip(share, 0.0, None if is_rate else 1.0)


def _only(values: Floats, flags: Flags) -> Floats:
    return np.where(flags, values, np.nan)


def _is_newest(flags: Flags, most: int) -> Flags:
    """Return *flags* without those before the last *most* of each row."""
    return np.asarray(flags & (np.cumsum(flags[:, ::-1], axis=1)[:, ::-1] <= most))


def _newest(values: Floats, most: int) -> Floats:
    """Return *values* with NaN before the last *most* known ones of each row."""
    return _only(values, _is_newest(np.isfinite(values), most))


def _sum(values: Floats) -> Floats:
    """Return the sum of the known values of each row, NaN if none is known."""
    return np.where(np.isfinite(values).any(axis=1), np.nansum(values, axis=1), np.nan)


def _spread(deviations: Floats) -> Floats:
    """Return one sigma along the last axis, robust against outliers: (5).

    It is the root of the mean square with far days pulled in to 2.5 sigma by the MAD, which is half as noisy as the MAD
    alone. If most days are alike and a few far off, the MAD is 0 and nothing is pulled in.
    """
    sizes = np.abs(deviations)
    typical = MAD_TO_SIGMA * _median(sizes)
    with np.errstate(invalid="ignore"):
        capped = np.minimum(sizes, np.where(typical > 0, CAP * typical, np.inf)[..., None])
    is_known = np.isfinite(capped)
    squares = np.where(is_known, capped, 0.0) ** 2
    mean_square = squares.sum(axis=-1) / np.maximum(is_known.sum(axis=-1), 1)
    return np.asarray(np.where(is_known.any(axis=-1), CAPPED_TO_SIGMA * np.sqrt(mean_square), np.nan))


def _median(values: Floats) -> Floats:
    """Return the median of each row, NaN left out.

    numpy's own takes seven to ten times as long for the series of a board.
    """
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    ordered = np.sort(values, axis=-1)  # NaN last
    count = np.count_nonzero(np.isfinite(ordered), axis=-1)
    rows, most = np.arange(len(ordered)), ordered.shape[-1] - 1
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, most)
    return np.asarray((ordered[rows, low] + ordered[rows, high]) / 2)


def _is_rare(values: Floats, is_usual: Flags) -> Flags:
    """Return a mask of series with no revenue on most days before."""
    past = _newest(np.where(np.isfinite(values) & is_usual, (values > 0).astype("float64"), np.nan), RARE_DAYS)
    days_known = np.isfinite(past).sum(axis=1)
    return np.asarray((days_known > 0) & (np.nansum(past, axis=1) < days_known / 2))
