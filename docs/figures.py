"""Figures of the site: all drawn in one browser, each for a wide and for a narrow screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gamelens.notebook.figures.browser_rendering import draw
from gamelens.notebook.reports.narrow_figures import narrow
from gamelens.notebook.reports.svg_figures import WIDTH, StyleSheet, inline

FOLDER = "figures"


class FigureFolder:
    """The figures of all pages, in the order in which they were shown."""

    def __init__(self) -> None:
        self._figures: list[Mapping[str, Any]] = []

    def add(self, figure: Mapping[str, Any], page: str) -> tuple[str, str]:
        """Take up *figure* and return the addresses of its wide and narrow image, seen from *page*."""
        self._figures.append({"data": figure.get("data", []), "layout": figure.get("layout", {})})
        up = "../" * page.count("/")
        return tuple(f"{up}{FOLDER}/{len(self._figures)}-{width}.svg" for width in ("wide", "narrow"))  # type: ignore[return-value]

    def write(self, site: Path) -> None:
        """Draw every figure and write its images."""
        folder = site / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        pictures = draw([*self._figures, *map(narrow, self._figures)], "svg", width=WIDTH)
        for place, svg in enumerate(pictures):
            number, width = place % len(self._figures) + 1, "wide" if place < len(self._figures) else "narrow"
            (folder / f"{number}-{width}.svg").write_text(_small(svg), encoding="utf-8")


def _small(svg: bytes) -> str:
    """Return a picture with its repeated styles as rules, which makes it several times smaller."""
    sheet = StyleSheet()
    picture = inline(svg, sheet, number=0)
    opened, rest = picture.split(">", 1)
    namespace = ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"{opened.replace('<svg', f'<svg{namespace}', 1)}><style>{sheet.css()}</style>{rest}"
