"""Two answers to one question, and each difference by cause: `reconcile`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.claims.findings import Clause, Finding, reads
from gamelens.analysis.tidy_frames.columns import Column, name_of
from gamelens.analysis.tidy_frames.results import as_result
from gamelens.analysis.tidy_frames.returned_columns import as_declared, returns
from gamelens.catalog import METRICS
from gamelens.client.async_client import AsyncClient
from gamelens.client.sync_client import Client
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery, suggests_names
from gamelens.raw_events.lake_client import LakeClient
from gamelens.raw_events.reconciliation import recount as causes
from gamelens.raw_events.reconciliation.attribution import (
    find_changes,
    network_amounts,
    shapley_amounts,
)
from gamelens.raw_events.reconciliation.event_rows import (
    COUNTED_METRICS,
    EVENT_SPLITS,
    CountedMetric,
    EventRows,
    Floats,
    read_event_rows,
)
from gamelens.raw_events.reconciliation.recount import Changes, Recount, RuleChange, possible_changes
from gamelens.receipts import RECEIPT, Receipt, merge_receipts
from gamelens.wire.dimensions import EVENT_DIMENSIONS
from gamelens.wire.intervals import Granularity, Interval, read_moment

MOST_ERROR: Final = 0.05
"""Largest relative error of a distinct count that is taken for an approximate one.

