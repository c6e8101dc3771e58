"""The result of a reconciliation: a tidy frame, a judgement of each cause, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens._text import format_number, one_line
from gamelens.analysis.claims import Claim, Direction
from gamelens.raw_events.reconciliation.event_rows import Floats
from gamelens.receipts import RECEIPT, Receipt, merge_receipts

UNEXPLAINED: Final = "unexplained"
"""The part of a difference that no cause explains."""
_NO_DIFFERENCE: Final = 1e-9
"""Relative difference of two numbers that are the same: money is added in another order."""
_SHOWN: Final = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """One cause: whether it explains anything, and the evidence.

    Attributes:
        cause: its name.
        status: whether it explains a part of the difference, explains none, or cannot be judged.
        reason: the rule of the other answer, or why it explains nothing or is not judged.
        amount: what it adds to each bucket and split.
        events: number of events that its rule counts elsewhere, or no longer; None without one rule.
        example: the bucket that has most of them.
    """

    cause: str
    status: Literal["explains", "explains nothing", "not judged"]
    reason: str
    amount: Floats | None = None
    events: int | None = None
    example: datetime | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Reconciliation:
    """Two answers to one question, and each difference by cause.

    Attributes:
        metric: the metric.
        frame: a row for each bucket, split and cause. Columns: timestamp (datetime64[us, UTC]), the dimension (str),
            api, lake, difference (float64, the API less the lake), cause (str), amount (float64; those of a bucket and
            split sum to its difference), share (float64: of the amounts without their signs; NA without a difference).
            Every bucket and split has a row `unexplained`.
        causes: a row for each cause. Columns: cause, status, reason (str), amount (float64), share (float64, of all
            amounts without their signs), events (Int64, counted elsewhere by its rule, or no longer; NA without one
            rule), example (datetime64[us, UTC], the bucket with most of them).
    """

    metric: str
    frame: DataFrame
    causes: DataFrame

    @property
    def claim(self) -> Claim:
        """The result in words, with the explained share of the difference as its size."""
        differences = self.frame.loc[self.frame["cause"] == UNEXPLAINED, "difference"]
        direction: Direction = "higher" if differences.sum() > 0 else "lower"
        if not differences.any():
            direction = "no clear difference"
        return Claim(
            kind="reconciliation", direction=direction, size=self.explained_share, unit="share", text=str(self)
        )

    @property
    def explained_share(self) -> float:
        """The share of the difference that has a cause, without signs.

        It is not a number if there is no difference.
        """
        row = self.causes[self.causes["cause"] == UNEXPLAINED]
        return float(1 - row["share"].iloc[0])

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        cells = self.frame[self.frame["cause"] == UNEXPLAINED]  # one row for each bucket and split
        number, differ = format_number(len(cells), "count"), int((cells["difference"] != 0).sum())
        if not differ:
            return f"{self.metric}: both answers are the same in all {number} rows."
        # Only a service's answer is called the API.
        other = "the other answer" if Receipt.of(self.frame.attrs).provenance.kind == "lake" else "the API"
        api, lake = (format_number(cells[name].sum(), "number") for name in ("api", "lake"))
        found = self.causes[self.causes["share"] > 0].sort_values("share", ascending=False).head(_SHOWN)
        parts = [
            f"{format_number(row['share'], 'share')} {row['cause']}"
            + ("" if row["cause"] == UNEXPLAINED else f" ({row['reason']})")
            for row in found.to_dict("records")
        ]
        unjudged = self.causes.loc[self.causes["status"] == "not judged", "cause"]
        return one_line(
            f"{self.metric}: {format_number(differ, 'count')} of {number} rows differ, in sum {api} in {other} against "
            f"{lake} in the lake. Of the differences: {', '.join(parts)}."
            + (f" Not judged: {', '.join(unjudged)}." if len(unjudged) else "")
        )


def reconciliation_of(
    metric: str,
    by: str | None,
    *,
    starts: Sequence[datetime],
    splits: Sequence[str | None],
    api: Floats,
    lake: Floats,
    judgements: Sequence[Judgement],
    receipts: Sequence[Receipt],
) -> Reconciliation:
    """Return the result of two answers in cells of *starts* and *splits*."""
    noise = _NO_DIFFERENCE * np.maximum(np.abs(api), np.abs(lake))
    difference = api - lake
    difference[np.abs(difference) <= noise] = 0
    amounts = {it.cause: it.amount for it in judgements if it.amount is not None}
    rest = difference - sum(amounts.values(), np.zeros(difference.shape))
    rest[np.abs(rest) <= noise] = 0
    amounts[UNEXPLAINED] = rest
    shown = (np.abs(api) + np.abs(lake)).ravel() > 0
    base = DataFrame({"timestamp": pd.to_datetime(np.repeat(np.array(starts), len(splits)), utc=True).as_unit("us")})
    if by is not None:
        base[by] = pd.Series([*splits] * len(starts), dtype="str")
    base = base.assign(api=api.ravel(), lake=lake.ravel(), difference=difference.ravel())
    gross = np.sum([np.abs(amount) for amount in amounts.values()], axis=0).ravel()
    parts = []
    for order, (cause, amount) in enumerate(amounts.items()):
        share = np.divide(np.abs(amount.ravel()), gross, out=np.full(len(gross), np.nan), where=gross > 0)
        rows = base.assign(cause=cause, amount=amount.ravel(), share=share, order=order, place=range(len(base)))
        parts.append(rows[shown & (cause == UNEXPLAINED) | (amount.ravel() != 0)])
    frame = pd.concat(parts).sort_values(["place", "order"]).drop(columns=["place", "order"])
    frame = frame.astype({"cause": "str"}).reset_index(drop=True)
    frame.attrs[RECEIPT] = merge_receipts(receipts).to_json()
    left = Judgement(cause=UNEXPLAINED, status="explains nothing", reason="no rule that was tried gives it")
    return Reconciliation(metric, frame, _cause_table((*judgements, left), amounts))


def _cause_table(judgements: Sequence[Judgement], amounts: Mapping[str, Floats]) -> DataFrame:
    """Return a row for each of *judgements*, with its part of all *amounts*."""
    gross = float(sum(np.abs(amount).sum() for amount in amounts.values()))
    rows = []
    for judgement in judgements:
        amount = amounts.get(judgement.cause, np.zeros(1))
        is_shared = gross > 0 and judgement.status != "not judged"
        rows.append(
            {
                "cause": judgement.cause,
                "status": judgement.status,
                "reason": judgement.reason,
                "amount": float(amount.sum()),
                "share": float(np.abs(amount).sum() / gross) if is_shared else float("nan"),
                "events": judgement.events,
                "example": judgement.example,
            }
        )
    table = DataFrame(rows)
    table["events"] = table["events"].astype("Int64")
    table["example"] = pd.to_datetime(table["example"], utc=True).dt.as_unit("us")
    return table.astype({"cause": "str", "status": "str", "reason": "str"})
