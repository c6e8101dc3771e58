"""`gl.join`: a frame beside an outside table, with a report, and never silently wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame

import gamelens as gl
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from support.hypothesis_profiles import examples
from support.tidy_frames import tidy_frame

pytestmark = pytest.mark.slow

WriteFile = Callable[..., Path]

DAYS = ["2026-11-01", "2026-11-01", "2026-11-02", "2026-11-02"]
ON = {"timestamp": "day", "country_code": "geo"}
SPEND = """day,geo,spend,revenue,note
2026-11-01,US,"US$1,234.50",€1,launch
2026-11-01,NA,US$5.00,€2,
2026-11-02,,US$7.00,€3,rest
2026-11-09,DE,(US$2.00),€4,
"""


def with_query(frame: DataFrame, **query: object) -> DataFrame:
    """Return *frame* with *query*, and days as buckets, in its receipt."""
    frame.attrs["gamelens"]["asked"] |= {"every": "day", **query}
    return frame


@pytest.fixture
def revenue() -> DataFrame:
    """Revenue of two days by country: Namibia is one of them, and one row has no country."""
    frame = tidy_frame(
        "revenue",
        timestamp=DAYS,
        country_code=["US", "NA", "US", None],
        revenue_event_count=[1, 2, 3, 4],
        revenue=[10.0, 20.0, 30.0, 40.0],
    )
    return with_query(frame)


@pytest.fixture
def by_week() -> DataFrame:
    """New players of two ISO weeks, queried from the Wednesday of the first one on."""
    frame = tidy_frame("new_users", timestamp=["2026-11-02", "2026-11-09"], new_users=[10, 30])
    return with_query(frame, every="week", interval="2026-11-04T00:00Z/2026-11-16T00:00Z")


@pytest.fixture
def file(file: WriteFile) -> WriteFile:
    """Return the function of all modules, for files of ad spend."""
    return lambda text, name="spend.csv": file(text, name)


def test_columns_stand_beside_the_frame_in_its_order(revenue: DataFrame, file: WriteFile) -> None:
    """Outside columns follow the frame's own, the rows and their order stay."""
    frame, _ = gl.join(revenue, file(SPEND), on=ON)
    assert [*frame.columns] == [
        *revenue.columns,
        *("spend", "spend_currency", "revenue_spend", "revenue_currency", "note"),
    ]
    assert frame["spend"].tolist()[:2] + frame["spend"].tolist()[3:] == [1234.5, 5.0, 7.0]
    assert frame["spend"].isna().tolist() == [False, False, True, False]
    assert frame[[*revenue.columns]].equals(revenue)


def test_dtypes_are_those_of_a_tidy_frame(revenue: DataFrame, file: WriteFile) -> None:
    """Counts are Int64, money float64 and texts categories, in an outer join too."""
    frame = gl.join(revenue, file(SPEND), on=ON, how="outer").frame
    assert frame.dtypes.astype(str).to_dict() == {
        "timestamp": "datetime64[us, UTC]",
        "country_code": "category",
        "revenue_event_count": "Int64",
        "revenue": "float64",
        "spend": "float64",
        "spend_currency": "category",
        "revenue_spend": "float64",
        "revenue_currency": "category",
        "note": "category",
    }


def test_the_frame_is_left_as_it_is(revenue: DataFrame, file: WriteFile) -> None:
    """Neither rows nor receipt of the given frame change."""
    before, receipt = revenue.copy(deep=True), str(revenue.attrs)
    gl.join(revenue, file(SPEND), on=ON, how="outer")
    assert (revenue.equals(before), str(revenue.attrs)) == (True, receipt)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("how", "countries"),
    [
        ("left", ["US", "NA", "US", None]),
        ("inner", ["US", "NA", None]),
        ("right", ["US", "NA", None, "DE"]),
        ("outer", ["US", "NA", "US", None, "DE"]),
    ],
)
def test_how_says_which_rows_stay(
    revenue: DataFrame, file: WriteFile, how: Literal["left", "inner", "right", "outer"], countries: list[str | None]
) -> None:
    """Left keeps the frame's rows, right the outside rows, inner the common ones, outer all."""
    frame = gl.join(revenue, file(SPEND), on=ON, how=how).frame
    assert [None if pd.isna(value) else value for value in frame["country_code"]] == countries


def test_rows_that_only_the_outside_has_come_last_with_their_keys(revenue: DataFrame, file: WriteFile) -> None:
    """In an outer join, rows of the outside table alone come last, their numbers NA."""
    last = gl.join(revenue, file(SPEND), on=ON, how="outer").frame.iloc[-1]
    assert (last["timestamp"], last["country_code"], last["spend"]) == (
        pd.Timestamp("2026-11-09", tz="UTC"),
        "DE",
        -2.0,
    )
    assert last[["revenue_event_count", "revenue"]].isna().all()


def test_the_report_has_the_rows_without_a_match(revenue: DataFrame, file: WriteFile) -> None:
    """The report holds the unmatched rows of both sides, the outside ones by file row."""
    report = gl.join(revenue, file(SPEND), on=ON).report
    assert report.only_left["revenue_event_count"].tolist() == [3]
    assert (report.only_right.index.tolist(), report.only_right["geo"].tolist()) == ([5], ["DE"])


def test_the_share_is_that_of_the_main_metric(revenue: DataFrame, file: WriteFile) -> None:
    """The matched share is of the main metric: 70 of 100 dollars."""
    report = gl.join(revenue, file(SPEND), on=ON).report
    assert (report.matched_share, report.share_of) == (0.7, "revenue")


