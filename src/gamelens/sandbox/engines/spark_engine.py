"""Spark as the engine that reads the lake and the one that makes it, past what one machine takes.

Statements are written once, for DuckDB, and translated by sqlglot. Where sqlglot leaves DuckDB's syntax or translates
to an expression of another value, the translation is corrected here, so that both engines return the same integers in
the same order. DuckDB takes statements as they are, so that a sandbox without Spark does not import sqlglot.

Each query of a `SparkReader` has a Spark session of its own, with
views over the files of one snapshot. Intermediate tables of a `SparkWriter` are files below a folder of the lake, which
the driver and all workers see, so that a worker that is lost takes none of them with it. The driver is a child process
and ends with this one. Spark is imported only when an engine starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from uuid import uuid4

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds, SqlQuery
from gamelens.sandbox.storage.atoms import BIG
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS
from gamelens.wire.currencies import SCALED_RATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

SCRATCH: Final = "cluster-scratch"
"""Folder of the lake for intermediate tables.

What a killed run leaves there is removed at the next start.
"""
_MASTERS: Final = ("local", "spark://", "yarn", "k8s://")  # beginnings of the address of a master
_TASKS_OF_PART: Final = 4  # so that none has to wait long for the last task, whatever the sizes of files
_BYTES_OF_PART: Final = 1 << 23  # of source files, which are compressed and become several times as much
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
_OF_PYTHON: Final = re.compile(r"[A-Za-z_.]+(Error|Exception): ")
_OF_RESULTS: Final = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
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

    Where that is `spark` and this process has a session, as a notebook of Databricks or EMR has, that one is used, also
    through Spark Connect: each query runs in a new session of it, so that settings and views of the user stay as they
    are, and it is never stopped. A query may take what *bounds* allow.

    Raises:
        Refused: Spark or Java is missing, the master does not answer, or this process already runs Spark with another.
    """

    def __init__(
        self,
        location: LakeLocation,
        bounds: QueryBounds = QueryBounds(),  # noqa: B008
        *,
        master: str = "spark",
    ) -> None:
        self._location = location
        self.bounds = bounds
        running = _running_session() if master == "spark" else None
        self._spark = running or _started(master)
        self._is_users, self._is_remote = running is not None, is_remote(self._spark)
        self._idle: list[SparkSession] = []  # of Spark Connect, which keeps a session until it is released

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the rows of *query* over *snapshot* (`Engine`)."""
        if not self._is_remote:
            return self._rows_in(_new_session(self._spark, is_users=self._is_users), query, snapshot)
        try:
            session = self._idle.pop()
        except IndexError:
            session = _new_session(self._spark, is_users=self._is_users)
        try:
            return self._rows_in(session, query, snapshot)
        finally:
            self._idle.append(session)

    def _rows_in(self, session: SparkSession, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        session.sql(_RATES, {"rates": json.dumps(SCALED_RATES)}).createOrReplaceTempView("rates")
        for table, intervals in query.reads.items():
            urls = self._location.urls_of(snapshot.files(table, *intervals))
            _read_files(session, urls, COLUMNS[table]).createOrReplaceTempView(table)
        parameters = {  # Spark reads the text of a time as UTC without a zone; its type for a Python datetime has one
            name: value.isoformat(sep=" ") if isinstance(value, datetime) else value
            for name, value in query.parameters.items()
        }
        with stopped_in_time(session, self.bounds):
            frame = session.sql(spark_sql(query.sql), parameters).limit(self.bounds.rows + 1)
            names = frame.columns
            return [dict(zip(names, map(_as_integer, row), strict=True)) for row in frame.collect()]

    def close(self) -> None:
        """Stop the driver and its work on the cluster, unless it was killed before or is the user's."""
        while self._idle:
            _release(self._idle.pop())
        if self._is_users:
            return
        from py4j.protocol import Py4JError

        with contextlib.suppress(Py4JError, OSError):
            self._spark.stop()


