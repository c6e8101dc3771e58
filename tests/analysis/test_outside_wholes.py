"""Wholes that are larger than their parts, and stocks: what a day has is not added up over days, nor with its parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.roles import header_meanings
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame


def of_months(**columns: Any) -> pd.DataFrame:
    """Return a frame of October and November as a query returns it."""
    frame = tidy_frame("new_users", **columns)
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-10-01T00:00Z/2026-12-01T00:00Z"}
    return frame


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("whole", ["Worldwide", "WW", "All countries / regions", "Alle Länder", "全世界"])
def test_a_whole_that_is_larger_than_its_parts_is_asked_about(tmp_path: Path, whole: str) -> None:
    """By a sum over all rows, too, and also where totals are kept; both steps work."""
    cells = ((whole, 100), ("US", 40), ("DE", 30))
    rows = [f"2026-11-0{day},{name},{day * cost}" for day in (1, 2, 3) for name, cost in cells]
    path = written(tmp_path / "sales.csv", "Day,Country,Cost (USD)", *rows)
    for totals in ("skip", "keep"):
        with pytest.raises(BadQuery, match=f"has a row '{whole}' that is larger than the sum") as refused:
            outside_data.in_dollars(path, totals=totals)
        assert f"leave_out={ {'Country': ['US', 'DE']}!r} takes it alone" in str(refused.value)
        assert f"leave_out={ {'Country': [whole]}!r} its parts" in str(refused.value)
    assert outside_data.in_dollars(path, leave_out={"Country": ["US", "DE"]})["spend"].sum() == 600
    assert outside_data.in_dollars(path, leave_out={"Country": [whole]})["spend"].sum() == 420
    frame = tidy_frame("new_users", country_code=["US", "DE"], new_users=[10, 4])
    costs = outside_data.cost_per_install(frame, "country_code", spend=path, totals="keep")
    assert costs.set_index("country_code")["spend"].to_dict()["US"] == 240


def test_many_parts_are_left_out_by_a_frame(tmp_path: Path) -> None:
    names = ["US", "DE", "FR", "GB", "JP", "KR", "CN", "BR", "MX", "IT", "ES", "PL", "NL", "TR"]
    rows = [f"2026-11-01,{name},{place + 10}" for place, name in enumerate(names)]
    path = written(tmp_path / "sales.csv", "Day,Country,Cost (USD)", "2026-11-01,Worldwide,900", *rows)
    with pytest.raises(BadQuery, match=r'gl\.read_table\(frame\[frame\["Country"\] == .Worldwide.\]\) has it alone'):
        outside_data.in_dollars(path)
    frame = gl.read_table(path, totals="keep").frame
    assert outside_data.in_dollars(gl.read_table(frame[frame["Country"] == "Worldwide"]))["spend"].sum() == 900


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    [
        "Active subscribers",
        "Subscribers",
        "Installed audience",
        "Wallet balance (USD)",
        "Active installs",
        "Aktive Abonnenten",
        "Подписчики",
        "購読者数",
        "구독자 수",
        "订阅用户数",
        "Assinantes ativos",
        "MRR (USD)",
    ],
)
def test_a_stock_of_a_month_is_its_last_day(tmp_path: Path, header: str) -> None:
    """By country, and over all countries; with the whole, which is left out where it is the sum."""
    cells = (("All countries", 100), ("US", 60), ("DE", 40))
    days = pd.date_range("2026-10-29", "2026-11-03").strftime("%Y-%m-%d")
    rows = [f"{day},{name},{stock + place}" for place, day in enumerate(days) for name, stock in cells[1:]]
    rows += [f"{day},All countries,{100 + 2 * place}" for place, day in enumerate(days)]
    path = written(tmp_path / "stock.csv", f"Date,Country,{header}", *rows)
    assert gl.read_table(path).column(header).role == "stock"
    months = pd.to_datetime(["2026-10-01"] * 2 + ["2026-11-01"] * 2, utc=True)
    frame = of_months(timestamp=months, country_code=["US", "DE"] * 2, new_users=[10, 4, 5, 6])
    assert gl.join(frame, path).frame[header].tolist() == [62, 42, 65, 45]
    whole = of_months(timestamp=months[[0, 2]], new_users=[10, 4])
    assert gl.join(whole, path).frame[header].tolist() == [104, 110]


@pytest.mark.parametrize("header", ["New subscribers", "Subscribers gained", "Novos assinantes", "新規購読者数"])
def test_new_subscribers_are_no_stock(header: str) -> None:
    assert next(header_meanings(header)).role == "count"


def test_statistics_of_a_store_are_what_their_header_says(tmp_path: Path) -> None:
    """An audience is a stock, with a whole of more countries than the file has; an acquisition is not."""
    heads = ["Installed audience (All users, Unique users, Per interval, Daily)", "User acquisition (All users, Daily)"]
    for head, values in zip(heads, ("stock", "count"), strict=True):
        names = ("All countries / regions", "United States", "Germany")
        header = ",".join(["Date", *(f'"{head}: {name}"' for name in names), "Notes"])
        rows = [f'"Oct {day}, 2026",{200 + day},{80 + day},{20 + day},' for day in range(1, 9)]
        path = written(tmp_path / "statistics.csv", header, *rows)
        assert gl.read_table(path).column(head).role == values
        with pytest.raises(BadQuery, match="'All countries / regions' that is larger"):
            gl.join(tidy_frame("new_users", timestamp=["2026-10-08"], new_users=[3]), path)


def test_a_stock_is_added_up_within_a_day_whatever_is_done_over_days(tmp_path: Path) -> None:
    """The last day of all countries, and the mean of all days, not of rows."""
    rows = [f"2026-10-{day},{name},{stock * day}" for day in (29, 30, 31) for name, stock in (("US", 60), ("DE", 40))]
    path = written(tmp_path / "stock.csv", "Date,Country,Active subscriptions", *rows)
    frame = of_months(timestamp=pd.to_datetime(["2026-10-01"], utc=True), new_users=[5])
    for how, expected in (("last", 3100), ("mean", 3000)):
        joined = gl.join(frame, path, how={"Active subscriptions": how}).frame
        assert joined["Active subscriptions"].tolist() == [expected]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "charts"),
    [("Chart", ("Top Free", "Top Grossing")), ("Liste", ("topfree", "topgrossing")), ("榜单", ("免费榜", "畅销榜"))],
)
@pytest.mark.parametrize("role", ["rank", "count", None])
def test_ranks_of_two_charts_are_asked_about(
    tmp_path: Path, header: str, charts: tuple[str, str], role: str | None
) -> None:
    """Whatever they are taken for, and whatever is done with them; the step that is named leaves one chart."""
    rows = [
        f"2026-10-{day},{name},{rank + day}" for day in (30, 31) for name, rank in zip(charts, (5, 80), strict=True)
    ]
    path = written(tmp_path / "ranks.csv", f"Date,{header},US", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-30", "2026-10-31"], new_users=[5, 6])
    roles = {"US": role} if role else {}
    for how in ("best", "mean", "last") if role == "rank" else ("left",):
        way: Any = {"US": how} if role == "rank" else how
        with pytest.raises(BadQuery, match=f"different things by {header}") as refused:
            gl.join(frame, path, columns=["US"], roles=roles, how=way)
        assert f"leave_out={ {header: [charts[1]]}!r} leaves the rows of {charts[0]!r} alone" in str(refused.value)
    left = gl.join(frame, path, columns=["US"], roles=roles, leave_out={header: [charts[1]]}).frame
    assert left["US"].tolist() == [35, 36]


def test_the_last_of_several_ranks_of_a_day_is_none(tmp_path: Path) -> None:
    path = written(tmp_path / "ranks.csv", "Date,Device,Rank", "2026-10-31,phone,5", "2026-10-31,tablet,7")
    frame = tidy_frame("new_users", timestamp=["2026-10-31"], new_users=[5])
    with pytest.raises(BadQuery, match="several rows on the last day of one key"):
        gl.join(frame, path, columns=["Rank"], how={"Rank": "last"})
    assert gl.join(frame, path, columns=["Rank"], how={"Rank": "best"}).frame["Rank"].tolist() == [5]


def test_a_column_of_one_country_beside_countries_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "ranks.csv", "Date,US,DE", "2026-10-30,5,50", "2026-10-31,6,60")
    frame = tidy_frame("new_users", timestamp=["2026-10-31"] * 2, country_code=["US", "BR"], new_users=[5, 6])
    report = gl.join(frame, path, columns=["US"], roles={"US": "rank"}).report
    assert any("US is of one country by its name" in warning for warning in report.warnings)


@pytest.mark.parametrize("title", ["Ad spend", "Media plan", ""])
def test_regions_below_their_countries_are_left_out_and_not_asked_about(file: Callable[..., Path], title: str) -> None:
    """A table says one thing of them: they are left out by their numbers, whatever the column is taken for."""
    parts = {"SE": 13.0, "NO": 20.5, "DK": 40.0, "Nordics": 73.5, "ES": 5.0, "PT": 8.25, "FR": 9.0, "South": 22.25}
    parts |= {"JP": 7.0, "KR": 3.0, "East": 10.0}
    rows = [f"{name},{number},{number * 2},{number * 5}" for name, number in parts.items()]
    path = file("\n".join([*([f"{title},,,"] if title else []), "Country,2026-09,2026-10,2026-11", *rows, ""]))
    name = gl.read_table(path).columns[-1].name
    for role in (None, "cost"):
        table = gl.read_table(path, roles={name: role} if role else {}, currency="USD")
        assert len(table.rows) == 3 * 8
        assert table.column(name).problem is None
        assert table.column(name).values.sum() == 105.75 * 8


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("Active Standard Price Subscriptions", "stock"),
        ("Active paying subscribers", "stock"),
        ("Aktive bezahlte Abos", "stock"),
        ("Abonnements payants actifs", "stock"),
        ("Suscripciones activas", "stock"),
        ("Active subscription price", "price"),
        ("New subscriptions", "count"),
    ],
)
def test_subscriptions_that_are_active_are_a_stock(header: str, role: str) -> None:
    """Whatever words stand within."""
    assert next(header_meanings(header)).role == role


def test_unit_prices_of_a_subscription_report_are_weighted_and_its_counts_added_over_rows() -> None:
    """A price of one subscription is no income: the report has no amounts."""
    path = Path(__file__).parent / "vendor_samples/app_store_subscriptions.txt"
    frame = pd.DataFrame({"country_code": ["US", "DE", "FR"], "new_users": [1, 1, 1]})
    columns = ["Active Standard Price Subscriptions", "Developer Proceeds"]
    joined = gl.join(frame, path, columns=columns).frame.set_index("country_code")
    assert joined[columns[0]].tolist() == [160, 51, 22]
    assert joined[columns[1]]["US"] == pytest.approx((120 * 4.19 + 40 * 34.99) / 160)
    with pytest.raises(BadQuery):
        outside_data.in_dollars(path)


@pytest.mark.parametrize(
    ("header", "total"),
    [
        ("Date;Tous les territoires;France;Allemagne;Japon", "Tous les territoires"),
        ("Date;France;Allemagne;Japon;Total", "Total"),
        ("Date;Gross (EUR);Net (EUR);Fee (EUR);VAT (EUR)", None),
        ("Date;Zzz;France;Germany;Japan", "Zzz"),
    ],
)
def test_a_column_that_adds_up_its_neighbours_is_told(tmp_path: Path, header: str, total: str | None) -> None:
    """One column for each country, and one for all: a sum over all of them is twice the truth."""
    lines = [header]
    for day in (1, 2, 3, 4):
        parts = [day + 0.5, 2.25 * day, 3.0 + day]
        cells = [*parts, sum(parts)] if header.endswith("Total") else [sum(parts), *parts]
        lines.append(";".join([f"2026-11-0{day}", *map(str, cells)]))
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n")
    notes = " ".join(gl.read_table(path).notes)
    assert (f"{total} adds up" in notes) if total else ("adds up" not in notes)


@pytest.mark.parametrize(
    ("header", "rows", "note"),
    [
        (
            "day,revenue,cost,ad_revenue,all_revenue",
            ["1,5.5,9,2.25,7.75", "2,6,9,1,7", "3,0,9,3.5,3.5", "4,8.1,9,2,10.1"],
            "all_revenue adds up revenue, ad_revenue in every row",
        ),
        (
            "dia,ingresos iap,ingresos publicitarios,usuarios,ingresos",
            ["1,5.5,2.25,4,7.75", "2,6,1,4,7", "3,0.5,3.5,4,4", "4,8.1,2,4,10.1"],
            "ingresos adds up ingresos iap, ingresos publicitarios in every row",
        ),
        (
            "day,total revenue,cost,sales",
            ["1,5.5,9,5.5", "2,6,9,6", "3,0.5,9,0.5", "4,8.1,9,8.1"],
            "sales has the numbers of total revenue in every row",
        ),
        ("day,revenue,cost,ad_revenue,all_revenue", ["1,5.5,9,2.25,7.75", "2,6,9,1,8", "3,1,9,3,4", "4,8,9,2,10"], ""),
        ("day,revenue,cost,media cost", ["1,5,5,0", "2,6,6,0", "3,7,7,0", "4,8,8,0"], ""),
        ("day,revenue d0,revenue d7,revenue d30", ["1,0,0,0", "2,0,0,0", "3,1,1,1", "4,0,0,0"], ""),
    ],
)
def test_a_column_of_money_that_others_add_up_to_is_said(
    tmp_path: Path, header: str, rows: list[str], note: str
) -> None:
    """A sum over all of them would count it twice."""
    notes = gl.read_table(written(tmp_path / "table.csv", header, *rows), currency="EUR").notes
    said = [one for one in notes if "in every row" in one]
    assert (len(said) == 1 and said[0].startswith(note)) if note else not said