def test_the_share_of_a_metric_that_does_not_add_up_is_of_rows(file: WriteFile) -> None:
    """For unique players the matched share counts rows: one of two, whatever their size."""
    players = with_query(tidy_frame("user_unique", timestamp=DAYS[1:3], user_unique=[99, 1]))
    report = gl.join(players, file("day,n\n2026-11-01,1\n"), on={"timestamp": "day"}).report
    assert (report.matched_share, report.share_of) == (0.5, "rows")


def test_an_empty_frame_has_no_share(revenue: DataFrame, file: WriteFile) -> None:
    """An empty frame joins to an empty one with typed columns and a matched share of None."""
    joined = gl.join(revenue.head(0), file(SPEND), on=ON)
    assert (len(joined.frame), joined.report.matched_share) == (0, None)
    assert joined.frame.dtypes.astype(str)["spend"] == "float64"


def test_explain_says_it_in_words(revenue: DataFrame, file: WriteFile) -> None:
    """The report in words has the join, the share, unmatched rows and renamed columns."""
    text = gl.join(revenue, file(SPEND), on=ON).report.explain()
    assert text.splitlines() == [
        "Joined with spend.csv on timestamp = day, country_code = geo, left.",
        "3 of 4 rows have a counterpart: 70.0% of revenue.",
        "1 row of the frame has no counterpart: (2026-11-02, US).",
        "1 row of spend.csv has no counterpart: row 5 (2026-11-09, DE).",
        "revenue of spend.csv is called revenue_spend.",
    ]


def test_the_repr_is_one_line(revenue: DataFrame, file: WriteFile) -> None:
    """It has the file, the matched share, and what has no counterpart; that of the whole result names the frame too."""
    joined = gl.join(revenue, file(SPEND), on=ON)
    assert repr(joined.report) == (
        "<join with spend.csv: 70.0% of revenue matched; without a counterpart: 1 row of the frame and 1 of spend.csv; "
        "explain() lists them>"
    )
    assert repr(joined) == f"{joined.report!r} with the frame of 4 rows in .frame"


def test_the_receipt_notes_the_join_and_survives_parquet(revenue: DataFrame, file: WriteFile, tmp_path: Path) -> None:
    """The receipt keeps its query, records the join, and survives Parquet."""
    frame = gl.join(revenue, file(SPEND), on=ON).frame
    frame.to_parquet(tmp_path / "x.parquet")
    receipt = pd.read_parquet(tmp_path / "x.parquet").attrs["gamelens"]
    assert Receipt.of({"gamelens": receipt}).asked == Receipt.of(revenue.attrs).asked
    kinds = {
        "spend": {"kind": "money", "unit": "USD"},
        "revenue_spend": {"kind": "money", "unit": "EUR"},
        "note": {"kind": "text", "unit": ""},
    }
    share = {"matched_share": 0.7, "share_of": "revenue", "columns": kinds}
    assert receipt["joined"] == [{"source": "spend.csv", "on": ON, "how": "left", **share}]


def test_a_second_join_is_noted_after_the_first(revenue: DataFrame, file: WriteFile) -> None:
    """Joins are recorded in the order in which they were made."""
    once = gl.join(revenue, file(SPEND), on=ON).frame
    twice = gl.join(once, file("geo,holiday\nUS,x\n", "holidays.csv"), on={"country_code": "geo"}).frame
    assert [entry["source"] for entry in twice.attrs["gamelens"]["joined"]] == ["spend.csv", "holidays.csv"]


@pytest.mark.parametrize("name", ["spend.csv", "spend.tsv", "spend.parquet", "spend.xlsx"])
def test_every_kind_of_file_gives_the_same(revenue: DataFrame, tmp_path: Path, name: str) -> None:
    """CSV, TSV, Parquet and Excel files of one table give the same join."""
    outside = DataFrame({"day": pd.to_datetime(["2026-11-01"]), "geo": ["NA"], "spend": [2.5]})
    path = tmp_path / name
    if name.endswith(("csv", "tsv")):
        outside.to_csv(path, index=False, sep="\t" if name.endswith("tsv") else ",")
    elif name.endswith("parquet"):
        outside.to_parquet(path)
    else:
        outside.to_excel(path, index=False)
    assert gl.join(revenue, path, on=ON).frame["spend"].dropna().to_dict() == {1: 2.5}


@pytest.mark.parametrize("make", [lambda frame: frame, pa.Table.from_pandas, pl.from_pandas])
def test_every_kind_of_frame_gives_the_same(revenue: DataFrame, make: Callable[[DataFrame], object]) -> None:
    """pandas, Arrow and polars tables give the same join."""
    outside = DataFrame({"day": pd.to_datetime(["2026-11-01"]), "geo": pd.Categorical(["NA"]), "revenue": [2.5]})
    assert gl.join(revenue, make(outside), on=ON).frame["revenue_other"].dropna().to_dict() == {1: 2.5}


