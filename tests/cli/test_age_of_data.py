"""What `gamelens health` and `gamelens morning` say and exit with when the data are old, missing or too few."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gamelens.cli import cli
from gamelens.cli.health_command import exit_status
from house.source import ROOT
from support.foreign_service import KEY, foreign_service

MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
FEW = ("--metrics", "user_unique", "--metrics", "new_users")
_numbers = count()

Run = Callable[..., Result]


def commands(address: str, folder: Path) -> Run:
    """Return a function that runs `gamelens` against the service at *address*."""
    environment = {
        **{"GAMELENS_API_KEY": f"{KEY}-age-{next(_numbers)}", "GAMELENS_METRICS_URL": address},
        **{f"GAMELENS_{name}_DIR": str(folder / name.lower()) for name in ("CACHE", "STATE", "RUNTIME")},
        "XDG_CONFIG_HOME": str(folder),
    }
    return lambda *words, **more: CliRunner(env=environment | more).invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A function that runs `gamelens` against a service whose data ended eight days ago."""
    with foreign_service(end=MIDNIGHT - timedelta(days=8)) as service:
        yield commands(service.address, tmp_path_factory.mktemp("dead"))


@pytest.fixture(scope="module")
def alive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The same against a service that has the whole of yesterday."""
    with foreign_service(end=MIDNIGHT) as service:
        yield commands(service.address, tmp_path_factory.mktemp("alive"))


def test_old_data_are_the_first_line_and_an_exit_status(dead: Run) -> None:
    """Eight days without data are no all-clear, whatever is asked for."""
    for arguments in (FEW, (*FEW, "--fail-on", "critical")):
        result = dead("health", *arguments)
        assert result.exit_code == 4, result.output
        assert result.stdout.startswith("The data end on "), result.stdout
        assert "8 days ago" in result.stdout.splitlines()[0]
    printed = dead("health", *FEW, "--json")
    assert (json.loads(printed.stdout)["is_stale"], printed.exit_code) == (True, 4)
    assert dead("health", *FEW, "--markdown", "-").stdout.startswith("# The data end on ")


@pytest.mark.wide
def test_how_old_is_too_old_can_be_said(dead: Run, alive: Run) -> None:
    """--stale takes days, hours or an ISO 8601 duration; what is younger is judged as usual."""
    for limit in ("10d", "240h", "P10D", "240"):
        result = dead("health", *FEW, "--stale", limit)
        assert (result.exit_code, result.stdout.startswith("The data end")) == (0, False), result.output
    assert dead("health", *FEW, "--stale", "7 days").exit_code == 4
    assert alive("health", *FEW, "--stale", "1s").exit_code == 4
    wrong = alive("health", *FEW, "--stale", "soon")
    assert wrong.exit_code == 2
    assert "36h" in wrong.stderr


@pytest.mark.wide
def test_fresh_data_have_no_such_line(alive: Run) -> None:
    """With the whole of yesterday there is nothing to say of the age."""
    result = alive("health", *FEW)
    assert result.exit_code == 0, result.output
    assert "The data end" not in result.output


def test_too_few_days_to_judge_are_an_exit_status(alive: Run) -> None:
    """A history of six days judges nothing, and that is not well."""
    result = alive("health", "--over", "last 6 complete days", *FEW)
    assert result.exit_code == 4
    assert result.stdout.startswith("Not enough history")


@pytest.mark.parametrize(
    ("cannot_tell", "alarms", "fail_on", "status"),
    [
        (False, {"critical": 1}, "critical", 3),
        (False, {"warning": 1}, "critical", 0),
        (False, {"warning": 1}, "warning", 3),
        (False, {"critical": 1}, "warning", 3),
        (False, {"critical": 1}, None, 0),
        (True, {"critical": 1}, "critical", 4),
        (True, {}, None, 4),
    ],
)
def test_each_outcome_has_its_exit_status(
    cannot_tell: bool, alarms: dict[str, int], fail_on: str | None, status: int
) -> None:
    """3 for what is as bad as asked, 4 where the data are too old or too few to tell."""
    assert exit_status(cannot_tell=cannot_tell, alarms=alarms, fail_on=fail_on) == status


@pytest.mark.wide
def test_a_morning_of_old_data_says_so_every_day(dead: Run, tmp_path: Path) -> None:
    """The title has the age, and a day that was sent before is no reason to be content."""
    shown = dead("morning", *FEW)
    assert shown.exit_code == 4, shown.output
    assert "The data end on " in shown.stdout.splitlines()[0]
    summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    sent, again = (dead("morning", *FEW, "--to", "github", **summary) for _ in range(2))
    assert (sent.exit_code, again.exit_code) == (4, 4)
    assert "already sent" in again.output
    assert "The data end on " in again.stderr


@pytest.mark.parametrize(("status", "is_silent"), [(0, True), (3, False), (4, False)])
def test_the_documented_cron_line_is_silent_when_all_is_well(tmp_path: Path, status: int, is_silent: bool) -> None:
    """Cron mails what a job prints: whatever the two commands print is shown only where one of them failed."""
    lines = {
        line
        for page in ("src/gamelens/cli/README.md", "docs/pages/how-to/report.md")
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("0 6 * * *")
    }
    (line,) = lines
    command = tmp_path / "gamelens"
    command.write_text(f'#!/bin/sh\necho "$@"\necho warned >&2\n[ "$1" = report ] || exit {status}\n')
    command.chmod(0o700)
    (tmp_path / "reports").mkdir()
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    job = line.removeprefix("0 6 * * *")
    done = subprocess.run(["/bin/sh", "-c", job], env=environment, capture_output=True, text=True, check=False)
    assert (not done.stdout, done.stderr) == (is_silent, "")
    assert ("health --fail-on critical" in done.stdout) == (not is_silent)


@pytest.mark.wide
def test_a_morning_of_fresh_data_is_done(alive: Run) -> None:
    """With the whole of yesterday the status is 0, and nothing is said of the age."""
    shown = alive("morning", *FEW)
    assert shown.exit_code == 0, shown.output
    assert "The data end" not in shown.output
