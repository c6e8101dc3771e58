"""Markup of notebooks without anything that runs, loads a page, leads away by itself or asks for input.

The policy of a page (`html_page`) forbids scripts, frames and requests, but neither a redirection by `<meta>` nor what
another program makes of the file. So of cells and their outputs only the elements and attributes named here are kept.
"""

from __future__ import annotations

from typing import Final

import nh3

from gamelens.notebook.reports.svg_figures import ATTRIBUTES, ELEMENTS

_TAGS: Final = (nh3.ALLOWED_TAGS | ELEMENTS | {"main", "polyline", "ellipse", "section", "style", "tfoot"}) - {"image"}
_WITH_CONTENT: Final = {"iframe", "noscript", "object", "script", "template", "textarea", "title", "xmp"}
_ATTRIBUTES: Final = {
    **nh3.ALLOWED_ATTRIBUTES,
    "*": ATTRIBUTES | {"class", "dir", "focusable", "hidden", "id", "lang", "role", "style", "tabindex", "title"},
    "details": {"open"},
}
_SCHEMES: Final = {"data", "http", "https", "mailto"}


def safe_markup(markup: str) -> str:
    """Return *markup* with the harmless elements and attributes alone, each element closed."""
    return nh3.clean(
        markup,
        tags=_TAGS,
        clean_content_tags=_WITH_CONTENT,
        attributes=_ATTRIBUTES,
        generic_attribute_prefixes={"aria-", "data-"},
        url_schemes=_SCHEMES,
        attribute_filter=_harmless,
        link_rel=None,
    )


def _harmless(_: str, attribute: str, value: str) -> str | None:
    """Return *value*, but for links to pages within the link."""
    return None if attribute == "href" and value.lstrip().lower().startswith("data:") else value
