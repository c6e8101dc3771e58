"""Constants of the health board, each with its source.

The last paragraph of each says where it comes from: a derivation, a paper, an experiment on series whose truth is known
(`make methods`), a choice about what is worth an alarm, or the precision of a computation. `docs/methods` has what
becomes of the figures when one is a fifth smaller or larger. A day of history is a usual day before the one that is
judged; a unit of chance is the standard deviation of a Poisson or binomial count on its scale.
"""

from __future__ import annotations

from typing import Final

import numpy as np

# History of counts, money and means, which are compared with the same weekdays.

WEEKS: Final = 4
"""Weeks before a day whose same weekdays give what is expected of it, by their median.

Experiment: width of the interval of a change, and falls that are found, on series of the health bench.
"""
FEWEST_WEEKDAYS: Final = 2
"""Usual same weekdays before a day, of at most `WEEKS`, without which it is not judged.

Derived: one weekday alone has no spread, and its chance would be that of the day itself.
"""
FEWEST_DAYS: Final = 7
"""Days of history with a deviation from their own weekdays, without which a day is not judged.

Derived: one of each weekday, so that they spread as a whole week does.
"""
MEMORY_DAYS: Final = 28
"""Days whose deviations from their weekdays give drift, spread and autocorrelation.

Derived: as many as `WEEKS` weeks have, so that no day counts for the spread which is too old for the median.
"""
RARE_DAYS: Final = 21
"""Days among which most must have money, or money is rare and has no usual size.

Derived: three weeks, the shortest history with which a day is judged (two weekdays, then seven deviations).
"""

# History of shares and rates, which are compared with all days together.

POOLED_DAYS: Final = 28
"""Usual days whose pooled share is expected.

Derived: `WEEKS` weeks, as of counts.
"""
FEWEST_POOLED_DAYS: Final = 14
"""Usual days that a pooled share needs, and from which on a short autocorrelation must be clear.

Derived: two of each weekday, as `FEWEST_WEEKDAYS` of counts.
"""

# Noise.

BAND_Z: Final = 3.5
"""Half width of the drawn band of usual days, in units of noise; beyond it a day of a share is odd by itself.

Paper: Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers, recommend 3.5 for deviations by the MAD.
"""
FAR: Final = 3.5
"""Deviation, in units of noise, up to which a day says something about share and autocorrelation of the others.

Paper: Iglewicz and Hoaglin 1993, as `BAND_Z`.
"""
MAD_TO_SIGMA: Final = 1.4826
"""Standard deviation of a normal distribution by its median absolute deviation.

Derived: 1 over the 75% point of the normal distribution.
"""
CAP: Final = 2.5
"""Standard deviations, by the MAD, to which a far day is pulled in for the spread.

Experiment: intervals after one doubled day, and falls that are found; without a cap one such day hides the next fall.
"""
CAPPED_TO_SIGMA: Final = 1.0114
"""Factor by which the spread of days, once days beyond `CAP` are pulled in, is as large as before.

Derived: 1 over the root of the mean of min(x, CAP) squared, x normal: 1 - 2 (CAP f(CAP) + (1 - CAP^2) F(-CAP)).
"""
T_QUANTILE: Final = (1.59, 2.556, 2.822, 2.372, 1.96)
"""Coefficients of Student's 97.5% point by 1 / degrees of freedom, highest power first.

Paper: Abramowitz and Stegun 1964, Handbook of Mathematical Functions, 26.7.5.
"""
MEDIAN_VARIANCE: Final = np.array([np.nan, 1.0, 0.5, 0.449, 0.298])
"""Variance of the median of so many values of variance 1.

Derived: order statistics of the normal distribution, integrated numerically for three and four.
"""
DAYS_OF_MEDIAN: Final = np.pi / 2
"""Variance of the median of many days, as a multiple of the variance of their mean.

Derived: 1 / (4 f(0)^2) of the normal distribution.
"""
SPREAD_DAYS: Final = 0.6
"""Degrees of freedom of the robust spread for each of its days.

Derived: with 0.64 and more Student's distribution has the tail, from 2.6 units of noise on, of normal days that are
compared with their weekdays; rounded down. A test repeats the simulation.
"""
LEAST_NOISE: Final = 0.03
"""Least noise of the logarithm of money and means, so that a series that never moved is not judged by pennies.

Choice: a third of `LEAST_CHANGE`, so that an alarm of a tenth is three units of the least noise.
"""
SMALL: Final = 0.1
"""Part of a typical day's money that is added to it, so that the logarithm of small days is stable.

Experiment: usual days of money below 1%, and falls of money that are found, on series of the health bench.
"""
CHANCE_DAYS: Final = 14
"""Days that the noise expected by chance counts as, beside the days from which the spread of a share is measured.

Experiment: width of the band of a share and usual windows below 1%; a noisy spread alone would hide half of a fall.
"""

