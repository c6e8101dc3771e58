"""Baseline of each day, from the days before it alone, for all series at once.

Counts and money are compared with the median of the same weekday in the four weeks before, shifted by the drift of the
preceding days. Their noise is the spread (MAD) of those days, and for counts at least the noise of chance. Shares are
compared with the pooled four weeks before, outliers left out. Their noise is that of chance, widened if the days before
deviated further.

Each kind is judged on a scale on which its noise is the same everywhere: square roots for counts, logarithms for money,
where one large purchase multiplies a day, arcsines for shares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

WEEKS: Final = 4
FEWEST_WEEKDAYS: Final = 2
FEWEST_DAYS: Final = 7
MEMORY_DAYS: Final = 21
POOLED_DAYS: Final = 28
FEWEST_POOLED_DAYS: Final = 14
BAND_Z: Final = 3.5
"""Half width of the drawn band, in units of noise."""

_MAD_TO_SIGMA: Final = 1.4826
_MEAN_TO_SIGMA: Final = 1.2533
_COUNT_NOISE: Final = 1.14  # noise of a count's square root is 1, and half of that for the median of four
_LEAST_NOISE: Final = 0.03
_SMALL: Final = 0.1  # of a typical day's revenue: added so that the logarithm of small days is stable
_FAR: Final = 3.5
_CHANCE_DAYS: Final = 14


class Baseline(msgspec.Struct, frozen=True):
    """Expected values and deviations, arrays of series by days.

    All are NaN while the history is short.

    Attributes:
        expected: the expected value.
        low: lower end of the band of usual days.
        high: upper end of the band.
        z: deviation of the value in units of noise.
        noise_days: number of days that the noise was estimated from, infinite if it is that of chance.
    """

    expected: Floats
    low: Floats
    high: Floats
    z: Floats
    noise_days: Floats


def judge_counts(values: Floats) -> Baseline:
    """Return the baseline of whole numbers of chance events."""
    return _score(2 * np.sqrt(np.maximum(values, 0) + 0.375), least=_COUNT_NOISE, back=_count_of)


def judge_money(values: Floats) -> Baseline:
    """Return the baseline of sums, means and other numbers that are never negative.

    Rare amounts have no usual size and get none.
    """
    positive = np.where(values > 0, values, np.nan)
    typical = np.nan_to_num(_median(positive), nan=1.0)[:, None]
    baseline = _score(
        np.log(np.maximum(values, 0) / typical + _SMALL),
        least=_LEAST_NOISE,
        back=lambda scaled: typical * (np.exp(scaled) - _SMALL),
    )
    rare = _is_rare(values)
    return Baseline(*(np.where(rare, np.nan, getattr(baseline, name)) for name in Baseline.__struct_fields__))


def judge_shares(part: Floats, whole: Floats, *, days: int = 1, without: Flags | None = None) -> Baseline:
    """Return the baseline of the share *part* / *whole* over the last *days* days.

    The days flagged in *without* are left out of the share.
    """
    recent_part, recent_whole = recent_sums(part, whole, days=days, without=without)
    before = [_preceding_days(array, POOLED_DAYS, skip=days - 1) for array in (part, whole)]
    is_known = np.isfinite(before[0]) & (before[1] > 0)
    parts, wholes = (np.where(is_known, array, 0.0) for array in before)
    share = _pooled_share(parts, wholes)
    deviations = _deviations(parts, wholes, share[..., None])
    is_usual = is_known & (np.abs(deviations) <= _FAR)
    share = _pooled_share(np.where(is_usual, parts, 0.0), np.where(is_usual, wholes, 0.0))
    whole_before = np.where(is_usual, wholes, 0.0).sum(axis=-1)
    spread_before = _spread(np.where(is_known, _deviations(parts, wholes, share[..., None]), np.nan))
    days_tested = is_known.sum(axis=-1)
    # Chance alone counts as fourteen more days: a noisy estimate of the spread would hide half of a fall.
    spread = np.sqrt(np.maximum((_CHANCE_DAYS + days_tested * spread_before**2) / (_CHANCE_DAYS + days_tested), 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = spread * np.sqrt(1 + recent_whole / whole_before)
        z = _deviations(recent_part, recent_whole, share) / noise
        reach = BAND_Z * noise / (2 * np.sqrt(recent_whole + 0.5))
    is_judged = (days_tested >= FEWEST_POOLED_DAYS) & (recent_whole > 0) & np.isfinite(z)
    centre = np.arcsin(np.sqrt(share))
    lines = share, *(np.sin(np.clip(centre + sign * reach, 0, np.pi / 2)) ** 2 for sign in (-1, 1)), z
    noise_days = np.where(spread > 1.0, (_CHANCE_DAYS + days_tested) / 2, np.inf)
    return Baseline(*(np.where(is_judged, line, np.nan) for line in (*lines, noise_days)))


def recent_sums(part: Floats, whole: Floats, *, days: int, without: Flags | None = None) -> tuple[Floats, Floats]:
    """Return the sums of *part* and *whole* over the last *days* days, for `judge_shares`."""
    if without is not None:
        part, whole = np.where(without, np.nan, part), np.where(without, np.nan, whole)
    return _sums(part, days), _sums(whole, days)


def _score(scaled: Floats, *, least: float, back: Callable[[Floats], Floats]) -> Baseline:
    """Return the baseline of values on a scale of constant noise.

    *least* is the smallest noise, *back* converts from the scale to values.
    """
    same_weekdays = _same_weekday(scaled)
    residuals = scaled - same_weekdays
    past_residuals = _preceding_days(residuals, MEMORY_DAYS)
    drift = _median(past_residuals)
    deviations = past_residuals - drift[..., None]
    days = np.isfinite(past_residuals).sum(axis=-1)
    spread = _spread(deviations)
    noise = np.maximum(spread, least)
    is_known = (days >= FEWEST_DAYS) & np.isfinite(same_weekdays)
    centre = np.where(is_known, same_weekdays + drift, np.nan)
    expected, low, high = (np.maximum(back(centre + reach * noise), 0.0) for reach in (0, -BAND_Z, BAND_Z))
    noise_days = np.where(is_known, np.where(spread > least, days / 2, np.inf), np.nan)
    return Baseline(expected, low, high, (scaled - centre) / noise, noise_days)


def _count_of(scaled: Floats) -> Floats:
    return (np.maximum(scaled, 0) / 2) ** 2 - 0.375


def _deviations(part: Floats, whole: Floats, share: Floats) -> Floats:
    """Return the deviation of *part* of *whole* from *share*, in units of chance noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arcsin(np.sqrt(np.clip((part + 0.375) / (whole + 0.75), 0, 1)))
        deviations: Floats = 2 * (angle - np.arcsin(np.sqrt(share))) * np.sqrt(whole + 0.5)
    return deviations


