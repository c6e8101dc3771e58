"""Columns that look like the amounts of their rows and are not: running totals, prices of one unit, cents."""

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
from support.tidy_frames import tidy_frame

DAYS = [f"2026-11-{day:02}" for day in range(1, 9)]
RUNNING = [10, 20, 35, 50, 60, 75, 90, 100]
INSTALLS = tidy_frame("new_users", timestamp=DAYS, install_publisher=["Meta Ads"] * 8, new_users=[5] * 8)


def written(folder: Path, header: str, cells: list[str]) -> Path:
    """Return a file with a row for each day, of one publisher."""
    path = folder / "costs.csv"
    rows = [f"{day},Meta Ads,{cell}" for day, cell in zip(DAYS, cells, strict=False)]
    path.write_text("\n".join([f"Day,Publisher,{header}", *rows, ""]), encoding="utf-8")
    return path


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    [
        "Cumulative spend (USD)", "Cost (USD; cumulative)", "Lifetime spend USD", "Running total cost USD",
        "mtd_cost_usd", "Kosten kumuliert (USD)", "Costo acumulado USD", "Spend to date (USD)", "累计消耗 USD",
    ],
)  # fmt: skip
def test_a_running_total_is_no_cost_of_a_day(tmp_path: Path, header: str) -> None:
    """Added up, the first dollar would count on every day."""
    path = written(tmp_path, header, [*map(str, RUNNING)])
    assert gl.read_table(path).column(header).role == "cumulative"
    readings: list[dict[str, Any]] = [{}, {"roles": {"Day": "day"}}]
    for reading in readings:
        with pytest.raises(BadQuery, match=r"is a running total.*roles=\{.*: \"cost\"\}"):
            outside_data.cost_per_install(INSTALLS, "install_publisher", spend=path, **reading)
    stated = outside_data.cost_per_install(INSTALLS, "install_publisher", spend=path, roles={header: "cost"})
    assert stated["spend"].tolist() == [sum(RUNNING)]


def test_a_running_total_that_was_joined_is_no_spend(tmp_path: Path) -> None:
    """What it is travels with the frame."""
    path = written(tmp_path, "Cumulative spend USD", [*map(str, RUNNING)])
    joined = gl.join(INSTALLS, path).frame
    with pytest.raises(BadQuery, match="is a number and no money"):
        outside_data.cost_per_install(joined, "install_publisher", spend="Cumulative spend USD")


def test_cells_that_only_grow_are_asked_about(tmp_path: Path) -> None:
    """A header may say cost where the cells are running totals: used only if somebody says what they are."""
    path = written(tmp_path, "Cost (USD)", [*map(str, RUNNING)])
    with pytest.raises(
        BadQuery, match=r'grows with every day.*roles=\{"Cost \(USD\)": "cost"\}.*cumulative="Cost \(USD\)"'
    ):
        outside_data.cost_per_install(INSTALLS, spend=path)
    stated = outside_data.cost_per_install(INSTALLS, spend=path, roles={"Cost (USD)": "cost"})
    assert stated["spend"].tolist() == [sum(RUNNING)]


RAMP = [100, 112, 121, 135, 150, 158, 171, 185, 204, 219, 240, 262, 281, 305]


def by_day(folder: Path, costs: list[int], clicks: list[int] | None = None, first: str = "2026-11-01") -> Path:
    """Return a file with these costs of a campaign on consecutive days, and clicks beside them."""
    days = pd.date_range(first, periods=len(costs)).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"Day": days, "Campaign": "Launch", "Cost (USD)": costs})
    (frame if clicks is None else frame.assign(Clicks=clicks)).to_csv(folder / "costs.csv", index=False)
    return folder / "costs.csv"


def test_a_campaign_that_grows_for_two_weeks_is_no_running_total(tmp_path: Path) -> None:
    """Its costs grow at a steady rate; those of a running total grow by a day's part of all days so far."""
    assert outside_data.in_dollars(by_day(tmp_path, RAMP))["spend"].sum() == sum(RAMP)
    totals = [sum(RAMP[:5][:day] or [0]) + 100 * max(day - 5, 0) for day in range(1, 15)]
    with pytest.raises(BadQuery, match="grows with every day"):
        outside_data.cost_per_install(INSTALLS, spend=by_day(tmp_path, totals))


def test_clicks_tell_what_costs_alone_leave_open(tmp_path: Path) -> None:
    """A budget that is raised by the same amount each day looks like a running total, beside clicks it does not."""
    costs = [100 + 20 * day for day in range(14)]
    clicks = [10 + 2 * day - day % 3 * 3 for day in range(14)]
    with pytest.raises(BadQuery, match="grows with every day"):
        outside_data.cost_per_install(INSTALLS, spend=by_day(tmp_path, costs))
    assert outside_data.in_dollars(by_day(tmp_path, costs, clicks))["spend"].sum() == sum(costs)
    with pytest.raises(BadQuery, match="grows with every day"):
        outside_data.cost_per_install(INSTALLS, spend=by_day(tmp_path, costs, [20, 22, 19] * 4 + [20, 22]))


def test_a_running_total_that_begins_anew_with_the_month_is_asked_about(tmp_path: Path) -> None:
    """It falls on the first of a month alone."""
    totals = [10 * day for day in range(15, 31)] + [10 * day for day in range(1, 16)]
    with pytest.raises(BadQuery, match="grows with every day"):
        outside_data.cost_per_install(INSTALLS, spend=by_day(tmp_path, totals, first="2026-11-15"))


