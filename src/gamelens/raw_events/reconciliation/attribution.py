"""Attribution of a difference: the rules of the other answer, and what each changes.

The rules are found by recounting: the one, then the two of different causes that leave the least of the difference,
then further ones beside these, as long as each explains more of how the rest varies between the cells than chance does.
Their amounts are Shapley values in each cell: the mean of what a change adds over all orders in which the changes can
be made. So they do not depend on an order, and with the rest they sum to the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np

from gamelens.raw_events.reconciliation.event_rows import Floats
from gamelens.raw_events.reconciliation.recount import Changes, Recount, RuleChange

CHANCE = 0.1
"""Probability at which some set of rules may explain a difference that none of them makes."""
LARGE_EFFECT = 0.26
"""Share of the squares that a cause explains at least: a large effect, as Cohen (1988) calls it (f2 = 0.35)."""


def find_changes(
    api: Floats,
    recount: Recount,
    possible: Sequence[RuleChange],
    rest: Callable[[Floats], Floats],
    *,
    given: Changes = (),
) -> tuple[Changes, frozenset[str]]:
    """Return the changes of rules that leave the least of the difference, and the causes that could change anything.

    *api* is the other answer, in the cells of *recount*. *rest* returns the part of a difference that rules have to
    explain, and the changes *given* are known to be among them.
    """
    known, counts = recount.cells(given), recount.cells().ravel()
    rules: dict[str, list[RuleChange]] = {}
    for change in possible:
        if not np.array_equal(recount.cells((*given, change)), known):
            rules.setdefault(change.cause, []).append(change)
    cells, tried = int((counts > 0).sum()), sum(map(len, rules.values()))

    @cache
    def left_of(changes: Changes) -> tuple[float, float]:
        """Return how much *changes* leave, and how much of that is not an equal share of the lake's counts."""
        difference = rest(api - recount.cells((*given, *changes))).ravel()
        share = _median_ratio(difference, counts)
        return float(np.abs(difference).sum()), float(np.abs(difference - share * counts).sum())

    def score(changes: Changes) -> float:
        return sum(left_of(changes))

    best: Changes = ()
    whole, _ = left_of(best)
    for size in range(1, len(rules) + 1):
        # The best of m sets of rules leaves less than a share s of one number with a probability of about m s, and less
        # than s of the variation of n numbers about their mean, which have n - 1 directions, with one of m s ^ (n - 1).
        of_chance = CHANCE / math.comb(tried, size)
        left_before, varied = left_of(best)
        if left_before <= of_chance * whole:
            break
        if size <= 2:  # two changes may hide each other
            sets = [changes for some in combinations(rules.values(), size) for changes in product(*some)]
        else:
            free = rules.keys() - {change.cause for change in best}
            sets = [_by_turns((*best, rules[cause][0]), rules, score) for cause in sorted(free)]
        most = min(math.sqrt(1 - LARGE_EFFECT), of_chance ** (1 / max(1, cells - 1))) * varied
        for changes in sorted(sets, key=score):
            left, varies = left_of(changes)
            # A rule that only leaves events out comes closer to any answer that lacks some, so that how the difference
            # varies has to be explained.
            if left <= of_chance * whole or (varies < most and left < left_before):
                best = changes
                break
        if len(best) < size and size > 1:
            break
    return (*given, *best), frozenset(rules)


def _by_turns(
    changes: Changes, rules: Mapping[str, Sequence[RuleChange]], score: Callable[[Changes], float]
) -> Changes:
    """Return the best rule of each cause of *changes* beside the others, as long as one becomes better."""
    before: Changes = ()
    while changes != before:
        before = changes
        for place, change in enumerate(changes):
            others = changes[:place], changes[place + 1 :]
            changes = min(((*others[0], rule, *others[1]) for rule in rules[change.cause]), key=score)
    return changes


def shapley_amounts(recount: Recount, changes: Changes) -> dict[str, Floats]:
    """Return what each of *changes* adds to each cell, by cause.

    They sum to the count with all changes less the count without any.
    """
    number, amounts = len(changes), {}
    for change in changes:
        amount = np.zeros(recount.shape)
        for size in range(number):
            weight = math.factorial(size) * math.factorial(number - size - 1) / math.factorial(number)
            for others in combinations([other for other in changes if other is not change], size):
                after = [one for one in changes if one is change or one in others]
                amount += weight * (recount.cells(after) - recount.cells(others))
        amounts[change.cause] = amount
    return amounts


def network_amounts(difference: Floats, splits: Sequence[str | None]) -> Floats:
    """Return what moves between networks with a name and those without, in each bucket.

    An answer that names a network less often has more events without a name: the part of both differences that cancels
    is the same events under another name. It sums to 0 in each bucket.

    *splits* are the networks in the order of the columns: None and `undisclosed` are those without a name.
    """
    is_unnamed = np.array([value is None or value.casefold() == "undisclosed" for value in splits])
    moved = np.zeros(difference.shape)
    for bucket, of_bucket in enumerate(difference):
        surplus = float(of_bucket[is_unnamed].sum())
        takes = ~is_unnamed & (np.sign(of_bucket) == -np.sign(surplus))
        total = float(np.abs(of_bucket[takes]).sum())
        if amount := min(abs(surplus), total):
            moved[bucket, takes] = of_bucket[takes] * (amount / total)
            moved[bucket, is_unnamed] = of_bucket[is_unnamed] * (math.copysign(amount, surplus) / surplus)
    return moved


def _median_ratio(values: Floats, weights: Floats) -> float:
    """Return the ratio r for which the sum of |value - r weight| is least."""
    has = weights > 0
    if not has.any():
        return 0.0
    ratio, weight = values[has] / weights[has], weights[has]
    order = np.argsort(ratio)
    return float(ratio[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])
