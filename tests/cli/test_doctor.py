"""`gamelens doctor`: what it says, what it never says, and that it ends."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

Typed = Callable[..., Result]
NOBODY = {"GAMELENS_API_KEY": None, "GAMELENS_METRICS_URL": None}


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where somebody listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def marks(done: Result) -> dict[str, str]:
    return {it["about"]: it["mark"] for it in json.loads(done.stdout)}


def test_all_is_well(typed: Typed) -> None:
    done = typed("doctor", "--json")
    assert done.exit_code == 0, done.output
    assert marks(done) == dict.fromkeys(
        (
            *("versions", "settings", "keyring", "cache", "service", "key"),
            *("clock", "rate", "available", "metrics", "dimensions"),
        ),
        "ok",
    )


def test_one_line_each_with_a_mark(typed: Typed) -> None:
    lines = typed("doctor").stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert len(lines) == 11


def test_a_wrong_key_is_a_problem_with_a_next_step_and_is_not_shown(typed: Typed) -> None:
    done = typed("doctor", GAMELENS_API_KEY="sesame-of-nobody")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("problem")]
    assert "key" in line
    assert "Next: copy it again" in line
    assert done.exit_code == 1
    assert "sesame" not in done.output


def test_nobody_at_the_address_is_a_problem(typed: Typed) -> None:
    done = typed("doctor", "--json", GAMELENS_METRICS_URL="http://127.0.0.1:9")
    assert (done.exit_code, marks(done)["service"]) == (1, "problem")


def test_a_service_that_never_answers_ends_at_the_deadline(typed: Typed, silent: str) -> None:
    began = time.monotonic()
    done = typed("doctor", "--deadline", 1, "--json", GAMELENS_METRICS_URL=silent)
    assert (done.exit_code, marks(done)["service"]) == (1, "problem")
    assert time.monotonic() - began < 5


def test_an_address_that_is_none_is_a_problem(typed: Typed) -> None:
    done = typed("doctor", "--json", GAMELENS_METRICS_URL="metrics.example")
    assert (done.exit_code, marks(done)["settings"]) == (1, "problem")


def test_without_a_key_no_sandbox_is_started(typed: Typed, tmp_path: Path) -> None:
    done = typed("doctor", **NOBODY)
    assert done.exit_code == 0
    assert "would use the local sandbox, which does not run" in done.stdout
    assert not (tmp_path / "demo").exists()


def test_without_a_key_the_sandbox_that_runs_is_checked(typed: Typed, stage: tuple[Path, dict[str, str]]) -> None:
    done = typed("doctor", "--json", **NOBODY, GAMELENS_STATE_DIR=str(stage[0] / "state"))
    assert done.exit_code == 0, done.output
    assert marks(done)["key"] == "ok"
    assert "which runs at" in done.stdout


def test_a_broken_config_file_is_a_problem(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "config" / "gamelens").mkdir(parents=True)
    (tmp_path / "config" / "gamelens" / "config.toml").write_text('api_key = "sesame" "twice"')
    done = typed("doctor", **NOBODY)
    assert (done.exit_code, "sesame" in done.output) == (1, False)
