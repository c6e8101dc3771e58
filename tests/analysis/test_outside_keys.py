"""Which column has networks and which has platforms, by header and cells: an ad platform is no platform of devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.outside_data.roles import platform_beside
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


def _of(names: list[str], header: str, other: str = "") -> str:
    """Return a table of four days with a row for each of *names*."""
    rows = [f"2026-11-0{day},{name},{10 * day}{',' + other if other else ''}" for day in (1, 2, 3, 4) for name in names]
    return "\n".join([f"Date,{header},Cost (USD){',Note' if other else ''}", *rows, ""])


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("names", "role"),
    [
        (["Google Ads", "Meta Ads"], "network"),
        (["Apple Search Ads", "Google"], "network"),
        (["ASA", "TikTok", "FooDSP"], "network"),
        (["Facebook", "Instagram"], "network"),
        (["iOS", "Android"], "platform"),
        (["iOS & Android", "iOS"], "platform"),
        (["App Store", "Google Play"], "platform"),
        (["Apple", "Google"], "platform"),
        (["iPhone", "iPad", "Android"], "platform"),
    ],
)
@pytest.mark.parametrize("header", ["Platform", "Plataforma", "プラットフォーム"])
def test_a_platform_is_a_network_if_its_cells_are(file: WriteFile, names: list[str], role: str, header: str) -> None:
    assert gl.read_table(file(_of(names, header))).column(header).role == role


@pytest.mark.parametrize("name", ["Google Ads", "Apple Search Ads", "ASA", "Facebook", "Meta Ads", "iOS & Android"])
def test_the_name_of_an_ad_platform_is_no_platform(name: str) -> None:
    """A word for ads is not dropped: Google Ads is not Google Play."""
    assert canonical_name(name, "platform") is None


def test_cost_of_an_ad_platform_is_not_the_cost_of_a_platform(file: WriteFile) -> None:
    installs = tidy_frame("new_users", platform=["android", "ios"], new_users=[100, 50])
    path = file(_of(["Google Ads", "Meta Ads"], "Platform"))
    with pytest.raises(BadQuery, match="has no column that means one of the frame"):
        gl.join(installs, path)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    [
        "Kênh", "Kanał", "Kanał reklamowy", "Tedarikçi", "Reklam platformu", "Lieferant", "Fournisseur", "Поставщик",
        "Площадка", "القناة", "ช่องทาง", "供应商", "광고 플랫폼", "Vendor", "Nền tảng quảng cáo", "Kumppani",
    ],
)  # fmt: skip
def test_networks_are_recognised_under_any_header(file: WriteFile, header: str) -> None:
    """By a word for a channel or supplier, or by the cells alone."""
    table = gl.read_table(file(_of(["Google Ads", "Facebook", "TikTok"], header)))
    assert table.column(header).role == "network"
    frame = tidy_frame("new_users", install_publisher=["Google Ads", "Meta Ads"], new_users=[4, 2])
    joined = gl.join(frame, table)
    assert joined.frame["Cost (USD)"].tolist() == [100.0, 100.0]


def test_a_network_by_its_header_is_surer_than_by_its_cells(file: WriteFile) -> None:
    table = gl.read_table(file(_of(["Moloco", "Bidease"], "Network", "Meta")))
    assert (table.column("Network").role, table.column("Note").role) == ("network", "text")


def test_a_mark_is_no_network(file: WriteFile) -> None:
    """An x marks a row, and is the name of a network too."""
    rows = ["2026-11-01,x,1", "2026-11-02,,2", "2026-11-03,X,3", ""]
    assert gl.read_table(file("\n".join(["Date,Marked,Cost (USD)", *rows]))).column("Marked").role != "network"


@pytest.mark.parametrize(
    ("app", "platform"),
    [
        ("Merge Harbor iOS & Android", None),
        ("Merge Harbor - iOS/Android", None),
        ("Merge Harbor (iOS & Android)", None),
        ("Merge Harbor iOS", "ios"),
        ("Merge Harbor (App Store, iOS)", "ios"),
        ("Android - Merge Harbor", "android"),
    ],
)
def test_an_app_of_two_platforms_is_of_none(app: str, platform: str | None) -> None:
    assert platform_beside(app) == platform


def test_installs_by_platform_are_no_costs_by_network(file: WriteFile) -> None:
    installs = tidy_frame("new_users", platform=["android", "ios"], new_users=[100, 50])
    with pytest.raises(BadQuery, match=r"Platform|network"):
        outside_data.cost_per_install(installs, "platform", spend=file(_of(["Google Ads", "Meta Ads"], "Platform")))


@pytest.mark.parametrize(
    "text", ["organic (unattributed)", "Unattributed (organic)", "Organic / unattributed", "organic"]
)
def test_organic_with_another_name_beside_it_is_organic(file: WriteFile, text: str) -> None:
    """It meets the players without a publisher."""
    frame = tidy_frame("new_users", install_publisher=["Meta Ads", None], new_users=[4, 2])
    table = file(f"Media Source;Installs\nfacebook.business;40\n{text};20\n", "installs.csv")
    joined = gl.join(frame, table)
    assert joined.frame["Installs"].tolist() == [40, 20]


@pytest.mark.parametrize("text", ["restricted", "unattributed", "No User Consent", "Google Ads (organic)"])
def test_what_is_not_attributed_is_said(file: WriteFile, text: str) -> None:
    """It is neither organic nor a network, and is never lost without a word."""
    frame = tidy_frame("new_users", install_publisher=["Google Ads", None], new_users=[4, 2])
    joined = gl.join(frame, file(f"Media Source;Installs\ngoogleadwords_int;40\n{text};20\n", "installs.csv"))
    assert joined.frame["Installs"].fillna(0).tolist() == [40, 0]
    assert any(repr(text) in warning for warning in joined.report.warnings)


_TWO = (
    "Moneda;Land;Ländercode;Kosten",
    "EUR;Deutschland;de;5,50",
    "EUR;Österreich;AT;4,25",
    "EUR;Deutschland;DEU;1,25",
)


def test_two_columns_that_name_the_same_are_one_key(file: WriteFile) -> None:
    """In every row, in whatever spelling: nothing is left to ask."""
    installs = tidy_frame("new_users", country_code=["DE", "AT"], new_users=[10, 20])
    joined = gl.join(installs, file("\n".join(_TWO) + "\n"), aggregate="sum")
    assert joined.frame["Kosten"].tolist() == [6.75, 4.25]
    assert joined.report.on == {"country_code": "Ländercode"}


@pytest.mark.parametrize("other", ["EUR;Österreich;CH;4,25", "EUR;Österreich;;4,25"])
def test_two_columns_that_differ_in_a_row_are_asked_about(file: WriteFile, other: str) -> None:
    installs = tidy_frame("new_users", country_code=["DE", "AT"], new_users=[10, 20])
    rows = [_TWO[0], _TWO[1], other, _TWO[3]]
    with pytest.raises(BadQuery, match=r"must say which column of .* is country_code"):
        gl.join(installs, file("\n".join(rows) + "\n"), aggregate="sum")


def test_two_names_of_an_app_that_are_the_same_are_one_key(file: WriteFile) -> None:
    installs = tidy_frame("new_users", game=["Tile Harbor", "Cave"], new_users=[10, 20])
    path = file("App;Spiel;Kosten (EUR)\nTile Harbor;tile_harbor;5,5\nCave;Cave;6,5\n")
    assert gl.join(installs, path).frame["Kosten (EUR)"].tolist() == [5.5, 6.5]
