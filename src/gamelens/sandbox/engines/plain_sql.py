"""The plain part of DuckDB's SQL in which analyses of events are written, and other engines' words for it.

What is plain means the same on every engine once its words are exchanged: joins with ON, SEMI JOIN, GROUP BY with
names, CASE, FILTER, `row_number`, `lag`, differences of whole days and seconds. There are no arrays, rows, zones,
truncated times or quotients of whole numbers, which engines read differently. `faults_of` says what is not plain.

The views that a statement reads have three functions of our own: `IN_UTC` of an instant or a time with a zone is the
time without one in UTC, `INSTANT` of the text of such a time is the instant, `ID_PART` is a part of an `event_id`,
counted from 1.

sqlglot takes half a second to import: import this module when a statement is written for another engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

from sqlglot import exp, parse_one
from sqlglot.dialects.bigquery import BigQuery
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.bigquery import BigQueryGenerator
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.generators.spark import SparkGenerator

from gamelens.errors import BadQuery

DIALECTS: Final = ("duckdb", "spark", "bigquery")
"""Dialects that statements are written for, by their engine."""

_PLAIN: Final = (
    *(exp.Select, exp.From, exp.Where, exp.Group, exp.Order, exp.Ordered, exp.Limit, exp.With, exp.CTE, exp.Union),
    *(exp.Subquery, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Distinct, exp.Join),
    *(exp.Literal, exp.Placeholder, exp.Parameter, exp.Null, exp.Boolean, exp.Var, exp.Paren, exp.Neg, exp.Cast),
    *(exp.DataType, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between),
    *(exp.Is, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.DPipe, exp.Case, exp.If, exp.Coalesce, exp.Count, exp.Sum),
    *(exp.Min, exp.Max, exp.Filter, exp.Window, exp.WindowSpec, exp.RowNumber, exp.Lag, exp.DateDiff, exp.StartsWith),
)
_TYPES: Final = ("DATE", "TIMESTAMPNTZ", "BIGINT")
_UNITS: Final = ("DAY", "SECOND")
_CONDITION: Final = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between),
    *(exp.Is, exp.Null, exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.StartsWith, exp.Boolean),
)
_LOGIC: Final = (exp.And, exp.Or, exp.Not, exp.Where)
_ALLOWED: Final = (
    "may compare columns of the events with texts or numbers by =, <>, <, >, IN, BETWEEN, IS NULL or starts_with()"
)


def faults_of(statement: str) -> list[str]:
    """Return what in a statement is not plain, each as the SQL of the place with the reason; empty if it is."""
    return [f"{place.sql(DuckDB)}: {reason}" for place, reason in _faults(parse_one(statement, dialect=DuckDB))]


def _faults(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    for node in tree.walk():
        if type(node) not in _PLAIN:
            yield node, f"{type(node).__name__} is not plain"
        elif isinstance(node, exp.Join) and (node.args.get("using") or not node.args.get("on")):
            yield node, "joins need ON"
        elif isinstance(node, exp.Group) and not node.expressions:
            yield node, "GROUP BY needs names"
        elif isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            yield node, "columns need names"
        elif isinstance(node, exp.Cast) and node.to.this.name not in _TYPES:
            yield node, f"types are {', '.join(_TYPES)}"
        elif isinstance(node, exp.DateDiff) and node.text("unit").upper() not in _UNITS:
            yield node, f"differences are in {', '.join(_UNITS)}"
        elif isinstance(node, exp.Count) and len(node.this.expressions if node.this else ()) > 1:
            yield node, "a count has one column"


def check_condition(condition: str, columns: Mapping[str, str]) -> None:
    """Check a user's condition over *columns*, by name with their types in DuckDB's words.

    It must mean the same on every engine, so what engines compare by rules of their own is refused, such as a text with
    a number.

    Raises:
        BadQuery: it does more than compare columns with texts and numbers.
    """
    try:
        tree = parse_one(f"SELECT 1 WHERE {condition}", dialect=DuckDB)
        parse_one(f"SELECT 1 WHERE ({condition})", dialect=DuckDB)
    except SqlglotError:
        raise BadQuery("where", condition, f"cannot be read: it {_ALLOWED}") from None
    where = tree.args.get("where")
    has_more = any(value for name, value in tree.args.items() if name not in ("where", "expressions", "kind"))
    if not isinstance(tree, exp.Select) or where is None or has_more:
        raise BadQuery("where", condition, f"is not one condition: it {_ALLOWED}")
    for node in where.this.walk():
        is_value = isinstance(node, (exp.Column, exp.Literal)) and isinstance(_parent(node), _LOGIC)
        if (
            type(node) not in _CONDITION
            or is_value
            or (isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null))
        ):
            raise BadQuery("where", condition, f"has {node.sql(DuckDB)}, but {_ALLOWED}")
    for column in where.find_all(exp.Column):
        if column.table or column.name not in columns:
            raise BadQuery("where", condition, f"names {column.sql(DuckDB)}, which the events do not have", columns)
    for compared in where.find_all(
        exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.StartsWith
    ):
        kinds = {_kind(operand, columns) for operand in compared.iter_expressions()}
        if len(kinds) != 1 or None in kinds:
            raise BadQuery("where", condition, f"has {compared.sql(DuckDB)}: it {_ALLOWED}, each with its kind")


def _parent(node: exp.Expr) -> exp.Expr | None:
    """Return what holds *node*, but for parentheses."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


