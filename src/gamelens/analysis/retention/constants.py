"""Constants of retention and lifetime value, each with its source.

The last paragraph of each says where it comes from: a derivation, a paper, an experiment on cohorts whose truth is
known (`make methods`), a choice, or the precision of a computation. The priors of the curves stand beside their
formulas in `retention_curves`.
"""

from __future__ import annotations

from typing import Final

# Variation between install days.

SAME_PLAYERS: Final = 0.79
"""Share of the players of a late day who also played on an earlier one.

It sets how much the ages of one cohort move together, which totals do not contain.

Derived: D1 of those with D7 among the 90,189 players of the public Cookie Cats data.
"""
BORROWED_DAYS: Final = 4.0
"""Install days that the variance between days of all ages together counts as, where the variance of one age is
estimated.

Experiment: share of widened curves that hold retention on six unequal install days; from a week on the days themselves
(`over_days`) decide.
"""
VARIANCE_STEPS: Final = 30
"""Most rounds of the fixed-point iteration that estimates the variance between install days.

Numerical: it settles within ten; no figure may depend on it.
"""
SETTLED: Final = 1e-12
"""Change of the estimate below which it has settled.

Numerical: nine digits more than a share is shown with.
"""
DRIFT_STEPS: Final = 200
"""Most steps of the fit of levels of install days and shares of ages.

Numerical: it settles within twenty; no figure may depend on it.
"""

# Choice of the curve.

TEST_DIVISOR: Final = 3
"""Part of the ages that is left out of the fit and predicted: the latest third.

Experiment: median error of D90 from 14 ages, and how often the family of the truth is chosen.
"""
CLEAR_DIFFERENCE: Final = 4.0
"""Deviance of the ages left out by which a family must predict better than BG/BB to be chosen instead.

Derived: a likelihood ratio of exp(4 / 2), more than 7; Burnham and Anderson 2002, https://doi.org/10.1007/b97636, call
models more than 4 apart considerably less supported.
"""
CLEAR_MISFIT: Final = 0.01
"""P-value of the fit (formula 6 of the page) below which the counts are said to speak against a family.

Choice: one of a hundred curves that are right is called wrong.
"""
TEMPER: Final = 0.65
"""Power to which the weights of the families by Akaike's criterion are raised before the band is drawn from them.

Experiment: share of bands of D90 that hold a stretched exponential; a family that is nearer at the ages counted is not
as much nearer beyond them.
"""

# Lifetime value.

WEEK: Final = 7
"""Install days that must have reached an age for it to be measured, all if there are fewer.

Derived: each weekday once.
"""
DECAY: Final = 0.5
"""Mean of the normal prior of the decay of money with age; its standard deviation is 1.

Experiment: median error of the money at D60 where there is hardly any purchase.
"""
