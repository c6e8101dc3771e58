"""The journal of messages: each target gets each day once, however often it is tried.

A day is written down before it is sent and again afterwards. A process that ends in between leaves a day that
may have arrived: it is "unsure" and not sent again until a person has looked. Targets are named by a
slow hash, so that the journal holds no secret of theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final, Literal

import msgspec
from filelock import FileLock

from gamelens._files import write_private
from gamelens.client.answer_cache import cache_folder
from gamelens.client.connection.settings import writable_folder
from gamelens.errors import GamelensError, Refused

Outcome = Literal["sent", "already sent", "unsure", "not sent"]
_PATIENCE_S: Final = 60.0


class NotSent(Refused):
    """A message certainly did not arrive, so that it may be sent again."""


class SentDay(msgspec.Struct, frozen=True):
    """A day and the alarms that its message had, by identity."""

    day: str
    alarms: dict[str, str] = {}


class TargetRecord(msgspec.Struct, frozen=True):
    """The last day that certainly arrived, and the one that began to be sent and whose end was never written down."""

    sent: SentDay | None = None
    sending: SentDay | None = None

    def has(self, day: date) -> bool:
        """Return whether the message of *day*, or of a later one, certainly arrived."""
        return self.sent is not None and self.sent.day >= str(day)


class Delivery(msgspec.Struct, frozen=True):
    """The outcome of one message, and why it failed or what is still unsure."""

    outcome: Outcome
    why: str = ""


def journal_folder() -> Path:
    """Return the folder of the journal of `gamelens morning`: beside the cache of answers."""
    return cache_folder() / "messages"


class MessageJournal:
    """The journal in *folder*, by default beside the cache of answers.

    Raises:
        Refused: the folder cannot be written to.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = writable_folder(folder or journal_folder(), "GAMELENS_CACHE_DIR")

    def record(self, identity: str) -> TargetRecord:
        """Return what the target with *identity* got.

        Raises:
            Refused: the record is damaged.
        """
        path = self._folder / f"{identity}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=TargetRecord)
        except FileNotFoundError:
            return TargetRecord()
        except msgspec.DecodeError:
            rule = "is damaged: check which day last reached the target, then delete the file"
            raise Refused(f"the journal {path} {rule}") from None

    def deliver(self, identity: str, day: date, alarms: Mapping[str, str], send: Callable[[], None]) -> Delivery:
        """Send the message of *day* unless the target got it, or may have got it, already.

        *send* raises `NotSent` if the message certainly did not arrive, and anything else if it may have.
        """
        with self._locked(identity):
            record = self.record(identity)
            if record.has(day):
                return Delivery("already sent")
            if record.sending is not None and record.sending.day == str(day):
                return Delivery("unsure", "an earlier attempt ended while it was sending")
            current = SentDay(str(day), dict(alarms))
            self._write(identity, TargetRecord(record.sent, current))
            try:
                send()
            except NotSent as error:
                self._write(identity, record)
                return Delivery("not sent", str(error))
            except (GamelensError, OSError) as error:
                return Delivery("unsure", str(error))
            self._write(identity, TargetRecord(current))
            earlier = record.sending
            return Delivery("sent", f"it is not known whether {earlier.day} arrived" if earlier else "")

    def settle(self, identity: str, *, arrived: bool) -> bool:
        """Write down what became of the unsure day, and return whether there was one."""
        with self._locked(identity):
            record = self.record(identity)
            if record.sending is None:
                return False
            self._write(identity, TargetRecord(record.sending if arrived else record.sent))
            return True

    def _write(self, identity: str, record: TargetRecord) -> None:
        write_private(self._folder / f"{identity}.json", msgspec.json.encode(record))

    @contextmanager
    def _locked(self, identity: str) -> Iterator[None]:
        with FileLock(self._folder / f"{identity}.lock", timeout=_PATIENCE_S, mode=0o600):
            yield


def identity_of(address: str) -> str:
    """Return the name of a target in the journal, a slow hash of its address."""
    return hashlib.scrypt(address.encode(), salt=b"gamelens messages", n=2**14, r=8, p=1, dklen=8).hex()