def test_excel_without_its_reader_says_what_to_install(tmp_path: Path) -> None:
    """Without calamine, an Excel file raises `BadQuery` that names what to install.

    The interpreter of the test cannot import anything named python_calamine.
    """
    openpyxl.Workbook().save(tmp_path / "x.xlsx")
    script = (
        "import sys; sys.modules['python_calamine'] = None\n"
        "from gamelens.analysis.files.table_reader import read_grid\n"
        f"read_grid({str(tmp_path / 'x.xlsx')!r})"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "BadQuery" in process.stderr
    assert "pip install 'gamelens[excel]'" in process.stderr


@pytest.mark.parametrize("on", ["geo", ["geo"]])
def test_columns_of_the_same_name_need_no_pair(file: WriteFile, on: str | list[str]) -> None:
    """A key that has the same name on both sides is given as one name or a list."""
    frame = with_query(tidy_frame("event_count", timestamp=DAYS[:1], geo=["US"], event_count=[1]))
    assert gl.join(frame, file("geo,n\nUS,5\n"), on=on).frame["n"].tolist() == [5]


@pytest.mark.parametrize(
    ("on", "nearest"),
    [({"timestmp": "day"}, "timestamp"), ({"timestamp": "Day"}, "day"), ("country_cod", "country_code")],
)
def test_an_unknown_name_brings_the_nearest(
    revenue: DataFrame, file: WriteFile, on: str | list[str] | dict[str, str], nearest: str
) -> None:
    """An unknown key on either side raises `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery) as refused:
        gl.join(revenue, file(SPEND), on=on)
    assert refused.value.did_you_mean == nearest


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "arguments",
    [{"on": {}}, {"on": {"revenue": "revenue"}}, {"on": {"timestamp": "day", "country_code": "day"}}]
    + [{"on": ON, name: "x"} for name in ("how", "validate", "aggregate", "decimal")]
    + [{"on": ON, "columns": ["x"]}],
)
def test_arguments_that_make_no_sense_are_refused(
    revenue: DataFrame, file: WriteFile, arguments: dict[str, Any]
) -> None:
    """No keys, a number as key, one column for two keys and unknown options are refused."""
    with pytest.raises(BadQuery):
        gl.join(revenue, file(SPEND), **arguments)


def test_a_number_meets_the_game_of_that_name() -> None:
    """Whole numbers match ids of the same digits, and 7 does not match 007."""
    frame = with_query(
        tidy_frame("event_count", timestamp=DAYS[:3], game_id=["1001", "007", "7"], event_count=[1, 2, 3])
    )
    for ids in ([1001, 7], [1001.0, 7.0], pd.array([1001, 7], dtype="Int64")):
        joined = gl.join(frame, DataFrame({"game": ids, "n": [5, 6]}), on={"game_id": "game"}).frame
        assert joined["n"].fillna(0).tolist() == [5, 0, 6]


@pytest.mark.parametrize("ids", [[1.5], [2.0**60]])
def test_numbers_that_are_not_exact_are_no_ids(ids: list[float]) -> None:
    """Fractions and floats beyond 2 ** 53 are refused as ids."""
    frame = with_query(tidy_frame("event_count", timestamp=DAYS[:1], game_id=["1"], event_count=[1]))
    with pytest.raises(BadQuery, match="read the column as text"):
        gl.join(frame, DataFrame({"game": ids}), on={"game_id": "game"})


def test_names_match_in_any_spelling_and_other_keys_exactly(revenue: DataFrame, file: WriteFile) -> None:
    """A country in small letters is the country; a build is compared exactly, with a warning where one is alike."""
    report = gl.join(revenue, file("geo,clicks\nus,1\n"), on={"country_code": "geo"}).report
    assert report.matched_share == 0.4
    builds = with_query(tidy_frame("event_count", timestamp=DAYS[:1], build=["1.0-RC"], event_count=[1]))
    report = gl.join(builds, file("built,clicks\n1.0-rc,1\n"), on={"build": "built"}).report
    assert report.warnings[0] == "built of spend.csv is compared exactly with build: '1.0-rc' is not '1.0-RC'"


def test_the_group_without_a_value_meets_what_names_nothing(revenue: DataFrame, file: WriteFile) -> None:
    """The null group matches an empty cell and a text that says null, and no other name."""
    for text, number in (("", 2), ("null", 2), ("Elsewhere", 0)):
        joined = gl.join(revenue, file(f"geo,n\nUS,1\n{text},2\n"), on={"country_code": "geo"}).frame
        assert joined["n"].fillna(0).tolist() == [1, 0, 1, number]


def test_ages_meet_whole_numbers(cohorts: DataFrame, file: WriteFile) -> None:
    """The ages of a retention frame match whole numbers of a file."""
    joined = gl.join(cohorts, file("age,target\n1,0.4\n2,0.2\n"), on="age").frame
    assert joined["target"].tolist() == [0.4, 0.4, 0.2, 0.2] * 2


def test_a_key_that_is_there_twice_is_refused_when_asked(revenue: DataFrame, file: WriteFile) -> None:
    """With `aggregate=None` a key in several outside rows is refused with its rows and the option to add them up."""
    text = SPEND + "2026-11-01,US,US$1.00,€1,launch\n"
    with pytest.raises(BadQuery, match=r'\(2026-11-01, US\) in rows 2, 6\. aggregate="sum"'):
        gl.join(revenue, file(text), on=ON, aggregate=None)


def test_rows_of_one_key_are_added_up(revenue: DataFrame, file: WriteFile) -> None:
    """Amounts of a key are added, and equal texts kept."""
    text = SPEND + "2026-11-01,US,US$1.00,€1,launch\n"
    frame, report = gl.join(revenue, file(text), on=ON)
    assert (frame["spend"][0], frame["revenue_spend"][0], frame["note"][0]) == (1235.5, 2, "launch")
    assert report.only_right.index.tolist() == [5]


def test_texts_that_differ_within_a_key_are_left_out_or_refused(revenue: DataFrame, file: WriteFile) -> None:
    """Beside amounts they are left out with a note; asked for, they are refused with the way to join them."""
    text = SPEND + "2026-11-01,US,US$1.00,€1,sale\n"
    frame, report = gl.join(revenue, file(text), on=ON)
    assert (frame["spend"][0], "note" in frame) == (1235.5, False)
    assert "note left out: it differs within one key" in report.warnings
    with pytest.raises(BadQuery, match=r'rows 2 and 6\): how=\{"note": "join"\}'):
        gl.join(revenue, file(text), on=ON, columns=["note"])
    joined = gl.join(revenue, file(text), on=ON, columns=["note"], how={"note": "join"}).frame
    assert joined["note"][0] == "launch, sale"


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("column", "cells", "rule"),
    [
        ("rate", ("1%", "2%"), 'roles={"rate": {"of": '),
        ("campaign_id", ("7", "8"), "differs within one key"),
        ("rank", ("7", "8"), 'how={"rank": "best"}'),
        ("DAU", ("7", "8"), "counts people once"),
        ("yield", ("7", "8"), 'roles={"yield": "count"}'),
        ("price", ("$7.50", "$8.50"), "has no units"),
    ],
)
def test_what_does_not_add_up_is_refused(
    revenue: DataFrame, file: WriteFile, column: str, cells: tuple[str, str], rule: str
) -> None:
    """Rates, ids, ranks, people, prices and unknown numbers, each with the next step."""
    text = f"geo,{column}\nUS,{cells[0]}\nUS,{cells[1]}\n"
    for aggregate in ("sum", None):
        with pytest.raises(BadQuery) as refused:
            gl.join(revenue, file(text), on={"country_code": "geo"}, columns=[column], aggregate=aggregate)
        assert rule in str(refused.value) or aggregate is None


def test_a_key_that_is_twice_in_the_frame_warns_of_counting_twice(revenue: DataFrame, file: WriteFile) -> None:
    """An outside number beside several rows of the frame gets a warning about its sum.

    US has two rows: 5 + 5 + 1 is 11, but 6 was spent.
    """
    frame, report = gl.join(revenue, file("geo,spend\nUS,5.00\nNA,1.00\n"), on={"country_code": "geo"})
    assert frame["spend"].fillna(0).tolist() == [5.0, 1.0, 5.0, 0.0]
    assert "summing spend would count it more than once (6.00 becomes 11.00)" in report.explain()


def test_one_to_one_refuses_a_key_that_is_twice_in_the_frame(revenue: DataFrame, file: WriteFile) -> None:
    """`validate="one_to_one"` refuses a key that several rows of the frame have."""
    with pytest.raises(BadQuery, match=r"several rows of the frame, as \(US\)"):
        gl.join(revenue, file("geo,n\nUS,5\n"), on={"country_code": "geo"}, validate="one_to_one")


def test_days_are_added_up_into_their_week_and_not_where_the_frame_does_not_count(
    by_week: DataFrame, file: WriteFile
) -> None:
    """Days are added into their week, except those outside the interval of the frame.

    The frame counts the week of 2 November from the 4th on, so the 3rd is left out with a warning.
    """
    days = "day,spend\n2026-11-03,100\n2026-11-04,1\n2026-11-08,2\n2026-11-09,4\n2026-11-15,8\n2026-11-16,16\n"
    frame, report = gl.join(by_week, file(days), on={"timestamp": "day"})
    assert frame["spend"].tolist() == [3, 12]
    assert report.only_right["spend"].tolist() == [100, 16]
    assert report.warnings == (
        "1 row of spend.csv left out: outside the interval of the frame, in a bucket that it counts only in part",
    )


@pytest.mark.parametrize("weeks", ["2026-W45,5\n2026-W46,6", "2026-11-02,5\n2026-11-09,6"])
def test_weeks_meet_weeks_and_a_cut_one_is_said(by_week: DataFrame, file: WriteFile, weeks: str) -> None:
    """Weeks match as ISO weeks or Mondays, with a warning for a week counted in part."""
    frame, report = gl.join(by_week, file(f"week,n\n{weeks}\n"), on={"timestamp": "week"})
    assert frame["n"].tolist() == [5, 6]
    assert report.warnings == (
        "the frame counts only part of the week of 2026-11-02, the outside table may count all of it: "
        'query over="2026-11-02/2026-11-16"',
    )


@pytest.mark.parametrize(
    ("every", "cell"), [("day", "2026-W45"), ("day", "2026-11"), ("week", "2026-11"), ("month", "2026-W45")]
)
def test_units_that_do_not_nest_are_refused(file: WriteFile, every: str, cell: str) -> None:
    """Buckets finer than the table's, or weeks beside months, are refused."""
    frame = with_query(tidy_frame("new_users", timestamp=["2026-11-01"], new_users=[1]), every=every)
    with pytest.raises(BadQuery, match='query with every="'):
        gl.join(frame, file(f"day,n\n{cell},1\n"), on={"timestamp": "day"}, aggregate="sum")


def test_months_meet_months(file: WriteFile) -> None:
    """Months match months, and days are added into their month."""
    frame = with_query(tidy_frame("new_users", timestamp=["2026-11-01"], new_users=[1]), every="month")
    assert gl.join(frame, file("month,n\n2026-11,7\n"), on={"timestamp": "month"}).frame["n"].tolist() == [7]
    days = file("day,clicks\n2026-11-30,7\n2026-11-01,1\n2026-12-01,2\n")
    assert gl.join(frame, days, on={"timestamp": "day"}).frame["clicks"].tolist() == [8]


def test_midnight_elsewhere_is_no_day_of_the_frame(revenue: DataFrame, file: WriteFile) -> None:
    """Midnight in another time zone is not the start of a UTC day, and is refused."""
    path = file("day,n\n2026-11-01T00:00+09:00,1\n")
    with pytest.raises(BadQuery, match=r"is midnight in another zone, Sat 2026-10-31 15:00 in UTC.*\"local\": True"):
        gl.join(revenue, path, on={"timestamp": "day"})
    as_named = gl.join(revenue, path, on={"timestamp": "day"}, roles={"day": {"role": "day", "local": True}}).frame
    assert as_named["n"].notna().tolist() == [True, True, False, False]


def test_one_bucket_over_all_meets_no_days(file: WriteFile) -> None:
    """A frame of one bucket for the whole time cannot be joined by day."""
    frame = with_query(tidy_frame("new_users", timestamp=["2026-11-01"], new_users=[1]), every="all")
    with pytest.raises(BadQuery, match="one bucket for the whole time"):
        gl.join(frame, file("day,n\n2026-11-01,1\n"), on={"timestamp": "day"})


def test_days_that_look_like_months_are_months(revenue: DataFrame, file: WriteFile) -> None:
    """Dates that are always the first of a month are months, which a frame by day does not meet; two may be either."""
    days = "day,clicks\n2026-09-01,1\n2026-10-01,1\n2026-11-01,1\n"
    with pytest.raises(BadQuery, match='one value a month, the frame one a day: query with every="month"'):
        gl.join(revenue, file(days), on={"timestamp": "day"})
    with pytest.raises(BadQuery, match=r'may be days or months .*: say so with roles=\{"day": "day"\}'):
        gl.join(revenue, file("day,clicks\n2026-10-01,1\n2026-11-01,1\n"), on={"timestamp": "day"})
    frame = gl.join(revenue, file(days), on={"timestamp": "day"}, roles={"day": "day"}).frame
    assert frame["clicks"].tolist()[:2] == [1, 1]


def test_without_a_receipt_moments_are_compared_exactly_and_it_is_said(file: WriteFile) -> None:
    """Without a receipt, timestamps are compared exactly and the report says so."""
    frame = tidy_frame(None, timestamp=["2026-11-02"], new_users=[1])
    joined = gl.join(frame, file("day,n\n2026-11-02,1\n2026-11-03,1\n"), on={"timestamp": "day"})
    assert (joined.frame["n"].tolist(), joined.frame.attrs) == ([1], {})
    assert "no receipt" in joined.report.explain()


def test_ambiguous_days_are_refused_and_settled(revenue: DataFrame, file: WriteFile) -> None:
    """Ambiguous dates are refused until `day_first` is given."""
    text = "day,geo,n\n01.11.2026,US,1\n02.11.2026,US,2\n"
    with pytest.raises(BadQuery, match="day_first="):
        gl.join(revenue, file(text), on=ON)
    assert gl.join(revenue, file(text), on=ON, day_first=True).frame["n"].fillna(0).tolist() == [1, 0, 2, 0]


def test_a_german_file_is_read(revenue: DataFrame, file: WriteFile) -> None:
    """A file with semicolons, day-first dates and decimal commas is read."""
    text = "Tag;Land;Kosten\n01.11.2026;US;1.234,50 €\n13.11.2026;US;7,00 €\n"
    frame = gl.join(revenue, file(text), on={"timestamp": "Tag", "country_code": "Land"}).frame
    assert frame["Kosten"].dropna().tolist() == [1234.5]


def test_ambiguous_numbers_are_refused_and_settled(revenue: DataFrame, file: WriteFile) -> None:
    """Ambiguous numbers are refused until `decimal` is given."""
    text = 'geo,n\nUS,"1,234"\n'
    with pytest.raises(BadQuery, match="decimal="):
        gl.join(revenue, file(text), on={"country_code": "geo"})
    assert (
        gl.join(revenue, file(text), on={"country_code": "geo"}, decimal=".").frame["n"].dropna().tolist() == [1234] * 2
    )


def test_columns_may_be_left_out_or_left_text(revenue: DataFrame, file: WriteFile) -> None:
    """`columns` leaves out a column that cannot be read, `text` keeps it as text."""
    text = "geo,n,price\nUS,12,$5\nNA,13,5%\n"
    with pytest.raises(BadQuery, match="mixes percentages"):
        gl.join(revenue, file(text), on={"country_code": "geo"}, columns=["price"])
    assert "price" not in gl.join(revenue, file(text), on={"country_code": "geo"}, columns=["n"]).frame
    joined = gl.join(revenue, file(text), on={"country_code": "geo"}, text=["n", "price"]).frame
    assert joined["n"].tolist()[:2] == ["12", "13"]


def test_a_column_that_is_almost_numbers_is_said(revenue: DataFrame, file: WriteFile) -> None:
    """A text among numbers is refused where the column is asked for, else the column is left out with a note.

    `missing` declares that text as an empty cell; n/a is one anyway.
    """
    text = "geo,clicks,views\nUS,12,1\nNA,200+,2\nDE,13,3\nFR,n/a,4\n"
    on = {"country_code": "geo"}
    report = gl.join(revenue, file(text), on=on).report
    assert any("clicks left out: its cell in row 3 is not a number" in warning for warning in report.warnings)
    with pytest.raises(BadQuery, match=r"'200\+' in row 3 is not a number: missing=\['200\+'\]"):
        gl.join(revenue, file(text), on=on, columns=["clicks"])
    frame = gl.join(revenue, file(text), on=on, missing=["200+"]).frame
    assert frame["clicks"].tolist()[:2] == [12, pd.NA]


def test_flags_and_days_are_typed(revenue: DataFrame, file: WriteFile) -> None:
    """Columns of flags are boolean, columns of dates timestamps."""
    text = "geo,is_holiday,since\nUS,TRUE,2026-01-01\nNA,false,\n"
    frame = gl.join(revenue, file(text), on={"country_code": "geo"}).frame
    assert (str(frame["is_holiday"].dtype), str(frame["since"].dtype)) == ("boolean", "datetime64[us, UTC]")


def test_versions_and_impossible_days_stay_text(revenue: DataFrame, file: WriteFile) -> None:
    """Version numbers and columns with an impossible date stay text."""
    text = "geo,version,since\nUS,1.10,2026-02-30\nNA,1.9,2026-03-01\n"
    frame = gl.join(revenue, file(text), on={"country_code": "geo"}).frame
    assert (frame["version"][0], frame["since"][0]) == ("1.10", "2026-02-30")


def test_frames_that_were_edited_join_too(file: WriteFile) -> None:
    """Frames with plain integers, flags as keys and a repeated index join as well."""
    frame = with_query(tidy_frame("event_count", country_code=["US", "NA", "DE"], event_count=[1, 2, 3]))
    frame["is_paying"] = [True, False, True]
    frame["rank"] = [1, 2, 3]
    frame.index = pd.Index([7, 7, 9])
    text = "geo,paying,n\nUS,true,5\nFR,FALSE,6\nNA,false,7\n"
    on = {"country_code": "geo", "is_paying": "paying"}
    joined, report = gl.join(frame, file(text), on=on, how="outer")
    assert joined["n"].fillna(0).tolist() == [5, 7, 0, 6]
    assert joined["is_paying"].tolist() == [True, False, True, False]
    assert (str(joined["rank"].dtype), str(joined["is_paying"].dtype)) == ("Int64", "boolean")
    assert report.only_left.index.tolist() == [9]


def test_hours_beyond_the_end_of_the_data_are_left_out(file: WriteFile) -> None:
    """Rows after the interval to which the frame was clipped are not counted."""
    frame = with_query(
        tidy_frame("revenue", timestamp=["2026-11-01"], revenue=[1.0]), interval="2026-11-01T00:00Z/2026-11-02T00:00Z"
    )
    frame.attrs["gamelens"]["clipped"] = "2026-11-01T00:00Z/2026-11-01T11:00Z"
    hours = "at,cost\n2026-11-01T10:00Z,1.50\n2026-11-01T11:00Z,2.25\n"
    joined, report = gl.join(frame, file(hours), on={"timestamp": "at"}, aggregate="sum")
    assert (joined["cost"].tolist(), report.only_right["cost"].tolist()) == ([1.5], [2.25])


def test_an_exported_frame_joins_back(revenue: DataFrame, tmp_path: Path) -> None:
    """An exported frame joins with itself: all rows match and no number changes."""
    path = gl.export_csv(revenue, tmp_path / "x.csv")
    frame, report = gl.join(revenue, path, on=["timestamp", "country_code"])
    assert report.matched_share == 1.0
    assert (frame["revenue_x"].tolist(), frame["revenue_event_count_x"].tolist()) == (
        revenue["revenue"].tolist(),
        [1, 2, 3, 4],
    )


KEYS = st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from(["US", "NA", None])), max_size=12)


