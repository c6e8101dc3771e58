"""The door to the query engine: DuckDB, in memory, over the files of the lake; `spark` is the other one.

Two connections with different rights. A `DuckDBReader` answers questions: once made it sees the lake's folder and nothing
else, loads no extension, and cannot be reconfigured. A `DuckDBWriter` writes files for processing; no request text ever
reaches it.
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


class LakeLocation(msgspec.Struct, frozen=True):
    """Where an engine finds the files of the lake at *root*: there, or in the folder *url*, which has the same files.

    The second is for who sees the lake's storage under another name, as a cluster does. A path will do as well.
    """

    root: Path
    url: str | None = None

    @property
    def folder(self) -> str:
        """The folder as a URL. Of local ones the path is written as it is, without percent signs of its own."""
        if self.url is None or "://" not in self.url:
            return f"{LOCAL_SCHEME}{Path(self.url or self.root).resolve()}"
        if self.url.startswith(LOCAL_SCHEME):
            return LOCAL_SCHEME + unquote(urlsplit(self.url).path).rstrip("/")
        return self.url.rstrip("/")

    def urls_of(self, paths: Sequence[Path]) -> list[str]:
        """The URLs of *paths*, which are files of the lake."""
        folder = self.folder
        return [f"{folder}/{path.relative_to(self.root).as_posix()}" for path in paths]


class Engine(Protocol):
    """What answers plans. Every engine answers the same plan with the same rows."""

    def rows(self, plan: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """All rows of *plan*, in its order, over *snapshot*. Safe to call from several threads at once."""
        ...

    def close(self) -> None:
        """Release the engine's memory."""
        ...
