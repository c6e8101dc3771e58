"""A table from outside, understood: what each column is, in which currency, and which days a row stands for.

Joins, returns on spend, costs and exports read this and nothing else. What contradicts itself or is not known is
refused when it is used, so a strange column that nobody asks for stops nobody.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from html import escape
from typing import Any, Final

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens._text import counted
from gamelens.analysis.files.table_reader import IN_ONES, Grid
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Weight
from gamelens.analysis.outside_data.roles import TIMES, Evidence, Role, is_no_money
from gamelens.analysis.outside_data.row_periods import BESIDE_TABLE, Periods, step_of_days
from gamelens.errors import BadQuery, emit_warning, suggests_names
from gamelens.wire.intervals import Interval

HAS_MONEY: Final = frozenset({"amount", "price"})
"""Roles whose numbers are money."""
MODIFIERS: Final = frozenset({"planned", "compared", "limit"})
"""Concepts of measures that are not what the days of a row had, such as a planned cost."""
COUNTS_YET: Final = ", which leave_out= does not name: "
"""Stands in a note on doubtful rows that `leave_out=` leaves in, as it names other rows. A sum warns of them."""
KNOWN_UNTIL: Final = "may be known only until"
"""Stands in a note on the last period of a table; a sum warns of it."""
_COUNTS_AGAIN: Final = '; repeats="skip" leaves'
_WARNED: Final = "has warned"
_MOST_PARTS: Final = 12  # that a step names
_HEAD: Final = ("Column", "Is", "Because")


@suggests_names
@dataclass(frozen=True, eq=False)
class OutsideColumn:
    """One column of an outside table.

    Attributes:
        name: its header.
        role: what it is.
        values: its cells: measures as Int64 or float64 (12% is 0.12), texts as categories, flags as boolean, times as
            datetime64[us, UTC].
        evidence: who says so.
        concept: what is measured, such as "clicks"; "cost" or "income" for an amount; one of `MODIFIERS`.
        currencies: the currency of each row (ISO 4217), None where it is not known.
        weight: how a rate is put together from several rows, None where nothing says it.
        kinds: the column that says what a count is of, if that differs by row: installs or clicks on links.
        problem: raised when the column is used.
        money_problem: raised when the column is used as money.
    """

    name: str
    role: Role
    values: Series[Any]
    evidence: tuple[Evidence, ...] = ()
    concept: str = ""
    currencies: Series[Any] | None = None
    weight: ColumnQuotient | Weight | None = None
    kinds: str | None = None
    problem: BadQuery | None = None
    money_problem: BadQuery | None = None

    @property
    def is_money(self) -> bool:
        """Whether its numbers are amounts of money, or rates and prices that are."""
        return self.role in HAS_MONEY or (self.role == "rate" and self.currencies is not None)

    @property
    def money_word(self) -> str:
        """What `roles=` calls the amount that it would be."""
        if self.concept in ("cost", "income"):
            return self.concept
        return "amount" if self.role == "cumulative" else self.role

    @property
    def currency(self) -> str | None:
        """The one currency of all its rows, None if there are several or none is known."""
        if self.currencies is None:
            return None
        known = self.currencies.dropna().unique() if len(self.currencies) else self.currencies.cat.categories
        return str(known[0]) if len(known) == 1 else None


@suggests_names
@dataclass(frozen=True, eq=False)
class OutsideTable:
    """A table from outside gamelens, and what it means.

    A notebook shows it as a table of its columns: what each is, why, and what was left out.

    Attributes:
        source: name of its file, or "other".
        vendor: name of the format that it was recognised as, None for no known one.
        columns: its columns.
        rows: row numbers: of a file as a spreadsheet shows them, of a frame from 0.
        periods: the days that each row stands for.
        zone: the time zone of its days, as far as the format says it.
        notes: what was left out or assumed.
        grid: its cells.
        larger: columns whose whole is larger than the sum of the parts, with the name of the whole.
        how: how values of several rows become one, by column.
        names: spellings of the table, and the name in the frame that each means.
        counted: columns all of whose rows count, as `leave_out=` says.
    """

    source: str
    vendor: str | None
    columns: tuple[OutsideColumn, ...]
    rows: NDArray[np.int64]
    periods: Periods
    zone: str | None
    notes: tuple[str, ...]
    grid: Grid
    rates_of: str | None = None
    larger: Mapping[str, str] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str | None] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    counted: Collection[str] = ()

    def column(self, name: str, argument: str = "columns") -> OutsideColumn:
        """Return one column.

        Raises:
            BadQuery: there is none of this name.
        """
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise BadQuery(
                argument, name, f"is not a column of {self.source}", [column.name for column in self.columns]
            )
        return found

    def of_role(self, *roles: Role) -> list[OutsideColumn]:
        """Return the columns of one of *roles*."""
        return [column for column in self.columns if column.role in roles]

    @property
    def starts(self) -> Series[Any]:
        """The first day of each row (datetime64[us, UTC])."""
        return self.periods.starts

    @property
    def ends(self) -> Series[Any]:
        """The end of the days of each row, exclusive (datetime64[us, UTC])."""
        return self.periods.ends

    @property
    def period(self) -> str | None:
        """What a row stands for: "time", "day", "week from Monday", "month" or "period"; None without days."""
        return self.periods.length

    @property
    def interval(self) -> Interval | None:
        """The days of all rows, for `over=` of a query."""
        return self.periods.interval

    @property
    def frame(self) -> DataFrame:
        """The columns as they are understood, with the currency of an amount beside it.

        A column about which there is a question, such as rows that would count twice, is there as well, with a warning;
        so is a running total, whose rows do not add up. A table warns once.
        """
        if _WARNED not in self.__dict__:
            self.__dict__[_WARNED] = True
            for doubt in self._doubts():
                emit_warning(f"{self.source}: {doubt}")
        return self.unquestioned_frame

    def _doubts(self) -> list[str]:
        """Return the questions that are open, of several columns once, and what must not be added up."""
        doubts: list[str] = []
        if self.periods.problem is not None:
            doubts.append(f"days cannot be used, and rows may count twice: {self.periods.problem}")
        asked: dict[str, list[OutsideColumn]] = {}
        for column in self.columns:
            if column.problem is not None and column.role not in TIMES:
                asked.setdefault(column.problem.rule, []).append(column)
            elif column.role == "cumulative":
                doubts.append(f"{column.name} is a running total, whose rows do not add up")
        for first, *others in asked.values():
            same = f" The question is the same for {', '.join(column.name for column in others)}." if others else ""
            doubts.append(f"{first.problem}{same}")
        return doubts

    @cached_property
    def unquestioned_frame(self) -> DataFrame:
        """The frame without a warning, for a function that asks about the column that it uses."""
        columns: dict[str, Series[Any]] = {}
        for column in self.columns:
            columns[column.name] = column.values
            beside = f"{column.name}_currency"
            is_free = all(other.name != beside for other in self.columns)
            if column.role == "amount" and column.currencies is not None and is_free:
                columns[beside] = column.currencies.astype("category")
        frame = DataFrame(columns)
        frame.attrs[IN_ONES] = [column.name for column in self.columns]
        return frame

    @property
    def suffix(self) -> str:
        """Suffix for columns whose name the frame has too: `_spend` for spend.csv, else `_other`."""
        return "_" + (re.sub(r"\W+", "_", self.source.partition(".")[0]).strip("_") or "other")

    def in_words(self) -> dict[str, str]:
        """Return what each column is, in words such as "cost, EUR" or "rate, Clicks / Impressions"."""
        return {column.name: words_of(column) for column in self.columns}

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)


def may_be_money(table: OutsideTable, column: OutsideColumn) -> bool:
    """Return whether a number has parts, or a currency beside it, in a table whose currency is known."""
    if column.role != "number" or is_no_money(column.name):
        return False
    if column.currencies is not None:
        return True
    known = column.values.dropna().to_numpy(dtype="float64")
    has_parts = bool((known != np.floor(known)).any())
    is_of_money = any(other.currencies is not None or other.role == "currency" for other in table.columns)
    return has_parts and is_of_money


def money_roles(column: OutsideColumn, beside: Iterable[OutsideColumn] = ()) -> str:
    """Return the steps that make a number an amount; *beside* a cost it is rather earned."""
    cost, income = (f'roles={{"{column.name}": "{word}"}} if ' for word in ("cost", "income"))
    if any(other.concept == "cost" and other.name != column.name for other in beside):
        return f"{income}it is money earned, {cost}spent, "
    return f"{cost}it is money spent, {income}earned, "


def check_wholes(table: OutsideTable, keys: Collection[str] = ()) -> None:
    """Raise `BadQuery` if rows are added up over a column, none of *keys*, whose whole is larger than its parts."""
    for name in [name for name in table.larger if name not in keys]:
        whole = table.larger[name]
        texts = table.grid.texts(name)[0].to_pylist() if name in table.grid.columns else []
        parts = [text for text in texts if text != whole]
        rule = f"has a row {whole!r} that is larger than the sum of the others, so its parts do not add up: "
        if 0 < len(parts) <= _MOST_PARTS:
            alone = f"leave_out={ {name: parts}!r} takes it alone"
        else:
            alone = f'frame = gl.read_table({table.source!r}, totals="keep").frame; '
            alone += f'gl.read_table(frame[frame["{name}"] == {whole!r}]) has it alone'
        steps = f"{alone}, leave_out={ {name: [whole]}!r} its parts"
        raise BadQuery(name, UNSET, f"{rule}{steps}, or join by {name} too")


def doubts_about(table: OutsideTable, column: OutsideColumn) -> list[str]:
    """Return what is doubtful in a sum of all rows of *column*: amounts without a day, rows that are there again."""
    marks = (_COUNTS_AGAIN, COUNTS_YET, KNOWN_UNTIL)
    doubts = [
        note
        for note in table.notes
        if any(mark in note for mark in marks) or note.startswith(f"{column.name}: the total of ")
    ]
    doubts += currency_doubts(table, column)
    has_amount = column.values.fillna(0).to_numpy(dtype="float64") != 0
    day, rows = table.periods.column or "days", table.starts.isna().to_numpy() & has_amount
    if table.period is not None and rows.any() and day not in table.counted:
        texts = ["", *table.grid.texts(day)[0].to_pylist()] if day in table.grid.columns else [""]
        codes = table.grid.texts(day)[1] if day in table.grid.columns else np.full(len(rows), -1)
        named = [texts[code + 1] for code in dict.fromkeys(codes[rows].tolist())]
        step = f"leave_out={ {day: named}!r} leaves {'it' if rows.sum() == 1 else 'them'} out"
        doubts.append(f"{table.grid.rows_text(rows)} without a day {'counts' if rows.sum() == 1 else 'count'}: {step}")
    return doubts


def currency_doubts(table: OutsideTable, column: OutsideColumn) -> list[str]:
    """Return the notes on a currency that an argument says of *column*, and its header or cells do not."""
    return [note for note in table.notes if note.startswith(f"{column.name} is taken in ")]


def no_days(table: OutsideTable, use: str) -> BadQuery:
    """Return the exception for a table without days where *use* needs them."""
    if table.periods.problem is not None:
        return table.periods.problem
    rule = f"has no column of days, which {use} needs: "
    rule += f"{step}, or " if (step := step_of_days(table.grid)) else ""
    rule += 'name it with roles={"...": "day"}, or the row of the headers with header_row='
    return BadQuery("other", table.source, rule, [column.name for column in table.columns])


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
    role: str = column.concept if column.role == "amount" and column.concept in ("cost", "income") else column.role
    says = [f"{column.concept} {role}" if column.concept in MODIFIERS else role]
    if column.role == "amount" or (column.is_money and column.currency):
        says.append(column.currency or "currencies by row" if column.currencies is not None else "currency not known")
    says += [f"of several things by {column.kinds}"] if column.kinds else []
    return ", ".join([*says, *([str(column.weight)] if column.weight else [])])


def _row(column: OutsideColumn) -> tuple[str, str, str]:
    why = [
        f"{said.says}: {said.where}" + (f" ({said.quote})" if said.quote and said.quote != column.name else "")
        for said in column.evidence
    ]
    problem = column.problem or column.money_problem
    return column.name, words_of(column), "; ".join(why) + (f". When used: {problem}" if problem else "")


def _notes(table: OutsideTable) -> list[str]:
    notes = [*table.notes]
    if table.periods.problem is not None:
        notes.append(f"Days cannot be used: {table.periods.problem}")
    said = table.periods.evidence
    if table.period is not None and not table.periods.column and said is not None and said.where == BESIDE_TABLE:
        notes.append(f"All rows are of these days by {said.where} ({said.quote.strip()!r})")
    for column in table.of_role("network"):
        if column.name not in table.grid.columns and table.vendor == column.evidence[0].where:
            paid = column.evidence[0].quote
            notes.append(f"All rows are paid to {paid}, which a file of {table.vendor} does not say itself")
    if table.zone and not any(note.startswith("days are counted in") for note in notes):
        notes.append(
            f"Days are those of the zone of the {table.zone}"
            if table.zone.islower()
            else f"Days are those of {table.zone}"
        )
    return notes
