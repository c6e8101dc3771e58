"""Tables to look at: readable headings, units and numbers, notes, totals and bars, in HTML, mail and text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace
from pandas import DataFrame

import gamelens.notebook.accessor  # noqa: F401  (registers df.lens)
from gamelens.analysis import retention
from gamelens.analysis.decomposition import decompose
from gamelens.analysis.tidy_frames.results import as_result
from gamelens.errors import BadQuery, NotAdditive
from gamelens.notebook.tables import html_layout
from gamelens.notebook.tables.frame_table import MOST_ROWS, FrameTable
from gamelens.notebook.tables.table_contents import MAY_CHANGE, PARTLY_COUNTED, TableColumn, TableContents
from gamelens.receipts import QueryRecord, Receipt
from gamelens.wire.intervals import Granularity, Interval
from support.hostile_names import NAMES
from support.retention_frames import frame_of
from support.tidy_frames import tidy_frame


def cells(frame: DataFrame, *, part: str = "tbody", **options: Any) -> list[str]:
    """Return the texts of the cells of a part of a table, without markup."""
    inner = re.findall(rf"<{part}.*?</{part}>", FrameTable(frame, **options).html(), re.DOTALL)
    found = re.findall(r"<t([hd])\b[^>]*>(.*?)</t\1>", "".join(inner), re.DOTALL)
    return [re.sub("<[^>]+>", "", cell) for _, cell in found]


def headings(frame: DataFrame) -> list[str]:
    """Return the headings."""
    return cells(frame, part="thead")


def daily(**columns: list[Any]) -> DataFrame:
    """Return a frame of days, the last two of which are not settled, with its receipt."""
    days = pd.date_range("2026-11-16", periods=len(next(iter(columns.values()))), tz="UTC")
    frame = DataFrame({"timestamp": days, **columns})
    asked = QueryRecord(
        metric="ilrd_revenue", every="day", interval=str(Interval(days[0], days[-1] + pd.Timedelta(days=1)))
    )
    frame.attrs["gamelens"] = Receipt(asked=asked, as_of=(days[-1] + pd.Timedelta(days=1)).isoformat()).to_json()
    return frame


def revenue(days: int = 4) -> DataFrame:
    """Return ad revenue by day."""
    money = [float(day + 1) for day in range(days)]
    cents = [100 * it for it in money]
    counts = {"ilrd_revenue_event_count": [1000] * days, "user_unique": [7] * days}
    means = [it / 1000 for it in money]
    return daily(**counts, ilrd_revenue_mean=means, ilrd_revenue=money, ilrd_revenue_sum_cents=cents)


def test_headings_are_words_with_their_unit() -> None:
    """Columns have readable names, and the unit below."""
    assert headings(DataFrame({"country_code": ["US"], "ecpm": [1.0]})) == ["Country", "eCPMUSD per 1,000 impressions"]


def test_a_title_that_is_a_column_keeps_its_capitals() -> None:
    """The overview of a health board has a column for each game."""
    assert headings(DataFrame({"number": ["Sessions"], "Tile Harbor": ["+1%"]})) == ["Number", "Tile Harbor"]


def test_a_unit_that_the_name_tells_is_not_said_twice() -> None:
    """A share of the change is one already."""
    frame = DataFrame({"share_of_change": [0.5], "expected_share": [0.5], "players": [7]})
    assert headings(frame) == ["Share of the change", "Expected share", "Players"]


def test_a_day_stays_on_its_line() -> None:
    """Days as text as well, other text not."""
    written = FrameTable(DataFrame({"severity": ["ok"], "day": ["2026-11-20"], "open since": [""]})).html()
    assert written.count("white-space:nowrap") == 2
    assert '<span style="white-space:nowrap">2026-11-20</span>' in written
    assert ">ok</th>" in written


def test_fields_of_a_metric_are_named_after_it() -> None:
    """The metric itself by its name alone."""
    names = ["Day", "Ad revenue, events", "Active players", "Ad revenue, meanUSD", "Ad revenueUSD"]
    assert headings(revenue())[:5] == names


@pytest.mark.parametrize(
    ("every", "start", "heading", "cell"),
    [
        ("day", "2026-10-01", "Day", "1 Oct 2026"),
        ("week", "2026-10-05", "Week of", "5 Oct 2026"),
        ("month", "2026-10-01", "Month", "Oct 2026"),
        ("all", "2026-10-01", "Period", "1 Oct 2026 to 30 Nov 2026, 61 days"),
    ],
)
def test_times_are_headed_and_written_as_their_bucket(every: Granularity, start: str, heading: str, cell: str) -> None:
    """A month is not a day, and one number for the whole time has its period."""
    frame = DataFrame({"timestamp": pd.to_datetime([start], utc=True), "user_unique": [7]})
    frame.attrs["gamelens"] = Receipt(
        asked=QueryRecord(every=every, interval="2026-10-01/2026-12-01"), as_of="2027-01-01T00:00Z"
    ).to_json()
    assert (headings(frame)[0], cells(frame)[0]) == (heading, cell)
    assert (heading in str(frame.lens.table()), cell in str(frame.lens.table())) == (True, True)


def test_a_period_that_the_receipt_does_not_know_has_its_start() -> None:
    """Without an interval, or where a row begins at another time, nothing is guessed."""
    frame = DataFrame({"timestamp": pd.to_datetime(["2026-10-01", "2026-10-02"], utc=True), "user_unique": [7, 8]})
    for interval in (None, "2026-10-01/2026-10-03"):
        frame.attrs["gamelens"] = Receipt(asked=QueryRecord(every="all", interval=interval)).to_json()
        assert (headings(frame)[0], cells(frame)[0]) == ("Period from", "1 Oct 2026")


def test_numbers_are_written_in_their_unit() -> None:
    """Money has cents, shares are percentages, counts are whole, a tiny p-value is a bound, a null says so."""
    frame = DataFrame(
        {"ad_revenue": [1234.567], "revenue_share": [0.1234], "impressions": [98765], "p_value": [0.00001]}
    )
    assert cells(frame) == ["&#36;1,235", "12.3%", "98,765", "&#60; 0.001"]
    assert cells(DataFrame({"ecpm": [None]}, dtype="float64")) == ["n/a"]
    assert cells(DataFrame({"day": [pd.NaT]}, dtype="datetime64[us, UTC]")) == ["n/a"]


def test_low_and_high_are_one_column_in_the_unit_of_the_number() -> None:
    """Two bounds become an interval, written like the number before them."""
    frame = DataFrame({"retention": [0.4], "low": [0.385], "high": [0.415]})
    assert headings(frame)[1:] == ["Interval"]
    assert cells(frame) == ["40.0%", "38.5% to 41.5%"]


def test_bounds_of_words_are_no_interval() -> None:
    """A degree from spread to concentrated stays in two columns."""
    frame = DataFrame({"hhi": [0.12], "degree_low": ["spread"], "degree_high": ["concentrated"]})
    assert cells(frame)[-2:] == ["spread", "concentrated"]


def test_columns_need_no_text_as_name() -> None:
    """A matrix has an age above each column."""
    assert cells(DataFrame({1: [0.5], 7: [0.25]})) == ["0.500", "0.250"]


def test_players_who_returned_are_counted() -> None:
    """Beside installs, `returned` is players, not a share."""
    frame = DataFrame({"age": [1], "installs": [400], "returned": [137], "retention": [0.3425]})
    assert cells(frame) == ["1", "400", "137", "34.2%"]


def test_a_change_is_what_its_analysis_lists() -> None:
    """Of a decomposition it is dollars, also alone; of a frame that no analysis made it is what the name says."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01", "2026-11-02"],
        game=["Tile", "Tile"],
        ilrd_revenue=[1.0, 1.5],
        ilrd_revenue_event_count=[100, 100],
    )
    parts = decompose(frame.head(1), frame.tail(1), by="game")
    assert cells(parts[["change"]]) == ["&#36;0.50"]
    assert cells(DataFrame({"change": [0.5], "volume": [0.5], "mix": [0.0], "price": [0.0]}))[0] == "+50.0%"