class SparkWriter:
    """A Spark driver that writes files of a lake (`BuildEngine`).

    The lake is at *location*, and the driver is connected to the master at *master*. Where that is `spark` and this
    process has a session, a new session beside that one is used, also through Spark Connect, as by a `SparkReader`.

    Raises:
        Refused: Spark or Java is missing, the master does not answer, or this process already runs Spark with another.
    """

    def __init__(self, location: LakeLocation, *, master: str = "spark") -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run the code of this version
        self._location = location
        running = _running_session() if master == "spark" else None
        self._is_users = running is not None
        self._session = _started(master) if running is None else _new_session(running, is_users=True)
        self._scratch = location.root / SCRATCH
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._count = 0
        self._most_tasks = _TASKS_OF_PART

    def prepare_for(self, source_bytes: int) -> None:
        """Set how many parts tables have and how many tasks read files, of so many bytes in all."""
        parts = max(self._parts_at_once(), source_bytes // _BYTES_OF_PART)
        self._session.conf.set("spark.sql.shuffle.partitions", str(parts))
        self._most_tasks = _TASKS_OF_PART * parts

    def _parts_at_once(self) -> int:
        """Return the tasks that the cluster runs at the same time: the parts that Spark itself makes of a range."""
        if not is_remote(self._session):
            return int(self._session.sparkContext.defaultParallelism)
        from pyspark.sql.functions import spark_partition_id

        return int(self._session.range(10_000).select(spark_partition_id()).distinct().count())

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query (`BuildEngine`)."""
        with self._job("count"):
            return [tuple(map(_as_integer, row)) for row in self._frame(sql).collect()]

    def create(self, name: str, sql: str) -> None:
        """Make the rows of a query a table, in files (`BuildEngine`)."""
        with self._job(name):
            self._keep(name, self._frame(sql))

    def create_view(self, name: str, sql: str) -> None:
        """Make a query a view (`BuildEngine`)."""
        with self._job(name):
            self._frame(sql).createOrReplaceTempView(name)

    def view_files(self, name: str, paths: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make files a view (`BuildEngine`)."""
        _read_files(self._session, self._location.urls_of(paths), columns).createOrReplaceTempView(name)

    def write(self, sql: str, path: Path, *, group_rows: int) -> list[Path]:  # a task writes one group
        """Write the sorted rows of a query as Parquet, in several files beside *path*, in order (`BuildEngine`)."""
        folder = path.with_suffix("")
        with self._job(path.stem):
            self._frame(sql).write.option("compression", "zstd").parquet(*self._location.urls_of([folder]))
        files = []
        for number, part in enumerate(sorted(folder.glob("part-*.parquet"))):
            files.append(path.with_name(f"{path.stem}-{number}{path.suffix}"))
            part.rename(files[-1])
        shutil.rmtree(folder)
        return files

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return *function* of each item, in order.

        Raises:
            Refused: a task failed.
        """
        if not items:
            return []

        def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    answer = pickle.dumps(function(items[number]))
                    yield pa.RecordBatch.from_pydict({"number": [number], "answer": [answer]})

        with self._job(function.__name__):
            numbers = self._session.range(0, len(items), 1, numPartitions=min(len(items), self._most_tasks))
            found = numbers.mapInArrow(answers, "number BIGINT, answer BINARY").collect()
            return [pickle.loads(row.answer) for row in sorted(found, key=lambda row: row.number)]  # noqa: S301

    def create_rows(
        self,
        name: str,
        function: Callable[[int], Iterator[pa.RecordBatch]],
        calls: int,
        columns: Mapping[str, str],
    ) -> None:
        """Make the rows of *function* readable as *name*. They are computed once.

        It is called with each number below *calls*, and returns rows with *columns*.

        Raises:
            Refused: a task failed.
        """

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from function(number)

        with self._job(name):
            numbers = self._session.range(0, calls, 1, numPartitions=min(calls, self._most_tasks))
            self._keep(name, numbers.mapInArrow(rows, _schema_of(columns)))

    def close(self) -> None:
        """Stop the driver and its work on the cluster, unless it is the user's, and delete the intermediate tables."""
        if not self._is_users:
            self._session.stop()
        elif is_remote(self._session):
            _release(self._session)
        shutil.rmtree(self._scratch, ignore_errors=True)

    @contextlib.contextmanager
    def _job(self, name: str) -> Iterator[None]:
        """Call the jobs inside *name* on the cluster's pages, and refuse with what Spark says."""
        if not is_remote(self._session):  # which has no context, and names no jobs
            self._session.sparkContext.setJobDescription(f"gamelens: {name}")
        try:
            yield
        except spark_errors() as error:
            first, *rest = str(error).strip().splitlines()
            reason = next(filter(_OF_PYTHON.match, rest), first)  # of the code of a task, if it is that
            raise Refused(f"processing stopped; nothing was changed: {reason}") from error

    def _frame(self, sql: str) -> DataFrame:
        return self._session.sql(spark_sql(sql))

    def _keep(self, name: str, frame: DataFrame) -> None:
        """Write the rows of *frame*, and make them readable as *name*."""
        self._count += 1
        (url,) = self._location.urls_of([self._scratch / f"{name}-{self._count}"])
        frame.write.parquet(url)
        self._session.read.schema(frame.schema).parquet(url).createOrReplaceTempView(name)


@contextlib.contextmanager
def stopped_in_time(session: SparkSession, bounds: QueryBounds) -> Iterator[None]:
    """Cancel the Spark jobs that this thread starts inside when the time of *bounds* is over, or a person interrupts.

    Jobs that begin later than that are cancelled too.
    """
    tag, is_over, has_ended = uuid4().hex, Event(), Event()
    add: Callable[[str], None]
    cancel: Callable[[str], object]
    remove: Callable[[str], None]
    if is_remote(session):  # it has no context
        add, cancel, remove = session.addTag, session.interruptTag, session.removeTag
    else:
        context = session.sparkContext
        add, cancel, remove = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag

    def stop() -> None:
        is_over.set()
        cancel(tag)
        while not has_ended.wait(1):
            cancel(tag)

    timer = Timer(bounds.seconds, stop)
    timer.daemon = True
    add(tag)
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        cancel(tag)
        raise
    except spark_errors():
        if is_over.is_set():
            raise bounds.too_slow from None
        raise
    finally:
        timer.cancel()
        has_ended.set()
        remove(tag)


def is_remote(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return not hasattr(session, "_jsparkSession")


def _release(session: SparkSession) -> None:
    """Have a server of Spark Connect forget a session of ours."""
    with contextlib.suppress(*spark_errors(), OSError):
        session.client.release_session()
    session.client.close()


def _running_session() -> SparkSession | None:
    """Return the session of Spark that this thread of the user has, if any."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:  # `_started` says so
        return None
    return SparkSession.getActiveSession()


def _new_session(spark: SparkSession, *, is_users: bool) -> SparkSession:
    """Return a session with the settings that results depend on, beside one of the user or of our own.

    Raises:
        Refused: this version of Spark Connect makes none.
    """
    from pyspark.errors import PySparkException

    try:
        session = spark.newSession()
    except (AttributeError, NotImplementedError, PySparkException) as error:
        if not is_remote(spark):
            raise
        raise Refused(
            f"a new session of this Spark Connect cannot be made: {error}. Install pyspark 4.3 or newer, or use a "
            "session without Connect"
        ) from None
    if is_users:
        for name in _OF_RESULTS:
            session.conf.set(name, _SETTINGS[name])
    return session


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the errors of Spark. Py4J is not there where pyspark only speaks to a server."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ModuleNotFoundError:
        return (PySparkException,)
    return Py4JError, PySparkException


def _started(master: str) -> SparkSession:
    """Start a Spark driver that is connected to the master at *master*, or on this machine if that is `spark`.

    Raises:
        Refused: it is not the address of a master, Spark or Java is missing, the master does not answer, or this
            process already runs Spark.
    """
    if master == "spark":
        master = "local[*]"
    elif not master.startswith(_MASTERS):
        known = "…, ".join(_MASTERS)
        raise Refused(f"{master!r} is not an engine: duckdb, spark, or the address of a Spark master: {known}…")
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


def _schema_of(columns: Mapping[str, str]) -> str:
    """Return *columns*, with types of DuckDB, as a schema of Spark."""
    return ", ".join(f"`{name}` {_TYPES.get(kind, kind)}" for name, kind in columns.items())


def _read_files(session: SparkSession, urls: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """Return the rows of the Parquet files at *urls*, no rows without them."""
    if not urls:
        nulls = ", ".join(f"CAST(NULL AS {_TYPES.get(kind, kind)}) AS `{name}`" for name, kind in columns.items())
        return session.sql(f"SELECT {nulls} LIMIT 0")
    escaped = (re.sub(r"[][{}*?\\]", r"\\\g<0>", url) for url in urls)  # Spark reads these as wildcards
    return session.read.schema(_schema_of(columns)).parquet(*escaped)


def _as_integer(value: Any) -> Any:
    """Return decimals as integers: statements return whole numbers, however wide the sums are."""
    return int(value) if isinstance(value, Decimal) else value


def spark_sql(text: str) -> str:
    """Translate *text*, a statement for DuckDB, into one for Spark. A parameter `$name` becomes `:name`.

    Dialects are named by their classes: one that sqlglot loads by its name at first use is seen half made by other
    threads.
    """
    return parse_one(text, dialect=DuckDB).sql(_Spark)


class _Spark(Spark):
    """Spark's dialect, with whole numbers that stay whole."""

    class Generator(SparkGenerator):
        """Corrections to sqlglot's translation to Spark."""

        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.INT128: BIG}
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: generator for kind, generator in SparkGenerator.TRANSFORMS.items() if kind is not exp.IntDiv
        }

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """Write a row of values as a struct, and times as microseconds."""
            if expression.name.upper() == "ROW":
                return self.func("STRUCT", *expression.expressions)
            if expression.name.upper() == "EPOCH_US":
                return f"UNIX_MICROS(CAST({self.sql(expression.expressions[0])} AS TIMESTAMP))"
            return super().anonymous_sql(expression)

        def intdiv_sql(self, expression: exp.IntDiv) -> str:
            """Write integer division as an exact decimal division without the remainder.

            Spark's own DIV returns 64 bits and wraps around.
            """
            numerator, denominator = self.sql(expression, "this"), self.sql(expression, "expression")
            return (
                f"CAST((CAST({numerator} AS {BIG}) - {numerator} % {denominator}) / "
                f"CAST({denominator} AS {BIG}) AS {BIG})"
            )

        def div_sql(self, expression: exp.Div) -> str:
            """Write a quotient as a float, of decimals too, so that rows are ordered as in DuckDB."""
            numerator, denominator = self.sql(expression, "this"), self.sql(expression, "expression")
            return f"CAST({numerator} AS DOUBLE) / CAST({denominator} AS DOUBLE)"
