"""Tables of snapshots: what stands at a moment is taken once for each thing, and never of the latest second alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame


def _months(*countries: str) -> pd.DataFrame:
    """A frame with one month for each of *countries*."""
    frame = tidy_frame(
        "new_users",
        timestamp=["2026-10-01"] * len(countries),
        country_code=countries,
        new_users=[5] * len(countries),
    )
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-10-01T00:00Z/2026-11-01T00:00Z"}
    return frame


_SCRAPES = (
    "2026-10-05T06:01:12Z,se,2,Bubble Farm,4.4,1000",
    "2026-10-05T06:04:40Z,se,7,Sky Miner,4.1,300",
    "2026-10-19T06:00:02Z,se,3,Bubble Farm,4.4,1100",
    "2026-10-19T06:07:59Z,se,,Sky Miner,4.2,350",
    "2026-10-05T06:02:12Z,no,1,Bubble Farm,4.4,70",
    "2026-10-19T06:02:12Z,no,5,Bubble Farm,4.4,75",
)


@pytest.mark.parametrize(
    ("when", "rank", "app", "counted"),
    [
        ("scraped_at", "rank", "name", "rating_count"),
        ("Fetched (UTC)", "Chart position", "Title", "Number of reviews"),
        ("Abgerufen am", "Platz", "Spiel", "Anzahl Bewertungen"),
        ("Fecha", "Posición", "Juego", "Número de valoraciones"),
        ("采集时间", "排名", "应用名称", "评论数"),
        ("取得日時", "順位", "アプリ名", "レビュー件数"),
        ("Снимок от", "Место", "Название", "Количество отзывов"),
    ],
)
def test_a_level_beside_ranks_is_the_last_of_each_app(
    tmp_path: Path, when: str, rank: str, app: str, counted: str
) -> None:
    path = written(tmp_path / "chart.csv", f"{when},country,{rank},{app},avg_rating,{counted}", *_SCRAPES)
    assert gl.read_table(path).column(counted).role == "stock"
    joined = gl.join(_months("SE", "NO"), path, columns=[counted])
    assert joined.frame[counted].tolist() == [1450, 75]
    said = next(warning for warning in joined.report.warnings if warning.startswith(f"{counted} is a level"))
    assert f"added up over {app}" in said


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("installs", "stock"),
        ("Likes", "stock"),
        ("Follower", "stock"),
        ("new installs", "count"),
        ("Neue Installationen", "count"),
        ("daily downloads", "count"),
        ("新增下载量", "count"),
    ],
)
def test_counts_of_a_time_of_fetching_are_levels_unless_a_word_says_otherwise(
    tmp_path: Path, header: str, role: str
) -> None:
    rows = ["2026-10-01,SE,Bubble Farm,200", "2026-10-02,SE,Bubble Farm,210", "2026-10-02,NO,Bubble Farm,9"]
    path = written(tmp_path / "store.csv", f"Snapshot date,Country,App,{header}", *rows)
    assert gl.read_table(path).column(header).role == role


def test_counts_beside_what_they_cost_are_a_report_whenever_it_was_fetched(tmp_path: Path) -> None:
    rows = ["2026-10-01,SE,200,20.5", "2026-10-02,SE,210,21.5"]
    path = written(tmp_path / "spend.csv", "fetched_at,Country,Installs,Cost (USD)", *rows)
    assert gl.read_table(path).column("Installs").role == "count"


def test_a_version_that_changes_is_no_other_thing(tmp_path: Path) -> None:
    """Nor is the row's own number: the last of each app counts once."""
    rows = [
        "1,2026-10-05,SE,Bubble Farm,1.0,1000",
        "2,2026-10-05,SE,Sky Miner,3.1,300",
        "3,2026-10-19,SE,Bubble Farm,1.1,1100",
        "4,2026-10-19,SE,Sky Miner,3.1,350",
    ]
    path = written(tmp_path / "chart.csv", "row,Snapshot,Country,App name,Version,Followers", *rows)
    joined = gl.join(_months("SE"), path, columns=["Followers"])
    assert joined.frame["Followers"].tolist() == [1450]


def test_an_app_without_a_last_row_is_named(tmp_path: Path) -> None:
    rows = [*_SCRAPES[:3], *_SCRAPES[4:]]
    path = written(tmp_path / "chart.csv", "scraped_at,country,rank,name,avg_rating,rating_count", *rows)
    joined = gl.join(_months("SE"), path, columns=["rating_count"])
    assert joined.frame["rating_count"].tolist() == [1400]
    assert any("'Sky Miner' has none on 2026-10-19" in warning for warning in joined.report.warnings)


def test_the_mean_of_a_level_is_that_of_its_days(tmp_path: Path) -> None:
    path = written(tmp_path / "chart.csv", "scraped_at,country,rank,name,avg_rating,rating_count", *_SCRAPES)
    joined = gl.join(_months("SE"), path, columns=["rating_count"], how={"rating_count": "mean"})
    assert joined.frame["rating_count"].tolist() == [1375]


@pytest.mark.parametrize("way", [None, "best", "mean", "last"])
def test_a_rank_of_several_apps_asks_which_app_first(tmp_path: Path, way: str | None) -> None:
    path = written(tmp_path / "chart.csv", "scraped_at,country,rank,name,avg_rating,rating_count", *_SCRAPES)
    how: Any = {"rank": way} if way else "left"
    with pytest.raises(BadQuery, match="'Bubble Farm' and 'Sky Miner' of name") as refused:
        gl.join(_months("SE"), path, columns=["rank"], how=how)
    assert "leave_out={'name': ['Sky Miner']} leaves the rows of 'Bubble Farm' alone" in str(refused.value)
    leave: Any = {"name": ["Sky Miner"]}
    ranks = gl.join(_months("SE"), path, columns=["rank"], how={"rank": "best"}, leave_out=leave).frame["rank"]
    assert ranks.tolist() == [2]
    every = gl.join(_months("SE"), path, columns=["rank"], how={"rank": "best"}, leave_out={"name": []}).frame["rank"]
    assert every.tolist() == [2]


def test_a_count_that_is_added_up_over_names_says_so(tmp_path: Path) -> None:
    rows = ["2026-10-05,SE,Bubble Farm,10", "2026-10-05,SE,Sky Miner,30"]
    path = written(tmp_path / "installs.csv", "Date,Country,Name,Installs", *rows)
    for columns in (None, ["Installs"]):
        joined = gl.join(_months("SE"), path, columns=columns, roles={"Date": "day"})
        assert joined.frame["Installs"].tolist() == [40]
        assert any("Installs is added up over Name" in warning for warning in joined.report.warnings)


def test_a_snapshot_may_pass_midnight(tmp_path: Path) -> None:
    rows = [
        f"2026-10-{day} {time},SE,{app},{likes}"
        for day, time, app, likes in (
            ("05", "23:51", "Bubble Farm", 10),
            ("06", "00:06", "Sky Miner", 3),
            ("12", "23:50", "Bubble Farm", 12),
            ("13", "00:05", "Sky Miner", 4),
        )
    ]
    path = written(tmp_path / "store.csv", "crawl_time,Country,App,Likes", *rows)
    joined = gl.join(_months("SE"), path, columns=["Likes"])
    assert joined.frame["Likes"].tolist() == [16]
    assert not any("has none on" in warning for warning in joined.report.warnings)
