"""Static figures: SVG that `browser_rendering` drew, cleaned and made smaller for a page.

Only shapes and text are kept, so nothing in a figure can run, load or be clicked, whatever a title contains. Repeated
styles become rules of the page's style sheet, which makes a figure five times smaller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from gamelens.notebook.figures.browser_rendering import HEIGHT

WIDTH: Final = 920
ELEMENTS: Final = frozenset(
    {
        *("svg", "g", "defs", "path", "rect", "circle", "line", "polygon", "text", "tspan", "image"),
        *("clipPath", "mask", "pattern", "linearGradient", "radialGradient", "stop"),
    }
)
"""Shapes and text."""
ATTRIBUTES: Final = frozenset(
    {
        *("d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "rx", "ry", "points", "width", "height"),
        *("viewBox", "preserveAspectRatio", "transform", "clip-path", "mask", "text-anchor", "fill", "stroke"),
        *("offset", "stop-color", "stop-opacity", "gradientUnits", "gradientTransform", "patternUnits"),
    }
)
"""Their attributes, but for references and styles."""
_UNUSED_STYLES: Final = frozenset({"pointer-events", "cursor", "vector-effect", "-webkit-user-select", "user-select"})
_REFERENCED: Final = frozenset({"clipPath", "mask", "pattern", "linearGradient", "radialGradient"})
_LONG: Final = re.compile(r"\d+\.\d{3,}")
_CIRCLE: Final = re.compile(r"M([\d.]+),0A\1,\1 0 1,1 0,-\1A\1,\1 0 0,1 \1,0Z")
_ID: Final = re.compile(r"url\([\"']?#([^\"')]+)[\"']?\)")


class StyleSheet:
    """The CSS rules of a page's figures, each under a short name."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def name(self, style: str) -> str:
        """Return the CSS class with the declarations of *style*, empty if none is kept."""
        pairs = (declaration.partition(":") for declaration in style.split(";"))
        declarations = [f"{name.strip()}:{value.strip()}" for name, _, value in pairs if _is_harmless(name, value)]
        return self._rules.setdefault(";".join(declarations), f"f{len(self._rules)}") if declarations else ""

    def css(self) -> str:
        """Return all rules so far. They contain no `<`, so they cannot close the style element."""
        return "\n".join(f".{name}{{{rule}}}" for rule, name in self._rules.items()).replace("<", "")


def inline(svg: bytes, sheet: StyleSheet, *, number: int) -> str:
    """Return *svg* as markup for a page.

    Args:
        svg: as the browser drew it.
        sheet: takes up the styles.
        number: of the figure on the page. It makes ids unique.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 written by the local browser; expat limits entity expansion
    names = dict.fromkeys(_ID.findall(svg.decode().replace("&quot;", '"')))
    ids = {name: f"g{number}-{place}" for place, name in enumerate(names)}
    picture = _clean_copy(root, sheet, ids)
    if picture is None:
        return ""
    box = {"viewBox": f"0 0 {root.get('width', WIDTH)} {root.get('height', HEIGHT)}", **picture.attrib}
    picture.attrib = {name: value for name, value in box.items() if name not in ("width", "height")}
    picture.set("aria-hidden", "true")  # a screen reader reads the label of the figure around it
    return ElementTree.tostring(picture, encoding="unicode")


def _clean_copy(element: ElementTree.Element, sheet: StyleSheet, ids: Mapping[str, str]) -> ElementTree.Element | None:
    """Return a copy with only shapes and text, or None if nothing is left."""
    tag = _tag(element)
    if tag not in ELEMENTS or (tag in _REFERENCED and element.get("id") not in ids):
        return None
    copy = ElementTree.Element(tag, _attributes(element, sheet, ids))
    copy.text = element.text
    for child in element:
        if (part := _clean_copy(child, sheet, ids)) is not None:
            part.tail = child.tail
            copy.extend(part if part.tag == "g" and not part.attrib else [part])
    if tag == "path":
        return _simplified(copy) if "d" in copy.attrib else None
    is_hollow = not len(copy) and not (copy.text or "").strip()
    return None if is_hollow and tag in ("g", "defs", "text", "clipPath") else copy


def _tag(element: ElementTree.Element) -> str:
    tag = element.tag.rpartition("}")[2]
    return "tspan" if tag == "a" else tag


def _simplified(path: ElementTree.Element) -> ElementTree.Element:
    """Return *path*, or the circle that it draws: most points are drawn as such a path."""
    if circle := _CIRCLE.fullmatch(path.attrib["d"]):
        path.tag = "circle"
        del path.attrib["d"]
        path.set("r", circle[1])
    return path


def _attributes(element: ElementTree.Element, sheet: StyleSheet, ids: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes to keep, with ids renamed and styles as a class."""

    def with_new_ids(value: str) -> str:
        return _ID.sub(lambda match: f"url(#{ids.get(match[1])})", value)

    attributes = {}
    for name, value in element.attrib.items():
        short = name.rpartition("}")[2]
        if short == "style" and (css_class := sheet.name(with_new_ids(value))):
            attributes["class"] = css_class
        elif short == "id" and value in ids:
            attributes["id"] = ids[value]
        elif short == "href" and value.startswith("data:image/png;base64,"):
            attributes["href"] = value
        elif short in ATTRIBUTES and _is_harmless(short, value):
            new = with_new_ids(value)
            attributes[short] = new if short == "offset" else _LONG.sub(_rounded_off, new)
    return attributes


def _rounded_off(number: re.Match[str]) -> str:
    """Return *number* with two decimals: a hundredth of a pixel is not visible."""
    return f"{float(number[0]):.2f}".rstrip("0").removesuffix(".")


def _is_harmless(name: str, value: str) -> bool:
    """Return whether a declaration has a value, is needed in a page and loads nothing."""
    words = value.strip().lower()
    fetches = "url(" in _ID.sub("", words) or "@import" in words or "\\" in words
    return bool(words) and not fetches and not set("{}<") & set(words) and name.strip() not in _UNUSED_STYLES
