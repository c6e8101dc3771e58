"""Errors and gaps in the words of a terminal: options where errors name arguments of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamelens.errors import GamelensError, NotRecorded, NotYetAvailable, PartialResult, Truncated

if TYPE_CHECKING:
    from gamelens.wire.receipts import Gap


def error_line(error: GamelensError) -> str:
    """What *error* says, with options where it names arguments of Python."""
    match error:
        case PartialResult(gaps=gaps):
            from gamelens.wire.receipts import Gap

            pieces = f"{len(gaps)} pieces are missing, the first of them" if len(gaps) > 1 else "1 piece is missing:"
            return f"{pieces} {gap_line(Gap(**gaps[0]))} --on-error gaps shows what came"
        case NotYetAvailable(asked=asked, available=available, tried="wait"):
            is_not = f"{asked} is not all available: the service has {available}"
            return f"{is_not}. Ask for less, wait longer with --deadline, or add --when-unavailable clip"
        case NotYetAvailable(asked=asked, available=available, tried="raise"):
            is_not = f"{asked} is not all available: the service has {available}"
            return f"{is_not}. Ask for less, or add --when-unavailable clip or wait"
        case Truncated(limit=limit):
            full = f"an answer holds {limit} values, the most the service gives: there may be more"
            return f"{full}. Narrow it with --where, --games or a shorter --over, or ask for the largest with --top"
        case NotRecorded(asked=asked, nearest=nearest):
            hint = f" The nearest that is: {nearest}." if nearest else ""
            return f"no answer is recorded for {asked}.{hint} The same with --record DIR records it"
    return str(error)


def gap_line(gap: Gap) -> str:
    """A gap of a receipt."""
    parts = [f"{name} = {value}" for name, value in (gap.scope or {}).items()]
    narrowed = f" ({', '.join(parts)})" if parts else ""
    return f"{gap.metric} in {gap.interval}{narrowed}: {gap.error}"
