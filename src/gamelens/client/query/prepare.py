"""Step 1 of a query: its names, its time range, ids in place of titles, the values of a fan-out, and its requests.

A query for rows is one subquery, and so is one for retention. `d7_retention` beside `revenue` is one of each kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
import pyarrow as pa

from gamelens.catalog import DIMENSIONS, CohortShare
from gamelens.client.connection.event_loop import gather
from gamelens.client.query.arguments import COUNTRY_CODE, GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.query.cohorts import CohortSubquery, install_days_behind
from gamelens.client.query.data_frames import unique_game_titles, unique_studio_names
from gamelens.client.query.listings import Listings
from gamelens.client.query.planner import FanOut, MetricPlan, fan_out_dimensions, fan_out_interval, plan_requests
from gamelens.client.query.requests import Call, Leaf, Request, leaves_of
from gamelens.client.tables.countries import COUNTRY_NAMES
from gamelens.client.tables.table_differences import FieldChange, field_changes, rows_changed
from gamelens.client.tables.time_ranges import ResolvedRange, resolve_range
from gamelens.errors import NotYetAvailable, Unreachable
from gamelens.receipts import Gap
from gamelens.wire.filters import dimensions_in, nullable_in, with_values_of
from gamelens.wire.intervals import Interval


class RowSubquery(msgspec.Struct, frozen=True):
    """The part of a query that asks for rows of metrics.

    Attributes:
        spec: its content.
    """

    spec: QuerySpec

    @property
    def sent(self) -> QuerySpec:
        """The query as it is sent, with titles."""
        return self.spec

    def listed_interval(self, times: ResolvedRange) -> Interval:
        """Return the interval whose values a fan-out covers."""
        return fan_out_interval(self.spec, times)

    def plans(
        self, sent: QuerySpec, times: ResolvedRange, values: FanOut, unknown: Collection[str], max_days: int | None
    ) -> list[MetricPlan]:
        """Return the plan of each metric, and behind them the plan of installs to compare `retention_retro` with.

        Args:
            sent: the query with ids.
            times: its time range.
            values: the values of the dimensions that are fanned out.
            unknown: dimensions that the service knows and the catalog does not.
            max_days: most days of one request; None for the limit of the service.
        """
        plans = plan_requests(sent, times.covered, max_days=max_days, unknown=unknown, values=values)
        if (installed := install_days_behind(self.spec, times)) is None:
            return plans
        counted = sent.with_(metrics=("new_users",), since_days_ago=None, fields=None)
        return [*plans, *plan_requests(counted, installed, max_days=max_days, unknown=unknown, values=values)]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell the rows of one bucket apart."""
        return self.spec.dimensions

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns beside timestamp and dimensions, as far as the catalog knows them."""
        return self.spec.columns

    def starts_in(self, gap: Gap, metric: str, covered: Interval) -> Iterator[datetime]:
        """Yield the starts of the buckets of *metric* that *gap* of an earlier frame leaves out.

        *covered* is the interval of the frame. A gap of an alias is one of a metric that it is made of.
        """
        if gap.times and gap.metric in self.spec.catalog.service_metrics([metric]):
            whole = covered if self.spec.every == "all" else gap.times
            yield from (bucket.start for bucket in whole.buckets(self.spec.every))

    def changes(
        self, metric: str, old: pa.Table, new: pa.Table, grown: Collection[int]
    ) -> tuple[int, tuple[FieldChange, ...]]:
        """Return how many rows of a bucket differ, and if any does the totals of each field.

        Rows of metrics have no age, *grown* or not.
        """
        if not (changed := rows_changed(old, new, self.keys)):
            return 0, ()
        return changed, field_changes(metric, old, new, self.keys, adds_up=True, catalog=self.spec.catalog)


class PreparedSubquery(msgspec.Struct, frozen=True):
    """A subquery, ready to be sent.

    Attributes:
        kind: what it asks for.
        sent: its query, with ids in place of titles.
        values: those that a fan-out covers.
        plans: the plan of each of its metrics, and what they are compared with.
    """

    kind: RowSubquery | CohortSubquery
    sent: QuerySpec
    values: FanOut
    plans: Sequence[MetricPlan]

    @property
    def compared(self) -> Sequence[MetricPlan]:
        """The plan of the installs that rows of `retention_retro` are compared with. The frame shows none of them."""
        return self.plans[len(self.sent.metrics) :] if isinstance(self.kind, RowSubquery) else ()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A query, ready to be sent.

    Attributes:
        spec: its content.
        times: the requested, available and covered interval.
        subqueries: those for rows and for retention.
        leaves: their plans with requests, and what the cache has of them.
        titles: names by id or code, for each column that has a column of names beside it.
        studio_of_game: studio ids by game id, where the frame shows the studios of games.
        warnings: what is to be known of the names and lists.
    """

    spec: QuerySpec
    times: ResolvedRange
    subqueries: Sequence[PreparedSubquery]
    leaves: tuple[Leaf, ...]
    titles: Mapping[str, Mapping[str, str]]
    studio_of_game: Mapping[str, str | None]
    warnings: tuple[str, ...]

    def shows(self, request: Request) -> bool:
        """Return whether the frame shows the rows of *request*."""
        return not any(request.plan is plan for subquery in self.subqueries for plan in subquery.compared)


