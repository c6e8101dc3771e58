"""What a day should have been, from the days before it and no others, for all series and days at once.

Counts and money are compared with the median of the same weekday in the four weeks before, moved by the drift the days
before have shown against theirs; how far they may stray is the spread (MAD) of those days, and for counts at least what
chance alone makes of a count. Shares are compared with those of the four weeks before pooled, days far off left out;
how far they may stray is what chance makes of so many, widened where the days before strayed further.

Each is judged on a scale on which its noise is alike everywhere: square roots for counts, logarithms for money, where
one large purchase multiplies a day, arcsines for shares.
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
"""How far the band that is drawn reaches, in units of noise."""

_MAD_TO_SIGMA: Final = 1.4826
_MEAN_TO_SIGMA: Final = 1.2533
_COUNT_NOISE: Final = 1.14  # a count's square root strays by 1, and the median of four such by half of that
_LEAST_NOISE: Final = 0.03
_SMALL: Final = 0.1  # of a typical day's money; days below it are all alike
_FAR: Final = 3.5
_CHANCE_DAYS: Final = 14


class Baseline(msgspec.Struct, frozen=True):
    """For each series and day: what was *expected*, the band *low* to *high*, and *z*, the stray in units of noise.

    *known* is the number of days that the noise was estimated from, infinite where chance alone makes it. All are NaN
    while the history is short.
    """

    expected: Floats
    low: Floats
    high: Floats
    z: Floats
    known: Floats


def judge_counts(values: Floats) -> Baseline:
    """Whole numbers of something that happens by chance."""
    return _judge(2 * np.sqrt(np.maximum(values, 0) + 0.375), least=_COUNT_NOISE, back=_count_of)


def judge_money(values: Floats) -> Baseline:
    """Sums, means and other numbers that are never negative; rare ones, which have no usual size, are not judged."""
    positive = np.where(values > 0, values, np.nan)
    typical = np.nan_to_num(_median(positive), nan=1.0)[:, None]
    judged = _judge(
        np.log(np.maximum(values, 0) / typical + _SMALL),
        least=_LEAST_NOISE,
        back=lambda scaled: typical * (np.exp(scaled) - _SMALL),
    )
    rare = _is_rare(values)
    return Baseline(*(np.where(rare, np.nan, getattr(judged, name)) for name in Baseline.__struct_fields__))


def judge_shares(part: Floats, whole: Floats, *, days: int = 1, without: Flags | None = None) -> Baseline:
    """Shares of the last *days* days together, which are *part* of *whole*; the days *without* are left out of them."""
    recent_part, recent_whole = recent(part, whole, days=days, without=without)
    before = [_past(array, POOLED_DAYS, skip=days - 1) for array in (part, whole)]
    known = np.isfinite(before[0]) & (before[1] > 0)
    parts, wholes = (np.where(known, array, 0.0) for array in before)
    share = _pooled(parts, wholes)
    far = _strays(parts, wholes, share[..., None])
    is_kept = known & (np.abs(far) <= _FAR)
    share = _pooled(np.where(is_kept, parts, 0.0), np.where(is_kept, wholes, 0.0))
    number = np.where(is_kept, wholes, 0.0).sum(axis=-1)
    stray = _spread(np.where(known, _strays(parts, wholes, share[..., None]), np.nan))
    tested = known.sum(axis=-1)
    # That only chance is at work counts as much as fourteen days, or a wobbly estimate would hide half of a fall.
    spread = np.sqrt(np.maximum((_CHANCE_DAYS + tested * stray**2) / (_CHANCE_DAYS + tested), 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = spread * np.sqrt(1 + recent_whole / number)
        z = _strays(recent_part, recent_whole, share) / noise
        reach = BAND_Z * noise / (2 * np.sqrt(recent_whole + 0.5))
    is_judged = (tested >= FEWEST_POOLED_DAYS) & (recent_whole > 0) & np.isfinite(z)
    middle = np.arcsin(np.sqrt(share))
    lines = share, *(np.sin(np.clip(middle + way * reach, 0, np.pi / 2)) ** 2 for way in (-1, 1)), z
    certain = np.where(spread > 1.0, (_CHANCE_DAYS + tested) / 2, np.inf)
    return Baseline(*(np.where(is_judged, line, np.nan) for line in (*lines, certain)))


def recent(part: Floats, whole: Floats, *, days: int, without: Flags | None = None) -> tuple[Floats, Floats]:
    """What `judge_shares` judges: the sums of *part* and *whole* over the last *days* days."""
    if without is not None:
        part, whole = np.where(without, np.nan, part), np.where(without, np.nan, whole)
    return _sums(part, days), _sums(whole, days)


def _judge(scaled: Floats, *, least: float, back: Callable[[Floats], Floats]) -> Baseline:
    usual = _same_weekday(scaled)
    surprise = scaled - usual
    past = _past(surprise, MEMORY_DAYS)
    drift = _median(past)
    strays = past - drift[..., None]
    days = np.isfinite(past).sum(axis=-1)
    spread = _spread(strays)
    noise = np.maximum(spread, least)
    is_known = (days >= FEWEST_DAYS) & np.isfinite(usual)
    middle = np.where(is_known, usual + drift, np.nan)
    expected, low, high = (np.maximum(back(middle + reach * noise), 0.0) for reach in (0, -BAND_Z, BAND_Z))
    certain = np.where(is_known, np.where(spread > least, days / 2, np.inf), np.nan)
    return Baseline(expected, low, high, (scaled - middle) / noise, certain)


def _count_of(scaled: Floats) -> Floats:
    return (np.maximum(scaled, 0) / 2) ** 2 - 0.375


def _strays(part: Floats, whole: Floats, share: Floats) -> Floats:
    """How far *part* of *whole* is from *share*, in units of what chance makes of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arcsin(np.sqrt(np.clip((part + 0.375) / (whole + 0.75), 0, 1)))
        strays: Floats = 2 * (angle - np.arcsin(np.sqrt(share))) * np.sqrt(whole + 0.5)
    return strays


