"""A process for the statements of a user: one SELECT after another, over files that it can only read.

Inside a function DuckDB neither asks whether it is to stop nor counts the memory of its result. So time and memory are
watched from outside, and a process that takes more is ended; the next statement gets a new one.

In the process, DuckDB may use the files of `read_files` and its spill folder, to which it writes what does not fit into
memory, and no others. A statement that holds more than SELECT is not run.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

import duckdb
import msgspec
import psutil
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.engines.duckdb_engine import fills_spill_folder
from gamelens.sandbox.engines.read_files import SCHEME, ReadFiles
from gamelens.sandbox.engines.spill_folder import SpillFolder, remove_spilled

if TYPE_CHECKING:
    from gamelens.sandbox.engines.engine import QueryBounds

atexit.register(globals().pop, "duckdb")  # see `duckdb_engine`

COUNTED_SHARE: Final = 0.8
"""Share of a statement's memory that DuckDB may count. It does not count all: 8 % was measured beside it."""
UNCOUNTED_BYTES: Final = 100_000_000
"""Memory that the process may take beside the memory of a statement."""
_LOOK_S: Final = 0.02
_ROWS_AT_ONCE: Final = 100_000
_SETTINGS: Final = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_file_cache = false",  # what a statement has read would stay in memory
    f"SET allowed_directories = ['{SCHEME}']",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_EXPLAIN: Final = re.compile(r"\s*EXPLAIN(\s+ANALYZE)?\s", re.IGNORECASE)
_NODE: Final = re.compile(r'"type":\s*"(\w+_NODE)"')  # no text of the statement: its quotes would be escaped
_READS: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"})
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class _Order(NamedTuple):
    """A statement, the *setup* that makes what it reads of *files*, and its bounds.

    *spilling* are the settings by which it spills to a folder below *spill_folder*.
    """

    setup: Sequence[str]
    files: Sequence[str]
    statement: str
    parameters: Mapping[str, Any]
    memory: str
    rows: int
    spilling: Sequence[str]
    spill_folder: str


class _Answer(msgspec.Struct, frozen=True):
    """What became of an order: the rows follow, or *text* says why there are none.

    Behind the rows another answer says whether they are all.
    """

    kind: Literal["rows", "bad", "forbidden", "memory", "spill"]
    text: str = ""


class _Running(NamedTuple):
    """A process that waits for orders."""

    process: subprocess.Popen[bytes]
    orders: IO[bytes]
    answers: IO[bytes]
    errors: IO[bytes]
    started_by: int

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for file in (self.orders, self.answers, self.errors):
            file.close()


class SqlProcess:
    """The process, which is started at the first statement and spills to *spill*. Threads take turns."""

    def __init__(self, spill: SpillFolder) -> None:
        self._spill = spill
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def run(
        self,
        statement: str,
        parameters: Mapping[str, Any],
        bounds: QueryBounds,
        *,
        setup: Sequence[str],
        files: Sequence[str],
    ) -> pa.Table:
        """Return the rows of one SELECT over what *setup* makes of *files*.

        Raises:
            BadQuery: it is not one SELECT, is not valid, or has more rows than it may have.
            Refused: it takes more time or memory than it may take, or needs what is locked.
        """
        most = bytes_of(bounds.memory)
        counted = f"{most * COUNTED_SHARE // 1000:.0f}KB"
        try:
            spilling = self._spill.settings("sql"), self._spill.path
            order = pickle.dumps((setup, files, statement, dict(parameters), counted, bounds.rows, *spilling))
        except Exception as error:
            raise BadQuery("parameters", msgspec.UNSET, f"must be plain values: {error}") from None
        with self._lock, ThreadPoolExecutor(1) as pool:
            running = self._start()
            watched = psutil.Process(running.process.pid)
            before, ends_at = _memory(watched), time.monotonic() + bounds.seconds
            answering = pool.submit(_ask, running, order)
            try:
                while not wait([answering], timeout=_LOOK_S).done:
                    if time.monotonic() > ends_at:
                        raise Refused(f"the statement took more than {bounds.seconds:g} s and was stopped: narrow it")
                    if _memory(watched) - before > most + UNCOUNTED_BYTES:
                        raise Refused(f"the statement takes {self._spill.advice(bounds.memory, is_full=False)}")
            except BaseException:  # also when a person interrupts it
                self._end()
                raise
            answer, table = answering.result()
        match answer.kind:
            case "rows":
                return table
            case "memory" | "spill":
                advice = self._spill.advice(bounds.memory, is_full=answer.kind == "spill")
                raise Refused(f"the statement takes {advice}")
            case "forbidden":
                raise Refused(f"forbidden statement: {answer.text}")
            case "bad":
                raise BadQuery("statement", msgspec.UNSET, answer.text)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _start(self) -> _Running:
        """Return the process, or a new one if it has ended or belongs to the process that this one was forked from."""
        running = self._running
        if running is not None and running.started_by == os.getpid() and running.process.poll() is None:
            return running
        self._end()
        errors = tempfile.TemporaryFile()  # noqa: SIM115
        process = subprocess.Popen(  # noqa: S603
            (sys.executable, "-m", __name__, str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # an interrupt is for the caller, who ends it
        )
        orders, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        self._running = _Running(process, orders, answers, errors, os.getpid())
        answers.readline()
        return self._running

    def _end(self) -> None:
        if self._running is not None and self._running.started_by == os.getpid():
            self._running.end()
        self._running = None


def _ask(running: _Running, order: bytes) -> tuple[_Answer, pa.Table | None]:
    """Return the answer to a pickled order.

    Raises:
        Refused: the process has ended.
    """
    try:
        running.orders.write(order)
        running.orders.flush()
        answer = msgspec.json.decode(running.answers.readline(), type=_Answer)
        if answer.kind != "rows":
            return answer, None
        table = pa.ipc.open_stream(running.answers).read_all()
        return msgspec.json.decode(running.answers.readline(), type=_Answer), table
    except (OSError, msgspec.DecodeError, pa.ArrowInvalid):
        status = running.process.wait()
        running.errors.seek(0)
        last = running.errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise Refused(f"the statement ended its process ({last or f'status {status}'}): change it") from None


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it has ended
        return 0


@lru_cache
def bytes_of(memory: str) -> float:
    """Return an amount of memory as DuckDB writes it in bytes.

    Raises:
        BadQuery: DuckDB cannot read it.
    """
    with duckdb.connect() as connection:
        try:
            connection.execute(memory_limit(memory))
        except duckdb.Error as error:
            raise BadQuery("memory", memory, f"is not an amount of memory: {first_line(error)}") from None
        number, unit = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0].split()
        return float(number) * 1024.0 ** _UNITS.index(unit)


