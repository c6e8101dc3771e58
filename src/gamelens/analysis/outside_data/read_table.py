"""The way in: a file or frame from outside as a table that is understood, in US dollars where rates are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from gamelens.analysis.outside_data.outside_table import OutsideTable
from gamelens.analysis.outside_data.rates import table_in_dollars
from gamelens.analysis.outside_data.table_reading import RoleArgument, understood


def read_table(
    other: Any,
    *,
    roles: Mapping[str, RoleArgument] | None = None,
    currency: str | Mapping[str, str] | None = None,
    rate: Any = None,
    network: str | None = None,
    country: str | None = None,
    days: str | None = None,
    names: Mapping[str, str | None] | None = None,
    how: Mapping[str, str] | None = None,
    text: Sequence[str] = (),
    missing: Sequence[str] = (),
    day_first: bool | None = None,
    year: int | None = None,
    magnitudes: Mapping[str, float] | None = None,
    decimal: Literal[".", ","] | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    header_row: int | None = None,
    leave_out: Mapping[str, Sequence[Any] | Literal[True]] | None = None,
    totals: Literal["skip", "keep"] | Sequence[str] = "skip",
    repeats: Literal["skip", "last", "keep"] | None = None,
    cumulative: str | Sequence[str] | Mapping[str, str | Sequence[str] | Mapping[str, Sequence[str]]] | None = None,
) -> OutsideTable:
    """Return what a table from outside means: the role of each column, its currency, and the days of each row.

    `gl.join`, `outside_data.roas`, `cost_per_install` and `in_dollars` take the result, or the path, which they read in
    the same way. Print it, or let a notebook show it, to see what was understood and why.

    Args:
        other: the path of a CSV, TSV, text or JSON file (also .gz, or .zip with one file), a Parquet or Excel file, a
            pandas or polars frame, an Arrow table, or a table that was read before.
        roles: roles of columns that the file does not tell: `{"yield": "rate"}`, or more:
            `{"yield": {"role": "rate", "of": ["money", "shown", 1000]}}` for 1000 * money / shown. "cost" and "income"
            are amounts; "week" and "month" are days of coarser rows. "scale" is what one of a column is, such as 1000,
            and "negative" the rows to subtract: `{"Amount": {"role": "cost", "negative": {"Type": ["Credit note"]}}}`.
            Of fiscal periods such as FY26-P06, "first" is the month in which the earliest year among them begins, if no
            line beside the table says it: `{"Period": {"role": "month", "first": "2026-04"}}`.
        currency: the currency of the amounts (ISO 4217) or the column that has it; by column if they differ.
        rate: converts all amounts to US dollars: as in `outside_data.in_dollars`, such as the path of a rates file.
        network: who is paid in every row, such as "Moloco", if no column says it. Files of Meta, Google Ads, TikTok and
            others need it not: their format says it (`paid_to` of `outside_data.formats()`).
        country: the country of every row, such as "TH", if no column says it: of holidays, or of a market's costs.
        days: the days of every row, such as "2026-10", "Q4 2026" or "2026-10-01/2026-10-31", if no column and no line
            says it: a month may stand in the name of the file alone.
        names: names in the table, and what the frame calls them: `{"foo_int": "Foo Ads"}`. None means no name.
        how: how several rows of one key become one, by column: "sum", "mean", "best" (of ranks), "last", or "join" for
            texts. Roles need none of these where they decide it.
        text: columns that are not read as numbers or days.
        missing: texts that mean an empty cell.
        day_first: whether 01.11.2026 is the first of November, if the column leaves it open.
        year: the year of days that name none, such as 01.11. or Sep 26, if no line beside the table and no month above
            them does.
        magnitudes: what a word behind rounded numbers stands for, `{"mil": 1000}`, where that is not clear. 5.2K, 1.5M,
            1,2 Mio. and 3 Tsd. are.
        decimal: the decimal mark, if the file leaves it open.
        sheet: the sheet of an Excel file.
        encoding: the encoding of a text file, by default UTF-8 or what its byte order mark says.
        header_row: the row of the file that names the columns (1 is the first), by default recognised.
        leave_out: rows that are no money spent or earned, or are of another kind, by the column that says it:
            `{"Status": ["pending", "cancelled"], "Test": ["yes"]}`. "" is an empty cell, True any other, as in
            `{"deleted_at": True}`. An empty list says that all rows of the column count. A table with such rows is
            refused until this decides.
        totals: what happens to rows that add up others. They are left out and reported, or kept. Texts of a cell of
            such rows, `["Suma: konto"]`, leave out what is not recognised.
        repeats: what happens to rows that repeat earlier ones, as in a file that was pasted below itself, also with
            other numbers. They are left out ("skip"), or the earlier ones are ("last"), or all count ("keep"). By
            default such a table is refused.
        cumulative: the columns that have all days before in each row, "Spend to date". Their amounts by day are the
            differences of the rows with the same names; the first is as it is. What else is known of them,
            `{"Spend to date": "month"}` or a list: that it begins anew with each "week", "month", "quarter" or "year",
            or wherever it falls ("restarts"); that a fall takes back what was counted ("corrected", below 0); that its
            first row is of its day ("first"), or has days "before" and is left out; that what several days without a
            total spent counts on the next one ("gaps"). Where names differ in it, they are named:
            `{"Spend to date": {"before": ["MH_Android_CA"]}}`. What matters and is not said is refused when it is used.

    Raises:
        BadQuery: the file cannot be read, or an argument names a column that is not there.
    """
    usual = {"text": (), "missing": (), "totals": "skip"}
    given = {key: value for key, value in locals().items() if key not in ("other", "usual") and value is not None}
    given = {key: value for key, value in given.items() if key not in usual or value != usual[key]}
    if isinstance(other, OutsideTable):
        before = other.arguments["given"]
        both = {**before, **given}
        for key in before.keys() & given.keys():
            if isinstance(before[key], Mapping) and isinstance(given[key], Mapping):
                both[key] = {**before[key], **given[key]}
        return read_table(other.arguments["other"], **both) if given else other
    table = replace(understood(other, given), arguments={"other": other, "given": given})
    return table if rate is None else table_in_dollars(table, rate)
