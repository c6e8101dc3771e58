"""The gallery of the documentation's first page: the first screen of each notebook's report, light and dark.

The reports are made of recorded answers when the site is built, and a browser takes their pictures.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gamelens.notebook.figures.browser_rendering import browser_path, one_browser
from gamelens.notebook.reports.report import write_report

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "first-screens"
SCHEMES: Final = ("light", "dark")
_SIZE: Final = {"width": 1040, "height": 800}
_SAFE: Final = ["--no-sandbox", "--disable-gpu", "--no-first-run"]  # as containers need it


def gallery(_: str) -> str:
    """Return the first screens as Markdown: picture by the scheme of the page, what it shows, and its command."""
    return f'\n<div class="gallery" markdown>\n\n{"".join(map(_entry, notebooks()))}</div>\n\n'


def notebooks() -> Iterator[Path]:
    """Yield the shipped notebooks in order."""
    yield from sorted((ROOT / "notebooks").glob("*.ipynb"))


def write_first_screens(site: Path, paths: list[Path] | None = None) -> None:
    """Write the reports of *paths*, by default of all notebooks, and a picture of each into the folder of *site*."""
    from playwright.sync_api import sync_playwright

    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    answers = {"GAMELENS_REPLAY": str(ROOT / "data" / "recorded"), "GAMELENS_THEME": "light"}
    with TemporaryDirectory() as made, one_browser():
        asked = [*notebooks()] if paths is None else paths
        reports = [write_report(path, Path(made), environment=answers) for path in asked]
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=browser_path(), args=_SAFE)
            for report in reports:
                for scheme in SCHEMES:
                    page = browser.new_page(viewport=_SIZE, color_scheme=scheme)  # type: ignore[arg-type]
                    page.goto(report.as_uri())
                    page.screenshot(path=folder / f"{report.stem}-{scheme}.png")
                    page.close()
            browser.close()


def _entry(path: Path) -> str:
    """Return a notebook's pictures, its promise and its command."""
    title, _, promise = _first_cell(path).partition("\n\n")
    title = title.removeprefix("# ").strip()
    label = html.escape(f"The first screen of {title}", quote=True)
    pictures = "".join(f"![{label}]({FOLDER}/{path.stem}-{scheme}.png#only-{scheme})" for scheme in SCHEMES)
    page = f"tutorial/{path.stem}.md"
    command = f"```console\n$ gamelens report {path.stem}\n```"
    return f"<div markdown>\n\n[{pictures}]({page})\n\n**{title}.** {promise.strip()}\n\n{command}\n\n</div>\n\n"


def _first_cell(path: Path) -> str:
    return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
