"""The cost of a query, estimated before anything is sent: `Client.plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from gamelens.client.answer_cache import AnswerCache
from gamelens.client.connection.metrics_api import GameListing, MetricsApi, games_key, studios_key, values_key
from gamelens.client.connection.name_lookup import has_titles, ids_of
from gamelens.client.plans.metric_plan import FanOutValues, MetricPlan, RequestTemplate
from gamelens.client.plans.planner import fan_out_dimensions, fan_out_interval, plan_requests, typical_values
from gamelens.client.plans.query_spec import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.plans.rest_requests import rest_groups, rest_plan
from gamelens.client.plans.table_builder import TableBuilder
from gamelens.client.query.fetcher import cache_key, template_scope
from gamelens.client.query.progress import expected_s
from gamelens.client.tables.filter_values import unprovable_values
from gamelens.client.tables.table_schema import schema
from gamelens.client.tables.time_ranges import BucketSlice, ResolvedRange, enclosing_interval
from gamelens.wire.filters import nullable_in, with_values_of
from gamelens.wire.intervals import Interval

_SHOWN: Final = 20
_TYPICAL_STUDIOS: Final = ("…",)


class PlannedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a plan.

    Attributes:
        metric: the metric it is for.
        interval: its interval.
        buckets: how many bucket slices the interval has.
        scope: the values that a fan-out narrows it to; None without a fan-out.
    """

    metric: str
    interval: Interval
    buckets: int
    scope: dict[str, str | None] | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a query. Printed, it is a small table.

    Attributes:
        requests: all requests, lists included.
        seconds: how long they take at the guaranteed pace.
        cached_share: the share of the buckets that needs no request.
        pieces: the requests for metrics.
        clipped: the covered interval where it is less than the requested one; else None.
        guessed: dimensions whose number of values is not known yet, so that *requests* is an estimate.
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
    """Estimates the plan of one query from remembered lists and the cache.

    The number of values in a list that is not remembered is guessed.

    Args:
        service: its remembered lists are read, no list is requested.
        cache: its index is read; None for a client without a cache.
        fresh_s: how long cached buckets that may still change count as fresh.
    """

    def __init__(self, service: MetricsApi, cache: AnswerCache | None, *, fresh_s: float) -> None:
        self._service = service
        self._cache = cache
        self._fresh_s = fresh_s
        self._lists_to_request: set[object] = set()
        self._guessed: dict[str, None] = {}

    def plan(self, spec: QuerySpec, times: ResolvedRange, *, max_days: int | None) -> Plan:
        """Return the plan of *spec* over *times*.

        Raises:
            BadQuery: the query cannot be sent.
        """
        given, spec = spec, self._narrowed(spec, times)
        values = self._fan_out_values(spec, fan_out_interval(spec, times))
        plans = plan_requests(spec, times.covered, max_days=max_days, values=values)
        plans += [plan.total for plan in plans if plan.total is not None]
        rests = [self._rest_plan(plan, times, values) for plan in plans if plan.rest is not None]
        plans = list({id(source): source for plan in plans for source in plan.sources}.values())
        self._count_title_lists(spec, plans, times.covered)
        self._count_value_lists(given, times.available)
        pieces, slices, cached_slices = [], 0, 0
        known = [(plan, True) for plan in plans]
        for plan, is_known in known + [(source, is_known) for rest, is_known in rests for source in rest.sources]:
            for template in plan.templates:
                cached = self._cached(plan, template, times) if is_known else frozenset()
                slices, cached_slices = slices + len(plan.slices), cached_slices + len(cached)
                for run in plan.runs([slice_ for slice_ in plan.slices if slice_ not in cached]):
                    scope = template_scope(template)
                    piece = PlannedPiece(
                        metric=plan.metric, interval=enclosing_interval(run), buckets=len(run), scope=scope
                    )
                    pieces.append(piece)
        requests = len(self._lists_to_request) + len(pieces)
        return Plan(
            requests=requests,
            seconds=round(expected_s(requests), 1),
            cached_share=cached_slices / slices if slices else 0.0,
            pieces=tuple(pieces),
            clipped=times.covered if times.covered != times.requested else None,
            guessed=tuple(self._guessed),
        )

    def _rest_plan(self, plan: MetricPlan, times: ResolvedRange, values: FanOutValues) -> tuple[MetricPlan, bool]:
        """Return the requests for what `top` leaves out, and whether their filters are known.

        They are known where the rows of *plan* are in the cache.
        """
        groups, shown = rest_groups(plan, values), schema(plan.metric, plan.dimensions).empty_table()
        is_known = all(
            len(self._cached(source, template, times)) == len(source.slices)
            for source in plan.sources
            for template in source.templates
        )
        if self._cache is None or not is_known:
            return rest_plan(plan, groups, shown, values), False
        answers = {}
        for part in plan.sources:
            keys = [cache_key(template, self._service.edition) for template in part.templates]
            found = [
                self._cache.find(key, part.slices, available=times.available, fresh_s=self._fresh_s).table
                for key in keys
            ]
            answers[id(part)] = [[table] if table is not None else [] for table in found]
        lists = self._game_lists(None, times.covered) if any(part.labels for part in plan.sources) else []
        studio_of_game = {game.id: game.studio_id for games in lists for game in games or ()}
        shown = TableBuilder(times, studio_of_game, lambda _: set()).build(plan, answers)
        return rest_plan(plan, groups, shown, values), True

    def _cached(self, plan: MetricPlan, template: RequestTemplate, times: ResolvedRange) -> frozenset[BucketSlice]:
        if self._cache is None:
            return frozenset()
        key = cache_key(template, self._service.edition)
        return self._cache.fresh_slices(key, plan.slices, available=times.available, fresh_s=self._fresh_s)

    def _narrowed(self, spec: QuerySpec, times: ResolvedRange) -> QuerySpec:
        """Return *spec* with ids and values from remembered lists.

        A name stays as it is where its list is not remembered, and values are guessed.
        """
        studios, games, where = spec.studios, spec.games, spec.where
        if has_titles(studios) and (listed := self._remembered(studios_key(times.available))) is not None:
            studios = ids_of("studios", studios or (), {studio.id: (studio.name,) for studio in listed}) or studios
        if has_titles(games):
            lists = self._game_lists(studios, times.available)
            titles = {game.id: (game.title,) for listed in lists for game in listed or ()}
            games = (ids_of("games", games or (), titles) if None not in lists else None) or games
        spec = msgspec.structs.replace(spec, studios=studios, games=games)
        if where is not None and (names := nullable_in(where)):
            interval = fan_out_interval(spec, times)
            where = with_values_of(where, {name: self._values(name, spec, interval) for name in names})
        return msgspec.structs.replace(spec, where=where)

    def _fan_out_values(self, spec: QuerySpec, interval: Interval) -> FanOutValues:
        dimensions = fan_out_dimensions(spec)
        others = [name for name in dimensions if name not in (GAME_ID, STUDIO_ID)]
        return FanOutValues(
            games=self._games(spec, interval) if GAME_ID in dimensions else (),
            studios=self._studios(spec, interval) if STUDIO_ID in dimensions else (),
            values={name: self._values(name, spec, interval) for name in others},
        )

    def _values(self, name: str, spec: QuerySpec, interval: Interval) -> tuple[str, ...]:
        answer = self._remembered(values_key(name, interval, spec.studios or (), spec.games or ()))
        return self._guess(name, typical_values(name)) if answer is None else tuple(answer.values)

    def _studios(self, spec: QuerySpec, interval: Interval) -> tuple[str, ...]:
        studios = self._remembered(studios_key(interval))
        if studios is None:
            return self._guess(STUDIO_ID, spec.studios or _TYPICAL_STUDIOS)
        return tuple(studio.id for studio in studios if spec.studios is None or studio.id in spec.studios)

    def _games(self, spec: QuerySpec, interval: Interval) -> tuple[str, ...]:
        lists = self._game_lists(spec.studios, interval)
        ids: list[str] = []
        for games in lists:
            if games is None:
                return self._guess(GAME_ID, spec.games or typical_values(GAME_ID))
            ids += [game.id for game in games]
        return tuple(game for game in ids if spec.games is None or game in spec.games)

    def _count_title_lists(self, spec: QuerySpec, plans: Sequence[MetricPlan], interval: Interval) -> None:
        """Count the lists for titles and for the studios of games.

        The titles of studios are in the list that those of games begin with.
        """
        if any(plan.labels for plan in plans):
            self._game_lists(None, interval)
        if GAME_ID in spec.titled:
            self._game_lists(spec.studios, interval)

    def _count_value_lists(self, spec: QuerySpec, available: Interval) -> None:
        """Count the lists for values in the filter that the answer cannot prove."""
        if spec.where is None:
            return
        for dimension, values in unprovable_values(spec.where, spec.dimensions).items():
            if self._service.needs_list(dimension, values):
                self._remembered(values_key(dimension, available, (), ()))

    def _game_lists(self, studios: Sequence[str] | None, interval: Interval) -> list[list[GameListing] | None]:
        """Return the games of each of *studios*, or None for a list that is not remembered.

        For all studios, *studios* is None.
        """
        listed = self._remembered(studios_key(interval))
        if studios is None:
            studios = (
                [studio.id for studio in listed] if listed is not None else self._guess(STUDIO_ID, _TYPICAL_STUDIOS)
            )
        return [self._remembered(games_key(studio, interval)) for studio in dict.fromkeys(studios)]

    def _remembered(self, key: object) -> Any:
        """Return the remembered list, or None and count it as a request."""
        answer = self._service.remembered(key)
        if answer is None:
            self._lists_to_request.add(key)
        return answer

    def _guess(self, name: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return *values* in place of those of *name*, and record that their number is a guess."""
        self._guessed[name] = None
        return values
