"""Spark as the engine that makes tables of the lake, past what one machine takes.

The statements are those of `duckdb_engine.DuckDBWriter`, translated. Intermediate tables are files below a folder of
the lake, which the driver and all workers see, so that a worker that is lost takes none of them with it. Files of raw
events are decoded by Python functions.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.spark_engine import as_integer, read_files, schema_of, start_session
from gamelens.sandbox.engines.sql_dialects import render

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Item = TypeVar("Item")
Result = TypeVar("Result")

_TASKS_OF_PART: Final = 4  # so that none has to wait long for the last task, whatever the sizes of files
_BYTES_OF_PART: Final = 1 << 23  # of source files, which are compressed and become several times as much
SCRATCH: Final = "cluster-scratch"
"""Folder of the lake for intermediate tables.

What a killed run leaves there is removed at the next start.
"""


class SparkWriter:
    """A Spark driver that writes files of a lake (`BuildEngine`).

    The lake is at *location*, and the driver is connected to the master at *master*.

    Raises:
        Refused: Spark or Java is missing, the master does not answer, or this process already runs Spark.
    """

    def __init__(self, location: LakeLocation, *, master: str = "local[*]") -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run the code of this version
        self._location = location
        self._scratch = location.root / SCRATCH
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._session = start_session(master)
        self._count = 0
        self._most_tasks = _TASKS_OF_PART

    def prepare_for(self, source_bytes: int) -> None:
        """Set how many parts tables have and how many tasks read files, of so many bytes in all."""
        parts = max(self._session.sparkContext.defaultParallelism, source_bytes // _BYTES_OF_PART)
        self._session.conf.set("spark.sql.shuffle.partitions", str(parts))
        self._most_tasks = _TASKS_OF_PART * parts

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, of which there are few.

        Raises:
            Refused: the query failed.
        """
        with self._job("count"):
            return [tuple(map(as_integer, row)) for row in self._frame(sql).collect()]

    def create(self, name: str, sql: str) -> None:
        """Make the rows of a query readable as *name*. They are computed once.

        Raises:
            Refused: the query failed.
        """
        with self._job(name):
            self._keep(name, self._frame(sql))

    def create_view(self, name: str, sql: str) -> None:
        """Make the rows of a query readable as *name*. They are computed each time.

        Raises:
            Refused: the query failed.
        """
        with self._job(name):
            self._frame(sql).createOrReplaceTempView(name)

    def view_files(self, name: str, paths: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make the files *paths* readable as *name*, an empty table of *columns* without them."""
        read_files(self._session, self._location.urls_of(paths), columns).createOrReplaceTempView(name)

    def write(self, sql: str, path: Path, *, group_rows: int) -> list[Path]:  # a task writes one group
        """Write the sorted rows of a query as Parquet, and return the files in order.

        They lie beside *path*.

        Raises:
            Refused: the query failed.
        """
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
        with self._job(function.__name__):
            return list(
                self._session.sparkContext.parallelize(items, min(len(items), self._most_tasks)).map(function).collect()
            )

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
            self._keep(name, numbers.mapInArrow(rows, schema_of(columns)))

    def close(self) -> None:
        """Stop the driver and its work on the cluster, and delete the intermediate tables."""
        self._session.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    @contextlib.contextmanager
    def _job(self, name: str) -> Iterator[None]:
        """Call the jobs inside *name* on the cluster's pages, and refuse with what Spark says."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        self._session.sparkContext.setJobDescription(f"gamelens: {name}")
        try:
            yield
        except (Py4JError, PySparkException) as error:
            reason = str(error).strip().partition("\n")[0]
            raise Refused(f"processing stopped, nothing was changed: {reason}") from error

    def _frame(self, sql: str) -> DataFrame:
        return self._session.sql(render(sql, "spark"))

    def _keep(self, name: str, frame: DataFrame) -> None:
        """Write the rows of *frame*, and make them readable as *name*."""
        self._count += 1
        (url,) = self._location.urls_of([self._scratch / f"{name}-{self._count}"])
        frame.write.parquet(url)
        self._session.read.schema(frame.schema).parquet(url).createOrReplaceTempView(name)
