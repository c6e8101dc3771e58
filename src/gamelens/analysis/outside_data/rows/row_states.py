"""Which rows of a table are money spent or earned: nothing forecast, cancelled, paid back, or only deposited.

A column tells it: a status, a type, a scenario, a flag such as Test. Its texts are looked up in words of the languages
that people write (`row_...` in `lexicon.toml`). Nothing is left out by such a word alone: the table is asked about
where an amount or a count has numbers in these rows, and `leave_out=` decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET
from numpy.typing import NDArray

from gamelens._text import counted
from gamelens.analysis.files.brackets import BRACKETS
from gamelens.analysis.files.date_parsing import date_words
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.outside_table import COUNTS_YET, OutsideColumn
from gamelens.analysis.outside_data.roles import (
    KEYS,
    TIMES,
    ColumnCells,
    Meaning,
    concepts_in,
    header_meanings,
    is_kind_header,
)
from gamelens.analysis.outside_data.rows.debits_and_credits import credits_among, payout_row
from gamelens.analysis.outside_data.words.header_words import any_phrase, folded_header
from gamelens.analysis.outside_data.words.tax_words import tax_words
from gamelens.analysis.outside_data.words.total_words import ACTUAL, LEXICON, PART
from gamelens.errors import BadQuery

State = Literal["expected", "void", "back", "moved", "charge", "below", "part"]
_STATES: Final[tuple[State, ...]] = ("expected", "void", "back", "moved", "charge")
_OF_FLAGS: Final[tuple[State, ...]] = ("void", "back")  # also as the last word of a header: Order refunded
_WITHIN: Final = frozenset({"expected", "void", "back", "charge"})  # also as a part of a text: cancelled by client
_MOVED_WITHIN: Final = (
    "deposit", "top up", "topup", "withdrawal", "currency conversion", "payout", "disbursement", "einzahlung",
    "auszahlung", "aufladung", "recarga", "deposito", "пополнение", "поповнення", "充值", "入金", "충전",
)  # fmt: skip
"""Words of what is only moved that count as a part of a text as well."""
ANY: Final = True
"""Stands for all cells with a value, such as the times of what was deleted."""
_MOST_NAMES: Final = 5_000  # texts of a column of names that are looked at one by one
_SHORTEST: Final = 5  # letters of a word that is no name of a person
_NO_NAMES: Final = (
    *("planned", "compared", "cumulative", "month_to_date", "year_to_date", "exchange_rate", "charge", "row_charge"),
)
"""Topics of the lexicon whose words are no names of networks or campaigns."""
_NAMES: Final = frozenset(
    {"outlook", "target", "goal", "lift", "growth", "potential", "ziel", "lifetime", "fx", "kur", "ist", "plan"}
)
_SPANS: Final = frozenset({"day", "week", "month", "quarter", "period"})
_OF_PLANS: Final = frozenset({"planned", "budget", "compared"})
_TIME_WORD: Final = re.compile(
    r"(?:fy|h|q|t|w|wk|kw|cw|d|year|jahr|annee|ano|anno|rok)?\d*|n|s|of|the|to|bis|vs|/|year|jahr|annee|ano|anno|rok"
)
_YEAR: Final = re.compile(r"(?<!\d)20[1-4]\d(?!\d)")
_NEARLY_ALL: Final = 0.8  # of the rows
_MOST_PARTS: Final = 400  # texts of a column that may name parts and taxes
_OF_TIME: Final = re.compile(
    r"\d|(?:from|of|for|to|per|aus|vom|von|fur|im|de|du|del|di|da|do|au|от|за|на|с|z|ze|va)(?!\w)"
)
_SUBTOTAL: Final = re.compile(
    r"(?i)\W*(?:sub[- ]?total|grand total|zwischensumme|gesamtsumme|sous[- ]total|subtotale|tussentotaal|suma częściowa"
    r"|ara toplam|промежуточный итог|итого)(?!\w).*"
    r"|.*(?<!\w)(?:sub[- ]?total|zwischensumme|sous[- ]total|ara toplam)\W*"
    r"|\W*(?:total|gesamt|totale?|итого|summe)\W+(?:excl|ex|ohne|without|w/o|hors|sin|sem|senza|zonder|bez|без)(?!\w).*"
    r"|.*(?:小計|小计|合計|合计|总计|總計|소계|합계).*"
)
"""Words of totals that are part of no name."""
_MOST: Final = 24  # texts of a column that tells states
_MOST_OTHERS: Final = 8  # texts of a column whose header does not say that it does
_MOST_CODES: Final = 6
_LONGEST_CODE: Final = 2  # letters
_MOST_CREDITS: Final = 5  # rows that a note is about
_COUNTED: Final = frozenset({"amount", "count", "number", "cumulative", "stock"})
NAMED_BY_HEADER: Final = frozenset({"note", "comment", "remark", "type", "category", "status", "state"})
"""Words of headers that leave open what the texts below them say."""
_ENDS: Final = ("status", "statut", "estatus", "durumu", "статус", "stage", "scenario")  # of headers of states
_MOST_MOMENTS: Final = 500
_MOMENT: Final = re.compile(
    r"(?P<first>.+?) (?:at|on|date|day|datum|am|le|el|il|em|dne|ts|time|timestamp|дата|day of)"
    r"|(?:date|datum|fecha|data|дата|time|day)(?: (?:of|de|der|del|di|du|da))? (?P<last>.+)"
)
_ENDING: Final = re.compile(r"(?<=[^\W\d_]{4})(?:[oaei]s|[aeoiuy]|ые|ых|ый|ая|ое|[аоыиеяйі])(?!\w)")
_ORDINARY: Final = frozenset(
    {
        "open", "due", "target", "goal", "return", "returned", "credit", "test", "tests",
        "testing", "demo", "bonus", "deposit", "transfer", "balance", "payment", "hold", "error",
        "wire", "recharge", "reload", "removed", "deleted", "dropped", "killed", "blocked", "abandoned",
        "final", "posted", "concept", "fee", "tax", "vat", "discount", "commission", "adjustment",
        "interest", "penalty", "surcharge",
    }
)  # fmt: skip
"""Words that are names of other things as well, such as of events: they count below a header of states alone."""
_WORDS_OF_NAMES: Final = frozenset({"report", "budget", "balance", "provision", "kurs", "difference", "differences"})
"""Words of labels that may also be part of a name, such as report design."""
_MOVES: Final = frozenset({"payment", "payout"})  # words of a flag for what is paid that never mean paid themselves
_MARKS: Final = " :–—-()[]\"'*.!?"
_NO_MONEY: Final = ", which may be no money spent or earned"
_REASONS: Final[Mapping[str, str]] = {
    "below": ", below a total that is without them",
    "part": " beside the rows that they are parts of",
}
"""Why rows of these states are asked about. The other states may be no money."""


class StatedRows(NamedTuple):
    """The texts of a column that say of their rows that they were not simply spent or earned.

    *states* has the state of each; "" stands for an empty cell, and `ANY` for all others. *codes* are texts that
    nothing explains.
    """

    name: str
    states: Mapping[str | Literal[True], State]
    codes: tuple[str, ...] = ()


def stated_rows(
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    *,
    is_known: bool = False,
    keeps_totals: bool = False,
    others: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    below: Mapping[str, Collection[str]] = MappingProxyType({}),
    years: NDArray[np.int64] | None = None,
) -> list[StatedRows]:
    """Return the columns that tell states of rows.

    *is_known*: the table is of a known vendor, whose charges are rows as it means them. *keeps_totals*: the reader
    wants rows of totals. *others* are texts by column that tell a tax basis, with that: incl. VAT is gross. *below* are
    texts by column of rows below a total, which leaves them out. *years* has the year of each row, 0 for none.
    """
    found = []
    lacking = _rows_that_lack_a_name(meanings, cells)
    for name, column_cells in cells.items():
        stated = _of_moments(name, column_cells) or _of_marked_days(name, meanings[name], column_cells)
        if stated is None and _may_tell_states(meanings[name], column_cells):
            texts = [*column_cells.texts, *([""] if (column_cells.codes < 0).any() else [])]
            stated = _of_flag(name, texts) or _of_texts(name, texts)
        is_text = meanings[name].role == "text" and not _is_of_ads(name)
        if stated is None and (meanings[name].role in KEYS or is_text):
            lacks = np.zeros_like(lacking) if meanings[name].role == "campaign" else lacking
            stated = _of_labels(name, column_cells, lacks, is_known=is_known, keeps_totals=keeps_totals)
        if stated is not None and name in others:
            states = {text: state for text, state in stated.states.items() if text not in others[name]}
            stated = StatedRows(name, states)
        if stated is not None and is_known:
            stated = stated._replace(states={text: state for text, state in stated.states.items() if state != "charge"})
        of_sums: dict[str | Literal[True], State] = dict.fromkeys(below.get(name, ()), "below")
        if not column_cells.is_typed and (meanings[name].role in KEYS or meanings[name].role == "text"):
            of_sums |= _of_parts(column_cells) | _of_other_years(column_cells, years)
            of_sums |= _of_plans(column_cells) if meanings[name].role in ("platform", "country", "format") else {}
            of_sums |= {} if is_known else _of_taxes(name, column_cells)
        if meanings[name].role in TIMES:
            of_sums = {text: of_sums.get(text, "moved") for text in (*of_sums, *column_cells.labels)}
        if {"gross", "net"} <= {*others.get(name, {}).values()}:  # which the question about them names
            of_sums = {text: state for text, state in of_sums.items() if text not in others[name]}
        of_sums = {text: state for text, state in of_sums.items() if text in column_cells.texts}
        if stated is not None and not stated.codes:
            stated = StatedRows(name, {**of_sums, **stated.states})
        elif of_sums:
            found.append(StatedRows(name, of_sums))
        if stated is not None and (stated.states or stated.codes):
            found.append(stated)
    return found if is_known else [_with_rows_beside(stated, meanings, cells) for stated in found]


def with_payouts(
    found: Sequence[StatedRows],
    columns: Sequence[OutsideColumn],
    sides: Sequence[tuple[str, str]],
    cells: Mapping[str, ColumnCells],
) -> list[StatedRows]:
    """Return *found* with the rows that pay out a batch, as numbers prove it, by the text that tells them from others.

    *sides* are the debits and credits of the table.
    """
    named = {column.name: column for column in columns}
    result = {stated.name: stated for stated in found}
    for debit, credit in sides:
        row = payout_row(named[debit], named[credit])
        for name, column_cells in cells.items() if row is not None else ():
            is_of_kinds = named[name].role == "text" and 1 < len(column_cells.distinct) <= _MOST
            if not is_of_kinds or column_cells.codes[row] < 0 or not is_kind_of_rows(name, column_cells):
                continue
            text = column_cells.texts[column_cells.codes[row]]
            before = result.get(name, StatedRows(name, {}))
            if (column_cells.codes == column_cells.codes[row]).sum() == 1 and not before.codes:
                result[name] = StatedRows(name, {text: "moved", **before.states})
                break
    return [*result.values()]


def _with_rows_beside(
    stated: StatedRows, meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]
) -> StatedRows:
    """Return *stated* with the other rows that lack all names as its charges do: the monthly report beside a fee.

    Names are networks, countries and others that most rows have.
    """
    charges = [text for text in stated.states if text is not ANY and _charge().search(_stem(folded_header(text)))]
    if stated.codes or meanings[stated.name].role != "text" or not charges:
        return stated
    names = [column for name, column in cells.items() if meanings[name].role in KEYS and name != stated.name]
    are_there = [column.numbers_of_values >= 0 for column in names]
    are_there = [is_there for is_there in are_there if is_there.mean() > 1 / 2]
    if not are_there or len(cells[stated.name].distinct) > _MOST_PARTS:
        return stated
    lacks = ~np.any(are_there, axis=0)
    of_text = {text: cells[stated.name].rows_of(text) for text in cells[stated.name].texts}
    if not any(lacks[of_text[text]].all() for text in charges):
        return stated
    beside = [text for text, rows in of_text.items() if text not in stated.states and lacks[rows].all()]
    return stated._replace(states={**stated.states, **dict.fromkeys(beside, "charge")})


def is_kind_of_rows(name: str, column_cells: ColumnCells) -> bool:
    """Return whether a column tells the sorts of rows: its header says it, or its texts stand in several rows."""
    return is_state_header(name) or 2 * len(column_cells.distinct) < len(column_cells.codes)


def notes_on_the_rest(
    found: Sequence[StatedRows],
    leave: Mapping[str, Any],
    doubtful: Mapping[str, Collection[str | Literal[True]]],
    cells: Mapping[str, ColumnCells],
    grid: Grid,
) -> list[str]:
    """Return notes on the doubtful rows of *found* that count as `leave_out=` names others of their column alone.

    *doubtful* are these texts by column before. Where it names none of them, the note says how to leave them out.
    """
    notes = []
    for stated in found:
        if not leave.get(stated.name) or leave[stated.name] is ANY:
            continue
        rows = {text: rows_with(cells[stated.name], text) for text in stated.states}
        every: NDArray[np.bool_] = np.logical_or.reduce([*rows.values(), np.zeros(len(grid.rows), dtype=bool)])
        if every.any():
            counts = "counts" if every.sum() == 1 else "count"
            texts = _listed(_named([text for text in rows if rows[text].any()]))
            note = f"{grid.rows_text(every)} with {texts} in {stated.name} {counts}"
            if doubtful.get(stated.name) and not {*doubtful[stated.name]} & {*leave[stated.name]}:
                left = [*leave[stated.name], *(text for text in rows if rows[text].any())]
                them = "it" if every.sum() == 1 else "them"
                note += f"{COUNTS_YET}leave_out={ {stated.name: left}!r} leaves {them} out"
            else:
                note += ", as leave_out= names others"
            notes.append(note)
    return notes


def notes_on_credits(
    columns: Sequence[OutsideColumn],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    grid: Grid,
    answered: Collection[str],
) -> list[str]:
    """Return notes on the few rows below 0 whose texts say that they are credits or refunds: they are subtracted.

    Of rows that an argument names, in columns *answered* or to be subtracted, nothing is said.
    """
    names = [column.name for column in columns if column.role in ("text", "identifier") and column.name in cells]
    names = [name for name in names if not cells[name].is_typed]
    told = {name for meaning in meanings.values() for name in meaning.details.get("negative", ())} | {*answered}
    if told & {*names}:
        return []
    notes: list[str] = []
    of_rows: dict[tuple[int, ...], list[tuple[str, float]]] = {}
    for column in columns:
        values = np.nan_to_num(column.values.astype("float64").to_numpy()) if column.role == "amount" else np.zeros(1)
        rows = tuple(np.flatnonzero(values < 0).tolist())
        if 0 < len(rows) <= _MOST_CREDITS and (values > 0).sum() > len(rows):
            of_rows.setdefault(rows, []).append((column.name, -float(values[list(rows)].sum())))
    for rows, amounts in of_rows.items():
        texts = [next((text for name in names if _is_back(text := _text_at(cells[name], row))), "") for row in rows]
        if all(texts):
            mask = np.zeros(len(grid.rows), dtype=bool)
            mask[list(rows)] = True
            said = ", ".join(map(repr, dict.fromkeys(texts)))
            sums = " and ".join(f"the sum of {name} by {amount:,.2f}" for name, amount in amounts)
            notes.append(f"{grid.rows_text(mask)} with {said} {'lessens' if len(rows) == 1 else 'lessen'} {sums}")
    return notes


def _text_at(column_cells: ColumnCells, row: int) -> str:
    place = int(column_cells.codes[row])
    return "" if place < 0 else str(column_cells.distinct[place].as_py())


def _is_back(text: str) -> bool:
    """Return whether a text has a word of credits and refunds."""
    return _back().search(_stem(folded_header(text))) is not None


@cache
def _back() -> re.Pattern[str]:
    return any_phrase(_words()["back"])


def without_reversals(
    found: Sequence[StatedRows], columns: Sequence[OutsideColumn], cells: Mapping[str, ColumnCells]
) -> list[StatedRows]:
    """Return *found* without disputes that are subtracted by their sign, below 0 among charges above 0.

    The largest amount of their rows decides: the fee of a dispute is above 0.
    """
    amounts = [column.values.astype("float64").to_numpy() for column in columns if column.role in ("amount", "number")]
    amounts = [np.nan_to_num(values) for values in amounts]

    def is_subtracted(stated: StatedRows, text: str | Literal[True]) -> bool:
        if text is ANY or _stem(folded_header(text.strip(_MARKS))) not in _words()["dispute"] or not amounts:
            return False
        rows = rows_with(cells[stated.name], text)
        largest = max(amounts, key=lambda values: float(np.abs(values[rows]).sum()))
        is_below = bool((largest[rows] <= 0).all() and largest[rows].any())
        return is_below and bool((largest[~rows] > 0).sum() > (largest[~rows] < 0).sum())

    kept = [
        stated._replace(
            states={text: state for text, state in stated.states.items() if not is_subtracted(stated, text)}
        )
        for stated in found
    ]
    return [stated for stated in kept if stated.states or stated.codes]


def _rows_that_lack_a_name(meanings: Mapping[str, Meaning], cells: Mapping[str, ColumnCells]) -> NDArray[np.bool_]:
    """Return the rows of a short table without a name or a number of the position that nearly all others have."""
    names = [name for name, meaning in meanings.items() if meaning.role in KEYS | {"text", "identifier", "number"}]
    count = len(cells[names[0]].codes) if names else 0
    lacking = np.zeros(count, dtype=bool)
    for name in names if 0 < count <= _MOST_NAMES else ():
        is_there = cells[name].numbers_of_values >= 0
        lacking |= ~is_there & bool(is_there.mean() >= _NEARLY_ALL)
    return lacking


def _of_parts(column_cells: ColumnCells) -> dict[str | Literal[True], State]:
    """Return names such as "o/w iOS", which are parts of a row beside them."""
    if len(column_cells.distinct) > _MOST_PARTS:
        return {}
    parts = [text for text in column_cells.texts if PART.match(text)]
    return dict.fromkeys(parts, "part") if len(parts) < len(column_cells.distinct) else {}


def _of_plans(column_cells: ColumnCells) -> dict[str | Literal[True], State]:
    """Return the texts of a column of known names that are a word of plans or comparisons: Plan, beside iOS."""
    found: dict[str | Literal[True], State] = {}
    for text in column_cells.texts if len(column_cells.distinct) <= _MOST_PARTS else ():
        folded = folded_header(text)
        if any(concept.name in _OF_PLANS and phrase == folded for concept, phrase, _ in concepts_in(folded)):
            found[text] = "expected"
    return found if len(found) < len(column_cells.distinct) else {}


def _of_taxes(name: str, column_cells: ColumnCells) -> dict[str | Literal[True], State]:
    """Return texts that are nothing but a tax, with or without its rate: Tax (19%). An ad group may be called so."""
    of_ads = {phrase for concept, phrase, _ in concepts_in(folded_header(name)) if concept.name == "description"}
    if not 1 < len(column_cells.distinct) <= _MOST_PARTS or of_ads - NAMED_BY_HEADER:
        return {}
    return {text: "charge" for text in column_cells.texts if folded_header(text.strip(_MARKS)) in tax_words("name")}


def _of_other_years(column_cells: ColumnCells, years: NDArray[np.int64] | None) -> dict[str | Literal[True], State]:
    """Return names of a year that is none of the years of their days, beside words of plans and measures alone."""
    if years is None or not 1 < len(column_cells.distinct) <= _MOST_PARTS:
        return {}
    found: dict[str | Literal[True], State] = {}
    for place, text in enumerate(column_cells.texts):
        stated = {int(year) for year in _YEAR.findall(text)}
        of_rows = {*years[column_cells.codes == place].tolist()} - {0}
        words = folded_header(_YEAR.sub(" ", text))
        rest = words
        for concept, phrase, _ in concepts_in(words):
            rest = rest.replace(phrase, " ", 1) if concept.role not in KEYS else rest
        is_bare = not [word for word in rest.split() if word not in ACTUAL and not word.isdecimal() and word != "fy"]
        if stated and of_rows and not stated & of_rows and is_bare:
            found[text] = "expected"
    return found if len(found) < len(column_cells.distinct) else {}


def _of_labels(
    name: str, column_cells: ColumnCells, lacking: NDArray[np.bool_], *, is_known: bool, keeps_totals: bool
) -> StatedRows | None:
    """Return the rows of a column of names whose text names nothing that money was paid to: carried forward, MTD.

    So does a word of subtotals at one end: a row of it that is the sum of others is left out before. In rows *lacking*
    a name that others have, such a word may stand anywhere.
    """
    if column_cells.is_typed or not 1 < len(column_cells.distinct) <= _MOST_NAMES or is_kind_header(name):
        return None
    states: dict[str | Literal[True], State] = {}
    for text in column_cells.texts:
        folded = folded_header(text.strip(_MARKS))
        is_label = _is_label(folded, is_known=is_known) or (not keeps_totals and _SUBTOTAL.fullmatch(text) is not None)
        if not is_label and lacking.any() and _label_anywhere().search(folded):
            is_label = bool(lacking[column_cells.rows_of(text)].all())
        if is_label:
            states[text] = "moved"
    return StatedRows(name, states) if 0 < len(states) < len(column_cells.distinct) else None


def _is_of_ads(header: str) -> bool:
    """Return whether a column has keywords, ad groups, creatives or remarks, which may be any words."""
    return any(concept.name == "description" for concept, _, _ in concepts_in(folded_header(header)))


def _is_label(folded: str, *, is_known: bool) -> bool:
    """Return whether a folded text is no name: a word of rows beside others, also with the month that it is of."""
    if folded in _labels() or (not is_known and folded in _labels_of_headers()):
        return True
    if not is_known and _is_plan_of_a_time(folded):
        return True
    match = _label_first().match(folded)
    rest = folded[match.end() :].strip() if match else ""
    return bool(rest) and (_OF_TIME.match(rest) is not None or date_words().month.match(rest) is not None)


def _is_plan_of_a_time(folded: str) -> bool:
    """Return whether a text is a word of plans or comparisons with days: Forecast Nov, vs previous month."""
    known = concepts_in(folded)
    said = [(concept.name, phrase) for concept, phrase, _ in known if concept.name in _OF_PLANS]
    if not said:
        return False
    rest = folded
    for phrase in [phrase for _, phrase in said] + [phrase for concept, phrase, _ in known if concept.name in _SPANS]:
        rest = rest.replace(phrase, " ", 1)
    words = date_words().month.sub(" 1 ", rest).split()
    is_compared = any(name == "compared" for name, _ in said)
    return (bool(words) or is_compared) and all(_TIME_WORD.fullmatch(word) for word in words)


@cache
def _labels() -> frozenset[str]:
    return frozenset(map(folded_header, LEXICON["row_label"]["words"]))


@cache
def _label_first() -> re.Pattern[str]:
    return any_phrase(label for label in _labels() if len(label) > 1)


@cache
def _label_anywhere() -> re.Pattern[str]:
    """Return what finds such a word, a tax or a credit within a text."""
    words = {*_labels(), *map(folded_header, LEXICON["row_back"]["words"]), *tax_words("name")}
    return any_phrase(word for word in words - _ORDINARY - _WORDS_OF_NAMES if len(word) > 1)


@cache
def _labels_of_headers() -> frozenset[str]:
    """Return the words of headers for what is planned, compared, counted up or charged, as texts of rows."""
    words = {folded_header(word) for name in _NO_NAMES for word in LEXICON[name]["words"]}
    return frozenset(word for word in words if len(word) >= _SHORTEST or not word.isascii()) - _NAMES  # Dan is no tax


def state_of_header(header: str) -> State | None:
    """Return what the brackets of a header say of all its numbers: Nov (forecast)."""
    inner = " ".join(BRACKETS.findall(header))
    words = _stem(folded_header(inner))
    return next((state for state in _STATES if words in _words()[state]), None) or _state_within(words)


def _of_marked_days(name: str, meaning: Meaning, column_cells: ColumnCells) -> StatedRows | None:
    """Return the days with a state in brackets: 30.11. (forecast)."""
    if meaning.role not in TIMES or column_cells.is_typed:
        return None
    if not pc.any(pc.match_substring_regex(column_cells.distinct, r"[(（\[]")).as_py():
        return None
    states: dict[str | Literal[True], State] = {}
    states |= {text: state for text in column_cells.texts if (state := state_of_header(text)) is not None}
    return StatedRows(name, states) if states else None


def _of_moments(name: str, column_cells: ColumnCells) -> StatedRows | None:
    """Return what a column of days such as "Deleted at" or "Paid on" says of the rows that have one, or have none."""
    moment = _MOMENT.fullmatch(folded_header(name))
    is_empty = column_cells.codes < 0
    if moment is None or not is_empty.any() or is_empty.all():
        return None
    phrase = _stem(moment["first"] or moment["last"])
    if phrase in _words()["done"]:
        texts = column_cells.texts if not column_cells.is_typed and len(column_cells.distinct) <= _MOST_MOMENTS else []
        within: dict[str | Literal[True], State] = {}
        within |= {text: state for text in texts if (state := _state_within(_stem(folded_header(text)))) is not None}
        return StatedRows(name, {**within, "": "expected"})
    state = next((state for state in _OF_FLAGS if phrase in _words()[state]), None)
    return None if state is None else StatedRows(name, {ANY: state})


def state_problem(
    column: OutsideColumn,
    found: Sequence[StatedRows],
    meanings: Mapping[str, Meaning],
    cells: Mapping[str, ColumnCells],
    *,
    is_debit: bool = False,
) -> BadQuery | None:
    """Return the question about the numbers that a column has in rows of the states *found*.

    What is paid back is asked about where it stands above 0. In the debits of a ledger it is money that went out.
    """
    if not found or column.role not in _COUNTED:
        return None
    values = np.nan_to_num(column.values.astype("float64").to_numpy())
    subtracted = meanings[column.name].details.get("negative")
    leave: dict[str, list[str | Literal[True]]] = {}
    backs: dict[str, list[str | Literal[True]]] = {}
    rows_back = 0
    for stated in found:
        of_text = {text: values[rows_with(cells[stated.name], text)] for text in (*stated.states, *stated.codes)}
        if stated.codes:
            if stated.name not in (subtracted or ()) and all(numbers.any() for numbers in of_text.values()):
                return _codes_problem(column, stated, meanings[column.name])
            continue
        counted_texts = [text for text, state in stated.states.items() if state != "back" and of_text[text].any()]
        is_above = {text: (of_text[text] >= 0).all() and of_text[text].any() for text in of_text}
        paid_back = [text for text, state in stated.states.items() if state == "back" and is_above[text]]
        if is_debit:
            counted_texts, paid_back = [*counted_texts, *paid_back], []
        leave |= {stated.name: counted_texts} if counted_texts else {}
        is_stated = np.any([rows_with(cells[stated.name], text) for text in stated.states], axis=0)
        backs_below = any((of_text[text] < 0).any() for text, state in stated.states.items() if state == "back")
        is_signed = backs_below or values[~is_stated].sum() < 0  # what is spent is below 0, and what comes back above
        if paid_back and not is_signed and subtracted is None and column.role in ("amount", "number"):
            backs[stated.name] = paid_back
            rows_back += sum(int(np.count_nonzero(of_text[text])) for text in paid_back)
    if not leave and not backs:
        return None
    every = {name: _named([*leave.get(name, []), *backs.get(name, [])]) for name in (*leave, *backs)}
    said = _reasons(every, found)
    none: dict[str, list[str]] = {name: [] for name in every}
    steps = f"leave_out={every!r} leaves them out, leave_out={none!r} counts all"
    steps = f"{_without_moved(leave, every, found)}{steps}" if is_debit else steps
    owed = [text for texts in leave.values() for text in texts if _is_owed(text)]
    spent = {name: [text for text in leave.get(name, []) if text not in owed] for name in every}
    if owed and any(spent.values()):  # what is not paid yet is spent, what is cancelled is not
        left = {name: _named(texts) for name, texts in spent.items()}
        steps = f"leave_out={left!r} counts what is only not paid yet ({_listed(_named(owed))}), {steps}"
    if sum(1 if texts is ANY else len(texts) for texts in every.values()) > 1:
        steps += ", and a list of some leaves these out alone"
    if not backs:
        return BadQuery(column.name, UNSET, f"counts {said}: {steps}")
    subtracts = {name: _named(texts) for name, texts in backs.items()}
    negative = _negative(column, meanings[column.name], subtracts)
    texts = [text for of_column in backs.values() for text in of_column]
    if not leave:
        of_texts = " and ".join(f"{_listed(texts)} ({name})" for name, texts in every.items())
        rule = f"is above 0 in {counted(rows_back, 'row')} of {of_texts}: {negative} subtracts them, {steps}"
    else:
        rule = f"counts {said}: {steps}; {negative} with leave_out="
        rule += f"{ {name: leave.get(name, []) for name in every}!r} subtracts {', '.join(map(_quoted, texts))}"
    return BadQuery(column.name, UNSET, rule)


def _without_moved(
    leave: Mapping[str, Sequence[str | Literal[True]]], every: Mapping[str, Any], found: Sequence[StatedRows]
) -> str:
    """Return the step that counts fees and refunds, and leaves out what only went to the bank, "" without such rows."""
    states = {stated.name: stated.states for stated in found}
    moved = {name: [text for text in texts if states[name][text] == "moved"] for name, texts in leave.items()}
    listed = _listed(_named([text for texts in moved.values() for text in texts]))
    if not listed or moved == leave:
        return ""
    only = {name: _named(moved.get(name, [])) for name in every}
    return f"leave_out={only!r} leaves out what is only moved ({listed}), "


def _reasons(texts: Mapping[str, Any], found: Sequence[StatedRows]) -> str:
    """Return what is said of the rows with *texts* by column: of each kind of them, why they may not count."""
    kinds: dict[str, list[str]] = {}
    for name, of_column in texts.items():
        states = {text: state for stated in found if stated.name == name for text, state in stated.states.items()}
        by_reason: dict[str, list[str | Literal[True]]] = {}
        every: Sequence[str | Literal[True]] = [ANY] if of_column is ANY else of_column
        for text in every:
            by_reason.setdefault(_REASONS.get(states[text], _NO_MONEY), []).append(text)
        for reason, alike in by_reason.items():
            rows = "" if reason == _REASONS["part"] or reason in kinds else "rows of "
            kinds.setdefault(reason, []).append(f"{rows}{_listed(_named(alike))} ({name})")
    return ", and ".join(f"{' and '.join(rows)}{reason}" for reason, rows in kinds.items())


def _is_owed(text: str | Literal[True]) -> bool:
    """Return whether a text says that money is spent, and not paid yet."""
    return text is not ANY and _owed().search(_stem(folded_header(text.strip(_MARKS)))) is not None


@cache
def _void() -> re.Pattern[str]:
    return any_phrase(_words()["void"])


@cache
def _charge() -> re.Pattern[str]:
    return any_phrase(_words()["charge"])


@cache
def _owed() -> re.Pattern[str]:
    return any_phrase(_words()["owed"])


def rows_with(column_cells: ColumnCells, text: str | Literal[True]) -> NDArray[np.bool_]:
    """Return which rows have *text*, no value for "", or any for `ANY`."""
    if text is ANY or text == "":
        return np.asarray(column_cells.codes >= 0 if text is ANY else column_cells.codes < 0)
    return column_cells.rows_of(text)


def left_out(leave: Mapping[str, Any], grid: Grid) -> tuple[NDArray[np.bool_], list[str]]:
    """Return the rows that *leave* names, texts by column, and a note for each column.

    Raises:
        BadQuery: a column is not there, or has not one of the texts.
    """
    mask, notes = np.zeros(len(grid.rows), dtype=bool), []
    for name, texts in leave.items():
        rows = rows_named("leave_out", name, texts, grid)
        if rows.any():
            listed = "a value" if texts is ANY else " or ".join(_quoted(str(text)) for text in texts)
            verb = "is" if rows.sum() == 1 else "are"
            notes.append(f"{grid.rows_text(rows)} with {listed} in {name} {verb} left out, as leave_out= says")
        mask |= rows
    return mask, notes


def rows_named(argument: str, name: str, texts: Any, grid: Grid) -> NDArray[np.bool_]:
    """Return the rows with one of *texts*, values or "" for none, in the column *name* that an argument names.

    Raises:
        BadQuery: the column is not there, or has not one of them.
    """
    if name not in grid.columns:
        raise BadQuery(argument, name, f"is not a column of {grid.source}", grid.columns)
    if isinstance(texts, str):
        raise BadQuery(argument, texts, f'is one text: name a list, {{"{name}": ["{texts}"]}}')
    distinct, codes = grid.texts(name)
    if texts is ANY:
        return codes >= 0
    places = {_plain(text): place for place, text in enumerate(distinct.to_pylist())}
    places |= {"": -1} if (codes < 0).any() else {}
    rows = np.zeros(len(codes), dtype=bool)
    for text in map(_plain, texts):
        if text not in places:
            raise BadQuery(argument, text, f"is in no cell of {name} in {grid.source}", [*places][:_MOST])
        rows |= codes == places[text]
    return rows


def _plain(value: Any) -> str:
    """Return a value as the texts of a typed column are written."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, (int, float)) else str(value)


