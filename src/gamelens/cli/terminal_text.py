"""Errors and gaps as lines for a terminal, with options instead of Python arguments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gamelens.errors import GamelensError, NotRecorded, NotYetAvailable, PartialResult, Truncated

if TYPE_CHECKING:
    from gamelens.wire.receipts import Gap


def cannot_write(option: str, target: object, error: OSError) -> click.ClickException:
    """Return the error of a command that cannot write the file *target* of an *option*."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return click.ClickException(f"{option} {target} cannot be written: {reason}")


def error_line(error: GamelensError) -> str:
    """Return the message of *error*, with options instead of Python arguments."""
    match error:
        case PartialResult(gaps=gaps):
            from gamelens.wire.receipts import Gap

            pieces = f"{len(gaps)} pieces are missing, the first of them" if len(gaps) > 1 else "1 piece is missing:"
            return f"{pieces} {gap_line(Gap(**gaps[0]))} --on-error gaps shows what came"
        case NotYetAvailable():
            options = str(error).replace("pass when_unavailable=", "add --when-unavailable ").replace('"', "")
            return options.replace("deadline_s=", "--deadline")
        case Truncated(limit=limit):
            full = f"an answer holds {limit} values, the most the service gives: there may be more"
            return f"{full}. Narrow it with --where, --games or a shorter --over, or ask for the largest with --top"
        case NotRecorded(asked=asked, nearest=nearest):
            hint = f" The nearest that is: {nearest}." if nearest else ""
            return f"no answer is recorded for {asked}.{hint} The same with --record DIR records it"
    return str(error)


def gap_line(gap: Gap) -> str:
    """Return one line about a gap of a receipt."""
    parts = [f"{name} = {value}" for name, value in (gap.scope or {}).items()]
    narrowed = f" ({', '.join(parts)})" if parts else ""
    return f"{gap.metric} in {gap.interval}{narrowed}: {gap.error}"
