"""Damage to a state directory, and what a sandbox then makes of it.

A damaged store is opened as a start opens it. If everything that a start reads from it is as it was, answers are as
well, and only some of these trials go on. All others do: a sandbox is started, asked and told to process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx

from gamelens.errors import GamelensError
from gamelens.sandbox.storage.inbox import InboxBatch, lost_events, open_store, pending, scenario
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.manifest import FILES, MANIFEST_TABLES, LakePart, LakeUnavailable
from gamelens.sandbox.storage.store_check import check_store
from support.game_events import event
from support.kinds_of_state import deleted_files, lake_files, make_state, raise_layout
from support.random_worlds import play
from support.sandbox_stage import CONFIG, Stage

GENERATED = CONFIG.replace('api_key = "key-of-rival"\n', "")
"""Organisations of which one has a generated key, which is in `keys.json`."""

_LOG_HEADER, _FRAME_HEADER, _PAGE = 32, 24, 4096
_FULL_EVERY = 100  # of the trials whose store reads as it was, one in so many goes on
_FULL_EVERY_DAMAGE = 20  # the same of those of `try_database`
_MONTH = {"interval": "2026-10-01/2026-12-01", "granularity": "month"}
_WEEKS = {"interval": "2026-11-01/P28D", "granularity": "week"}
_DAYS = {"interval": "2026-11-01/P28D", "granularity": "day"}
_SERIES = {"query": {"type": "timeseries"}}
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("event_count", _DAYS | _SERIES),
    ("user_unique", _DAYS | _SERIES),
    ("user_unique", _WEEKS | _SERIES),
    ("user_unique", _MONTH | _SERIES),
    ("session_unique", _DAYS | _SERIES),
    ("new_users", _DAYS | _SERIES),
    ("revenue", _DAYS | {"query": {"type": "group", "dimension": "is_paying"}}),
    ("event_count", _DAYS | {"query": {"type": "group", "dimension": "ad_type"}}),
    ("event_count", _DAYS | {"query": {"type": "group", "dimension": "install_publisher"}}),
    ("ilrd_id_unique", _MONTH | _SERIES),
    ("retention_retro", {"interval": "2026-11-01/P28D", "split_by": "platform", "since_days_ago": 1}),
)
"""Questions that together read every table."""

Answers = list[tuple[int, bytes]]
Damage = Callable[[Path, Random], str]
"""A function that damages a state directory and says where."""


class Template(NamedTuple):
    """A state directory as a killed sandbox leaves it, and what is true of it.

    Attributes:
        state: the directory.
        batches: all acknowledged batches, by id.
        content: what a start reads from the store.
        before: answers before the pending events are processed.
        after: answers after that.
        tables: files of each table, relative to the directory.
        files: files of the newest version, relative to `lake/`.
    """

    state: Path
    batches: dict[int, InboxBatch]
    content: tuple[Any, ...]
    before: Answers
    after: Answers
    tables: dict[str, list[Path]]
    files: frozenset[str] = frozenset()


class Trial(NamedTuple):
    """What a sandbox made of one damage.

    Attributes:
        outcome: "starts", "refused" with a reason, or "crashed" without one.
        wrong: number of answers with status 200 that differ from the truth, though no batch is reported as missing.
        unreported: number of acknowledged batches that are gone, while nothing is reported.
        failed: number of answers with status 500.
        deleted: number of files that were in `lake/` and are neither there nor in quarantine.
        is_noticed: whether anything is reported, refused or not answered.
        is_healed: whether everything is right again after a run; None where that was not tried.
        heal_s: seconds from the start until then.
        detail: what went wrong, for the report.
    """

    outcome: str
    wrong: int = 0
    unreported: int = 0
    failed: int = 0
    is_noticed: bool = False
    is_healed: bool | None = None
    heal_s: float = 0.0
    detail: str = ""
    deleted: int = 0


def make_template(folder: Path, *, seed: int = 5, kind: str = "collected", batches: int = 8) -> Template:
    """Play events of two organisations, process most of them, and copy the state while it runs.

    A state of the *kind* "mixed" has imported events as well, and one of "imported" no others.
    """
    folder.mkdir(parents=True)
    if kind != "collected":
        make_state(folder / "running", "imported")
    stage = Stage(folder / "running", tenants=GENERATED)
    running, random = stage.sandbox.options.state, Random(seed)
    for _ in range(2 if kind != "imported" else 0):
        play(stage, random, batches=batches)
    stage.sandbox.store.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # only what follows is in the log
    stage.sandbox.set_scenario("demo")
    for number in range(40 if kind != "imported" else 0):
        stage.submit([event(user_id=f"waiting{number}", x="y" * random.randrange(2000))])
    state = Path(shutil.copytree(running, folder / "state"))
    before = ask_all(stage)
    tables = {
        kind: [part.path.relative_to(running) for part in parts]
        for kind, parts in stage.sandbox.lake.snapshot("acme").tables.items()
    }
    stage.process()
    after = ask_all(stage)
    stage.sandbox.close()
    assert all(status == 200 for status, _ in before + after)
    assert (before != after) == (kind != "imported")
    read = Path(shutil.copytree(state, folder / "read"))
    content, is_noticed = read_content(read)
    assert not is_noticed
    live = frozenset(str(file.path) for file in content[1][1])
    return Template(state, content[0], content, before, after, tables, live)


def without_log(template: Template, folder: Path) -> Template:
    """Return *template* with all of the store in `gamelens.db`, as a sandbox that was stopped leaves it."""
    state = Path(shutil.copytree(template.state, folder / "state"))
    with contextlib.closing(sqlite3.connect(state / "gamelens.db")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return template._replace(state=state)


def read_content(state: Path) -> tuple[tuple[Any, ...], bool]:
    """Check the store of *state* as a start does, and return all that it then reads, and whether damage was noticed.

    It reads batches, runs, files and organisations of the lake, what is lost of it, and the scenario.
    """
    numbers = (state / "gamelens.acknowledged").read_bytes()
    check_store(state / "gamelens.db")
    is_noticed = (state / "quarantine").exists() or (state / "gamelens.acknowledged").read_bytes() != numbers
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        lake = Lake(state / "lake", store)
        is_noticed |= any(table.exists(store) and table.damaged_rows(store) for table in MANIFEST_TABLES)
        lake.recover()
        batches = {batch.id: batch for batch in pending(store, after=0, up_to=2**62)}
        lost = lake.lost_because, lost_events(store)
        files = [part for part in FILES.read(store) if part.removed is None]
        return (batches, (lake.last_run(), files), lake.statuses(), scenario(store), lost), is_noticed


def ask_all(stage: Stage) -> Answers:
    """Return status and body of the answer to each question."""
    return ask(stage, *range(len(QUESTIONS)))


def ask(stage: Stage, *numbers: int) -> Answers:
    """Return status and body of the answers to the questions called *numbers*, over one event loop."""
    headers = {"X-API-Key": "key-of-acme"}

    async def send() -> Answers:
        transport = httpx.ASGITransport(stage.metrics_app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            found = []
            for metric, body in (QUESTIONS[number] for number in numbers):
                answer = await client.post(f"/metrics/v1/metrics/{metric}", json=body, headers=headers)
                found.append((answer.status_code, answer.content))
            return found

    return asyncio.run(send())


@contextlib.contextmanager
def copied(template: Template, folder: Path, *, with_lake: bool = True) -> Iterator[Path]:
    """Yield a copy of the template's state, in which the files of the lake are links: replace them, do not write."""
    state = folder / "state"

    def copy(source: str, target: str) -> str:
        if "lake" in Path(source).relative_to(template.state).parts:
            os.link(source, target)
        else:
            shutil.copyfile(source, target)
        return target

    ignored = None if with_lake else shutil.ignore_patterns("lake", "spare")
    shutil.copytree(template.state, state, copy_function=copy, symlinks=True, ignore=ignored)
    try:
        yield state
    finally:
        shutil.rmtree(state)


