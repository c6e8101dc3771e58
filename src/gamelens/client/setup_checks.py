"""What is set up on this machine and whether it works, one finding a line. Nothing is sent; `checkup` does that."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal

import msgspec

from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.client.connection.settings import ADDRESSES, KEYS, PREFIX, REAL_METRICS_URL, Settings
from gamelens.errors import BadQuery
from gamelens.wire.limits import MIB

CheckStatus = Literal["ok", "warning", "problem"]

PACKAGES: Final = ("gamelens", "pandas", "pyarrow")
# Settings that come from nowhere else.
_OTHERS: Final = ("cache_dir", "state_dir", "runtime_dir", "record", "replay", "console_url", "theme")


class Finding(msgspec.Struct, frozen=True):
    """What was found *about* something; *next_step* is what to do, where there is something to do."""

    about: str
    mark: CheckStatus
    says: str
    next_step: str | None = None

    @classmethod
    def ok(cls, about: str, says: str) -> Finding:
        """All is well."""
        return cls(about, "ok", says)

    @classmethod
    def warning(cls, about: str, says: str, next_step: str) -> Finding:
        """It works, but not as it should."""
        return cls(about, "warning", says, next_step)

    @classmethod
    def problem(cls, about: str, says: str, next_step: str) -> Finding:
        """It does not work."""
        return cls(about, "problem", says, next_step)


def versions() -> Finding:
    """What is installed."""
    found, missing = [f"python {sys.version.split()[0]}"], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        says = f"{', '.join(found)}; without {', '.join(missing)}"
        return Finding.problem("versions", says, "pip install gamelens")
    return Finding.ok("versions", ", ".join(found))


def settings_findings(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Where each value comes from, never what a key is; and what is odd about the places."""
    try:
        said = {name: settings.source(name) for name in (*ADDRESSES, *KEYS)}
    except BadQuery as error:
        step = f"correct {settings.file}"
        yield Finding.problem("settings", str(error), step)
        return
    places = [f"{name} from the {source}" for name, source in said.items() if source]
    if said["api_key"] and not said["metrics_url"]:
        places.append(f"metrics_url is that of the real service, {REAL_METRICS_URL}")
    says = ", ".join(places) or f"nothing in the environment ({PREFIX}API_KEY), nor in {settings.file}"
    yield Finding.ok("settings", says)
    yield from _environment(environ)
    if settings.strange:
        says = f"{settings.file} has names that mean nothing: {', '.join(settings.strange)}"
        step = f"the names are {', '.join((*ADDRESSES, *KEYS))}"
        yield Finding.warning("settings", says, step)
    if "config file" in [said[name] for name in KEYS] and _is_open(settings.file):
        says = f"others on this machine can read the key in {settings.file}"
        yield Finding.warning("settings", says, f"chmod 600 {settings.file}")
    if said["metrics_url"] and not said["api_key"]:
        step = f"set {PREFIX}API_KEY"
        says = "metrics_url is set and no api_key: it is not used by gl.connect()"
        yield Finding.warning("settings", says, step)
    yield _keyring(settings, [name for name, source in said.items() if source == "keyring"])


def cache_finding(cache: AnswerCache | None) -> Finding:
    """Whether answers are kept, and how much of them."""
    if cache is None:
        return Finding.ok("cache", "switched off")
    info = cache.info()
    if info.off is not None:
        step = f"make {info.folder} writable, or name another folder in {PREFIX}CACHE_DIR"
        return Finding.warning("cache", f"off, {info.folder}: {info.off}", step)
    held = f"{info.questions:,} questions, {info.buckets:,} buckets of this key"
    says = f"{held}; {info.bytes / MIB:.1f} of {info.max_bytes / MIB:.0f} MiB in {info.folder}"
    return Finding.ok("cache", says)


def has_problem(findings: Sequence[Finding]) -> bool:
    """Whether anything is wrong enough to stop an analyst."""
    return any(finding.mark == "problem" for finding in findings)


def _environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    known = [PREFIX + name.upper() for name in (*ADDRESSES, *KEYS, *_OTHERS)]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and (near := get_close_matches(name, known, n=1, cutoff=0.8)):
            yield Finding.warning("settings", f"{name} in the environment means nothing", f"is it {near[0]}?")
    if folder := environ.get(f"{PREFIX}REPLAY"):
        says = f"gl.connect() answers from the recording in {folder}, and not from the service"
        yield Finding.warning("settings", says, f"unset {PREFIX}REPLAY to ask the service")


def _keyring(settings: Settings, said: Sequence[str]) -> Finding:
    keychain = settings.keychain
    if keychain.trouble is not None:
        step = "see what `keyring diagnose` says, or put the key somewhere else"
        return Finding.warning("keyring", f"is of no use: {keychain.trouble}", step)
    if not keychain.is_installed:
        return Finding.ok("keyring", "not installed")
    if not keychain.was_asked:
        return Finding.ok("keyring", "not asked, as all keys are somewhere else")
    return Finding.ok("keyring", f"has {', '.join(said)}" if said else "has none of the other keys")


def _is_open(file: Path) -> bool:
    """Whether others than the owner can read *file*; Windows says it otherwise."""
    return os.name == "posix" and bool(stat.S_IMODE(file.stat().st_mode) & (stat.S_IRGRP | stat.S_IROTH))
