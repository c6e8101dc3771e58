"""The other query engine: Spark, for lakes that one machine is too small for.

It answers the same plans over the same files as `engine.Reader`. Every question has a Spark session of its own, whose
views are of the files of one snapshot; the driver runs beside the sandbox and ends with it. Nothing of Spark is
imported before somebody asks for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.lake_schema import COLUMNS
from gamelens.wire.currencies import SCALED_RATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gamelens.sandbox.engines.sql_query import SqlQuery

MASTERS: Final = ("local", "spark://", "yarn", "k8s://")
"""What the address of a Spark master begins with."""

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
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # a job to look at files costs more than that
}
_TYPES: Final = {"VARCHAR": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ"}
_RATES: Final = "SELECT explode(from_json(:rates, 'MAP<STRING, BIGINT>')) AS (currency, scaled)"


class SparkReader:
    """Answers plans over the tables of a snapshot, on the Spark that *master* is the address of.

    Raises:
        Refused: Spark or Java is missing, the master does not answer, or this process has a Spark already.
    """

    def __init__(self, place: LakeLocation, *, master: str = "local[*]") -> None:
        self._place = place
        self._spark = _start(master)

    def rows(self, plan: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """All rows of *plan*, in its order, over *snapshot*. Safe to call from several threads at once."""
        session = self._spark.newSession()
        session.sql(_RATES, {"rates": json.dumps(SCALED_RATES)}).createTempView("rates")
        for table, spans in plan.reads.items():
            self._table(session, snapshot.files(table, *spans), COLUMNS[table]).createTempView(table)
        bound = {name: _bound(value) for name, value in plan.parameters.items()}
        found = session.sql(plan.statement.sql("spark"), bound)
        names = found.columns
        return [dict(zip(names, map(_plain, row), strict=True)) for row in found.collect()]

    def close(self) -> None:
        """Stop the driver and what it has on the cluster; a driver that was killed has stopped."""
        from py4j.protocol import Py4JError

        with contextlib.suppress(Py4JError, OSError):
            self._spark.stop()

    def _table(self, session: SparkSession, paths: Sequence[Path], columns: Mapping[str, str]) -> DataFrame:
        kinds = {name: _TYPES.get(kind, kind) for name, kind in columns.items()}
        if not paths:
            nothing = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in kinds.items())
            return session.sql(f"SELECT {nothing} LIMIT 0")
        schema = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
        return session.read.schema(schema).parquet(*map(_without_patterns, self._place.urls_of(paths)))


def _start(master: str) -> SparkSession:
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise Refused(f"the engine spark needs {error.name}: pip install 'gamelens[spark]'") from None
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise Refused("the engine spark needs Java 17 or newer, as `java` on the path or in JAVA_HOME")
    # Of rows as Python values, which is all that is asked for, no frame is made.
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


def _bound(value: Any) -> Any:
    """A moment goes as text, which Spark reads as UTC without a zone; its own kind of moment would have one."""
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value


def _plain(value: Any) -> Any:
    """Statements answer whole numbers, whatever they are summed in."""
    return int(value) if isinstance(value, Decimal) else value


def _without_patterns(url: str) -> str:
    r"""*url* to a reader that takes `[`, `{`, `*`, `?` and `\` for patterns of names."""
    return "".join(f"\\{character}" if character in "[]{}*?\\" else character for character in url)