def flip_log_header(path: Path, random: Random) -> str:
    """Flip one bit in the header of the write-ahead log *path* or of one of its frames."""
    frames = (path.stat().st_size - _LOG_HEADER) // (_FRAME_HEADER + _PAGE)
    if random.random() < 0.5:
        return flip(path, random, place=random.randrange(_LOG_HEADER))
    frame = _LOG_HEADER + random.randrange(frames) * (_FRAME_HEADER + _PAGE)
    return flip(path, random, place=frame + random.randrange(_FRAME_HEADER))


def flip(path: Path, random: Random, *, place: int | None = None) -> str:
    """Put a file with one other bit in the place of *path*, and return which.

    The bit is at *place* or anywhere.
    """
    content = bytearray(path.read_bytes())
    place, bit = random.randrange(len(content)) if place is None else place, random.randrange(8)
    content[place] ^= 1 << bit
    path.unlink()
    path.write_bytes(content)
    return f"{path.name}: bit {bit} of byte {place}"


def flip_manifest(state: Path, random: Random) -> str:
    """Change one bit of one value in the rows of the manifest, and return where."""
    with contextlib.closing(sqlite3.connect(state / "gamelens.db")) as store:
        table = random.choice(["files", "files", "files", "runs"])
        rows = store.execute(f"SELECT rowid, * FROM {table}").fetchall()
        names = [column for _, column, *_ in store.execute(f"PRAGMA table_info({table})")]
        row = random.choice(rows)
        name = random.choice([name for name, value in zip(names, row[1:], strict=True) if value is not None])
        value = row[1 + names.index(name)]
        store.execute(f"UPDATE OR REPLACE {table} SET {name} = ? WHERE rowid = ?", (_flipped(value, random), row[0]))
        store.commit()
        return f"{table}.{name}: {value!r} of row {row[0]}"


