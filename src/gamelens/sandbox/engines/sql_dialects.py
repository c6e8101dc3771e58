"""One statement in the words of each engine.

Statements are written once, for DuckDB. sqlglot translates them; what it leaves as it was, or makes into something of
another value, is put right here, so that each engine answers the same integers in the same order.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

_BIG: Final = "DECIMAL(38, 0)"
"""Whole numbers past 64 bits, where there is no wider integer."""


def render(text: str, dialect: str) -> str:
    """*text*, a statement for DuckDB, as *dialect* writes it."""
    return parse_one(text, dialect="duckdb").sql(_CORRECTED.get(dialect, dialect))


class _Spark(Spark):
    """Spark's SQL, with whole numbers that stay whole."""

    class Generator(SparkGenerator):
        """What is written otherwise than in sqlglot's own Spark."""

        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.INT128: _BIG}
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: written for kind, written in SparkGenerator.TRANSFORMS.items() if kind is not exp.IntDiv
        }

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """A row of values is called a struct."""
            if expression.name.upper() == "ROW":
                return self.func("STRUCT", *expression.expressions)
            return super().anonymous_sql(expression)

        def intdiv_sql(self, expression: exp.IntDiv) -> str:
            """Spark's DIV answers 64 bits and wraps around; without the remainder a decimal division is exact."""
            of, by = self.sql(expression, "this"), self.sql(expression, "expression")
            return f"CAST((CAST({of} AS {_BIG}) - {of} % {by}) / CAST({by} AS {_BIG}) AS {_BIG})"

        def div_sql(self, expression: exp.Div) -> str:
            """A quotient is a float, of decimals too: it must order rows as it does elsewhere."""
            of, by = self.sql(expression, "this"), self.sql(expression, "expression")
            return f"CAST({of} AS DOUBLE) / CAST({by} AS DOUBLE)"


_CORRECTED: Final[dict[str, type[Spark]]] = {"spark": _Spark}