@settings(max_examples=examples(50), deadline=None)
@given(
    KEYS,
    st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from(["US", "NA", None]), st.integers(0, 9)), max_size=12),
)
def test_sums_are_those_of_a_loop(
    ours: list[tuple[str, str | None]], theirs: list[tuple[str, str | None, int]]
) -> None:
    """Each row has the sum of the outside rows of its key, and no row is lost or doubled."""
    frame = DataFrame(
        {
            "timestamp": pd.to_datetime([day for day, _ in ours], utc=True).astype("datetime64[us, UTC]"),
            "country_code": pd.Categorical([geo for _, geo in ours], categories=pd.Index(["NA", "US"], dtype="str")),
        }
    )
    frame.attrs["gamelens"] = {"asked": {"every": "day", "metric": "event_count"}}
    table = pa.table(
        {
            "day": pa.array([day for day, _, _ in theirs], pa.string()),
            "geo": pa.array([geo for _, geo, _ in theirs], pa.string()),
            "clicks": pa.array([n for *_, n in theirs], pa.int64()),
        }
    )
    for how in ("left", "outer"):
        joined = gl.join(frame, table, on=ON, how=how, totals="keep", repeats="keep").frame
        expected = [[n for day, geo, n in theirs if (day, geo) == key] for key in ours]
        alone = dict.fromkeys((day, geo) for day, geo, _ in theirs if (day, geo) not in ours) if how == "outer" else {}
        assert joined["clicks"].tolist()[: len(ours)] == [sum(values) if values else pd.NA for values in expected]
        assert len(joined) == len(ours) + len(alone)


