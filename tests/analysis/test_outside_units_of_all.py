"""A line beside the table that says thousands is about all of its money, rates too; running totals within a day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

REPORT = [
    "Relatório de mídia",
    "Valores em milhares de reais",
    "",
    "Data;Rede;Orçamento;Custo;Instalações;CPI;Impressões;CPM",
    "01/10/2026;Meta;9,0;5,1;510;0,010;250000;0,0204",
    "13/10/2026;Meta;9,0;6,3;420;0,015;310000;0,0203",
    "14/10/2026;Moloco;9,0;2,4;120;0,020;97000;0,0247",
    "15/10/2026;Moloco;9,0;3,9;130;0,030;101000;0,0386",
]


def test_a_rate_is_in_the_unit_of_its_amount_where_its_cells_say_so(file: WriteFile) -> None:
    """CPI is Custo / Instalações as it stands, so both are in thousands; CPM of a thousand is, too."""
    roles = {"Custo": {"role": "cost", "scale": 1000}}
    table = gl.read_table(file("\n".join(REPORT)), roles=roles)
    assert table.column("CPI").values.tolist() == [10, 15, 20, 30]
    assert str(table.column("CPI").weight) == "Custo / Instalações"
    assert str(table.column("CPM").weight) == "1,000 * Custo / Impressões"
    assert table.column("CPM").values.iloc[0] == pytest.approx(20.4)


def test_a_rate_that_no_amount_proves_is_asked_about_like_amounts(file: WriteFile) -> None:
    """So is a budget."""
    path = file("\n".join(line.replace("0,015", "0,019") for line in REPORT))
    table = gl.read_table(path)
    for name, word in (("CPI", "rate"), ("Orçamento", "price")):
        problem = table.column(name).problem
        assert problem is not None
        assert f'roles={{"{name}": {{"role": "{word}", "scale": 1000}}}} if so' in str(problem)
    roles = {"Custo": {"role": "cost", "scale": 1000}, "CPI": {"role": "rate", "scale": 1000}}
    assert gl.read_table(path, roles=roles).column("CPI").values.tolist() == [10, 19, 20, 30]


def test_a_unit_in_the_header_of_an_amount_holds_for_its_rate_too(file: WriteFile) -> None:
    rows = ["Date,Network,Cost (k EUR),Installs,CPI", "2026-10-01,Meta,5.1,510,0.01", "2026-10-02,Meta,6.3,420,0.015"]
    rows += ["2026-10-03,Moloco,2.4,120,0.02", "2026-10-04,Moloco,3.9,130,0.03"]
    column = gl.read_table(file("\n".join(rows))).column("CPI")
    assert (column.values.tolist(), column.currency) == ([10, 15, 20, 30], "EUR")


def test_a_running_total_within_a_day_is_not_added_up(file: WriteFile) -> None:
    """Its hours are no parts of a sum; networks of a day are."""
    rows = [
        f"2026-11-0{day},{hour:02}:00 h,{cost},{sum(costs[: hour + 1])}"
        for day, costs in ((1, (5, 7, 2, 9, 4)), (2, (3, 8, 6, 1, 2)))
        for hour, cost in enumerate(costs)
    ]
    path = file("\n".join(["Tag,Uhrzeit,Kosten (EUR),Kosten kumuliert (EUR)", *rows]))
    days = tidy_frame("new_users", timestamp=["2026-11-01", "2026-11-02"], new_users=[10, 20])
    joined = gl.join(days, path, on={"timestamp": "Tag"})
    assert joined.frame["Kosten (EUR)"].tolist() == [27, 20]
    assert "Kosten kumuliert (EUR)" not in joined.frame
    with pytest.raises(BadQuery, match="a running total that goes on within a day"):
        gl.join(days, path, on={"timestamp": "Tag"}, columns=["Kosten kumuliert (EUR)"])
