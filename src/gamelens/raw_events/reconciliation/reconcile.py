"""Two answers to one question, and each difference by cause: `reconcile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.client.async_client import AsyncClient
from gamelens.client.sync_client import Client
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.lake_client import LakeClient
from gamelens.raw_events.reconciliation import counting_rules as causes
from gamelens.raw_events.reconciliation.attribution import (
    Changes,
    Rest,
    approximate_amounts,
    find_changes,
    network_amounts,
    shapley_amounts,
)
from gamelens.raw_events.reconciliation.counted_metrics import (
    COUNTED_METRICS,
    NETWORK,
    PLAYER_SPLITS,
    CountedMetric,
    check_split,
    counted_metric,
)
from gamelens.raw_events.reconciliation.counting_rules import RuleChange, changed_rules, possible_changes
from gamelens.raw_events.reconciliation.event_rows import EventRows, Floats, read_event_rows
from gamelens.raw_events.reconciliation.reconciliation_result import Judgement, Reconciliation, reconciliation_of
from gamelens.raw_events.reconciliation.recount import Recount
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Granularity, Interval, read_moment

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ERROR: Final = 0.05
"""Largest relative error of a distinct count that is taken for an approximate one."""
_SAME_EVENTS: Final = 0.001
_WITHOUT_RULE: Final = {
    causes.NETWORKS: "the same events under another name",
    causes.APPROXIMATE: f"the same events, and a count within {MOST_ERROR:.0%}",
}
"""Causes that are not rules of counting events, and what they say."""


def reconcile(
    api: Client | DataFrame,
    lake: LakeClient,
    metric: str,
    *,
    by: str | None = None,
    over: TimeRange | None = None,
    every: Granularity = "day",
) -> Reconciliation:
    """Ask both for *metric* and explain each difference by cause.

        lake = gl.open_lake("lake")
        found = gl.reconcile(gl.connect(), lake, "user_unique", by="country_code", over="last 28 complete days")
        print(found)
        found.frame

    The lake's events are recounted under other rules (arrival day, other zones, without late events and so on); the few
    changes of rules that leave the least of the difference are its causes. Their amounts are Shapley values, which do
    not depend on an order; what they leave is `unexplained`. A cause that the answers cannot tell is "not judged".

    Args:
        api: the client that is compared with the lake, or a frame that one returned earlier: its receipt says when.
        lake: the lake, of the same games.
        metric: event_count, ad_impressions_count, revenue, ilrd_revenue, user_unique, paying_users, session_unique or
            new_users.
        by: a dimension of events.
        over: as in `query`; for a frame it is that of the frame.
        every: day, week, month or all; for a frame it is that of the frame.

    Raises:
        BadQuery: the metric cannot be recounted, *by* is not a dimension of events, or a frame has no receipt of it.
        NotYetAvailable: part of *over* is not in the lake, or not in the API.
    """
    counted = counted_metric(metric)
    check_split(by)
    answers = _both_answers(api, lake, counted, by, over, every)
    cuts = _cuts(answers.receipt)
    rows = read_event_rows(lake, counted, by, answers.interval, cuts)
    compared = _compared(answers, rows, counted)
    changes, effective, has_same_events = _rules_of(compared, answers, cuts)
    amounts = shapley_amounts(compared.recount, changes)
    difference = compared.api - compared.lake
    rest = difference - sum(amounts.values(), np.zeros(difference.shape))
    if by == NETWORK:
        amounts[causes.NETWORKS] = network_amounts(rest, compared.splits)
        rest = rest - amounts[causes.NETWORKS]
    if has_same_events is not None:
        own = compared.recount.cells(changed_rules(changes))
        amounts[causes.APPROXIMATE] = approximate_amounts(rest, own, has_same_events, MOST_ERROR)
    judgements = [
        _judgement(cause, compared, answers, changes, effective, amounts.get(cause)) for cause in causes.CAUSES
    ]
    return reconciliation_of(
        metric,
        by,
        starts=compared.recount.starts,
        splits=compared.splits,
        api=compared.api,
        lake=compared.lake,
        judgements=judgements,
        receipts=(answers.receipt, Receipt.of(answers.lake_frame.attrs)),
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Answers:
    """Both answers, and what was asked."""

    client: Client | None
    lake: LakeClient
    api_frame: DataFrame
    lake_frame: DataFrame
    receipt: Receipt
    interval: Interval
    by: str | None
    every: Granularity
    counted: CountedMetric


@dataclass(frozen=True, eq=False, slots=True)
class _Compared:
    """Both answers as arrays by bucket and split, beside the recounts."""

    api: Floats
    lake: Floats
    splits: list[str | None]
    recount: Recount
    rows: EventRows


def _both_answers(
    api: Client | DataFrame,
    lake: LakeClient,
    counted: CountedMetric,
    by: str | None,
    over: TimeRange | None,
    every: Granularity,
) -> _Answers:
    if isinstance(api, DataFrame):
        frame, client = api, None
        every = _check_frame(frame, counted, by) or every
    elif isinstance(api, AsyncClient) or not hasattr(api, "query"):
        raise BadQuery("api", type(api).__name__, "must be a client of `connect` or `open_lake`, or a frame of one")
    elif over is None:
        raise BadQuery("over", over, "must be given, unless the first argument is a frame")
    else:
        frame, client = api.query(counted.name, by=by, over=over, every=every), api
    receipt = Receipt.of(frame.attrs)
    interval = receipt.interval
    if interval is None or not interval:
        raise BadQuery("api", None, "has no receipt of its interval: pass a client, or a frame as `query` returned it")
    lake_frame = lake.query(counted.name, by=by, over=interval, every=every)
    return _Answers(client, lake, frame, lake_frame, receipt, interval, by, every, counted)


def _check_frame(frame: DataFrame, counted: CountedMetric, by: str | None) -> Granularity | None:
    """Check that *frame* is an answer to the question, and return its buckets.

    Raises:
        BadQuery: it is one to another question, or not a whole one.
    """
    receipt = Receipt.of(frame.attrs)
    needed = {"timestamp", counted.field, *([by] if by else [])}
    if missing := sorted(needed - set(map(str, frame.columns))):
        raise BadQuery("api", missing[0], "is not a column of the frame: query it with the same metric and `by`")
    if counted.name not in receipt.asked.metrics or set(receipt.asked.by) != ({by} if by else set()):
        raise BadQuery("api", receipt.asked.metric, f"is not {counted.name} by {by}: query the frame with both")
    if receipt.asked.where or receipt.asked.games or receipt.asked.studios or not receipt.is_complete:
        raise BadQuery("api", None, "is not a whole answer: query it without `where`, `games`, `studios` and `top`")
    return receipt.asked.every


def _cuts(receipt: Receipt) -> list[datetime]:
    """Return the moments at which the answer may have been made, earliest first."""
    texts = {text for text in (receipt.as_of, receipt.asked_at) if text}
    return sorted(read_moment(text) for text in texts)


def _compared(
    answers: _Answers, rows: EventRows, counted: CountedMetric, *, also: Sequence[str | None] = ()
) -> _Compared:
    frames = (answers.api_frame, answers.lake_frame)
    named = {value for frame in frames for value in _values(frame, answers.by)} | {*rows.splits, *also}
    splits = sorted(named, key=lambda value: (value is None, value or ""))
    recount = Recount(rows, counted.kind, answers.interval, answers.every, splits)
    api, lake = (_cells(frame, answers.by, counted.field, recount, splits) for frame in frames)
    return _Compared(api, lake, splits, recount, rows)


def _values(frame: DataFrame, by: str | None) -> list[str | None]:
    if by is None:
        return [None] * len(frame)
    return [None if pd.isna(value) else str(value) for value in frame[by]]


def _cells(frame: DataFrame, by: str | None, field: str, recount: Recount, splits: Sequence[str | None]) -> Floats:
    """Return the column *field* by bucket and split, 0 where the frame has no row."""
    starts = pd.DatetimeIndex(recount.starts).as_unit("us")
    bucket = starts.searchsorted(pd.DatetimeIndex(frame["timestamp"]).as_unit("us"), side="right") - 1
    places = {value: place for place, value in enumerate(splits)}
    split = np.array([places[value] for value in _values(frame, by)], dtype=np.int64)
    cells = np.zeros(recount.shape)
    np.add.at(cells, (np.maximum(bucket, 0), split), frame[field].astype("float64").fillna(0.0).to_numpy())
    return cells


def _rules_of(
    compared: _Compared, answers: _Answers, cuts: Sequence[datetime]
) -> tuple[Changes, frozenset[str], NDArray[np.bool_] | None]:
    """Return the changes that explain the answer, and causes that could change anything.

    Also whether the events of each cell are as many in both, for a distinct count of a client. Its events are then
    asked for as well: they are counted exactly, so they tell the rules.
    """
    possible = [
        change for change in possible_changes(cuts, answers.interval) if _is_judged(change.cause, compared, answers)
    ]
    rest = _rest_of(compared.splits, answers.by)
    if answers.counted.kind != "distinct" or answers.client is None:
        found = find_changes(compared.api, compared.recount, possible, rest)
        return found.changes, found.effective, None
    events = _events_beside(answers.client, compared, answers, cuts)
    of_events = find_changes(events.api, events.recount, possible, _rest_of(events.splits, answers.by))
    shared = tuple(change for change in of_events.changes if change.cause != causes.DIMENSION)
    of_players = [change for change in possible if change.cause == causes.DIMENSION]
    found = find_changes(compared.api, compared.recount, of_players, rest, given=shared)
    return found.changes, of_events.effective | found.effective, _same_events(events, compared, of_events.changes)


def _rest_of(splits: Sequence[str | None], by: str | None) -> Rest:
    """Return the function that takes off what moves between networks, where *by* has networks."""

    def rest(difference: Floats) -> Floats:
        return difference - network_amounts(difference, splits) if by == NETWORK else difference

    return rest


def _events_beside(client: Client, compared: _Compared, answers: _Answers, cuts: Sequence[datetime]) -> _Compared:
    """Return the events of both answers, by the same bucket and dimension."""
    counted = COUNTED_METRICS["event_count"]
    over, by, every = answers.interval, answers.by, answers.every
    frames = [each.query("event_count", by=by, over=over, every=every) for each in (client, answers.lake)]
    rows = read_event_rows(answers.lake, counted, by, over, cuts)
    beside = _Answers(None, answers.lake, frames[0], frames[1], answers.receipt, over, by, every, counted)
    return _compared(beside, rows, counted, also=compared.splits)


def _same_events(events: _Compared, compared: _Compared, changes: Changes) -> NDArray[np.bool_]:
    """Return whether the events of each cell are as many in both, under *changes*."""
    expected = events.recount.cells(changed_rules(changes))
    places = [events.splits.index(value) for value in compared.splits]
    same: NDArray[np.bool_] = np.abs(events.api - expected) <= _SAME_EVENTS * expected
    return same[:, places]


def _is_judged(cause: str, compared: _Compared, answers: _Answers) -> bool:
    return not _why_not(cause, compared, answers)


def _why_not(cause: str, compared: _Compared, answers: _Answers) -> str:
    """Return why *cause* cannot be judged from the two answers, or nothing."""
    by = answers.by
    if cause in causes.OF_ARRIVALS and compared.rows.last_arrival is None:
        return "the lake does not know when its events arrived"
    if cause == causes.NETWORKS and by != NETWORK:
        return f"the answers are not split by {NETWORK}"
    if cause == causes.DIMENSION and by is None:
        return "the answers are not split"
    if cause == causes.DIMENSION and by not in PLAYER_SPLITS:
        return f"{by} is the event's own"
    if cause == causes.DIMENSION and answers.counted.kind == "first":
        return "a new player has one event that counts"
    if cause == causes.APPROXIMATE and answers.counted.kind != "distinct":
        return f"{answers.counted.name} counts nothing distinct"
    if cause == causes.APPROXIMATE and answers.client is None:
        return "a frame cannot be asked for its events: pass the client"
    return ""


def _judgement(
    cause: str,
    compared: _Compared,
    answers: _Answers,
    changes: Changes,
    effective: frozenset[str],
    amount: Floats | None,
) -> Judgement:
    if why := _why_not(cause, compared, answers):
        return Judgement(cause=cause, status="not judged", reason=why)
    change = next((each for each in changes if each.cause == cause), None)
    if change is not None:
        return _with_evidence(Judgement(cause=cause, status="explains", reason=change.text), change, compared, amount)
    if amount is not None and amount.any():
        example = compared.recount.starts[int(np.abs(amount).sum(axis=1).argmax())]
        return Judgement(cause=cause, status="explains", reason=_WITHOUT_RULE[cause], amount=amount, example=example)
    is_tried = cause in effective or cause in _WITHOUT_RULE
    reason = "does not fit the difference" if is_tried else "would change nothing here"
    judgement = Judgement(cause=cause, status="explains nothing", reason=reason)
    rules = [each for each in possible_changes((), answers.interval) if each.cause == cause]
    return _with_evidence(judgement, rules[0], compared, None) if len(rules) == 1 else judgement


def _with_evidence(judgement: Judgement, change: RuleChange, compared: _Compared, amount: Floats | None) -> Judgement:
    """Return *judgement* with the events that *change* alone counts elsewhere, or no longer."""
    moved = compared.recount.changed(changed_rules((change,)))
    example = None if moved.bucket is None else compared.recount.starts[moved.bucket]
    return replace(judgement, amount=amount, events=moved.events, example=example)