@pytest.mark.parametrize("form", ["pandas", "arrow", "parquet"])
def test_a_table_from_another_source_warns(revenue: DataFrame, tmp_path: Path, form: str) -> None:
    """The outside table may be a frame of another service, also one that was stored."""
    other = tidy_frame("revenue", timestamp=DAYS[:1], country_code=["US"], cost=[1.0])
    revenue.attrs["gamelens"]["provenance"] = {"kind": "real", "url": "https://metrics.example.com"}
    other.attrs["gamelens"]["provenance"] = {"kind": "sandbox", "scenario": "demo"}
    other.to_parquet(tmp_path / "other.parquet")
    receipt = {"gamelens": json.dumps(other.attrs["gamelens"])}
    forms = {
        "pandas": other,
        "arrow": pa.Table.from_pandas(other).replace_schema_metadata(receipt),
        "parquet": tmp_path / "other.parquet",
    }
    with pytest.warns(UserWarning, match="numbers of different sources"):
        joined = gl.join(revenue, forms[form], on=["timestamp", "country_code"])
    assert joined.report.warnings[0].startswith("numbers of different sources (partly demo data)")
    assert Receipt.of(joined.frame.attrs).provenance.kind == "mixed"
    other.attrs["gamelens"]["provenance"] = revenue.attrs["gamelens"]["provenance"]
    assert not gl.join(revenue, other, on=["timestamp", "country_code"]).report.warnings


