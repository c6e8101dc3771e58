"""Tables of metric plans, put together from the answers to their requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from gamelens.catalog import ALIASES, METRICS, find_metric
from gamelens.client.plans.metric_plan import MetricPlan
from gamelens.client.plans.query_spec import GAME_ID
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.alias_tables import SourceRows, alias_table
from gamelens.client.tables.table_schema import TIMESTAMP, schema
from gamelens.client.tables.time_ranges import ResolvedRange
from gamelens.errors import NotAdditive, Truncated
from gamelens.wire.limits import DEFAULT_LIMIT

TemplateRows = Sequence[Sequence[pa.Table]]
"""Rows of one metric plan: the tables of each of its templates, in their order."""
MissingBuckets = Callable[[MetricPlan], Collection[datetime]]
"""The starts of the buckets of a plan for which rows are missing."""


class TableBuilder:
    """Builds the table of each metric plan of one query from its rows.

    Args:
        times: the time range of the query.
        studio_of_game: studio ids by game id, for plans whose rows show the studio of a game.
        missing: returns the starts of the buckets without all rows of a plan.

    Attributes:
        is_truncated: whether `top` left rows out, or may have.
        warnings: differences between rows and their total.
    """

    def __init__(self, times: ResolvedRange, studio_of_game: Mapping[str, str | None], missing: MissingBuckets) -> None:
        self._times = times
        self._studio_of_game = studio_of_game
        self._missing = missing
        self.is_truncated = False
        self.warnings: list[str] = []

    def build(self, plan: MetricPlan, answers: Mapping[int, TemplateRows]) -> pa.Table:
        """Return the table of *plan*, compared with its total where it has one.

        Args:
            plan: one of the metric plans of the query.
            answers: the rows of each plan with requests, by `id`.

        Raises:
            NotAdditive: games are pooled, and the service sends rows without the parts of the metric.
            Truncated: all values were queried, and an answer holds as many as the service gives.
        """
        table = self._rows(plan, answers)
        if plan.total is None or not any(source.templates for source in plan.sources):
            return table
        return self._with_total(plan, table, self._rows(plan.total, answers), self._missing(plan))

    def _rows(self, plan: MetricPlan, answers: Mapping[int, TemplateRows]) -> pa.Table:
        """Return all rows of *plan* in the order of the service, `top` of them in each bucket.

        Raises:
            Truncated: all values were queried, and an answer holds as many as the service gives.
        """
        own_columns = [name for name in plan.dimensions if name not in plan.labels]
        if plan.parts:
            return self._largest(plan, self._alias_rows(plan, answers))
        carried = [*own_columns, *([GAME_ID] if plan.pools_games else [])]
        table = self._concatenated(plan, answers.get(id(plan), ()), carried)
        if plan.pools_games:
            return self._largest(plan, self._pooled(plan, self._with_labels(plan, table)))
        if plan.adds_up:
            start = self._times.covered.start if plan.every == "all" else None
            table = tables.sum_split_buckets(METRICS[plan.metric], own_columns, table, start)
        elif len(plan.templates) > 1:
            table = tables.sort_as_service(table, plan.metric, own_columns)
        else:
            table = tables.sort_largest_first(table, plan.metric, own_columns)
        return self._with_labels(plan, self._largest(plan, table))

    def _with_labels(self, plan: MetricPlan, table: pa.Table) -> pa.Table:
        """Return *table* with the columns that follow from the game."""
        for name in plan.labels:
            position = plan.dimensions.index(name) + 1
            table = tables.add_lookup_column(table, name, GAME_ID, self._studio_of_game, position)
        return table

    def _pooled(self, plan: MetricPlan, table: pa.Table) -> pa.Table:
        """Return the rows of all games summed, ratios made from their sums (Wire 4.14, Adding up).

        A bucket that lacks the rows of a game is left out. Without dimensions each other bucket has a row, as in a
        timeseries.

        Raises:
            NotAdditive: a row lacks a part of the metric.
        """
        metric = METRICS[plan.metric]
        parts = tables.summable_fields(metric)
        if absent := [name for name in parts if table[name].null_count]:
            by = [*plan.dimensions, "game"]
            use = f"by={by}, a number for each game: this service sends rows without {', '.join(absent)}"
            raise NotAdditive(plan.metric, use)
        missing = self._missing(plan)
        if plan.fans_out_games:
            table = tables.drop_buckets(table, missing)
        if not plan.dimensions:
            rows = [{TIMESTAMP: start, **dict.fromkeys(parts, 0)} for start in plan.starts if start not in missing]
            table = tables.concatenate([table, tables.from_rows(rows, table.schema)], table.schema)
        return tables.sum_split_buckets(metric, plan.dimensions, table, None)

    def _alias_rows(self, plan: MetricPlan, answers: Mapping[int, TemplateRows]) -> pa.Table:
        """Return the rows of an alias, from those of its parts."""
        sources = [
            SourceRows(
                table=self._rows(part, answers),
                buckets={start: plan.start_of(start) for start in part.starts} if part.every != plan.every else {},
                missing=self._missing(part),
            )
            for part in plan.parts
        ]
        return alias_table(ALIASES[plan.metric], plan.dimensions, sources)

    def _largest(self, plan: MetricPlan, table: pa.Table) -> pa.Table:
        """Return the largest rows of each bucket, or all without `top`."""
        if plan.top is None:
            return table
        columns = [name for name in plan.dimensions if name in table.column_names]
        within = [name for name in columns if name in plan.within]
        if within and find_metric(plan.metric) is not None:
            table = tables.sort_as_service(table, plan.metric, columns)
        largest = tables.top_per_bucket(table, plan.top, within)
        self.is_truncated |= len(largest) < len(table)
        return largest

    def _with_total(
        self, plan: MetricPlan, table: pa.Table, total: pa.Table, missing: Collection[datetime]
    ) -> pa.Table:
        """Return *table*, the rows of *plan*, compared with *total*.

        With `top`, the difference is a row `(other)`; without, it is a warning. Buckets that start at one of *missing*
        are left out of the comparison.
        """
        if missing and plan.every == "all":
            return table
        metric = find_metric(plan.metric) or METRICS[plan.metric]
        rest = tables.other_rows(metric, plan.dimensions, total, table, plan.within)
        rest = tables.drop_buckets(rest, missing)
        if plan.top is not None:
            return tables.sort_by_time(tables.concatenate([table, rest], table.schema))
        fields = tables.summable_fields(metric)
        for row in rest.to_pylist():
            difference = ", ".join(f"{name} {row[name]:,}" for name in fields if row[name])
            day = row[TIMESTAMP].date()
            self.warnings.append(
                f"{plan.metric} by {', '.join(plan.dimensions)} differs from its total on {day}: {difference}"
            )
        return table

    def _concatenated(self, plan: MetricPlan, answers: TemplateRows, columns: Sequence[str]) -> pa.Table:
        """Return the rows of all templates of *plan*, with the fixed values as columns."""
        parts = []
        for template, template_tables in zip(plan.templates, answers, strict=True):
            for table in template_tables:
                self._check_length(plan, table)
            rows = tables.concatenate(template_tables, schema(plan.metric, template.carried))
            if template.fixed and not template.carried:  # a series has all buckets, a group only those with rows
                rows = tables.drop_zero_rows(rows, plan.metric)
            parts.append(tables.add_constant_columns(tables.sort_by_time(rows), template.fixed))
        return tables.order_columns(tables.concatenate(parts, schema(plan.metric, columns)), columns)

    def _check_length(self, plan: MetricPlan, answer: pa.Table) -> None:
        """Refuse an *answer* as long as the limit, unless the analyst set that limit with `top`.

        One as long as the default limit of the service, which was asked for more, is a warning.
        """
        if plan.limit is None:
            return
        size = tables.largest_bucket_size(tables.sort_by_time(answer))
        if size >= plan.limit:
            if plan.limit != plan.top:
                raise Truncated(plan.limit)
            self.is_truncated = True
        elif size == DEFAULT_LIMIT and plan.total is None:
            self.warnings.append(default_limit_warning(f"{plan.metric} by {', '.join(plan.dimensions)}"))


def default_limit_warning(list_name: str) -> str:
    """Return the warning of a list that has as many values as the service gives by default."""
    return (
        f"{list_name} came with exactly {DEFAULT_LIMIT} values, the default limit of the service: it may have left out "
        "others although all were requested; check=True compares with the total"
    )
