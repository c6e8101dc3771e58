"""What `gl.retention_definitions` and `gl.retention_gap` say: players counted in several ways, without intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pandas import DataFrame

from gamelens.analysis.claims.findings import Clause, Finding, direction_of, reads

_RESIDUE: Final = 1e-9  # a share of one player of a billion: less is the noise of floats


@reads("raw_events.retention_definitions", row_by_row=True)
def _read_definitions(shown: DataFrame) -> Iterator[Finding]:
    """Say how far apart the definitions are at each age."""
    for age, rows in shown.groupby("age", sort=True):
        ordered = rows[rows["retention"].notna()].sort_values("retention")
        numbers = {"age": age}
        if ordered.empty:
            yield Finding(kind="retention by definition", case="not_reached", unit="share", numbers=numbers)
            continue
        least, most = ordered.iloc[0], ordered.iloc[-1]
        yield Finding(
            kind="retention by definition",
            case="apart",
            size=float(most["retention"] - least["retention"]),
            unit="share",
            judged="counted",
            numbers={
                **numbers,
                "least": least["retention"],
                "most": most["retention"],
                "least_definition": least["definition"],
                "most_definition": most["definition"],
            },
        )


@reads("raw_events.retention_gap", row_by_row=True)
def _read_gap(gap: DataFrame, first: str, second: str) -> Iterator[Finding]:
    """Say which terms make the difference of two definitions at each age."""
    for age, rows in gap.groupby("age", sort=True):
        known = rows[rows["amount"].notna()]
        terms = known[known["amount"].abs() > _RESIDUE]
        size = float(terms["amount"].sum())
        names = ["amount", "players", "term"]
        parts = [
            Clause("term", dict(zip(names, row, strict=True)), part="amount")
            for row in terms[names].to_numpy().tolist()
        ]
        yield Finding(
            kind="retention gap",
            case="terms" if parts else "same" if len(known) else "not_reached",
            direction="unknown" if not parts else direction_of(size - _RESIDUE, size + _RESIDUE),
            size=size if len(known) else float("nan"),
            unit="share",
            judged="counted" if len(known) else None,
            numbers={"age": age, "first": first, "second": second, "terms": parts},
        )
