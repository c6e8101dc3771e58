"""Attribution of a difference: the rules of the other answer, and what each changes.

The rules are found by recounting: the set of changes that leaves the least of the difference, where each further one
must explain how the rest varies between the cells, and more of it than the best of many rules does by chance. Their
amounts are Shapley values in each cell: the mean of what a change adds over all orders in which the changes can be
made. So they do not depend on an order, and with the rest they sum to the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

import msgspec
import numpy as np

from gamelens.raw_events.reconciliation.counting_rules import ZONE, CountingRules, RuleChange, changed_rules
from gamelens.raw_events.reconciliation.event_rows import Flags, Floats
from gamelens.raw_events.reconciliation.recount import Recount

Changes = tuple[RuleChange, ...]
Rest = Callable[[Floats], Floats]
"""Returns the part of a difference that rules have to explain."""

LEAST_GAIN = 0.36
"""Share of the squares of what is left that a further change must explain."""
_CHANCE = 3.0
_DONE = 0.002
_MOST_CHANGES = 4
_BEAM = 8
_REFINED = 3
_ZONES = 8


class FoundChanges(msgspec.Struct, frozen=True):
    """The changes of rules that explain a difference.

    Attributes:
        changes: the changes, none if no rule explains anything.
        effective: names of the causes of which some rule would change the counts.
    """

    changes: Changes
    effective: frozenset[str]


def find_changes(
    api: Floats, recount: Recount, possible: Sequence[RuleChange], rest: Rest, *, given: Changes = ()
) -> FoundChanges:
    """Return the changes of rules that leave the least of the difference.

    Args:
        api: the other answer, in the cells of *recount*.
        recount: counts under any rules.
        possible: the changes to try.
        rest: takes off what needs no change of rules.
        given: changes that are known to be among them.
    """
    search = _Search(api, recount, rest, given)
    own = recount.cells(changed_rules(given))
    effective = [each for each in possible if not np.array_equal(recount.cells(changed_rules((*given, each))), own)]
    return FoundChanges(search.run(effective), frozenset(each.cause for each in effective))


def shapley_amounts(recount: Recount, changes: Changes) -> dict[str, Floats]:
    """Return what each of *changes* adds to each cell, by cause.

    They sum to the count with all changes less the count without any.
    """
    number = len(changes)
    amounts = {}
    for change in changes:
        others = [each for each in changes if each is not change]
        amount = np.zeros(recount.shape)
        for size in range(number):
            weight = math.factorial(size) * math.factorial(number - size - 1) / math.factorial(number)
            for chosen in combinations(others, size):
                before, after = _in_order(chosen, changes), _in_order((*chosen, change), changes)
                amount += weight * (recount.cells(changed_rules(after)) - recount.cells(changed_rules(before)))
        amounts[change.cause] = amount
    return amounts


def network_amounts(difference: Floats, splits: Sequence[str | None]) -> Floats:
    """Return what moves between networks with a name and those without, in each bucket.

    An answer that names a network less often has more events without a name: the part of both differences that cancels
    is the same events under another name. It sums to 0 in each bucket.

    Args:
        difference: an answer less the other, by bucket and network.
        splits: names of the networks; None and `undisclosed` are those without.
    """
    is_unnamed = np.array([value is None or value.casefold() == "undisclosed" for value in splits])
    moved = np.zeros(difference.shape)
    for bucket, of_bucket in enumerate(difference):
        surplus = float(of_bucket[is_unnamed].sum())
        takes = ~is_unnamed & (np.sign(of_bucket) == -np.sign(surplus))
        total = float(np.abs(of_bucket[takes]).sum())
        amount = min(abs(surplus), total)
        if not amount:
            continue
        moved[bucket, takes] = of_bucket[takes] * (amount / total)
        moved[bucket, is_unnamed] = of_bucket[is_unnamed] * (math.copysign(amount, surplus) / surplus)
    return moved


def approximate_amounts(difference: Floats, counted: Floats, has_same_events: Flags, most: float) -> Floats:
    """Return the differences that an approximate count explains.

    They are those of cells whose events agree, up to *most*.

    Args:
        difference: what is left of the difference.
        counted: distinct count of the cells.
        has_same_events: whether the events of each cell are as many in both answers.
        most: largest relative error of an approximate count.
    """
    fits: Floats = np.where(has_same_events & (np.abs(difference) <= np.maximum(1, most * counted)), difference, 0.0)
    return fits


class _Search:
    """The search for the changes that leave the least of the difference."""

    def __init__(self, api: Floats, recount: Recount, rest: Rest, given: Changes) -> None:
        self._api, self._recount, self._rest, self._given = api, recount, rest, given
        self._left: dict[Changes, float] = {}
        self._scores: dict[Changes, float] = {}
        self._possible: Sequence[RuleChange] = ()

    def run(self, possible: Sequence[RuleChange]) -> Changes:
        """Return the best set of changes, the given ones first."""
        self._possible = possible
        best: Changes = ()
        whole, sets = self.left(best), [best]
        for size in range(1, _MOST_CHANGES + 1):
            if self.left(best) <= _DONE * whole:
                break
            sets = self._wider(sets)
            gains = [each for each in sets if self._is_gain(best, each)]
            if gains:
                best = gains[0]
            elif size > 1:  # two changes may hide each other, so that all are widened once
                break
        return (*self._given, *best)

    def _is_gain(self, best: Changes, changes: Changes) -> bool:
        """Return whether *changes* explain more than *best*.

        They explain everything, or how the difference varies between cells: a rule that only leaves events out comes
        closer to any answer that lacks some. And of many rules one fits a few cells by chance: the best of m explains
        about 2 ln(m) / n of the squares of n cells.
        """
        if self.left(changes) <= _DONE * self.left(()):
            return True
        cells = max(1, int((self._recount.cells(CountingRules()) > 0).sum()) - 1)
        needed = max(LEAST_GAIN, _CHANCE * math.log(len(self._possible) + 1) / cells)
        is_varying_less = self._variation(changes) <= math.sqrt(max(0.0, 1 - needed)) * self._variation(best)
        return is_varying_less and self.left(changes) < self.left(best)

    def _wider(self, sets: Sequence[Changes]) -> list[Changes]:
        """Return the best sets with one change more, each of other causes, the best first."""
        tried = self._tried()
        wider = [
            self._ordered((*chosen, change))
            for chosen in sets
            for change in tried
            if change.cause not in {each.cause for each in chosen}
        ]
        by_causes: dict[tuple[str, ...], Changes] = {}
        for each in sorted(dict.fromkeys(wider), key=self._score):
            by_causes.setdefault(tuple(change.cause for change in each), each)
        found = list(by_causes.values())[:_BEAM]
        return sorted([*map(self._refined, found[:_REFINED]), *found[_REFINED:]], key=self._score)

    def _refined(self, changes: Changes) -> Changes:
        """Return *changes* with the best rule of each cause beside the others."""
        for place, change in enumerate(changes):
            variants = [each for each in self._possible if each.cause == change.cause]
            changes = min(
                (changes, *((*changes[:place], each, *changes[place + 1 :]) for each in variants)), key=self._score
            )
        return changes

    def _tried(self) -> list[RuleChange]:
        """Return the changes to widen with: all but the zones that alone leave much."""
        zones = sorted((each for each in self._possible if each.cause == ZONE), key=lambda each: self._score((each,)))
        return [each for each in self._possible if each.cause != ZONE or each in zones[:_ZONES]]

    def _ordered(self, changes: Changes) -> Changes:
        return tuple(each for each in self._possible if each in changes)

    def left(self, changes: Changes) -> float:
        """Return how much of the difference *changes* leave, over all cells."""
        if changes not in self._left:
            self._left[changes] = float(np.abs(self._difference(changes)).sum())
        return self._left[changes]

    def _score(self, changes: Changes) -> float:
        if changes not in self._scores:
            self._scores[changes] = self.left(changes) + self._variation(changes)
        return self._scores[changes]

    def _variation(self, changes: Changes) -> float:
        """Return how much *changes* leave beyond an equal share of the lake's counts."""
        difference = self._difference(changes).ravel()
        counts = self._recount.cells(CountingRules()).ravel()
        return float(np.abs(difference - _median_ratio(difference, counts) * counts).sum())

    def _difference(self, changes: Changes) -> Floats:
        return self._rest(self._api - self._recount.cells(changed_rules((*self._given, *changes))))


def _median_ratio(values: Floats, weights: Floats) -> float:
    """Return the ratio r for which the sum of |value - r weight| is least."""
    has = weights > 0
    if not has.any():
        return 0.0
    ratio, weight = values[has] / weights[has], weights[has]
    order = np.argsort(ratio)
    return float(ratio[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])


def _in_order(chosen: Sequence[RuleChange], changes: Changes) -> Changes:
    return tuple(each for each in changes if each in chosen)