def _quoted(text: str | Literal[True]) -> str:
    return "any value" if text is ANY else repr(text) if text else "no value"


def _listed(texts: Sequence[str] | Literal[True]) -> str:
    return _quoted(ANY) if texts is ANY else ", ".join(map(_quoted, texts))


def _named(texts: Sequence[str | Literal[True]]) -> Any:
    """Return texts as `leave_out=` names them."""
    return ANY if ANY in texts else [*texts]


def _may_tell_states(meaning: Meaning, column_cells: ColumnCells) -> bool:
    """Return whether a column is one of texts that its header leaves free, or of flags."""
    if column_cells.is_typed and not pa.types.is_boolean(column_cells.type):
        return False
    if meaning.role not in ("text", "identifier", "flag", "number", "count") or len(column_cells.distinct) > _MOST:
        return False
    if meaning.role in ("number", "count"):  # 0 and 1
        return {*column_cells.texts} <= {"0", "1"} and _state_of_header(column_cells.name) is not None
    if meaning.role == "flag" or meaning.evidence.where == "the argument" or is_state_header(column_cells.name):
        return True
    if meaning.evidence.where not in ("header", "cells"):
        return False
    known = {phrase for _, phrase, _ in concepts_in(folded_header(column_cells.name))}
    kinds = {known.concept for known in header_meanings(column_cells.name)}
    return len(column_cells.distinct) <= _MOST_OTHERS and known <= NAMED_BY_HEADER and "kind" not in kinds