def test_an_amount_keeps_the_currency_it_was_read_with(revenue: DataFrame, file: WriteFile) -> None:
    """Each row has its own."""
    frame, _ = gl.join(revenue, file("geo,cost\nUS,€5\nNA,US$7.5\n"), on={"country_code": "geo"})
    assert frame["cost_currency"].astype("object").tolist()[:3] == ["EUR", "USD", "EUR"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("name", "currency"),
    [
        *[(name, "EUR") for name in ("Amount spent (EUR)", "Kosten EUR", "Kosten in EUR", "Kosten (€)", "Kosten €")],
        *[("Cost (US$)", "USD"), ("spend_GBP", "GBP"), ("cost_usd", "USD"), ("Cost (A$)", "AUD")],
        *[(name, "") for name in ("spend", "Cost ($)", "Kosten (kr)", "cost_try")],
        *[(name, None) for name in ("Clicks (all)", "Clicks ALL", "US dollars per EUR", "dollars_per_€", "CPI")],
    ],
)
def test_the_name_of_a_column_may_say_its_currency(
    revenue: DataFrame, file: WriteFile, name: str, currency: str | None
) -> None:
    """As ad platforms and people write it, by code or by symbol; $ and kr are of several, and a rate has none."""
    frame, _ = gl.join(revenue, file(f"geo,{name}\nUS,5.25\n"), on={"country_code": "geo"})
    found = frame.get(f"{name}_currency")
    expected = None if currency is None else [currency] if currency else []
    assert (None if found is None else found.dropna().unique().tolist()) == expected


