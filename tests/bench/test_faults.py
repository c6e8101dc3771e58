"""Fault campaign: damage of every kind, and what the sandbox makes of it.

Run by `make bench`. It prints, for each kind of fault, how often the sandbox starts, how many wrong answers it gives
and how many acknowledged events are gone without a report, both of which must be 0, and how often and how fast it
heals.
FAULT_FLIPS bits are flipped in each kind of file (1000 for a whole campaign), FAULT_KILLS processes are killed and as
many stopped (500). Kills over HTTP are in `tests/journey/test_repeated_crashes.py`, kills of large runs at each write
in `tests/sandbox/test_killed_runs.py`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest

from gamelens.errors import GamelensError, Refused
from gamelens.local.sandbox_info import read_sandbox_info
from gamelens.sandbox.state.tenants import describe, load_tenants
from support.fault_campaign import (
    Damage,
    Template,
    Trial,
    ask_all,
    copied,
    count_wrong,
    database_damages,
    flip,
    flip_log_header,
    flip_manifest,
    log_damages,
    make_template,
    report_of,
    try_database,
    try_start,
    try_store,
    try_tables,
    without_log,
)
from support.game_events import event
from support.killed_stage import lost_and_repeated, play_rounds
from support.kinds_of_state import KINDS, make_state
from support.sandbox_stage import Stage, event_counts

FLIPS = int(os.environ.get("FAULT_FLIPS", "60"))
KILLS = int(os.environ.get("FAULT_KILLS", "20"))
FEW = max(5, FLIPS // 20)
"""Number of trials of a kind that takes long."""
SHOWN = 5
MIB = 1 << 20
HEADER = (
    f"{'fault':<30}{'tried':>7}{'starts':>8}{'noticed':>9}{'wrong':>7}"
    f"{'unreported':>12}{'deleted':>9}{'500s':>6}{'crashed':>9}{'healed':>11}{'s':>7}"
)
RECORDS = [*range(64), *range(4096, 4160)]
"""Bytes of `gamelens.acknowledged` that are not empty."""
STORE: dict[str, Damage] = {
    "log": lambda state, random: flip(state / "gamelens.db-wal", random),
    "headers of the log": lambda state, random: flip_log_header(state / "gamelens.db-wal", random),
    "database": lambda state, random: flip(state / "gamelens.db", random),
    "rows of the manifest": flip_manifest,
    "acknowledged batches": lambda state, random: flip(
        state / "gamelens.acknowledged", random, place=random.choice(RECORDS)
    ),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Make one state directory of a killed sandbox."""
    return make_template(tmp_path_factory.mktemp("faults") / "template")


@pytest.fixture(scope="module", autouse=True)
def header() -> None:
    """Print the head of the table."""
    print(f"\n{HEADER}", flush=True)


def report(fault: str, trials: Sequence[Trial], took_s: float) -> None:
    """Print the line of *fault*, and the first trials that went wrong."""
    tried_to_heal = [trial for trial in trials if trial.is_noticed and trial.is_healed is not None]
    healed = [trial for trial in tried_to_heal if trial.is_healed]
    heal_s = max((trial.heal_s for trial in healed), default=0.0)
    crashed = sum(trial.outcome == "crashed" for trial in trials)
    print(
        f"{fault:<30}{len(trials):>7,}{sum(trial.outcome == 'starts' for trial in trials):>8,}"
        f"{sum(trial.is_noticed for trial in trials):>9,}{sum(trial.wrong for trial in trials):>7}"
        f"{sum(trial.unreported for trial in trials):>12}{sum(trial.deleted for trial in trials):>9}"
        f"{sum(trial.failed for trial in trials):>6}{crashed:>9}"
        f"{f'{len(healed):,}/{len(tried_to_heal):,}':>11}{heal_s:>7.2f}   {len(trials) / took_s:.1f} a second",
        flush=True,
    )
    bad = [trial for trial in trials if _is_bad(trial)]
    for trial in bad[:SHOWN]:
        print(
            f"    {trial.outcome}, {trial.wrong} wrong, {trial.unreported} unreported, {trial.deleted} deleted: "
            f"{trial.detail[:300]}"
        )


def _is_bad(trial: Trial) -> bool:
    return bool(trial.wrong or trial.unreported or trial.deleted or trial.failed or trial.outcome == "crashed")


def campaign(fault: str, trials: Iterator[Trial]) -> None:
    """Run *trials* and report them.

    No answer may be wrong or a 500, no loss unreported, and no start may end without a reason.
    """
    began = time.monotonic()
    found = list(trials)
    report(fault, found, time.monotonic() - began)
    assert [trial.detail for trial in found if _is_bad(trial)] == []


