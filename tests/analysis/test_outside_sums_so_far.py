"""A column that adds up another one in every row is a running total, also where an argument states its unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]

_AMOUNTS = (520.25, 480.5, 610.0, 305.75, 710.1, 99.9)


def _text(header: str, *, has_months: bool, is_newest_first: bool = False) -> str:
    lines, so_far = [], 0.0
    for place, amount in enumerate(_AMOUNTS):
        so_far = round(so_far + amount, 2)
        lines.append(f"2026-{place + 1:02};" * has_months + f"{amount};{so_far}")
    lines = lines[::-1] if is_newest_first else lines
    return "\n".join(["Maand;" * has_months + f"Werkelijk (EUR);{header}", *lines]) + "\n"


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("is_newest_first", [False, True])
@pytest.mark.parametrize("has_months", [False, True])
@pytest.mark.parametrize("header", ["Cumulatief werkelijk", "Opgebouwd (EUR)", "Zzz", "Cost (EUR)"])
@pytest.mark.parametrize("stated", [None, {"role": "amount", "scale": 1000}])
def test_adding_it_up_is_refused(
    file: WriteFile, header: str, stated: Any, *, has_months: bool, is_newest_first: bool
) -> None:
    path = file(_text(header, has_months=has_months, is_newest_first=is_newest_first))
    roles = {} if stated is None else dict.fromkeys((header, "Werkelijk (EUR)"), stated)
    table = gl.read_table(path, roles=roles)
    assert table.column(header).role == "cumulative"
    assert "adds up Werkelijk (EUR)" in str(table.column(header).evidence[0])
    with pytest.raises(BadQuery, match="running total"):
        outside_data.in_dollars(table, amount=header, rate=1.0)
    assert table.column("Werkelijk (EUR)").role == "amount"


def test_the_step_takes_it_apart(file: WriteFile) -> None:
    table = gl.read_table(file(_text("Zzz", has_months=True)), roles={"Zzz": "cost"}, cumulative="Zzz")
    assert table.column("Zzz").values.tolist() == pytest.approx(_AMOUNTS)


def test_it_begins_anew_with_each_name(file: WriteFile) -> None:
    rows = [("Meta", 5, 5), ("Meta", 7, 12), ("Moloco", 3, 3), ("Meta", 4, 16), ("Moloco", 9, 12), ("Moloco", 6, 18)]
    rows += [("Meta", 8, 24), ("Moloco", 2, 20)]
    text = "Network;Cost (USD);Zzz\n" + "".join(f"{name};{cost};{total}\n" for name, cost, total in rows)
    assert gl.read_table(file(text)).column("Zzz").role == "cumulative"


def test_an_ordinary_column_is_none(file: WriteFile) -> None:
    text = "Network;Cost (USD);Gross (USD)\n" + "".join(f"n{cost};{cost};{cost + 1}\n" for cost in (5, 8, 2, 9, 4))
    assert gl.read_table(file(text)).column("Gross (USD)").role == "amount"
