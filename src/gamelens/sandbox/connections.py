"""An HTTP connection that the application itself can drop, which ASGI has no message for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_EXTENSION: Final = "gamelens.hang_up"


class Connection(HttpToolsProtocol):
    """Tells every request of it how to hang up."""

    def on_message_begin(self) -> None:
        """A request starts."""
        super().on_message_begin()
        self.scope["extensions"] = {_EXTENSION: {"close": self.transport.close}}


async def hang_up(scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    """Close the connection of a request once what was sent is out, and return when that is done.

    Raises:
        ConnectionAbortedError: there is no connection, as when an application is called in process.
    """
    connection = (scope.get("extensions") or {}).get(_EXTENSION)
    if connection is None:
        raise ConnectionAbortedError("hung up")
    connection["close"]()
    while (await receive())["type"] != "http.disconnect":
        pass
