"""No decimal mark reads numbers whose mark differs by currency."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.outside_files import written

MIXED = ("2026-10-01\t£2,400", "2026-10-02\t1.750 €", "2026-10-03\t£300", "2026-10-04\t3 100 zł", "2026-10-05\t£1,150")


@pytest.mark.parametrize("decimal", [None, ".", ","])
def test_no_mark_reads_each_currency_its_own_way(tmp_path: Path, decimal: Literal[".", ","] | None) -> None:
    path = written(tmp_path / "fees.tsv", "Date\tFee", *MIXED)
    problem = gl.read_table(path, decimal=decimal).column("Fee").problem
    assert isinstance(problem, BadQuery)
    assert problem.value == ["1.750 €", "£2,400"]
    assert "'.' beside € and ',' beside £, each currency its own mark" in str(problem)


def test_a_mark_that_is_named_reads_a_column_of_one_currency(tmp_path: Path) -> None:
    path = written(
        tmp_path / "fees.tsv", "Date\tFee", "2026-10-01\t1.750,5 €", "2026-10-02\t1,150 €", "2026-10-03\t2.750 €"
    )
    assert gl.read_table(path, decimal=",").column("Fee").values.tolist() == [1750.5, 1.15, 2750.0]