@pytest.mark.parametrize(
    ("kind", "texts"), [("share", ["18.0%", "6.0%"]), ("money", ["$0.18", "$0.06"]), ("count", ["< 1", "< 1"])]
)
def test_segments_are_written_in_the_unit_of_their_kind(kind: str, texts: list[str]) -> None:
    """The kind of the watched metric says it, and is no column of its own."""
    columns = {"segment": ["BR", "US"], "value": [0.18, 0.2], "expected": [0.12, 0.2], "contribution": [0.06, 0.0]}
    frame = as_result(DataFrame({**columns, "kind": [kind] * 2}), "health.segments", {})
    assert [html.unescape(cell) for cell in cells(frame)[1:4:2]] == texts
    assert "Kind" not in FrameTable(frame).html()


def test_what_a_row_cannot_have_is_not_unknown() -> None:
    """A whole game has no segment; a game without a name is (unknown)."""
    columns = {"game": ["Tile", None], "dimension": [None, "platform"], "segment": [None, "ios"], "value": [1.0, 2.0]}
    shown = cells(as_result(DataFrame(columns), "health.board", {}))
    assert shown == ["Tile", "n/a", "n/a", "1", "(unknown)", "platform", "ios", "2"]


def test_an_index_is_shown_only_if_it_has_a_name() -> None:
    """Row numbers are left out, days are not."""
    frame = DataFrame({"installs": [7]}, index=[41])
    assert cells(frame) == ["7"]
    assert cells(frame.rename_axis("age")) == ["41", "7"]


