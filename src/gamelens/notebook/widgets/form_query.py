"""The query of the explorer's pickers, as a value and as code."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import msgspec

from gamelens.analysis.tidy_frames.columns import name_of
from gamelens.analysis.tidy_frames.query_text import literal
from gamelens.catalog import DIMENSIONS, METRICS, Catalog
from gamelens.client.query.arguments import Where, as_filter
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.wire.filters import Match
from gamelens.wire.intervals import Granularity

_LINE: Final = 88
_LEVELS: Final[dict[str, tuple[str, ...]]] = {
    "ad_impressions_count": ("ad",),
    "ilrd_id_unique": ("ilrd",),
    "ilrd_revenue": ("ilrd",),
} | dict.fromkeys(("arppu", "converting_users", "new_users", "paying_users", "revenue", "session_length"), ())
"""Levels, ads or impressions, of a metric's dimensions: both, where it counts all events."""


class FormQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query of one metric.

    Attributes:
        metric: name of the metric.
        by: up to two dimensions.
        over: the time range, in plain text.
        every: the bucket.
        where: a dimension and its allowed values.
        top: the number of values of *by*, the largest first.
        games: ids of games. Empty means all.
        studio: the id of a studio.
        since_days_ago: the age, for a retention metric.
    """

    metric: str
    by: tuple[str, ...] = ()
    over: Any
    every: Granularity = "day"
    where: tuple[str, tuple[str, ...]] | None = None
    top: int | None = None
    games: tuple[str, ...] = ()
    studio: str | None = None
    since_days_ago: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the keywords of `query`, without those that have no effect."""
        where = {self.where[0]: _one_or_all(self.where[1])} if self.where and self.where[1] else None
        names_game = not needs_age(self.metric) or not {"game", "game_id"}.isdisjoint(self.by)
        arguments = {
            "by": _one_or_all(self.by if names_game else (*self.by, "game")),  # retention is a share of each game
            "over": self.over,
            "every": self.every,
            "where": where,
            "top": self.top if self.by else None,
            "games": list(self.games),
            "studios": self.studio,
            "since_days_ago": self.since_days_ago,
            "when_unavailable": "clip",
        }
        return {name: value for name, value in arguments.items() if value not in (None, [], ())}

    def code(self, name: str = "lens") -> str:
        """Return the call of the query as a notebook cell. *name* is the name of the client there."""
        parts = [literal(self.metric), *(f"{key}={literal(value)}" for key, value in self.arguments().items())]
        line = f"{name}.query({', '.join(parts)})"
        return line if len(line) <= _LINE else f"{name}.query(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def empty_pairs(picked: FormQuery, catalog: Catalog) -> list[str]:
    """Return a sentence for each picked dimension that no event of the metric has."""
    sources = catalog.service_metrics([picked.metric])
    levels = {level for metric in sources for level in _LEVELS.get(metric, ("ad", "ilrd"))}
    names = [*picked.by, *([picked.where[0]] if picked.where else [])]
    return [
        f"{name_of(picked.metric, catalog)} has no values of {name}: {DIMENSIONS[name].meaning}. Pick another."
        for name in names
        if name in DIMENSIONS and DIMENSIONS[name].level in ("ad", "ilrd") and DIMENSIONS[name].level not in levels
    ]


def needs_age(metric: str) -> bool:
    """Return whether *metric* can be queried only for an age."""
    return metric in METRICS and METRICS[metric].kinds == "retention"


def own_bucket(metric: str, catalog: Catalog) -> Granularity | None:
    """Return the only bucket that *metric* is counted in, or None where any will do."""
    alias = catalog.aliases.get(metric)
    return "day" if needs_age(metric) else alias.every if alias is not None else None


def range_text(over: TimeRange) -> str | tuple[str, str]:
    """Return a time range as plain text, so that the code needs no import."""
    if isinstance(over, (tuple, list)):
        first, last = over
        return (str(first), str(last))
    return over.isoformat() if isinstance(over, date) else str(over)


def only_match(where: Where | None) -> tuple[str, tuple[str, ...]] | None:
    """Return the dimension and the values of a filter.

    Raises:
        BadQuery: the filter is more than one dimension and its allowed values.
    """
    node = as_filter(where)
    if node is None:
        return None
    if not isinstance(node, Match):
        raise BadQuery("where", str(where), "must be one dimension and its values here: query() takes more")
    return (node.dimension, node.values)


def _one_or_all(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)
