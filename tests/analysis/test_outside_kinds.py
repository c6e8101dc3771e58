"""Counts and prices of several things are not put together, and empty times of events stay empty."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame


def test_stages_of_postbacks_are_no_installs_of_one_day(tmp_path: Path) -> None:
    """The first postback of a player is an install; the second and third are what became of it."""
    rows = [f"2026-10-31T04:12:1{stage}Z,a.skadnetwork,{stage},20,true" for stage in (0, 0, 1, 2)]
    header = "timestamp,ad-network-id,postback-sequence-index,conversion-value,did-win"
    path = written(tmp_path / "skan.csv", header, *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-31"], new_users=[5])
    frame.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-10-31T00:00Z/2026-11-01T00:00Z"}
    with pytest.raises(BadQuery, match="counts different things by postback-sequence-index, '0' and '1'") as refused:
        gl.join(frame, path, columns=["postbacks"])
    assert "leave_out={'postback-sequence-index': ['1', '2']} leaves the rows of '0' alone" in str(refused.value)
    leave = {"postback-sequence-index": ["1", "2"]}
    assert gl.join(frame, path, columns=["postbacks"], leave_out=leave).frame["postbacks"].tolist() == [2]


def test_a_price_is_not_averaged_over_installs_and_clicks(tmp_path: Path) -> None:
    rows = ["2026-10-31,Install,120,1.20", "2026-10-31,Click,500,0.10"]
    path = written(tmp_path / "bill.csv", "Date,Event,Quantity,Unit price (USD)", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-31"], new_users=[5])
    with pytest.raises(BadQuery, match="is a rate of Quantity, which counts different things by Event"):
        gl.join(frame, path, columns=["Unit price (USD)"])
    price = gl.join(frame, path, columns=["Unit price (USD)"], leave_out={"Event": ["Click"]}).frame
    assert price["Unit price (USD)"].tolist() == [1.2]


@pytest.mark.parametrize("void", ["Rejected inst.", "Fraud installs", "Blocked installs"])
def test_a_cost_of_an_install_is_weighted_by_what_counts(tmp_path: Path, void: str) -> None:
    """Whatever header is shorter."""
    rows = ["2026-10-01,100,60,4,1.7", "2026-10-02,90,60,2,1.5", "2026-10-03,90,50,9,2.0"]
    path = written(tmp_path / "cpi.csv", f"Date,Cost (USD),Accepted app installs,{void},eCPI", *rows)
    assert "Accepted app installs" in str(gl.read_table(path, currency="USD").column("eCPI").weight)


def test_empty_times_of_events_are_no_merged_cells(tmp_path: Path) -> None:
    """An install without a touch has no time of one, and no day of the row above."""
    rows = ["2026-10-01 10:00,2026-10-01 11:00,A", ",2026-10-02 11:00,", "2026-10-03 10:00,2026-10-03 11:00,A"]
    path = written(tmp_path / "raw.csv", "Touch time,Install time,Network", *rows)
    table = gl.read_table(path, roles={"Touch time": "day", "Install time": "text"})
    assert table.starts.isna().tolist() == [False, True, False]
    merged = written(tmp_path / "merged.csv", "Date,Network,Cost (USD)", "2026-10-01,A,1", ",B,2", "2026-10-02,A,3")
    assert gl.read_table(merged).starts.notna().all()


@pytest.mark.parametrize(
    ("line", "months", "last"),
    [
        ("広告費 2026年4月～2027年3月", ("4月", "5月", "3月"), "2027-03-01"),
        ("広告宣伝費 2026年度（2026年4月～2027年3月）", ("4月", "5月", "3月"), "2027-03-01"),
        ("UA spend April 2026 – March 2027", ("April", "May", "March"), "2027-03-01"),
        ("FY 2026-27 (Apr 2026 - Mar 2027)", ("Apr", "May", "Mar"), "2027-03-01"),
    ],
)
def test_months_of_a_financial_year_have_the_years_of_its_ends(
    tmp_path: Path, line: str, months: tuple[str, ...], last: str
) -> None:
    rows = [f"{month},{place}0" for place, month in enumerate(months, start=1)]
    path = written(tmp_path / "fy.csv", f"{line},\n,\nMonth,Cost (USD)", *rows)
    starts = gl.read_table(path).starts.dt.strftime("%Y-%m-%d").tolist()
    assert starts == ["2026-04-01", "2026-05-01", last]


def test_a_year_that_changes_is_not_proposed_as_one(tmp_path: Path) -> None:
    """year= would not read it."""
    path = written(tmp_path / "fy.csv", "Month,Cost (USD)", "November,10", "December,20", "January,30")
    problem = gl.read_table(path).periods.problem
    assert problem is not None
    assert "write the years, 2026-11, as they change between December and January" in str(problem)
    assert "year=2026" not in str(problem)