def test_amounts_of_two_currencies_are_not_added_up(revenue: DataFrame, file: WriteFile) -> None:
    """Two lines of one key in euros and dollars have no sum, nor have euros and a $; a rate converts them."""
    on, columns = {"country_code": "geo"}, ["cost"]
    with pytest.raises(BadQuery, match=r'is in EUR and USD within one key.*rate=\{"EUR": \.\.\.\}'):
        gl.join(revenue, file("geo,cost\nUS,€5\nUS,US$7\n"), on=on, columns=columns)
    with pytest.raises(BadQuery, match="names no currency for sure in row 3, and others are in EUR"):
        gl.join(revenue, file("geo,cost\nUS,€5\nUS,$7\n"), on=on, columns=columns)
    frame = gl.join(revenue, file("geo,cost\nUS,€5\nUS,US$7\n"), on=on, rate={"EUR": 1.2}).frame
    assert (frame["cost"][0], frame["cost_currency"][0]) == (13.0, "USD")


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "total",
    [
        "Total,,$12.00,",
        "2026-11-02,Total,$12.00,",
        "Grand total:,,$12.00,",
        "Summe,--,$12.00,",
        ",,$12.00,",
        "合計,,$12.00,",
    ],
)
def test_a_total_is_left_out_and_reported(revenue: DataFrame, file: WriteFile, total: str) -> None:
    """A total with empty keys would meet the group without a country, and count everything twice."""
    text = f"day,geo,spend,note\n2026-11-01,US,$5.00,\n2026-11-02,US,$7.00,\n{total}\n"
    frame, report = gl.join(revenue, file(text), on=ON, how="outer")
    assert frame["spend"].sum() == 12.0
    assert len(frame) == len(revenue)
    assert any("row 4 of spend.csv add" in warning for warning in report.warnings)


def test_a_total_is_kept_when_asked(revenue: DataFrame, file: WriteFile) -> None:
    """`totals="keep"` takes every row as it is."""
    text = "geo,spend\nUS,5.5\nNA,7.25\nTotal,12.75\n"
    kept = gl.join(revenue, file(text), on={"country_code": "geo"}, how="outer", totals="keep").frame
    assert kept["spend"].iloc[-1] == 12.75


@pytest.mark.parametrize(
    "row", ["2026-11-02,US,$7.00,Total War", "2026-11-02,US,$7.00,Total", "2026-11-02,,$7.00,rest"]
)
def test_a_row_with_its_keys_is_no_total(revenue: DataFrame, file: WriteFile, row: str) -> None:
    """A campaign may be called Total, and a row may have one empty key."""
    _, report = gl.join(revenue, file(f"day,geo,spend,note\n2026-11-01,US,$5.00,\n{row}\n"), on=ON)
    assert not [warning for warning in report.warnings if "add" in warning and "others" in warning]


