"""What both faces of the client share: one service, one cache, and the questions asked of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.client.connection.deadline import Deadline
from gamelens.client.connection.metrics_api import MetricsApi, unknown_name_error
from gamelens.client.query import query_run
from gamelens.client.query.data_frames import games_frame, restatements_frame, studios_frame
from gamelens.client.query.plan_estimate import Plan, PlanEstimator
from gamelens.client.query.progress import Progress
from gamelens.client.query.query_run import QueryResult, QueryRun
from gamelens.client.query.query_spec import IDS, STUDIO_ID, ExecutionOptions, QuerySpec, RetentionSpec
from gamelens.client.query.refresh import (
    FrameSource,
    PreviousResult,
    find_restatements,
    previous_result,
    restatement_records,
)
from gamelens.client.query.retention_query import retention
from gamelens.client.query.row_sources import CacheSource, NoSource, RowSource
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.wire.filters import dimensions_in
from gamelens.wire.receipts import RestatementRecord

if TYPE_CHECKING:
    from pandas import DataFrame


class QueryExecutor:
    """Answers questions; its coroutines run on the background loop.

    Args:
        service: who is asked.
        cache: where answers are kept; None for nowhere.
        max_days, refresh_s: as `Client` has them.
    """

    def __init__(
        self, service: MetricsApi, cache: AnswerCache | None, *, max_days: int | None, refresh_s: float
    ) -> None:
        self.service = service
        self.cache = cache
        self._max_days = max_days
        self._refresh_s = refresh_s
        self._moved: list[RestatementRecord] = []
        self._said: set[str] = set()

    async def dimension_values(
        self, dimension: str, over: TimeRange, studios: Sequence[str], games: Sequence[str]
    ) -> list[str]:
        """Values of *dimension* during *over*."""
        await self.service.list_strange("by", (dimension,), DIMENSIONS)
        kept = (await self.service.settle(over, "raise")).kept
        return await self.service.dimension_values(dimension, kept, studios=studios, games=games)

    async def studios(self, over: TimeRange) -> DataFrame:
        """Studios that sent data during *over*."""
        kept = (await self.service.settle(over, "raise")).kept
        return studios_frame(await self.service.studios(kept))

    async def games(self, over: TimeRange, studios: Sequence[str] | None) -> DataFrame:
        """Games that sent data during *over*."""
        kept = (await self.service.settle(over, "raise")).kept
        return games_frame(await self.service.games(kept, studios))

    async def query(self, question: QuerySpec, terms: ExecutionOptions, progress: Progress) -> QueryResult:
        """The answer to *question*."""
        return await self._ask(question, terms, progress, self._known())

    async def retention(self, cohorts: RetentionSpec, terms: ExecutionOptions, progress: Progress) -> QueryResult:
        """The answer about *cohorts*."""
        return await retention(self._inquiry(terms, progress, self._known()), cohorts, max_days=self._max_days)

    async def plan(self, question: QuerySpec, terms: ExecutionOptions) -> Plan:
        """What *question* will cost; only the available interval is asked for."""
        _check_names(question)
        settling = self.service.settle(terms.over, "clip" if terms.when == "clip" else "raise")
        span = await Deadline(terms.deadline_s).run(settling)
        listed = query_run.fan_out_interval(question, span)
        estimate = PlanEstimator(self.service, self.cache, fresh_s=self._refresh_s)
        return estimate.plan(question, span, listed, max_days=self._max_days)

    async def resume(self, frame: DataFrame, terms: ExecutionOptions, progress: Progress) -> QueryResult:
        """The frame without its gaps; only they are asked for."""
        before = previous_result(frame)
        is_plain = not before.ages and not before.question.needs_total
        known = FrameSource(frame, before, self._known()) if is_plain else self._known()
        return await self._again(before, known, terms, progress)

    async def refresh(self, frame: DataFrame, terms: ExecutionOptions, progress: Progress) -> QueryResult:
        """The frame, all of it asked again; its receipt says what moved."""
        before = previous_result(frame)
        answered = await self._again(before, self._known(reads=False), terms, progress)
        restated = find_restatements(frame, answered.table, before, answered.receipt.as_of)
        if self.cache is None:
            self._moved += restated
        return answered.with_receipt(msgspec.structs.replace(answered.receipt, restated=tuple(restated)))

    async def restatements(self, metric: str | None) -> DataFrame:
        """What moved, as far as this cache has seen it."""
        if metric is not None:
            await self.service.list_strange("metric", (metric,), METRICS)
        if self.cache is not None:
            return restatements_frame(restatement_records(self.cache.restatements(metric)))
        return restatements_frame([it for it in self._moved if metric in (None, it.metric)])

    def say(self, answered: QueryResult) -> DataFrame:
        """The frame; what its receipt warns of is said once."""
        for text in answered.receipt.warnings:
            if text not in self._said:
                self._said.add(text)
                warnings.warn(text, UserWarning, stacklevel=4)
        return cast("DataFrame", answered.frame)

    async def _again(
        self, before: PreviousResult, known: RowSource, terms: ExecutionOptions, progress: Progress
    ) -> QueryResult:
        terms = msgspec.structs.replace(terms, over=before.interval)
        if before.ages:
            question = before.question
            cohorts = RetentionSpec(
                ages=before.ages,
                by=question.by,
                where=question.where,
                games=question.games,
                studios=question.studios,
            )
            answered = await retention(self._inquiry(terms, progress, known), cohorts, max_days=self._max_days)
        else:
            answered = await self._ask(before.question, terms, progress, known)
        earlier = before.receipt
        asked = msgspec.structs.replace(
            answered.receipt.asked, over=earlier.asked.over, interval=earlier.asked.interval
        )
        return answered.with_receipt(msgspec.structs.replace(answered.receipt, asked=asked, clipped=earlier.clipped))

    async def _ask(
        self, question: QuerySpec, terms: ExecutionOptions, progress: Progress, known: RowSource
    ) -> QueryResult:
        return await query_run.query(self._inquiry(terms, progress, known), question, max_days=self._max_days)

    def _inquiry(self, terms: ExecutionOptions, progress: Progress, known: RowSource) -> QueryRun:
        return QueryRun(self.service, known=known, terms=terms, progress=progress)

    def _known(self, *, reads: bool = True) -> RowSource:
        if self.cache is None:
            return NoSource()
        return CacheSource(self.cache, self.service, fresh_s=self._refresh_s, reads=reads)


def _check_names(question: QuerySpec) -> None:
    """Refuse what the catalog does not know: whether the service does would have to be asked."""
    read = dimensions_in(question.where) if question.where is not None else ()
    for field, name, known in (
        *(("metric", name, METRICS) for name in question.metrics),
        *(("by", name, {*DIMENSIONS, *IDS, STUDIO_ID}) for name in question.by),
        *(("where", name, DIMENSIONS) for name in read),
    ):
        if name not in known:
            rule = "is not known here, so it cannot be planned; query() asks the service"
            raise unknown_name_error(field, name, rule, known)