def _kind(operand: exp.Expr, columns: Mapping[str, str]) -> str | None:
    """Return whether an operand is text or a number, None if it is neither."""
    match operand:
        case exp.Column():
            return {"VARCHAR": "text", "DOUBLE": "number", "BIGINT": "number"}.get(columns[operand.name])
        case exp.Literal():
            return "text" if operand.is_string else "number"
        case exp.Neg() | exp.Paren():
            return _kind(operand.this, columns)
    return None


def written_for(
    dialect: str, statement: str, parameters: Mapping[str, Any], views: Mapping[str, str], *, keep_views: bool = False
) -> str:
    """Return a plain *statement* in the words of *dialect*, with the values of its *parameters* in it.

    *views* are the tables that it reads, each as a SELECT, which come before its own. With *keep_views* an engine may
    not compute them once and keep all their rows.
    """
    tree = parse_one(statement, dialect=DuckDB)
    names = _read_views(tables_of(statement), views)
    before = [
        exp.CTE(
            this=parse_one(views[name], dialect=DuckDB),
            alias=exp.TableAlias(this=exp.to_identifier(name)),
            materialized=False if keep_views else None,
        )
        for name in names
    ]
    stated = tree.args.get("with_")
    if parts := [*before, *(stated.expressions if stated else ())]:
        tree.set("with_", exp.With(expressions=parts))
    if dialect != "duckdb":
        for part in tree.find_all(exp.CTE):
            part.set("materialized", None)
    for node in [*tree.find_all(exp.Parameter, exp.Placeholder)]:
        node.replace(_literal(parameters[node.name or node.this.name], dialect))
    return tree.sql({"duckdb": _DuckDB, "spark": _Spark, "bigquery": _BigQuery}[dialect])


def tables_of(statement: str) -> set[str]:
    """Return the names of the tables that a statement reads."""
    return {table.name for table in parse_one(statement, dialect=DuckDB).find_all(exp.Table)}


def _read_views(read: set[str], views: Mapping[str, str]) -> list[str]:
    """Return the names of *views* that are read, also by one of them, in their order."""
    wanted = set(read)
    for name in reversed([*views]):
        if name in wanted:
            wanted |= tables_of(views[name])
    return [name for name in views if name in wanted]


def _literal(value: Any, dialect: str) -> exp.Expr:
    """Return a value as a literal with its type."""
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int() | float():
            return exp.Literal.number(value) if value >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(-value)))
        case datetime():
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), exp.DType.TIMESTAMPNTZ)
    text: exp.Expr = exp.Literal.string(str(value))
    if dialect == "spark" and "${" in str(value):  # which Spark replaces by the value of a setting
        first, *rest = str(value).split("${")
        text = exp.Literal.string(first + "$")
        for number, part in enumerate(rest, 1):
            end = "$" if number < len(rest) else ""
            text = exp.DPipe(this=text, expression=exp.Literal.string("{" + part + end))
        text = exp.Paren(this=text)
    return text


class _DuckDB(DuckDB):
    """DuckDB's dialect, with our own functions."""

    class Generator(DuckDBGenerator):
        """Our own functions in DuckDB's words."""

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """Write our own functions."""
            values = [self.sql(value) for value in expression.expressions]
            match expression.name.upper():
                case "IN_UTC":
                    return f"CAST({values[0]} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'"
                case "INSTANT":
                    return f"CAST({values[0]} || '+00' AS TIMESTAMPTZ)"
                case "ID_PART":  # split_part of a column that is null in all rows cannot be compared in DuckDB 2.0
                    return f"string_split({values[0]}, ':')[{values[1]}]"
            return super().anonymous_sql(expression)


class _Spark(Spark):
    """Spark's dialect, with our own functions."""

    class Generator(SparkGenerator):
        """Our own functions in Spark's words, whatever the zone of the session."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {**SparkGenerator.TRANSFORMS}

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """Write our own functions."""
            values = [self.sql(value) for value in expression.expressions]
            match expression.name.upper():
                case "IN_UTC":
                    seconds = f"CAST(UNIX_MICROS({values[0]}) AS DECIMAL(20, 0)) / 1000000"
                    return f"TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0, {seconds})"
                case "INSTANT":
                    return f"CAST({values[0]} || 'Z' AS TIMESTAMP_LTZ)"
                case "ID_PART":
                    return f"SPLIT_PART({values[0]}, ':', {values[1]})"
            return super().anonymous_sql(expression)


class _BigQuery(BigQuery):
    """BigQuery's dialect, GoogleSQL, with our own functions."""

    class Generator(BigQueryGenerator):
        """Our own functions in GoogleSQL's words, whatever the zone of the project."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {**BigQueryGenerator.TRANSFORMS}

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """Write our own functions."""
            values = [self.sql(value) for value in expression.expressions]
            match expression.name.upper():
                case "IN_UTC":
                    return f"DATETIME({values[0]}, 'UTC')"
                case "INSTANT":
                    return f"TIMESTAMP({values[0]} || '+00')"
                case "ID_PART":
                    return f"SPLIT({values[0]}, ':')[SAFE_ORDINAL({values[1]})]"
            return super().anonymous_sql(expression)
