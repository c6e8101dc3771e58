"""What gamelens has stored on this machine: listed with its size, and removed unless a person made it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal

import msgspec
import platformdirs
from filelock import FileLock, Timeout

from gamelens.client.answer_cache import cache_folder
from gamelens.client.connection.settings import KEYS, LAKE, SERVICE, KeyringLookup, Settings, config_file
from gamelens.client.limits.shared_slots import runtime_folder
from gamelens.errors import Refused
from gamelens.local.connect import demo_state, demo_states
from gamelens.local.demo import lab_folder
from gamelens.local.sandbox_population import read_population_record

StoredKind = Literal[
    "answers", "demo", "sample lake", "runtime", "journal", "config", "key", "notebooks", "lake", "sandbox"
]

_OF_A_STATE: Final = (
    *("gamelens.*", "lake", "checked.json", "tenants.json", "keys.json", "ca.pem", "server.pem", "quarantine", "spare"),
    *(
        "lock",
        "ready.json",
        "scratch",
        "users",
        "users.lock",
        "log.txt",
        "load",
        "played.json",
        "played.lock",
        "outside",
        ".*.part",
    ),
)
"""What a sandbox and `connect` write into a state directory, which may have other files."""
_SLOT: Final = re.compile(r"[0-9a-f]{24}\.(start|seat)\d+")
_FOLDERS: Final = ("lakes", "scenarios", "demo", "gamelens")
"""Folders that are removed once they are empty."""
_SAMPLE_LAKES: Final = ("*-????-??-??", ".lake-*")  # the second is one that was never finished


class StoredItem(msgspec.Struct, frozen=True):
    """One thing that is stored, and why it stays. *stays* is empty for what a cleaning removes."""

    kind: StoredKind
    path: str
    size_bytes: int
    stays: str = ""


def stored_items(*, is_all: bool) -> Iterator[StoredItem]:
    """Yield what is stored on this machine. With *is_all* settings and keys are removed too."""
    for path in sorted(cache_folder().glob("answers-*/")):
        yield StoredItem("answers", str(path), _size(path))
    users_lake = _own_lake()
    running = _running()
    for state in demo_states():
        if parts := _parts(state):
            yield StoredItem("demo", str(state), sum(map(_size, parts)), _reason_to_stay(state, users_lake, running))
    for lake in _sample_lakes():
        why = "it is your setting `lake`" if lake == users_lake else ""
        yield StoredItem("sample lake", str(lake), _size(lake), why)
    if slots := _slots():
        yield StoredItem("runtime", str(slots[0].parent), sum(map(_size, slots)))
    if config_file().is_file():
        yield StoredItem("config", str(config_file()), _size(config_file()), "" if is_all else "--all removes it")
    if is_all:
        keyring = KeyringLookup()
        yield from (StoredItem("key", f"keyring:{SERVICE}/{name}", 0) for name in KEYS if keyring.find(name))
    if lab_folder().is_dir():
        why = "your copies of the notebooks"
        yield StoredItem("notebooks", str(lab_folder()), _size(lab_folder()), why)
    if users_lake is not None and users_lake.is_dir():
        yield StoredItem("lake", str(users_lake), _size(users_lake), "your lake, which the setting lake names")
    known = {*demo_states(), *_sample_lakes(), users_lake}
    beside = (path.parent for path in platformdirs.user_state_path("gamelens").glob("*/tenants.json"))
    for state in sorted({*beside, *running} - known):
        yield StoredItem("sandbox", str(state), _size(state), "not made by the demo: remove it yourself")


def remove(item: StoredItem) -> None:
    """Remove *item*.

    Raises:
        Refused: it is in use, or the keyring does not answer.
    """
    path = Path(item.path)
    if item.kind == "key":
        _remove_key(item.path.rpartition("/")[2])
    elif item.kind == "demo" and _has_store(path):
        _remove_demo(path)
    elif item.kind == "demo":
        _remove(*_parts(path))
    elif item.kind == "runtime":
        _remove_slots()
    else:
        _remove(path, path.with_name(f"{path.name}.lock"))
    with contextlib.suppress(OSError):  # the first that has other files
        for folder in takewhile(lambda parent: parent.name in (path.name, *_FOLDERS), (path, *path.parents)):
            if folder.is_dir():
                folder.rmdir()


def _own_lake() -> Path | None:
    """Return the folder that the setting `lake` names."""
    named = Settings.from_environment().find(LAKE)
    return Path(named).expanduser() if named else None


def _running() -> dict[Path, bool]:
    """Return the states of running sandboxes, and whether `connect` left each running, to stop by itself."""
    try:
        from gamelens.local.running_sandboxes import running_sandboxes

        return {found.state: found.stops_when_idle for found in running_sandboxes()}
    except ModuleNotFoundError:  # without the extra `sandbox` there are none
        return {}


def _reason_to_stay(state: Path, users_lake: Path | None, running: dict[Path, bool]) -> str:
    """Return why the state directory of a demo stays: it is in use, or may have events of a person's."""
    if state == users_lake:
        return "it is your setting `lake`"
    if not running.get(state, True):
        return f"in use: `gamelens sandbox stop --state {state}` ends it"
    if not _has_store(state):
        return ""
    from gamelens.sandbox.storage.manifest import read_record

    if read_population_record(state) is None:
        return "may be yours: its demo never finished"
    record = read_record(state / "gamelens.db")
    return "has events that you imported" if record is not None and record.taken else ""


def _has_store(state: Path) -> bool:
    """Return whether a sandbox ran over *state*, which then may run, or have events."""
    return (state / "gamelens.db").exists()


def _remove_demo(state: Path) -> None:
    """Stop the sandbox over *state* and remove its files.

    Raises:
        Refused: `gamelens demo` or `lab` uses it, or it does not stop.
    """
    from gamelens.local.running_sandboxes import stop_sandbox
    from gamelens.sandbox.state.state_directory import SandboxUsers

    users = SandboxUsers(state)
    if not users.lock_if_left():
        raise Refused(f"`gamelens lab` or `gamelens demo` uses {state}: close it first")
    try:
        stop_sandbox(state)
        _remove(*_parts(state))
    finally:
        users.lock.release()
    _remove(state / "users.lock")  # which the release of the lock may have written anew


def _remove_slots() -> None:
    """Remove the slots that no request holds, since one that is held would be given out twice."""
    for path in _slots():
        with contextlib.suppress(Timeout), FileLock(path, blocking=False):
            path.unlink()


def _remove_key(name: str) -> None:
    """Remove the key *name* from the keyring.

    Raises:
        Refused: the keyring refuses.
    """
    import keyring

    try:
        keyring.delete_password(SERVICE, name)
    except keyring.errors.KeyringError as error:
        raise Refused(f"the keyring keeps {name}: {error}") from None


def _sample_lakes() -> list[Path]:
    """Return the lakes that `sample_lake` made."""
    folder = demo_state() / "lakes"
    return sorted(path for pattern in _SAMPLE_LAKES for path in folder.glob(pattern))


def _slots() -> list[Path]:
    """Return the files by which the processes of this user share the rate of a key."""
    try:
        folder = runtime_folder()
    except OSError:  # another user's, or no disk to write to
        return []
    return sorted(path for path in folder.glob("*") if _SLOT.fullmatch(path.name))


def _parts(state: Path) -> list[Path]:
    return sorted({path for pattern in _OF_A_STATE for path in state.glob(pattern)})


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder. What goes away meanwhile has none."""
    if path.is_dir() and not path.is_symlink():
        return sum(_size(Path(folder) / name) for folder, _, names in os.walk(path) for name in names)
    with contextlib.suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
