"""What the explorer's pickers ask, as a value that can be asked, compared and written down as code."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import msgspec

from gamelens.catalog import METRICS
from gamelens.client.query.arguments import as_filter
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, Match, WireFilter
from gamelens.wire.intervals import Granularity

_LINE: Final = 88


class FormQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One question; *where* is a dimension and the values it may have."""

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
        """The keywords of `query`, without those that say nothing."""
        where = {self.where[0]: _one_or_all(self.where[1])} if self.where and self.where[1] else None
        said = {
            "by": _one_or_all(self.by),
            "over": self.over,
            "every": self.every,
            "where": where,
            "top": self.top if self.by else None,
            "games": list(self.games),
            "studios": self.studio,
            "since_days_ago": self.since_days_ago,
            "when_unavailable": "clip",
        }
        return {name: value for name, value in said.items() if value not in (None, [], ())}

    def code(self, name: str = "lens") -> str:
        """The call that answers it, as a notebook cell; *name* is what the client is called there."""
        parts = [_literal(self.metric), *(f"{key}={_literal(value)}" for key, value in self.arguments().items())]
        line = f"{name}.query({', '.join(parts)})"
        return line if len(line) <= _LINE else f"{name}.query(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def needs_age(metric: str) -> bool:
    """True when *metric* is only asked so many days after install."""
    return metric in METRICS and METRICS[metric].kinds == "retention"


def written(over: TimeRange) -> str | tuple[str, str]:
    """*over* in plain text, so that the code needs no import."""
    if isinstance(over, (tuple, list)):
        first, last = over
        return (str(first), str(last))
    return over.isoformat() if isinstance(over, date) else str(over)


def only_match(where: Filter | WireFilter | None) -> tuple[str, tuple[str, ...]] | None:
    """The one dimension and its values that *where* names.

    Raises:
        BadQuery: it says more than one dimension and the values it may have.
    """
    node = as_filter(where)
    if node is None:
        return None
    if not isinstance(node, Match):
        raise BadQuery("where", str(where), "must be one dimension and its values here: query() takes more")
    return (node.dimension, node.values)


def _one_or_all(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _literal(value: Any) -> str:
    """*value* as Python reads it, texts in double quotes where they hold none."""
    match value:
        case str():
            return f'"{repr(chr(39) + value)[2:]}' if '"' not in value else repr(value)
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case tuple():
            return f"({', '.join(map(_literal, value))})"
        case dict():
            return "{" + ", ".join(f"{_literal(key)}: {_literal(part)}" for key, part in value.items()) + "}"
    return repr(value)