def test_the_word_of_a_growing_income_is_income(tmp_path: Path) -> None:
    """What the refusal proposes is what the column would be."""
    path = written(tmp_path, "Revenue (USD)", [*map(str, RUNNING)])
    with pytest.raises(BadQuery, match=r'roles=\{"Revenue \(USD\)": "income"\}'):
        gl.join(INSTALLS, path)


@pytest.mark.parametrize("cells", [[10, 20, 35, 50, 60, 75, 90, 80], [10] * 8, [10, 11, 12, 13, 14, 15, 16, 17]])
def test_costs_that_fall_stay_or_grow_slowly_are_costs(tmp_path: Path, cells: list[int]) -> None:
    """Most costs of a week are."""
    path = written(tmp_path, "Cost (USD)", [*map(str, cells)])
    assert outside_data.cost_per_install(INSTALLS, spend=path)["spend"].tolist() == [sum(cells)]


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    "header",
    [
        "Planned cost", "Cost forecast", "plan_cost", "Spend (target)", "Geplante Kosten", "Kosten Soll", "Coût prévu",
        "Coste previsto", "Custo planejado", "Costi previsti", "Koszt planowany", "Плановые расходы", "目标消耗",
        "予測費用", "Previous cost", "Cost (previous week)", "Kosten Vorwoche", "Change in cost", "Spend limit",
        "Max. cost", "Daily budget", "Budget", "予算", "Refund", "Tax", "Umsatz", "Meta de gasto", "Gasto meta",
        "Meta do investimento", "custo_meta", "Inversión planificada", "Custos planejados", "Spesa pianificata",
        "Verba", "Tagesbudget", "Запланированные расходы", "Coûts planifiés",
    ],
)  # fmt: skip
def test_what_was_planned_compared_or_limited_is_no_cost(tmp_path: Path, header: str) -> None:
    """Beside the spend it is not taken; alone it is refused with what it is, and taken if it is named."""
    beside = written(tmp_path, f"{header},Spend,Currency", [f"{day}0,{day},USD" for day in (3, 1, 2)])
    assert outside_data.in_dollars(beside)["spend"].tolist() == [3, 1, 2]
    alone = written(tmp_path, f"{header},Currency", [f"{day}0,USD" for day in (3, 1, 2)])
    with pytest.raises(BadQuery, match=r"has no column of costs.*(name it with amount=|if that was spent)"):
        outside_data.cost_per_install(INSTALLS, spend=alone)
    assert outside_data.in_dollars(alone, header)["spend"].tolist() == [30, 10, 20]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    [
        "Estimated cost", "Actual spend", "Amount", "Coste estimado", "Kosten geschätzt", "Investimento", "Inversión",
        "Meta spend", "Investimento Meta Ads por país e dia", "Gasto Meta", "cost_meta", "META_SPEND", "Meta Kosten",
        "Spend (Meta)", "Budget spent", "Presupuesto gastado", "Verbrauchtes Budget", "Orçamento utilizado",
        "Budget consommé", "Budget speso", "已用预算",
    ],
)  # fmt: skip
def test_what_was_spent_is_a_cost(tmp_path: Path, header: str) -> None:
    """An estimate of a network is what it bills, and an amount in a file of its own may be what was spent.

    Meta, which is a goal in Portuguese, is who is paid; what was spent of a budget is a cost.
    """
    path = written(tmp_path, f"{header},Currency", ["3,USD", "1,USD"])
    assert outside_data.cost_per_install(INSTALLS, spend=path)["spend"].tolist() == [4.0]


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("header", "factor"),
    [
        ("cost_cents", 0.01), ("Kosten (ct)", 0.01), ("cost_usd_cents", 0.01), ("Spend (¢)", 0.01),
        ("cost_minor", 0.01), ("Cost in minor units", 0.01), ("revenue_minor_units", 0.01), ("Kosten in Cent", 0.01),
        ("costMicros", 1e-6), ("spend_e6", 1e-6), ("spend_micro_usd", 1e-6), ("ecpm_micros", 1e-6),
        ("cpi_cents", 0.01), ("price_cents", 0.01), ("Cost (thousands)", 1e3),
        ("Revenue in Tsd.", 1e3), ("Umsatz in Mio.", 1e6), ("消耗 万", 1e4), ("Spend ($ lakh)", 1e5),
        ("Cost USD m", 1e6), ("Kosten TUSD", 1e3), ("Cost", 1),
        ("Cost centre bill amount", 1), ("eCPM", 1), ("CPM (cost per mille)", 1),
    ],
)  # fmt: skip
def test_money_in_parts_or_multiples_of_a_unit_is_in_units(tmp_path: Path, header: str, factor: float) -> None:
    """What the header says of it is applied, and shown."""
    path = written(tmp_path, f"{header},Currency", ["1050,USD", "990,USD"])
    column = gl.read_table(path).column(header)
    assert column.currency == "USD"
    assert column.values.tolist() == pytest.approx([1050 * factor, 990 * factor])
    assert any("times" in it.says for it in column.evidence) == (factor != 1)


def test_a_price_in_cents_is_the_quotient_of_dollars(tmp_path: Path) -> None:
    """Rounded to a cent on both sides."""
    path = written(tmp_path, "Spend (USD),Installs,cpi_cents", ["10.00,3,333", "20.01,7,286", "5.55,9,62"])
    column = gl.read_table(path).column("cpi_cents")
    assert (str(column.weight), column.values.tolist()) == ("Spend (USD) / Installs", [3.33, 2.86, 0.62])


