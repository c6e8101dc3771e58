"""Step 3 of a query: what came is put together to a table, a receipt and a frame."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import METRICS
from gamelens.client.query.arguments import GAME_ID, QuerySpec, one_of, query_record
from gamelens.client.query.build import (
    MetricRows,
    Remarks,
    build_table,
    join_metrics,
    long_session_warnings,
    rows_of_age,
)
from gamelens.client.query.cohorts import (
    BY_ACTIVITY,
    CohortSubquery,
    buckets_of,
    groups_left_out,
    left_out,
    retention_table,
)
from gamelens.client.query.data_frames import add_titles, to_frame
from gamelens.client.query.planner import MetricPlan
from gamelens.client.query.prepare import Prepared, PreparedSubquery
from gamelens.client.query.requests import Call, Fetched, cached_share
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.table_operations import schema
from gamelens.errors import PartialResult
from gamelens.receipts import RECEIPT, Receipt, package_version


class QueryResult(msgspec.Struct, frozen=True):
    """The result of a query.

    Attributes:
        frame: the frame, of the kind the options name.
        receipt: its receipt.
        table: the Arrow table the frame was made from.
    """

    frame: Any
    receipt: Receipt
    table: pa.Table

    def with_receipt(self, receipt: Receipt) -> QueryResult:
        """Return the result with another receipt, which its pandas frame then carries."""
        if hasattr(self.frame, "attrs"):
            self.frame.attrs[RECEIPT] = receipt.to_json()
        return msgspec.structs.replace(self, receipt=receipt)


class Assembled(msgspec.Struct, frozen=True):
    """The rows of a query.

    Attributes:
        table: its rows, under the names of frames, without titles.
        filled: how many rows of each metric are 0 because the service has none.
        is_truncated: whether `top` left rows out, or may have.
        warnings: what is to be said of the rows.
    """

    table: pa.Table
    filled: Mapping[str, int]
    is_truncated: bool
    warnings: tuple[str, ...]


async def assemble(prepared: Prepared, fetched: Fetched, call: Call) -> QueryResult:
    """Return the frame of a query with its titles and its receipt.

    Raises:
        NotAdditive: the answers cannot be put together.
        Truncated: all values were queried, and an answer holds as many as the service gives.
        PartialResult: requests failed, and gaps are not wanted or there is nothing else.
    """
    spec, times, tally, service = prepared.spec, prepared.times, call.progress.tally, call.service
    assembled = await asyncio.to_thread(assemble_table, prepared, fetched)
    warnings, listed = [*prepared.warnings, *fetched.warnings, *assembled.warnings], list[str]()
    gaps = [request.gap(fetched.failures[request]) for request in fetched.missing if prepared.shows(request)]
    if spec.where is not None and not gaps:  # a value that the service has never had is a warning
        check = await call.deadline.run(service.check_values(spec.where, assembled.table, tally))
        warnings += check.warnings
        listed = check.listed
    if call.cache is not None and call.cache.off is not None:
        step = f"To cache them, make {call.cache.folder} writable, or name another folder in GAMELENS_CACHE_DIR"
        warnings.append(f"answers are not cached on disk: {call.cache.off}. {step}")
    warnings += long_session_warnings(assembled.table)
    receipt = Receipt(
        asked=query_record(spec, call.options.over, str(times.requested)),
        asked_at=call.started_at.isoformat(timespec="seconds"),
        as_of=times.available.end.isoformat(),
        available=str(times.available),
        requests=tally.requests,
        retries=tally.retries,
        cached_share=round(cached_share(fetched.leaves), 4),
        gaps=tuple(gaps),
        clipped=str(times.covered) if times.covered != times.requested else None,
        truncated=assembled.is_truncated,
        warnings=tuple(dict.fromkeys(warnings)),
        titles=tuple(sorted(prepared.titles.get(GAME_ID, {}).values())),
        version=package_version(),
        filled=dict(assembled.filled),
        provenance=service.provenance,
        values_listed=tuple(listed),
        dated_by_arrival=service.dated_by_arrival,
    )
    is_partial = bool(gaps) and (call.options.on_error == "raise" or not fetched.has_rows)
    kind = "pandas" if is_partial else call.options.to
    table = add_titles(assembled.table, prepared.titles)
    # In a thread: a large frame takes long enough to delay the requests of all other queries.
    frame = await asyncio.to_thread(to_frame, table, spec.dimensions, receipt, kind)
    if is_partial:
        raise PartialResult(frame, [msgspec.structs.asdict(gap) for gap in gaps]) from fetched.first_failure
    return QueryResult(frame, receipt, table)


def assemble_table(prepared: Prepared, fetched: Fetched) -> Assembled:
    """Return the rows of a query: rows of retention, or rows of metrics side by side.

    Raises:
        NotAdditive, Truncated: as in `assemble`.
        BadQuery: there is no column to sort by.
    """
    spec = prepared.spec
    by_subquery, remarks = _tables(prepared, fetched)
    warnings, shares, filled = [*remarks.warnings], list[MetricRows](), dict[str, int]()
    plans, rows, table = list[MetricPlan](), list[pa.Table](), None
    for subquery, built in zip(prepared.subqueries, by_subquery, strict=True):
        if isinstance(subquery.kind, CohortSubquery):
            of_cohorts = subquery.kind.spec
            warnings += left_out(of_cohorts.ages, of_cohorts.every, prepared.times)
            missing = {age: fetched.missing_days(age, subquery.plans) for age in (None, *of_cohorts.ages)}
            table = retention_table(of_cohorts, subquery.sent, built, prepared.times, missing, prepared.studio_of_game)
            unknown = buckets_of(missing[None], of_cohorts.every, prepared.times)
            shares = [rows_of_age(share, table, unknown) for share in spec.cohort_shares]
        else:
            number = len(subquery.sent.metrics)
            plans, rows = [*subquery.plans[:number]], built[:number]
            warnings += _groups_without_rows(subquery, built, fetched)
    if table is None or not spec.ages:
        warnings += _unknown_fields(plans, rows)
        table, filled = _side_by_side(spec, plans, rows, shares, fetched)
    return Assembled(table, filled, remarks.is_truncated, tuple(warnings))


def _tables(prepared: Prepared, fetched: Fetched) -> tuple[list[list[pa.Table]], Remarks]:
    """Return the table of each plan of each subquery, with what is beyond `top`, and what is to be said of them.

    Raises:
        NotAdditive, Truncated: as in `assemble`.
    """
    remarks = Remarks()
    built = [
        [_largest_rows(plan, prepared, fetched, remarks) for plan in subquery.plans] for subquery in prepared.subqueries
    ]
    for tables_of, subquery in zip(built, prepared.subqueries, strict=True):
        for place, plan in enumerate(subquery.plans):
            if (rest := fetched.rest_of(plan)) is not None:
                shown, rows = tables_of[place], _noted(build_table(rest.plan, prepared, fetched), remarks)
                tables_of[place] = tables.sort_by_time(tables.concatenate([shown, rows], shown.schema))
    return built, remarks


def _largest_rows(plan: MetricPlan, prepared: Prepared, fetched: Fetched, remarks: Remarks) -> pa.Table:
    """Return the table of *plan*, without what is beyond `top`: as it was put together for that, or now."""
    if (rest := fetched.rest_of(plan)) is not None:
        return _noted((rest.largest, Remarks(rest.is_truncated, [*rest.warnings])), remarks)
    return _noted(build_table(plan, prepared, fetched), remarks)


def _noted(built: tuple[pa.Table, Remarks], remarks: Remarks) -> pa.Table:
    """Return the table that was built, after what is to be said of it was added to *remarks*."""
    table, new = built
    remarks.is_truncated |= new.is_truncated
    remarks.warnings += new.warnings
    return table


def _groups_without_rows(subquery: PreparedSubquery, built: Sequence[pa.Table], fetched: Fetched) -> Iterator[str]:
    """Yield the warning of the groups without rows in the answer of `retention_retro`, if there are any."""
    for compared in subquery.compared:
        place = subquery.sent.metrics.index(BY_ACTIVITY)
        is_known = not any(request.plan is compared for request in fetched.missing)
        missing = fetched.missing_buckets(subquery.plans[place])
        yield from groups_left_out(subquery.kind.spec, built[place], built[-1] if is_known else None, missing)


def _unknown_fields(plans: Sequence[MetricPlan], rows: Sequence[pa.Table]) -> Iterator[str]:
    """Yield a warning for each table of *rows* with a field that the catalog does not know, which is kept."""
    for plan, table in zip(plans, rows, strict=True):
        known = {*plan.dimensions, *schema(plan.metric, ()).names}
        unknown = [name for name in table.column_names if name not in known]
        if plan.metric in METRICS and unknown:
            yield f"{plan.metric} came with fields this version does not know: {', '.join(unknown)}"


def _side_by_side(
    spec: QuerySpec,
    plans: Sequence[MetricPlan],
    built: Sequence[pa.Table],
    shares: Sequence[MetricRows],
    fetched: Fetched,
) -> tuple[pa.Table, dict[str, int]]:
    """Return the tables of all metrics and the *shares* of cohorts joined, under the names of frames.

    Counts and money are 0 where the service has no row and no request failed: so many rows of each metric were filled.
    """
    rows = []
    for plan, table in zip(plans, built, strict=True):
        full = tables.full_buckets(table, plan.top, plan.within) if plan.top and len(plans) > 1 else set()
        rows.append(MetricRows(metric=plan.metric, table=table, unknown=fetched.missing_buckets(plan) | full))
    starts = plans[0].starts if plans else ()
    are_usual = all(tables.bucket_starts(table) <= {*starts} for table in built)
    is_whole = are_usual and bool(plans) and not plans[0].top  # buckets that begin elsewhere are not known here
    filled_starts = starts if is_whole else ()
    is_all = spec.fields == "all"
    joined = [*rows, *shares]
    table, filled = join_metrics(spec.dimensions, joined, filled_starts, all_fields=is_all, catalog=spec.catalog)
    table = table.select([*table.column_names[: 1 + len(spec.dimensions)], *_in_order(spec, table)])
    if spec.sort is not None:
        one_of("sort", spec.sort, tuple(table.column_names))  # of a metric that the catalog does not know
        table = table.take(pc.sort_indices(table, [(spec.sort, "descending")]))
    return table, filled


def _in_order(spec: QuerySpec, table: pa.Table) -> list[str]:
    """Return the columns of numbers of *table*, with the metrics in the order of the query."""
    numbers = table.column_names[1 + len(spec.dimensions) :]
    known = [name for name in spec.columns if name in numbers]
    return [*known, *(name for name in numbers if name not in known)] if spec.cohort_shares else numbers