def is_void_header(header: str) -> bool:
    """Return whether a header counts what does not count, such as rejected installs."""
    return _void().search(_stem(folded_header(header))) is not None


def is_state_header(header: str) -> bool:
    """Return whether a header says that its column tells the state or the sort of a row."""
    folded = folded_header(header)
    about = concepts_in(folded)
    is_of_campaign = any(concept.name in ("campaign", "kind", "format") for concept, _, _ in about)
    is_stated = _stem(folded) in _words()["state"] or any(folded.endswith(f" {word}") for word in _ENDS)
    return is_stated and not is_of_campaign


def cancelled_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Return the texts below a header of states that say that nothing came of a row: cancelled, abgesagt."""
    if not is_state_header(name):
        return []
    folded = {text: folded_header(text.strip(_MARKS)) for text in texts}
    return [text for text, words in folded.items() if words not in _ORDINARY and _stem(words) in _words()["void"]]


def _of_flag(name: str, texts: Sequence[str]) -> StatedRows | None:
    """Return the rows that a flag such as Test tells apart, also one with a mark in some rows alone."""
    state = _state_of_header(name)
    answers = yes_and_no(texts)
    if state is None or answers is None:
        return None
    yes, no = answers
    if state == "done":
        return StatedRows(name, dict.fromkeys(no, "expected"))
    return StatedRows(name, dict.fromkeys(yes, state))


def yes_and_no(texts: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the *texts* of a flag that mean yes and no, as an empty cell does; None if there are others, or one."""
    folded = {text: _stem(folded_header(text)) or text.strip().casefold() for text in texts}
    yes = [text for text in texts if text and folded[text] in _words()["yes"]]
    no = [text for text in texts if not text or folded[text] in _words()["no"]]
    return (yes, no) if yes and no and {*yes, *no} == {*texts} else None