def _pooled(parts: Floats, wholes: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Floats = parts.sum(axis=-1) / wholes.sum(axis=-1)
    return np.clip(share, 0.0, 1.0)


def _same_weekday(values: Floats) -> Floats:
    """The median of the same weekday in the weeks before; NaN where fewer than two are known."""
    weeks = np.full((*values.shape, WEEKS), np.nan)
    for week in range(1, WEEKS + 1):
        weeks[:, 7 * week :, week - 1] = values[:, : -7 * week]
    known = np.isfinite(weeks).sum(axis=-1)
    return np.where(known >= FEWEST_WEEKDAYS, _median(weeks), np.nan)


def _past(values: Floats, days: int, *, skip: int = 0) -> Floats:
    """For each day the *days* before it, less the last *skip* of them, on a last axis; NaN before the first."""
    empty = np.full((len(values), days + skip), np.nan)
    padded = np.concatenate([empty, values], axis=1)
    return sliding_window_view(padded, days, axis=1)[:, : values.shape[1]]


def _sums(values: Floats, days: int) -> Floats:
    """For each day the sum of the last *days*, what is not known left out; NaN where that is all."""
    if days == 1:
        return values
    window = _past(np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1), days)[:, 1:]
    return np.where(np.isfinite(window).any(axis=-1), np.nansum(window, axis=-1), np.nan)


def _spread(strays: Floats) -> Floats:
    """One sigma along the last axis: the MAD, or half of what the mean says where most are alike and others far off."""
    sizes = np.abs(strays)
    typical = _MAD_TO_SIGMA * _median(sizes)
    with np.errstate(invalid="ignore"):
        capped = np.minimum(sizes, np.where(typical > 0, _FAR * typical, np.inf)[..., None])
    known = np.isfinite(capped)
    mean = np.where(known, capped, 0.0).sum(axis=-1) / np.maximum(known.sum(axis=-1), 1)
    return np.asarray(np.fmax(typical, 0.5 * _MEAN_TO_SIGMA * mean))


def _median(values: Floats) -> Floats:
    """Along the last axis, NaN left out; numpy's own takes a hundred times as long for many short rows."""
    ordered = np.sort(values, axis=-1)  # NaN last
    known = np.isfinite(values).sum(axis=-1)
    low, high = np.maximum(known - 1, 0) // 2, np.minimum(known // 2, values.shape[-1] - 1)
    lower, upper = (np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0] for place in (low, high))
    return np.asarray((lower + upper) / 2)


def _is_rare(values: Floats) -> Flags:
    """True on days before which most days brought nothing: a purchase now and then has no usual size."""
    past = _past(np.where(np.isfinite(values), (values > 0).astype("float64"), np.nan), MEMORY_DAYS)
    known = np.isfinite(past).sum(axis=-1)
    paid = np.nansum(past, axis=-1)
    return np.asarray((known > 0) & (paid < known / 2))
