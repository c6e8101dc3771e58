"""Everything that goes wrong in a page of a browser, or leaves the machine from there."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, Request


def problems_of(page: Page, *, is_allowed: Callable[[str], bool], levels: Container[str] = ("error",)) -> list[str]:
    """Return a list to which the problems of *page* are added as they occur.

    These are uncaught errors, dialogs, which are dismissed, console messages of *levels* and requests for an
    address that is not *is_allowed*.
    """
    problems: list[str] = []

    def on_dialog(dialog: Dialog) -> None:
        """Record and dismiss a dialog."""
        problems.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def on_console(message: ConsoleMessage) -> None:
        """Record a console message of *levels*."""
        if message.type in levels:
            problems.append(message.text)

    def on_request(request: Request) -> None:
        """Record a request that is not allowed."""
        if not is_allowed(request.url):
            problems.append(request.url)

    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", on_dialog)
    page.on("console", on_console)
    page.on("request", on_request)
    return problems


def is_file(address: str) -> bool:
    """Return whether *address* needs no server."""
    return not address.startswith("http")


def expect(found: Locator) -> Any:
    """Return the assertions of Playwright, which is imported only where there is a page: it takes a second."""
    from playwright.sync_api import expect as expect_in_page

    return expect_in_page(found)
