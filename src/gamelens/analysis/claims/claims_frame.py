"""The claims of a result as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims.findings import Clause, Direction, Finding, findings_of
from gamelens.analysis.claims.templates import judged_of, kinds_of, sentences_of
from gamelens.analysis.significance import LEVEL, false_discovery
from gamelens.analysis.tidy_frames import with_receipts_of
from gamelens.analysis.tidy_frames.results import with_kinds
from gamelens.analysis.tidy_frames.returned_columns import listed_columns

_COLUMNS: Final = (
    "kind",
    "case",
    "subject",
    "direction",
    "size",
    "low",
    "high",
    "p_value",
    "unit",
    "how_judged",
    "text",
)


def of(result: DataFrame, kinds: Sequence[str] = ()) -> DataFrame:
    """Return what *result* says, with a row for each sentence.

        income = lens.query("ecpm", by="country_code", over="last 28 complete days")
        claims.of(ads.earnings(income, by="country_code"), ["ad revenue by"])

    *result* is the frame of an analysis. *kinds* selects claims by their kind; by default all are returned.
    `result.lens.claims()` is the same, and `result.lens.say()` shows the sentences.

    Columns: kind (text: the question, such as "price"), case (text: which of its sentences), subject (text: the segment
    it is about, "" for the whole), direction (category: higher, lower, no clear difference, unknown), size, low, high
    (float64: the estimate and its interval, NaN if there is none), p_value (float64: of the test of a comparison, or
    implied by its interval, and corrected as they are; NaN of what is counted), unit (text, of size), how_judged, text
    (text), and then every number and name that the sentence uses, as the result has it; NA in the rows of other
    sentences.

    Raises:
        BadQuery: it is not a result of an analysis, rows or columns were taken from it that its sentences need, or
            there is no such kind.
    """
    findings = findings_of(result, kinds)
    texts, judged = sentences_of(findings), judged_of(findings)
    rows = [_row(*three) for three in zip(findings, judged, texts, strict=True)]
    frame = DataFrame(rows, columns=[*dict.fromkeys([*_COLUMNS, *(name for row in rows for name in row)])])
    numbers = dict.fromkeys(("size", "low", "high", "p_value"), "float64")
    texts_of = dict.fromkeys(("kind", "case", "subject", "unit", "how_judged", "text"), "str")
    frame = frame.astype({**numbers, **texts_of})
    frame["direction"] = pd.Categorical(frame["direction"], categories=list(get_args(Direction)))
    listed = {name: column.kind for name, column in listed_columns(result.attrs).items() if column.is_number}
    return with_kinds(with_receipts_of(frame, result), listed | kinds_of(findings))


def doubtful(results: Sequence[DataFrame]) -> list[list[bool]]:
    """Return for each row of several frames of claims whether its direction could be chance among so many comparisons.

    The claims of a kind in one frame are a family. Families are selected by their smallest p-value at a false discovery
    rate of 5%, and with R selected of m families a claim needs a p-value of at most 5% R / m (Benjamini and Bogomolov
    2014): of the families that say something, at most 5% on average say something false. What is counted stays, as do
    alarms, which a board has judged together.
    """
    least = np.array([p for frame in results for p in frame.groupby("kind")["p_value"].min().dropna()])
    selected = (false_discovery(least[:, None]) <= LEVEL).sum()
    level = LEVEL * selected / max(1, len(least))
    return [(frame["direction"].isin(("higher", "lower")) & (frame["p_value"] > level)).tolist() for frame in results]


def _row(finding: Finding, judged: str, text: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": finding.kind,
        "case": finding.case,
        "subject": ", ".join(finding.subject.values()),
        "direction": finding.direction,
        "size": finding.size,
        "low": finding.low,
        "high": finding.high,
        "p_value": finding.p_value,
        "unit": finding.unit,
        "how_judged": judged,
        "text": text,
    }
    used = {name: value for name, value in finding.fields.items() if name not in row and not _has_clauses(value)}
    return row | {name: ", ".join(value) if isinstance(value, (list, tuple)) else value for name, value in used.items()}


def _has_clauses(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(one, Clause) for one in value)