# Autocorrelation.

CLEAR_MEMORY: Final = 2.0
"""Multiple of its standard error that an autocorrelation of the days must exceed; a smaller one counts as 0.

Paper: Bartlett 1946, https://doi.org/10.2307/2983611: without one its standard error is 1 over the root of the days; 2
is 5%.
"""
MEMORY_NOISE: Final = 1.35
"""Factor of the noise of a day that is predicted from the day before, for the autocorrelation is estimated from the
same days.

Experiment: usual days of AR(0.8) and of a random walk below 1%, on series of the health bench.
"""
WANDERING: Final = 0.9
"""Correlation of successive days in the slow wander of a share that a window of weeks allows for.

Experiment: usual windows of a share that wanders by 5%, AR(0.9), below 1%.
"""
WANDER_SIZE: Final = 0.05
"""Standard deviation of that wander as a part of the share: 0.05 is 5% of it.

Experiment: as `WANDERING`, and a share that fell by 15% for two weeks, which it must not hide.
"""
DOUBT: Final = 2.0
"""Factor by which the variance of days, measured from four weeks, may be too small.

Derived: 27 over the 2.5% point of chi-squared with 27 degrees of freedom is 1.85, rounded up.
"""
WIDE: Final = 1.25
"""Spread of days, in units of chance, beyond which several days of a share are not judged together.

Derived: of series of 28 days that chance alone moves 3% exceed it: chi-squared above 1.25^2 x 28.
"""

# Windows, levels and causes.

LEVEL_DAYS: Final = (7, 14, 21, 28)
"""Lengths in days of the windows up to a day over which a share is tested beside the day itself.

Derived: whole weeks, up to the history that they are compared with.
"""
LEVEL_P: Final = 0.01
"""P-value of a window of several days below which the board shows the window instead of the day.

Derived: `MOST_Q`; a window that is not below it by itself cannot be below it on the board.
"""
LEVEL_Z: Final = 2.57
"""Units of chance within which a window cannot be below `LEVEL_P`, so that its noise need not be computed.

Derived: the 99.5% point of the normal distribution, rounded down.
"""
SILENT_DAYS: Final = 14
"""Days of silence after which a game has no usual day any more.

Choice: said once a morning for two weeks; then the game is taken for closed.
"""
SILENT_LEAST: Final = 7.0
"""Expected count from which on nothing at all is silence.

Derived: exp(-7) is a chance of one day in a thousand.
"""
MOST_OF_NONE: Final = 3.7
"""Most events that may be expected of a day on which none came: the upper bound of what is left of a silent game.

Derived: -log(0.025) of Poisson's distribution, rounded up.
"""

# Incidents.

RETURN_EVIDENCE: Final = 6.0
"""Evidence that ends an incident: the logarithm of how much likelier its latest days are at the old level than at the
new.

Paper: Lorden 1971, https://doi.org/10.1214/aoms/1177693055: Page's test errs at most once in exp(6), 400, days.
"""
LASTING_DAYS: Final = 14
"""Days in a row, all higher than expected, after which a rise becomes the level that later days are judged against.

Derived: two of each weekday, so that the new level has a usual number for each (`FEWEST_WEEKDAYS`).
"""
GONE: Final = 2.0
"""Size of the sum of all deviations of an incident, in its own standard errors, below which the incident is over. It
ends those whose days lay above and below, which leave no level to return from.

Derived: the 97.5% point of the normal distribution, rounded.
"""

