"""What a question will cost, before anything is sent: `Client.plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.client.connection.metrics_api import MetricsApi, games_key, studios_key, values_key
from gamelens.client.query.planner import (
    FanOutValues,
    MetricPlan,
    RequestTemplate,
    fan_out_dimensions,
    plan_requests,
    typical_values,
)
from gamelens.client.query.progress import expected_s
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.query.row_sources import cache_key, template_scope
from gamelens.client.tables.time_ranges import BucketSlice, ResolvedRange, enclosing_interval
from gamelens.wire.intervals import Interval

_SHOWN = 20
_TYPICAL_STUDIOS = ("…",)


class PlannedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """One request: *metric* over *interval* with so many *buckets*; *scope* is what it is narrowed to by a fan-out."""

    metric: str
    interval: Interval
    buckets: int
    scope: dict[str, str | None] | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a question will cost.

    *requests* are all that will be sent, lists included, which take about *seconds* at the guaranteed pace;
    *cached_share* of its buckets need no request. *pieces* are the requests for metrics. *clipped* is what will be
    asked where that is less than was asked for. *guessed* names what is not known before a list is asked for, so that
    *requests* is then an estimate.
    """

    requests: int
    seconds: float
    cached_share: float
    pieces: tuple[PlannedPiece, ...]
    clipped: Interval | None = None
    guessed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[str]:
        if not self.requests:
            why = "everything is in the cache" if self.cached_share else "no studio, game or value fits the question"
            yield f"Nothing has to be asked: {why}."
        else:
            about = "about " if self.guessed else ""
            number = f"{about}{self.requests} request" + ("s" if self.requests > 1 else "")
            yield f"{number}, about {self.seconds:.1f} s; {self.cached_share:.0%} of the buckets are in the cache"
        if self.clipped is not None:
            yield f"cut to what is available: {self.clipped}"
        if self.guessed:
            yield f"estimated: how many values {', '.join(self.guessed)} has is only known once it is asked"
        if self.pieces:
            width = max(len(piece.metric) for piece in self.pieces)
            for piece in self.pieces[:_SHOWN]:
                scope = ", ".join(f"{name} = {value}" for name, value in (piece.scope or {}).items())
                yield f"  {piece.metric:<{width}}  {piece.interval}  {piece.buckets:>3} buckets  {scope}".rstrip()
            if len(self.pieces) > _SHOWN:
                yield f"  … and {len(self.pieces) - _SHOWN} more"


class PlanEstimator:
    """Plans a question with what is remembered, and guesses what is not."""

    def __init__(self, service: MetricsApi, cache: AnswerCache | None, *, fresh_s: float) -> None:
        self._service = service
        self._cache = cache
        self._fresh_s = fresh_s
        self._asked: set[object] = set()
        self._guessed: dict[str, None] = {}

    def plan(self, question: QuerySpec, span: ResolvedRange, listed: Interval, *, max_days: int | None) -> Plan:
        """The plan of *question*; values of its fan-out are those of *listed*.

        Raises:
            BadQuery: it cannot be asked.
        """
        lists = self._lists(question, listed)
        parts = plan_requests(question, span.covered, max_days=max_days, lists=lists)
        parts += [part.total for part in parts if part.total is not None]
        self._titles(question, parts, span.covered)
        pieces, units, known = [], 0, 0
        for part in parts:
            for template in part.templates:
                there = self._there(part, template, span)
                units, known = units + len(part.asked), known + len(there)
                missing = [unit for unit in part.asked if unit not in there]
                for run in part.pieces(missing):
                    scope = template_scope(template)
                    piece = PlannedPiece(
                        metric=part.metric, interval=enclosing_interval(run), buckets=len(run), scope=scope
                    )
                    pieces.append(piece)
        requests = len(self._asked) + len(pieces)
        return Plan(
            requests=requests,
            seconds=round(expected_s(requests), 1),
            cached_share=known / units if units else 0.0,
            pieces=tuple(pieces),
            clipped=span.covered if span.covered != span.requested else None,
            guessed=tuple(self._guessed),
        )

    def _there(self, part: MetricPlan, template: RequestTemplate, span: ResolvedRange) -> frozenset[BucketSlice]:
        if self._cache is None:
            return frozenset()
        asked = cache_key(template, self._service.edition)
        return self._cache.fresh_slices(asked, part.asked, available=span.available, fresh_s=self._fresh_s)

    def _lists(self, question: QuerySpec, interval: Interval) -> FanOutValues:
        needed = fan_out_dimensions(question)
        return FanOutValues(
            games=self._games(question, interval) if GAME_ID in needed else (),
            studios=self._studios(question, interval) if STUDIO_ID in needed else (),
            values={it: self._values(it, question, interval) for it in needed if it not in (GAME_ID, STUDIO_ID)},
        )

    def _values(self, name: str, question: QuerySpec, interval: Interval) -> tuple[str, ...]:
        answer = self._listed(values_key(name, interval, question.studios or (), question.games or ()))
        return self._guess(name, typical_values(name)) if answer is None else tuple(answer.values)

    def _studios(self, question: QuerySpec, interval: Interval) -> tuple[str, ...]:
        answer = self._listed(studios_key(interval))
        if answer is None:
            return self._guess(STUDIO_ID, question.studios or _TYPICAL_STUDIOS)
        return tuple(it.id for it in answer if question.studios is None or it.id in question.studios)

    def _games(self, question: QuerySpec, interval: Interval) -> tuple[str, ...]:
        answers = self._game_lists(question.studios, interval)
        if any(answer is None for answer in answers):
            return self._guess(GAME_ID, question.games or typical_values(GAME_ID))
        ids = (it.id for answer in answers for it in answer)
        return tuple(it for it in ids if question.games is None or it in question.games)

    def _titles(self, question: QuerySpec, parts: Sequence[MetricPlan], interval: Interval) -> None:
        """Count the lists that titles and the studios of games are taken from; those of studios are in one of them."""
        if any(part.labels for part in parts):
            self._game_lists(None, interval)
        if GAME_ID in question.titled:
            self._game_lists(question.studios, interval)

    def _game_lists(self, studios: Sequence[str] | None, interval: Interval) -> list[Any]:
        """The list of games of each of *studios*, of all when None; None for one that is not known yet."""
        listed = self._listed(studios_key(interval))
        if studios is None:
            studios = [it.id for it in listed] if listed is not None else self._guess(STUDIO_ID, _TYPICAL_STUDIOS)
        return [self._listed(games_key(studio, interval)) for studio in dict.fromkeys(studios)]

    def _listed(self, key: object) -> Any:
        """What is remembered of a list; None when it will have to be asked for."""
        answer = self._service.remembered(key)
        if answer is None:
            self._asked.add(key)
        return answer

    def _guess(self, name: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """*values*, of which there will be others: how many *name* has is not known."""
        self._guessed[name] = None
        return values