def test_lines_above_the_header_are_left_out_and_reported(revenue: DataFrame, file: WriteFile) -> None:
    """Titles and date ranges; rows keep their numbers in the file."""
    above = 'Campaign report\n"1 Nov 2026 - 2 Nov 2026"\n\n'
    _, report = gl.join(revenue, file(above + "day,geo,spend\n2026-11-01,US,5\n2026-11-09,US,7\n"), on=ON)
    assert report.only_right.index.tolist() == [6]
    assert any("rows 1 to 3 of spend.csv ('Campaign report', ...)" in warning for warning in report.warnings)


def test_lines_above_the_header_of_a_sheet_are_left_out(revenue: DataFrame, tmp_path: Path) -> None:
    """As in a text file, with the account and the date range in two cells of many."""
    book = openpyxl.Workbook()
    rows = [["Account", "Tile"], [], ["day", "geo", "clicks", "views", "spend"], [46327, "US", 1, 2, 5.5]]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "spend.xlsx")
    frame, report = gl.join(revenue, tmp_path / "spend.xlsx", on=ON)
    assert frame["spend"].tolist()[0] == 5.5
    assert len([it for it in report.warnings if "above the header" in it or "46327 is read as 2026-11-01" in it]) == 2


def test_the_header_may_be_named(revenue: DataFrame, file: WriteFile) -> None:
    """`header_row` counts from 1, and a row below the file's last one is refused."""
    path = file("made,by,hand\ngeo,spend,note\nUS,5,x\n")
    assert "spend" in gl.join(revenue, path, on={"country_code": "geo"}, header_row=2).frame
    for wrong in (0, 9):
        with pytest.raises(BadQuery, match="header_row"):
            gl.join(revenue, path, on={"country_code": "geo"}, header_row=wrong)


def test_assumed_days_are_reported(revenue: DataFrame, file: WriteFile) -> None:
    """A year of two digits is read, and the report says how."""
    frame, report = gl.join(revenue, file("day,geo,spend\n01.11.26,US,5\n25.11.26,US,6\n"), on=ON)
    assert frame["spend"].tolist()[0] == 5
    assert "day: 01.11.26 is read as 2026-11-01" in report.warnings


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("android", "ios"),
    [
        ("Tile Harbor (Android)", "Tile Harbor (iOS)"),
        ("Tile Harbor [Google Play]", "Tile Harbor [App Store]"),
        ("Tile Harbor (Android, Unity)", "Tile Harbor (iPhone, Unity)"),
        ("Tile Harbor（Android）", "Tile Harbor（iOS）"),
    ],
)
def test_the_platform_in_the_name_of_an_app_is_a_key(file: WriteFile, android: str, ios: str) -> None:
    """Numbers of Android are none of iOS; without platforms in the frame, they are added up, or said to be of one."""
    frame = tidy_frame("new_users", game=["Tile Harbor"] * 2, platform=["ios", "android"], new_users=[1, 2])
    header = "App,Country,Earnings (USD)\n"
    both = file(f'{header}"{android}",US,5\n"{android}",DE,7\n"{ios}",US,1\n')
    for on in (None, {"game": "App"}):
        joined = gl.join(frame, both, on=on)
        assert joined.frame["Earnings (USD)"].tolist() == [1, 12]
        assert joined.report.on["platform"] == "platform"
    without = frame.drop(columns="platform").iloc[:1]
    joined = gl.join(without, both)
    assert joined.frame["Earnings (USD)"].tolist() == [13]
    assert not any("alone" in said for said in joined.report.warnings)
    one = file(f'{header}"{android}",US,5\n"{android}",DE,7\n', "one.csv")
    assert gl.join(frame, one).frame["Earnings (USD)"].fillna(0).tolist() == [0, 12]
    said = " ".join(gl.join(without, one).report.warnings)
    assert f"one.csv is of android alone, by App ({android}), and the frame counts all platforms" in said
    asked = with_query(without.copy(), where={"platform": "android"})
    assert not any("alone" in said for said in gl.join(asked, one).report.warnings)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("Tile Harbor - Android", "android"), ("tile_harbor_ios", "ios"), ("iOS | Tile Harbor", "ios"),
        ("com.example.android", "android"), ("Android: Tile Harbor", "android"), ("Curios", None), ("Androids 2", None),
        ("Apple Picker", None), ("Tile Harbor (iOS/Android)", None), ("Tile Harbor (Free)", None),
    ],
)  # fmt: skip
def test_platforms_stand_at_an_end_of_names_of_apps(file: WriteFile, name: str, platform: str | None) -> None:
    table = gl.read_table(file(f"App,Clicks\n{name},1\nAnother Game,2\n"))
    found = [column.values.astype("object").iloc[0] for column in table.of_role("platform")]
    assert found == ([platform] if platform else [])


def test_a_column_of_platforms_wins_over_names_of_apps(file: WriteFile) -> None:
    table = gl.read_table(file("App,OS,Clicks\nTile Harbor (Android),iOS,1\n"))
    assert [column.name for column in table.of_role("platform")] == ["OS"]


def test_a_table_of_one_platform_beside_all_is_said(file: WriteFile, revenue: DataFrame) -> None:
    """Also where a column says it."""
    path = file("geo,Platform,clicks\nUS,Android,1\nNA,Android,2\n")
    warnings = gl.join(revenue, path, on={"country_code": "geo"}).report.warnings
    assert any(said.startswith("spend.csv is of android alone, by Platform, and") for said in warnings)
