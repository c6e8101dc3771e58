"""A stand-in for BigQuery's service: the addresses that its official client calls, over tables of Arrow.

What a statement says is left to others: `GoogleSql` has it read and run by the reference engine that Google publishes,
and `translated` by DuckDB, through sqlglot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import duckdb
import pyarrow as pa
import sqlglot

Tables = Mapping[str, pa.Table]
Run = Callable[[str], pa.Table]

_ROOT: Final = "/bigquery/v2/projects/"
_TYPES: Final = {
    pa.string(): "STRING",
    pa.int64(): "INTEGER",
    pa.float64(): "FLOAT",
    pa.date32(): "DATE",
    pa.timestamp("us"): "DATETIME",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BigQueryService:
    """What the service knows, and what it was asked.

    Attributes:
        tables: by project.dataset.table.
        partitions: the column by which a table is partitioned, by the name of the table.
        estimate: the bytes that a dry run states.
        requests: method, path and body of each request that came.
        hangs: statements do not end until they are cancelled.
        failure: status and message that every statement gets.
    """

    def __init__(self, tables: Tables, run: Run) -> None:
        self.tables, self._run = tables, run
        self.partitions: dict[str, str] = {}
        self.estimate, self.hangs = 10_485_760, False
        self.failure: tuple[int, str] | None = None
        self.requests: list[tuple[str, str, Any]] = []
        self.cancelled = Event()
        self._jobs: dict[str, tuple[dict[str, Any], pa.Table]] = {}

    @property
    def statements(self) -> list[str]:
        """The statements that were run."""
        return [
            body["configuration"]["query"]["query"]
            for _, path, body in self.requests
            if path.endswith("/jobs") and not body["configuration"].get("dryRun")
        ]

    def answer(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, dict[str, Any]]:
        """Return status and body of an answer."""
        self.requests.append((method, path, body))
        match [method, *path.removeprefix(_ROOT).split("/")]:
            case ["GET", project, "datasets", dataset, "tables"]:
                names = [name for name in self.tables if name.startswith(f"{project}.{dataset}.")]
                return 200, {"tables": [{"tableReference": _reference(name), "type": "TABLE"} for name in names]}
            case ["GET", project, "datasets", dataset, "tables", table]:
                return self._table(f"{project}.{dataset}.{table}")
            case ["POST", project, "jobs"]:
                return self._start(project, body)
            case ["POST", _, "jobs", job, "cancel"]:
                self.cancelled.set()
                return 200, {"job": self._jobs[job][0]}
            case ["GET", _, "jobs", job]:
                return 200, self._jobs[job][0]
            case ["GET", _, "queries", job]:
                return self._results(job, query)
        return 404, _error(404, f"Not found: {path}")

    def _table(self, name: str) -> tuple[int, dict[str, Any]]:
        if name not in self.tables:
            return 404, _error(404, f"Not found: Table {name.replace('.', ':', 1)}")
        described = {"tableReference": _reference(name), "schema": _schema(self.tables[name].schema), "type": "TABLE"}
        if column := self.partitions.get(name):
            described["timePartitioning"] = {"type": "DAY", "field": column}
        return 200, described

    def _start(self, project: str, body: Any) -> tuple[int, dict[str, Any]]:
        settings = body["configuration"]
        if self.failure is not None:
            return self.failure[0], _error(*self.failure)
        if settings["query"]["useLegacySql"]:
            return 400, _error(400, "legacy SQL")
        reference = {"projectId": project, "location": "EU", **body.get("jobReference", {})}
        statistics: dict[str, Any] = {"query": {"totalBytesProcessed": str(self.estimate)}}
        job = {
            "jobReference": reference,
            "configuration": settings,
            "statistics": statistics,
            "status": {"state": "DONE"},
        }
        if settings.get("dryRun"):
            return 200, job
        most = int(settings["query"].get("maximumBytesBilled", 10**18))
        if most < self.estimate:
            return 400, _error(
                400, f"Query exceeded limit for bytes billed: {most}. {self.estimate} or higher required."
            )
        statistics["query"]["totalBytesBilled"] = str(self.estimate)
        if self.hangs:
            job["status"] = {"state": "RUNNING"}
            rows = pa.table({})
        else:
            try:
                rows = self._run(settings["query"]["query"])
            except Exception as error:  # what the engine says; without an answer the client would try again
                return 400, _error(400, f"{type(error).__name__}: {error}")
        self._jobs[reference["jobId"]] = job, rows
        return 200, job

    def _results(self, name: str, query: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        job, rows = self._jobs[name]
        if self.hangs:
            self.cancelled.wait(min(0.5, int(query.get("timeoutMs", 10_000)) / 1000))
            return 200, {"jobReference": job["jobReference"], "jobComplete": False}
        begin = int(query.get("pageToken", 0))
        part = rows.slice(begin, min(int(query.get("maxResults", 5000)), 5000))
        answer = {
            "jobReference": job["jobReference"],
            "jobComplete": True,
            "schema": _schema(rows.schema),
            "totalRows": str(rows.num_rows),
            "rows": [{"f": [{"v": _written(value)} for value in row.values()]} for row in part.to_pylist()],
        }
        if begin + part.num_rows < rows.num_rows and part.num_rows:
            answer["pageToken"] = str(begin + part.num_rows)
        return 200, answer


@contextmanager
def serving(service: BigQueryService) -> Iterator[str]:
    """Serve on this machine, and yield the address for `client_options`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            status, answer = service.answer(self.command, address.path, query, body)
            written = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = _handle  # noqa: N815 - names of the class

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        service.cancelled.set()
        server.shutdown()
        server.server_close()
        thread.join()


