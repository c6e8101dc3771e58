"""Every notebook in every world, as `notebook/test_report_pages.py` tries some of them.

Run by `make bench`. The bar: each page is shown without a warning, its numbers are those of the events of its period,
and only a service without any data stops a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.notebook_pages import NOTEBOOKS, defaults_of
from support.page_checks import checked_page
from support.report_worlds import CUTS, World, open_worlds

NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
OVER = (None, "yesterday", "last 7 complete days")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    """All worlds, by name."""
    yield from open_worlds(tmp_path_factory.mktemp("worlds"))


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("world", CUTS)
@pytest.mark.parametrize("notebook", NAMES)
def test_a_page_is_right(worlds: dict[str, World], tmp_path: Path, notebook: str, world: str, over: str | None) -> None:
    """By default, for one day, for a week, and for one game of the world."""
    if over is not None and "over" not in defaults_of(notebook):
        return
    given: dict[str, Any] = {} if over is None else {"over": over}
    if over is not None and "games" in defaults_of(notebook):
        given["games"] = next(iter(worlds[world].titles))
    checked_page(notebook, worlds[world], tmp_path, given)