def test_minor_units_of_a_currency_without_any_are_asked_about(tmp_path: Path) -> None:
    """A yen has no cents, and a dinar has a thousand fils."""
    path = written(tmp_path, "cost_cents,Currency", ["1050,JPY", "990,JPY"])
    with pytest.raises(BadQuery, match=r'JPY.*roles=\{"cost_cents": \{"role": "cost", "scale": 1\}\}'):
        outside_data.cost_per_install(INSTALLS, spend=path, rate={"JPY": 0.0065})
    roles = {"cost_cents": {"role": "cost", "scale": 1}}
    stated = outside_data.cost_per_install(INSTALLS, spend=path, rate={"JPY": 0.01}, roles=roles)
    assert stated["spend"].tolist() == [pytest.approx(20.4)]


def test_a_cost_that_is_another_cost_by_a_count_is_one_of_a_unit(tmp_path: Path) -> None:
    """A column called Cost beside the budget that was spent is what an install cost."""
    rows = ["2.5,25.00,10,USD", "3.0,60.00,20,USD", "2.2,66.00,30,USD"]
    path = written(tmp_path, "Cost,Budget spent,Installs,Currency", rows)
    table = gl.read_table(path)
    assert (table.column("Cost").role, str(table.column("Cost").weight)) == ("rate", "Budget spent / Installs")
    assert outside_data.cost_per_install(INSTALLS, spend=path)["spend"].tolist() == [151.0]
    with pytest.raises(BadQuery, match="is Budget spent / Installs"):
        outside_data.in_dollars(path, "Cost")


def test_a_cost_that_is_written_twice_is_no_price(tmp_path: Path) -> None:
    """One install in each row makes the cost of a row that of an install."""
    path = written(tmp_path, "Cost,Spent,Installs,Currency", ["2.5,2.5,1,USD", "3.0,3.0,1,USD", "2.2,2.2,1,USD"])
    assert gl.read_table(path).in_words()["Cost"] == "cost, USD"


def test_costs_of_days_that_the_installs_do_not_cover_are_left_out(tmp_path: Path) -> None:
    """A file of two months says nothing more of a week of installs; one of other days alone is refused."""
    told: dict[str, Any] = {"on": {"install_publisher": "Campaign"}, "names": {"Launch": "Meta Ads"}}
    found = outside_data.cost_per_install(INSTALLS, spend=by_day(tmp_path, [10] * 60, first="2026-10-10"), **told)
    assert found[["installs", "spend", "cpi"]].to_numpy().tolist() == [[40, 80, 2]]
    other = by_day(tmp_path, [10] * 5, first="2027-01-01")
    with pytest.raises(BadQuery, match="has costs from 2027-01-01 to 2027-01-05 only, days that the frame does not"):
        outside_data.cost_per_install(INSTALLS, spend=other, **told)


def test_costs_that_are_split_less_than_the_installs_count_once(tmp_path: Path) -> None:
    """By publisher beside installs by publisher and country; a split that they do not have is refused."""
    rows = len(DAYS) * 2
    installs = tidy_frame(
        "new_users",
        timestamp=DAYS * 2,
        install_publisher=["Meta Ads"] * rows,
        country_code=["US"] * len(DAYS) + ["DE"] * len(DAYS),
        new_users=[5] * rows,
    )
    path = written(tmp_path, "Cost (USD)", ["10"] * len(DAYS))
    for by in (None, "install_publisher"):
        found = outside_data.cost_per_install(installs, by, spend=path)
        assert found[["installs", "spend", "cpi"]].to_numpy().tolist() == [[80, 80, 1]]
    with pytest.raises(BadQuery, match=r"country_code.*is not told apart in costs\.csv"):
        outside_data.cost_per_install(installs, "country_code", spend=path)


def test_costs_without_days_beside_installs_by_day_are_refused(tmp_path: Path) -> None:
    """They would count on every day."""
    path = tmp_path / "costs.csv"
    path.write_text("Publisher,Cost (USD)\nMeta Ads,10\n", encoding="utf-8")
    with pytest.raises(BadQuery, match="has no column of days"):
        outside_data.cost_per_install(INSTALLS, spend=path)


