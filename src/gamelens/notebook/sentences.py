"""Conclusions in words and in key numbers, computed from the data, with escaped names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Final

import msgspec
from pandas import DataFrame

from gamelens._text import escape_markdown
from gamelens.analysis.claims import KeyNumber
from gamelens.analysis.claims import of as claims_of
from gamelens.analysis.claims.claims_frame import doubtful
from gamelens.analysis.claims.findings import findings_of
from gamelens.analysis.claims.templates import judged_of, sentences_of, words
from gamelens.analysis.claims.templates import spoken as claims_spoken
from gamelens.analysis.tidy_frames.written_columns import WrittenColumn, written_columns
from gamelens.errors import extra_named
from gamelens.notebook.escaping import text_of
from gamelens.receipt_text import period_text
from gamelens.receipts import Receipt

if TYPE_CHECKING:
    from IPython.display import Markdown

    from gamelens.wire.intervals import Interval

_LIST_FROM: Final = 3


def spoken(result: DataFrame, kinds: Sequence[str] = ()) -> Markdown:
    """Return what *result* says of *kinds*, by default of all, as a paragraph or a list, and how it was judged.

    Raises:
        BadQuery: it is not a result of an analysis, or there is no such kind of claim.
    """
    wanted = findings_of(result, kinds)
    lines = claims_spoken(wanted, escape=escape_markdown) or ["This result has no claims."]
    judged = " ".join(dict.fromkeys(filter(None, judged_of(wanted))))
    text = " ".join(lines) if len(lines) < _LIST_FROM else "\n".join(f"- {line}" for line in lines)
    return _markdown(_escape_dollars(f"{text}\n\n*{judged}*" if judged else text))


def conclusions(*results: DataFrame | str) -> Markdown:
    """Return what several results say as one list in Markdown, each sentence once.

    All comparisons of the list are one family: those that could be chance among so many come last, under a line that
    says so.

    Args:
        results: results of analyses, rows of their claims (`result.lens.claims()`), or sentences in plain text.

    Raises:
        BadQuery: a frame is neither of these.
    """
    lines: list[str] = []
    claims, written = [], []
    for result in results:
        if isinstance(result, str):
            lines.append(escape_markdown(result))
        elif "how_judged" in result:
            claims.append(result)
            written.append([*map(escape_markdown, result["text"])])
            lines += written[-1]
        else:
            findings = findings_of(result)
            claims.append(claims_of(result))
            written.append(sentences_of(findings, escape=escape_markdown))
            lines += claims_spoken(findings, escape=escape_markdown)
    doubts = zip(chain(*written), chain(*doubtful(claims)), strict=True)
    unsure = {line for line, is_doubtful in doubts if is_doubtful}
    ordered = [line for line in dict.fromkeys(lines) if line not in unsure]
    text = "\n".join(f"- {line}" for line in ordered)
    if unsure:
        text += f"\n\n{words()['common']['chance']}\n\n" + "\n".join(f"- {line}" for line in lines if line in unsure)
    return _markdown(_escape_dollars(text))


def key_numbers(frame: DataFrame, numbers: Iterable[KeyNumber], *, before: DataFrame | None = None) -> Markdown:
    """Return *numbers* as a table in Markdown, below the period of *frame* in words.

    Args:
        frame: a frame with a receipt, which has the period.
        numbers: each with its value, interval and change. A column that none of them fills is left out.
        before: a frame of the period that they changed from, which is then named too.
    """
    rows = _cells_of([*numbers])
    names = [name for name in ("Number", "Value", "95% interval", "Change") if any(row[name] for row in rows)]
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *([row[name] for name in names] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines) if rows else ""
    of_frame, of_before = (Receipt.of(given.attrs).interval if given is not None else None for given in (frame, before))
    period = period_text(of_frame) if of_frame else ""
    if of_before:
        period += f". Changes are from {period_text(of_before)}{_longer_by(of_before, of_frame)}."
    return _markdown(f"{period}\n\n{table}")


def _longer_by(before: Interval, period: Interval | None) -> str:
    """Return by how many days a month before is longer or shorter than *period*, empty where they are equally long."""
    days = 0 if period is None else (before.length - period.length).days
    return f", {abs(days)} {'day' if abs(days) == 1 else 'days'} {'more' if days > 0 else 'fewer'}" if days else ""


def _markdown(text: str) -> Markdown:
    """Return *text* as a notebook shows it."""
    with extra_named("a sentence in a notebook"):
        from IPython.display import Markdown
    return Markdown(text)  # type: ignore[no-untyped-call]


def _cells_of(numbers: Sequence[KeyNumber]) -> list[dict[str, str]]:
    """Return the cells of each number by their headings, empty for what is unknown.

    Numbers with an interval have the decimal places of their kind, each of the others has its own.
    """
    frame = DataFrame([msgspec.structs.asdict(number) for number in numbers], columns=KeyNumber.__struct_fields__)
    frame = frame.rename(columns={"kind": "unit"}).assign(measure=frame["name"].where(frame["low"].isna(), ""))
    written = {column.name: column for column in written_columns(frame)}
    rows = []
    for place, number in enumerate(numbers):
        value, interval = _texts(written["value"], place, number.value, number.low, number.high)
        change, of_change = _texts(written["change"], place, number.change, number.change_low, number.change_high)
        rows.append(
            {
                "Number": _escape_dollars(text_of(_capitalised(number.name))),
                "Value": _escape_dollars(value),
                "95% interval": _escape_dollars(interval),
                "Change": "" if change == "n/a" else f"{change} ({of_change})" if of_change else change,
            }
        )
    return rows


def _texts(column: WrittenColumn, place: int, value: float, low: float, high: float) -> tuple[str, str]:
    """Return a number, and its interval or an empty text without one."""
    is_interval = not (isnan(low) or isnan(high))
    return column.text(value, place), column.interval_text(low, high, place) if is_interval else ""


def _capitalised(name: str) -> str:
    """Return *name* with a capital, unless it begins like eCPM."""
    return name if name[1:2].isupper() else name[:1].upper() + name[1:]


def _escape_dollars(text: str) -> str:
    """Return *text* with each dollar sign in a tag of its own.

    MathJax would otherwise read the text between two dollar signs of a paragraph as a formula.
    """
    return text.replace("&#36;", "$").replace("$", "<span>&#36;</span>")
