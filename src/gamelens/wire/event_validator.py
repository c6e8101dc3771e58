"""Which events are good, by a lenient rulebook and by a strict one (Wire 1.8, Rejected events).

The rules are in `fields`; how a rule is read, fast or in full, is in `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal, Union

import msgspec

from gamelens.wire.event_schema import CATEGORIES, event_rule
from gamelens.wire.field_rules import FieldRule, Violation, struct_of, violations_of

Validation = Literal["lenient", "strict"]

MOST_FAULTS: Final = 100
"""How many faults of one event are told; a lenient event cannot have as many."""


class RejectedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event that was not collected, as it was sent, and the rules it breaks.

    *event* is any JSON, or `msgspec.Raw` where it is passed on as it was sent; None where nothing could be read.
    """

    event: Any = None
    errors: list[Violation]


class EventValidator:
    """The rules of every category, and both ways to hold events to them.

    The lenient one accepts and keeps fields, platforms and versions it does not know. The strict one refuses what the
    documentation does not list (Wire 3.7, Strict validation).
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._rules = {category: event_rule(category, is_strict=is_strict) for category in CATEGORIES}
        self._of_unknown = event_rule("", is_strict=is_strict)

    def rule(self, category: object) -> FieldRule:
        """The rule of a whole event of *category*; of one that is unknown, what all events have in common."""
        return self._rules.get(category, self._of_unknown) if isinstance(category, str) else self._of_unknown

    def decode(self, body: bytes) -> list[Any]:
        """The events of *body*, one typed struct each.

        Raises:
            msgspec.DecodeError: not JSON, not an array, or at least one event is bad; ask `faults` what is wrong.
        """
        events: list[Any] = self._decoder.decode(body)
        return events

    def faults(self, event: object) -> list[Violation]:
        """What is wrong with one decoded *event*; empty when it is good (Wire 1.9, Error types)."""
        category = event.get("category") if isinstance(event, Mapping) else None
        return list(islice(violations_of(event, self.rule(category)), MOST_FAULTS))

    @cached_property
    def types(self) -> tuple[type[msgspec.Struct], ...]:
        """The struct of each category, which accepts what its rule does."""
        return tuple(struct_of(category, rule, tag_field="category") for category, rule in self._rules.items())

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(list[Union[self.types]])  # type: ignore[name-defined]  # noqa: UP007


LENIENT: Final = EventValidator(is_strict=False)
STRICT: Final = EventValidator(is_strict=True)
VALIDATORS: Final[Mapping[Validation, EventValidator]] = {"lenient": LENIENT, "strict": STRICT}