def test_one_of_several_costs_is_named(tmp_path: Path) -> None:
    """By the argument that the refusal names."""
    path = written(tmp_path, "Net cost (USD),Gross cost (USD)", ["10,12", "20,24"])
    with pytest.raises(BadQuery, match="several costs: say which with amount="):
        outside_data.cost_per_install(INSTALLS, spend=path)
    assert outside_data.cost_per_install(INSTALLS, spend=path, amount="Gross cost (USD)")["spend"].tolist() == [36]
    texts = written(tmp_path, "Cost,Note", ["about 10 dollars,a", "about 20 dollars,b"])
    with pytest.raises(BadQuery, match="Cost holds 'about 10 dollars'"):
        outside_data.cost_per_install(INSTALLS, spend=texts)
    with pytest.raises(BadQuery, match="is a rate, no amount"):
        outside_data.in_dollars(written(tmp_path, "CTR", ["1.5%", "2%"]), "CTR")


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "日付,媒体,費用\n2026-11-01,メタ,100\n"),
        ("euc_jp", "日付,媒体,費用\n2026-11-01,メタ,100\n"),
        ("cp949", "날짜,매체,광고비\n2026-11-01,메타,100\n"),
        ("gb18030", "日期,渠道,消耗\n2026-11-01,广告平台,100\n"),
        ("big5", "日期,媒體,花費\n2026-11-01,廣告平臺,100\n"),
        ("cp1251", "Дата,Сеть,Расход\n2026-11-01,Мета,100\n"),
        ("cp1250", "Dzień,Sieć,Koszt łączny\n2026-11-01,Meta,100\n"),
        ("cp1250", "Den,Síť,Částka\n2026-11-01,Meta,100\n"),
        ("cp1252", "Jour,Réseau,Coût\n2026-11-01,Meta,100\n"),
        ("cp1252", "Tag,Netzwerk,Währung\n2026-11-01,Meta,100\n"),
        ("cp1254", "Gün,Ağ,Harcanan tutarı\n2026-11-01,Meta,100\n"),
        ("utf-16-le", "Jour,Réseau,Coût\n2026-11-01,Meta,100\n"),
    ],
)
def test_the_encodings_of_a_text_that_is_no_utf8_are_named_as_they_read(
    tmp_path: Path, encoding: str, text: str
) -> None:
    """None is guessed: one of few is named, with how it reads the first words, and works when it is passed."""
    path = tmp_path / "file.csv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(BadQuery) as refused:
        gl.read_table(path)
    assert f'"{encoding}"' in refused.value.rule
    assert next(word for word in text.replace("\n", ",").split(",") if not word.isascii()) in refused.value.rule
    assert gl.read_table(path, encoding=encoding).columns[2].name == text.partition("\n")[0].split(",")[2]


def test_a_file_of_headers_alone_has_the_roles_that_they_say(tmp_path: Path) -> None:
    """A day without costs yet is no other format."""
    path = tmp_path / "spend.csv"
    path.write_text("Day,Channel,Spend (EUR)\n", encoding="utf-8")
    table = gl.read_table(path)
    assert [column.role for column in table.columns] == ["day", "network", "amount"]
    joined, _ = gl.join(INSTALLS, table)
    rates = tmp_path / "rates.csv"
    rates.write_text("date,usd_per_eur\n", encoding="utf-8")
    assert outside_data.in_dollars(joined, "Spend (EUR)", rates)["spend"].isna().all()


def test_a_file_that_is_no_text_names_no_encoding(tmp_path: Path) -> None:
    """A picture has none."""
    path = tmp_path / "file.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)))
    with pytest.raises(BadQuery, match="is not text"):
        gl.read_table(path)


def test_the_values_of_players_are_set_against_a_file_of_costs(tmp_path: Path) -> None:
    """What an install costs is computed from the file and the installs of the service."""
    values = pd.DataFrame(
        {
            "install_publisher": pd.Categorical(["Meta Ads"]),
            "age": pd.array([90], dtype="Int64"),
            "ltv": [4.0],
            "low": [3.0],
            "high": [5.0],
            "installs": pd.array([40], dtype="Int64"),
            "is_projected": [True],
        }
    )
    path = written(tmp_path, "Cost (EUR)", [*map(str, [20, 10] * 4)])
    cost = outside_data.cost_per_install(INSTALLS, "install_publisher", spend=path, rate={"EUR": 1.1})
    expected = outside_data.ltv_against_cpi(values, cost)
    for given in (path, str(path), gl.read_table(path)):
        found = outside_data.ltv_against_cpi(values, given, installs=INSTALLS, rate={"EUR": 1.1})
        pd.testing.assert_frame_equal(found, expected)
    assert expected["cpi"].tolist() == [pytest.approx(120 * 1.1 / 40)]
    with pytest.raises(BadQuery, match=r"installs.*query new_users by install_publisher"):
        outside_data.ltv_against_cpi(values, path)


@pytest.mark.parametrize("style", ["metrics.{}_{}", "metrics_{}_{}", "metrics.{}{}"])
def test_all_money_of_the_google_ads_api_is_in_micros(tmp_path: Path, style: str) -> None:
    """Also where only the cost says so: a cost of a click of 0.14 is written 140000."""
    words = [
        ("cost", "micros"),
        ("average", "cpc"),
        ("average", "cpm"),
        ("average", "cost"),
        ("cost", "per_conversion"),
    ]
    is_camel = style == "metrics.{}{}"
    names = [
        style.format(a, "".join(part.title() for part in b.split("_"))) if is_camel else style.format(a, b)
        for a, b in words
    ]
    header = ["segments.date", *names, "metrics.clicks", "metrics.impressions", "metrics.conversions", "Currency"]
    rows = [
        f"{day},{n * 14_000_000},{n * 140_000},{n * 1_400_000},{n * 140_000},{n * 1_400_000},100,10000,10,GBP"
        for n, day in enumerate(DAYS, 1)
    ]
    path = tmp_path / "api.csv"
    path.write_text("\n".join([",".join(header), *rows, ""]), encoding="utf-8")
    table = gl.read_table(path)
    assert table.vendor == "Google Ads API"
    assert [round(float(table.column(name).values.iloc[0]), 6) for name in names] == [14, 0.14, 1.4, 0.14, 1.4]
    assert str(table.column(names[1]).weight) == f"{names[0]} / metrics.clicks"