@pytest.mark.parametrize("fault", STORE)
def test_flips_in_the_store(template: Template, tmp_path: Path, fault: str) -> None:
    """A flipped bit in the store, its log or what was acknowledged gives no wrong answer and no unreported loss."""
    campaign(fault, try_store(template, tmp_path, STORE[fault], count=FLIPS))


@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_the_database(tmp_path: Path, kind: str) -> None:
    """Each header byte, page, file and table of the store is damaged: no answer is wrong, and no file is deleted.

    Header and pages are damaged in a store whose log is empty, where SQLite reads them.
    """
    killed = make_template(tmp_path / "template", kind=kind, batches=1)
    stopped = without_log(killed, tmp_path / "without log")
    other = make_state(tmp_path / "other" / "state", kind)
    found, began = [], time.monotonic()
    for template, damages in (
        (stopped, database_damages(stopped, other / "gamelens.db")),
        (killed, log_damages()),
    ):
        by_fault: dict[str, list[Damage]] = {}
        for fault, damage in damages:
            by_fault.setdefault(fault, []).append(damage)
        for fault, of_fault in by_fault.items():
            fault_began = time.monotonic()
            trials = list(try_database(template, tmp_path, of_fault))
            report(f"{kind}: {fault}"[:30], trials, time.monotonic() - fault_began)
            found += trials
    report(f"{kind}: all", found, time.monotonic() - began)
    assert [trial.detail for trial in found if _is_bad(trial)] == []


def test_flips_in_each_table(template: Template, tmp_path: Path) -> None:
    """A flipped bit in a file of any table or keyed run gives no wrong answer."""
    for table in sorted(template.tables):
        campaign(f"table {table}", try_tables(template, tmp_path, table, count=FLIPS))


@pytest.mark.parametrize("name", ["tenants.json", "keys.json"])
def test_flips_in_organisations_and_keys(template: Template, tmp_path: Path, name: str) -> None:
    """A flipped bit changes no organisation, game or key. Some sandboxes are started and asked."""
    with copied(template, tmp_path, with_lake=False) as state:
        truth = load_tenants(state, None)[0].organisations, load_tenants(state, None)[1]

    def trials() -> Iterator[Trial]:
        for seed in range(FLIPS):
            with copied(template, tmp_path, with_lake=False) as state:
                where, began = flip(state / name, Random(seed)), time.monotonic()
                try:
                    tenants, keys = load_tenants(state, None)
                except Refused as error:
                    yield Trial("refused", is_noticed=True, is_healed=False, detail=f"{where}: {error}")
                    continue
                is_right = (tenants.organisations, keys) == truth
                yield Trial("starts", not is_right, 0, 0, True, is_right, time.monotonic() - began, where)
        for seed in range(FEW):
            with copied(template, tmp_path) as state:
                yield try_start(template, state, flip(state / name, Random(seed)))

    campaign(name, trials())


def test_flips_in_the_ready_file(template: Template, tmp_path: Path) -> None:
    """A flipped bit in a ready file is refused with the reason, or changes one value. A start ignores it."""
    with copied(template, tmp_path, with_lake=False) as state:
        organisations = describe(*load_tenants(state, None))
    ready = {
        "collector_url": "http://127.0.0.1:1",
        "metrics_url": "http://127.0.0.1:2",
        "console_url": "http://127.0.0.1:3/t",
    }

    def trials() -> Iterator[Trial]:
        for seed in range(FLIPS + FEW):
            with copied(template, tmp_path, with_lake=seed < FEW) as state:
                (state / "ready.json").write_bytes(
                    msgspec.json.encode({**ready, "pid": 1, "organisations": organisations})
                )
                where = flip(state / "ready.json", Random(seed))
                if seed < FEW:
                    yield try_start(template, state, where)
                    continue
                try:
                    read_sandbox_info(state / "ready.json")
                except GamelensError:
                    yield Trial("starts", is_noticed=True, detail=where)
                except Exception as error:  # the campaign counts what it is
                    yield Trial("crashed", detail=f"{where}: {error!r}")
                else:
                    yield Trial("starts", detail=where)

    campaign("ready file", trials())


