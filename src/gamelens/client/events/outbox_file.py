"""The SQLite file of an outbox: one transaction and one process at a time.

Write-ahead mode with synchronous=NORMAL: committed events survive a killed process and a crash of the game, and no
crash damages the file. Only a power cut may lose the last seconds. FULL would keep those too, at the price of a disk
sync for every event in the middle of the game. The file holds no key.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gamelens._files import create_private
from gamelens._forks import OwnProcess, keep_for_ever, without_forks
from gamelens.errors import BadQuery, Retryable
from gamelens.wire.remote_config import InitAnswer

_BUSY_S: Final = 0.1
_MAX_INIT_ANSWERS: Final = 10_000  # Our choice: those stored last
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, events INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS init_answers (user_id TEXT PRIMARY KEY, answer BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS disabled_players (user_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS players (user_id TEXT PRIMARY KEY, sessions INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    forwarded_for TEXT,               -- the player's address, in server mode, until the last event is sent
    fields BLOB NOT NULL,             -- fields of every event of the session, for a session_end that has to be made up
    started_s INTEGER NOT NULL,
    last_s INTEGER NOT NULL,
    is_open INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_of_user ON sessions (user_id);
CREATE INDEX IF NOT EXISTS ended_sessions ON sessions (is_open);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused, or an answer could remove another event
    session_id TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS events_of_session ON events (session_id);
"""


class OutboxUnavailable(Retryable):
    """The disk failed, or the file is locked."""


class OutboxFile:
    """The SQLite file of an outbox, or with None an equal database in memory.

    It is created if missing, readable by the user only.

    Raises:
        BadQuery: *path* is not an outbox of this game, or another process has it open.
    """

    def __init__(self, path: Path | str | None, *, game_key: str) -> None:
        self._lock = threading.RLock()  # a game adds events from its own thread
        self.process = OwnProcess("this session")
        self._db = _open(path, game_key)
        with self.transaction() as db:
            offset = db.execute("SELECT value FROM notes WHERE name = 'offset_s'").fetchone()
        self._offset_s = int(offset[0]) if offset is not None else 0

    def __del__(self) -> None:
        if not hasattr(self, "_db"):  # it could not be opened
            return
        if self.process.is_this:
            self._db.close()  # from Python 3.13 on a connection that is left open is a warning
        else:
            keep_for_ever(self._db)  # closed, it would delete the write-ahead log of the parent

    @property
    def lock(self) -> threading.RLock:
        """The lock of its threads.

        Raises:
            Refused: this is a forked child, in which it may stay locked.
        """
        self.process.check()
        return self._lock

    def close(self) -> None:
        """Close the file.

        Events in it wait for the next start.
        """
        self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction, which takes effect completely or not at all.

        Raises:
            OutboxUnavailable: it did not take effect.
        """
        with self.lock, without_forks():
            try:
                with self._db:
                    yield self._db
            except sqlite3.Error as error:
                raise OutboxUnavailable(f"the queue does not work: {error}") from None

    @property
    def offset_s(self) -> int:
        """Seconds the server's clock is ahead of this machine's. Wire 1.14, Server time."""
        return self._offset_s

    @offset_s.setter
    def offset_s(self, seconds: int) -> None:
        if seconds != self._offset_s:
            self._offset_s = seconds
            with self.transaction() as db:
                db.execute("INSERT OR REPLACE INTO notes VALUES ('offset_s', ?)", (str(seconds).encode(),))

    def save_init_answer(self, user_id: str, answer: InitAnswer) -> None:
        """Store the init answer of *user_id*, in place of an earlier one.

        The last 10,000 are kept. Wire 1.12, Remote config init.
        """
        with self.transaction() as db:
            row = (user_id, msgspec.json.encode(answer))
            db.execute("INSERT OR REPLACE INTO init_answers (user_id, answer) VALUES (?, ?)", row)
            delete_oldest = "DELETE FROM init_answers WHERE rowid <= (SELECT max(rowid) FROM init_answers) - ?"
            db.execute(delete_oldest, (_MAX_INIT_ANSWERS,))

    def load_init_answer(self, user_id: str) -> InitAnswer | None:
        """Return the stored init answer of *user_id*, or None.

        Wire 1.12, Remote config init.
        """
        with self.transaction() as db:
            row = db.execute("SELECT answer FROM init_answers WHERE user_id = ?", (user_id,)).fetchone()
        with contextlib.suppress(msgspec.DecodeError):  # stored by another version: ignored
            return msgspec.json.decode(row[0], type=InitAnswer) if row else None
        return None

    def disabled_players(self) -> set[str]:
        """Return the players whose last answer to a version 2 init was `enabled` = false."""
        with self.transaction() as db:
            return {user_id for (user_id,) in db.execute("SELECT user_id FROM disabled_players")}

    def save_enabled(self, user_id: str, *, is_enabled: bool) -> None:
        """Store what the version 2 init said about *user_id*. Wire 1.11, Version 2 init."""
        change = "DELETE FROM disabled_players WHERE user_id = ?"
        with self.transaction() as db:
            db.execute(change if is_enabled else "INSERT OR IGNORE INTO disabled_players VALUES (?)", (user_id,))


def _open(path: Path | str | None, game_key: str) -> sqlite3.Connection:
    """Open the database and lock it for this process.

    Raises:
        BadQuery: it cannot be opened, is locked, or belongs to another game.
    """
    try:
        if path is not None:
            # An existing file is never opened here: closing it would release the lock that SQLite has on it.
            with contextlib.suppress(FileExistsError):
                create_private(Path(path))
        db = sqlite3.connect(path or ":memory:", timeout=_BUSY_S, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise BadQuery("queue", str(path), f"cannot be opened: {error}") from None
    try:
        # Two processes would end each other's sessions: the lock lasts until the file is closed or the process ends.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA secure_delete = ON")  # deleted rows, IP addresses among them, are overwritten
        db.executescript(_SCHEMA)
        with db:
            db.execute("INSERT OR IGNORE INTO notes VALUES ('game_key', ?)", (game_key,))
            (owner,) = db.execute("SELECT value FROM notes WHERE name = 'game_key'").fetchone()
    except sqlite3.Error as error:
        db.close()
        raise BadQuery("queue", str(path), f"cannot be used by this process: {error}") from None
    if owner != game_key:
        db.close()
        raise BadQuery("queue", str(path), f"holds the events of another game, {owner}")
    return db
