"""Still pictures: a figure that `browser_rendering` drew as SVG, made ready for a page.

Of what the browser draws only shapes and words are kept. Nothing in it can run, load or be clicked, whatever a title
holds; styles that are used again and again become rules of the page's sheet, which makes a figure five times smaller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from gamelens.notebook.figures.browser_rendering import HEIGHT

WIDTH: Final = 920
_SHAPES: Final = frozenset(
    {
        *("svg", "g", "defs", "path", "rect", "circle", "line", "polygon", "text", "tspan", "image"),
        *("clipPath", "mask", "pattern", "linearGradient", "radialGradient", "stop"),
    }
)
_SAYS: Final = frozenset(
    {
        *("d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "rx", "ry", "points", "width", "height"),
        *("viewBox", "preserveAspectRatio", "transform", "clip-path", "mask", "text-anchor", "fill", "stroke"),
        *("offset", "stop-color", "stop-opacity", "gradientUnits", "gradientTransform", "patternUnits"),
    }
)
_UNSEEN: Final = frozenset({"pointer-events", "cursor", "vector-effect", "-webkit-user-select", "user-select"})
_REFERRED: Final = frozenset({"clipPath", "mask", "pattern", "linearGradient", "radialGradient"})
_LONG: Final = re.compile(r"\d+\.\d{3,}")
_CIRCLE: Final = re.compile(r"M([\d.]+),0A\1,\1 0 1,1 0,-\1A\1,\1 0 0,1 \1,0Z")
_ID: Final = re.compile(r"url\([\"']?#([^\"')]+)[\"']?\)")


class StyleSheet:
    """The rules of a page's figures, each under a short name."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def name(self, style: str) -> str:
        """The class that looks like the declarations of *style*; empty when they say nothing."""
        pairs = (declaration.partition(":") for declaration in style.split(";"))
        kept = [f"{name.strip()}:{value.strip()}" for name, _, value in pairs if _is_harmless(name, value)]
        return self._rules.setdefault(";".join(kept), f"f{len(self._rules)}") if kept else ""

    def css(self) -> str:
        """All rules so far; no text of theirs can end the element they are in."""
        return "\n".join(f".{name}{{{rule}}}" for rule, name in self._rules.items()).replace("<", "")


def inline(svg: bytes, sheet: StyleSheet, *, number: int) -> str:
    """*svg* as markup for a page, its ids prefixed with the *number* of the figure."""
    root = ElementTree.fromstring(svg)  # noqa: S314 our own browser wrote it, and expat refuses what would blow up
    names = dict.fromkeys(_ID.findall(svg.decode().replace("&quot;", '"')))
    ids = {name: f"g{number}-{place}" for place, name in enumerate(names)}
    kept = _kept(root, sheet, ids)
    if kept is None:
        return ""
    box = {"viewBox": f"0 0 {root.get('width', WIDTH)} {root.get('height', HEIGHT)}", **kept.attrib}
    kept.attrib = {name: value for name, value in box.items() if name not in ("width", "height")}
    kept.set("aria-hidden", "true")  # who does not see it is read the words of the figure around it
    return ElementTree.tostring(kept, encoding="unicode")


def _kept(element: ElementTree.Element, sheet: StyleSheet, ids: Mapping[str, str]) -> ElementTree.Element | None:
    """A copy of what is shape or word; None where nothing is."""
    tag = _tag(element)
    if tag not in _SHAPES or (tag in _REFERRED and element.get("id") not in ids):
        return None
    copy = ElementTree.Element(tag, _attributes(element, sheet, ids))
    copy.text = element.text
    for child in element:
        if (kept := _kept(child, sheet, ids)) is not None:
            kept.tail = child.tail
            copy.extend(kept if kept.tag == "g" and not kept.attrib else [kept])
    if tag == "path":
        return _rounded(copy) if "d" in copy.attrib else None
    is_hollow = not len(copy) and not (copy.text or "").strip()
    return None if is_hollow and tag in ("g", "defs", "text", "clipPath") else copy


def _tag(element: ElementTree.Element) -> str:
    tag = element.tag.rpartition("}")[2]
    return "tspan" if tag == "a" else tag


def _rounded(path: ElementTree.Element) -> ElementTree.Element:
    """*path*, or the circle that it draws: most points are one."""
    if found := _CIRCLE.fullmatch(path.attrib["d"]):
        path.tag = "circle"
        del path.attrib["d"]
        path.set("r", found[1])
    return path


def _attributes(element: ElementTree.Element, sheet: StyleSheet, ids: Mapping[str, str]) -> dict[str, str]:
    def own(value: str) -> str:
        return _ID.sub(lambda found: f"url(#{ids.get(found[1])})", value)

    kept = {}
    for name, value in element.attrib.items():
        short = name.rpartition("}")[2]
        if short == "style" and (look := sheet.name(own(value))):
            kept["class"] = look
        elif short == "id" and value in ids:
            kept["id"] = ids[value]
        elif short == "href" and value.startswith("data:image/png;base64,"):
            kept["href"] = value
        elif short in _SAYS and _is_harmless(short, value):
            kept[short] = own(value) if short == "offset" else _LONG.sub(_rounded_off, own(value))
    return kept


def _rounded_off(number: re.Match[str]) -> str:
    """A hundredth of a pixel is more than anybody sees."""
    return f"{float(number[0]):.2f}".rstrip("0").removesuffix(".")


def _is_harmless(name: str, value: str) -> bool:
    """Says something, and fetches nothing."""
    words = value.strip().lower()
    fetches = "url(" in _ID.sub("", words) or "@import" in words or "\\" in words
    return bool(words) and not fetches and not set("{}<") & set(words) and name.strip() not in _UNSEEN
