"""A column whose header names a month is of that month: what is put beside the installs of others is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.header_months import month_of_header, months_of_columns
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame

ROWS = ("Meta,DE,100.50,900,310.10,1200,410.60", "Moloco,FR,50.50,400,110.10,600,160.60")
MONTHS = "Network,Country,Sep/26 cost EUR,Sep/26 clicks,Oct/26 cost EUR,Oct/26 clicks,Total cost EUR"


def file(tmp_path: Path, header: str = MONTHS, above: Sequence[str] = ()) -> Path:
    """Return a table by network and country with the costs of two months and their total."""
    return written(tmp_path / "plan.csv", *above, header, *ROWS)


def installs(over: str, every: str = "all") -> DataFrame:
    """Return new players by country, of one bucket or of the first two days."""
    days = [over[:10]] if every == "all" else [over[:10], f"{over[:8]}02"]
    countries, users = ["DE", "FR"] * len(days), [500, 400] * len(days)
    frame = tidy_frame("new_users", timestamp=sorted(days * 2), country_code=countries, new_users=users)
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": over}
    return frame


@pytest.mark.parametrize(
    ("header", "month"),
    [
        ("Sep/26 cost", "2026-09"),
        ("out/26 Custo", "2026-10"),
        ("Kosten Okt. 2026", "2026-10"),
        ("dez/26* Custo", "2026-12"),
        ("2026年10月 消耗", "2026-10"),
        ("2026년 10월 비용", "2026-10"),
        ("Spend 2026-10", "2026-10"),
        ("10/2026 Spend", "2026-10"),
        ("Dépenses octobre 2026", "2026-10"),
        ("Spend 2026-10-03", None),
        ("Spend 3 Oct 2026", None),
        ("Cost Oct 26", None),
        ("FY26 cost", None),
        ("Sep 2026 against Oct 2026", None),
        ("Top 2026", None),
    ],
)
def test_the_month_of_a_header(header: str, month: str | None) -> None:
    found = month_of_header(header)
    assert (found and f"{found[0].start:%Y-%m}") == month


def test_a_total_is_of_all_its_months() -> None:
    spans = months_of_columns(MONTHS.split(","))
    assert str(spans["Total cost EUR"].start)[:10] == "2026-09-01"
    assert str(spans["Total cost EUR"].end)[:10] == "2026-11-01"


@pytest.mark.parametrize("amount", ["Sep/26 cost EUR", "Total cost EUR"])
@pytest.mark.parametrize("days", [None, "2026-10"])
@pytest.mark.parametrize("every", ["all", "day"])
def test_costs_of_another_month_are_refused(tmp_path: Path, amount: str, days: str | None, every: str) -> None:
    """Also against an argument that says another month."""
    frame = installs("2026-10-01/2026-11-01", every)
    reading = {} if days is None else {"days": days}
    with pytest.raises(BadQuery, match="by its header"):
        outside_data.cost_per_install(frame, "country_code", spend=file(tmp_path), amount=amount, rate=1, **reading)
    if days is not None:
        with pytest.raises(BadQuery, match="is of 2026-09"):
            outside_data.in_dollars(file(tmp_path), amount, rate=1, days=days)


@pytest.mark.parametrize("days", [None, "2026-10"])
def test_costs_of_the_month_of_the_frame_count(tmp_path: Path, days: str | None) -> None:
    frame = installs("2026-10-01/2026-11-01")
    reading = {} if days is None else {"days": days}
    found = outside_data.cost_per_install(
        frame, "country_code", spend=file(tmp_path), amount="Oct/26 cost EUR", rate=1, **reading
    )
    assert found["spend"].sum() == pytest.approx(420.2)


def test_the_step_of_the_refusal_works(tmp_path: Path) -> None:
    path = file(tmp_path)
    with pytest.raises(BadQuery) as refused:
        outside_data.cost_per_install(
            installs("2026-11-01/2026-11-08", "day"), "country_code", spend=path, amount="Oct/26 cost EUR", rate=1
        )
    assert 'pass days="2026-10", and query new_users over="2026-10-01/2026-11-01", every="all"' in str(refused.value)


def test_a_sign_in_a_title_is_a_currency(tmp_path: Path) -> None:
    header = MONTHS.replace(" EUR", "")
    table = gl.read_table(file(tmp_path, header, ["Investimento por rede e país (R$)", ""]))
    assert table.column("Oct/26 cost").currency == "BRL"
    doubtful = gl.read_table(file(tmp_path, header, ["Spend by network ($)", ""])).column("Oct/26 cost")
    assert 'currency="USD"' in str(doubtful.money_problem)


BUDGET = "Channel,Country,{first},{second}"
BUDGET_ROWS = ("Meta,DE,100,900", "Moloco,FR,50,400", "Unity Ads,FR,20.5,60.25")


def budget(tmp_path: Path, first: str, second: str, title: str) -> Path:
    """Return a table of what was spent in one month and is planned for the next, below a *title* with the year."""
    return written(tmp_path / "tracker.csv", title, "", BUDGET.format(first=first, second=second), *BUDGET_ROWS)


@pytest.mark.parametrize(
    ("first", "second", "title"),
    [
        ("Oct actual", "Nov plan", "UA tracker Q4 2026 (EUR)"),
        ("Ist Okt.", "Plan Nov.", "Mediabudget 2026 in EUR"),
        ("Gasto octubre", "Previsto noviembre", "Presupuesto 2026 (EUR)"),
        ("10月 実績", "11月 予算", "広告費 2026年 (EUR)"),
        ("Факт октябрь", "План ноябрь", "Бюджет 2026, EUR"),
    ],
)
def test_a_month_in_a_header_has_the_year_of_the_title(tmp_path: Path, first: str, second: str, title: str) -> None:
    path = budget(tmp_path, first, second, title)
    roles = {first: "cost", second: "cost"}
    frame = installs("2026-11-01/2026-12-01")
    with pytest.raises(BadQuery, match="is of 2026-10 by its header"):
        outside_data.cost_per_install(frame, "country_code", spend=path, amount=first, rate=1.1, roles=roles)
    with pytest.raises(BadQuery, match="is of 2026-11 by its header"):
        outside_data.in_dollars(path, second, rate=1.1, days="2026-10", roles=roles)
    cost = outside_data.cost_per_install(frame, "country_code", spend=path, amount=second, rate=1, roles=roles)
    assert cost["spend"].sum() == pytest.approx(1360.25)
    warnings = gl.join(frame, path, on={"country_code": "Country"}, roles=roles).report.warnings
    said = next(warning for warning in warnings if "has no days" in warning)
    assert f"{first} is of 2026-10 and {second} of 2026-11 by their headers" in said
    assert 'days="2026-10"' in said


@pytest.mark.parametrize("header", ["May cost", "Set cost", "Out cost"])
def test_a_word_that_may_be_a_month_is_none_alone(tmp_path: Path, header: str) -> None:
    path = budget(tmp_path, header, "Clicks", "UA tracker 2026")
    frame = installs("2026-10-01/2026-11-01")
    cost = outside_data.cost_per_install(frame, "country_code", spend=path, amount=header, currency="USD")
    assert cost["spend"].sum() == pytest.approx(170.5)


def test_without_a_year_a_month_says_nothing(tmp_path: Path) -> None:
    path = budget(tmp_path, "Oct cost", "Nov cost", "UA tracker")
    frame = installs("2026-11-01/2026-12-01")
    cost = outside_data.cost_per_install(frame, "country_code", spend=path, amount="Oct cost", currency="USD")
    assert cost["spend"].sum() == pytest.approx(170.5)


@pytest.mark.parametrize(("first", "second"), [("Oct actual", "Nov plan"), ("Ist Okt.", "Plan Nov.")])
def test_a_scale_leaves_a_plan_one(tmp_path: Path, first: str, second: str) -> None:
    path = budget(tmp_path, first, second, "UA tracker Q4 2026, all figures in k EUR")
    roles = {name: {"role": "amount", "scale": 1000} for name in (first, second)}
    table = gl.read_table(path, roles=roles)
    assert table.in_words()[second] == "planned amount, EUR"
    assert table.in_words()[first] == "amount, EUR"
    with pytest.warns(UserWarning, match=f"{second} is a planned amount"):
        outside_data.cost_per_install(
            installs("2026-11-01/2026-12-01"), "country_code", spend=path, amount=second, rate=1.1, roles=roles
        )