@pytest.mark.parametrize(("price", "units"), [("Developer Proceeds", "Units"), ("Partner Share", "Quantity")])
def test_the_price_of_a_unit_is_no_amount(tmp_path: Path, price: str, units: str) -> None:
    """Neither offered nor taken if it is named; what the sentence says gives the proceeds."""
    rows = [f"{day},Meta Ads,{n},3.5,EUR,4.99" for n, day in enumerate(DAYS, 1)]
    path = tmp_path / "sales.csv"
    header = f"Day,Publisher,{units},{price},Currency of Proceeds,Customer Price"
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    table = gl.read_table(path)
    assert table.in_words()[price] == f"price, EUR, average by {units}"
    assert table.column("Customer Price").role == "price"
    for amount in (None, price, "Customer Price"):
        with pytest.raises(BadQuery, match=f"is the price of one of {units}") as refused:
            outside_data.in_dollars(path, amount=amount, rate=1.0)
        assert "Allowed" not in str(refused.value)
    frame = table.frame
    frame["product"] = frame[price] * frame[units]
    costs = outside_data.in_dollars(gl.read_table(frame), amount="product", currency="Currency of Proceeds", rate=1.0)
    assert costs["spend"].sum() == 3.5 * sum(range(1, 9))


def test_one_currency_is_not_that_of_cells_in_another(tmp_path: Path) -> None:
    """It is said of the column whose cells do not tell."""
    path = tmp_path / "two.csv"
    rows = [f"{day},Meta Ads,${n}.00,€{n}.50" for n, day in enumerate(DAYS, 1)]
    path.write_text("\n".join(["Day,Publisher,Cost,Fee", *rows, ""]), encoding="utf-8")
    table = gl.read_table(path, currency="USD")
    assert [table.column(name).currency for name in ("Cost", "Fee")] == ["USD", "EUR"]
    named = gl.read_table(path, currency={"Cost": "USD", "Fee": "CHF"})
    assert [named.column(name).currency for name in ("Cost", "Fee")] == ["USD", "CHF"]


def test_a_running_total_that_was_corrected_is_asked_about(tmp_path: Path) -> None:
    """It falls once, by a little."""
    amounts = [7, 16, 23, 31, 37, 43, 42, 44, 46, 53, 61, 66, 72, 78]
    with pytest.raises(BadQuery, match="grows with nearly every day"):
        outside_data.cost_per_install(INSTALLS, spend=by_day(tmp_path, amounts))


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("title", "header", "scale"),
    [
        ("Montants en milliers d'USD (k$)", "Dépenses", 1e3),
        ("Kosten in TEUR", "Ist Kosten", 1e3),
        ("金额单位:万元(人民币)", "消耗", 1e4),
        ("All amounts in millions of US dollars", "Spend", 1e6),
        ("Суммы в тыс. руб.", "Расход", 1e3),
    ],
)
@pytest.mark.filterwarnings("ignore:.* is taken in ")
def test_a_title_that_names_thousands_is_asked_about(
    file: Callable[..., Path], title: str, header: str, scale: float
) -> None:
    """Both steps work: the amounts are so many times larger, or as they stand."""
    path = file(f"{title}\n\nDay;{header}\n2026-11-01;2,5\n2026-11-02;1,5\n")
    given: dict[str, Any] = {"currency": "EUR", "rate": {"EUR": 1.0}, "decimal": ","}
    with pytest.raises(BadQuery, match="by a line beside the table") as refused:
        outside_data.in_dollars(path, **given)
    for step in (scale, 1.0):
        roles = {header: {"role": "cost", "scale": step}}
        assert f'roles={{"{header}": {{"role": "cost", "scale": {step:g}}}}}' in str(refused.value)
        assert outside_data.in_dollars(path, roles=roles, **given)["spend"].sum() == 4 * step


@pytest.mark.parametrize(
    ("kind", "invoice", "credit"),
    [("Type", "Faktura", "Kreditnota"), ("Belegart", "Rechnung", "Gutschrift"), ("类型", "发票", "红字发票")],
)
def test_credit_notes_above_zero_are_asked_about(
    file: Callable[..., Path], kind: str, invoice: str, credit: str
) -> None:
    """Both steps work; where a credit note stands below 0 there is nothing to ask."""
    rows = [f"2026-11-01,{invoice},100", f"2026-11-02,{credit},30", f"2026-11-03,{invoice},50"]
    path = file("\n".join([f"Day,{kind},Amount (USD)", *rows, ""]))
    with pytest.raises(BadQuery, match="is above 0 in 1 row of") as refused:
        outside_data.in_dollars(path)
    roles = {"Amount (USD)": {"role": "amount", "negative": {kind: [credit]}}}
    assert f'"negative": { {kind: [credit]}!r}}}}} subtracts them' in str(refused.value)
    assert outside_data.in_dollars(path, roles=roles)["spend"].sum() == 120
    for texts, total in (([credit], 150), ([], 180)):
        assert f"leave_out={ {kind: texts}!r}" in str(refused.value)
        assert outside_data.in_dollars(path, leave_out={kind: texts})["spend"].sum() == total
    signed = file("\n".join([f"Day,{kind},Amount (USD)", *rows, ""]).replace(",30", ",-30"))
    assert outside_data.in_dollars(signed)["spend"].sum() == 120


@pytest.mark.parametrize(
    "header",
    [
        "설치당비용",
        "激活成本(元)",
        "インストール単価",
        "클릭당 비용",
        "Chi phí mỗi lượt cài đặt",
        "Yükleme başına maliyet",
    ],
)
def test_a_cost_for_each_install_is_a_rate_in_eastern_words(file: Callable[..., Path], header: str) -> None:
    path = file(f"Day,설치,Clicks,{header}\n2026-11-01,2,4,1.5\n2026-11-02,4,4,2.5\n")
    assert gl.read_table(path).column(header).role == "rate"