def test_the_id_of_a_title_is_left_out() -> None:
    """The title stands for it; an id without a title stays."""
    frame = DataFrame({"game_id": pd.Categorical(["1001"]), "game": pd.Categorical(["Tile"]), "installs": [7]})
    assert cells(frame) == ["Tile", "7"]
    assert cells(frame.drop(columns="game")) == ["1001", "7"]


def test_a_long_table_says_how_much_is_left_out() -> None:
    """After `MOST_ROWS` rows, or as many as are wanted, a line says how many there are."""
    assert f"The first {MOST_ROWS} of 84 rows" in FrameTable(DataFrame({"installs": range(84)})).html()
    assert "The first 2 of 84 rows." in str(FrameTable(DataFrame({"installs": range(84)}), rows=2))
    assert "The first" not in FrameTable(DataFrame({"installs": range(MOST_ROWS)})).html()


def test_a_long_table_comes_in_parts() -> None:
    """Each has its headings, so that a browser draws those in sight; no row is lost, and mail has one table."""
    frame = DataFrame({"game": [f"Game {number}" for number in range(120)], "ad_revenue": [1.0] * 120})
    table = FrameTable(frame, rows=120, total=True)
    assert table.html().count('<div class="part"><table><thead>') == 3
    assert re.findall(r"<th scope=.row.*?>(.*?)</th>", table.html()) == [*frame["game"], "Total"]
    assert FrameTable(frame, rows=100).html().count("<table>") == table.mail().count("<table>") == 1


def test_days_nulls_truths_and_periods_are_words() -> None:
    """A day is 20 Nov 2026, a missing name (unknown), a truth yes, no or not clear."""
    frame = DataFrame({"timestamp": pd.to_datetime(["2026-11-20"], utc=True), "is_chosen": [True]})
    frame["network"] = pd.Categorical([None], categories=["AdMob"])
    frame["period"] = pd.Series([Interval.parse("2026-11-01/P7D")], dtype="object")
    frame["pays_back"] = pd.array([pd.NA], dtype="boolean")
    assert cells(frame) == ["20 Nov 2026", "yes", "(unknown)", "1 Nov 2026 to 7 Nov 2026, 7 days", "not clear"]


