"""The checks of a collector that `gamelens doctor` prints."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gamelens.client.checks.collector_checks import CollectorChecks
from gamelens.client.checks.setup_checks import CheckResult
from support.game_events import NOW
from support.game_network import SECRET_KEY, Game

TIME = int(NOW.timestamp())


def check(game: Game, *, ahead_s: float = 0.0, deadline_s: float = 5.0, **keys: str) -> dict[str, CheckResult]:
    """Return the findings on the collector of *game* by name, on a machine whose clock is *ahead_s*."""
    checks = CollectorChecks(game.wire.collector(**keys), now=lambda: TIME + 0.5 + ahead_s)
    findings = asyncio.run(checks.findings(deadline_s=deadline_s))
    assert SECRET_KEY not in str(findings)
    assert all(finding.next_step for finding in findings if finding.mark != "ok")
    return {finding.about: finding for finding in findings}


def marks(findings: dict[str, CheckResult]) -> dict[str, str]:
    """Return the mark of each finding."""
    return {about: finding.mark for about, finding in findings.items()}


def test_a_collector_with_its_keys_passes_all_checks(game: Game) -> None:
    """An empty batch and an init are sent, and nothing is collected."""
    findings = check(game)
    assert marks(findings) == dict.fromkeys(("collector", "collector keys", "collector clock"), "ok")
    assert [sent.route for sent in game.wire.sent] == ["events", "init_v2"]
    assert game.wire.events == []


@pytest.mark.parametrize("keys", [{"secret_key": "f" * 40}, {"game_key": "0" * 32}])
def test_a_wrong_key_is_a_problem(game: Game, keys: dict[str, Any]) -> None:
    """401 is told as such, and the address is fine (Wire 1.4, Signature)."""
    assert marks(check(game, **keys)) == {"collector": "ok", "collector keys": "problem"}


@pytest.mark.parametrize(("ahead_s", "message"), [(600, "10 min ahead of"), (-10800, "3 h behind")])
def test_a_clock_that_is_off_is_a_warning(game: Game, ahead_s: float, message: str) -> None:
    """The clock is compared with `server_ts` (Wire 1.14, Server time)."""
    game.wire.script["init_v2"] = [(200, json.dumps({"enabled": True, "server_ts": TIME}).encode())]
    finding = check(game, ahead_s=ahead_s)["collector clock"]
    assert (finding.mark, message in finding.says) == ("warning", True)


@pytest.mark.parametrize("are_both_missing", [False, True])
def test_the_time_may_come_from_either_init(game: Game, are_both_missing: bool) -> None:
    """A collector may lack one of the inits, or both."""
    game.wire.script["init_v2"] = [(404, b"{}")]
    game.wire.script["init"] = [(404, b"{}")] * are_both_missing
    finding = check(game)["collector clock"]
    assert (finding.mark, "does not say" in finding.says) == ("ok", are_both_missing)


def test_a_disabled_game_is_a_warning(game: Game) -> None:
    """Its sessions send nothing (Wire 1.11, Version 2 init)."""
    game.wire.script["init_v2"] = [(200, json.dumps({"enabled": False, "server_ts": TIME}).encode())]
    assert marks(check(game))["collector keys"] == "warning"


@pytest.mark.parametrize(
    ("answer", "mark", "message"),
    [
        ((404, b"{}"), "problem", "is it a collector?"),
        ((503, b"{}"), "problem", "but 503"),
        ((429, b"{}"), "warning", "but 429"),
        ((400, b"{}"), "ok", "answers in"),
    ],
)
def test_another_answer_is_told(game: Game, answer: tuple[int, bytes], mark: str, message: str) -> None:
    """A 400 says that keys are accepted and an empty batch is not wanted."""
    game.wire.script["events"] = [answer]
    finding = check(game)["collector"]
    assert (finding.mark, message in finding.says) == (mark, True)


def test_a_collector_that_is_down_is_a_problem(game: Game) -> None:
    """Nothing is said about keys and clock."""
    game.wire.is_down = True
    assert marks(check(game)) == {"collector": "problem"}


@pytest.mark.parametrize(("route", "mark"), [("events", "problem"), ("init_v2", "ok")])
def test_a_collector_that_is_silent_ends_at_the_deadline(game: Game, route: str, mark: str) -> None:
    """An init that hangs costs the time of the collector, not its keys."""
    game.wire.hanging = {route}
    assert marks(check(game, deadline_s=0.5))["collector"] == mark