@pytest.mark.parametrize(("campaign", "action"), [("Campaign", "Conversion action"), ("Kampagne", "Ereignis")])
def test_a_cost_that_each_conversion_repeats_is_asked_about(
    file: Callable[..., Path], campaign: str, action: str
) -> None:
    """Both steps work: one row for each campaign and day, or all of them."""
    days = [(f"2026-11-0{day}", name, 10.0 * day + place) for day in range(1, 5) for place, name in enumerate("ABC")]
    rows = [f"{day},{name},{cost},{kind},{len(kind)}" for day, name, cost in days for kind in ("open", "level_10")]
    path = file("\n".join([f"Day,{campaign},Cost (USD),{action},Conversions", *rows, ""]))
    once = sum(cost for _, _, cost in days)
    with pytest.raises(
        BadQuery, match=f"is the same in all rows of one Day and {campaign}, whatever {action} is"
    ) as said:
        outside_data.in_dollars(path)
    with pytest.warns(UserWarning, match="would count once for each"):
        frame = gl.read_table(path).frame.drop_duplicates(["Day", campaign, "Cost (USD)"])
    assert f".drop_duplicates({['Day', campaign, 'Cost (USD)']!r})" in str(said.value)
    assert outside_data.in_dollars(gl.read_table(frame))["spend"].sum() == once
    assert "roles={'Cost (USD)': 'cost'}" in str(said.value)
    assert outside_data.in_dollars(path, roles={"Cost (USD)": "cost"})["spend"].sum() == 2 * once
    other = [row.replace("level_10,", "level_10,1") if row[9] != "1" else row for row in rows]
    split = [f"{row.rsplit(',', 3)[0]},{place},{row.rsplit(',', 2)[1]},1" for place, row in enumerate(other)]
    path = file("\n".join([f"Day,{campaign},Cost (USD),{action},Conversions", *split, ""]))
    assert outside_data.in_dollars(path)["spend"].sum() == sum(range(len(split)))


@pytest.mark.parametrize(
    ("header", "scale"),
    [
        ("Spend (₹ Cr)", 1e7),
        ("Spend (Cr)", 1e7),
        ("Spend Rs. Cr.", 1e7),
        ("Cost INR crore", 1e7),
        ("Cost (in ₹ L)", 1e5),
        ("Cost (₹ lacs)", 1e5),
        ("Cost (₹)", 1.0),
    ],
)
def test_crores_and_lakhs_of_a_header_are_read(tmp_path: Path, header: str, scale: float) -> None:
    path = tmp_path / "india.csv"
    path.write_text(f"Month,{header}\n2026-10-01,1.25\n2026-11-01,2.5\n", encoding="utf-8")
    found = outside_data.in_dollars(path, header, currency="INR", rate=1.0 / 90)
    assert found["spend"].sum() == pytest.approx(3.75 * scale / 90)


@pytest.mark.parametrize(
    "line", ["UA spend (₹ in Lakhs)", "UA spend, Rs. in L", "Spend in lacs of rupees", "Figures in INR lakh"]
)
def test_numbers_below_a_line_of_lakhs_are_asked_about_by_a_join(tmp_path: Path, line: str) -> None:
    """Also a column whose header says nothing of money, such as the name of a network."""
    path = tmp_path / "india.csv"
    path.write_text(f"{line}\n\nMonth,Meta\n2026-10-01,45.25\n2026-11-01,50.5\n", encoding="utf-8")
    frame = tidy_frame("new_users", timestamp=["2026-10-01", "2026-11-01"], new_users=[5, 6])
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-10-01T00:00Z/2026-12-01T00:00Z"}
    with pytest.raises(BadQuery, match=r"Meta may be in .* by a line beside the table") as refused:
        gl.join(frame, path, columns=["Meta"])
    assert 'roles={"Meta": {"role": "amount", "scale": 100000}} if so' in str(refused.value)
    roles = {"Meta": {"role": "amount", "scale": 100000}}
    assert gl.join(frame, path, columns=["Meta"], roles=roles).frame["Meta"].tolist() == [4_525_000, 5_050_000]


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("line", "scale"),
    [
        ("all figures in k EUR, net", 1e3),
        ("in T€", 1e3),
        ("Amounts: EUR k", 1e3),
        ("kEUR", 1e3),
        ("in €k", 1e3),
        ("USD M", 1e6),
        ("Spend, €m", 1e6),
        ("หน่วย: พันบาท", 1e3),
        ("(หน่วย : ล้านบาท)", 1e6),
        ("Одиниця виміру: тис. грн", 1e3),
        ("kwoty w tys. zł", 1e3),
        ("(단위: 천원)", 1e3),
        ("(단위: 백만원)", 1e6),
        ("Đơn vị: nghìn đồng", 1e3),
        ("ποσά σε χιλ. ευρώ", 1e3),
        ("Birim: bin TL", 1e3),
        ("dalam jutaan rupiah", 1e6),
        ("המחירים באלפי שקלים", 1e3),
        ("المبالغ بآلاف الدولارات", 1e3),
        ("राशि लाख रुपये में", 1e5),
        ("belopp i tkr", 1e3),
        ("Valores em R$ mil", 1e3),
        ("ngân sách tháng 11", None),
        ("인천 지사 광고비", None),
        ("Ribu Studio", None),
        ("all figures in EUR", None),
        ('"November budget: 35,000 EUR"', None),
        ("Team EUR", None),
    ],
)
def test_thousands_of_a_currency_in_a_line_are_asked_about(tmp_path: Path, line: str, scale: float | None) -> None:
    """As people write them beside a code or a sign, in either order."""
    path = tmp_path / "costs.csv"
    path.write_text(f"{line},,\n,,\nDate,Network,Cost\n2026-11-01,A,511\n2026-11-02,B,1022\n", encoding="utf-8")
    problem = gl.read_table(path).column("Cost").problem
    assert (problem is not None and f'"scale": {scale:g}' in str(problem)) if scale else problem is None


