"""What was understood of an outside table, as text and as HTML."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING

from gamelens._text import counted

if TYPE_CHECKING:
    from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable

_HEAD = ("Column", "Is", "Because")


def text_of(table: OutsideTable) -> str:
    """Return a line about the table, a line for each column, and a line for each note."""
    rows = [_HEAD, *map(_row, table.columns)]
    widths = [min(max(len(row[place]) for row in rows), 40) for place in range(2)]
    lines = [f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in rows]
    return "\n".join([_about(table), *lines, *(f"- {note}" for note in _notes(table))])


def html_of(table: OutsideTable) -> str:
    """Return the same as an HTML table."""
    head = "".join(f'<th scope="col" style="text-align: left">{name}</th>' for name in _HEAD)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in _row(column)) + "</tr>"
        for column in table.columns
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(table))
    caption = f'<caption style="text-align: left">{escape(_about(table))}</caption>'
    listed = f"<ul>{notes}</ul>" if notes else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{listed}"


def _about(table: OutsideTable) -> str:
    parts = [table.source]
    parts += [f"a file of {table.vendor}"] if table.vendor else []
    parts += [counted(len(table.rows), "row")]
    if table.interval is not None:
        first, last = table.interval.start, table.interval.end - timedelta(seconds=1)
        parts.append(f"one a {table.period}, {first:%Y-%m-%d} to {last:%Y-%m-%d}")
    return ", ".join(parts)


def words_of(column: OutsideColumn) -> str:
    """Return what a column is: its role, its currency if it is money, and how a rate is put together."""
    role = column.concept if column.role == "amount" and column.concept in ("cost", "income") else column.role
    says = [role]
    if column.role == "amount" or (column.is_money and column.currency):
        says.append(column.currency or "currencies by row" if column.currencies is not None else "currency not known")
    return ", ".join([*says, *([str(column.weight)] if column.weight else [])])


def _row(column: OutsideColumn) -> tuple[str, str, str]:
    why = [
        f"{it.says}: {it.where} ({it.quote})" if it.quote and it.quote != column.name else f"{it.says}: {it.where}"
        for it in column.evidence
    ]
    problem = column.problem or column.money_problem
    return column.name, words_of(column), "; ".join(why) + (f". When used: {problem}" if problem else "")


def _notes(table: OutsideTable) -> list[str]:
    notes = [*table.notes]
    if table.periods.problem is not None:
        notes.append(f"Days cannot be used: {table.periods.problem}")
    if table.zone:
        notes.append(
            f"Days are those of the zone of the {table.zone}"
            if table.zone.islower()
            else f"Days are those of {table.zone}"
        )
    return notes
