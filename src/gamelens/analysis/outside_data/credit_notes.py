"""Credit notes and refunds among the rows of a list: amounts to be subtracted, which often stand without a sign."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import UNSET

from gamelens._text import counted
from gamelens.analysis.outside_data.outside_table import OutsideColumn
from gamelens.analysis.outside_data.roles import ColumnCells, Meaning
from gamelens.errors import BadQuery

_MOST_KINDS: Final = 8  # of rows that one column tells apart
_CREDIT: Final = re.compile(
    r"(?i)(?:credit ?(?:notes?|memos?|invoices?)|refund(?:s|ed)?|chargebacks?|kredit ?not[ae]r?|kreditfaktura"
    r"|gutschrift(?:en)?|erstattung(?:en)?|storno|stornierung(?:en)?|rechnungskorrektur|avoirs?|remboursements?"
    r"|notas? de cr[eé]dito|notas? de abono|abonos?|reembolsos?|devoluci[oó]n(?:es)?|estornos?|not[ae] di credito"
    r"|rimbors[oi]|faktura koryguj[aą]ca|korekta"
    r"|zwrot|dobropis|creditnota|alacak dekontu|iade(?: faturası)?|кредит-?нота|возврат|корректировка"
    r"|贷项(?:通知单)?|红字发票|退款|返金|赤伝(?:票)?|환불|대변 ?메모)"
)


def credit_problem(
    column: OutsideColumn, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> BadQuery | None:
    """Return the question about an amount above 0 in rows that another column calls credit notes or refunds."""
    if column.role not in ("amount", "number") or "negative" in meanings[column.name].details:
        return None
    values = column.values.astype("float64").to_numpy()
    for name, column_cells in cells.items():
        is_kind = meanings[name].role in ("text", "identifier") and not column_cells.is_typed
        if not is_kind or not 1 < len(column_cells.distinct) <= _MOST_KINDS:
            continue
        words = [text for text in column_cells.texts if _CREDIT.fullmatch(text.strip())]
        is_credit = np.isin(column_cells.codes, [column_cells.texts.index(text) for text in words])
        of_credits = values[is_credit & (np.nan_to_num(values) != 0)]
        if not is_credit.all() and len(of_credits) and (of_credits > 0).all():
            word = column.money_word if column.role == "amount" else "cost"
            steps = [
                f'roles={{"{column.name}": {{"role": "{word}", "negative": {negative!r}}}}} {meant}'
                for negative, meant in (({name: words}, "subtracts them"), ({}, "adds them up"))
            ]
            rule = f"is above 0 in {counted(len(of_credits), 'row')} of {words[0]!r} ({name}): {', '.join(steps)}"
            return BadQuery(column.name, UNSET, rule)
    return None
