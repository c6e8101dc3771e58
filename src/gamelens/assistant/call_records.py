"""The calls of a session that can be repeated: answers by receipt id, plans by plan id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gamelens.errors import BadQuery
from gamelens.receipts import Receipt

_MOST: Final = 200


class ToolCall(msgspec.Struct, frozen=True):
    """One call: the name of the tool and its arguments, without those that are None."""

    tool: str
    arguments: dict[str, Any]

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Return a call without the arguments that say nothing."""
        return cls(tool, {name: value for name, value in arguments.items() if value is not None})

    def to_text(self) -> str:
        """Return the call as Python writes it, the form in which errors correct it."""
        return f"{self.tool}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class CallRecords:
    """The last calls by id, the hash of a call, and the receipts of their answers."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._records: dict[str, tuple[ToolCall, Receipt | None]] = {}

    def add(self, call: ToolCall, receipt: Receipt | None = None) -> str:
        """Record *call* and return its id."""
        digest = hashlib.sha256(msgspec.json.encode(call, order="sorted")).hexdigest()[:12]
        name = f"{self._kind}-{digest}"
        self._records.pop(name, None)
        self._records[name] = call, receipt
        while len(self._records) > _MOST:
            del self._records[next(iter(self._records))]
        return name

    def get(self, name: str) -> tuple[ToolCall, Receipt | None]:
        """Return the call with the id *name* and the receipt of its answer.

        Raises:
            BadQuery: this session has no such id.
        """
        if name not in self._records:
            raise BadQuery(f"{self._kind}_id", name, "is not known in this session: run the query again")
        return self._records[name]

    def newest(self) -> dict[str, ToolCall]:
        """Return the known calls by id, newest first."""
        return {name: call for name, (call, _) in reversed(self._records.items())}