def test_a_column_of_codes_of_one_amount_is_of_that_alone(tmp_path: Path) -> None:
    """The other amounts have the column that is just called currency."""
    rows = ["2026-11-01,EUR,10,USD,11", "2026-11-02,USD,20,USD,20"]
    path = tmp_path / "etl.csv"
    path.write_text("\n".join(["date,original_currency,original_cost,currency,cost", *rows, ""]), encoding="utf-8")
    table = gl.read_table(path)
    assert table.column("cost").currency == "USD"
    assert table.column("original_cost").money_problem is None
    assert outside_data.in_dollars(path, "original_cost", rate={"EUR": 1.1})["spend"].tolist() == pytest.approx(
        [11, 20]
    )


def test_columns_of_codes_that_differ_are_both_proposed(tmp_path: Path) -> None:
    rows = ["2026-11-01,EUR,USD,10", "2026-11-02,USD,USD,20"]
    path = tmp_path / "etl.csv"
    path.write_text("\n".join(["date,account currency,billing currency,cost", *rows, ""]), encoding="utf-8")
    said = 'currency={"cost": "account currency"} or currency={"cost": "billing currency"}'
    with pytest.raises(BadQuery, match=said):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, currency={"cost": "billing currency"})["spend"].sum() == 30
    for named, spent in (("account currency", 31), ("billing currency", 30)):
        assert outside_data.in_dollars(path, currency=named, rate={"EUR": 1.1})["spend"].sum() == spent