def translated(tables: Tables) -> Run:
    """Return what runs statements on DuckDB, through sqlglot."""

    def run(sql: str) -> pa.Table:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            sql = sqlglot.transpile(sql, read="bigquery", write="duckdb")[0]
            for number, (name, table) in enumerate(tables.items()):
                connection.register(f"t{number}", table)
                sql = re.sub(
                    "|".join((re.escape(f'"{name}"'), re.escape(".".join(f'"{part}"' for part in name.split("."))))),
                    f"t{number}",
                    sql,
                )
            return _in_our_types(connection.sql(sql).to_arrow_table())

    return run


def _in_our_types(table: pa.Table) -> pa.Table:
    """Return a result with the types that results of BigQuery have."""
    kinds = [
        pa.int64() if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type) else field.type
        for field in table.schema
    ]
    return table.cast(pa.schema(zip(table.column_names, kinds, strict=True)))


class GoogleSql:
    """The analyser and the reference engine of GoogleSQL, the language of BigQuery, over tables of Arrow.

    Both are Google's, built as WebAssembly by the package zetasql. Loading takes half a minute.
    """

    def __init__(self, tables: Tables) -> None:
        import zetasql.types as types
        from zetasql.api import CatalogBuilder, TableBuilder

        self._types = types
        language = types.LanguageOptions.maximum_features()
        language.product_mode = types.ProductMode.PRODUCT_EXTERNAL
        self._kinds = {
            pa.string(): types.TypeKind.TYPE_STRING,
            pa.int64(): types.TypeKind.TYPE_INT64,
            pa.float64(): types.TypeKind.TYPE_DOUBLE,
            pa.date32(): types.TypeKind.TYPE_DATE,
            pa.timestamp("us"): types.TypeKind.TYPE_DATETIME,
            pa.timestamp("us", "UTC"): types.TypeKind.TYPE_TIMESTAMP,
        }
        catalog = CatalogBuilder("warehouse")
        self._contents = {}
        for name, table in tables.items():
            built = TableBuilder(name)
            for field in table.schema:
                built = built.add_column(field.name, self._kinds[field.type])
            catalog = catalog.add_table(built.build())
            rows = [
                types.TableData.Row(cell=[self._value(value) for value in row.values()]) for row in table.to_pylist()
            ]
            self._contents[name] = types.TableContent(table_data=types.TableData(row=rows))
        builtin = types.ZetaSQLBuiltinFunctionOptions(language_options=language)
        self._catalog = catalog.with_builtin_functions(builtin).build()
        self._options = types.AnalyzerOptions(language_options=language)

    def __call__(self, sql: str) -> pa.Table:
        """Run a statement."""
        from zetasql.api import PreparedQuery

        built = PreparedQuery.builder().set_sql(sql).set_analyzer_options(self._options).set_catalog(self._catalog)
        with built.set_table_content(self._contents).prepare() as prepared:
            content = prepared.execute().content
            kinds = {kind: arrow for arrow, kind in self._kinds.items()}
            schema = pa.schema([(column.name, kinds[column.type.type_kind]) for column in prepared.columns])
        columns = [
            [_python_value(row.cell[place], field.type) for row in content.table_data.row]
            for place, field in enumerate(schema)
        ]
        return pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)

    def _value(self, value: Any) -> Any:
        match value:
            case None:
                return self._types.Value()
            case str():
                return self._types.Value(string_value=value)
            case int():
                return self._types.Value(int64_value=value)
            case float():
                return self._types.Value(double_value=value)
            case datetime() if value.tzinfo is not None:
                from google.protobuf.timestamp_pb2 import Timestamp

                moment = Timestamp()
                moment.FromDatetime(value.astimezone(UTC))
                return self._types.Value(timestamp_value=moment)
            case datetime():
                of_day = ((value.hour << 6 | value.minute) << 6) | value.second
                seconds = (((value.year << 4 | value.month) << 5 | value.day) << 17) | of_day
                stated = self._types.Value.Datetime(bit_field_datetime_seconds=seconds, nanos=value.microsecond * 1000)
                return self._types.Value(datetime_value=stated)
            case date():
                return self._types.Value(date_value=(value - _EPOCH.date()).days)
        raise TypeError(value)


def _python_value(cell: Any, kind: pa.DataType) -> Any:
    """Return a value of the reference engine."""
    if kind == pa.string():
        return cell.string_value
    if kind == pa.int64():
        return cell.int64_value
    if kind == pa.float64():
        return cell.double_value
    if kind == pa.date32():
        return cell.date_value
    found = cell.datetime_value
    if found is None:
        return None
    packed = found.bit_field_datetime_seconds
    day = packed >> 17
    return datetime(
        day >> 9, day >> 5 & 15, day & 31, packed >> 12 & 31, packed >> 6 & 63, packed & 63, (found.nanos or 0) // 1000
    )


def _reference(name: str) -> dict[str, str]:
    return dict(zip(("projectId", "datasetId", "tableId"), name.split("."), strict=True))


def _schema(schema: pa.Schema) -> dict[str, Any]:
    return {"fields": [{"name": field.name, "type": _TYPES[field.type], "mode": "NULLABLE"} for field in schema]}


def _written(value: Any) -> str | None:
    match value:
        case None:
            return None
        case datetime() if value.tzinfo is not None:
            return str(round((value - _EPOCH).total_seconds() * 1_000_000))
        case datetime() | date():
            return value.isoformat()
        case float():
            return repr(value)
    return str(value)


def _error(status: int, message: str) -> dict[str, Any]:
    reason = {404: "notFound", 403: "accessDenied"}.get(status, "invalidQuery")
    return {"error": {"code": status, "message": message, "errors": [{"message": message, "reason": reason}]}}