def _state_of_header(name: str) -> State | Literal["done"] | None:
    """Return what a flag of this name says of its rows."""
    folded = _stem(re.sub(r"^(?:is|has been|was|has) ", "", folded_header(name)))
    whole: Sequence[State | Literal["done"]] = ("expected", "void", "back", "done")
    if (state := next((state for state in whole if folded in _words()[state]), None)) is not None:
        return state
    last = folded.split(" ")[-1]
    return next((state for state in _OF_FLAGS if last in _words()[state]), None)


def _of_texts(name: str, texts: Sequence[str]) -> StatedRows | None:
    """Return the states that the texts of a column name, or its codes if nothing explains them."""
    named, is_stated = [text for text in texts if text], is_state_header(name)
    folded = {text: _stem(folded_header(text.strip(_MARKS))) for text in named}
    if len(texts) < 2 or any(words in _words()["delivery"] for words in folded.values()):
        return None
    states: dict[str | Literal[True], State] = {}
    for text, words in folded.items():
        state = next((state for state in _STATES if words in _words()[state]), None)
        if not is_stated and (state == "charge" or folded_header(text.strip(_MARKS)) in _ORDINARY):
            state = None
        if state is None and is_stated and words not in _words()["done"]:
            state = _state_within(words)
        if state is not None:
            states[text] = state
    if {*states.values()} & {"expected", "void"}:  # among states pago is paid, among kinds of rows a payment
        paid = _words()["done"] - _MOVES
        states = {text: state for text, state in states.items() if folded.get(str(text)) not in paid}
    actual = [text for text in named if folded_header(text) in ACTUAL]
    if actual:  # all else is none of it
        states |= {text: "expected" for text in named if text not in actual and text not in states}
    has_others = len(states) < len(texts)
    if not has_others and {*states.values()} >= {"moved"}:  # payments beside refunds: they are what the table is of
        states = {text: state for text, state in states.items() if state != "moved"}
    elif not has_others and {*states.values()} == {"expected"}:  # several plans: another is none of the first
        states = dict([*states.items()][1:])
    elif not has_others and {*states.values()} == {"back"}:
        states = {}
    if states:
        return StatedRows(name, states)
    return StatedRows(name, {}, tuple(named)) if _are_codes(name, named) else None


