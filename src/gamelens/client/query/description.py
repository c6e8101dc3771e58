"""The definition of a metric, an alias or a dimension, as a value that prints."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final, Literal

import msgspec

from gamelens.catalog import (
    CATALOG,
    DIMENSIONS,
    METRICS,
    OTHER_NAMES,
    Adds,
    Alias,
    Catalog,
    CohortShare,
    Dimension,
    Metric,
    OwnMetric,
    Quotient,
)
from gamelens.errors import BadQuery, suggests_names
from gamelens.formulas import Formula

TITLE_DIMENSIONS: Final = {
    "game": "id and title of the game",
    "studio": "id and name of the studio",
    "country": "code and English name of the country",
}
"""Dimensions that the service knows by id or code alone, in words."""
_ADDS: Final[dict[Adds, str]] = {
    "everywhere": "over buckets and dimensions",
    "over time and games": "over buckets and games, not over other dimensions",
    "over games": "over games, not over buckets or other dimensions",
    "never": "never",
}
_LEVELS: Final = {
    "event": "a property of the event",
    "player": "a property of the player, set at the install or by purchases",
    "ad": "a property of `ads` events, null in all others",
    "ilrd": "a property of `impression` events, null in all others",
}


@suggests_names
class FieldDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a metric's frame.

    Attributes:
        name: the column.
        unit: the unit.
        dtype: its pandas dtype.
        source: its definition: a field of the service, a sum or a ratio.
    """

    name: str
    unit: str
    dtype: Literal["Int64", "float64"]
    source: str


@suggests_names
class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a metric, an alias, an own metric or a dimension.

    Attributes:
        name: the name in a query.
        kind: the kind of name.
        definition: its meaning in a few words.
        unit: the unit of its main field; empty for a dimension.
        additivity: the rows over which it may be summed; empty for a dimension.
        fields: the columns of its rows; empty for a dimension.
        notes: further rules, one sentence each.
    """

    name: str
    kind: Literal["metric", "alias", "own metric", "dimension"]
    definition: str
    unit: str = ""
    additivity: str = ""
    fields: tuple[FieldDescription, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the definition as HTML, for a notebook."""
        head, *facts = self._facts()
        lines = [f"<b>{escape(self.name)}</b> ({self.kind}): {escape(head[1])}"]
        lines += [f"<i>{escape(label)}</i>: {escape(text)}" for label, text in facts]
        cells = ["".join(f"<td>{escape(text)}</td>" for text in _cells(field)) for field in self.fields]
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        header = "<tr><th>column</th><th>unit</th><th>dtype</th><th>is</th></tr>"
        table = f"<table>{header}{rows}</table>" if rows else ""
        return f"<div>{'<br>'.join(lines)}{table}</div>"

    def _lines(self) -> Iterator[str]:
        (_, definition), *facts = self._facts()
        yield f"{self.name} ({self.kind}): {definition}"
        yield from (f"  {label}: {text}" for label, text in facts)
        table = [_cells(field) for field in self.fields]
        widths = [max(len(row[place]) for row in table) for place in range(4)] if table else []
        yield from ("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in table)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("definition", self.definition), ("unit", self.unit), ("adds up", self.additivity)]
        return [fact for fact in facts if fact[1]] + [("note", note) for note in self.notes]


def describe(name: str, catalog: Catalog = CATALOG) -> Description:
    """Return the definition of the metric, alias or dimension called *name*; *catalog* has the own metrics.

    Raises:
        BadQuery: no such name; suggests the nearest one.
    """
    if name in TITLE_DIMENSIONS:
        return Description(name=name, kind="dimension", definition=TITLE_DIMENSIONS[name])
    if name in DIMENSIONS:
        return _dimension(DIMENSIONS[name])
    metric = catalog.find(name)
    if metric is None:
        known = [*catalog.metrics, *DIMENSIONS, *TITLE_DIMENSIONS]
        raise BadQuery("name", name, "is not a metric, alias or dimension", known, meant=OTHER_NAMES.get(name))
    return _metric(metric)


def _dimension(dimension: Dimension) -> Description:
    notes = (f"It is {_LEVELS[dimension.level]}.", f"It usually has about {dimension.typical} values.")
    return Description(name=dimension.name, kind="dimension", definition=dimension.meaning, notes=notes)


def _metric(metric: Metric) -> Description:
    unit = next(field.unit for field in metric.fields if field.name == metric.sorts_by)
    return Description(
        name=metric.name,
        kind="own metric" if isinstance(metric, OwnMetric) else "alias" if isinstance(metric, Alias) else "metric",
        definition=metric.meaning,
        unit=unit,
        additivity=_ADDS[metric.adds],
        fields=tuple(_fields(metric)),
        notes=tuple(_notes(metric)),
    )


def _fields(metric: Metric) -> Iterator[FieldDescription]:
    columns = metric.columns
    for field in sorted(metric.fields, key=lambda field: field.name not in metric.shown):
        dtype: Literal["Int64", "float64"] = "Int64" if field.kind == "count" else "float64"
        source = _source(metric, field.name) if field.combines == "sum" else "computed by the service"
        if isinstance(ratio := field.combines, Quotient):
            part = columns[ratio.part] if ratio.plus is None else f"({columns[ratio.part]} + {columns[ratio.plus]})"
            source = f"{part} / {columns[ratio.whole]}" + (f" x {ratio.worth:g}" if ratio.worth != 1 else "")
        elif isinstance(metric, OwnMetric) and isinstance(ratio, Formula):
            source = metric.definition.formula
        more = "" if field.name in metric.shown else ', with fields="all"'
        yield FieldDescription(name=columns[field.name], unit=field.unit, dtype=dtype, source=source + more)


def _source(metric: Metric, field: str) -> str:
    """Return the source of a field that is summed."""
    if not isinstance(metric, Alias):
        return "from the service"
    part = metric.ingredients[field]
    if isinstance(metric, CohortShare) and part.metric == "retention_retro":
        return "retention_retro x new_users, summed by day"
    name = METRICS[part.metric].columns[part.field]
    if name == field:
        return "from the service"
    return f"{'mean' if part.is_mean else 'sum'} of {name} by {part.every}" if part.every else name


def _notes(metric: Metric) -> Iterator[str]:
    if isinstance(metric, OwnMetric):
        yield "It is an own metric of this client. In a total it is the formula of the totals of its parts."
    if isinstance(metric, Alias) and metric.every is not None:
        yield f"It is counted by {metric.every}, and takes no other `every`."
    if metric.kinds == "per game":
        yield "The service has it per game only."
    if metric.takes_since_days_ago:
        yield f"It {'needs' if metric.kinds == 'retention' else 'takes'} `since_days_ago`, the days since install."


def _cells(field: FieldDescription) -> tuple[str, str, str, str]:
    return field.name, field.unit, field.dtype, field.source
