"""Fault injection: rules that delay, refuse, cut or suppress responses.

Wire 5.3, Fault rules. The rules stand between the connection and a service, which does not
know them. Without rules they cost one look at an empty list.
"""

from __future__ import annotations

import asyncio
import math
import random as randomness
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import msgspec

from gamelens.errors import BadQuery
from gamelens.sandbox.http.http_server import hang_up
from gamelens.sandbox.http.responses import refuse

Service = Literal["metrics", "collector"]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[AsgiMessage, Receive, Send], Awaitable[None]]

NO_ANSWER: Final = 0
_MAX_LATENCY_S: Final = 600
_SERVICES: Final = ("metrics", "collector")


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """One fault rule: the requests it fits, how often it strikes, and its effect.

    Attributes:
        service: `metrics` or `collector`.
        route: a glob of the path.
        status: answered in place of the service; 0 closes the connection without a response, None lets the service
            answer.
        retry_after: seconds of the header `Retry-After`.
        probability: of a strike, 0 to 1.
        latency_s: seconds before anything else happens.
        cut_body: send half of the response, the service's or the rule's, and close the connection. A response without
            a body is not sent at all.
        times: strikes after which the rule is used up; None for no end.
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
    """Read a rule from the fields of a request. Null is the same as absent.

    Raises:
        BadQuery: a field has a value that is not allowed, or the rule would do nothing.
    """
    fields = {name: value for name, value in order.items() if value is not None}
    for name, value in fields.items():
        if name not in _FIELDS:
            raise BadQuery(name, value, "is not part of a fault rule", _FIELDS, name=name)
        is_allowed, must = _FIELDS[name]
        if not is_allowed(value):
            raise BadQuery(name, value, must, _SERVICES if name == "service" else ())
    if "service" not in fields:
        raise BadQuery("service", msgspec.UNSET, "must name the service that fails", _SERVICES)
    rule = msgspec.convert(fields, FaultRule)
    if rule.status is None and not rule.latency_s and not rule.cut_body:
        raise BadQuery("status", msgspec.UNSET, "must be set, or latency_s or cut_body: this rule would do nothing")
    if rule.retry_after is not None and not rule.status:
        raise BadQuery("retry_after", rule.retry_after, "needs a status")
    if rule.cut_body and rule.status == NO_ANSWER:
        raise BadQuery("cut_body", True, "has nothing to cut: status 0 sends no answer")
    return rule


class FaultInjector:
    """The rules in force, in the order in which they were added.

    The first rule for a request's service and route that has strikes left decides, by its probability, whether the
    request fails. Later rules are not considered.
    """

    def __init__(
        self,
        *,
        random: Callable[[], float] = randomness.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._random = random
        self._sleep = sleep
        self._rules: list[_CountedRule] = []

    def add(self, rule: FaultRule) -> dict[str, Any]:
        """Append *rule* and return it as `listed` shows it."""
        self._rules.append(_CountedRule(rule))
        return self._rules[-1].described()

    def listed(self) -> list[dict[str, Any]]:
        """Return every rule, each with the number of its strikes."""
        return [counted.described() for counted in self._rules]

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()

    def around(self, service: Service, app: App) -> App:
        """Wrap *app* so that the rules for *service* apply to its requests."""

        async def faulted(scope: AsgiMessage, receive: Receive, send: Send) -> None:
            rule = self._strike(service, scope["path"]) if self._rules and scope["type"] == "http" else None
            if rule is None:
                await app(scope, receive, send)
                return
            if rule.latency_s:
                await self._sleep(rule.latency_s)
            if rule.status == NO_ANSWER:
                await hang_up(scope, receive)
                return
            responder = app
            if rule.status is not None:
                headers = {"Access-Control-Allow-Origin": "*"} if service == "collector" else {}
                if rule.retry_after is not None:
                    headers["Retry-After"] = str(rule.retry_after)
                responder = refuse(rule.status, "answered by a fault rule of this sandbox", headers)
            if rule.cut_body:
                await _cut_response(responder, scope, receive, send)
            else:
                await responder(scope, receive, send)

        return faulted

    def _strike(self, service: Service, path: str) -> FaultRule | None:
        """Return the rule by which a request fails, and count its strike."""
        for counted in self._rules:
            rule = counted.rule
            is_left = rule.times is None or counted.strikes < rule.times
            if rule.service == service and is_left and fnmatchcase(path, rule.route):
                if self._random() >= rule.probability:
                    return None
                counted.strikes += 1
                return rule
        return None


@dataclass
class _CountedRule:
    """A rule and the number of its strikes."""

    rule: FaultRule
    strikes: int = 0

    def described(self) -> dict[str, Any]:
        return {**msgspec.structs.asdict(self.rule), "struck": self.strikes}


async def _cut_response(app: App, scope: AsgiMessage, receive: Receive, send: Send) -> None:
    """Let *app* answer in full, send half of the body and close the connection."""
    messages: list[AsgiMessage] = []

    async def collect(message: AsgiMessage) -> None:
        messages.append(message)

    await app(scope, receive, collect)
    start, *parts = messages
    body = b"".join(part.get("body", b"") for part in parts)
    if body:
        await send(start)
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    await hang_up(scope, receive)


def _is_integer(value: object, least: int, most: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


_FIELDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "service": (lambda value: value in _SERVICES, "is not a service"),
    "route": (lambda value: isinstance(value, str) and value != "", "must be a path, * for anything"),
    "status": (
        lambda value: _is_integer(value, 0, 0) or _is_integer(value, 400, 599),
        "must be 400 to 599, or 0 for no answer",
    ),
    "retry_after": (lambda value: _is_integer(value, 0), "must be whole seconds"),
    "probability": (lambda value: _is_number(value, 1), "must be 0 to 1"),
    "latency_s": (lambda value: _is_number(value, _MAX_LATENCY_S), f"must be 0 to {_MAX_LATENCY_S} seconds"),
    "cut_body": (lambda value: isinstance(value, bool), "must be true or false"),
    "times": (lambda value: _is_integer(value, 1), "must be a whole number, 1 or more"),
}
