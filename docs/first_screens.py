"""The gallery of the documentation's first page: the first screen of each notebook's report, light and dark.

The first screens are those of `gamelens demo`, whose scenario has a story. `python -m docs.build --record` writes them
down with the answers of the pages, because the story takes minutes to play. A browser takes their pictures in a build.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gamelens.notebook.figures.browser_rendering import browser_path, one_browser
from gamelens.notebook.reports.report import write_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "first-screens"
KEPT: Final = ROOT / "docs" / "screens"
_OF_LAKE: Final = "06_raw_events"
_ANSWER: Final = re.compile(r'<section class="answer">.*?</section>', re.DOTALL)
SCHEMES: Final = ("light", "dark")
_SIZE: Final = {"width": 1040, "height": 800}
_SAFE: Final = ["--no-sandbox", "--disable-gpu", "--no-first-run"]  # as containers need it


def gallery(_: str) -> str:
    """Return the first screens as Markdown: picture by the scheme of the page, what it shows, and its command."""
    return f'\n<div class="gallery" markdown>\n\n{"".join(map(_entry, notebooks()))}</div>\n\n'


def notebooks() -> Iterator[Path]:
    """Yield the shipped notebooks in order."""
    yield from sorted((ROOT / "notebooks").glob("*.ipynb"))


def record_first_screens(state: Path, kept: Path = KEPT, paths: Iterable[Path] | None = None) -> None:
    """Write the first screen of each notebook into the folder *kept*, as a page.

    Args:
        state: the state directory of the running sandbox that answers, whose lake the notebook on raw events reads.
        kept: the folder.
        paths: by default all notebooks.
    """
    kept.mkdir(exist_ok=True)
    with TemporaryDirectory() as made, one_browser():
        for path in notebooks() if paths is None else paths:
            own = [("state", str(state))] if path.stem == _OF_LAKE else []
            report = write_report(path, Path(made), parameters=own, environment={"GAMELENS_THEME": "light"})
            (kept / report.name).write_text(first_screen(report.read_text(encoding="utf-8")), encoding="utf-8")


def first_screen(page: str) -> str:
    """Return the page of a report without what comes after its first screen."""
    answer = _ANSWER.search(page)
    return f"{page[: answer.end()]}</main></body></html>\n" if answer else page


def write_first_screens(site: Path, kept: Path = KEPT) -> None:
    """Take pictures of the first screens in the folder *kept*, into the folder of *site*."""
    from playwright.sync_api import sync_playwright

    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=browser_path(), args=_SAFE)
        for screen in sorted(kept.glob("*.html")):
            for scheme in SCHEMES:
                page = browser.new_page(viewport=_SIZE, color_scheme=scheme)  # type: ignore[arg-type]
                page.goto(screen.absolute().as_uri())
                page.screenshot(path=folder / f"{screen.stem}-{scheme}.png")
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