async def prepare(spec: QuerySpec, call: Call, listings: Listings, *, with_rows: bool = True) -> Prepared:
    """Return *spec* with the plan of each metric and what the cache has: everything but the requests for rows.

    Raises:
        NotYetAvailable: part of the time range is not available.
        BadQuery, NotAdditive: the query cannot be sent, or its answers not be put together.
    """
    kinds = kinds_of(spec)
    unknown = await call.deadline.run(_unknown_names([kind.sent for kind in kinds], listings))
    times = (await _resolve_range(call)).whole(call.options.whole_buckets)
    subqueries = [
        await call.deadline.run(_prepare_subquery(kind, unknown, times, call.max_days, listings)) for kind in kinds
    ]
    plans = [plan for subquery in subqueries for plan in subquery.plans]
    titles, studio_of_game = await call.deadline.run(_titles(spec, subqueries[0].sent, plans, times.covered, listings))
    leaves = await asyncio.to_thread(leaves_of, plans, times.available, call, with_rows=with_rows)
    return Prepared(
        spec=spec,
        times=times,
        subqueries=subqueries,
        leaves=leaves,
        titles=titles,
        studio_of_game=studio_of_game,
        warnings=tuple(listings.warnings),
    )


def kind_of_rows(spec: QuerySpec) -> RowSubquery | CohortSubquery:
    """Return the kind of subquery that *spec* would be alone: cohorts are its rows, or at most columns of them."""
    return CohortSubquery(spec) if spec.ages else RowSubquery(spec)


def kinds_of(spec: QuerySpec) -> list[RowSubquery | CohortSubquery]:
    """Return the subqueries that *spec* is made of: for retention, for rows, or both."""
    if not (shares := spec.cohort_shares):
        return [kind_of_rows(spec)]
    names = tuple(name for name in spec.metrics if not isinstance(spec.catalog.find(name), CohortShare))
    ages = tuple(share.age for share in shares)
    cohorts = CohortSubquery(spec.with_(metrics=("retention",), ages=ages, sort=None, fields=None))
    return [cohorts, *([RowSubquery(spec.with_(metrics=names, sort=None))] if names else [])]