def test_hours_are_shown_where_there_are_some() -> None:
    """Buckets of hours have the time of their clock, also at midnight."""
    hours = pd.to_datetime(["2026-11-20T22:00", "2026-11-21T03:00"], utc=True)
    frame = DataFrame({"timestamp": hours.tz_convert("America/Sao_Paulo")})
    assert cells(frame) == ["20 Nov 2026 19:00", "21 Nov 2026 00:00"]
    assert headings(frame) == ["Time"]


def test_hostile_names_stay_text() -> None:
    """Names in cells and headings are escaped, and no layout reads them as markup."""
    for name in NAMES.values():
        table = FrameTable(DataFrame({name: [name], "ad_revenue": [1.0]}), bars=["ad_revenue"])
        for written in (table.html(), table.mail()):
            assert "<img" not in written
            assert "<script" not in written
        assert len(str(table).splitlines()) == 3
    braces = FrameTable(DataFrame({"{{m^2}}": ["**bold** {{x_1}}"]})).html()
    assert "<sup>" not in braces
    assert "<strong>" not in braces
    assert "<sub>" not in braces


def test_every_text_of_a_table_is_escaped() -> None:
    """A table shows markup as text, wherever it stands, on pages and in mail."""
    markup = '<b id="x">&amp;</b>'
    column = TableColumn(
        name=markup,
        unit=markup,
        is_number=False,
        is_day=False,
        is_key=False,
        texts=(markup,),
        changes=((markup,),),
        total=markup,
        bars=None,
    )
    lines: dict[str, Any] = {"against": (markup,), "cut": markup, "left_out": markup, "source": markup, "badge": ""}
    columns = (
        column,
        *(replace(column, is_day=is_day, changes=(), bars=bars) for is_day, bars in ((True, None), (False, (1.0,)))),
        replace(column, changes=(), sparklines=(((1.0, 2.0, 3.0), markup),)),
    )
    contents = TableContents(columns=columns, has_total=True, notes={markup: (0,)}, compared=(markup,), **lines)
    for is_mail in (False, True):
        written = html_layout.html_of_table(contents, is_mail=is_mail)
        assert "<b" not in written.replace("<br>", "")
        assert 'id="x"' not in written
        assert html.unescape(written).count(markup) >= 15


def test_a_table_can_be_reached_by_keyboard_and_read_aloud() -> None:
    """What may scroll takes the focus and has a name; headings and names of rows say what they head."""
    written = FrameTable(DataFrame({"game": ["Tile"], "installs": [1]})).html()
    assert 'role="group" aria-label="Table: Game, Installs" tabindex="0"' in written
    assert '<th scope="col" class="number">' in written
    assert '<th scope="row"' in written


def test_days_that_are_not_final_have_a_note() -> None:
    """A day in the two days before the date of the data may change, one that the period cuts is counted in part."""
    text = str(revenue().lens.table())
    assert re.findall(r"\d+ Nov 2026¹", text) == ["18 Nov 2026¹", "19 Nov 2026¹"]
    assert f"¹ {MAY_CHANGE}" in text
    cut = revenue()
    asked = Receipt.of(cut.attrs)
    part = Interval(cut.timestamp[0] + pd.Timedelta(hours=6), cut.timestamp[3] + pd.Timedelta(days=1))
    cut.attrs["gamelens"] = asked.within(part).to_json()
    assert f"¹ {PARTLY_COUNTED}" in str(cut.lens.table())
    assert "16 Nov 2026</span><span" in cut.lens.table().html()
    assert PARTLY_COUNTED.split(":")[0] in cut.lens.table().html()


def test_an_age_is_counted_on_its_own_day() -> None:
    """Retention of an old install day may still change at a young age's day, not before."""
    frame = revenue()
    frame["age"] = [1, 1, 0, 0]
    assert re.findall(r"\d+ Nov 2026¹", str(frame.lens.table())) == [f"{day} Nov 2026¹" for day in (17, 18, 19)]


def test_a_total_adds_up_what_may_be_added() -> None:
    """Money and events are added over all rows, means follow from them, players over days stay empty."""
    shown = cells(revenue(), rows=2, total=True)
    assert shown[-6:] == ["Total", "4,000", "", "&#36;0.0025", "&#36;10.00", "1,000"]
    assert re.search(r"Total +4,000 +\$0\.0025 +\$10\.00 +1,000$", str(revenue().lens.table(total=True)), re.MULTILINE)


