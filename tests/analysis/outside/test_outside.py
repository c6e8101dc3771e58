"""analyst-api: `gl.join(df, other, on=...)` answers a frame and a report, and is never silently wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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

pytestmark = pytest.mark.slow

DAYS = ["2026-11-01", "2026-11-01", "2026-11-02", "2026-11-02"]
ON = {"timestamp": "day", "country_code": "geo"}
SPEND = """day,geo,spend,sum,note
2026-11-01,US,"$1,234.50",1,launch
2026-11-01,NA,$5.00,2,
2026-11-02,,$7.00,3,rest
2026-11-09,DE,($2.00),4,
"""


def asked(frame: DataFrame, **more: object) -> DataFrame:
    """*frame* with what a receipt says of its question."""
    frame.attrs["gamelens"]["asked"] |= {"every": "day", **more}
    return frame


@pytest.fixture
def revenue(tidy) -> DataFrame:
    """Two days, Namibia among the countries, and once no country."""
    frame = tidy(
        "revenue",
        timestamp=DAYS,
        country_code=["US", "NA", "US", None],
        event_count=[1, 2, 3, 4],
        sum=[10.0, 20.0, 30.0, 40.0],
    )
    return asked(frame)


@pytest.fixture
def by_week(tidy) -> DataFrame:
    """Two ISO weeks, the first of them asked for from its Wednesday on."""
    frame = tidy("new_users", timestamp=["2026-11-02", "2026-11-09"], new_users=[10, 30])
    return asked(frame, every="week", interval="2026-11-04T00:00Z/2026-11-16T00:00Z")


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str, name: str = "spend.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_columns_stand_beside_the_frame_in_its_order(revenue, file) -> None:
    frame, _ = gl.join(revenue, file(SPEND), on=ON)
    assert [*frame.columns] == [*revenue.columns, "spend", "sum_spend", "note"]
    assert frame["spend"].tolist()[:2] + frame["spend"].tolist()[3:] == [1234.5, 5.0, 7.0]
    assert frame["spend"].isna().tolist() == [False, False, True, False]
    assert frame[[*revenue.columns]].equals(revenue)


def test_dtypes_are_those_of_a_tidy_frame(revenue, file) -> None:
    frame = gl.join(revenue, file(SPEND), on=ON, how="outer").frame
    assert frame.dtypes.astype(str).to_dict() == {
        "timestamp": "datetime64[us, UTC]",
        "country_code": "category",
        "event_count": "Int64",
        "sum": "float64",
        "spend": "float64",
        "sum_spend": "Int64",
        "note": "category",
    }


def test_the_frame_is_left_as_it_is(revenue, file) -> None:
    before, receipt = revenue.copy(deep=True), str(revenue.attrs)
    gl.join(revenue, file(SPEND), on=ON, how="outer")
    assert (revenue.equals(before), str(revenue.attrs)) == (True, receipt)


@pytest.mark.parametrize(
    ("how", "countries"),
    [
        ("left", ["US", "NA", "US", None]),
        ("inner", ["US", "NA", None]),
        ("right", ["US", "NA", None, "DE"]),
        ("outer", ["US", "NA", "US", None, "DE"]),
    ],
)
def test_how_says_which_rows_stay(revenue, file, how, countries) -> None:
    frame = gl.join(revenue, file(SPEND), on=ON, how=how).frame
    assert [None if pd.isna(value) else value for value in frame["country_code"]] == countries


def test_rows_that_only_the_outside_has_come_last_with_their_keys(revenue, file) -> None:
    last = gl.join(revenue, file(SPEND), on=ON, how="outer").frame.iloc[-1]
    assert (last["timestamp"], last["country_code"], last["spend"]) == (
        pd.Timestamp("2026-11-09", tz="UTC"),
        "DE",
        -2.0,
    )
    assert last[["event_count", "sum"]].isna().all()


def test_the_report_shows_what_found_nothing(revenue, file) -> None:
    report = gl.join(revenue, file(SPEND), on=ON).report
    assert report.only_left["event_count"].tolist() == [3]
    assert (report.only_right.index.tolist(), report.only_right["geo"].tolist()) == ([5], ["DE"])


def test_the_share_is_that_of_the_main_metric(revenue, file) -> None:
    """70 of 100 dollars."""
    report = gl.join(revenue, file(SPEND), on=ON).report
    assert (report.matched_share, report.share_of) == (0.7, "revenue (sum)")


def test_the_share_of_what_cannot_be_added_is_that_of_rows(tidy, file) -> None:
    players = asked(tidy("user_unique", timestamp=DAYS[1:3], user_unique=[99, 1]))
    report = gl.join(players, file("day,n\n2026-11-01,1\n"), on={"timestamp": "day"}).report
    assert (report.matched_share, report.share_of) == (0.5, "rows")


def test_an_empty_frame_has_no_share(revenue, file) -> None:
    joined = gl.join(revenue.head(0), file(SPEND), on=ON)
    assert (len(joined.frame), joined.report.matched_share) == (0, None)
    assert joined.frame.dtypes.astype(str)["spend"] == "float64"


def test_explain_says_it_in_words(revenue, file) -> None:
    text = gl.join(revenue, file(SPEND), on=ON).report.explain()
    assert text.splitlines() == [
        "Joined with spend.csv on timestamp = day, country_code = geo, left.",
        "3 of 4 rows found a counterpart: 70.0% of revenue (sum).",
        "1 row of the frame found none: (2026-11-02, US).",
        "1 row of spend.csv found none: row 5 (2026-11-09, DE).",
        "sum of spend.csv is called sum_spend.",
    ]


def test_the_repr_is_one_line(revenue, file) -> None:
    assert repr(gl.join(revenue, file(SPEND), on=ON).report).startswith("<join with spend.csv: 70.0% of revenue (sum)")


def test_the_receipt_notes_the_join_and_survives_parquet(revenue, file, tmp_path) -> None:
    frame = gl.join(revenue, file(SPEND), on=ON).frame
    frame.to_parquet(tmp_path / "x.parquet")
    receipt = pd.read_parquet(tmp_path / "x.parquet").attrs["gamelens"]
    assert receipt["asked"] == revenue.attrs["gamelens"]["asked"]
    share = {"matched_share": 0.7, "share_of": "revenue (sum)"}
    assert receipt["joined"] == [{"source": "spend.csv", "on": ON, "how": "left", **share}]


def test_a_second_join_is_noted_after_the_first(revenue, file) -> None:
    once = gl.join(revenue, file(SPEND), on=ON).frame
    twice = gl.join(once, file("geo,holiday\nUS,x\n", "holidays.csv"), on={"country_code": "geo"}).frame
    assert [entry["source"] for entry in twice.attrs["gamelens"]["joined"]] == ["spend.csv", "holidays.csv"]


@pytest.mark.parametrize("name", ["spend.csv", "spend.tsv", "spend.parquet", "spend.xlsx"])
def test_every_kind_of_file_gives_the_same(revenue, tmp_path, name) -> None:
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
def test_every_kind_of_frame_gives_the_same(revenue, make) -> None:
    outside = DataFrame({"day": pd.to_datetime(["2026-11-01"]), "geo": pd.Categorical(["NA"]), "sum": [2.5]})
    assert gl.join(revenue, make(outside), on=ON).frame["sum_other"].dropna().to_dict() == {1: 2.5}


def test_excel_without_openpyxl_says_what_to_install(tmp_path) -> None:
    """A fresh interpreter in which nothing named openpyxl can be imported."""
    openpyxl.Workbook().save(tmp_path / "x.xlsx")
    script = (
        "import sys; sys.modules['openpyxl'] = None\n"
        "from gamelens.analysis.files.table_reader import read_table\n"
        f"read_table({str(tmp_path / 'x.xlsx')!r})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "BadQuery" in done.stderr
    assert "pip install openpyxl" in done.stderr


@pytest.mark.parametrize("on", ["geo", ["geo"]])
def test_names_that_both_have_need_no_pair(tidy, file, on) -> None:
    frame = asked(tidy("event_count", timestamp=DAYS[:1], geo=["US"], event_count=[1]))
    assert gl.join(frame, file("geo,n\nUS,5\n"), on=on).frame["n"].tolist() == [5]


@pytest.mark.parametrize(
    ("on", "nearest"),
    [({"timestmp": "day"}, "timestamp"), ({"timestamp": "Day"}, "day"), ("country_cod", "country_code")],
)
def test_an_unknown_name_brings_the_nearest(revenue, file, on, nearest) -> None:
    with pytest.raises(BadQuery) as refused:
        gl.join(revenue, file(SPEND), on=on)
    assert refused.value.did_you_mean == nearest


@pytest.mark.parametrize(
    "arguments",
    [{"on": {}}, {"on": {"sum": "sum"}}, {"on": {"timestamp": "day", "country_code": "day"}}]
    + [{"on": ON, name: "x"} for name in ("how", "validate", "aggregate", "decimal")]
    + [{"on": ON, "columns": ["x"]}],
)
def test_arguments_that_make_no_sense_are_refused(revenue, file, arguments) -> None:
    with pytest.raises(BadQuery):
        gl.join(revenue, file(SPEND), **arguments)


def test_a_number_meets_the_game_of_that_name(tidy) -> None:
    frame = asked(tidy("event_count", timestamp=DAYS[:3], game_id=["1001", "007", "7"], event_count=[1, 2, 3]))
    for ids in ([1001, 7], [1001.0, 7.0], pd.array([1001, 7], dtype="Int64")):
        joined = gl.join(frame, DataFrame({"game": ids, "n": [5, 6]}), on={"game_id": "game"}).frame
        assert joined["n"].fillna(0).tolist() == [5, 0, 6]


@pytest.mark.parametrize("ids", [[1.5], [2.0**60]])
def test_numbers_that_lost_their_digits_are_no_names(tidy, ids) -> None:
    frame = asked(tidy("event_count", timestamp=DAYS[:1], game_id=["1"], event_count=[1]))
    with pytest.raises(BadQuery, match="read the column as text"):
        gl.join(frame, DataFrame({"game": ids}), on={"game_id": "game"})


def test_names_that_differ_in_case_do_not_match_and_it_is_said(revenue, file) -> None:
    report = gl.join(revenue, file("geo,n\nus,1\n"), on={"country_code": "geo"}).report
    assert (report.matched_share, report.warnings) == (
        0.0,
        ("geo of spend.csv is compared exactly with country_code: 'us' is not 'US'",),
    )


def test_the_group_without_a_value_meets_only_an_empty_cell(revenue, file) -> None:
    with_empty = gl.join(revenue, file("geo,n\nUS,1\n,2\n"), on={"country_code": "geo"}).frame
    without = gl.join(revenue, file("geo,n\nUS,1\nnull,2\n"), on={"country_code": "geo"}).frame
    assert (with_empty["n"].fillna(0).tolist(), without["n"].fillna(0).tolist()) == ([1, 0, 1, 2], [1, 0, 1, 0])


def test_ages_meet_whole_numbers(cohorts, file) -> None:
    joined = gl.join(cohorts, file("age,target\n1,0.4\n2,0.2\n"), on="age").frame
    assert joined["target"].tolist() == [0.4, 0.4, 0.2, 0.2] * 2


def test_a_key_that_is_there_twice_is_refused_with_its_rows(revenue, file) -> None:
    text = SPEND + "2026-11-01,US,$1.00,1,launch\n"
    with pytest.raises(BadQuery, match=r'\(2026-11-01, US\) in rows 2, 6\. aggregate="sum"'):
        gl.join(revenue, file(text), on=ON)


def test_rows_of_one_key_are_added_up_when_asked(revenue, file) -> None:
    text = SPEND + "2026-11-01,US,$1.00,1,launch\n"
    frame, report = gl.join(revenue, file(text), on=ON, aggregate="sum")
    assert (frame["spend"][0], frame["sum_spend"][0], frame["note"][0]) == (1235.5, 2, "launch")
    assert report.only_right.index.tolist() == [5]


def test_texts_that_differ_within_a_key_are_refused(revenue, file) -> None:
    text = SPEND + "2026-11-01,US,$1.00,1,sale\n"
    with pytest.raises(BadQuery, match=r"rows 2 and 6.*columns=\[\.\.\.\]"):
        gl.join(revenue, file(text), on=ON, aggregate="sum")
    assert gl.join(revenue, file(text), on=ON, aggregate="sum", columns=["spend"]).frame["spend"][0] == 1235.5


def test_percentages_and_ids_are_not_added_up(revenue, file) -> None:
    for column, cells in (("rate", ("1%", "2%")), ("campaign_id", ("7", "8"))):
        text = f"geo,{column}\nUS,{cells[0]}\nUS,{cells[1]}\n"
        with pytest.raises(BadQuery, match="cannot be added"):
            gl.join(revenue, file(text), on={"country_code": "geo"}, aggregate="sum")


def test_a_key_that_is_twice_in_the_frame_warns_of_counting_twice(revenue, file) -> None:
    """US stands in two rows: 5 + 5 + 1 is 11 where 6 was spent."""
    frame, report = gl.join(revenue, file("geo,spend\nUS,5.00\nNA,1.00\n"), on={"country_code": "geo"})
    assert frame["spend"].fillna(0).tolist() == [5.0, 1.0, 5.0, 0.0]
    assert "summing spend would count it more than once (6.00 becomes 11.00)" in report.explain()


def test_one_to_one_refuses_it(revenue, file) -> None:
    with pytest.raises(BadQuery, match=r"several rows of the frame, as \(US\)"):
        gl.join(revenue, file("geo,n\nUS,5\n"), on={"country_code": "geo"}, validate="one_to_one")


def test_days_inside_a_week_are_refused_with_the_next_step(by_week, file) -> None:
    with pytest.raises(BadQuery, match=r'lies inside the week of Mon 2026-11-02\. aggregate="sum"'):
        gl.join(by_week, file("day,n\n2026-11-04,1\n"), on={"timestamp": "day"})


def test_days_are_added_up_into_their_week_and_not_where_the_frame_does_not_count(by_week, file) -> None:
    """The week of 2 November is counted from the 4th on: the 3rd is left out, and said."""
    days = "day,spend\n2026-11-03,100\n2026-11-04,1\n2026-11-08,2\n2026-11-09,4\n2026-11-15,8\n2026-11-16,16\n"
    frame, report = gl.join(by_week, file(days), on={"timestamp": "day"}, aggregate="sum")
    assert frame["spend"].tolist() == [3, 12]
    assert report.only_right["spend"].tolist() == [100, 16]
    assert report.warnings == (
        "1 row of spend.csv outside the interval of the frame, in a bucket it counts only in part, left out",
    )


@pytest.mark.parametrize("weeks", ["2026-W45,5\n2026-W46,6", "2026-11-02,5\n2026-11-09,6"])
def test_weeks_meet_weeks_and_a_cut_one_is_said(by_week, file, weeks) -> None:
    frame, report = gl.join(by_week, file(f"week,n\n{weeks}\n"), on={"timestamp": "week"})
    assert frame["n"].tolist() == [5, 6]
    assert report.warnings == ("the frame counts only part of the week of 2026-11-02, the outside may count all of it",)


@pytest.mark.parametrize(
    ("every", "cell"), [("day", "2026-W45"), ("day", "2026-11"), ("week", "2026-11"), ("month", "2026-W45")]
)
def test_units_that_do_not_nest_are_refused(tidy, file, every, cell) -> None:
    frame = asked(tidy("new_users", timestamp=["2026-11-01"], new_users=[1]), every=every)
    with pytest.raises(BadQuery, match='query with every="'):
        gl.join(frame, file(f"day,n\n{cell},1\n"), on={"timestamp": "day"}, aggregate="sum")


def test_months_meet_months(tidy, file) -> None:
    frame = asked(tidy("new_users", timestamp=["2026-11-01"], new_users=[1]), every="month")
    assert gl.join(frame, file("month,n\n2026-11,7\n"), on={"timestamp": "month"}).frame["n"].tolist() == [7]
    days = file("month,n\n2026-11-30,7\n2026-11-01,1\n2026-12-01,2\n")
    assert gl.join(frame, days, on={"timestamp": "month"}, aggregate="sum").frame["n"].tolist() == [8]


def test_midnight_elsewhere_is_no_day_of_the_frame(revenue, file) -> None:
    with pytest.raises(BadQuery, match=r"Sat 2026-10-31 15:00 lies inside the day of Sat 2026-10-31"):
        gl.join(revenue, file("day,n\n2026-11-01T00:00+09:00,1\n"), on={"timestamp": "day"})


def test_one_bucket_over_all_meets_no_days(tidy, file) -> None:
    frame = asked(tidy("new_users", timestamp=["2026-11-01"], new_users=[1]), every="all")
    with pytest.raises(BadQuery, match="one bucket over all"):
        gl.join(frame, file("day,n\n2026-11-01,1\n"), on={"timestamp": "day"})


def test_days_that_look_like_months_are_said(revenue, file) -> None:
    days = "day,n\n2026-09-01,1\n2026-10-01,1\n2026-11-01,1\n"
    report = gl.join(revenue, file(days), on={"timestamp": "day"}).report
    assert any("always the first of a month" in warning for warning in report.warnings)


def test_without_a_receipt_moments_are_compared_exactly_and_it_is_said(tidy, file) -> None:
    frame = tidy(None, timestamp=["2026-11-02"], new_users=[1])
    joined = gl.join(frame, file("day,n\n2026-11-02,1\n2026-11-03,1\n"), on={"timestamp": "day"})
    assert (joined.frame["n"].tolist(), joined.frame.attrs) == ([1], {})
    assert "no receipt" in joined.report.explain()


def test_ambiguous_days_are_refused_and_settled(revenue, file) -> None:
    text = "day,geo,n\n01.11.2026,US,1\n02.11.2026,US,2\n"
    with pytest.raises(BadQuery, match="day_first="):
        gl.join(revenue, file(text), on=ON)
    assert gl.join(revenue, file(text), on=ON, day_first=True).frame["n"].fillna(0).tolist() == [1, 0, 2, 0]


def test_a_german_file_is_read(revenue, file) -> None:
    text = "Tag;Land;Kosten\n01.11.2026;US;1.234,50 €\n13.11.2026;US;7,00 €\n"
    frame = gl.join(revenue, file(text), on={"timestamp": "Tag", "country_code": "Land"}).frame
    assert frame["Kosten"].dropna().tolist() == [1234.5]


def test_ambiguous_numbers_are_refused_and_settled(revenue, file) -> None:
    text = 'geo,n\nUS,"1,234"\n'
    with pytest.raises(BadQuery, match="decimal="):
        gl.join(revenue, file(text), on={"country_code": "geo"})
    assert (
        gl.join(revenue, file(text), on={"country_code": "geo"}, decimal=".").frame["n"].dropna().tolist() == [1234] * 2
    )


def test_columns_may_be_left_out_or_left_text(revenue, file) -> None:
    text = "geo,n,price\nUS,12,$5\nNA,13,5 €\n"
    with pytest.raises(BadQuery, match="convert"):
        gl.join(revenue, file(text), on={"country_code": "geo"})
    assert "price" not in gl.join(revenue, file(text), on={"country_code": "geo"}, columns=["n"]).frame
    kept = gl.join(revenue, file(text), on={"country_code": "geo"}, text=["n", "price"]).frame
    assert kept["n"].tolist()[:2] == ["12", "13"]


def test_a_column_that_is_almost_numbers_is_said(revenue, file) -> None:
    text = "geo,n\nUS,12\nNA,n/a\n"
    report = gl.join(revenue, file(text), on={"country_code": "geo"}).report
    assert any("n stays text: 'n/a' in row 3 is no number" in warning for warning in report.warnings)
    assert gl.join(revenue, file(text), on={"country_code": "geo"}, missing=["n/a"]).frame["n"].dtype == "Int64"


def test_flags_and_days_are_typed(revenue, file) -> None:
    text = "geo,is_holiday,since\nUS,TRUE,2026-01-01\nNA,false,\n"
    frame = gl.join(revenue, file(text), on={"country_code": "geo"}).frame
    assert (str(frame["is_holiday"].dtype), str(frame["since"].dtype)) == ("boolean", "datetime64[us, UTC]")


def test_versions_and_days_that_never_were_stay_text(revenue, file) -> None:
    text = "geo,version,since\nUS,1.10,2026-02-30\nNA,1.9,2026-03-01\n"
    frame = gl.join(revenue, file(text), on={"country_code": "geo"}).frame
    assert (frame["version"][0], frame["since"][0]) == ("1.10", "2026-02-30")


def test_frames_that_somebody_worked_on_join_too(tidy, file) -> None:
    """Plain integers, flags as keys, an index with gaps and repeats."""
    frame = asked(tidy("event_count", country_code=["US", "NA", "DE"], event_count=[1, 2, 3]))
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


def test_hours_beyond_the_end_of_the_data_are_left_out(tidy, file) -> None:
    frame = asked(tidy("revenue", timestamp=["2026-11-01"], sum=[1.0]), interval="2026-11-01T00:00Z/2026-11-02T00:00Z")
    frame.attrs["gamelens"]["clipped"] = "2026-11-01T00:00Z/2026-11-01T11:00Z"
    hours = "at,cost\n2026-11-01T10:00Z,1.50\n2026-11-01T11:00Z,2.25\n"
    joined, report = gl.join(frame, file(hours), on={"timestamp": "at"}, aggregate="sum")
    assert (joined["cost"].tolist(), report.only_right["cost"].tolist()) == ([1.5], [2.25])


def test_an_exported_frame_joins_back(revenue, tmp_path) -> None:
    path = gl.export_csv(revenue, tmp_path / "x.csv")
    frame, report = gl.join(revenue, path, on=["timestamp", "country_code"])
    assert report.matched_share == 1.0
    assert (frame["sum_x"].tolist(), frame["event_count_x"].tolist()) == (revenue["sum"].tolist(), [1, 2, 3, 4])


KEYS = st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from(["US", "NA", None])), max_size=12)


@settings(deadline=None)
@given(
    KEYS,
    st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from(["US", "NA", None]), st.integers(0, 9)), max_size=12),
)
def test_sums_are_those_of_a_loop(ours, theirs) -> None:
    """Every row of the frame gets the sum of the outside rows with its key, and no row is lost or doubled."""
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
            "n": pa.array([n for *_, n in theirs], pa.int64()),
        }
    )
    for how in ("left", "outer"):
        joined = gl.join(frame, table, on=ON, how=how, aggregate="sum").frame
        expected = [[n for day, geo, n in theirs if (day, geo) == key] for key in ours]
        alone = dict.fromkeys((day, geo) for day, geo, _ in theirs if (day, geo) not in ours) if how == "outer" else {}
        assert joined["n"].tolist()[: len(ours)] == [sum(values) if values else pd.NA for values in expected]
        assert len(joined) == len(ours) + len(alone)
