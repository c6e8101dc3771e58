"""Fault campaign: damage of every kind, and what the sandbox makes of it.

Run by `make bench`. It prints, for each kind of fault, how often the sandbox starts, how many wrong answers it gives
and how many acknowledged events are gone without a report, both of which must be 0, and how often and how fast it
heals.
FAULT_FLIPS bits are flipped in each kind of file (1000 for a whole campaign), and FAULT_KILLS sandboxes are killed and
stopped. 500 kills under load are in `tests/journey/test_repeated_crashes.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import httpx
import pytest

from gamelens.errors import Refused
from support.fault_campaign import (
    Template,
    Trial,
    ask_all,
    flip,
    flip_log_header,
    flip_manifest,
    make_template,
    run_trials,
)
from support.full_disk import full_disk
from support.game_events import event
from support.killable_sandbox import Service
from support.sandbox_stage import Stage, event_counts

FLIPS = int(os.environ.get("FAULT_FLIPS", "60"))
KILLS = int(os.environ.get("FAULT_KILLS", "5"))
SHOWN = 5
HEADER = (
    f"{'fault':<34}{'tried':>6}{'starts':>8}{'noticed':>9}{'wrong':>7}"
    f"{'unreported':>12}{'500s':>6}{'healed':>8}{'s':>7}"
)
FILES = {
    "log": "gamelens.db-wal",
    "database": "gamelens.db",
    "ready file": "ready.json",
    "keys": "tenants.json",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Make one state directory of a killed sandbox."""
    return make_template(tmp_path_factory.mktemp("faults") / "template")


@pytest.fixture(scope="module", autouse=True)
def header() -> None:
    """Print the head of the table."""
    print(f"\n{HEADER}")


def report(fault: str, trials: Sequence[Trial], took_s: float) -> None:
    """Print the line of *fault*, and the first trials that went wrong."""
    noticed = [trial for trial in trials if trial.is_noticed or not trial.is_healed]
    healed = [trial for trial in noticed if trial.is_healed]
    heal_s = max((trial.heal_s for trial in healed), default=0.0)
    print(
        f"{fault:<34}{len(trials):>6}{sum(trial.outcome == 'starts' for trial in trials):>8}"
        f"{sum(trial.is_noticed for trial in trials):>9}{sum(trial.wrong for trial in trials):>7}"
        f"{sum(trial.unreported for trial in trials):>12}{sum(trial.failed for trial in trials):>6}"
        f"{f'{len(healed)}/{len(noticed)}':>8}{heal_s:>7.2f}   {len(trials) / took_s:.1f} a second"
    )
    bad = [trial for trial in trials if trial.wrong or trial.unreported or trial.outcome == "crashed"]
    for trial in bad[:SHOWN]:
        print(f"    {trial.outcome}, {trial.wrong} wrong, {trial.unreported} unreported: {trial.detail[:300]}")


def campaign(fault: str, trials: Callable[[], Iterator[Trial]]) -> list[Trial]:
    """Run *trials*, report them, and return them."""
    began = time.monotonic()
    found = list(trials())
    report(fault, found, time.monotonic() - began)
    return found


def check(trials: Sequence[Trial]) -> None:
    """Check that no answer is wrong, no loss unreported, and no start ends without a reason."""
    assert sum(trial.wrong for trial in trials) == 0
    assert sum(trial.unreported for trial in trials) == 0
    assert [trial.detail for trial in trials if trial.outcome == "crashed"] == []


@pytest.mark.parametrize("fault", FILES)
def test_flips_in_files_of_the_state(template: Template, tmp_path: Path, fault: str) -> None:
    """A flipped bit in a file of the state gives no wrong answer and no unreported loss."""
    file = Path(FILES[fault])
    check(campaign(fault, lambda: run_trials(template, tmp_path, flip, count=FLIPS, whole=lambda _: file)))


def test_flips_in_headers_of_the_log(template: Template, tmp_path: Path) -> None:
    """A flipped bit in a header of the write-ahead log, where SQLite stops reading, loses nothing unreported."""
    file = Path(FILES["log"])
    check(
        campaign(
            "log headers", lambda: run_trials(template, tmp_path, flip_log_header, count=FLIPS, whole=lambda _: file)
        )
    )


def test_flips_in_rows_of_the_manifest(template: Template, tmp_path: Path) -> None:
    """A changed value in the manifest gives no wrong answer and no unreported loss."""
    check(campaign("manifest rows", lambda: run_trials(template, tmp_path, flip_manifest, count=FLIPS)))


