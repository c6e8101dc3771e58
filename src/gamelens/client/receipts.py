"""The receipt of a frame: what was asked, when, and how the answer came about. Plain JSON in `df.attrs["gamelens"]`.

It never holds a key, and it survives parquet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from gamelens.client.planning import Question
from gamelens.client.spans import Over, Span
from gamelens.client.transport import Tally
from gamelens.wire.filters import wire_filter
from gamelens.wire.receipts import Receipt, package_version


def asked(question: Question, over: Over, **more: Any) -> dict[str, Any]:
    """The question as JSON: the arguments as they were given, *over* as text."""
    return {
        "metric": list(question.metrics) if len(question.metrics) > 1 else question.metrics[0],
        "by": list(question.by),
        "over": over_text(over),
        "every": question.every,
        "where": wire_filter(question.where) if question.where is not None else None,
        "top": question.top,
        "games": _listed(question.games),
        "studios": _listed(question.studios),
        "since_days_ago": question.since_days_ago,
        **({"other": True} if question.other else {}),
        **({"check": True} if question.check else {}),
        **more,
    }


def receipt(
    asked: dict[str, Any],
    *,
    asked_at: datetime,
    span: Span,
    tally: Tally,
    cached_share: float,
    gaps: Sequence[dict[str, Any]],
    is_truncated: bool,
    warnings: Sequence[str],
    titles: Collection[str] = (),
) -> Receipt:
    """The receipt.

    `clipped` is null, or the part of the interval that was asked; `truncated` is true when `top` left values out or
    may have; `requests` counts all requests for this question, repeats (`retries`) and lists of titles included, the
    hourly availability call not; `cached_share` is the share of the buckets that needed no request; a gap is what did
    not come: `{"metric", "interval", "scope", "error"}`. Where titles were looked up, `titles` are those of all games
    that sent something then, asked for or not.
    """
    return {
        "asked": {**asked, "interval": str(span.asked)},
        "asked_at": asked_at.astimezone(UTC).isoformat(timespec="seconds"),
        "as_of": span.available.end.isoformat(),
        "available": str(span.available),
        "requests": tally.requests,
        "retries": tally.retries,
        "cached_share": round(cached_share, 4),
        "gaps": list(gaps),
        "clipped": str(span.kept) if span.kept != span.asked else None,
        "truncated": is_truncated,
        "warnings": list(warnings),
        **({"titles": sorted(titles)} if titles else {}),
        "version": package_version(),
    }


def over_text(over: Over) -> str:
    """*over* as text: a pair of dates with "to" between them."""
    if isinstance(over, (tuple, list)):
        return " to ".join(str(day) for day in over)
    return str(over)


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)