def _pooled_share(parts: Floats, wholes: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = parts.sum(axis=-1) / wholes.sum(axis=-1)
    return np.clip(share, 0.0, 1.0)


def _same_weekday(values: Floats) -> Floats:
    """Return the median of the same weekday in the weeks before, NaN with fewer than two."""
    weeks = np.full((*values.shape, WEEKS), np.nan)
    for week in range(1, WEEKS + 1):
        weeks[:, 7 * week :, week - 1] = values[:, : -7 * week]
    weeks_known = np.isfinite(weeks).sum(axis=-1)
    return np.where(weeks_known >= FEWEST_WEEKDAYS, _median(weeks), np.nan)


def _preceding_days(values: Floats, days: int, *, skip: int = 0) -> Floats:
    """Return for each day the *days* before it, without the last *skip*, on a last axis.

    NaN before the first day.
    """
    empty = np.full((len(values), days + skip), np.nan)
    padded = np.concatenate([empty, values], axis=1)
    return sliding_window_view(padded, days, axis=1)[:, : values.shape[1]]


def _sums(values: Floats, days: int) -> Floats:
    """Return for each day the sum of the last *days* known days, NaN if none is known."""
    if days == 1:
        return values
    window = _preceding_days(np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1), days)[:, 1:]
    return np.where(np.isfinite(window).any(axis=-1), np.nansum(window, axis=-1), np.nan)


def _spread(deviations: Floats) -> Floats:
    """Return one sigma along the last axis, robust against outliers.

    It is the MAD, or half of the estimate from the mean deviation if that is larger: if most days are alike and a few
    far off, the MAD alone is too small.
    """
    sizes = np.abs(deviations)
    typical = _MAD_TO_SIGMA * _median(sizes)
    with np.errstate(invalid="ignore"):
        capped = np.minimum(sizes, np.where(typical > 0, _FAR * typical, np.inf)[..., None])
    is_known = np.isfinite(capped)
    mean = np.where(is_known, capped, 0.0).sum(axis=-1) / np.maximum(is_known.sum(axis=-1), 1)
    return np.asarray(np.fmax(typical, 0.5 * _MEAN_TO_SIGMA * mean))


def _median(values: Floats) -> Floats:
    """Return the median along the last axis, NaN left out.

    numpy's own takes a hundred times as long for many short rows.
    """
    ordered = np.sort(values, axis=-1)  # NaN last
    count = np.isfinite(values).sum(axis=-1)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[-1] - 1)
    lower, upper = (np.take_along_axis(ordered, index[..., None], axis=-1)[..., 0] for index in (low, high))
    return np.asarray((lower + upper) / 2)


def _is_rare(values: Floats) -> Flags:
    """Return a mask of days before which most days had no revenue."""
    past = _preceding_days(np.where(np.isfinite(values), (values > 0).astype("float64"), np.nan), MEMORY_DAYS)
    days_known = np.isfinite(past).sum(axis=-1)
    days_with_money = np.nansum(past, axis=-1)
    return np.asarray((days_known > 0) & (days_with_money < days_known / 2))
