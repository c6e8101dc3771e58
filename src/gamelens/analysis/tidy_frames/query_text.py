"""Text of a query as it is typed in a notebook, for errors that name the next step."""

from __future__ import annotations

import json
from types import EllipsisType
from typing import Any, Final

from gamelens.receipts import QueryRecord
from gamelens.wire.intervals import Interval

_USUAL_RANGE: Final = "last 28 complete days"
_USUAL_AGES: Final = (1, 3, 7, 14, 28)
_RETENTION: Final = "retention"


def query_text(record: QueryRecord, **more: Any) -> str:
    """Return the call of `Client.query` or `Client.retention` that *record* describes.

    Where the record lacks a time range, the call has the last 28 complete days. *more* are further arguments.
    """
    is_retention = record.metrics == (_RETENTION,)
    left_out = {"metric", "interval", "check", "formulas"}
    left_out |= {"since_days_ago", *(("every",) if record.every == "day" else ())} if is_retention else set()
    arguments: dict[str, Any] = {"days": (record.days or _USUAL_AGES) if is_retention else None}
    arguments |= {name: getattr(record, name) for name in record.__struct_fields__ if name not in {*left_out, "days"}}
    arguments |= {"by": record.by[0] if len(record.by) == 1 else record.by, "over": _over(record), **more}
    if is_retention:
        return call_text("lens.retention", **arguments)
    metric = record.metrics[0] if len(record.metrics) == 1 else record.metrics
    return call_text("lens.query", metric or ..., **arguments)


def call_text(function: str, *first: Any, **arguments: Any) -> str:
    """Return the call of *function*, without arguments that are empty, None or False."""
    named = [f"{name}={literal(value)}" for name, value in arguments.items() if value]
    return f"{function}({', '.join([*map(literal, first), *named])})"


def interval_text(interval: Interval) -> str:
    """Return *interval* as an argument `over`: two days if it begins and ends at midnight."""
    texts = str(interval).split("/")
    days = [text.removesuffix("T00:00Z") for text in texts]
    return "/".join(days if all(len(day) == len("2026-11-01") for day in days) else texts)


def _over(record: QueryRecord) -> str:
    """Return the time range as it was given.

    Of a pair of days the record has words that no query takes, so it is given as interval.
    """
    is_pair = record.over is not None and " to " in record.over and not record.over.endswith("to date")
    if record.over is not None and not (is_pair and record.interval):
        return record.over
    return interval_text(Interval.parse(record.interval)) if record.interval else _USUAL_RANGE


def literal(value: Any) -> str:
    """Return *value* as a Python literal with double quotes, a tuple as a list."""
    match value:
        case EllipsisType():
            return "..."
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple() | list():
            return f"[{', '.join(map(literal, value))}]"
        case dict():
            return "{" + ", ".join(f"{literal(name)}: {literal(member)}" for name, member in value.items()) + "}"
    return repr(value)
