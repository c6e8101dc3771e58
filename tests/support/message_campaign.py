"""Processes that send messages and are killed at random moments; run as a program, since it forks.

    python message_campaign.py FOLDER KILLS SEED TARGET...

It prints, for each target, the last day that was tried and the days that the journal called unsure.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

from gamelens.messages.journal import MessageJournal
from gamelens.messages.morning_message import MorningMessage
from gamelens.messages.targets import Target, target_of

FIRST = date(2026, 1, 1)
MOST_S = 0.1
DAYS = 1_000


def message(day: date) -> MorningMessage:
    """Return a message of *day*."""
    return MorningMessage(day=day, headline="all as usual", source="Source: a campaign")


def deliver(journal: MessageJournal, target: Target, day: date) -> str:
    """Send the message of *day* and return its outcome."""
    return journal.deliver(target.identity, day, {}, lambda: target.send(message(day))).outcome


def send_days(journal: MessageJournal, target: Target, ready: int) -> None:
    """Send one day after the other, and write a byte to *ready* after the first."""
    sent = journal.record(target.identity).sent
    day = date.fromisoformat(sent.day) if sent else FIRST - timedelta(days=1)
    for _ in range(DAYS):
        day += timedelta(days=1)
        assert deliver(journal, target, day) == "sent"
        os.write(ready, b".")


def campaign(folder: Path, kills: int, seed: int, texts: Sequence[str]) -> dict[str, dict[str, object]]:
    """Kill *kills* processes that send, each with another try after it."""
    chance, journal, targets = random.Random(seed), MessageJournal(folder), [target_of(text) for text in texts]
    unsure: dict[str, list[str]] = {target.name: [] for target in targets}
    for number in range(kills):
        target = targets[number % len(targets)]
        has_sent, ready = os.pipe()
        child = os.fork()
        if not child:
            send_days(journal, target, ready)
            os._exit(0)
        os.close(ready)
        os.read(has_sent, 1)
        time.sleep(chance.uniform(0.0, MOST_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(has_sent)
        record = journal.record(target.identity)
        if record.sending is not None:
            day = date.fromisoformat(record.sending.day)
            assert deliver(journal, target, day) == "unsure"
            unsure[target.name].append(str(day))
            journal.settle(target.identity, arrived=True)
    last = {target.name: journal.record(target.identity).sent for target in targets}
    return {name: {"last": sent.day if sent else None, "unsure": unsure[name]} for name, sent in last.items()}


def run_campaign(folder: Path, kills: int, seed: int, texts: Sequence[str]) -> dict[str, dict[str, object]]:
    """Run `campaign` in a process without threads, which may fork."""
    command = [sys.executable, __file__, str(folder), str(kills), str(seed), *texts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


def days_of(titles: Iterable[str]) -> list[str]:
    """Return the day in each title of a message."""
    return [title.split(" ")[1].rstrip(":") for title in titles]


def check_days(found: dict[str, object], arrived: Sequence[str]) -> None:
    """Check that each day up to the last arrived once, or at most once where the journal says unsure."""
    assert len(set(arrived)) > 1, "the processes were killed before they could send"
    unsure = set(found["unsure"])  # type: ignore[call-overload]
    last = date.fromisoformat(str(found["last"]))
    for number in range((last - FIRST).days + 1):
        day = str(FIRST + timedelta(days=number))
        times = list(arrived).count(day)
        assert times == 1 or (times == 0 and day in unsure), f"{day} arrived {times} times"
    assert set(arrived) <= {str(FIRST + timedelta(days=number)) for number in range((last - FIRST).days + 1)}


if __name__ == "__main__":
    print(json.dumps(campaign(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])))