def test_a_total_of_separate_groups() -> None:
    """Columns that analyses compute for groups that do not overlap are added, others stay empty."""
    frame = DataFrame(
        {"network": ["a", "b"], "ad_revenue": [1.0, 2.0], "revenue_share": [0.25, 0.75], "ecpm": [1.0, 3.0]}
    )
    assert cells(frame, total=True)[-4:] == ["Total", "&#36;3.00", "100.0%", ""]
    with pytest.raises(NotAdditive):
        FrameTable(DataFrame({"age": [1, 2], "installs": [4, 4]}), total=True)


def test_bars_are_in_proportion_and_start_at_zero() -> None:
    """The longest bar fills the width; with numbers below zero, zero lies within."""
    frame = DataFrame({"network": ["a", "b", "c"], "price": [4.0, -2.0, None]})
    drawn = re.findall(r'<rect x="([\d.]+)" width="([\d.]+)"', FrameTable(frame, bars=["price"]).html())
    assert drawn == [("24.0", "48.0"), ("0.0", "24.0")]
    above = FrameTable(DataFrame({"network": ["a", "b"], "price": [4.0, 2.0]}), bars=["price"]).html()
    assert re.findall(r'<rect x="([\d.]+)" width="([\d.]+)"', above) == [("0.0", "72.0"), ("0.0", "36.0")]
    text = str(FrameTable(frame.head(2), bars=["price"]))
    assert re.findall("█+", text) == ["█" * 12, "█" * 6]


def by_week(weeks: int, **games: Sequence[float | None]) -> DataFrame:
    """Return revenue by game and week, with its receipt."""
    mondays = pd.date_range("2026-10-05", periods=weeks, freq="7D", tz="UTC")
    parts = [DataFrame({"timestamp": mondays, "game": game, "revenue": numbers}) for game, numbers in games.items()]
    frame = pd.concat(parts, ignore_index=True).dropna(ignore_index=True)
    frame.attrs["gamelens"] = Receipt(asked=QueryRecord(metric="revenue", every="week")).to_json()
    return frame


def test_a_number_has_its_course_beside_it() -> None:
    """A sparkline for each row in a column beside it, with its gap and text alternative; text and mail have blocks."""
    weeks = by_week(4, Tile=[1.0, 2.0, 3.0, 8.0], Dash=[4.0, None, 2.0, 1.0])
    shown = DataFrame({"game": ["Dash", "Tile"], "revenue": [1.0, 8.0], "ecpm": [1.0, 2.0]})
    table = FrameTable(shown, history={"revenue": weeks})
    assert re.findall(r'<th scope="col"[^>]*>(.*?)<', table.html()) == ["Game", "Purchase revenue", "4 weeks", "eCPM"]
    dash, tile = re.findall(r'<svg .*?role="img" aria-label="(.*?)".*?<path d="(.*?)"', table.html())
    assert html.unescape(dash[0]) == "Dash: Purchase revenue, 4 weeks: from $4.00 to $1.00, lowest $1.00, highest $4.00"
    assert (dash[1].count("M"), tile[1].count("M")) == (2, 1)
    for written in (str(table), table.mail()):
        assert "▁▂▃█" in written
        assert "█ ▃▁" in written
    assert "<svg" not in table.mail()


def test_no_course_is_drawn_of_thin_data() -> None:
    """Two weeks are a change, so the column is left out and nothing is said of it; a new game alone has no line."""
    thin = by_week(2, Tile=[1.0, 2.0])
    shown = DataFrame({"game": ["Tile", "New"], "revenue": [2.0, 1.0]})
    assert FrameTable(shown, history={"revenue": thin}).html() == FrameTable(shown).html()
    older = by_week(3, Tile=[1.0, 2.0, 3.0], Gone=[3.0, 2.0, 1.0])
    assert FrameTable(shown, history={"revenue": older}).html().count("<svg") == 1


