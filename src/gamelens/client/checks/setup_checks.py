"""Checks of the setup on this machine, without sending a request.

`service_checks` checks the service.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal

import msgspec

from gamelens.client.answer_cache import AnswerCache
from gamelens.client.connection.control_api import CONTROL_URL_VARIABLE, control_address
from gamelens.client.connection.settings import (
    ADDRESSES,
    ALLOW_HTTP,
    COLLECTOR_SETTINGS,
    KEYS,
    OWN_METRICS,
    PREFIX,
    REAL_METRICS_URL,
    Settings,
)
from gamelens.errors import BadQuery
from gamelens.wire.limits import MIB

CheckStatus = Literal["ok", "warning", "problem"]

PACKAGES: Final = ("gamelens", "pandas", "pyarrow")
# Settings that come from the environment only.
_OTHER_SETTINGS: Final = ("cache_dir", "state_dir", "runtime_dir", "record", "replay", "console_url", "theme")


class CheckResult(msgspec.Struct, frozen=True):
    """One line of `gamelens doctor`: what was checked, the finding as text, and what the user can do."""

    about: str
    mark: CheckStatus
    says: str
    next_step: str | None = None

    @classmethod
    def ok(cls, about: str, says: str) -> CheckResult:
        """Return a finding without a problem."""
        return cls(about, "ok", says)

    @classmethod
    def warning(cls, about: str, says: str, next_step: str) -> CheckResult:
        """Return a finding that works, but not as it should."""
        return cls(about, "warning", says, next_step)

    @classmethod
    def problem(cls, about: str, says: str, next_step: str) -> CheckResult:
        """Return a finding that does not work."""
        return cls(about, "problem", says, next_step)


def versions() -> CheckResult:
    """Check which packages are installed, and their versions."""
    installed, missing = [f"python {sys.version.split()[0]}"], []
    for name in PACKAGES:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        says = f"{', '.join(installed)}; without {', '.join(missing)}"
        return CheckResult.problem("versions", says, "pip install gamelens")
    return CheckResult.ok("versions", ", ".join(installed))


def settings_findings(settings: Settings, environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Yield the source of each setting (never a key) and what is wrong with them."""
    try:
        sources = {name: settings.source(name) for name in (*ADDRESSES, *KEYS, ALLOW_HTTP)}
        own_metrics = settings.own_metrics.own
    except BadQuery as error:
        step = f"correct {settings.file}"
        yield CheckResult.problem("settings", str(error), step)
        return
    places = [f"{name} from the {source}" for name, source in sources.items() if source]
    if sources["api_key"] and not sources["metrics_url"]:
        places.append(f"metrics_url is the address of the real service, {REAL_METRICS_URL}")
    says = ", ".join(places) or f"nothing in the environment ({PREFIX}API_KEY), nor in {settings.file}"
    yield CheckResult.ok("settings", says)
    if own_metrics:
        yield CheckResult.ok("own metrics", f"{', '.join(own_metrics)}, from {settings.file}")
    yield from _environment_findings(environ)
    if settings.unknown_names:
        says = f"{settings.file} has settings that gamelens does not know: {', '.join(settings.unknown_names)}"
        step = f"the names are {', '.join((*ADDRESSES, *KEYS, ALLOW_HTTP, OWN_METRICS))}"
        yield CheckResult.warning("settings", says, step)
    others = stat.S_IRGRP | stat.S_IROTH
    is_stored = "config file" in [sources[name] for name in KEYS]
    if is_stored and os.name == "posix" and settings.file.stat().st_mode & others:
        says = f"others on this machine can read the key in {settings.file}"
        yield CheckResult.warning("settings", says, f"chmod 600 {settings.file}")
    if sources["metrics_url"] and not sources["api_key"]:
        step = f"set {PREFIX}API_KEY"
        says = "metrics_url is set but api_key is not, so gl.connect() does not use it"
        yield CheckResult.warning("settings", says, step)
    missing = [name for name in COLLECTOR_SETTINGS if not sources[name]]
    if missing and len(missing) < len(COLLECTOR_SETTINGS):
        has = [name for name in COLLECTOR_SETTINGS if sources[name]]
        says = f"{' and '.join(has)} without {' and '.join(missing)}: no event can be submitted"
        step = f"set {', '.join(PREFIX + name.upper() for name in missing)}"
        yield CheckResult.warning("settings", says, step)
    yield _keyring_finding(settings, [name for name, source in sources.items() if source == "keyring"])


def cache_finding(cache: AnswerCache | None) -> CheckResult:
    """Check whether answers are cached, and how many."""
    if cache is None:
        return CheckResult.ok("cache", "switched off")
    info = cache.info()
    if info.off is not None:
        step = f"make {info.folder} writable, or name another folder in {PREFIX}CACHE_DIR"
        return CheckResult.warning("cache", f"off: {info.off}", step)
    contents = f"{info.queries:,} queries, {info.buckets:,} buckets of this key"
    says = f"{contents}; {info.bytes / MIB:.1f} of {info.max_bytes / MIB:.0f} MiB in {info.folder}"
    return CheckResult.ok("cache", says)


def has_problem(findings: Sequence[CheckResult]) -> bool:
    """Return whether a finding stops an analyst."""
    return any(finding.mark == "problem" for finding in findings)


def _environment_findings(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Yield warnings for misspelt variables and for an active replay."""
    variables = [PREFIX + name.upper() for name in (*ADDRESSES, *KEYS, ALLOW_HTTP, *_OTHER_SETTINGS)]
    for name in sorted(environ):
        if (
            name.startswith(PREFIX)
            and name not in variables
            and (matches := get_close_matches(name, variables, n=1, cutoff=0.8))
        ):
            yield CheckResult.warning("settings", f"{name} in the environment is not a setting", f"is it {matches[0]}?")
    if environ.get(CONTROL_URL_VARIABLE, "").strip():
        try:
            control_address(environ=environ)
        except BadQuery as error:
            yield CheckResult.warning("settings", str(error), f"correct {CONTROL_URL_VARIABLE}, or unset it")
    if folder := environ.get(f"{PREFIX}REPLAY"):
        says = f"gl.connect() answers from the recording in {folder}, and not from the service"
        yield CheckResult.warning("settings", says, f"unset {PREFIX}REPLAY to ask the service")


def _keyring_finding(settings: Settings, names: Sequence[str]) -> CheckResult:
    """Report the state of the keyring and the keys found in it."""
    keyring = settings.keyring
    if keyring.error is not None:
        step = "see what `keyring diagnose` says, or put the key somewhere else"
        return CheckResult.warning("keyring", f"cannot be used: {keyring.error}", step)
    if not keyring.is_installed:
        return CheckResult.ok("keyring", "not installed")
    if not keyring.was_queried:
        return CheckResult.ok("keyring", "not queried, since all keys were found elsewhere")
    return CheckResult.ok("keyring", f"has {', '.join(names)}" if names else "has none of the other keys")