def test_flips_in_each_table(template: Template, tmp_path: Path) -> None:
    """A flipped bit in a file of any table gives no wrong answer."""
    trials: list[Trial] = []
    for table, files in sorted(template.tables.items()):
        is_internal = table == "combinations" or files[0].suffix != ".parquet"
        trials += campaign(
            f"table {table}",
            lambda files=files, is_internal=is_internal: run_trials(  # type: ignore[misc]
                template,
                tmp_path,
                flip,
                count=max(1, FLIPS // 10) if FLIPS < 1000 else FLIPS,
                whole=lambda random: random.choice(files),
                with_run=is_internal,
            ),
        )
    check(trials)


def test_a_full_disk(template: Template, tmp_path: Path) -> None:
    """On a full disk the sandbox starts and answers, and takes nothing that it cannot keep."""

    def trials() -> Iterator[Trial]:
        began = time.monotonic()
        state = tmp_path / "state"
        shutil.copytree(template.state, state)
        stage = Stage(state, reserved_bytes=1 << 60)
        answers = ask_all(stage)
        status = stage.submit([event()]).status_code
        right = answers == template.before and status == 503
        with full_disk(at_bytes=1000):
            try:
                stage.process()
            except Refused:
                pass
            else:
                right = False
        wrong = sum(status == 200 and (status, body) not in template.before for status, body in ask_all(stage))
        stage.process()
        is_healed = ask_all(stage) == template.after
        stage.sandbox.close()
        yield Trial("starts", wrong, 0, 0, right, is_healed, time.monotonic() - began)

    (trial,) = campaign("full disk", trials)
    assert trial.is_noticed
    assert trial.is_healed
    check([trial])


def test_a_state_that_cannot_be_written(template: Template, tmp_path: Path) -> None:
    """On a read-only disk the sandbox refuses to start with the reason, and nothing is changed."""
    state = tmp_path / "state"
    shutil.copytree(template.state, state)
    for command in (["--bind", state, state], ["-o", "remount,ro,bind", state]):
        if subprocess.run(["mount", *map(str, command)], capture_output=True).returncode:
            pytest.skip("a read-only disk needs the right to mount")

    def trials() -> Iterator[Trial]:
        try:
            Stage(state)
        except Refused as error:
            yield Trial("refused", is_noticed=True, is_healed=False, detail=str(error))
        except Exception as error:  # the campaign counts what it is
            yield Trial("crashed", is_healed=False, detail=f"{type(error).__name__}: {error}")
        else:
            yield Trial("starts")

    try:
        found = campaign("read-only state", trials)
    finally:
        subprocess.run(["umount", str(state)], check=True)
    check(found)


def test_clock_jumps(template: Template, tmp_path: Path) -> None:
    """A clock that jumps by hours or years, forwards and backwards, loses no event."""
    state = tmp_path / "state"
    shutil.copytree(template.state, state)
    random = Random(3)

    def trials() -> Iterator[Trial]:
        stage = Stage(state)
        for _ in range(max(10, FLIPS // 10)):
            began = time.monotonic()
            stage.clock.advance(timedelta(hours=random.choice((-9000, -700, -25, -1, 1, 25, 700, 9000))))
            accepted = event_counts(stage)["accepted"]
            status = stage.submit([event(user_id=f"{random.random()}", client_ts=None)]).status_code
            stage.process()
            counts = event_counts(stage)
            lost = accepted + 1 - counts["accepted"] + counts["pending"]
            wrong = sum(status != 200 for status, _ in ask_all(stage)) + (status != 200)
            yield Trial("starts", wrong, lost, heal_s=time.monotonic() - began)
        stage.sandbox.close()

    check(campaign("clock jumps", trials))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_processes(tmp_path: Path, number: signal.Signals) -> None:
    """A sandbox process that is killed, or stopped for a moment, keeps what it has acknowledged."""
    service = Service(tmp_path)

    def trials() -> Iterator[Trial]:
        for kill in range(1, KILLS + 1):
            began = time.monotonic()
            assert service.ready.pid is not None
            service.populate(days=3)
            accepted = httpx.get(f"{service.ready.console_url}/summary").json()["accepted"]
            os.kill(service.ready.pid, number)
            if number == signal.SIGSTOP:
                time.sleep(0.2)
                os.kill(service.ready.pid, signal.SIGCONT)
            else:
                service.kill()
                service.start()
            summary = httpx.get(f"{service.ready.console_url}/summary", timeout=30).json()
            lost = accepted - summary["accepted"] + summary["pending"]
            yield Trial("starts", 0, lost, heal_s=time.monotonic() - began, detail=f"round {kill}")

    try:
        check(campaign(f"processes {number.name}", trials))
    finally:
        service.stop()
