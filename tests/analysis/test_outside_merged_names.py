"""Several names of a table that fall on one name of the frame are said, and a creator's channel is no network."""

from __future__ import annotations

from pathlib import Path

import pytest
from pandas import DataFrame

import gamelens as gl
from support.outside_files import written
from support.tidy_frames import tidy_frame


def _frame(key: str, *names: str) -> DataFrame:
    return tidy_frame("new_users", timestamp=["2026-10-19"] * len(names), **{key: names}, new_users=[100] * len(names))


@pytest.mark.parametrize(
    ("key", "header", "names", "target"),
    [
        ("ilrd_network_name", "Network", ("APPLOVIN_NETWORK", "APPLOVIN_EXCHANGE"), "AppLovin"),
        ("ilrd_network_name", "Werbenetzwerk", ("UNITY_BIDDING", "Unity Ads"), "Unity"),
        ("install_publisher", "Canal", ("Facebook", "Meta Ads"), "Meta"),
        ("country_code", "País", ("Reino Unido", "UK"), "GB"),
        ("platform", "Device", ("iPhone", "iPad"), "iOS"),
    ],
)
def test_names_that_become_one_are_said(
    tmp_path: Path, key: str, header: str, names: tuple[str, str], target: str
) -> None:
    rows = [f"2026-10-19,{name},{amount}" for name, amount in zip(names, (30.5, 12.25), strict=True)]
    path = written(tmp_path / "report.csv", f"Day,{header},Est. Revenue (USD)", *rows)
    joined = gl.join(_frame(key, target), path, columns=["Est. Revenue (USD)"], on={"timestamp": "Day", key: header})
    assert joined.frame["Est. Revenue (USD)"].tolist() == [42.75]
    said = f"{names[0]}, {names[1]} of {header} are added up as {target}"
    assert said in joined.report.warnings


@pytest.mark.parametrize(
    "rows",
    [
        ("2026-10-19,Unity Ads,3.5", "2026-10-19,unity ads,4.5"),  # one name in two spellings
        ("2026-10-19,Unity Ads,3.5", "2026-10-20,UNITY_BIDDING,4.5"),  # never side by side
    ],
)
def test_spellings_and_names_of_other_days_are_not_remarked_on(tmp_path: Path, rows: tuple[str, str]) -> None:
    path = written(tmp_path / "report.csv", "Day,Network,Est. Revenue (USD)", *rows)
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-10-19", "2026-10-20"],
        ilrd_network_name=["Unity"] * 2,
        ilrd_revenue=[1.5, 2.5],
    )
    report = gl.join(frame, path, columns=["Est. Revenue (USD)"]).report
    assert not any("added up as" in warning for warning in report.warnings)


@pytest.mark.parametrize(("creator", "network"), [("Creator", "Platform"), ("Streamer", "Netzwerk"), ("账号", "平台")])
def test_the_channel_of_a_creator_is_no_ad_network(tmp_path: Path, creator: str, network: str) -> None:
    rows = ["@kaya,YouTube,2026-10-19,900", "@milo,Instagram,2026-10-19,300", "@rosa,TikTok,2026-10-19,500"]
    path = written(tmp_path / "creators.csv", f"{creator},{network},Date,Fee (USD)", *rows)
    joined = gl.join(
        _frame("install_publisher", "Meta Ads", "TikTok Ads"),
        path,
        on={"timestamp": "Date", "install_publisher": network},
        columns=["Fee (USD)"],
    )
    assert joined.frame["Fee (USD)"].isna().all()
    assert "Instagram" in joined.report.unknown["install_publisher"]


def test_a_channel_among_networks_is_one(tmp_path: Path) -> None:
    rows = ["TikTok,2026-10-19,900", "Unity Ads,2026-10-19,300"]
    path = written(tmp_path / "spend.csv", "Network,Date,Cost (USD)", *rows)
    joined = gl.join(_frame("install_publisher", "TikTok Ads"), path, columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].tolist() == [900]