# What is worth an alarm.

LEAST_CHANGE: Final = 0.10
"""Relative change of a number (0.1 is 10%) from which on an unusual day is a warning; below it is information.

Choice: what a person acts on. Beyond chance a change of 2% is true as well, and no reason to get up.
"""
MOST_Q: Final = 0.01
"""Q-value (share of false discoveries on the board of the day) up to which a day stands out.

Choice: of a hundred days that stand out one may be chance. A board a day keeps false boards below 3% with it.
"""
CRITICAL_FALL: Final = 0.50
"""Relative fall (0.5 is half) from which on a warning is critical.

Choice: half of it is lost.
"""
CRITICAL_RISE: Final = 1.00
"""Relative rise of errors and crashes (1 is twice as many) from which on a warning is critical.

Choice: they doubled.
"""
RESTATED: Final = 0.01
"""Relative size of a later correction by the service below which it explains nothing of a day.

Choice: a tenth of `LEAST_CHANGE` explains no warning.
"""

# Slow changes of level.

MOST_WEEKS: Final = 8
"""Weeks between the two weeks whose levels `health.levels` compares, where the history is that long.

Choice: two months, the longest that an analyst looks back on a weekly page.
"""
FEWEST_WEEKS: Final = 4
"""Weeks between the two weeks, without which a series has no change of level.

Derived: `WEEKS`; within them the board itself compares the days.
"""
LEAST_LEVEL_CHANGE: Final = 0.2
"""Relative change between the two weeks (0.2 is a fifth) from which on a level is said to have moved.

Choice: twice `LEAST_CHANGE`, since in eight weeks seasons move a level.
"""
FEWEST_EVENTS_OF_WEEK: Final = 20.0
"""Events in each of the two weeks without which the level of a count is not compared.

Derived: chance alone nearly doubles or halves the ratio of two such weeks in 5% of cases: exp(1.96 (2 / 20)^0.5).
"""

# Segments.

FEWEST_OF_SEGMENT: Final = 100.0
"""Events of all days of the frame without which a segment, such as a network, is not watched by itself.

Derived: in 28 days that is 3.6 a day. None on one day is chance (3%), and can show nothing else.
"""
FEWEST_OF_SHARE: Final = 30.0
"""Players, or other wholes, that a segment needs in the days before. With fewer its share is compared with the share of
the others instead of its own.

Derived: the standard error of a share of a third is then more than a quarter of it.
"""
MOVED_P: Final = 0.01
"""P-value below which, over the number of segments, a segment is said to have moved.

Derived: `MOST_Q`, corrected by Bonferroni.
"""
MOST_OF_CHANGE: Final = 0.6
"""Part of the whole change (0.6 is 60%) that a segment must bring to be said to have changed alone.

Experiment: verdicts on six countries: one fell, all fell alike, or two moved against each other.
"""
AHEAD: Final = 1.5
"""Relative change of a segment that is said to have changed alone, as a multiple of the relative change of all others
together.

Experiment: as `MOST_OF_CHANGE`.
"""
AGAINST: Final = 1 / 3
"""Share of the gross change below which what is left of it is a shift from one segment to another.

Derived: less than a third is left if one of two opposite changes is more than half of the other.
"""
LEAST_ALIKE: Final = 0.05
"""Share of the gross change below which a segment has no direction of its own when all are said to have moved alike, or
all against the whole (Simpson's paradox).

Choice: a twentieth, half of `LEAST_CHANGE`.
"""
FEW_COUNTED: Final = 30.0
"""Count below which chance is named as the reason why a number far from the usual one is ok.

Derived: a tenth and more (`LEAST_CHANGE`) is then more than half a standard deviation of chance.
"""
