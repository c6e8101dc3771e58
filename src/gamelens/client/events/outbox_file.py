"""The SQLite file of a queue: one transaction at a time, one process at a time, and a few notes beside the events.

Write-ahead mode with synchronous=NORMAL: what is committed survives a killed process and a crash of the game, and no
crash damages the file. Only a power cut may take the last seconds. FULL would save those too, at the price of a disk
sync in the middle of the game for every event. No key is ever in the file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gamelens.errors import BadQuery, Retryable
from gamelens.wire.remote_config import InitAnswer

_BUSY_S: Final = 0.1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, events INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS players (user_id TEXT PRIMARY KEY, sessions INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    forwarded_for TEXT,               -- the player's address, in server mode, until the last event is sent
    fields BLOB NOT NULL,             -- what every event of the session says, for an end that has to be made up
    started_s INTEGER NOT NULL,
    last_s INTEGER NOT NULL,
    is_open INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_of_user ON sessions (user_id);
CREATE INDEX IF NOT EXISTS ended_sessions ON sessions (is_open);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice, or an answer could remove another event
    session_id TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS events_of_session ON events (session_id);
"""


class OutboxUnavailable(Retryable):
    """The disk did not do what was asked of it."""


class OutboxFile:
    """The file, or the same in memory.

    Args:
        path: made when missing, readable by its owner only; None is memory.
        game_key: whose events these are.

    Raises:
        BadQuery: *path* is no queue of this game, or a running process holds it.
    """

    def __init__(self, path: Path | str | None, *, game_key: str) -> None:
        self.lock = threading.RLock()  # a game adds from its own thread
        self._db = _open(path, game_key)
        found = self._note("offset_s")
        self._offset_s = int(found) if found is not None else 0

    def close(self) -> None:
        """Let the file go; what waits in it waits on."""
        self._db.close()

    @contextlib.contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """One transaction; all of it happens or nothing does.

        Raises:
            QueueFailed: nothing did.
        """
        with self.lock:
            try:
                with self._db:
                    yield self._db
            except sqlite3.Error as error:
                raise OutboxUnavailable(f"the queue does not work: {error}") from None

    @property
    def offset_s(self) -> int:
        """How far the server's clock is ahead of this machine's (Collector, POST init 3)."""
        return self._offset_s

    @offset_s.setter
    def offset_s(self, seconds: int) -> None:
        if seconds != self._offset_s:
            self._write_note("offset_s", str(seconds).encode())
            self._offset_s = seconds

    def remember(self, user_id: str, answer: InitAnswer) -> None:
        """Keep what holds for *user_id*, in place of what was kept (Collector, POST remote_configs init 2)."""
        self._write_note("init", msgspec.json.encode((user_id, answer)))

    def recall(self, user_id: str) -> InitAnswer | None:
        """What was kept for *user_id*; that of another user is dropped (public-facts 1.5)."""
        found = self._note("init")
        with contextlib.suppress(msgspec.DecodeError):  # kept by another version: as if there were none
            whose, answer = msgspec.json.decode(found or b"", type=tuple[str, InitAnswer])
            if whose == user_id:
                return answer
        with self.using() as db:
            db.execute("DELETE FROM notes WHERE name = 'init'")
        return None

    def _note(self, name: str) -> bytes | None:
        with self.using() as db:
            found = db.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return found[0] if found is not None else None

    def _write_note(self, name: str, value: bytes) -> None:
        with self.using() as db:
            db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))


def _open(path: Path | str | None, game_key: str) -> sqlite3.Connection:
    try:
        if path is not None:
            # Never opened when it is there: closing it again would release the lock SQLite has on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        db = sqlite3.connect(path or ":memory:", timeout=_BUSY_S, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise BadQuery("queue", str(path), f"cannot be opened: {error}") from None
    try:
        # Two processes would each end the other's sessions: the file is held until it is closed, or we are killed.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA secure_delete = ON")  # what is gone, addresses too, is gone from the file
        db.executescript(_SCHEMA)
        with db:
            db.execute("INSERT OR IGNORE INTO notes VALUES ('game_key', ?)", (game_key,))
            (owner,) = db.execute("SELECT value FROM notes WHERE name = 'game_key'").fetchone()
    except sqlite3.Error as error:
        db.close()
        raise BadQuery("queue", str(path), f"cannot be used, by this process at least: {error}") from None
    if owner != game_key:
        db.close()
        raise BadQuery("queue", str(path), f"holds the events of another game, {owner}")
    return db
