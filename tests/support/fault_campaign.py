"""Damage to a state directory, and what a sandbox then does with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx

from gamelens.errors import GamelensError
from gamelens.sandbox.storage.inbox import pending
from support.game_events import event
from support.random_worlds import play
from support.sandbox_stage import Stage

DAMAGED = ("gamelens.db", "gamelens.db-wal", "gamelens.db-shm", "ready.json", "keys.json", "tenants.json")
"""Files that are copied for each trial. All others are links, because nothing writes into them."""

_LOG_HEADER, _FRAME_HEADER, _PAGE = 32, 24, 4096
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


class Template(NamedTuple):
    """A state directory as a killed sandbox leaves it, and what is true of it.

    Attributes:
        state: the directory.
        batches: the bodies of all acknowledged batches, by id.
        before: answers before the pending events are processed.
        after: answers after that.
        tables: files of each table, relative to the directory.
    """

    state: Path
    batches: dict[int, bytes]
    before: Answers
    after: Answers
    tables: dict[str, list[Path]]


class Trial(NamedTuple):
    """What a sandbox made of one damage.

    Attributes:
        outcome: "starts", "refused" with a reason, or "crashed" without one.
        wrong: number of answers with status 200 that differ from the truth, while nothing is reported.
        unreported: number of acknowledged batches that are gone, while nothing is reported.
        failed: number of answers with status 500.
        is_noticed: whether anything is reported or not answered.
        is_healed: whether everything is right again after a run.
        heal_s: seconds from the start until then.
        detail: what went wrong, for the report.
    """

    outcome: str
    wrong: int = 0
    unreported: int = 0
    failed: int = 0
    is_noticed: bool = False
    is_healed: bool = True
    heal_s: float = 0.0
    detail: str = ""


def make_template(folder: Path, *, seed: int = 5) -> Template:
    """Play events of two organisations, process most of them, and copy the state while it runs."""
    folder.mkdir(parents=True)
    stage = Stage(folder / "running")
    random = Random(seed)
    for _ in range(2):
        play(stage, random, batches=8)
    stage.sandbox.store.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # only what follows is in the log
    for number in range(40):
        stage.submit([event(user_id=f"waiting{number}", x="y" * random.randrange(2000))])
    state = folder / "state"
    shutil.copytree(stage.sandbox.options.state, state)
    (state / "ready.json").write_bytes(b'{"collector_url": "http://127.0.0.1:1", "pid": 1}')
    batches = stored_batches(stage.sandbox.store)
    before = ask_all(stage)
    tables = {
        kind: [part.path.relative_to(stage.sandbox.options.state) for part in parts]
        for kind, parts in stage.sandbox.lake.snapshot("acme").tables.items()
    }
    stage.process()
    after = ask_all(stage)
    stage.sandbox.close()
    assert all(status == 200 for status, _ in before + after)
    assert before != after
    return Template(state, batches, before, after, tables)


def stored_batches(store: sqlite3.Connection) -> dict[int, bytes]:
    """Return the bodies of all batches that can be read, by id."""
    return {batch.id: batch.body for batch in pending(store, after=0, up_to=2**62)}


def ask_all(stage: Stage) -> Answers:
    """Return status and body of the answer to each question, over one event loop."""
    headers = {"X-API-Key": "key-of-acme"}

    async def ask() -> Answers:
        transport = httpx.ASGITransport(stage.metrics_app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            found = []
            for metric, body in QUESTIONS:
                answer = await client.post(f"/metrics/v1/metrics/{metric}", json=body, headers=headers)
                found.append((answer.status_code, answer.content))
            return found

    return asyncio.run(ask())


@contextlib.contextmanager
def copied(template: Template, folder: Path, *, whole: Path | None = None) -> Iterator[Path]:
    """Yield a copy of the template's state, in which *whole* is a copy of its own as well and no link."""
    state = folder / "state"
    own = {Path(name) for name in DAMAGED} | ({whole} if whole else set())

    def copy(source: str, target: str) -> str:
        if Path(source).relative_to(template.state) in own:
            shutil.copyfile(source, target)
        else:
            os.link(source, target)
        return target

    shutil.copytree(template.state, state, copy_function=copy, symlinks=True)
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
    """Flip one bit of the file *path*, at *place* or anywhere, and return which."""
    place, bit = random.randrange(path.stat().st_size) if place is None else place, random.randrange(8)
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))
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