async def _prepare_subquery(
    kind: RowSubquery | CohortSubquery,
    unknown: Collection[str],
    times: ResolvedRange,
    max_days: int | None,
    listings: Listings,
) -> PreparedSubquery:
    interval = kind.listed_interval(times)
    # The service takes ids and compares with values: those stand in place of titles and of null from here on.
    sent = await _with_ids(kind.sent, times.available, interval, listings)
    dimensions = fan_out_dimensions(sent)
    if dimensions:  # a query that cannot be sent is refused before a list is requested
        kind.plans(sent, times, dict.fromkeys(dimensions, ("…",)), unknown, max_days)
    lists = await gather(listings.values(name, sent, interval) for name in dimensions)
    values = dict(zip(dimensions, lists, strict=True))
    return PreparedSubquery(kind, sent, values, kind.plans(sent, times, values, unknown, max_days))


async def _unknown_names(specs: Sequence[QuerySpec], listings: Listings) -> list[str]:
    """Return the dimensions that only the service knows, and warn of each unknown name.

    Raises:
        BadQuery: the service does not know a name either.
    """
    unknown: list[str] = []
    for spec in specs:
        filtered = list(dimensions_in(spec.where)) if spec.where is not None else []
        columns = {*DIMENSIONS, STUDIO_ID}
        metrics = await listings.unknown_names("metric", spec.metrics, spec.catalog.metrics)
        dimensions = await listings.unknown_names("by", spec.dimensions, columns)
        dimensions += await listings.unknown_names("where", filtered, DIMENSIONS)
        for name in dict.fromkeys([*metrics, *dimensions]):
            text = f"this version does not know {name}, but the service does: it is passed on unchanged"
            listings.warnings.append(text)
        unknown += dimensions
    return unknown


async def _resolve_range(call: Call) -> ResolvedRange:
    """Return the requested, available and covered interval.

    Raises:
        NotYetAvailable: part of the time range is not available, or not by the deadline.
    """
    over, when, deadline = call.options.over, call.options.when_unavailable or "raise", call.deadline
    try:
        return await deadline.run(call.service.resolve_range(over, when, deadline.left_s, call.progress.tally))
    except Unreachable:
        available = call.service.last_available
        if when != "wait" or deadline.left_s != 0 or available is None:
            raise
        # The service answered in time: only its available interval did not grow far enough.
        late = NotYetAvailable(resolve_range(over, available), available, tried="wait")
    raise late


async def _with_ids(spec: QuerySpec, available: Interval, interval: Interval, listings: Listings) -> QuerySpec:
    """Return *spec* with ids in place of titles, and values in place of null."""
    spec = spec.with_(studios=await listings.ids("studios", spec.studios, available))
    spec = spec.with_(games=await listings.ids("games", spec.games, available, spec.studios))
    if spec.where is None or not (names := nullable_in(spec.where)):
        return spec
    lists = await gather(listings.values(name, spec, interval, warns=False) for name in names)
    return spec.with_(where=with_values_of(spec.where, dict(zip(names, lists, strict=True))))


async def _titles(
    spec: QuerySpec, sent: QuerySpec, plans: Sequence[MetricPlan], interval: Interval, listings: Listings
) -> tuple[dict[str, Mapping[str, str]], dict[str, str | None]]:
    """Return the titles that the frame shows by column, and the studios of games where it shows those.

    Before the rows: a list that fails later would cost rows that are already there.
    """
    titles: dict[str, Mapping[str, str]] = {}
    studio_of_game: dict[str, str | None] = {}
    leaf_plans = [leaf_plan for plan in plans for leaf_plan in plan.leaf_plans]
    if STUDIO_ID in spec.dimensions and any(plan.labels or GAME_ID in plan.dimensions for plan in leaf_plans):
        studio_of_game = {game.id: game.studio_id for game in await listings.games(interval) or ()}
    if GAME_ID in spec.titled and (games := await listings.games(interval, sent.studios)) is not None:
        titles[GAME_ID] = unique_game_titles(games)
    if STUDIO_ID in spec.titled and (studios := await listings.studios(interval)) is not None:
        titles[STUDIO_ID] = unique_studio_names(studios)
    if COUNTRY_CODE in spec.titled:
        titles[COUNTRY_CODE] = COUNTRY_NAMES
    return titles, studio_of_game
