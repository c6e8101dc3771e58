"""The command `gamelens doctor`: what is set up, whether it works, and what to do if not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click
import msgspec

from gamelens.cli.command_group import cli
from gamelens.cli.terminal.terminal_text import print_line

if TYPE_CHECKING:
    from gamelens.client.checks.setup_checks import CheckResult
    from gamelens.client.connection.settings import MetricsSettings, Settings

KEYRING_S: Final = 5.0
SANDBOX_S: Final = 3.0
_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "red"}


@cli.command()
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    metavar="SECONDS",
    help="Seconds for all checks; 20 by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON array.")
def doctor(deadline: float, as_json: bool) -> None:
    """Check settings, keys, clocks, both services, rate, cache, metrics and versions.

    \b
    Example: gamelens doctor

    Exits with 1 when something does not work. Sends five cheap requests to the configured service; without a key, to
    the local sandbox, if one runs. A configured collector gets an empty batch of events and an init.
    """
    from gamelens.client.checks.setup_checks import has_problem

    findings = []
    for finding in all_findings(time.monotonic() + deadline):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(findings)))
    raise SystemExit(1 if has_problem(findings) else 0)


def all_findings(ends_at: float) -> Iterator[CheckResult]:
    """Yield all findings, those that take requests last."""
    from gamelens.client.checks.setup_checks import has_problem, settings_findings, versions
    from gamelens.client.connection.settings import KeyringLookup, Settings

    yield versions()
    settings = Settings.from_environment(KeyringLookup(wait_s=min(KEYRING_S, _seconds_left(ends_at))))
    about_settings = list(settings_findings(settings, os.environ))
    yield from about_settings
    if has_problem(about_settings):
        return
    yield from _without_errors(_metrics_findings(settings, (time.monotonic() + ends_at) / 2))
    yield from _without_errors(_collector_findings(settings, ends_at))


def _without_errors(findings: Iterator[CheckResult]) -> Iterator[CheckResult]:
    """Yield *findings*, and the error that ends them as the last.

    That is an invalid address, key or file of certificate authorities.
    """
    from gamelens.client.checks.setup_checks import CheckResult
    from gamelens.errors import GamelensError

    try:
        yield from findings
    except GamelensError as error:
        yield CheckResult.problem("settings", str(error), "correct it at its source")


def _metrics_findings(settings: Settings, ends_at: float) -> Iterator[CheckResult]:
    """Yield findings on the metrics service, or without a key on the local sandbox."""
    if settings.find("api_key") is None:
        yield from _sandbox_findings(ends_at)
    else:
        yield from _service_findings(settings.metrics(), ends_at)


def _collector_findings(settings: Settings, ends_at: float) -> Iterator[CheckResult]:
    """Yield findings on the collector of *settings*, if all three are there."""
    from gamelens.client.checks.collector_checks import CollectorChecks
    from gamelens.client.checks.setup_checks import CheckResult
    from gamelens.client.connection.event_loop import shared_loop
    from gamelens.client.connection.settings import COLLECTOR_SETTINGS
    from gamelens.client.events.collector_client import CollectorClient

    url, game_key, secret_key = (settings.find(name) for name in COLLECTOR_SETTINGS)
    if not (url or game_key or secret_key):
        yield CheckResult.ok("collector", "not configured; needed only to submit events")
    elif url and game_key and secret_key:
        checks = CollectorChecks(CollectorClient(collector_url=url, game_key=game_key, secret_key=secret_key))
        yield from shared_loop().run(checks.findings(deadline_s=_seconds_left(ends_at)))


def _sandbox_findings(ends_at: float) -> Iterator[CheckResult]:
    """Yield findings on the local sandbox, if one runs. None is started."""
    from gamelens.client.checks.setup_checks import CheckResult
    from gamelens.client.connection.settings import MetricsSettings, Secret, unwritable
    from gamelens.local.connect import STATE_DIR, demo_state
    from gamelens.local.sandbox_process import INSTALL, find_sandbox, missing_packages, needs_text

    ready = find_sandbox(demo_state(), within_s=min(SANDBOX_S, _seconds_left(ends_at)))
    key = ready.organisations[0].api_key if ready is not None else None
    intro = "no api_key: gl.connect() would use the local sandbox"
    if ready is None and (missing := missing_packages()):
        says = f"no api_key, and the sandbox that would answer needs {needs_text(missing)}, not installed here"
        yield CheckResult.warning("sandbox", says, f"set GAMELENS_API_KEY, or run {INSTALL}")
        yield _cache_finding("", "")
        return
    if ready is None and (why := unwritable(demo_state())):
        step = f"name a folder of your own in {STATE_DIR}, or set GAMELENS_API_KEY"
        yield CheckResult.problem("sandbox", f"no api_key, and no sandbox can be started: {why}", step)
        yield _cache_finding("", "")
        return
    if ready is None or key is None:
        yield CheckResult.ok("sandbox", f"{intro}, which is not running and would be started")
        yield _cache_finding("", "")
        return
    yield CheckResult.ok("sandbox", f"{intro}, which is running at {ready.metrics_url}")
    yield from _service_findings(MetricsSettings(ready.metrics_url, Secret(key)), ends_at, ca_file=ready.ca_file)


def _service_findings(
    settings: MetricsSettings, ends_at: float, *, ca_file: str | None = None
) -> Iterator[CheckResult]:
    """Yield findings on the service of *settings* and on the cache of its answers."""
    from gamelens.client.checks.service_checks import ServiceChecks
    from gamelens.client.connection.event_loop import shared_loop

    checks = ServiceChecks(settings, ca_file=ca_file)
    yield _cache_finding(settings.metrics_url, settings.api_key.fingerprint)
    yield from shared_loop().run(checks.findings(deadline_s=_seconds_left(ends_at)))


def _cache_finding(address: str, fingerprint: str) -> CheckResult:
    from gamelens.client.answer_cache import open_cache
    from gamelens.client.checks.setup_checks import cache_finding

    return cache_finding(open_cache(True, address=address, fingerprint=fingerprint))


def _seconds_left(ends_at: float) -> float:
    return max(ends_at - time.monotonic(), 0.1)


def _print(finding: CheckResult) -> None:
    mark = click.style(f"{finding.mark:<7}", fg=_COLOURS[finding.mark])
    stop = "" if finding.says.endswith((".", "?")) else "."
    step = f"{stop} Next: {finding.next_step}" if finding.next_step else ""
    print_line(finding.says + step, prefix=f"{mark}  {finding.about:<15}  ")