def test_a_full_disk(template: Template, tmp_path: Path) -> None:
    """On a disk with little or no room the sandbox starts and answers, and takes nothing that it cannot keep.

    Without the room that an earlier start kept, it refuses the start with the reason.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("a small disk needs the right to mount")

    def trials() -> Iterator[Trial]:
        for seed in range(2 * FEW):
            random = Random(seed)
            state = Path(shutil.copytree(template.state, disk / "state"))
            if random.random() < 0.2:
                (state / "spare").unlink()
            room = random.choice((0, 0, random.randrange(64 << 10), random.randrange(3 * MIB)))
            (disk / "others").write_bytes(bytes(max(0, shutil.disk_usage(disk).free - room)))
            yield _try_full(template, state, disk / "others", f"{room} bytes of room")
            shutil.rmtree(state)

    try:
        campaign("full disk", trials())
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def _try_full(template: Template, state: Path, others: Path, where: str) -> Trial:
    """Start on a full disk, ask, submit and process. Then there is room again: all must be right."""
    began, wrong, failed, is_accepted, truth = time.monotonic(), 0, 0, False, template
    try:
        stage = Stage(state, tenants=None, keep_free=2)
    except Refused as error:
        outcome, where = "refused", f"{where}: {error}"
    except Exception as error:  # the campaign counts what it is
        return Trial("crashed", detail=f"{where}: {error!r}")
    else:
        outcome = "starts"
        with contextlib.closing(stage.sandbox):
            answers = ask_all(stage)
            is_accepted = stage.submit([event(user_id="late", client_ts=None)]).status_code == 200
            with contextlib.suppress(Refused):
                stage.process()
            if not event_counts(stage)["pending"]:
                truth = template._replace(before=template.after)
            wrong = count_wrong(answers, template.before)
            failed = sum(status == 500 for status, _ in answers + ask_all(stage))
    others.unlink()
    healed = try_start(truth, state, where)
    return healed._replace(
        outcome=outcome if healed.outcome == "starts" else healed.outcome,
        wrong=wrong + (0 if is_accepted else healed.wrong),
        failed=failed + healed.failed,
        is_noticed=outcome == "refused" or not is_accepted,
        is_healed=is_accepted or healed.is_healed,
        heal_s=time.monotonic() - began,
    )


def test_a_state_that_cannot_be_written(template: Template, tmp_path: Path) -> None:
    """On a read-only disk the sandbox refuses to start with the reason, and nothing is changed."""
    state = Path(shutil.copytree(template.state, tmp_path / "state"))
    for command in (["--bind", state, state], ["-o", "remount,ro,bind", state]):
        if subprocess.run(["mount", *map(str, command)], capture_output=True).returncode:
            pytest.skip("a read-only disk needs the right to mount")
    began = time.monotonic()
    refused = try_start(template, state, "read-only")
    subprocess.run(["umount", str(state)], check=True)
    healed = try_start(template, state, "writable again")
    trial = healed._replace(outcome=refused.outcome, is_noticed=refused.is_noticed, heal_s=time.monotonic() - began)
    campaign("read-only state", iter([trial]))


def test_clock_jumps(template: Template, tmp_path: Path) -> None:
    """A clock that jumps by hours or years, forwards and backwards, loses no event."""
    state = Path(shutil.copytree(template.state, tmp_path / "state"))
    random = Random(3)

    def trials() -> Iterator[Trial]:
        stage = Stage(state, tenants=None)
        with contextlib.closing(stage.sandbox):
            for _ in range(2 * FEW):
                stage.clock.advance(timedelta(hours=random.choice((-9000, -700, -25, -1, 1, 25, 700, 9000))))
                before = event_counts(stage)["processed"]
                waiting = event_counts(stage)["pending"]
                status = stage.submit([event(user_id=f"{random.random()}", client_ts=None)]).status_code
                stage.process()
                lost = before + waiting + 1 - event_counts(stage)["processed"]
                wrong = sum(answer != 200 for answer, _ in ask_all(stage)) + (status != 200)
                yield Trial("starts", wrong, lost, is_noticed=bool(report_of(stage)))

    campaign("clock jumps", trials())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_processes(tmp_path: Path, number: signal.Signals) -> None:
    """A sandbox process that is killed, or stopped for a moment, keeps what it has acknowledged, once."""
    state = tmp_path / "state"

    def trials() -> Iterator[Trial]:
        acknowledged: set[str] = set()
        slowest_s = 0.0
        for played in play_rounds(state, number, rounds=KILLS):
            acknowledged.update(played.acknowledged)
            slowest_s = max(slowest_s, played.start_s or 0.0)
            yield Trial("starts", detail=f"{len(played.acknowledged)} batches")
        lost, repeated = lost_and_repeated(state, acknowledged)
        detail = f"{lost} of {len(acknowledged)} batches lost, {repeated} events repeated"
        print(f"    {len(acknowledged):,} acknowledged batches, slowest start {slowest_s:.2f} s")
        yield Trial("starts", repeated, lost, is_noticed=True, is_healed=not lost, heal_s=slowest_s, detail=detail)

    campaign(f"processes {number.name}", trials())