def _flipped(value: int | str, random: Random) -> int | str:
    if isinstance(value, int):
        return value ^ 1 << random.randrange(max(4, value.bit_length()))
    place = random.randrange(len(value))
    return value[:place] + chr(ord(value[place]) ^ 1 << random.randrange(5)) + value[place + 1 :]


def try_store(template: Template, folder: Path, damage: Damage, *, count: int) -> Iterator[Trial]:
    """Yield what a start makes of each of *count* damages to the store or its log."""
    for seed in range(count):
        with copied(template, folder, with_lake=False) as state:
            where, began = damage(state, Random(seed)), time.monotonic()
            try:
                content, is_noticed = read_content(state)
            except Exception:  # the sandbox below says what it makes of it
                content, is_noticed = (), False
            took_s = time.monotonic() - began
        if content == template.content and seed % _FULL_EVERY:
            yield Trial("starts", is_noticed=is_noticed, is_healed=is_noticed or None, heal_s=took_s, detail=where)
            continue
        with copied(template, folder) as state:
            damage(state, Random(seed))
            yield try_start(template, state, where)


def try_start(template: Template, state: Path, where: str) -> Trial:
    """Start a sandbox on the damaged *state*, ask, read the inbox, process and ask again."""
    files = set(template.files) & lake_files(state)
    trial = _try_start(template, state, where)
    return trial._replace(deleted=len(deleted_files(state, files)))


def _try_start(template: Template, state: Path, where: str) -> Trial:
    began = time.monotonic()
    try:
        stage = Stage(state, tenants=None)
    except GamelensError as error:
        return Trial("refused", is_noticed=True, detail=f"{where}: {error}")
    except Exception as error:  # the campaign counts what it is
        return Trial("crashed", detail=f"{where}: {type(error).__name__}: {error}")
    try:
        return _examine(template, stage, where, began)
    finally:
        stage.sandbox.close()


def _examine(template: Template, stage: Stage, where: str, began: float) -> Trial:
    first = ask_all(stage)
    for name in stage.sandbox.lake.organisations():
        stage.sandbox.health.check_all(stage.sandbox.lake.snapshot(name), pause=0)
    missing = _missing(template, stage)
    reported = report_of(stage)
    failures = ""
    try:
        stage.process()
    except GamelensError as error:
        failures = str(error)
    except Exception as error:  # the campaign counts what it is
        failures = f"{type(error).__name__}: {error}"
    second = ask_all(stage)
    reported |= report_of(stage)
    wrong = count_wrong(first, template.before)
    if "batches" not in reported:  # without these batches other answers are right
        wrong += count_wrong(second, template.after)
    statuses = Counter(status for status, _ in first + second)
    return Trial(
        "starts",
        wrong=wrong,
        unreported=len(missing) if "batches" not in reported else 0,
        failed=statuses[500],
        is_noticed=bool(reported or failures or (stage.sandbox.options.state / "quarantine").exists())
        or statuses.keys() != {200},
        is_healed=second == template.after and not missing,
        heal_s=time.monotonic() - began,
        detail=f"{where}: {dict(statuses)}, {len(missing)} batches missing, {failures or 'processed'}",
    )


