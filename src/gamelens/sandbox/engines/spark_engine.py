"""Spark as a query engine, for lakes too large for one machine.

It runs the same queries over the same files as `duckdb_engine.DuckDBReader`. Each query has a Spark session of its
own, with views over the files of one snapshot. The driver is a child process of the sandbox and ends with it. Spark is
imported only when the engine starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS
from gamelens.wire.currencies import SCALED_RATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gamelens.sandbox.engines.sql_query import SqlQuery

MASTERS: Final = ("local", "spark://", "yarn", "k8s://")
"""Beginnings of the address of a Spark master."""

_LOG_CONFIGURATION: Final = Path(__file__).with_name("spark-log4j2.properties")
_SETTINGS: Final = {
    "spark.app.name": "gamelens",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # a sum that overflows is an error and not a null
}
_ON_THIS_MACHINE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # listing files in a Spark job costs more
}
_TYPES: Final = {"VARCHAR": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ"}
_RATES: Final = "SELECT explode(from_json(:rates, 'MAP<STRING, BIGINT>')) AS (currency, scaled)"


class SparkReader:
    """A Spark driver over the tables of a snapshot, connected to the master at *master*.

    A query may take what *bounds* allow.

    Raises:
        Refused: Spark or Java is missing, the master does not answer, or this process already runs Spark.
    """

    def __init__(
        self,
        location: LakeLocation,
        bounds: QueryBounds = QueryBounds(),  # noqa: B008
        *,
        master: str = "local[*]",
    ) -> None:
        self._location = location
        self.bounds = bounds
        self._spark = start_session(master)

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the rows of *query* over *snapshot*, in the order of its statement.

        Safe to call from several threads at once. Rows beyond the bound and one more are left out.

        Raises:
            QueryStopped: it takes more time than a query may take.
        """
        session = self._spark.newSession()
        session.sql(_RATES, {"rates": json.dumps(SCALED_RATES)}).createTempView("rates")
        for table, intervals in query.reads.items():
            urls = self._location.urls_of(snapshot.files(table, *intervals))
            read_files(session, urls, COLUMNS[table]).createTempView(table)
        parameters = {name: _as_parameter(value) for name, value in query.parameters.items()}
        with self._stopped_in_time():
            frame = session.sql(query.statement.sql("spark"), parameters).limit(self.bounds.rows + 1)
            names = frame.columns
            return [dict(zip(names, map(as_integer, row), strict=True)) for row in frame.collect()]

    def close(self) -> None:
        """Stop the driver and its work on the cluster, unless it was killed before."""
        from py4j.protocol import Py4JError

        with contextlib.suppress(Py4JError, OSError):
            self._spark.stop()

    @contextlib.contextmanager
    def _stopped_in_time(self) -> Iterator[None]:
        """Cancel the Spark jobs that this thread starts inside when their time is over.

        Jobs that begin later than that are cancelled too.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        context, tag, is_over, has_ended = self._spark.sparkContext, uuid4().hex, Event(), Event()

        def stop() -> None:
            is_over.set()
            context.cancelJobsWithTag(tag)
            while not has_ended.wait(1):
                context.cancelJobsWithTag(tag)

        timer = Timer(self.bounds.seconds, stop)
        timer.daemon = True
        context.addJobTag(tag)
        timer.start()
        try:
            yield
        except (Py4JError, PySparkException):
            if is_over.is_set():
                raise self.bounds.too_slow from None
            raise
        finally:
            timer.cancel()
            has_ended.set()
            context.removeJobTag(tag)


def start_session(master: str) -> SparkSession:
    """Start a Spark driver that is connected to the master at *master*.

    Raises:
        Refused: Spark or Java is missing, the master does not answer, or this process already runs Spark.
    """
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise Refused(f"the engine spark needs {error.name}: pip install 'gamelens[spark]'") from None
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise Refused("the engine spark needs Java 17 or newer, as `java` on the path or in JAVA_HOME")
    # Rows are read as Python values only, never as a pandas frame.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    settings = _SETTINGS | (_ON_THIS_MACHINE if master.startswith("local") else {})
    configuration = SparkConf().setMaster(master).setAll(list(settings.items()))
    try:
        return SparkSession(SparkContext(conf=configuration))
    except Py4JJavaError as error:
        reason = error.java_exception.toString().partition("\n")[0]
        raise Refused(f"Spark did not start on {master}: {reason}") from None
    except (PySparkException, Py4JError, ValueError) as error:
        raise Refused(f"Spark did not start on {master}: {error}") from None


def schema_of(columns: Mapping[str, str]) -> str:
    """Return *columns*, whose types are those of DuckDB, as a schema of Spark."""
    return ", ".join(f"`{name}` {_TYPES.get(kind, kind)}" for name, kind in columns.items())


def read_files(session: SparkSession, urls: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """Return the rows of the Parquet files at *urls*, no rows without them."""
    if not urls:
        nulls = ", ".join(f"CAST(NULL AS {_TYPES.get(kind, kind)}) AS `{name}`" for name, kind in columns.items())
        return session.sql(f"SELECT {nulls} LIMIT 0")
    return session.read.schema(schema_of(columns)).parquet(*map(_escape_wildcards, urls))


def _as_parameter(value: Any) -> Any:
    """Return *value* as a bound parameter, a datetime as text.

    Spark reads such text as UTC without a zone, while its own type for Python datetimes would have one.
    """
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value


def as_integer(value: Any) -> Any:
    """Return decimals as integers: statements return whole numbers, however wide the sums are."""
    return int(value) if isinstance(value, Decimal) else value


def _escape_wildcards(url: str) -> str:
    """Escape the characters of *url* that Spark reads as wildcards."""
    return "".join(f"\\{character}" if character in "[]{}*?\\" else character for character in url)