def test_names_in_a_course_are_escaped() -> None:
    """In the text alternative too."""
    for name in NAMES.values():
        shown = DataFrame({"game": [name], "revenue": [3.0]})
        table = FrameTable(shown, history={"revenue": by_week(3, **{name: [1.0, 2.0, 3.0]})})
        assert table.html().count("<svg") == 1
        assert not re.search(r"<(img|script)", table.html() + table.mail())


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ({"cost": by_week(3, Tile=[1.0, 2.0, 3.0])}, "not a column of numbers"),
        ({"revenue": by_week(3, Tile=[1.0, 2.0, 3.0]).drop(columns="timestamp")}, "the column timestamp"),
        ({"revenue": by_week(3, Tile=[1.0, 2.0, 3.0]).drop(columns="revenue")}, "the column revenue"),
        ({"revenue": by_week(3, Tile=[1.0, 2.0, 3.0]).drop(columns="game")}, "no column in common"),
        ({"revenue": pd.concat([by_week(3, Tile=[1.0, 2.0, 3.0])] * 2)}, "several rows for"),
    ],
)
def test_a_history_that_does_not_fit_is_refused(history: dict[str, DataFrame], why: str) -> None:
    """The error names the column and what is missing."""
    with pytest.raises(BadQuery, match=why):
        FrameTable(DataFrame({"game": ["Tile"], "revenue": [3.0]}), history=history)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"bars": ["network"]}, "not a column of numbers"), ({"bars": ["x"]}, "x"), ({"rows": 0}, "at least 1")],
)
def test_options_are_checked(options: dict[str, Any], why: str) -> None:
    """An unknown column and a table without rows are refused."""
    with pytest.raises(BadQuery, match=why):
        FrameTable(DataFrame({"network": ["a"], "ecpm": [1.0]}), **options)


def test_mail_needs_no_style_sheet() -> None:
    """A table for mail has style attributes only, no picture and no script, and is small."""
    mail = revenue(24).lens.table(rows=24, total=True, bars="ilrd_revenue").mail()
    assert not re.search(r"<(style|svg|script|img)", mail)
    assert mail.count("style=") > 24 * 4
    assert len(mail) < 30_000


def test_a_frame_is_not_changed() -> None:
    """Neither the frame nor its receipt."""
    frame = revenue()
    before, attrs = frame.copy(), dict(frame.attrs)
    frame.lens.table(total=True, bars="ilrd_revenue").html()
    pd.testing.assert_frame_equal(frame, before)
    assert frame.attrs == attrs


def test_a_frame_without_rows_or_columns() -> None:
    """It has its headings, or nothing."""
    assert headings(DataFrame({"game": [], "installs": []})) == ["Game", "Installsplayers"]
    assert FrameTable(DataFrame()).html() == ""


def test_rows_have_units_of_their_own() -> None:
    """Shares and money of one column are written each in its unit; a difference of shares is percentage points."""
    frame = DataFrame(
        {
            **{"measure": ["D1 retention", "revenue per player"], "value": [0.4, 1.5], "difference": [-0.0903, 0.25]},
            **{"low": [-0.1, 0.1], "high": [0.0, 0.4], "unit": ["share", "money"]},
        }
    )
    assert [html.unescape(cell) for cell in cells(frame)] == [
        *("D1 retention", "40%", "-9 pp", "-10 to 0 pp"),
        *("revenue per player", "$1.50", "$0.25", "$0.10 to $0.40"),
    ]
    assert headings(frame)[-1] == "Interval"


def test_a_difference_too_small_for_its_column_is_0() -> None:
    """Below half of the last decimal it is 0 on both sides, where a share says that it is not 0."""
    frame = DataFrame({"difference": [0.003, -0.003], "low": [-0.1, -0.1], "high": [0.1, 0.1], "unit": ["share"] * 2})
    assert cells(frame) == ["0 pp", "-10 to +10 pp"] * 2