Three standard errors of a HyperLogLog of 4,096 registers, the smallest in use: 1.04 / 64 each.
"""
_SAME_EVENTS: Final = MOST_ERROR / 50  # so few events do not change a distinct count as much as an approximate one errs
_NETWORK: Final = "ilrd_network_name"
_WITHOUT_RULE: Final = {
    causes.NETWORKS: "the same events under another name",
    causes.APPROXIMATE: f"the same events, and a count within {MOST_ERROR:.0%}",
}
"""Causes that are not rules of counting events, and what they say."""
UNEXPLAINED: Final = "unexplained"
"""The part of a difference that no cause explains."""
_NO_DIFFERENCE: Final = 1e-9
"""Relative difference of two numbers that are the same: money is added in another order."""
_SHOWN: Final = 4
_STATUSES: Final = ("explains", "explains nothing", "not judged")
_CAUSES: Final = (
    Column("cause", "category", values=(*causes.CAUSES, UNEXPLAINED)),
    Column("status", "category", values=_STATUSES),
    Column("reason", "text", about="the rule of the other answer, or why it explains nothing or is not judged"),
    Column("amount", "of the row", about="the API less the lake"),
    Column("share", "share", about="of all amounts without their signs", na="without a difference, or if not judged"),
    Column("events", "count", about="counted elsewhere by its rule, or no longer", na="without one rule"),
    Column("example", "day", about="the bucket with most of them", na="without one"),
    Column("unit", "unit", about='"USD" or "count"'),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """One cause: whether it explains anything, and the evidence."""

    cause: str
    # whether it explains a part of the difference, explains none, or cannot be judged
    status: Literal["explains", "explains nothing", "not judged"]
    reason: str  # the rule of the other answer, or why it explains nothing or is not judged
    amount: Floats | None = None  # what it adds to each bucket and split
    events: int | None = None  # number of events that its rule counts elsewhere, or no longer; None without one rule
    example: datetime | None = None  # the bucket that has most of them


@suggests_names
@dataclass(frozen=True, eq=False, repr=False)
class Reconciliation:
    """Two answers to one question, and each difference by cause.

    Attributes:
        metric: the metric.
        frame: a row for each bucket, split and cause. Columns: timestamp (datetime64[us, UTC]), the dimension (str),
            api, lake, difference (float64, the API less the lake), cause (str), amount (float64; the amounts of a
            bucket and split sum to its difference), share (float64: of the amounts without their signs; NA without a
            difference). Every bucket and split has a row `unexplained`.
        causes: a row for each cause, with the columns that `reconcile` lists. Claims: "reconciliation", of all rows.
    """

    metric: str
    frame: DataFrame
    causes: DataFrame

    @property
    def explained_share(self) -> float:
        """The share of the difference that has a cause, without signs.

        It is not a number if there is no difference.
        """
        row = self.causes[self.causes["cause"] == UNEXPLAINED]
        return float(1 - row["share"].iloc[0])

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return str(claims.of(self.causes)["text"].iloc[0])


@reads("raw_events.reconcile")
def _read_causes(causes: DataFrame, metric: str, rows: int, differ: int, api: float, lake: float) -> Iterator[Finding]:
    """Say what the differences come from, largest parts first. They are counted, so there is no interval."""
    kind = "reconciliation"
    numbers = {"metric": name_of(metric), "rows": rows, "differ": differ, "api": api, "lake": lake}
    if not differ:
        case = "same" if rows else "empty"
        yield Finding(kind=kind, case=case, direction="no clear difference", judged="counted", numbers=numbers)
        return
    shown = causes[causes["share"] > 0].sort_values("share", ascending=False).head(_SHOWN)
    names = ["cause", "share", "amount", "reason"]
    rows_shown = [dict(zip(names, row, strict=True)) for row in shown[names].to_numpy().tolist()]
    parts = [Clause(UNEXPLAINED if row["cause"] == UNEXPLAINED else "part", row, part="share") for row in rows_shown]
    # Only a service's answer is called the API.
    is_lake = Receipt.of(causes.attrs).provenance.kind == "lake"
    yield Finding(
        kind=kind,
        case="differ",
        direction="higher" if api > lake else "lower" if api < lake else "no clear difference",
        size=1 - float(causes.loc[causes["cause"] == UNEXPLAINED, "share"].iloc[0]),
        unit="share",
        judged="counted",
        numbers={
            **numbers,
            "measured_in": _unit_of(metric),
            "other": "the other answer" if is_lake else "the API",
            "parts": parts,
            "unjudged": causes.loc[causes["status"] == "not judged", "cause"].tolist(),
        },
    )


@returns(*_CAUSES)
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

        found = gl.reconcile(lens, lake, "user_unique", by="country_code", over="last 28 complete days")
        print(found)
        found.causes

    The lake's events are recounted under other rules (arrival day, other zones, without late events and so on); the few
    changes of rules that leave the least of the difference are its causes. Their amounts are Shapley values, which do
    not depend on an order; what they leave is `unexplained`. A cause that the answers cannot tell is "not judged".
    `found.causes` has a row for each cause.

    Args:
        api: the client that is compared with the lake, or a frame that one returned earlier: its receipt says when.
        lake: the lake, of the same games.
        metric: event_count, ad_impressions_count, revenue, ilrd_revenue, user_unique, paying_users, session_unique or
            new_users.
        by: a dimension of events.
        over: as in `query`. A frame brings its own.
        every: day, week, month or all. A frame brings its own.

    Raises:
        BadQuery: the metric cannot be recounted, *by* is not a dimension of events, or a frame has no receipt of it.
        NotYetAvailable: part of *over* is not in the lake, or not in the API.
    """
    if not isinstance(metric, str) or metric not in COUNTED_METRICS:
        raise BadQuery("metric", metric, "cannot be recounted from events: pass one name", COUNTED_METRICS)
    if by is not None and by not in EVENT_DIMENSIONS:
        raise BadQuery("by", by, "must be one dimension of events, or None", EVENT_DIMENSIONS)
    counted = COUNTED_METRICS[metric]
    client, frame, every = _other_answer(api, counted, by, over, every)
    receipt = Receipt.of(frame.attrs)
    interval = receipt.interval
    if interval is None or not interval:
        raise BadQuery("api", None, "has no receipt of its interval: pass a client, or a frame as `query` returned it")
    lake_frame = lake.query(metric, by=by, over=interval, every=every)
    # The moments at which the other answer may have been made, earliest first.
    cuts = sorted(read_moment(text) for text in {receipt.as_of, receipt.asked_at} if text)
    rows = read_event_rows(lake, counted, by, interval, cuts)
    compared = _compared((frame, lake_frame), rows, counted, by, interval, every)
    changes = possible_changes(cuts, interval)
    unjudged = _unjudged(counted, by, has_arrivals=rows.has_arrivals, has_client=client is not None)
    possible = [change for change in changes if change.cause not in unjudged]

    same_events = None
    if client is None or counted.kind != "distinct":
        found, effective = find_changes(compared.api, compared.recount, possible, compared.without_networks)
    else:  # Its events are asked for as well: they are counted exactly, so they tell the rules.
        other = COUNTED_METRICS["event_count"]
        frames = [source.query(other.name, by=by, over=interval, every=every) for source in (client, lake)]
        rows = read_event_rows(lake, other, by, interval, cuts)
        events = _compared(frames, rows, other, by, interval, every, also=compared.splits)
        of_events, effective = find_changes(events.api, events.recount, possible, events.without_networks)
        given = tuple(change for change in of_events if change.cause != causes.DIMENSION)
        of_players = [change for change in possible if change.cause == causes.DIMENSION]
        found, more = find_changes(compared.api, compared.recount, of_players, compared.without_networks, given=given)
        effective |= more
        expected = events.recount.cells(of_events)
        same_events = np.abs(events.api - expected) <= _SAME_EVENTS * expected
        same_events = same_events[:, [events.splits.index(value) for value in compared.splits]]

    amounts = shapley_amounts(compared.recount, found)
    rest = compared.api - compared.lake - sum(amounts.values(), np.zeros(compared.api.shape))
    if by == _NETWORK:
        amounts[causes.NETWORKS] = network_amounts(rest, compared.splits)
        rest = rest - amounts[causes.NETWORKS]
    if same_events is not None:
        is_near = np.abs(rest) <= np.maximum(1, MOST_ERROR * compared.recount.cells(found))
        amounts[causes.APPROXIMATE] = np.where(same_events & is_near, rest, 0.0)
    judgements = [
        Judgement(cause=cause, status="not judged", reason=unjudged[cause])
        if cause in unjudged
        else _judgement(cause, compared.recount, changes, found, effective, amounts.get(cause))
        for cause in causes.CAUSES
    ]
    return _result(metric, by, compared, judgements, (receipt, Receipt.of(lake_frame.attrs)))