def _are_codes(name: str, texts: Sequence[str]) -> bool:
    """Return whether *texts* are codes of a few letters, which the header lists (A/F) or is a status for."""
    if not 1 < len(texts) <= _MOST_CODES or any(len(text) > _LONGEST_CODE or not text.isalpha() for text in texts):
        return False
    letters = {part.strip().casefold() for part in re.split(r"[/|,]", name)}
    return letters == {text.casefold() for text in texts} or folded_header(name).endswith("status")


def _state_within(words: str) -> State | None:
    """Return the state that the longest words within a text name."""
    found = [match[0] for match in _within().finditer(words)]
    longest = max(found, key=len, default="")
    return next((state for state in _STATES if longest in _words()[state]), None)


def _negative(column: OutsideColumn, meaning: Meaning, subtracts: Mapping[str, Sequence[str]]) -> str:
    """Return the argument that subtracts the rows of some texts, with the scale and the currency that are given."""
    word = column.money_word if column.role == "amount" else "cost"
    given = [f'"{said}": {meaning.details[said]!r}, ' for said in ("scale", "currency") if said in meaning.details]
    stated = "".join(given) if meaning.evidence.where == "the argument" else ""
    return f'roles={{"{column.name}": {{"role": "{word}", {stated}"negative": {dict(subtracts)!r}}}}}'


