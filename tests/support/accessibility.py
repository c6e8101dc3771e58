"""Accessibility of a page, as axe-core judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


def violations_of(page: Page, *, within: str = "html", without: tuple[str, ...] = ()) -> list[str]:
    """Return every element of *page* that breaks a rule of axe-core, of any severity, with the rule.

    A page with a policy against foreign scripts needs a context with `bypass_csp`.

    Args:
        page: an open page.
        within: selector of the part to judge.
        without: selectors of parts that are not ours.
    """
    from axe_playwright_python.sync_playwright import Axe

    context: dict[str, Any] = {"include": [[within]], "exclude": [[part] for part in without]}
    found = Axe().run(page, context=context, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{rule['id']} ({rule['impact']}): {node['html'][:160]}" for rule in found for node in rule["nodes"]]
