"""issue, 2: figures as files, drawn on this machine."""

from __future__ import annotations

import shutil
import struct
from xml.etree import ElementTree

import pytest

from gamelens.errors import BadQuery, Refused
from gamelens.notebook import charts

SVG = "{http://www.w3.org/2000/svg}"
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
pytestmark = pytest.mark.slow


@needs_chromium
def test_a_png_is_as_wide_as_asked(networks, tmp_path) -> None:
    path = charts.save(networks.lens.plot(), tmp_path / "revenue.png", width=400, scale=2)
    head = path.read_bytes()[:24]
    assert (head[:8], struct.unpack(">I", head[16:20])) == (b"\x89PNG\r\n\x1a\n", (800,))


@needs_chromium
def test_an_svg_says_what_it_shows_and_holds_no_markup_of_others(networks, tmp_path) -> None:
    figure = networks.lens.plot()
    root = ElementTree.parse(charts.save(figure, tmp_path / "revenue.svg")).getroot()
    title, words = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
    assert f"{title}. {words}" == charts.alt_text(figure)
    assert root.get("role") == "img"
    assert [*root.iter(f"{SVG}img")] == []
    assert "<img src=x onerror=alert(1)>" in [element.text for element in root.iter(f"{SVG}text")]


def test_a_page_needs_no_network_and_says_what_it_shows(networks, tmp_path) -> None:
    figure = networks.lens.plot()
    page = charts.save(figure, tmp_path / "revenue.html").read_text()
    assert f'role="img" aria-label="{charts.alt_text(figure)}"' in page
    assert 'src="http' not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("name", ["figure", "figure.gif", "figure.PPT"])
def test_another_kind_of_file_is_refused(networks, tmp_path, name) -> None:
    with pytest.raises(BadQuery, match=r"\.png, \.svg"):
        charts.save(networks.lens.plot(), tmp_path / name)


def test_a_missing_folder_is_refused(networks, tmp_path) -> None:
    with pytest.raises(BadQuery, match=r"make .*nowhere first"):
        charts.save(networks.lens.plot(), tmp_path / "nowhere" / "figure.png")


def test_without_a_browser_the_next_step_is_said(networks, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "chromium"))
    with pytest.raises(Refused, match=r"BROWSER_PATH names .* or save a \.html"):
        charts.save(networks.lens.plot(), tmp_path / "figure.png")
    assert [*tmp_path.iterdir()] == []


def test_a_browser_that_does_not_start_is_named(networks, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BROWSER_PATH", shutil.which("false") or "")
    with pytest.raises(Refused, match=r"false does not start"):
        charts.save(networks.lens.plot(), tmp_path / "figure.png")
