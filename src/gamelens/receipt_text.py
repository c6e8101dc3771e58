"""A receipt in words, in full or as the source line of a figure, with its days and periods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gamelens._text import one_line
from gamelens.receipts import Gap, JoinRecord, Provenance, QueryRecord, Receipt, RestatementRecord
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame


def explain(receipt: Receipt) -> str:
    """Return the query, the answer and everything that is missing, one line for each."""
    lines = (
        _query_sentence(receipt),
        *(f"{formula.name} is {formula.formula}." for formula in receipt.asked.formulas),
        _answer_sentences(receipt),
        _provenance_sentence(receipt.provenance),
        *_limitations(receipt),
    )
    return "\n".join(one_line(line) for line in lines if line)


def source_line(frame: DataFrame) -> str:
    """Return the line under a figure, its source and date. Empty without a receipt."""
    receipt = Receipt.of(frame.attrs)
    asked = receipt.asked
    parts = [
        f"Source: gamelens {receipt.version}" if receipt.version else "Source: gamelens",
        origin_text(receipt.provenance),
        period_text(receipt.interval) if "/" in (asked.over or "") and receipt.interval else asked.over or "",
        f"data as of {_time_text(receipt.as_of)}" if receipt.as_of else "",
        "cut to what is available" if receipt.clipped else "",
        f"{_top_text(asked)} only" if receipt.truncated and asked.top else "",
        "with gaps" if receipt.gaps else "",
    ]
    return " · ".join(part for part in parts if part) if receipt else ""


def origin_text(provenance: Provenance) -> str:
    """Return the origin with its badge, as `demo data (sandbox, scenario demo)`.

    Empty if it is unknown.
    """
    return f"{provenance.badge} ({provenance.text})" if provenance.badge else provenance.text


def day_text(moment: datetime) -> str:
    """Return *moment* as a readable day: `20 Nov 2026`."""
    return f"{moment.day} {moment:%b %Y}"


def period_text(interval: Interval) -> str:
    """Return *interval* in words: `25 Oct 2026 to 21 Nov 2026, 28 days`, both days included."""
    days = -(-(interval.end - interval.start) // timedelta(days=1))
    last = day_text(interval.end - timedelta(microseconds=1))
    return last if days <= 1 else f"{day_text(interval.start)} to {last}, {days} days"


def _query_sentence(receipt: Receipt) -> str:
    """Return the query in a sentence."""
    asked = receipt.asked
    by, every = _and_list(asked.by), asked.every
    narrowed = [f"{name} {_and_list(ids)}" for name, ids in (("games", asked.games), ("studios", asked.studios)) if ids]
    parts = [
        f"Asked for {_and_list(asked.metrics) or 'no metric'}",
        f" {_and_list(map(str, asked.days))} days after install" if asked.days else "",
        f" {asked.since_days_ago} days after install" if asked.since_days_ago else "",
        f" by {by}" if by else "",
        f" over {asked.over}{_resolved(receipt)}" if asked.over else "",
        f", one bucket per {every}" if every and every != "all" else ", in one bucket" if every else "",
        f", where {asked.where}" if asked.where else "",
        f", only {' and '.join(narrowed)}" if narrowed else "",
        f", {_top_text(asked)}" if asked.top else "",
        f", on {_time_text(receipt.asked_at)}" if receipt.asked_at else "",
    ]
    return "".join(parts) + "."


def _resolved(receipt: Receipt) -> str:
    """Return the interval that the time range was resolved to, unless it was given so."""
    interval = receipt.asked.interval
    return f" ({interval})" if interval and interval != receipt.asked.over else ""


def _answer_sentences(receipt: Receipt) -> str:
    """Return requests, cache, version and date of the answer."""
    requests, retries, cached = receipt.requests, receipt.retries, receipt.cached_share
    parts = [
        f"{requests} request{'' if requests == 1 else 's'}",
        f"{retries} of them retried after a refusal" if retries else "",
        f"{cached:.0%} from the cache" if cached else "",
        f"{receipt.bytes_billed / 10**6:,.1f} MB billed" if receipt.bytes_billed else "",
        f"gamelens {receipt.version}" if receipt.version else "",
    ]
    available = f" The service had {receipt.available}." if receipt.available else ""
    as_of = f" Data as of {_time_text(receipt.as_of)}." if receipt.as_of else ""
    return ", ".join(part for part in parts if part) + "." + as_of + available


def _provenance_sentence(provenance: Provenance) -> str:
    """Return a sentence about the provenance. Empty if it is unknown."""
    scenario = provenance.scenario
    match provenance.kind:
        case "sandbox":
            return f"Simulated: answered by {_service_text(provenance)}."
        case "replay":
            recorded = provenance.sources or ((Provenance(kind="sandbox", scenario=scenario),) if scenario else ())
            suffix = "".join(f" of {_service_text(service)}" for service in recorded)
            return f"Replayed: answered from the recording {provenance.url}{suffix}."
        case "mixed":
            return f"Mixed: numbers of different sources, {origin_text(provenance)}."
        case "real":
            return f"Answered by {provenance.url}."
        case "table":
            return f"Answered from the events of {provenance.url}, read by {provenance.engine}."
        case "lake":
            sources = provenance.sources or ((Provenance(kind="simulated", scenario=scenario),) if scenario else ())
            suffix = f": {_and_list(map(_source_text, sources))}" if sources else ""
            is_demo = f" This is {provenance.badge}." if provenance.badge else ""
            return f"Answered from the events of the lake {provenance.url}{suffix}.{is_demo}"
    return ""


def _source_text(source: Provenance) -> str:
    """Return where events of a lake come from, with the names of imported files."""
    names = ", ".join(source.files) + (", ..." if source.file_count > len(source.files) else "")
    return f"{source.text} ({names})" if source.files else source.text


def _service_text(service: Provenance) -> str:
    """Return a service as `the sandbox at ADDRESS, populated with the scenario demo`."""
    if service.kind != "sandbox":
        return service.url or "the real service"
    at = f"the sandbox at {service.url}" if service.url else "a sandbox"
    return f"{at}, populated with the scenario {service.scenario}" if service.scenario else at


def _limitations(receipt: Receipt) -> list[str]:
    """Return a sentence for everything that is missing, joined or restated, and the warnings."""
    lines = [f"Cut to what is available: {receipt.clipped}." if receipt.clipped else ""]
    lines += [
        f"The {receipt.asked.every} of {start:%Y-%m-%d} is covered only in part: whole_buckets=True leaves it out."
        for start in receipt.partial_buckets
    ]
    if receipt.truncated:
        lines += [
            "(other) sums up what top leaves out."
            if receipt.asked.other
            else "There may be more values than the ones shown."
        ]
    lines += [f"Missing: {_gap_text(gap)}." for gap in receipt.gaps]
    if receipt.filled:
        rows = [f"{name} in {number:,} row{'' if number == 1 else 's'}" for name, number in receipt.filled.items()]
        lines += [f"Counts and money are 0 where the service had no row: {_and_list(rows)}."]
    if receipt.dated_by_arrival:
        counts = [f"{events:,} with {reason}" for reason, events in receipt.dated_by_arrival.items()]
        total = sum(receipt.dated_by_arrival.values())
        lines += [f"Dated by arrival, of all events that were received: {total:,}, {_and_list(counts)}."]
    if receipt.values_listed:
        lines += [f"Values of {_and_list(receipt.values_listed)} were listed only to check the filter."]
    lines += [_join_sentence(joined) for joined in receipt.joined]
    lines += [f"Restated: {_restatement_text(moved)}." for moved in receipt.restated or ()]
    return lines + [f"Warning: {warning}" for warning in receipt.warnings]


def _top_text(query: QueryRecord) -> str:
    """Return `top` as "top 5", or for one dimension as "top 5 of country_code"."""
    if isinstance(query.top, dict):
        return ", ".join(f"top {number} of {name}" for name, number in query.top.items())
    return f"top {query.top}"


def _gap_text(gap: Gap) -> str:
    scope = ", ".join(f"{name} = {value}" for name, value in (gap.scope or {}).items())
    where = f" for {scope}" if scope else ""
    return f"{gap.metric} in {gap.interval}{where}: {gap.error}".rstrip(".")


def _join_sentence(joined: JoinRecord) -> str:
    share = joined.matched_share
    matched = f": {share:.0%} of {joined.share_of} matched" if share is not None else ""
    return f"Joined with {joined.source}{matched}."


def _restatement_text(moved: RestatementRecord) -> str:
    bucket = f"{moved.metric} of {_time_text(moved.timestamp)}, {moved.field}"
    if moved.before is None or moved.after is None:
        return f"{bucket}: {moved.rows} rows differ"
    return f"{bucket}: {moved.before:,.10g} before, {moved.after:,.10g} now"


def _and_list(values: Iterable[str]) -> str:
    return " and ".join(values)


def _time_text(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment.day} {moment:%b %Y %H:%M} UTC"
