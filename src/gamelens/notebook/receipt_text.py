"""The receipt of a frame, in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlsplit

from pandas import DataFrame, Timestamp

from gamelens._text import one_line
from gamelens.errors import BadQuery
from gamelens.wire.intervals import bucket_start
from gamelens.wire.receipts import Gap, JoinRecord, Provenance, Receipt, RestatementRecord


def receipt_of(frame: DataFrame) -> Receipt:
    """The receipt *frame* came with.

    Raises:
        BadQuery: it has none.
    """
    receipt = Receipt.of(frame.attrs)
    if not receipt:
        raise BadQuery(
            "frame",
            [str(name) for name in frame.columns],
            "has no receipt: it did not come from query() or retention(), or lost attrs on the way",
        )
    return receipt


def explain(receipt: Receipt) -> str:
    """What was asked, what came back and what is missing, a line for each."""
    lines = (_question(receipt), _answer(receipt), _origin(receipt.provenance), *_reserves(receipt))
    return "\n".join(one_line(line) for line in lines if line)


def source_line(frame: DataFrame) -> str:
    """One line under a figure: where its numbers come from and as of when; empty without a receipt."""
    receipt = Receipt.of(frame.attrs)
    asked = receipt.asked
    parts = [
        f"Source: gamelens {receipt.version}" if receipt.version else "Source: gamelens",
        provenance_words(receipt.provenance),
        asked.over or "",
        f"data as of {_moment(receipt.as_of)}" if receipt.as_of else "",
        "cut to what is available" if receipt.clipped else "",
        f"top {asked.top} only" if receipt.truncated and asked.top else "",
        "with gaps" if receipt.gaps else "",
    ]
    return " · ".join(part for part in parts if part) if receipt else ""


def provenance_words(provenance: Provenance) -> str:
    """Return the origin in a few words, `sandbox, scenario demo`; empty where it is unknown."""
    scenario = f", scenario {one_line(provenance.scenario)}" if provenance.scenario else ""
    match provenance.kind:
        case "sandbox":
            return f"sandbox{scenario}"
        case "replay":
            return f"replay of {one_line(provenance.url or 'recorded answers')}{scenario}"
        case "real":
            return one_line(urlsplit(provenance.url or "").netloc) or "real service"
    return ""


def unfinished(frame: DataFrame) -> set[Timestamp]:
    """Buckets of *frame* that the question or the service's data covers only in part; none when nobody can know."""
    cut = _cut(Receipt.of(frame.attrs))
    return {Timestamp(moment) for moment in cut} & set(frame["timestamp"]) if "timestamp" in frame else set()


def _cut(receipt: Receipt) -> list[datetime]:
    """Starts of the buckets that lie only in part in what was asked."""
    every, span = receipt.asked.every, receipt.interval
    if every is None or every == "all" or span is None:
        return []
    edges = {moment: bucket_start(moment, every) for moment in (span.start, span.end)}
    return sorted({start for moment, start in edges.items() if start != moment})


def _question(receipt: Receipt) -> str:
    asked = receipt.asked
    by, every = _names(asked.by), asked.every
    narrowed = [f"{name} {_names(ids)}" for name, ids in (("games", asked.games), ("studios", asked.studios)) if ids]
    parts = [
        f"Asked for {_names(asked.metrics) or 'nothing in particular'}",
        f" {_names(map(str, asked.days))} days after install" if asked.days else "",
        f" {asked.since_days_ago} days after install" if asked.since_days_ago else "",
        f" by {by}" if by else "",
        f" over {asked.over}" if asked.over else "",
        f", in one bucket for every {every}" if every and every != "all" else ", in one bucket" if every else "",
        f", where {asked.where}" if asked.where else "",
        f", only {' and '.join(narrowed)}" if narrowed else "",
        f", top {asked.top}" if asked.top else "",
        f", on {_moment(receipt.asked_at)}" if receipt.asked_at else "",
    ]
    return "".join(parts) + "."


def _answer(receipt: Receipt) -> str:
    requests, retries, cached = receipt.requests, receipt.retries, receipt.cached_share
    parts = [
        f"{requests} request{'' if requests == 1 else 's'}",
        f"{retries} of them again after a refusal" if retries else "",
        f"{cached:.0%} from the cache" if cached else "",
        f"gamelens {receipt.version}" if receipt.version else "",
    ]
    known = f" The service had {receipt.available}." if receipt.available else ""
    as_of = f" Data as of {_moment(receipt.as_of)}." if receipt.as_of else ""
    return ", ".join(part for part in parts if part) + "." + as_of + known


def _origin(provenance: Provenance) -> str:
    """Return a sentence about the origin; empty where it is unknown."""
    scenario = f", populated with the scenario {provenance.scenario}" if provenance.scenario else ""
    match provenance.kind:
        case "sandbox":
            return f"Simulated: answered by the sandbox at {provenance.url}{scenario}."
        case "replay":
            return f"Replayed: answered from the recording {provenance.url}{scenario and ' of a sandbox' + scenario}."
        case "real":
            return f"Answered by {provenance.url}."
    return ""


def _reserves(receipt: Receipt) -> list[str]:
    lines = [f"Cut to what is available: {receipt.clipped}." if receipt.clipped else ""]
    lines += [f"Of the {receipt.asked.every} of {start:%Y-%m-%d} only a part is in." for start in _cut(receipt)]
    if receipt.truncated:
        lines += [
            "(other) is what lies beyond top." if receipt.asked.other else "There may be values beyond the ones shown."
        ]
    lines += [f"Missing: {_gap(gap)}." for gap in receipt.gaps]
    lines += [_joined(joined) for joined in receipt.joined]
    lines += [f"Restated: {_moved(moved)}." for moved in receipt.restated or ()]
    return lines + [f"Warning: {warning}" for warning in receipt.warnings]


def _gap(gap: Gap) -> str:
    scope = ", ".join(f"{name} = {value}" for name, value in (gap.scope or {}).items())
    where = f" for {scope}" if scope else ""
    return f"{gap.metric} in {gap.interval}{where}: {gap.error}".rstrip(".")


def _joined(joined: JoinRecord) -> str:
    share = joined.matched_share
    found = f": {share:.0%} of {joined.share_of} found a partner" if share is not None else ""
    return f"Joined with {joined.source}{found}."


def _moved(moved: RestatementRecord) -> str:
    bucket = f"{moved.metric} of {_moment(moved.timestamp)}, {moved.field}"
    if moved.before is None or moved.after is None:
        return f"{bucket}: {moved.rows} rows are otherwise"
    return f"{bucket}: {moved.before:,.10g} before, {moved.after:,.10g} now"


def _names(values: Iterable[str]) -> str:
    return " and ".join(values)


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment.day} {moment:%b %Y %H:%M} UTC"