def _other_answer(
    api: Client | DataFrame, counted: CountedMetric, by: str | None, over: TimeRange | None, every: Granularity
) -> tuple[Client | None, DataFrame, Granularity]:
    """Return the client, if there is one, its answer, and the buckets of that.

    Raises:
        BadQuery: *api* is neither a client nor a frame, or a frame of another query, or not a whole one.
    """
    if not isinstance(api, DataFrame):
        if isinstance(api, AsyncClient) or not hasattr(api, "query"):
            raise BadQuery("api", type(api).__name__, "must be a client or a frame from `connect` or `open_lake`")
        if over is None:
            raise BadQuery("over", over, "must be given, unless the first argument is a frame")
        return api, api.query(counted.name, by=by, over=over, every=every), every
    asked, is_complete = (receipt := Receipt.of(api.attrs)).asked, receipt.is_complete
    needed = {"timestamp", counted.name, *([by] if by else [])}
    if missing := sorted(needed - set(map(str, api.columns))):
        raise BadQuery("api", missing[0], "is not a column of the frame: query it with the same metric and `by`")
    if counted.name not in asked.metrics or set(asked.by) != ({by} if by else set()):
        raise BadQuery("api", asked.metric, f"is not {counted.name} by {by}: query the frame with both")
    if asked.where or asked.games or asked.studios or not is_complete:
        raise BadQuery("api", None, "is incomplete: query it without `where`, `games`, `studios` and `top`")
    return None, api, asked.every or every


@dataclass(frozen=True, eq=False, slots=True)
class _Compared:
    """Both answers as arrays by bucket and split, beside the recounts."""

    api: Floats
    lake: Floats
    splits: list[str | None]
    recount: Recount
    is_by_network: bool

    def without_networks(self, difference: Floats) -> Floats:
        """Return *difference* without what moves between networks, if the answers are split by them."""
        return difference - network_amounts(difference, self.splits) if self.is_by_network else difference


def _compared(
    frames: Sequence[DataFrame],
    rows: EventRows,
    counted: CountedMetric,
    by: str | None,
    interval: Interval,
    every: Granularity,
    *,
    also: Sequence[str | None] = (),
) -> _Compared:
    """Return the two *frames* side by side, 0 where one has no row; *also* are further values of the dimension."""
    values = [
        [None] * len(frame) if by is None else [None if pd.isna(value) else str(value) for value in frame[by]]
        for frame in frames
    ]
    named = {*values[0], *values[1], *rows.splits, *also}
    splits = sorted(named, key=lambda value: (value is None, value or ""))
    places = {value: place for place, value in enumerate(splits)}
    recount = Recount(rows, counted.kind, interval, every, splits)
    starts = pd.DatetimeIndex(recount.starts).as_unit("us")
    api, lake = np.zeros((2, *recount.shape))
    for cells, frame, its_values in zip((api, lake), frames, values, strict=True):
        bucket = starts.searchsorted(pd.DatetimeIndex(frame["timestamp"]).as_unit("us"), side="right") - 1
        split = np.array([places[value] for value in its_values], dtype=np.int64)
        numbers = frame[counted.name].astype("float64").fillna(0.0).to_numpy()
        np.add.at(cells, (np.maximum(bucket, 0), split), numbers)
    return _Compared(api, lake, splits, recount, by == _NETWORK)


def _unjudged(counted: CountedMetric, by: str | None, *, has_arrivals: bool, has_client: bool) -> dict[str, str]:
    """Return the causes that cannot be judged from the two answers, each with the reason."""
    reasons: dict[str, str] = {}
    if not has_arrivals:
        reasons |= dict.fromkeys(causes.OF_ARRIVALS, "the arrival times of the lake's events are not known")
    if by != _NETWORK:
        reasons[causes.NETWORKS] = f"the answers are not split by {_NETWORK}"
    if by is None:
        reasons[causes.DIMENSION] = "the answers are not split"
    elif by in EVENT_SPLITS:
        reasons[causes.DIMENSION] = f"{by} is a property of the event itself"
    elif counted.kind == "first":
        reasons[causes.DIMENSION] = "only one event counts for a new player"
    if counted.kind != "distinct":
        reasons[causes.APPROXIMATE] = f"{counted.name} is not a distinct count"
    elif not has_client:
        reasons[causes.APPROXIMATE] = "a frame has no event counts: pass the client"
    return reasons


