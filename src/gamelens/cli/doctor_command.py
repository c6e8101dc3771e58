"""`gamelens doctor`: what is set up here, whether it works, and what to do where it does not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click
import msgspec

from gamelens._text import terminal_line
from gamelens.cli.command_group import cli

if TYPE_CHECKING:
    from gamelens.client.connection.settings import MetricsSettings
    from gamelens.client.setup_checks import Finding

KEYRING_S: Final = 5.0
SANDBOX_S: Final = 3.0
_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "red"}


@cli.command()
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    metavar="SECONDS",
    help="For everything; 20 if you do not say.",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON array of findings.")
def doctor(deadline: float, as_json: bool) -> None:
    """Check settings, key, clock, service, rate, cache, metrics and versions; exit 1 when something does not work.

    \b
    Example: gamelens doctor

    Asks the configured service five cheap questions. With no key it looks at the local sandbox, if one runs.
    """
    from gamelens.client.setup_checks import has_problem

    found = []
    for finding in _examine(time.monotonic() + deadline):
        found.append(finding)
        if not as_json:
            click.echo(_line(finding))
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found)))
    raise SystemExit(1 if has_problem(found) else 0)


def _examine(ends_at: float) -> Iterator[Finding]:
    from gamelens.client.connection.keyring_lookup import KeyringLookup
    from gamelens.client.connection.settings import Settings
    from gamelens.client.setup_checks import Finding, has_problem, settings_findings, versions
    from gamelens.errors import GamelensError

    yield versions()
    settings = Settings.from_environment(KeyringLookup(wait_s=min(KEYRING_S, _left(ends_at))))
    found = list(settings_findings(settings, os.environ))
    yield from found
    if has_problem(found):
        return
    if settings.find("api_key") is None:
        yield from _without_key(ends_at)
        return
    try:
        yield from _service(settings.metrics(), ends_at)
    except GamelensError as error:  # an address or a key that is none, or a file of authorities
        yield Finding.problem("settings", str(error), "correct it where it comes from")


def _without_key(ends_at: float) -> Iterator[Finding]:
    """The local sandbox, where one runs; none is started."""
    from gamelens.client.connection.settings import MetricsSettings, Secret
    from gamelens.client.setup_checks import Finding
    from gamelens.local.connect import demo_state
    from gamelens.local.sandbox_process import running_at

    ready = running_at(demo_state(), within_s=min(SANDBOX_S, _left(ends_at)))
    key = ready.organisations[0].api_key if ready is not None else None
    will = "no api_key: gl.connect() would use the local sandbox"
    if ready is None or key is None:
        yield Finding.ok("sandbox", f"{will}, which does not run and would be started")
        yield _cache("", "")
        return
    yield Finding.ok("sandbox", f"{will}, which runs at {ready.metrics_url}")
    yield from _service(MetricsSettings(ready.metrics_url, Secret(key)), ends_at, ca_file=ready.ca_file)


def _service(settings: MetricsSettings, ends_at: float, *, ca_file: str | None = None) -> Iterator[Finding]:
    """The service of *settings*, and what is kept of its answers."""
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.client.service_checks import ServiceChecks

    checkup = ServiceChecks(settings, ca_file=ca_file)
    yield _cache(settings.metrics_url, settings.api_key.fingerprint)
    yield from shared_loop().run(checkup.findings(deadline_s=_left(ends_at)))


def _cache(address: str, fingerprint: str) -> Finding:
    from gamelens.client.cache.answer_cache import open_cache
    from gamelens.client.setup_checks import cache_finding

    return cache_finding(open_cache(True, address=address, fingerprint=fingerprint))


def _left(ends_at: float) -> float:
    return max(ends_at - time.monotonic(), 0.1)


def _line(finding: Finding) -> str:
    mark = click.style(f"{finding.mark:<7}", fg=_COLOURS[finding.mark])
    stop = "" if finding.says.endswith((".", "?")) else "."
    step = f"{stop} Next: {finding.next_step}" if finding.next_step else ""
    return f"{mark}  {finding.about:<10}  {terminal_line(finding.says + step)}"
