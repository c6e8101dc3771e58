"""Tables of BigQuery as the source of an analysis, through the client of the user.

Each statement is estimated first (a dry run, which costs nothing) and refused where it would read more than it may.
What BigQuery billed is counted. The client finds the credentials; nothing here reads, keeps or shows them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import TimeoutError as TooSlow
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.engines.engine import QueryBounds, QueryStopped
from gamelens.sandbox.engines.sql_process import first_line

if TYPE_CHECKING:
    from google.cloud.bigquery import Client, QueryJobConfig

_GB: Final = 10**9
_RETRY_S: Final = 30.0  # the client would try for ten minutes to reach a service that is not there


class TooManyBytes(QueryStopped):
    """A statement that would read more bytes than it may."""


class DescribedTable(NamedTuple):
    """A table of BigQuery.

    Attributes:
        name: its full name, project.dataset.table.
        columns: their types, in BigQuery's words.
        partition: the column by which it is partitioned, None if there is none.
    """

    name: str
    columns: dict[str, str]
    partition: str | None


def is_bigquery(events: object) -> bool:
    """Return whether *events* is a client of BigQuery, or of a class made from it."""
    return any(
        base.__name__ == "Client" and base.__module__.startswith("google.cloud.bigquery") for base in type(events).mro()
    )


class BigQueryTables:
    """Tables of BigQuery under the names that statements have for them (`EventTables`).

    Attributes:
        bytes_billed: the bytes that BigQuery billed for all statements so far.
    """

    dialect = "bigquery"

    def __init__(self, client: Client, *, most_bytes: int) -> None:
        self._client, self._most_bytes = client, most_bytes
        theirs = client.default_query_job_config.maximum_bytes_billed if client.default_query_job_config else None
        if theirs is not None:  # a bound that the user has set for all statements
            self._most_bytes = min(most_bytes, int(theirs))
        self.name = f"BigQuery, project {client.project}"
        self.columns: Mapping[str, Mapping[str, str]] = {}
        self.views: Mapping[str, str] = {}
        self.bytes_billed = 0

    def described(self, table: str) -> DescribedTable:
        """Return the columns of a table, `project.dataset.table` or, of the client's project, `dataset.table`.

        Raises:
            BadQuery: that is no name of a table.
            Refused: it is not there, or cannot be read.
        """
        if table.count(".") not in (1, 2) or not all(table.split(".")) or '"' in table or "`" in table:
            raise BadQuery("table", table, "is no table of BigQuery: name it as project.dataset.table", name="")
        name = table if table.count(".") == 2 else f"{self._client.project}.{table}"
        with _refused():
            found = self._client.get_table(name, retry=_retry())
        columns = {
            field.name: field.field_type if field.mode != "REPEATED" else f"ARRAY<{field.field_type}>"
            for field in found.schema
        }
        return DescribedTable(name, columns, found.time_partitioning.field if found.time_partitioning else None)

    def tables_of(self, dataset: str) -> list[str]:
        """Return the full names of the tables of a dataset, `project.dataset` or one of the client's project.

        Raises:
            Refused: it is not there, or cannot be read.
        """
        name = dataset if "." in dataset else f"{self._client.project}.{dataset}"
        with _refused():
            return sorted(f"{name}.{table.table_id}" for table in self._client.list_tables(name, retry=_retry()))

    def declare(self, name: str, select: str, columns: Mapping[str, str]) -> None:
        """Give the rows of *select*, which is plain SQL over full names in quotes, a name in statements."""
        self.views = {**self.views, name: select}
        self.columns = {**self.columns, name: columns}

    def rows(self, sql: str, bounds: QueryBounds) -> pa.Table:
        """Return the rows of one SELECT (`EventTables`).

        Raises:
            TooManyBytes: it would read more bytes than it may. It is not run.
        """
        with _refused():
            planned = self._client.query(
                sql, job_config=self._settings(dry_run=True, use_query_cache=False), **_retries(bounds)
            )
            needed = int(planned.total_bytes_processed or 0)
        if needed > self._most_bytes:
            raise TooManyBytes(
                f"the statement would read {_amount(needed)} of BigQuery and may read {_amount(self._most_bytes)}"
            )
        settings = self._settings(
            dry_run=False, maximum_bytes_billed=self._most_bytes, job_timeout_ms=int(bounds.seconds * 1000)
        )
        with _refused():
            job = self._client.query(sql, job_config=settings, **_retries(bounds))
            try:
                found = job.result(timeout=bounds.seconds, max_results=bounds.rows + 1)
                table: pa.Table = found.to_arrow(create_bqstorage_client=False)
            except BaseException as error:  # also an interrupt: nobody waits for the result any more
                with contextlib.suppress(Exception):
                    job.cancel(retry=None, timeout=10)
                if isinstance(error, TooSlow):
                    raise bounds.too_slow from None
                raise
            finally:
                self.bytes_billed += int(job.total_bytes_billed or 0)
        if table.num_rows > bounds.rows:
            raise BadQuery("over", table.num_rows, f"gives more than {bounds.rows:,} rows: ask for less", name="")
        return table

    def close(self) -> None:
        """Leave the client, which is the user's."""

    def _settings(self, **settings: Any) -> QueryJobConfig:
        from google.cloud.bigquery import QueryJobConfig

        return QueryJobConfig(use_legacy_sql=False, **settings)


def _retry() -> Any:
    from google.cloud.bigquery.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(_RETRY_S)


def _retries(bounds: QueryBounds) -> dict[str, Any]:
    """Return how long a statement is tried again: its request, and its job."""
    from google.cloud.bigquery.retry import DEFAULT_JOB_RETRY

    return {"retry": _retry(), "job_retry": DEFAULT_JOB_RETRY.with_timeout(min(bounds.seconds, _RETRY_S))}


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Refuse what BigQuery does not do, with what it says: no address, and nothing about credentials."""
    from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except GoogleAPICallError as error:
        said = next((told["message"] for told in error.errors if "message" in told), "") or type(error).__name__
        raise Refused(f"BigQuery refuses: {first_line(Exception(said))}") from None
    except GoogleAuthError as error:
        rule = "see whether `gcloud auth application-default login` or GOOGLE_APPLICATION_CREDENTIALS works"
        raise Refused(f"BigQuery cannot be asked, {type(error).__name__}: {rule}") from None
    except (GoogleAPIError, OSError) as error:
        raise Refused(f"BigQuery cannot be reached: {type(error).__name__}") from None


def _amount(number: int) -> str:
    """Return a number of bytes in the unit that bills have."""
    return f"{number / _GB:,.1f} GB" if number >= _GB else f"{number / 10**6:,.1f} MB"
