"""Running totals taken apart into the amounts of days, and what must be said first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]
Said = Mapping[str, str | Sequence[str] | Mapping[str, Sequence[str]]] | str

HEADER = "Spend to date (USD)"


def totals(file: WriteFile, rows: Sequence[str], header: str = HEADER, columns: str = "Date,Network") -> Path:
    """Return a file with a running total in its last column."""
    return file("\n".join([f"{columns},{header}", *rows, ""]), "costs.csv")


def days_of(costs: Mapping[str, Sequence[float]], first: str = "2026-11-01") -> list[str]:
    """Return the rows of running totals by network, all from the *first* day on."""
    return [
        f"{day},{name},{sum(amounts[: place + 1]):.10g}"
        for name, amounts in costs.items()
        for place, day in enumerate(pd.date_range(first, periods=len(amounts)).strftime("%Y-%m-%d"))
    ]


def amounts(path: Path, cumulative: Said = HEADER, **reading: Any) -> list[float]:
    """Return the dollars of each row."""
    spend = outside_data.in_dollars(path, cumulative=cumulative, **reading)["spend"]
    return [float(value) for value in spend]


COSTS: dict[str, list[float]] = {"Meta": [10, 7, 12.3, 0, 9], "Moloco": [50, 60, 40, 55, 45]}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("order", ["as written", "newest first", "by day"])
@pytest.mark.parametrize(
    "header",
    [HEADER, "Kosten kumuliert (USD)", "Costo acumulado USD", "Накопленный расход USD", "累计消耗 USD", "Cost (USD)"],
)
def test_differences_are_those_of_the_same_names(file: WriteFile, header: str, order: str) -> None:
    rows = days_of(COSTS)
    rows = {"as written": rows, "newest first": rows[::-1], "by day": sorted(rows)}[order]
    path = totals(file, rows, header)
    frame = outside_data.in_dollars(path, cumulative=header).sort_values(["Network", "timestamp"])
    assert frame["spend"].tolist() == pytest.approx([*COSTS["Meta"], *COSTS["Moloco"]])
    assert f"{header}: the running totals are taken apart into amounts by day" in str(
        gl.read_table(path, cumulative=[header])
    )


def test_joins_costs_and_returns_take_them(file: WriteFile) -> None:
    days = [f"2026-11-0{day}" for day in range(1, 6)]
    path = totals(file, days_of({"Meta Ads": COSTS["Moloco"]}))
    installs = tidy_frame("new_users", timestamp=days, install_publisher=["Meta Ads"] * 5, new_users=[5] * 5)
    assert gl.join(installs, path, cumulative=HEADER).frame[HEADER].tolist() == COSTS["Moloco"]
    costs = outside_data.cost_per_install(installs, "install_publisher", spend=path, cumulative=HEADER)
    assert costs["cpi"].tolist() == [10]
    money = tidy_frame(
        "revenue", timestamp=days, installed_on=days, install_publisher=["Meta Ads"] * 5, revenue=[5.0] * 5
    )
    money.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-11-01T00:00Z/2026-11-06T00:00Z"}
    with pytest.raises(BadQuery, match=r'cumulative="Spend to date \(USD\)" takes its differences by day'):
        outside_data.roas(path, money, ages=[0])
    assert outside_data.roas(path, money, ages=[0], cumulative=HEADER).frame["roas"].tolist() == [0.1]


def test_counts_stay_whole(file: WriteFile) -> None:
    path = totals(file, ["2026-11-01,Meta,10", "2026-11-02,Meta,25", "2026-11-03,Meta,25"], "Cumulative installs")
    column = gl.read_table(path, cumulative="Cumulative installs").column("Cumulative installs")
    assert (column.role, str(column.values.dtype), column.values.tolist()) == ("count", "Int64", [10, 15, 0])


def test_a_fall_must_be_explained(file: WriteFile) -> None:
    """It names the row, the two totals, and what each answer makes of them."""
    path = totals(file, days_of({"Meta": [10, 10, -2, 7], "Moloco": [5, 6, 5, 4]}))
    with pytest.raises(BadQuery, match=r"falls in row 4 \(2026-11-03\), from 20 to 18") as refused:
        amounts(path)
    assert f'cumulative={{"{HEADER}": "corrected"}} counts -2 on that day' in str(refused.value)
    assert amounts(path, {HEADER: "corrected"})[:4] == [10, 10, -2, 7]
    assert amounts(path, {HEADER: "restarts"})[:4] == [10, 10, 18, 7]
    assert f"{HEADER} falls 1 time: counted below 0" in str(gl.read_table(path, cumulative={HEADER: "corrected"}))


@pytest.mark.parametrize("header", [HEADER, "Spend MTD (USD)", "Month to date spend (USD)"])
def test_a_total_that_begins_anew_with_each_month_is_seen(file: WriteFile, header: str) -> None:
    october, november = (
        days_of({"Meta": [4] * days}, first) for days, first in ((31, "2026-10-01"), (3, "2026-11-01"))
    )
    path = totals(file, [*october, *november], header)
    assert amounts(path, header) == [4] * 34


def test_a_name_that_does_not_fall_with_the_month_is_asked_about(file: WriteFile) -> None:
    """Moloco began on the last day of October: its total of November is larger, and may hold that day."""
    rows = [
        "2026-10-30,Meta,290",
        "2026-10-31,Meta,300",
        "2026-11-01,Meta,10",
        "2026-10-31,Moloco,5",
        "2026-11-01,Moloco,8",
    ]
    path = totals(file, rows)
    with pytest.raises(BadQuery, match=r"falls in row 4 .*with a new month") as refused:
        amounts(path)
    assert f'cumulative={{"{HEADER}": "month"}}' in str(refused.value)
    with pytest.raises(BadQuery, match="may have days before its first row") as refused:
        amounts(path, {HEADER: "month"})
    assert f'cumulative={{"{HEADER}": ["month", "before"]}}' in str(refused.value)
    spent = amounts(path, {HEADER: ["month", "before"]})
    assert spent[1:] == pytest.approx([10, 10, 5, 8])
    assert pd.isna(spent[0])


def test_the_first_total_may_have_days_before(file: WriteFile) -> None:
    """A lifetime total, or a name that was changed: it is far more than any day."""
    path = totals(file, days_of({"Meta": [1_000, 10, 12]}))
    with pytest.raises(BadQuery, match=r"row 2 \(2026-11-01\) has 1,000") as refused:
        amounts(path)
    assert '"before"} leaves the first day of the table out' in str(refused.value)
    assert amounts(path, {HEADER: "first"}) == [1_000, 10, 12]
    spent = amounts(path, {HEADER: "before"})
    assert (pd.isna(spent[0]), spent[1:]) == (True, [10, 12])
    renamed = [*days_of({"Old": [50, 60]}), "2026-11-03,New,165", "2026-11-04,New,210"]
    with pytest.raises(BadQuery, match=r"row 4 \(2026-11-03\) has 165.*if names were changed"):
        amounts(totals(file, renamed))


@pytest.mark.parametrize(
    "rows",
    [
        ["2026-11-01,Meta,10", "2026-11-02,Meta,20", "2026-11-05,Meta,48"],
        ["2026-11-01,Meta,10", "2026-11-02,Meta,", "2026-11-03,Meta,48", *days_of({"Moloco": [5, 5, 5]})],
        ["2026-11-01,Meta,20", "2026-11-03,Meta,40", "2026-11-05,Meta,48", *days_of({"Moloco": [5, 5, 5, 5, 5]})],
    ],
)
def test_the_amounts_of_several_days_are_asked_about(file: WriteFile, rows: list[str]) -> None:
    """Days that no name has, an empty cell, a name that has only every other day."""
    path = totals(file, rows)
    with pytest.raises(BadQuery, match="has the amounts of several days") as refused:
        amounts(path)
    assert f'cumulative={{"{HEADER}": "gaps"}} counts them on that day' in str(refused.value)
    spent = [amount for amount in amounts(path, {HEADER: "gaps"}) if not pd.isna(amount)]
    assert sum(spent) == 48 + 5 * sum("Moloco" in row for row in rows)


def test_a_name_without_a_row_on_some_day_spent_nothing_on_it(file: WriteFile) -> None:
    rows = [row for row in days_of(COSTS) if row != "2026-11-04,Meta,29.3"]
    path = totals(file, rows)
    assert amounts(path)[:4] == pytest.approx([10, 7, 12.3, 9])
    assert "1 row follows days that only other names have" in str(gl.read_table(path, cumulative=HEADER))


def test_dates_a_week_apart_are_weeks_or_their_last_days(file: WriteFile) -> None:
    rows = [f"2026-11-{day:02},Meta,{total}" for day, total in ((2, 70), (9, 150), (16, 210))]
    path = totals(file, rows)
    with pytest.raises(BadQuery, match="has one day a week") as refused:
        amounts(path)
    assert 'roles={"Date": "week"}' in str(refused.value)
    assert amounts(path, roles={"Date": "week"}) == [70, 80, 60]
    assert amounts(path, {HEADER: "gaps"}, roles={"Date": "day"}) == [70, 80, 60]
    assert amounts(totals(file, ["2026-W45,Meta,70", "2026-W46,Meta,150"], columns="Week,Network")) == [70, 80]
    with pytest.raises(BadQuery, match="begins anew with each month, which row 2 goes beyond: pass totals by day"):
        amounts(
            totals(file, ["2026-W44,Meta,70", "2026-W45,Meta,150"], "Spend MTD (USD)", "Week,Network"),
            "Spend MTD (USD)",
        )


def test_texts_tell_totals_of_one_day_apart(file: WriteFile) -> None:
    rows = ["2026-11-01,a,on,10", "2026-11-01,b,on,20", "2026-11-02,a,off,15", "2026-11-02,b,on,30"]
    path = totals(file, rows, columns="Date,Creative,Status")
    assert amounts(path) == [10, 20, 5, 10]
    path = totals(file, ["2026-11-01,Meta,10", "2026-11-01,Meta,20", "2026-11-02,Meta,15"])
    with pytest.raises(BadQuery, match=r"rows 2, 3 of costs\.csv have the same day and the same names"):
        amounts(path)


def test_a_total_of_all_names_is_no_name(file: WriteFile) -> None:
    """Also one that only its empty cell tells."""
    rows = [*days_of(COSTS), *days_of({"": [sum(day) for day in zip(*COSTS.values(), strict=True)]})]
    assert sum(amounts(totals(file, rows))) == pytest.approx(sum(map(sum, COSTS.values())))


def test_quotients_of_totals_are_not_those_of_days(file: WriteFile) -> None:
    rows = [
        f"2026-11-0{day},{name},{cost},{cost // 2},2.00" for day, cost in ((1, 20), (2, 44), (3, 60)) for name in "ab"
    ]
    path = totals(file, rows, "Cumulative cost (USD),Cumulative installs,CPI", "Date,Campaign")
    table = gl.read_table(path, cumulative=["Cumulative cost (USD)", "Cumulative installs"])
    assert table.column("CPI").weight is None
    assert table.column("Cumulative cost (USD)").values.tolist() == [20, 20, 24, 24, 16, 16]


@pytest.mark.parametrize(
    ("cumulative", "rule"),
    [
        ("Costs", "is not a column of costs.csv"),
        ({HEADER: "monthly"}, "is not said of a running total"),
        ({HEADER: ["corrected", "restarts"]}, "contradict each other"),
        ("CTR", r'is a rate, which has no differences by day: roles=\{"CTR": "cost"\}'),
    ],
)
def test_what_is_said_must_be_possible(file: WriteFile, cumulative: Said, rule: str) -> None:
    path = totals(file, ["2026-11-01,Meta,1%,10", "2026-11-02,Meta,2%,20"], f"CTR,{HEADER}")
    with pytest.raises(BadQuery, match=rule):
        gl.read_table(path, cumulative=cumulative)


def test_rounded_totals_have_no_differences(file: WriteFile) -> None:
    """Of 1.2M and 1.2M the difference is anything below 100,000."""
    path = totals(file, ["2026-11-01,Meta,1.2M", "2026-11-02,Meta,1.2M"])
    with pytest.raises(BadQuery, match=r"is a rounded running total.*export it with all its digits"):
        amounts(path)


def test_a_table_without_days_has_no_differences(file: WriteFile) -> None:
    path = totals(file, ["a,10", "b,20"], columns="Campaign")
    with pytest.raises(BadQuery, match=r'has no days: name their column with roles=\{"\.\.\.": "day"\}'):
        amounts(path)
    path = totals(file, ["2026-10-01,2026-11-01,a,10", "2026-10-01,2026-11-02,a,20"], columns="Start,End,Campaign")
    with pytest.raises(BadQuery, match=r'rows are of periods.*roles=\{"Start": "text", "End": "day"\}'):
        amounts(path)
    assert amounts(path, {HEADER: "first"}, roles={"Start": "text", "End": "day"}) == [10, 10]


def report_with_totals(
    file: Callable[..., Path], *, unit: str | None = None, header: str = "Xyz", wrong: int = 0, days: int = 40
) -> Path:
    """Return a report of two networks with their cost by day, and what it adds up to in a column that says nothing."""
    lines, totals = [f"Date,Network,{header},Spend (USD),Installs"], dict.fromkeys(("Meta", "Moloco"), 0.0)
    for place, day in enumerate(pd.date_range("2026-10-05", periods=days)):
        for name, usual in (("Meta", 40), ("Moloco", 90)):
            begins = {"month": day.day == 1, "week": day.day_of_week == 0}.get(unit or "", False)
            cost = usual + (place * place) % 17 + 0.25
            totals[name] = round((0 if begins else totals[name]) + cost, 2)
            shown = totals[name] + (7 if place < wrong else 0) * (place % 2)
            lines.append(f"{day:%Y-%m-%d},{name},{shown:.2f},{cost:.2f},{usual // 10 + place % 5}")
    return file("\n".join([*lines, ""]))


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("unit", [None, "month", "week"])
@pytest.mark.parametrize("header", ["Xyz", "Cost (USD)", "Amount"])
def test_a_column_that_adds_up_another_is_a_running_total(
    file: Callable[..., Path], unit: str | None, header: str
) -> None:
    """Whatever its header says; the cost of the days is then the only one, and the argument decides."""
    path = report_with_totals(file, unit=unit, header=header)
    table = gl.read_table(path)
    assert [column.name for column in table.of_role("cumulative")] == [header]
    assert "cumulative: its cells (adds up Spend (USD))" in str(table)
    spend = table.column("Spend (USD)").values.sum()
    assert outside_data.in_dollars(path)["spend"].sum() == spend
    with pytest.warns(UserWarning, match="is a running total, whose rows do not add up"):
        assert header in table.frame
    with pytest.raises(BadQuery, match="is a running total, which has all days before"):
        outside_data.in_dollars(path, amount=header)
    assert gl.read_table(path, roles={header: "cost"}).column(header).role == "amount"
    taken = gl.read_table(path, cumulative={header: [unit, "first"] if unit else []}).column(header)
    assert taken.problem is None
    assert taken.values.sum() == pytest.approx(spend)


def test_a_column_that_adds_up_another_only_in_part_is_none(file: Callable[..., Path]) -> None:
    """Also the same amounts twice, and a total of all networks that begins anew each day."""
    assert not gl.read_table(report_with_totals(file, wrong=40)).of_role("cumulative")
    assert not gl.read_table(report_with_totals(file, days=3)).of_role("cumulative")
    days = [f"2026-11-{day:02}" for day in range(2, 22)]
    rows = [f"{day},{place % 7},{place % 7},{place % 7 + (place - 1) % 7}" for place, day in enumerate(days)]
    table = gl.read_table(file("\n".join(["Date,Cost (USD),Spend (USD),Xyz", *rows, ""])))
    assert not table.of_role("cumulative")


def test_texts_tell_the_totals_of_a_day_apart(file: Callable[..., Path]) -> None:
    """As they do where the totals are taken apart."""
    rows = [
        f"2026-11-{day:02},{name},{sum(usual + k * k % 7 for k in range(day)):.2f},{usual + (day - 1) ** 2 % 7:.2f}"
        for day in range(1, 15)
        for name, usual in (("blue", 5), ("red", 9))
    ]
    table = gl.read_table(file("\n".join(["Date,Variant,Xyz,Cost (USD)", *rows, ""])))
    assert [column.name for column in table.of_role("cumulative")] == ["Xyz"]


def test_a_count_that_adds_up_another_is_a_running_total(file: Callable[..., Path]) -> None:
    rows, total = [], 0
    for day in range(1, 15):
        total += day * day % 11
        rows.append(f"2026-11-{day:02},{total},{day * day % 11}")
    table = gl.read_table(file("\n".join(["Date,Installs,Downloads", *rows, ""])))
    assert (table.column("Installs").role, table.column("Downloads").role) == ("cumulative", "count")


def test_what_holds_for_some_names_is_said_of_these(file: WriteFile) -> None:
    """Moloco ran before the first day, Meta did not; the refusal names Moloco, by campaign or any column of names."""
    rows = days_of({"Meta": [10, 7, 12], "Moloco": [900, 60, 40]})
    path = totals(file, rows)
    with pytest.raises(BadQuery, match="may have days before its first row") as refused:
        amounts(path)
    said: dict[str, Any] = {HEADER: {"before": ["Moloco"]}}
    assert f'cumulative={{"{HEADER}": {{"before": [\'Moloco\']}}}} leaves out the first day of these' in str(
        refused.value
    )
    assert sum(value for value in amounts(path, said) if value == value) == 129
    assert sum(amounts(path, {HEADER: {"first": ["Moloco"]}})) == 1029
    with pytest.raises(BadQuery, match="is in no column of names"):
        amounts(path, {HEADER: {"before": ["Molocco"]}})
    with pytest.raises(BadQuery, match="is not said of some names alone"):
        amounts(path, {HEADER: {"month": ["Meta"]}})


def test_a_join_says_what_a_running_total_is(file: WriteFile) -> None:
    path = totals(file, days_of({"Meta": [10, 7, 12]}))
    frame = tidy_frame("new_users", timestamp=["2026-11-01", "2026-11-02"], new_users=[5, 6])
    report = gl.join(frame, path, columns=[HEADER]).report
    assert any("is a running total, which has all days before" in warning for warning in report.warnings)


def test_an_identifier_is_no_running_total(file: WriteFile) -> None:
    """Its steps of nothing are no amounts of a day, however many digits it has."""
    rows = [f"2026-11-{day:02},1807342215553{name},{name * day % 7 + 3}" for name in (101, 102) for day in range(1, 15)]
    table = gl.read_table(file("\n".join(["Date,Placement reference,Conversions", *rows, ""])))
    assert [column.role for column in table.columns][1] != "cumulative"
