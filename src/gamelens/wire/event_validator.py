"""Validators of events, a lenient and a strict one (Wire 1.8, Rejected events).

`event_field_rules` has the rules of every category; `rule_checking` reads them, fast or in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal, Union, get_args

import msgspec

from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.event_field_rules import CATEGORIES, event_rule
from gamelens.wire.rule_checking import FieldRule, Violation, struct_of, violations_of

Validation = Literal["lenient", "strict"]
RequestPart = Literal["events", "headers", "init"]

MOST_VIOLATIONS: Final = 100
"""Most violations reported of one event, more than the lenient rules can find."""


def strict_parts(validation: str) -> frozenset[RequestPart]:
    """Return the parts of requests that *validation* judges strictly (Wire 3.7, Strict validation).

    It is `lenient`, `strict`, or names of parts joined by commas.

    Raises:
        BadQuery: it is something else.
    """
    if validation in get_args(Validation):
        return frozenset(get_args(RequestPart) if validation == "strict" else ())
    parts = [part.strip() for part in validation.split(",")]
    for part in parts:
        if part not in get_args(RequestPart):
            rule = "is neither lenient nor strict, nor a list of the parts to judge strictly"
            raise BadQuery("validation", part, rule, (*get_args(Validation), *get_args(RequestPart)))
    return frozenset(parts)  # type: ignore[arg-type]


@suggests_names
class RejectedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event that was not collected, and the rules it breaks.

    Attributes:
        event: the event, any JSON, or `msgspec.Raw` to pass it on byte for byte; None if nothing could be read.
        errors: the broken rules.
    """

    event: Any = None
    errors: list[Violation]


class EventValidator:
    """The rules of every category, with a fast check of whole bodies and a full one of events.

    The lenient validator accepts and keeps fields, platforms and versions it does not know. The strict one refuses what
    the event documentation does not list (Wire 3.7, Strict validation).
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._rules = {category: event_rule(category, is_strict=is_strict) for category in CATEGORIES}
        self._unknown_category = event_rule("", is_strict=is_strict)

    def rule(self, category: object) -> FieldRule:
        """Return the rule of a whole event of *category*, the common fields if it is unknown."""
        return (
            self._rules.get(category, self._unknown_category) if isinstance(category, str) else self._unknown_category
        )

    def decode(self, body: bytes) -> list[Any]:
        """Decode *body* into one typed struct per event.

        Raises:
            msgspec.DecodeError: the body is not JSON or no array, or an event is bad (see `violations`).
        """
        events: list[Any] = self._decoder.decode(body)
        return events

    def violations(self, event: object) -> list[Violation]:
        """Return the broken rules of one decoded *event*, at most 100 (Wire 1.9, Error types)."""
        category = event.get("category") if isinstance(event, Mapping) else None
        return list(islice(violations_of(event, self.rule(category)), MOST_VIOLATIONS))

    @cached_property
    def types(self) -> tuple[type[msgspec.Struct], ...]:
        """The struct of each category, which accepts exactly what its rule accepts."""
        return tuple(struct_of(category, rule, tag_field="category") for category, rule in self._rules.items())

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(list[Union[self.types]])  # type: ignore[name-defined]  # noqa: UP007


LENIENT: Final = EventValidator(is_strict=False)
STRICT: Final = EventValidator(is_strict=True)
VALIDATORS: Final[Mapping[Validation, EventValidator]] = {"lenient": LENIENT, "strict": STRICT}