def _codes_problem(column: OutsideColumn, stated: StatedRows, meaning: Meaning) -> BadQuery:
    first, *others = stated.codes
    rule = f"counts rows of {', '.join(map(_quoted, stated.codes))} ({stated.name}) as one, and nothing says what they "
    sides = credits_among(stated.codes)
    if sides is not None:
        debit, credit = sides
        back = debit if column.concept == "income" else credit
        rule = f"counts rows of both sides of a ledger, {debit!r} and {credit!r} ({stated.name}), as one: "
        rule += f"{_negative(column, meaning, {stated.name: [back]})} subtracts {back!r}, "
    else:
        rule += "are: "
    rule += f'leave_out={{"{stated.name}": {others!r}}} leaves {first!r} alone, '
    if len(others) == 1:
        rule += f'leave_out={{"{stated.name}": {[first]!r}}} leaves {others[0]!r} alone, '
    return BadQuery(column.name, UNSET, rule + f'leave_out={{"{stated.name}": []}} counts all')


@cache
def _words() -> Mapping[str, frozenset[str]]:
    return {
        name.removeprefix("row_"): frozenset(_stem(folded_header(word)) or word for word in table["words"])
        for name, table in LEXICON.items()
        if name.startswith("row_")
    }


def _stem(folded: str) -> str:
    """Return folded words without the endings of gender and number: cancelada is cancelado, отменена отменён."""
    return _ENDING.sub("", folded)


@cache
def _within() -> re.Pattern[str]:
    found = [word for state in _STATES if state in _WITHIN for word in _words()[state]]
    return any_phrase([*found, *map(_stem, _MOVED_WITHIN)])