def memory_limit(memory: str) -> str:
    """Return the setting of DuckDB by which a connection takes so much memory."""
    return "SET memory_limit = '" + memory.replace("'", "''") + "'"


def first_line(error: BaseException) -> str:
    """Return the line of an error of an engine that says what happened."""
    lines = str(error).strip().splitlines()
    if not lines[0].startswith("Traceback"):
        return lines[0]
    # Of Python, from a file system: places are indented, and DuckDB ends with the line of the statement.
    said = [line for line in lines[1:] if line[:1].strip() and not line.startswith("LINE ")]
    return said[-1] if said else lines[-1].strip()


# ------------------------------------------------------------------------------------------------- inside the process


class OpenLake:
    """A locked connection with what the setup of an order makes, kept for the next order that has the same.

    Making it takes longer than many a statement.

    Attributes:
        spill_folder: the folder below which it spills.
    """

    def __init__(self) -> None:
        self.spill_folder = ""
        self._made_of: tuple[Sequence[str], Sequence[str], str] | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None

    def cursor(self, order: _Order) -> duckdb.DuckDBPyConnection:
        """Return a connection for one statement: nothing of another statement is in it."""
        made_of = order.setup, order.files, order.memory
        if self._connection is None or self._made_of != made_of:
            self.close()
            self._connection, self._made_of, self.spill_folder = duckdb.connect(), made_of, order.spill_folder
            self._connection.register_filesystem(ReadFiles(LocalFileSystem(), only=order.files))
            for statement in (memory_limit(order.memory), *order.spilling, *order.setup, *_SETTINGS):
                self._connection.execute(statement)
        return self._connection.cursor()

    def close(self) -> None:
        """Release the memory."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def answer(order: _Order, lake: OpenLake, answers: IO[bytes]) -> _Answer:
    """Run the statement of an order, write its rows to *answers* as they are found, and return what became of it.

    So the process never holds all rows, which DuckDB would not count as memory.
    """
    try:
        with lake.cursor(order) as connection:
            if fault := _fault(connection, order.statement):
                return _Answer("bad", fault)
            reader = connection.sql(order.statement, params=order.parameters).to_arrow_reader(_ROWS_AT_ONCE)
            _write(_Answer("rows"), answers)
            rows = 0
            with pa.ipc.new_stream(answers, reader.schema) as stream:
                for batch in reader:
                    rows += len(batch)
                    if rows > order.rows:
                        return _Answer("bad", f"has more than {order.rows:,} rows: aggregate, LIMIT, or pass rows=")
                    stream.write_batch(batch)
            return _Answer("rows")
    except duckdb.PermissionException as error:
        return _Answer("forbidden", first_line(error))
    except duckdb.Error as error:
        if fills_spill_folder(error) or isinstance(error, duckdb.OutOfMemoryException):
            lake.close()
            return _Answer("spill" if fills_spill_folder(error) else "memory")
        return _Answer("bad", f"cannot be run: {first_line(error)}")


def _fault(connection: duckdb.DuckDBPyConnection, statement: str) -> str | None:
    """Return why a statement is not one SELECT, or None if it is. It may be explained."""
    explained = _EXPLAIN.match(statement)
    parsed = """
        SELECT tree, json_array_length(tree, '$.statements'), tree ->> 'error_type', tree ->> 'error_message'
        FROM (SELECT json_serialize_sql($statement) AS tree)"""
    asked = {"statement": statement[explained.end() :] if explained else statement}
    tree, count, error, text = connection.execute(parsed, asked).fetchall()[0]
    if error == "parser":
        return f"cannot be run: {text}"
    if count != 1 or not _READS.issuperset(_NODE.findall(tree)):
        return "must be one SELECT, and nothing in it may write"
    return None


def main() -> None:
    """Answer the orders at standard input until it ends, or the process whose id is the argument."""
    lake = OpenLake()
    threading.Thread(target=_end_with, args=(int(sys.argv[1]), lake), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what the engine prints is not an answer
        answers.write(b"ready\n")
        answers.flush()
        while True:
            try:
                order = _Order(*pickle.load(sys.stdin.buffer))  # noqa: S301  # of the process that started this one
            except EOFError:
                return
            _write(answer(order, lake, answers), answers)
            answers.flush()


def _write(status: _Answer, answers: IO[bytes]) -> None:
    answers.write(msgspec.json.encode(status) + b"\n")


def _end_with(parent: int, lake: OpenLake) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    remove_spilled(lake.spill_folder)
    os._exit(1)


if __name__ == "__main__":
    main()
