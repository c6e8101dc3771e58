"""The interface of the query engines: a query, its bounds, and the place of the files of the lake.

A reader answers queries: after its start a `DuckDBReader` can read the lake's folder and nothing else, loads no
extension and cannot be reconfigured. A `DuckDBWriter` writes files for processing, and no text of a request ever
reaches it. A `SparkReader` and a `SparkWriter` do the same on a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from gamelens.errors import Refused
from gamelens.sandbox.engines.spill_folder import SpillFolder
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import MAX_ROWS, QUERY_S

LOCAL_SCHEME = "file://"
"""Start of the URL of a local file."""

EXTRA_OF_SCHEME = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure"}
"""Extra whose package reads URLs of a scheme. Packages for other kinds of store are named by fsspec."""


class SqlQuery(msgspec.Struct, frozen=True):
    """One query for every engine: a statement in the words of DuckDB, with parameters as `$name`.

    *reads* has the intervals of event time that it needs of each table that it reads.
    """

    sql: str
    parameters: dict[str, Any]
    reads: dict[str, tuple[Interval, ...]]


class QueryStopped(Refused):
    """A query that was ended because it takes more than one query may take."""


class QueryBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one query: time after which it is stopped, rows that are read of its result, memory.

    One more row tells that there are more. *memory* is for all queries together, as DuckDB writes it; Spark has a
    setting of its own. What does not fit into it is written to *spill*, where there is one.
    """

    seconds: float = QUERY_S
    rows: int = MAX_ROWS
    memory: str = "1GB"
    spill: SpillFolder | None = None

    @property
    def too_slow(self) -> QueryStopped:
        """The error of a query that takes longer."""
        return QueryStopped(
            f"the query took more than {self.seconds:g} s and was stopped: "
            "ask for a shorter interval, or for fewer dimensions and filters"
        )


class LakeLocation(msgspec.Struct, frozen=True):
    """The folder in which an engine finds the files of the lake, *root* on this machine.

    A cluster may see the lake's storage under another name, a URL or path; *url* is that name.
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


def filesystem_of(url: str, *, called: str) -> tuple[Any, str]:
    """Return the file system of *url*, which fsspec reads, and the path there.

    Raises:
        Refused: no installed package reads such URLs. The error names what is at *url* as *called*.
    """
    try:
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        extra = EXTRA_OF_SCHEME.get(url.partition("://")[0], "remote")
        hint = f"Run pip install 'gamelens[{extra}]'"
        if extra == "remote":
            hint += ", and install the package that fsspec names for this kind of store"
        raise Refused(f"{called} cannot be read: {error}. {hint}") from None
    return filesystem, path


class BuildEngine(Protocol):
    """An engine that makes tables of the lake.

    Statements are queries in the words of DuckDB, and their rows are the same on every engine. One that fails raises
    `Refused`.
    """

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that has few."""
        ...

    def create(self, name: str, sql: str) -> None:
        """Make the rows of a query readable as *name*. They are computed once."""
        ...

    def create_view(self, name: str, sql: str) -> None:
        """Make the rows of a query readable as *name*. They are computed each time."""
        ...

    def view_files(self, name: str, paths: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make the files *paths* readable as *name*, an empty table of *columns* without them."""
        ...

    def write(self, sql: str, path: Path, *, group_rows: int) -> list[Path]:
        """Write the rows of a query as Parquet, and return the files.

        There is one at *path*, or several beside it. A row group has about *group_rows* rows.
        """
        ...


class Engine(Protocol):
    """A query engine. All of them return the same rows for the same query, and take what *bounds* allow."""

    bounds: QueryBounds

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the rows of *query* over *snapshot*, in the order of its statement.

        Safe to call from several threads at once. Rows beyond the bound and one more are left out.

        Raises:
            QueryStopped: it takes more time or memory than a query may take.
        """
        ...

    def close(self) -> None:
        """Release the engine's memory."""
        ...