def _judgement(
    cause: str,
    recount: Recount,
    possible: Sequence[RuleChange],
    found: Changes,
    effective: frozenset[str],
    amount: Floats | None,
) -> Judgement:
    """Return whether *cause* explains anything, with the events that its rule alone counts elsewhere, or no longer."""
    change = next((change for change in found if change.cause == cause), None)
    if change is not None:
        events, example = recount.moved(change)
        return Judgement(
            cause=cause, status="explains", reason=change.text, amount=amount, events=events, example=example
        )
    if amount is not None and amount.any():
        example = recount.starts[int(np.abs(amount).sum(axis=1).argmax())]
        return Judgement(cause=cause, status="explains", reason=_WITHOUT_RULE[cause], amount=amount, example=example)
    is_tried = cause in effective or cause in _WITHOUT_RULE
    reason = "does not fit the difference" if is_tried else "would change nothing here"
    rules = [change for change in possible if change.cause == cause]
    if len(rules) != 1:
        return Judgement(cause=cause, status="explains nothing", reason=reason)
    events, example = recount.moved(rules[0])
    return Judgement(cause=cause, status="explains nothing", reason=reason, events=events, example=example)


def _unit_of(metric: str) -> str:
    return "USD" if METRICS[metric].recipe == "money" else "count"


def _result(
    metric: str, by: str | None, compared: _Compared, judgements: Sequence[Judgement], receipts: Sequence[Receipt]
) -> Reconciliation:
    """Return the frame of the differences and the table of causes."""
    api, lake, starts, splits = compared.api, compared.lake, compared.recount.starts, compared.splits
    noise = _NO_DIFFERENCE * np.maximum(np.abs(api), np.abs(lake))
    difference = api - lake
    difference[np.abs(difference) <= noise] = 0
    amounts = {judged.cause: judged.amount for judged in judgements if judged.amount is not None}
    rest = difference - sum(amounts.values(), np.zeros(difference.shape))
    rest[np.abs(rest) <= noise] = 0
    amounts[UNEXPLAINED] = rest
    shown = (np.abs(api) + np.abs(lake)).ravel() > 0
    base = DataFrame({"timestamp": pd.to_datetime(np.repeat(np.array(starts), len(splits)), utc=True).as_unit("us")})
    if by is not None:
        base[by] = pd.Series([*splits] * len(starts), dtype="str")
    base = base.assign(api=api.ravel(), lake=lake.ravel(), difference=difference.ravel())
    gross = np.sum([np.abs(amount) for amount in amounts.values()], axis=0).ravel()
    parts = []
    for order, (cause, amount) in enumerate(amounts.items()):
        share = np.divide(np.abs(amount.ravel()), gross, out=np.full(len(gross), np.nan), where=gross > 0)
        rows = base.assign(cause=cause, amount=amount.ravel(), share=share, order=order, place=range(len(base)))
        parts.append(rows[shown & (cause == UNEXPLAINED) | (amount.ravel() != 0)])
    frame = pd.concat(parts).sort_values(["place", "order"]).drop(columns=["place", "order"])
    frame = frame.astype({"cause": "str"}).reset_index(drop=True)
    frame.attrs[RECEIPT] = merge_receipts(receipts).to_json()
    left = Judgement(cause=UNEXPLAINED, status="explains nothing", reason="nothing is left")
    total = float(sum(np.abs(amount).sum() for amount in amounts.values()))
    of_causes = []
    for judgement in (*judgements, left):
        amount = amounts.get(judgement.cause, np.zeros(1))
        is_shared = total > 0 and judgement.status != "not judged"
        of_causes.append(
            {
                "cause": judgement.cause,
                "status": judgement.status,
                "reason": judgement.reason,
                "amount": float(amount.sum()),
                "share": float(np.abs(amount).sum() / total) if is_shared else float("nan"),
                "events": judgement.events,
                "example": judgement.example,
                "unit": _unit_of(metric),
            }
        )
    table = DataFrame(of_causes)
    table["example"] = pd.to_datetime(table["example"], utc=True)
    table = as_declared(table, _CAUSES)
    table.attrs[RECEIPT] = frame.attrs[RECEIPT]
    about = {"rows": int(shown.sum()), "differ": int((difference.ravel()[shown] != 0).sum())}
    sums = {"api": float(api.sum()), "lake": float(lake.sum())}
    return Reconciliation(metric, frame, as_result(table, "raw_events.reconcile", {"metric": metric, **about, **sums}))
