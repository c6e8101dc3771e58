"""Statements for DuckDB in the dialect of Spark.

Statements are written once, for DuckDB, and translated by sqlglot. Where sqlglot leaves DuckDB's syntax or translates
to an expression of another value, the translation is corrected here, so that both engines return the same integers in
the same order. DuckDB takes statements as they are, so that a sandbox without Spark does not import sqlglot.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

_BIG: Final = "DECIMAL(38, 0)"
"""Whole numbers past 64 bits, where there is no wider integer."""


def spark_sql(text: str) -> str:
    """Translate *text*, a statement for DuckDB, into one for Spark. A parameter `$name` becomes `:name`.

    Dialects are named by their classes: one that sqlglot loads by its name at first use is seen half made by other
    threads.
    """
    return parse_one(text, dialect=DuckDB).sql(_Spark)


class _Spark(Spark):
    """Spark's dialect, with whole numbers that stay whole."""

    class Generator(SparkGenerator):
        """Corrections to sqlglot's translation to Spark."""

        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.INT128: _BIG}
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: generator for kind, generator in SparkGenerator.TRANSFORMS.items() if kind is not exp.IntDiv
        }

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """Write a row of values as a struct, and times as microseconds."""
            if expression.name.upper() == "ROW":
                return self.func("STRUCT", *expression.expressions)
            if expression.name.upper() == "EPOCH_US":
                return f"UNIX_MICROS(CAST({self.sql(expression.expressions[0])} AS TIMESTAMP))"
            return super().anonymous_sql(expression)

        def intdiv_sql(self, expression: exp.IntDiv) -> str:
            """Write integer division as an exact decimal division without the remainder.

            Spark's own DIV returns 64 bits and wraps around.
            """
            numerator, denominator = self.sql(expression, "this"), self.sql(expression, "expression")
            return (
                f"CAST((CAST({numerator} AS {_BIG}) - {numerator} % {denominator}) / "
                f"CAST({denominator} AS {_BIG}) AS {_BIG})"
            )

        def div_sql(self, expression: exp.Div) -> str:
            """Write a quotient as a float, of decimals too, so that rows are ordered as in DuckDB."""
            numerator, denominator = self.sql(expression, "this"), self.sql(expression, "expression")
            return f"CAST({numerator} AS DOUBLE) / CAST({denominator} AS DOUBLE)"
