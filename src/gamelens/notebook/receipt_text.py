"""The receipt of a frame in words, in full or as the source line of a figure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pandas import DataFrame, Timestamp

from gamelens._text import one_line
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Interval, bucket_start
from gamelens.wire.receipts import RECEIPT

Receipt = dict[str, Any]


def receipt_of(frame: DataFrame) -> Receipt:
    """Return the receipt of *frame*.

    Raises:
        BadQuery: it has none.
    """
    receipt = frame.attrs.get(RECEIPT)
    if not receipt:
        raise BadQuery(
            "frame",
            [str(name) for name in frame.columns],
            "has no receipt: it did not come from query() or retention(), or lost attrs on the way",
        )
    return dict(receipt)


def explain(receipt: Receipt) -> str:
    """Return the query, the answer and everything that is missing, one line for each."""
    return "\n".join(one_line(line) for line in (_question(receipt), _answer(receipt), *_reserves(receipt)) if line)


def source_line(frame: DataFrame) -> str:
    """Return the line under a figure, its source and date. Empty without a receipt."""
    receipt = frame.attrs.get(RECEIPT) or {}
    asked = receipt.get("asked") or {}
    parts = [
        f"Source: gamelens {receipt['version']}" if receipt.get("version") else "Source: gamelens",
        str(asked.get("over") or ""),
        f"data as of {_moment(receipt.get('as_of'))}" if receipt.get("as_of") else "",
        "cut to what is available" if receipt.get("clipped") else "",
        f"top {asked['top']} only" if receipt.get("truncated") and asked.get("top") else "",
        "with gaps" if receipt.get("gaps") else "",
    ]
    return " · ".join(part for part in parts if part) if receipt else ""


def unfinished(frame: DataFrame) -> set[Timestamp]:
    """Return the buckets of *frame* that the query or the data covers only in part.

    Empty when the receipt does not say.
    """
    cut = _cut(frame.attrs.get(RECEIPT) or {})
    return {Timestamp(moment) for moment in cut} & set(frame["timestamp"]) if "timestamp" in frame else set()


def _cut(receipt: Receipt) -> list[datetime]:
    """Return the starts of the buckets that lie only in part in the queried interval."""
    asked = receipt.get("asked") or {}
    every, known = asked.get("every"), receipt.get("clipped") or asked.get("interval") or receipt.get("available")
    if every not in ("day", "week", "month") or not isinstance(known, str):
        return []
    span = Interval.parse(known)
    edges = {moment: bucket_start(moment, every) for moment in (span.start, span.end)}
    return sorted({start for moment, start in edges.items() if start != moment})


def _question(receipt: Receipt) -> str:
    asked = receipt.get("asked") or {}
    by, every = _names(asked.get("by")), asked.get("every")
    narrowed = [f"{key} {_names(asked.get(key))}" for key in ("games", "studios") if asked.get(key)]
    parts = [
        f"Asked for {_names(asked.get('metric')) or 'nothing in particular'}",
        f" {_names(map(str, asked['days']))} days after install" if asked.get("days") else "",
        f" {asked['since_days_ago']} days after install" if asked.get("since_days_ago") else "",
        f" by {by}" if by else "",
        f" over {asked['over']}" if asked.get("over") else "",
        f", in one bucket for every {every}" if every and every != "all" else ", in one bucket" if every else "",
        f", where {asked['where']}" if asked.get("where") else "",
        f", only {' and '.join(narrowed)}" if narrowed else "",
        f", top {asked['top']}" if asked.get("top") else "",
        f", on {_moment(receipt['asked_at'])}" if receipt.get("asked_at") else "",
    ]
    return "".join(parts) + "."


def _answer(receipt: Receipt) -> str:
    requests, retries = receipt.get("requests") or 0, receipt.get("retries") or 0
    cached = receipt.get("cached_share") or 0
    parts = [
        f"{requests} request{'' if requests == 1 else 's'}",
        f"{retries} of them again after a refusal" if retries else "",
        f"{cached:.0%} from the cache" if cached else "",
        f"gamelens {receipt['version']}" if receipt.get("version") else "",
    ]
    known = f" The service had {receipt['available']}." if receipt.get("available") else ""
    as_of = f" Data as of {_moment(receipt['as_of'])}." if receipt.get("as_of") else ""
    return ", ".join(part for part in parts if part) + "." + as_of + known


def _reserves(receipt: Receipt) -> list[str]:
    clipped, gaps = receipt.get("clipped"), receipt.get("gaps") or []
    lines = [f"Cut to what is available: {clipped}." if clipped else ""]
    lines += [f"Of the {receipt['asked']['every']} of {start:%Y-%m-%d} only a part is in." for start in _cut(receipt)]
    if receipt.get("truncated"):
        has_rest = (receipt.get("asked") or {}).get("other")
        lines += ["(other) is what lies beyond top." if has_rest else "There may be values beyond the ones shown."]
    lines += [f"Missing: {_gap(gap)}." for gap in gaps]
    lines += [_joined(joined) for joined in receipt.get("joined") or []]
    lines += [f"Restated: {_moved(moved)}." for moved in receipt.get("restated") or []]
    return lines + [f"Warning: {warning}" for warning in receipt.get("warnings") or []]


def _gap(gap: dict[str, Any]) -> str:
    scope = ", ".join(f"{name} = {value}" for name, value in (gap.get("scope") or {}).items())
    where = f" for {scope}" if scope else ""
    return f"{gap.get('metric')} in {gap.get('interval')}{where}: {gap.get('error')}".rstrip(".")


def _joined(joined: dict[str, Any]) -> str:
    share = joined.get("matched_share")
    found = f": {share:.0%} of {joined.get('share_of')} found a partner" if share is not None else ""
    return f"Joined with {joined.get('source')}{found}."


def _moved(moved: dict[str, Any]) -> str:
    bucket = f"{moved.get('metric')} of {_moment(moved.get('timestamp'))}, {moved.get('field')}"
    if moved.get("before") is None or moved.get("after") is None:
        return f"{bucket}: {moved.get('rows')} rows are otherwise"
    return f"{bucket}: {moved['before']:,.10g} before, {moved['after']:,.10g} now"


def _names(value: Any) -> str:
    return value if isinstance(value, str) else " and ".join(map(str, value or []))


def _moment(text: Any) -> str:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{moment.day} {moment:%b %Y %H:%M} UTC"
