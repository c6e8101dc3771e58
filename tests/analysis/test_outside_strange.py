"""Strange files that people really have: right, or refused with what to type; never wrong without a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.files.table_reader import read_grid
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

DAYS = [f"2026-11-{day:02}" for day in range(1, 5)]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "error", ["#REF!", "#N/A", "#VALUE!", "#DIV/0!", "Err:502", "#BEZUG!", "#NAME?", "#####", "#NV", "#¡VALOR!", "#Н/Д"]
)
@pytest.mark.parametrize("is_workbook", [False, True])
def test_an_error_of_a_spreadsheet_among_amounts_is_refused(
    file: WriteFile, tmp_path: Path, error: str, *, is_workbook: bool
) -> None:
    """It is no empty cell: a cost was meant. What follows the sentence is right."""
    path = file(f"Date,Network,Cost (USD)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,{error}\n2026-11-03,Meta,30\n")
    if is_workbook:
        book, path = openpyxl.Workbook(), tmp_path / "table.xlsx"
        for row in [["Date", "Network", "Cost (USD)"], [*DAYS[:1], "Meta", 10.5], [DAYS[1], "Meta", error]]:
            book.active.append(row)
        book.active.append([DAYS[2], "Meta", 30])
        book.active["C3"].data_type = "e" if error in openpyxl.cell.cell.ERROR_CODES else "s"
        book.save(path)
    with pytest.raises(BadQuery, match="in row 3 is an error of a spreadsheet") as refused:
        outside_data.in_dollars(path)
    assert f"missing=[{error!r}]" in str(refused.value)
    assert outside_data.in_dollars(path, missing=[error])["spend"].sum() == 40.5


def test_an_error_where_no_number_is_meant_is_said(file: WriteFile) -> None:
    """A day without clicks has no cost per click, and a lookup may find no name: both are read as empty."""
    rows = [
        "2026-11-01,Meta,10,5,2.0",
        "2026-11-02,#N/A,0,0,#DIV/0!",
        "2026-11-03,Meta,30,10,3.0",
        "2026-11-04,M,7,2,3.5",
    ]
    table = gl.read_table(file("\n".join(["Date,Network,Cost (USD),Clicks,CPC", *rows, ""])))
    assert str(table.column("CPC").weight) == "Cost (USD) / Clicks"
    for name, error in (("CPC", "#DIV/0!"), ("Network", "#N/A")):
        assert f"{name} has '{error}' in row 3 of table.csv, an error of a spreadsheet, read as empty" in table.notes


REPORT = [
    f"{day},{name},{cost}"
    for day, k in zip(DAYS, (1, 3, 7, 2), strict=True)
    for name, cost in (("Meta", 9 + k), ("Moloco", 20 + k))
]
HEADER = "Date,Network,Cost (USD)"


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("rows", "once"),
    [
        ([*REPORT, *REPORT], 142),
        ([*REPORT, HEADER, *REPORT], 142),
        ([*REPORT, *REPORT, *REPORT], 142),
        (sorted([*REPORT, *REPORT]), 142),
        ([*REPORT, *REPORT[4:], "2026-11-05,Meta,9"], 151),  # exports that overlap
        ([*REPORT[:5], HEADER, "2026-11-03,Meta,17", *REPORT[5:]], 142),  # restated since
    ],
)
def test_a_table_that_was_pasted_twice_is_refused(file: WriteFile, rows: list[str], once: int) -> None:
    """Whole, in part, or with its header; the argument decides."""
    path = file("\n".join([HEADER, *rows, ""]))
    with pytest.raises(BadQuery, match=r'would count twice: rows? .*repeats="skip" leaves (?:them|it) out'):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, repeats="skip")["spend"].sum() == once
    assert outside_data.in_dollars(path, repeats="keep")["spend"].sum() == sum(
        int(row.split(",")[2]) for row in rows if row != HEADER
    )


def test_rows_that_are_alike_by_chance_are_counted(file: WriteFile) -> None:
    """Of many, one is said; in a list of sales, and where nothing was spent, it is usual."""
    table = gl.read_table(file("\n".join([HEADER, *REPORT, REPORT[0], ""])))
    assert table.column("Cost (USD)").problem is None
    assert 'row 10 of table.csv has the cells of an earlier row and counts; repeats="skip" leaves it out' in table.notes
    sales = [f"{DAYS[place % 7 % 4]},gold,{('0.99', '4.99', '9.99')[place * place % 5 % 3]}" for place in range(40)]
    nothing = [f"{day},{name},0" for day in DAYS for name in ("Meta", "Meta", "Moloco")]
    for rows in (sales, nothing):
        table = gl.read_table(file("\n".join(["Date,Product,Revenue (USD)", *rows, ""])))
        assert (table.column("Revenue (USD)").problem, len(table.rows)) == (None, len(rows))
    twice = gl.read_table(file("\n".join(["Date,Product,Revenue (USD)", *sales, *sales, ""])))
    assert "rows 42, 43, 44" in str(twice.column("Revenue (USD)").problem)


LEVELS = [
    "Campaign,{0},A,,3{1}",
    "Ad group,{0},A,a1,1{1}",
    "Ad group,{0},A,a2,20",
    "Campaign,{0},B,,5",
    "Ad group,{0},B,b1,5",
]
SINGLE = ["{0},A,,3{1}", "{0},A,a1,3{1}", "{0},B,,{1}", "{0},B,b1,{1}"]


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        ("Level,Date,Campaign,Ad group,Cost (USD)", LEVELS, "Level tells rows of Campaign from rows of Ad group"),
        ("Ebene,Date,Kampagne,Anzeigengruppe,Kosten (USD)", ["Konto,{0},,,4{1}", "Kampagne,{0},A,,4{1}"] * 2, ""),
        ("Date,Campaign,Ad group,Cost (USD)", [row.partition(",")[2] for row in LEVELS], "add up others"),
        ("Date,Campaign,Cost (USD),Ad set name", ["{0},A,4{1},", "{0},A,2{1},a", "{0},A,20,b"], "add up others"),
        ("Date,Campaign,Ad group,Cost (USD)", SINGLE, "add up others"),
    ],
)
def test_a_coarser_level_is_left_out(file: WriteFile, header: str, rows: list[str], words: str) -> None:
    """Campaigns beside their ad groups: by a column that says it, or by an empty name and a number that is the sum."""
    lines = [row.format(day, place + 1) for place, day in enumerate(DAYS) for row in dict.fromkeys(rows)]
    table = gl.read_table(file("\n".join([header, *lines, ""])))
    numbers = [int(part) for line in lines for part in line.split(",") if part.isdigit()]
    assert table.of_role("amount")[0].values.sum() == sum(numbers) / 2
    assert words in str(table)


@pytest.mark.parametrize(
    ("header", "rows", "of_text"),
    [
        (
            "Level,Date,Campaign,Cost (USD)",
            ["Campaign,{0},A,3{1}", "Ad group,{0},A,10"],
            {"Campaign": 40, "Ad group": 130},
        ),
        ("Date,is_total,Country,Cost (USD)", ["{0},true,,3{1}", "{0},false,US,3{1}"], {"true": 130, "false": 130}),
        (
            "Breakdown,Value,Date,Cost (USD)",
            ["Country,US,{0},3{1}", "Country,DE,{0},1", "Platform,iOS,{0},3{1}", "Platform,Android,{0},1"],
            {"Country": 134, "Platform": 134},
        ),
    ],
)
def test_rows_of_two_kinds_are_asked_about(
    file: WriteFile, header: str, rows: list[str], of_text: dict[str, int]
) -> None:
    """Each of the steps that the sentence names takes one kind, and the last counts both."""
    path = file("\n".join([header, *(row.format(day, n + 1) for n, day in enumerate(DAYS) for row in rows), ""]))
    with pytest.raises(BadQuery, match="counts rows of two kinds by") as refused:
        outside_data.in_dollars(path)
    kind = re.search("kinds by ([^,]+),", str(refused.value))[1]  # type: ignore[index]
    for text, rest in of_text.items():
        assert f"leave_out={ {kind: [text]}!r}" in str(refused.value)
        assert outside_data.in_dollars(path, leave_out={kind: [text]})["spend"].sum() == rest
    assert f"leave_out={ {kind: []}!r} counts both" in str(refused.value)


def test_a_level_that_is_more_than_its_parts_is_asked_about(file: WriteFile) -> None:
    """A campaign whose other ad groups are not shown; one without any ad group is none."""
    rows = [f"{day},{rest}" for day in DAYS for rest in ("A,,33", "A,a1,10", "A,a2,20", "B,,5", "B,b1,2", "B,b2,3")]
    column = gl.read_table(file("\n".join(["Date,Campaign,Ad group,Cost (USD)", *rows, ""]))).column("Cost (USD)")
    assert "rows 2, 5, 8, 11, 14, ... of table.csv without Ad group are the sums of those with one, or more" in str(
        column.problem
    )
    rows = [f"{day},{rest}" for day in DAYS for rest in ("Max,,40", "A,a1,10", "A,a2,20")]
    column = gl.read_table(file("\n".join(["Date,Campaign,Ad group,Cost (USD)", *rows, ""]))).column("Cost (USD)")
    assert (column.problem, column.values.sum()) == (None, 280)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("lines", "said", "costs"),
    [
        (
            ["Network,Campaign,2026-11-01,2026-11-02", "Meta,a,10,11", "Moloco,b,5,6"],
            {"amount": "value"},
            [10, 5, 11, 6],
        ),
        (["Network;13.11.2026;14.11.2026", "Meta;10,5;11", "Moloco;-;6,5"], {"amount": "value"}, [10.5, 11, 6.5]),
        (["Cost (EUR),2026-11-01,2026-11-02,Total", "Meta,10,11,21", "Moloco,5,6,11"], {}, [10, 5, 11, 6]),
        (["Spend in EUR by day", "Network,20261101,20261102", "Meta,10,11", "Moloco,5,6"], {}, [10, 5, 11, 6]),
        (["Network,Cost (EUR) 2026-11-01,Cost (EUR) 2026-11-02", "Meta,10,11"], {}, [10, 11]),
        (
            ["Network,2026-11-01 Cost,2026-11-01 Clicks,2026-11-02 Cost,2026-11-02 Clicks", "Meta,10,7,11,8"],
            {},
            [10, 11],
        ),
        (["Country,2026-10,2026-11", "US,10,11"], {"amount": "value"}, [10, 11]),
    ],
)
def test_days_that_are_columns_are_rows(
    file: WriteFile, lines: list[str], said: dict[str, str], costs: list[float]
) -> None:
    """Alone or beside a measure; a total of all of them is no part of each. What they are is asked as of any number."""
    path = file("\n".join([*lines, ""]))
    if said:
        with pytest.raises(BadQuery, match='name it with amount="value"'):
            outside_data.in_dollars(path)
        with pytest.raises(BadQuery, match=r'pass currency="\.\.\."'):
            outside_data.in_dollars(path, **said)
    frame = outside_data.in_dollars(path, **said, currency="EUR", rate={"EUR": 1.0})
    assert frame["spend"].dropna().tolist() == costs
    assert frame["timestamp"].nunique() == 2


def test_days_without_a_year_that_are_columns_are_asked_about(file: WriteFile) -> None:
    path = file("Network,Nov 1,Nov 2,Nov 3\nMeta,10,11,12\n")
    with pytest.raises(BadQuery, match=r"day = 'Nov 1' names no year.*year=2026 reads it as of 2026"):
        outside_data.in_dollars(path, amount="value", currency="USD")


@pytest.mark.parametrize(
    "cells", ["01/11/2569;13/11/2569", "2569-11-01;2569-11-13", "1 พ.ย. 2569;13 พ.ย. 2569", "29/02/2567;"]
)
def test_years_of_the_buddhist_era_are_read_and_said(file: WriteFile, cells: str) -> None:
    """Also a leap day, which the year of the number does not have."""
    rows = [f"{cell},Meta,100" for cell in cells.split(";") if cell]
    table = gl.read_table(file("\n".join(["Date,Network,Cost (THB)", *rows, ""])))
    assert {*table.starts.dt.year} <= {2024, 2026}
    assert f"Date: {rows[0].split(',')[0]} is read as 20" in str(table)


def test_years_of_another_era_are_refused(file: WriteFile) -> None:
    """Of Iran, for one; nobody has data of the year 1405."""
    with pytest.raises(BadQuery, match="is of the year 1405: write years of the common era"):
        outside_data.in_dollars(file("Date,Network,Cost (USD)\n1405-08-10,Meta,100\n1405-08-11,Meta,50\n"))


def test_who_is_paid_in_every_row_is_an_argument(file: WriteFile) -> None:
    """Where no column says it; the format of a network says it, and that is told."""
    installs = tidy_frame("new_users", timestamp=DAYS, install_publisher=["Moloco"] * 4, new_users=[5] * 4)
    path = file("\n".join(["Date,Campaign,Cost (USD)", *(f"{day},a,{n + 1}" for n, day in enumerate(DAYS)), ""]))
    with pytest.raises(BadQuery, match=r'who is paid in every row, network="\.\.\."'):
        outside_data.cost_per_install(installs, "install_publisher", spend=path)
    costs = outside_data.cost_per_install(installs, "install_publisher", spend=path, network="Moloco Ads")
    assert costs["spend"].tolist() == [10]
    assert "network: the argument (Moloco)" in str(gl.read_table(path, network="Moloco"))
    with pytest.raises(BadQuery, match="is not what the column Network says") as refused:
        gl.read_table(file(HEADER + "\n" + REPORT[0] + "\n"), network="Moloco")
    assert 'roles={"Network": "text"}' in str(refused.value)
    table = gl.read_table(file(HEADER + "\n" + REPORT[0] + "\n"), network="Moloco", roles={"Network": "text"})
    assert table.of_role("network")[0].values.tolist() == ["Moloco"]
    meta = gl.read_table(Path(__file__).parent / "vendor_samples/meta_ads.csv")
    assert "All rows are paid to Meta Ads, which a file of Meta Ads Manager does not say itself" in str(meta)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("sample", "left_out", "column"),
    [
        ("app_store_financial.txt", ("Partner Share Currency",), "Extended Partner Share"),
        ("app_store_financial.txt", ("Partner Share Currency", "Customer Currency"), "Extended Partner Share"),
        ("app_store_sales.txt.gz", ("Currency of Proceeds",), "Developer Proceeds"),
        ("app_store_payments.csv", ("Bank Account Currency",), "Proceeds"),
        ("play_sales.csv", ("Currency of Sale",), "Charged Amount"),
        ("play_earnings.csv", ("Merchant Currency",), "Amount (Merchant Currency)"),
    ],
)
def test_proceeds_without_a_column_of_their_currency_are_asked_about(
    sample: str, left_out: tuple[str, ...], column: str
) -> None:
    """Nor are they in the currency of another column, and the format is known without it."""
    path = Path(__file__).parent / "vendor_samples" / sample
    source, grid = gl.read_table(path), read_grid(path)
    others = {name: pa.array(grid.cells.column(name).to_pylist()) for name in grid.columns if name not in left_out}
    table = gl.read_table(pa.table(others))
    assert table.vendor == source.vendor
    problem = str(table.column(column).money_problem)
    assert 'pass currency="..." with its code' in problem
    assert "USD" not in problem


def test_the_provider_of_a_mediation_report_is_its_network(file: WriteFile) -> None:
    rows = ["2026-11-01,x1,rewarded,UnityAds,10,100", "2026-11-01,x1,rewarded,AppLovin,20,150"]
    table = gl.read_table(file("\n".join(["date,appKey,adFormat,providerName,revenue,impressions", *rows, ""])))
    assert (table.vendor, table.column("providerName").role) == ("LevelPlay", "network")


def test_ends_of_local_days_are_local(file: WriteFile) -> None:
    """What the sentence about the start says is enough."""
    rows = [
        "2026-10-31T00:00:00-07:00,2026-11-01T00:00:00-07:00,5",
        "2026-11-01T00:00:00-07:00,2026-11-02T00:00:00-08:00,6",
    ]
    path = file("\n".join(["Start Time,End Time,Spend (USD)", *rows, ""]))
    with pytest.raises(BadQuery, match=r'roles=\{"Start Time": \{"role": "start", "local": True\}\}'):
        outside_data.in_dollars(path)
    table = gl.read_table(path, roles={"Start Time": {"role": "start", "local": True}})
    assert (table.period, table.starts.dt.day.tolist()) == ("day", [31, 1])


def test_what_tells_a_format_from_others_is_listed() -> None:
    listed = outside_data.formats().groupby("vendor", observed=True)["recognised_by"].first()
    assert "one of Impr.|" in listed["Google Ads"]
    assert "title of such a report above" in listed["Google Ads"]
    assert "a line above them like Name (.+)" in listed["App Store Connect analytics"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("text", "truth"),
    [
        (
            "Datum;Netzwerk;Kosten CHF\n1.11.2026;Meta;1’234.50\n2.11.2026;Meta;2'345.50\n13.11.2026;M;10.00\n",
            (3590, "CHF"),
        ),
        ("Date;Réseau;Dépenses (€)\n01/11/2026;Meta;1\u202f234,50\n13/11/2026;M;2\u00a0345,50\n", (3580, "EUR")),
        ('Date,Network,Cost (₹)\n2026-11-01,Meta,"1,23,456.50"\n2026-11-02,Meta,"12,345.00"\n', (135801.5, "INR")),
        (
            "Order date,Status,Sales (USD)\n2026-11-01,Paid,4.99\n2026-11-01,Refund,(4.99)\n2026-11-03,x,1.00-\n",
            (-1, "USD"),
        ),
        ('Date,Campaign,"Cost\n(USD)"\n2026-11-01,"a\nb",5\n2026-11-02,"a\nb",6\n', (11, "USD")),
        (
            "Month,Date,Network,Cost (USD)\nOct 2026,2026-10-30,A,5\nOct 2026,2026-10-31,A,6\nOct 2026,,,11\n",
            (11, "USD"),
        ),
        (
            "\ufeffStudio;;\n\ufeffDatum;Quelle;Kosten (EUR)\n01.11.2026;A;5,50\n13.11.2026;B;7,00\n;;\n"
            "Hinweis: ohne Gewähr;;\nErstellt am 14.11.2026;;\n",
            (12.5, "EUR"),
        ),
        ("ts,network,spend_usd\n1793491200000,Meta,5\n1793577600000,Meta,6\n", (11, "USD")),
        (
            "Day,Network,Cost\n2026-11-01,Meta,$10.00\n2026-11-01,M,€20.00\n2026-11-02,Meta,12.00\n",
            "names no currency for sure",
        ),
        ("Day,Network,Cost\n2026-11-01,Meta,12%\n2026-11-01,M,88%\n", "has no column of costs"),
        (
            "Install date,Event date,Cost (USD)\n2026-11-01,2026-11-01,5\n2026-11-01,2026-11-02,6\n",
            "are all days: say which",
        ),
        ("Date,Network,Cost (USD),Cost (USD)\n2026-11-01,Meta,5,50\n2026-11-02,Meta,6,60\n", "has several costs"),
        (
            "Date,Network,Cost (USD)\n2026-10-31,A,6\nOctober 2026,,6\n2026-11-01,A,7\nNovember 2026,,7\n",
            "mixes .* use one kind",
        ),
        (
            "EU (EUR)\nDate,Cost,Ads\n2026-11-01,1,1\n2026-11-02,2,1\nUS (USD)\nDate,Cost,Ads\n2026-11-01,3,1\n",
            "header_row=2 reads the first, header_row=6 the second",
        ),
        (
            "Currency: EUR,,\nDate,Cost,Ads\n2026-11-01,1,1\nCurrency: USD,,\nDate,Cost,Ads\n2026-11-01,3,1\n",
            "header_row=2 reads the first, header_row=5 the second",
        ),
        (
            "Date,Status,Cost (USD)\n2026-11-01,Charged,4.99\n2026-11-01,Refund,4.99\n2026-11-02,Charged,9.99\n",
            "is above 0 in 1 row of 'Refund'",
        ),
        (
            "Data;Rede;Custo (R$)\n01/11/2026;Meta;1.234\n13/11/2026;Meta;2.345\n",
            "no other value tells which: pass decimal=",
        ),
    ],
)
def test_a_strange_file_is_right_or_refused(file: WriteFile, text: str, truth: tuple[float, str] | str) -> None:
    """Their truth was written down before they were read for the first time."""
    path = file(text)
    if isinstance(truth, str):
        with pytest.raises(BadQuery, match=truth):
            outside_data.in_dollars(path)
    else:
        column = gl.read_table(path).of_role("amount")[0]
        assert (round(float(column.values.sum()), 2), column.currency, column.problem) == (*truth, None)


def test_hidden_rows_of_a_workbook_are_said(tmp_path: Path) -> None:
    """Who filtered a sheet means to read what is seen."""
    book = openpyxl.Workbook()
    for row in [HEADER.split(","), [DAYS[0], "Meta", 10], [DAYS[0], "Moloco", 5], [DAYS[1], "Meta", 11]]:
        book.active.append(row)
    book.active.row_dimensions[3].hidden = True
    book.save(tmp_path / "filtered.xlsx")
    path = tmp_path / "filtered.xlsx"
    step = "leave_out={'hidden': ['yes']}"
    assert f"row 3 of filtered.xlsx is hidden in the sheet, and read; {step} leaves it out" in gl.read_table(path).notes
    assert gl.read_table(path, leave_out={"hidden": ["yes"]}).frame["Cost (USD)"].tolist() == [10, 11]


def test_three_levels_count_once(file: WriteFile) -> None:
    """Campaigns, their ad sets and the ads of these, with empty names."""
    rows = [
        f"{day},{rest}" for day in DAYS for rest in ("A,,,30", "A,s,,10", "A,s,x,10", "A,t,,20", "A,t,y,12", "A,t,z,8")
    ]
    table = gl.read_table(file("\n".join(["Day,Campaign name,Ad set name,Ad name,Amount spent (EUR)", *rows, ""])))
    assert table.column("Amount spent (EUR)").values.sum() == 120


def test_numbers_of_several_measures_are_asked_about(file: WriteFile) -> None:
    rows = [f"{day},{name},{value}" for day in DAYS for name, value in (("Cost", 10), ("Installs", 3), ("Clicks", 50))]
    path = file("\n".join(["Date,Metric,Value", *rows, ""]))
    said = {"amount": "Value", "currency": "USD"}
    with pytest.raises(BadQuery, match="holds Cost, Installs, Clicks, by Metric: leave_out="):
        outside_data.in_dollars(path, **said)
    assert outside_data.in_dollars(path, **said, leave_out={"Metric": ["Installs", "Clicks"]})["spend"].sum() == 40


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "Date,Ads,Cost (USD)\n2026-11-01,A,1\n2026-11-02,A,2\nDate,Ads,Cost (EUR)\n2026-11-01,B,3\n",
            "header_row=1 reads the first, header_row=4 the second",
        ),
        (
            "Period,Cost (USD)\n2026-10-26 - 2026-11-01,70\n2026-10-26,10\n2026-10-27,10\n",
            r"several days, and other rows for one of them: leave_out=\{'Period': \['2026-10-26 - 2026-11-01'\]\}",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(file: WriteFile, text: str, rule: str) -> None:
    with pytest.raises(BadQuery, match=rule):
        outside_data.in_dollars(file(text))


def test_rows_of_averages_and_regions_do_not_count(file: WriteFile) -> None:
    """An average is no part of a sum, nor a region above its countries; one among them is asked about."""
    table = gl.read_table(file("Network,Cost (USD)\nMeta,10\nMoloco,20\nAverage,15\nTotal,30\n"))
    assert table.column("Cost (USD)").values.sum() == 30
    above, among = ("EMEA,30", "DE,10", "FR,20"), ("DE,10", "EMEA,30", "FR,20")
    path = file("\n".join(["Date,Region,Cost (USD)", *(f"{day},{row}" for day in DAYS for row in above), ""]))
    assert any("are the sums of the rows below" in note for note in gl.read_table(path).notes)
    assert outside_data.in_dollars(path)["spend"].sum() == 120
    path = file("\n".join(["Date,Region,Cost (USD)", *(f"{day},{row}" for day in DAYS for row in among), ""]))
    with pytest.raises(BadQuery, match=r"counts countries twice, .*totals=\['EMEA'\]"):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, totals=["EMEA"])["spend"].sum() == 120


def test_a_column_that_is_called_a_day_and_is_none_is_asked_about(file: WriteFile) -> None:
    """Its costs would be those of any days."""
    path = file("Date,Network,Cost (USD)\n31/10,Meta,5\n01/11,Meta,6\n")
    with pytest.raises(BadQuery, match=r"'31/10' names no year.*year=2026"):
        outside_data.in_dollars(path)
    path = file("Date,Network,Cost (USD)\nweek one,Meta,5\nweek two,Meta,6\n")
    with pytest.raises(BadQuery, match=r'is no day, as its header says: .*roles=\{"Date": "text"\}'):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, roles={"Date": "text"})["spend"].sum() == 11


MONTHS = ["{0},,", "28,10,1", "29,20,2", "30,30,4", "{2},60,7", "{1},,", "1,5,1", "2,7,3", "{2},12,4"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        ("Sep 26", "Oct 26", "Month total"), ("Sept. '26", "Okt. '26", "Monatssumme"),
        ("sept-26", "oct-26", "Total du mois"), ("сент. 26", "окт. 26", "Итого за месяц"),
        ("wrz 26", "paź 26", "Razem"), ("eyl 26", "eki 26", "Ay toplamı"),
        ("26年9月", "26年10月", "月計"), ("ก.ย. 69", "ต.ค. 69", "รวม"), ("09/26", "10/26", "Totale mese"),
        ("2026-09-01 00:00:00", "2026-10-01 00:00:00", "Total del mes"), ("Sep 26", "Oct 26", "Sum Oct"),
        ("Sep 26", "Oct 26", ""), ("Sep 26", "Oct 26", "both weeks"), ("September 2026", "October 2026", "Oct total"),
    ],
)  # fmt: skip
def test_days_below_months_of_two_digits(file: WriteFile, first: str, second: str, total: str) -> None:
    """Sep 26 above numbers of days is September 2026; its total is known by its word, or by its numbers."""
    path = file("\n".join(["Day,Meta (USD),Unity (USD)", *(row.format(first, second, total) for row in MONTHS), ""]))
    assert outside_data.in_dollars(path, amount="Meta (USD)")["spend"].sum() == 72
    table = gl.read_table(path, roles={"Day": "day"})
    shown = [f"{day:%m-%d}" for day in table.starts]
    assert shown == ["09-28", "09-29", "09-30", "10-01", "10-02"]


@pytest.mark.parametrize(("first", "second"), [("September", "October"), ("9月", "10月"), ("сентябрь", "октябрь")])
def test_days_below_months_without_a_year_ask_for_it(file: WriteFile, first: str, second: str) -> None:
    path = file("\n".join(["Day,Meta (USD),Unity (USD)", *(row.format(first, second, "Total") for row in MONTHS), ""]))
    problem = gl.read_table(path).periods.problem
    assert problem is not None
    assert "year=2026" in str(problem)
    table = gl.read_table(path, year=2026)
    assert (len(table.rows), f"{table.starts[0]:%Y-%m-%d}") == (5, "2026-09-28")


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("month", ["Oct 26", "October 2026", "Okt. '26", "окт. 26"])
@pytest.mark.parametrize("total", ["Month total", ""])
def test_a_month_above_days_is_no_header(file: WriteFile, month: str, total: str) -> None:
    """Also in a table of two columns, and where the running month has no total yet."""
    rows = [f"{month},", "1,5", "2,7", f"{total},12", f"{month.replace('26', '27')},", "1,4", "2,9"]
    assert outside_data.in_dollars(file("\n".join(["Day,Cost (USD)", *rows, ""])))["spend"].sum() == 25


@pytest.mark.parametrize("totals", [("Week total", "Week total", "Month total"), ("", "", "")])
def test_totals_of_weeks_below_a_month_are_left_out(file: WriteFile, totals: tuple[str, str, str]) -> None:
    """Each adds up the days since the one before, and the last all of them."""
    week, second, month = totals
    rows = ["Oct 26,,", "1,5,1", "2,7,2", f"{week},12,3", "3,4,3", "4,9,4", f"{second},13,7", f"{month},25,10"]
    path = file("\n".join(["Day,Meta (USD),Unity (USD)", *rows, ""]))
    assert outside_data.in_dollars(path, amount="Meta (USD)")["spend"].sum() == 25


def test_a_day_cell_that_was_merged_over_names_is_no_total(file: WriteFile) -> None:
    rows = ["Sep 26,,", "28,Meta,10", ",Unity,10", ",Moloco,20", "29,Meta,5", ",Unity,5"]
    table = gl.read_table(file("\n".join(["Day,Network,Cost (USD)", *rows, ""])))
    assert [f"{day:%d}" for day in table.starts] == ["28", "28", "28", "29", "29"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "word", ["Month total", "Total mes", "Monatssumme", "Итого за октябрь", "Average per day", "合計"]
)
@pytest.mark.parametrize("column", ["Day", "Clicks"])
def test_a_word_of_totals_among_numbers_is_a_total(file: WriteFile, word: str, column: str) -> None:
    """No day and no number is called so, whatever the column is."""
    rows = [*(f"{day},{day}0" for day in range(1, 9)), f"{word},360"]
    table = gl.read_table(file("\n".join([f"{column},Cost (USD)", *rows, ""])))
    assert table.column("Cost (USD)").values.sum() == 360
    assert table.notes == (
        'row 10 of table.csv adds up others and is left out; totals="keep" keeps it',
    ) or "row 10" in str(table)


def test_a_pivot_with_headings_of_their_own_is_added_up_once(file: WriteFile) -> None:
    """Rows that have no number are no part of what adds up."""
    rows = ["First half,,", "a,10,1", "b,20,3", "so far,30,4", "Second half,,", "c,5,5", "d,7,6", "rest,12,11"]
    assert outside_data.in_dollars(file("\n".join(["Where,Cost (USD),Clicks", *rows, ""])))["spend"].sum() == 42


KINDS = ["{0},US,{1},7,70", "{0},US,{2},100,50", "{0},DE,{1},9,90"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("kind", "count", "texts"),
    [
        ("Result indicator", "Results", ("actions:mobile_app_install", "actions:link_click")),
        ("Indicador de resultado", "Resultados", ("actions:mobile_app_install", "actions:link_click")),
        ("Ergebnisindikator", "Ergebnisse", ("App-Installationen", "Link-Klicks")),
        ("Индикатор результата", "Конверсии", ("установки", "клики")),
        ("結果インジケーター", "コンバージョン数", ("インストール", "クリック")),
        ("Product Type Identifier", "Units", ("1F", "IA1")),
        ("Event Name", "Event Count", ("af_purchase", "af_tutorial_completion")),
        ("Conversion action", "Conversions", ("First open", "Subscribe")),
        ("Nombre del evento", "Cantidad", ("login", "compra")),
    ],
)
@pytest.mark.parametrize("is_kind_last", [False, True])
def test_counts_of_different_things_are_not_added_up(
    file: WriteFile, kind: str, count: str, texts: tuple[str, str], *, is_kind_last: bool
) -> None:
    """Installs and clicks on links are no number together; the step of the refusal leaves those of one kind."""
    rows = [row.format(day, *texts).split(",") for day in DAYS[:2] for row in KINDS]
    header = ["Day", "Country", kind, count, "Spend (USD)"]
    order = [0, 1, 3, 4, 2] if is_kind_last else [*range(5)]
    path = file("\n".join(",".join(line[place] for place in order) for line in (header, *rows)) + "\n")
    frame = tidy_frame("new_users", country_code=["US", "DE"], new_users=[1, 2])
    assert f"count, of several things by {kind}" in str(gl.read_table(path))
    with pytest.raises(BadQuery, match=rf"{count} counts different things by {kind}, '{texts[0]}' and ") as refused:
        gl.join(frame, path, on={"country_code": "Country"}, columns=[count])
    assert f"leave_out={ {kind: [texts[1]]}!r} leaves the rows of {texts[0]!r} alone" in str(refused.value)
    report = gl.join(frame, path, on={"country_code": "Country"}).report
    assert any(f"{count} left out: it counts different things by {kind}" in said for said in report.warnings)
    told: dict[str, Any] = {"on": {"country_code": "Country"}, "columns": [count]}
    assert gl.join(frame, path, **told, leave_out={kind: [texts[1]]}).frame[count].tolist() == [14, 18]
    assert gl.join(frame, path, **told, how={count: "sum"}).frame[count].tolist() == [214, 18]


def test_counts_of_one_kind_are_added_up(file: WriteFile) -> None:
    """Also orders by event, installs beside results, and kinds that the frame keeps apart."""
    frame = tidy_frame("new_users", country_code=["US", "DE"], new_users=[1, 2])
    told: dict[str, Any] = {"on": {"country_code": "Country"}}
    rows = ["US,install,7,1", "US,install,8,2", "DE,install,9,3"]
    path = file("\n".join(["Country,Result indicator,Results,Installs", *rows, ""]))
    assert gl.join(frame, path, **told).frame["Results"].tolist() == [15, 9]
    rows = ["US,install,7,1", "US,click,8,2", "DE,install,9,3"]
    path = file("\n".join(["Country,Result indicator,Results,Installs", *rows, ""]))
    assert gl.join(frame, path, **told, columns=["Installs"]).frame["Installs"].tolist() == [3, 3]
    path = file("\n".join(["Country,Event name,Purchases,Spend (USD)", *rows, ""]))
    assert gl.join(frame, path, **told, columns=["Purchases"]).frame["Purchases"].tolist() == [15, 9]


def test_counts_of_another_kind_by_key_are_said(file: WriteFile) -> None:
    frame = tidy_frame("new_users", country_code=["US", "DE"], new_users=[1, 2])
    path = file("Country,Result indicator,Results,Spend (USD)\nUS,install,7,1\nDE,click,9,2\n")
    said = "Results counts different things by Result indicator, which is not in the frame"
    assert said in gl.join(frame, path, columns=["Results"]).report.warnings
    assert said not in gl.join(frame, path).report.warnings


def test_a_cost_per_result_of_different_things_is_left_out(file: WriteFile) -> None:
    rows = ["US,install,7,70.00,10.00", "US,click,100,50.00,0.50", "DE,install,9,90.00,10.00", "FR,click,3,4.50,1.50"]
    path = file("\n".join(["Country,Result indicator,Results,Spend (USD),Cost per result", *rows, ""]))
    frame = tidy_frame("new_users", country_code=["US", "DE"], new_users=[1, 2])
    joined = gl.join(frame, path)
    assert "Cost per result" not in joined.frame
    assert any(
        "Cost per result left out: it is a rate of Results, which counts" in said for said in joined.report.warnings
    )


def test_numbers_of_a_spreadsheet_among_days_of_a_workbook_are_read(tmp_path: Path) -> None:
    """Without a word the column would be text, and its table without days."""
    book, path = openpyxl.Workbook(), tmp_path / "table.xlsx"
    days: list[object] = [46296, *(datetime(2026, 10, day) for day in (2, 3, 4))]
    for row in [["Fecha", "Medio", "Cost (USD)"], *([day, "Meta", 10 + place] for place, day in enumerate(days))]:
        book.active.append(row)
    book.save(path)
    table = gl.read_table(path)
    assert [f"{day:%m-%d}" for day in table.starts] == ["10-01", "10-02", "10-03", "10-04"]
    assert "46296 is read as 2026-10-01" in str(table)
    book.active["A2"] = 44835
    book.save(path)
    asked = gl.read_table(path)
    assert "missing=['44835'] reads it as empty" in str(asked.periods.problem)
    with pytest.raises(BadQuery):
        outside_data.in_dollars(path)
    assert gl.read_table(path, missing=["44835"]).starts.isna().tolist() == [True, False, False, False]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "months"),
    [
        ("Invoice Date,Service Period", ("September 2026", "October 2026")),
        ("Date,Billing month", ("2026-09", "2026-10")),
        ("Payment date,For", ("Sep 2026", "Oct 2026")),
        ("Rechnungsdatum,Leistungszeitraum", ("September 2026", "1.-15. Oktober 2026")),
        ("Fatura Tarihi,Hizmet Dönemi", ("Eylül 2026", "1-15 Ekim 2026")),
        ("支払日,対象月", ("2026年9月", "2026年10月")),
    ],
)
def test_bills_of_other_months_are_asked_about(tmp_path: Path, header: str, months: tuple[str, str]) -> None:
    """A period beside the day of a bill that the day lies outside of: the question is which one is meant."""
    rows = [f"2026-10-05,{months[0]},10", f"2026-10-06,{months[0]},20", f"2026-11-17,{months[1]},30"]
    path = tmp_path / "bills.csv"
    path.write_text("\n".join([f"{header},Cost (USD)", *rows, ""]), encoding="utf-8")
    first, second = header.split(",")
    problem = gl.read_table(path).periods.problem
    assert problem is not None
    assert "are all days: say which one is meant" in str(problem)
    table = gl.read_table(path, roles={first: "text", second: "day"})
    assert table.starts.dt.strftime("%Y-%m-%d").tolist() == ["2026-09-01", "2026-09-01", "2026-10-01"]
    assert gl.read_table(path, roles={first: "day", second: "text"}).period == "day"


@pytest.mark.parametrize("months", [("2026-10", "2026-11"), ("October 2026", "November 2026"), ("October", "November")])
def test_the_month_of_a_day_says_nothing_more(tmp_path: Path, months: tuple[str, str]) -> None:
    rows = [f"2026-10-05,{months[0]},10", f"2026-10-06,{months[0]},20", f"2026-11-17,{months[1]},30"]
    path = tmp_path / "costs.csv"
    path.write_text("\n".join(["Date,Month,Cost (USD)", *rows, ""]), encoding="utf-8")
    table = gl.read_table(path)
    assert (table.period, table.periods.column, table.periods.problem) == ("day", "Date", None)