def test_columns_that_say_nothing_are_left_out_and_named() -> None:
    """A column without a value and one of the same word are below the table, not in it."""
    frame = DataFrame({"game": ["Tile", "Ember"], "kind": ["kept"] * 2, "loaded": [None, None], "installs": [5, 5]})
    frame["loaded"] = frame["loaded"].astype("Int64")
    assert headings(frame) == ["Game", "Installsplayers"]
    assert "In every row: Kind: kept. No value in any row: Loaded." in str(FrameTable(frame))
    assert "In every row" in FrameTable(frame).html()


def test_a_single_row_keeps_its_columns() -> None:
    """What is the same in every row of one row is what the row says."""
    frame = DataFrame({"game": ["Tile"], "kind": ["kept"], "loaded": [float("nan")]})
    assert headings(frame) == ["Game", "Kind", "Loaded"]


def by_game(**columns: Any) -> DataFrame:
    """Return numbers of the games A and B."""
    return DataFrame({"game": pd.Categorical(["A", "B"]), **columns})


def test_a_table_set_against_others_has_the_changes_below_its_numbers() -> None:
    """Percentages of numbers, points of shares, a dash where the other is not known or 0."""
    this = by_game(ad_revenue=[110.0, 50.0], revenue_share=[0.30, 0.41])
    last = by_game(ad_revenue=[100.0, 0.0], revenue_share=[0.32, 0.40]).iloc[::-1]
    target = DataFrame({"game": ["B"], "revenue_share": [0.45]})
    table = FrameTable(this, against={"last week": last, "target": target})
    assert cells(this, against={"last week": last, "target": target}) == [
        *("Alast weektarget", "&#36;110.00+10%–", "30.0%-2.0 pp–"),
        *("Blast weektarget", "&#36;50.00––", "41.0%+1.0 pp-4.0 pp"),
    ]
    assert "Below each number, the change from last week and target." in str(table)
    assert "30.0% (-2.0 pp · –)" in str(table)
    assert "<br><small" in table.mail()


def test_a_row_that_only_the_other_frame_has_is_named() -> None:
    other = DataFrame({"game": ["A", "B", "<C>"], "ad_revenue": [1.0, 2.0, 3.0]})
    table = FrameTable(by_game(ad_revenue=[1.0, 2.0]), against={"the plan": other})
    assert "Only the plan has <C>." in str(table)
    assert "Only the plan has &#60;C&#62;." in table.html()


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (DataFrame({"game": ["A"], "revenu": [1.0]}), r"revenu.*is a column of the plan, not of the table"),
        (DataFrame({"ad_revenue": [1.0]}), r"has no column in common with the table that names rows"),
        (DataFrame({"game": ["A", "A"], "ad_revenue": [1.0, 2.0]}), r"has several rows for A"),
    ],
)
def test_what_a_table_cannot_be_set_against_is_refused(other: DataFrame, rule: str) -> None:
    with pytest.raises(BadQuery, match=rule):
        FrameTable(by_game(ad_revenue=[1.0, 2.0]), against={"the plan": other})


def test_a_change_from_a_rare_count_is_a_difference() -> None:
    """Seven players after two are five more, not +250%; from ten on there is a percentage."""
    this = by_game(new_users=pd.array([7, 15], dtype="Int64"), dau=pd.array([3, 4], dtype="Int64"))
    last = by_game(new_users=[2.0, 10.0], dau=[0.0, 3.75])
    assert cells(this, against={"last week": last}) == [
        *("Alast week", "7+5", "3+3.00"),
        *("Blast week", "15+50%", "4+0.25"),
    ]


def test_the_range_of_install_days_is_in_percent() -> None:
    """Bounds are written as the number before them, which `day_range` has: the retention of all install days."""
    found = retention.day_range(frame_of([35, 29], np.array([[6], [16]]), [1]))
    assert "17% to 55%" in str(FrameTable(found))
    assert found["retention"].tolist() == pytest.approx([22 / 64])


def test_cells_of_a_spread_frame_are_in_the_unit_of_its_number() -> None:
    assert cells(retention.cohort_matrix(frame_of([35, 29], np.array([[6], [16]]), [1])))[1::2] == ["17.1%", "55.2%"]
