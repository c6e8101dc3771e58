"""Failures on demand: rules that make either service slow, refuse, cut its answers short or not answer at all.

A client is only as good as the failures it has met. The rules stand between the connection and the service, which
knows nothing of them; with no rules they cost one look at an empty list.
"""

from __future__ import annotations

import asyncio
import math
import random as randomness
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import msgspec

from gamelens.errors import BadQuery
from gamelens.sandbox.http.http_connection import hang_up
from gamelens.sandbox.http.responses import refuse

Service = Literal["metrics", "collector"]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

NO_ANSWER: Final = 0
_LONGEST_S: Final = 600
_SERVICES: Final = ("metrics", "collector")


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """One fault (contract, Control surface): where it strikes, how often, and what it does then.

    *route* is a glob of the path. *latency_s* passes first. *status* is answered in place of the service, 0 closes the
    connection without an answer, None lets the service answer. *cut_body* sends half of the answer, the service's or
    the rule's, and closes the connection; an answer without a body is not sent at all. *times* is how often it strikes,
    None for ever.
    """

    service: Service
    route: str = "*"
    status: int | None = None
    retry_after: int | None = None
    probability: float = 1.0
    latency_s: float = 0.0
    cut_body: bool = False
    times: int | None = None


def read_rule(order: Mapping[str, Any]) -> FaultRule:
    """The rule that *order* describes; null is as good as leaving a field out.

    Raises:
        BadQuery: a field has a value that is not allowed, or the rule would do nothing.
    """
    given = {name: value for name, value in order.items() if value is not None}
    for name, value in given.items():
        if name not in _FIELDS:
            raise BadQuery(name, value, "is not part of a fault rule", _FIELDS, name=name)
        is_allowed, must = _FIELDS[name]
        if not is_allowed(value):
            raise BadQuery(name, value, must, _SERVICES if name == "service" else ())
    if "service" not in given:
        raise BadQuery("service", None, "must say whose fault it is", _SERVICES)
    rule = msgspec.convert(given, FaultRule)
    if rule.status is None and not rule.latency_s and not rule.cut_body:
        raise BadQuery("status", None, "must be given, or latency_s, or cut_body: this rule would do nothing")
    if rule.retry_after is not None and not rule.status:
        raise BadQuery("retry_after", rule.retry_after, "needs a status to go with")
    if rule.cut_body and rule.status == NO_ANSWER:
        raise BadQuery("cut_body", True, "has nothing to cut: status 0 sends no answer")
    return rule


class FaultInjector:
    """The rules in force, in the order they were given.

    The first rule for a request's service and route that has strikes left decides, by its probability, whether the
    request fails; later rules are not asked.
    """

    def __init__(
        self,
        *,
        random: Callable[[], float] = randomness.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._random = random
        self._sleep = sleep
        self._rules: list[_Counted] = []

    def add(self, rule: FaultRule) -> dict[str, Any]:
        """Put *rule* behind the others; it, as `listed` shows it."""
        self._rules.append(_Counted(rule))
        return self._rules[-1].described()

    def listed(self) -> list[dict[str, Any]]:
        """Every rule, and how often it has struck."""
        return [counted.described() for counted in self._rules]

    def clear(self) -> None:
        """No faults any more."""
        self._rules.clear()

    def around(self, service: Service, app: App) -> App:
        """*app*, with the faults of *service* in front."""

        async def faulted(scope: Message, receive: Receive, send: Send) -> None:
            rule = self._struck(service, scope["path"]) if self._rules and scope["type"] == "http" else None
            if rule is None:
                await app(scope, receive, send)
            else:
                await self._strike(rule, app, scope, receive, send)

        return faulted

    def _struck(self, service: Service, path: str) -> FaultRule | None:
        for counted in self._rules:
            if counted.rule.service == service and counted.is_left and fnmatchcase(path, counted.rule.route):
                return counted.struck() if self._random() < counted.rule.probability else None
        return None

    async def _strike(self, rule: FaultRule, app: App, scope: Message, receive: Receive, send: Send) -> None:
        if rule.latency_s:
            await self._sleep(rule.latency_s)
        if rule.status == NO_ANSWER:
            await hang_up(scope, receive)
            return
        answering = app if rule.status is None else _refusal(rule)
        if rule.cut_body:
            await _cut(answering, scope, receive, send)
        else:
            await answering(scope, receive, send)


class _Counted:
    """A rule and how often it has struck."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self._strikes = 0

    @property
    def is_left(self) -> bool:
        return self.rule.times is None or self._strikes < self.rule.times

    def struck(self) -> FaultRule:
        self._strikes += 1
        return self.rule

    def described(self) -> dict[str, Any]:
        return {**msgspec.structs.asdict(self.rule), "struck": self._strikes}


def _refusal(rule: FaultRule) -> App:
    headers = {"Access-Control-Allow-Origin": "*"} if rule.service == "collector" else {}
    if rule.retry_after is not None:
        headers["Retry-After"] = str(rule.retry_after)
    return refuse(rule.status or 500, "a fault rule of this sandbox says so", headers)


async def _cut(app: App, scope: Message, receive: Receive, send: Send) -> None:
    """Let *app* answer in full, pass on half."""
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, keep)
    start, *parts = messages
    body = b"".join(part.get("body", b"") for part in parts)
    if body:
        await send(start)
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    await hang_up(scope, receive)


def _is_whole(value: object, least: int, most: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


_FIELDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "service": (lambda value: value in _SERVICES, "is not a service"),
    "route": (lambda value: isinstance(value, str) and value != "", "must be a path, * for anything"),
    "status": (
        lambda value: _is_whole(value, 0, 0) or _is_whole(value, 400, 599),
        "must be 400 to 599, or 0 for no answer",
    ),
    "retry_after": (lambda value: _is_whole(value, 0), "must be whole seconds"),
    "probability": (lambda value: _is_number(value, 1), "must be 0 to 1"),
    "latency_s": (lambda value: _is_number(value, _LONGEST_S), f"must be 0 to {_LONGEST_S} seconds"),
    "cut_body": (lambda value: isinstance(value, bool), "must be true or false"),
    "times": (lambda value: _is_whole(value, 1), "must be a whole number, 1 or more"),
}