def _missing(template: Template, stage: Stage) -> set[int]:
    stored = {batch.id: batch for batch in pending(stage.sandbox.store, after=0, up_to=2**62)}
    return {number for number, batch in template.batches.items() if stored.get(number) != batch}


def report_of(stage: Stage) -> set[str]:
    """Return what the sandbox reports as wrong with its state: batches, the lake, a failing run, the disk."""
    summary = stage.sandbox.summary()
    found = {
        "batches": summary["damaged"]["batches"] or summary["damaged"]["kept_in"],
        "lake": summary["damaged"]["lake"],
        "failing": summary["failing"],
        "disk": stage.sandbox.unhealthy_because(),
    }
    return {name for name, is_reported in found.items() if is_reported}


def count_wrong(found: Answers, true: Answers) -> int:
    """Return how many answers with status 200 are not the true ones."""
    return sum(answer[0] == 200 and answer != truth for answer, truth in zip(found, true, strict=True))


def try_tables(template: Template, folder: Path, table: str, *, count: int) -> Iterator[Trial]:
    """Yield what a sandbox makes of each of *count* flipped bits in the files of one table.

    It serves all the while, with each file as if it were new to it. Some flips are tried by a start and a run as well.
    """
    files = template.tables[table]
    random = Random(table)
    with copied(template, folder) as state:
        stage = Stage(state, tenants=None)
        with contextlib.closing(stage.sandbox):
            parts = stage.sandbox.lake.snapshot("acme").parts(table)
            readers = _readers(stage, [part.path for part in parts])
            for _ in range(count):
                yield _try_flip(template, stage, random.choice(parts), readers, random)
    for seed in range(max(1, count // 200)):
        with copied(template, folder) as state:
            yield try_start(template, state, flip(state / files[seed % len(files)], Random(seed)))


def _try_flip(template: Template, stage: Stage, part: LakePart, readers: list[int], random: Random) -> Trial:
    whole = part.path.read_bytes()
    where = flip(part.path, random)
    numbers = [*random.sample(readers, min(1, len(readers))), random.randrange(len(QUESTIONS))]
    answers = ask(stage, *numbers)
    is_noticed = bool(stage.sandbox.cannot_answer()) or not _is_whole(stage, part)  # no question reads a keyed run
    part.path.unlink()
    part.path.write_bytes(whole)
    assert _is_whole(stage, part)
    return Trial(
        "starts",
        wrong=count_wrong(answers, [template.before[number] for number in numbers]),
        unreported=not is_noticed,
        failed=sum(status == 500 for status, _ in answers),
        is_noticed=is_noticed,
        detail=f"{where}: {[status for status, _ in answers]}",
    )


def _is_whole(stage: Stage, part: LakePart) -> bool:
    try:
        stage.sandbox.health.require("acme", [part])
    except LakeUnavailable:
        return False
    return True


def _readers(stage: Stage, paths: list[Path]) -> list[int]:
    """Return the numbers of the questions that read one of *paths*."""
    for path in paths:
        path.rename(path.with_suffix(".away"))
    refused = [number for number, (status, _) in enumerate(ask_all(stage)) if status == 503]
    for path in paths:
        path.with_suffix(".away").rename(path)
    stage.sandbox.health.check_all(stage.sandbox.lake.snapshot("acme"), pause=0)
    assert not stage.sandbox.cannot_answer()
    return refused


def database_damages(template: Template, other: Path, *, seed: int = 7) -> Iterator[tuple[str, Damage]]:
    """Yield damages to a store without a log: each header byte twice, each page, tables, and the whole file.

    *other* is the store of another state directory.
    """
    random = Random(seed)
    pages = (template.state / "gamelens.db").stat().st_size // _PAGE

    def changed(place: int, content: bytes) -> Damage:
        def change(state: Path, _: Random) -> str:
            path = state / "gamelens.db"
            whole = bytearray(path.read_bytes())
            whole[place : place + len(content)] = content
            path.write_bytes(whole)
            return f"bytes {place} to {place + len(content)}"

        return change

    whole = (template.state / "gamelens.db").read_bytes()
    for place in range(108):
        yield "bit of a header byte", changed(place, bytes([whole[place] ^ 1 << random.randrange(8)]))
        yield "header byte", changed(place, bytes([whole[place] ^ random.randrange(1, 256)]))
    for page in range(pages):
        yield "page of zeros", changed(page * _PAGE, bytes(_PAGE))
        yield "page of noise", changed(page * _PAGE, random.randbytes(_PAGE))
        place = page * _PAGE + random.randrange(_PAGE)
        yield "byte of a page", changed(place, bytes([whole[place] ^ random.randrange(1, 256)]))
    for length in (0, 1, 50, 100, _PAGE, *(random.randrange(len(whole)) for _ in range(10))):
        yield "cut", partial(_cut, length=length)
    yield "missing: gamelens.db", partial(_remove, names=["gamelens.db"])
    yield "another state's store", partial(_swap, other=other)
    yield "missing: gamelens.lake", partial(_remove, names=["gamelens.lake"])
    for table in ("runs", "files", "organisations"):
        for statement in ("DELETE FROM {0}", "DROP TABLE {0}", "ALTER TABLE {0} RENAME TO {0}_other"):
            yield f"table {table}", partial(_execute, statements=[statement.format(table)])
    yield "other layout", _raise_layout


def log_damages() -> Iterator[tuple[str, Damage]]:
    """Yield damages to log, shared memory and record of a sandbox that was killed."""
    names = [f"gamelens.db{suffix}" for suffix in ("", "-wal", "-shm")]
    for missing in (*([name] for name in names), names):
        yield f"missing: {', '.join(missing)}", partial(_remove, names=missing)
    log = "gamelens.db-wal"
    for _ in range(20):
        yield "log cut", _cut_log
        yield "bit of the log", lambda state, random: flip(state / log, random)
        yield "bit of the shared memory", lambda state, random: flip(state / "gamelens.db-shm", random)
        yield "bit of the record", lambda state, random: flip(state / "gamelens.lake", random)


def _cut(state: Path, _: Random, *, length: int, name: str = "gamelens.db") -> str:
    content = (state / name).read_bytes()[:length]
    (state / name).write_bytes(content)
    return f"{name} cut to {length} bytes"


def _cut_log(state: Path, random: Random) -> str:
    log = state / "gamelens.db-wal"
    return _cut(state, random, length=random.randrange(log.stat().st_size), name=log.name)


def _remove(state: Path, _: Random, *, names: Sequence[str]) -> str:
    for name in names:
        (state / name).unlink(missing_ok=True)
    return f"missing: {', '.join(names)}"


def _swap(state: Path, _: Random, *, other: Path) -> str:
    shutil.copyfile(other, state / "gamelens.db")
    return "another state's store"


def _execute(state: Path, _: Random, *, statements: Sequence[str]) -> str:
    with contextlib.closing(sqlite3.connect(state / "gamelens.db", isolation_level=None)) as store:
        for statement in statements:
            store.execute(statement)
    return "; ".join(statements)


def _raise_layout(state: Path, _: Random) -> str:
    raise_layout(state / "gamelens.db")
    return "another layout"


def try_database(template: Template, folder: Path, damages: list[Damage]) -> Iterator[Trial]:
    """Yield what a start makes of each of *damages*, each on a copy of its own.

    Where the start finds the whole store as it was, only some go on.
    """
    for seed, damage in enumerate(damages):
        with copied(template, folder) as state:
            where = damage(state, Random(seed))
            try:
                content, is_noticed = read_content(state)
            except Exception:  # the sandbox below says what it makes of it
                content, is_noticed = (), False
            deleted = len(deleted_files(state, set(template.files)))
        if content == template.content and (seed + 1) % _FULL_EVERY_DAMAGE:
            yield Trial("starts", is_noticed=is_noticed, deleted=deleted, detail=where)
            continue
        with copied(template, folder) as state:
            damage(state, Random(seed))
            yield try_start(template, state, where)
