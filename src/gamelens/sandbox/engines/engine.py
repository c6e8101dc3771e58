"""The interface of the query engines, and the place where they find the files of the lake.

DuckDB has two connections with different rights. A `DuckDBReader` answers queries: after its start it can read the
lake's folder and nothing else, loads no extension and cannot be reconfigured. A `DuckDBWriter` writes files for
processing, and no text of a request ever reaches it. Spark only reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from gamelens.sandbox.storage.lake import Snapshot

if TYPE_CHECKING:
    from gamelens.sandbox.engines.sql_query import SqlQuery

LOCAL_SCHEME = "file://"
"""Start of the URL of a local file."""


class LakeLocation(msgspec.Struct, frozen=True):
    """The folder in which an engine finds the files of the lake.

    A cluster may see the lake's storage under another name; *url* is that name.

    Attributes:
        root: the lake's folder on this machine.
        url: a folder with the same files, as a URL or path; None is *root*.
    """

    root: Path
    url: str | None = None

    @property
    def folder(self) -> str:
        """The folder as a URL, without percent-encoding if it is local."""
        if self.url is None or "://" not in self.url:
            return f"{LOCAL_SCHEME}{Path(self.url or self.root).resolve()}"
        if self.url.startswith(LOCAL_SCHEME):
            return LOCAL_SCHEME + unquote(urlsplit(self.url).path).rstrip("/")
        return self.url.rstrip("/")

    def urls_of(self, paths: Sequence[Path]) -> list[str]:
        """Return the URLs of *paths*, which are files of the lake."""
        folder = self.folder
        return [f"{folder}/{path.relative_to(self.root).as_posix()}" for path in paths]


class Engine(Protocol):
    """A query engine. All of them return the same rows for the same query."""

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return all rows of *query* over *snapshot*, in the order of its statement.

        Safe to call from several threads at once.
        """
        ...

    def close(self) -> None:
        """Release the engine's memory."""
        ...
