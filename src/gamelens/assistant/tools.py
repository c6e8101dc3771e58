"""The tools that a model calls, which reads their docstrings and types.

They ask the client and hand its frames to `answers`. Errors of gamelens pass through, and `assistant_server` makes
refusals of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.assistant.answers import DATA, answer, fitting, rows_of, short
from gamelens.assistant.call_records import CallRecords, ToolCall
from gamelens.catalog import DIMENSIONS
from gamelens.client.query.description import TITLE_DIMENSIONS
from gamelens.errors import BadQuery
from gamelens.investigations.health_check import HISTORY, check_health, planned_requests
from gamelens.receipt_text import explain as receipt_text
from gamelens.receipts import Receipt

if TYPE_CHECKING:
    from gamelens.client.checks.setup_checks import CheckResult
    from gamelens.client.sync_client import Client

MOST_REQUESTS: Final = 10
"""Requests of a question that is answered without showing its plan first."""

NameList = str | list[str]
Every = Literal["day", "week", "month", "all"]
Unavailable = Literal["raise", "clip"]
_MOST_ALARMS: Final = 20


class AnalystTools:
    """The tools over one client.

    Args:
        lens: the client, whose pace and cache all kernels of this machine share.
        findings: yields what `gamelens doctor` finds.
        most_requests: requests of a question that is answered without showing its plan first.
    """

    def __init__(
        self, lens: Client, findings: Callable[[], Iterable[CheckResult]], *, most_requests: int = MOST_REQUESTS
    ) -> None:
        self._lens, self._findings, self._most_requests = lens, findings, most_requests
        self.receipts = CallRecords("receipt")
        self._plans = CallRecords("plan")

    def catalogue(
        self,
        of: Literal["metrics", "dimensions", "games", "available", "values"] = "metrics",
        name: str | None = None,
    ) -> str:
        """List what can be asked.

        metrics, dimensions (with name: the whole definition, unit, fields, what may be added up), games, the available
        interval, or the values of the dimension name.
        """
        if of in ("metrics", "dimensions") and name is not None:
            return _json({"definition": msgspec.to_builtins(self._lens.describe(name))})
        match of:
            case "metrics":
                listed = {metric.name: metric.meaning for metric in self._lens.metric_catalog.metrics.values()}
            case "dimensions":
                listed = TITLE_DIMENSIONS | {dimension.name: dimension.meaning for dimension in DIMENSIONS.values()}
            case "available":
                return _json({"available": str(self._lens.available()), "time_zone": "UTC"})
            case "games":
                games = self._lens.games()
                shown = fitting(rows_of(games))
                left_out = len(games) - len(shown)
                return _json({"columns": [*games.columns], "rows": shown, "rows_left_out": left_out, "data": DATA})
            case "values":
                values = self._lens.dimension_values(name or "")
                shown = fitting([short(value) for value in values])
                return _json({"values": shown, "values_left_out": len(values) - len(shown), "data": DATA})
        return _json(listed)

    def plan(
        self,
        metric: NameList,
        over: str,
        by: NameList | None = None,
        every: Every | None = None,
        where: str | None = None,
        top: int | None = None,
        when_unavailable: Unavailable | None = None,
    ) -> str:
        """Return what query with the same arguments would cost, without asking."""
        call = _query_call(metric, over, by, every, where, top, when_unavailable)
        plan = self._lens.plan(**call.arguments)
        return _json(self._planned(call, plan.requests, seconds=plan.seconds, cached_share=plan.cached_share))

    def query(
        self,
        metric: NameList,
        over: str,
        by: NameList | None = None,
        every: Every | None = None,
        where: str | None = None,
        top: int | None = None,
        when_unavailable: Unavailable | None = None,
        plan_id: str | None = None,
    ) -> str:
        """Return a metric, or several side by side, with its receipt.

        over: "last 7 complete days", "yesterday", "last week", "November 2026", or an ISO 8601 interval, end excluded.
        by: dimensions, `game` and `studio` among them. every: the bucket; `all` is one number for the whole time.
        where: such as 'platform == "ios" and country_code in ["US", "CA"]'. top: the largest rows of each bucket.
        """
        call = _query_call(metric, over, by, every, where, top, when_unavailable)
        plan = self._lens.plan(**call.arguments)
        estimate = {"seconds": plan.seconds, "cached_share": plan.cached_share}
        if unasked := self._needs_plan(call, plan_id, plan.requests, **estimate):
            return _json(unasked)
        return _json(self._answered(call, self._lens.query(**call.arguments, on_error="gaps", progress=False)))

    def retention(
        self,
        days: list[int],
        over: str,
        by: NameList | None = None,
        where: str | None = None,
        when_unavailable: Unavailable | None = None,
        plan_id: str | None = None,
    ) -> str:
        """Return the share of new players who come back.

        over: their install days. days: the ages, such as [1, 7, 28].
        """
        given = {"days": days, "over": over, "by": by, "where": where, "when_unavailable": when_unavailable}
        call = ToolCall.of("retention", given)
        if unasked := self._needs_plan(call, plan_id, self._retention_requests(call, _listed(by), ages=len(days))):
            return _json(unasked)
        return _json(self._answered(call, self._lens.retention(**call.arguments, on_error="gaps", progress=False)))

    def health(
        self,
        games: list[str] | None = None,
        metrics: list[str] | None = None,
        over: str = HISTORY,
        plan_id: str | None = None,
    ) -> str:
        """Compare the last day of each game and metric with its usual weekday.

        Alarms come first, with the segments behind them. over: the history, whose last day is judged.
        """
        call = ToolCall.of("health", {"games": games, "metrics": metrics, "over": over})
        if unasked := self._needs_plan(call, plan_id, planned_requests(self._lens, **call.arguments)):
            return _json(unasked)
        report = check_health(self._lens, **call.arguments)
        explained = [{"alarm": alarm, "segments": parts} for alarm, parts in report.explained()[:_MOST_ALARMS]]
        found = self._answered(call, report.table(report.board), like=report.board, note=report.headline)
        return _json({"headline": report.headline, "alarms": explained, **found})

    def compare(
        self,
        day: int,
        over: str,
        arm: str,
        control: str | None = None,
        by: NameList | None = None,
        where: str | None = None,
        plan_id: str | None = None,
    ) -> str:
        """Compare retention of variants, builds or platforms with a control.

        day: days after install. arm: the dimension, such as first_build; control: its value. Compared within install
        days and the dimensions in by, with intervals and corrected p-values.
        """
        given = {"day": day, "over": over, "arm": arm, "control": control, "by": by, "where": where}
        call, split = ToolCall.of("compare", given), [*_listed(by), arm]
        if unasked := self._needs_plan(call, plan_id, self._retention_requests(call, split, ages=1)):
            return _json(unasked)
        frame = self._lens.retention([day], over=over, by=split, where=where, on_error="gaps", progress=False)
        compared = experiments.compare(frame, arm=arm, control=control, by=_listed(by) or None)
        return _json(self._answered(call, compared))

    def explain(self, receipt_id: str, ask_again: bool = False) -> str:
        """Return a receipt in words.

        ask_again: ask the identical question, over the same days, once more.
        """
        call, receipt = self.receipts.get(receipt_id)
        if not ask_again and receipt is not None:
            words = receipt_text(receipt)
            return _json({"receipt": receipt_id, "call": msgspec.to_builtins(call), "words": words, "data": DATA})
        return str(getattr(self, call.tool)(**call.arguments, plan_id=self._plans.add(call)))

    def doctor(self) -> str:
        """Check settings, key, clock, service, rate and cache, when calls fail."""
        findings = [msgspec.to_builtins(finding) for finding in self._findings()]
        return _json([{name: short(text) for name, text in finding.items() if text} for finding in findings])

    def _answered(
        self, call: ToolCall, frame: DataFrame, *, like: DataFrame | None = None, note: str = ""
    ) -> dict[str, Any]:
        """Return the answer to *call*, with the receipt of *like* or of *frame*."""
        receipt = Receipt.of((frame if like is None else like).attrs)
        if receipt.interval is not None:
            call = ToolCall(call.tool, call.arguments | {"over": str(receipt.interval)})
        return answer(frame, receipt, receipt_id=self.receipts.add(call, receipt), note=note)

    def _needs_plan(
        self, call: ToolCall, plan_id: str | None, requests: int, **estimate: float
    ) -> dict[str, Any] | None:
        """Return the plan if *call* takes too many *requests* to be answered without a *plan_id*.

        Raises:
            BadQuery: *plan_id* belongs to another call, or to none.
        """
        if plan_id is not None:
            if self._plans.get(plan_id)[0] != call:
                raise BadQuery("plan_id", plan_id, "is the plan of another question: request the plan of this one")
            return None
        if requests <= self._most_requests:
            return None
        note = f"nothing was requested: this takes more than {self._most_requests} requests. Ask again with plan_id"
        return {"note": note} | self._planned(call, requests, **estimate)

    def _planned(self, call: ToolCall, requests: int, **estimate: float) -> dict[str, Any]:
        return {"plan_id": self._plans.add(call), "requests": requests, **estimate}

    def _retention_requests(self, call: ToolCall, split: list[str], *, ages: int) -> int:
        """Return the requests for the installs of *call*, and as many again for each age."""
        over = call.arguments["over"]
        installs = self._lens.plan("new_users", over=over, by=[*split, "game_id"], when_unavailable="clip")
        return installs.requests * (ages + 1)


def _query_call(
    metric: NameList,
    over: str,
    by: NameList | None,
    every: Every | None,
    where: str | None,
    top: int | None,
    when_unavailable: Unavailable | None,
) -> ToolCall:
    given = {"metric": metric, "over": over, "by": by, "every": every, "where": where, "top": top}
    return ToolCall.of("query", {**given, "when_unavailable": when_unavailable})


def _listed(names: NameList | None) -> list[str]:
    return [names] if isinstance(names, str) else names or []


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