def try_damage(template: Template, state: Path, where: str, *, with_run: bool) -> Trial:
    """Start a sandbox on the damaged *state*, ask, read the inbox, and process.

    Args:
        template: the state before the damage.
        state: the damaged state.
        where: what was damaged.
        with_run: whether to process even if nothing has been noticed.
    """
    began = time.monotonic()
    try:
        stage = Stage(state)
    except GamelensError as error:
        return Trial("refused", is_noticed=True, is_healed=False, detail=f"{where}: {error}")
    except Exception as error:  # the campaign counts what it is
        return Trial("crashed", is_healed=False, detail=f"{where}: {type(error).__name__}: {error}")
    try:
        return _examine(template, stage, where, began, with_run=with_run)
    finally:
        stage.sandbox.close()


def _examine(template: Template, stage: Stage, where: str, began: float, *, with_run: bool) -> Trial:
    first = ask_all(stage)
    missing = _missing(template, stage)
    notices = _is_reported(stage)
    wrong = _wrong(first, template.before) if not notices else 0
    is_right = first == template.before and not missing
    if is_right and not with_run and not notices:
        return Trial("starts")
    failures = ""
    try:
        stage.process()
    except GamelensError as error:
        failures = str(error)
    except Exception as error:  # the campaign counts what it is
        failures = f"{type(error).__name__}: {error}"
    second = ask_all(stage)
    notices = notices or _is_reported(stage) or bool(failures)
    wrong += _wrong(second, template.after) if not notices else 0
    statuses = Counter(status for status, _ in first + second)
    return Trial(
        "starts",
        wrong=wrong,
        unreported=len(missing) if not notices else 0,
        failed=statuses[500],
        is_noticed=notices or set(statuses) != {200},
        is_healed=second == template.after and not missing,
        heal_s=time.monotonic() - began,
        detail=f"{where}: {dict(statuses)}, {len(missing)} batches missing, {failures or 'processed'}",
    )


def _missing(template: Template, stage: Stage) -> set[int]:
    try:
        stored = stored_batches(stage.sandbox.store)
    except sqlite3.DatabaseError:
        stored = {}
    return {number for number, body in template.batches.items() if stored.get(number) != body}


def _is_reported(stage: Stage) -> bool:
    """Return whether the sandbox says that something is wrong with its state."""
    try:
        summary = stage.sandbox.summary()
    except Exception:  # a summary that fails reports nothing
        return False
    return bool(any(summary["damaged"].values()) or summary["failing"] or stage.sandbox.unhealthy_because())


def _wrong(found: Answers, true: Answers) -> int:
    return sum(status == 200 and (status, body) != truth for (status, body), truth in zip(found, true, strict=True))


def run_trials(
    template: Template,
    folder: Path,
    damage: Callable[[Path, Random], str],
    *,
    count: int,
    whole: Callable[[Random], Path] | None = None,
    with_run: bool = False,
) -> Iterator[Trial]:
    """Yield what a sandbox makes of each of *count* random damages.

    Args:
        template: the state to damage.
        folder: where the copies go.
        damage: damages a file of a state, and says where.
        count: number of damages.
        whole: chooses the file to damage, relative to the state; None for a damage of the state.
        with_run: whether to process even if nothing has been noticed.
    """
    for seed in range(count):
        random = Random(seed)
        file = whole(random) if whole else None
        with copied(template, folder, whole=file) as state:
            where = damage(state / file if file else state, random)
            yield try_damage(template, state, where, with_run=with_run)