def test_a_multiple_joined_to_its_currency_names_both(tmp_path: Path) -> None:
    """Thousand baht are baht, in a line as in a header."""
    path = tmp_path / "media.csv"
    path.write_text("หน่วย: พันบาท,\n,\nDate,Cost\n2026-11-01,511\n2026-11-02,1022\n", encoding="utf-8")
    table = gl.read_table(path, roles={"Cost": {"role": "cost", "scale": 1000}})
    assert table.column("Cost").currency == "THB"
    assert table.column("Cost").values.sum() == 1_533_000
    path.write_text("Date,Cost (พันบาท)\n2026-11-01,511\n2026-11-02,1022\n", encoding="utf-8")
    assert gl.read_table(path).column("Cost (พันบาท)").currency == "THB"
    assert gl.read_table(path).column("Cost (พันบาท)").values.sum() == 1_533_000


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("headers", "line"),
    [
        ("Den;Kampaň;Prokliky;Průměrná CPC;Cena;Konverze", "Částky jsou uvedeny v Kč bez DPH"),
        ("Tag;Kampagne;Klicks;CPC;Preis;Conversions", "Alle Beträge in EUR"),
        ("Jour;Campagne;Clics;CPC;Prix;Conversions", "Montants en EUR"),
        ("Dzień;Kampania;Kliknięcia;CPC;Cena;Konwersje", "Kwoty w zł netto"),
    ],
)
def test_the_price_of_an_ad_report_is_its_cost(tmp_path: Path, headers: str, line: str) -> None:
    """It grows with the clicks, and nothing else is an amount; the price of one click does not."""
    path, names = tmp_path / "report.csv", headers.split(";")
    clicks = (155, 384, 80, 140, 368, 98, 301)
    rows = [(count, count * (3 + count % 7 / 10), count // 9) for count in clicks]
    days = [f"2026-10-0{day};Harbor" for day in range(1, 8)]
    written = [
        f"{day};{a};{b / a:.2f};{b:.2f};{c}".replace(".", ",") for day, (a, b, c) in zip(days, rows, strict=True)
    ]
    path.write_text("\n".join([line, "", headers, *written, ""]), encoding="utf-8")
    table = gl.read_table(path)
    assert table.column(names[4]).role == "amount"
    assert (table.column(names[2]).role, table.column(names[5]).role) == ("count", "count")
    currency = table.column(names[4]).currency
    assert currency in ("CZK", "EUR", "PLN")
    spent = outside_data.in_dollars(path, rate={currency: 1})["spend"].sum()
    assert spent == pytest.approx(sum(round(b, 2) for _, b, _ in rows))
    rows = [(count, count * (3 + count % 4), count // 9) for count in clicks]
    of_one = [f"{day};{a};{b // a},00;{b // a},00;{c}" for day, (a, b, c) in zip(days, rows, strict=True)]
    path.write_text("\n".join([line, "", headers, *of_one, ""]), encoding="utf-8")
    assert gl.read_table(path).column(names[4]).role == "price"


@pytest.mark.parametrize(
    "header", ["Cumulative income D{} (EUR)", "Umsatz kumuliert Tag {} (EUR)", "revenue_cumulative_d{}_eur"]
)
def test_columns_of_the_ages_of_cohorts_are_no_running_totals(tmp_path: Path, header: str) -> None:
    """Rows are cohorts, which add up; an age that has not come is not known."""
    path = tmp_path / "cohorts.csv"
    headers = [header.format(age) for age in (0, 3, 7)]
    rows = ["2026-11-01,A,90,10,15,21", "2026-11-02,A,80,9,14,30", "2026-11-03,A,85,8,12,", "2026-11-04,A,70,7,,"]
    path.write_text(
        "\n".join([",".join(["Install Date", "Channel", "Installs", *headers]), *rows, ""]), encoding="utf-8"
    )
    for name, total in zip(headers, (34, 41, 51), strict=True):
        column = gl.read_table(path).column(name)
        assert (column.role, column.currency, column.problem) == ("amount", "EUR", None)
        assert outside_data.in_dollars(path, name, rate={"EUR": 1})["spend"].sum() == total
    one = ["Install Date,Cumulative income D7 (EUR)", *(f"2026-11-{day:02},{10 * day}" for day in range(1, 12)), ""]
    path.write_text("\n".join(one), encoding="utf-8")
    assert gl.read_table(path).columns[-1].role == "cumulative"


@pytest.mark.parametrize(
    "header",
    [
        "Biaya Media",
        "Media cost",
        "媒体费",
        "媒体費(税抜)",
        "매체비",
        "Costo media",
        "Coste de medios",
        "Achat média",
        "Koszt mediów",
    ],
)
def test_what_media_cost_is_a_cost(header: str) -> None:
    """Media is what is bought, and no average."""
    first = next(header_meanings(header))
    assert (first.role, first.concept) == ("amount", "cost")


@pytest.mark.parametrize("header", ["transactionAmountUSD", "transaction_amount_usd", "transactionAmount (USD)"])
def test_an_amount_in_dollars_beside_the_same_in_the_currency_of_the_row(tmp_path: Path, header: str) -> None:
    """The column of codes belongs to the other amount."""
    path = tmp_path / "earnings.csv"
    rows = ["2026-10-01,US,USD,19.99,19.99", "2026-10-02,DE,EUR,10.00,11.61", "2026-10-03,JP,JPY,1500,9.90"]
    head = f"transactionDate,country,transactionCurrency,transactionAmount,{header}"
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    table = gl.read_table(path)
    assert table.column(header).currency == "USD"
    of_rows = table.column("transactionAmount").currencies
    assert of_rows is not None
    assert of_rows.tolist() == ["USD", "EUR", "JPY"]
    assert outside_data.in_dollars(table, header)["spend"].sum() == pytest.approx(41.5)


def test_a_price_that_a_rate_divides_by_installs_is_a_cost(tmp_path: Path) -> None:
    """Cena is both words; without the rate, or where it is what one costs, it stays a price."""
    rows = [(159, 4342.01), (59, 3369.56), (213, 6831.40), (80, 800.00), (44, 1210.5), (98, 980.0)]
    head, path = "Datum,Systém,Instalace,Cena", tmp_path / "prehled.csv"
    lines = [f"2026-11-{day:02},Sklik,{count},{cost}" for day, (count, cost) in enumerate(rows, 1)]
    whole = [f"{line},{cost / count:.2f}" for line, (count, cost) in zip(lines, rows, strict=True)]
    path.write_text("\n".join([f"{head},Cena za instalaci", *whole, ""]), encoding="utf-8")
    column = gl.read_table(path, currency="CZK").column("Cena")
    assert (column.role, column.concept) == ("amount", "cost")
    assert column.values.sum() == pytest.approx(17533.47)
    single = [f"2026-11-{day:02},Sklik,{count},20" for day, (count, _) in enumerate(rows, 1)]
    path.write_text("\n".join([head, *single, ""]), encoding="utf-8")
    assert gl.read_table(path, currency="CZK").column("Cena").role == "price"


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("Revenue (Growth %)", "rate"),
        ("Revenue growth (%)", "rate"),
        ("Downloads (Growth %)", "rate"),
        ("Revenue WoW", "rate"),
        ("Revenue MoM", "rate"),
        ("消耗环比", "rate"),
        ("売上前週比", "rate"),
        ("매출 증감률", "rate"),
        ("Revenue (Absolute)", "amount"),
        ("Cost (incl. VAT 20%)", "amount"),
        ("Spend (70% rev share)", "amount"),
        ("Installs (100%)", "count"),
    ],
)
def test_a_rate_of_change_is_no_amount(tmp_path: Path, header: str, role: str) -> None:
    """Percentages of several apps have no sum."""
    path = tmp_path / "growth.csv"
    path.write_text(f"Day,App,{header}\n2026-11-01,A,-0.12\n2026-11-01,B,0.33\n", encoding="utf-8")
    assert gl.read_table(path).column(header).role == role


@pytest.mark.parametrize("header", ["Kosten (Tsd. EUR)", "Cost in thousands of EUR", "Cost (EUR micros)"])
@pytest.mark.parametrize("is_written", [False, True])
def test_the_frame_of_a_table_is_not_multiplied_again(tmp_path: Path, header: str, *, is_written: bool) -> None:
    """Its header still says thousands, also in a file that was made of it."""
    path = tmp_path / "kosten.csv"
    path.write_text(
        f"Tag,Netzwerk,{header},Installs (k)\n2026-11-01,Meta,1.5,2\n2026-11-02,Meta,2,3\n", encoding="utf-8"
    )
    first = gl.read_table(path)
    frame = first.frame.assign(note="x")
    if is_written:
        frame.drop(columns="Installs (k)").to_csv(path, index=False)
    again = gl.read_table(path if is_written else frame)
    assert again.column(header).values.tolist() == pytest.approx(first.column(header).values.tolist())
    assert first.column(header).values[1] == pytest.approx(2e-6 if "micros" in header else 2000)
    if not is_written:
        assert again.column("Installs (k)").values.tolist() == [2000, 3000]
