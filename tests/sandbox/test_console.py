"""contract, Control surface."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from conftest import NOW, Stage, event
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.control.control_app import console_app
from gamelens.sandbox.server import Sandbox, SandboxOptions
from gamelens.wire.signing import sign
from sandbox.conftest import Call, call, counted, number

pytestmark = pytest.mark.slow


@pytest.fixture
def in_tokyo() -> Iterator[None]:
    """A machine that is nine hours ahead of UTC."""
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    yield
    os.environ.pop("TZ")
    os.environ |= {"TZ": zone} if zone is not None else {}
    time.tzset()


def clock(console: Call, order: Any) -> datetime:
    answer = console("POST", "/clock", json=order)
    assert answer.status_code == 200, answer.text
    return datetime.fromisoformat(answer.json()["now"])


@pytest.mark.parametrize("token", ["", "/toke", "/token2", "/TOKEN", "/summary"])
def test_without_the_token_there_is_nothing(stage: Stage, token: str) -> None:
    """contract: token checked."""
    app = console_app(stage.sandbox, token="token")
    assert call(app, "GET", f"{token}/summary").status_code == 404
    assert call(app, "POST", f"{token}/reset").status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", "10.0.0.1"]
)
def test_another_host_is_refused(console: Call, stage: Stage, host: str) -> None:
    """contract: Host header checked. A page that rebinds its name to this machine still says its own name."""
    stage.submit([event()])
    assert console("GET", "/summary", headers={"Host": host}).status_code == 403
    assert console("POST", "/reset", headers={"Host": host}).status_code == 403
    assert counted(stage)["accepted"] == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "localhost:1", "[::1]", "[::1]:8080"])
def test_this_machine_is_answered(console: Call, host: str) -> None:
    """contract: loopback only."""
    assert console("GET", "/summary", headers={"Host": host}).status_code == 200


def test_no_browser_of_another_origin_may_read_it(console: Call) -> None:
    """contract: no CORS."""
    answer = console("GET", "/summary", headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/reset", 405), ("POST", "/summary", 405)]
)
def test_what_it_does_not_know_is_said_in_json(console: Call, method: str, path: str, status: int) -> None:
    answer = console(method, path)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "message"})


def test_the_clock_stands_still_where_it_is_frozen(console: Call, stage: Stage) -> None:
    """contract: freeze."""
    assert clock(console, {"freeze": "2026-12-24T18:00:00Z"}) == datetime(2026, 12, 24, 18, tzinfo=UTC)
    assert stage.clock.now() == stage.clock.now()


@pytest.mark.parametrize(
    ("moment", "hour"), [("2026-12-24T18:00:00", 18), ("2026-12-24T18:00:00+02:00", 16), ("2026-12-24", 0)]
)
def test_a_moment_without_a_zone_is_utc(console: Call, in_tokyo: None, moment: str, hour: int) -> None:
    """contract: freeze; whatever the zone of this machine."""
    assert clock(console, {"freeze": moment}) == datetime(2026, 12, 24, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "moment"),
    [
        ("PT1H", datetime(2026, 11, 20, 11, 30, tzinfo=UTC)),
        ("P1D", datetime(2026, 11, 21, 10, 30, tzinfo=UTC)),
        ("P1M", datetime(2026, 12, 20, 10, 30, tzinfo=UTC)),
        ("P1Y", datetime(2027, 11, 20, 10, 30, tzinfo=UTC)),
        ("-PT30M", NOW.replace(minute=0)),
    ],
)
def test_the_clock_is_advanced_by_a_duration(console: Call, duration: str, moment: datetime) -> None:
    """contract: advance."""
    assert clock(console, {"advance": duration}) == moment


def test_advances_add_up(console: Call) -> None:
    """contract: advance."""
    clock(console, {"advance": "PT1H"})
    assert clock(console, {"advance": "PT1H"}) == NOW.replace(hour=12)


def test_the_clock_resumes_to_real_time(console: Call) -> None:
    """contract: resume."""
    clock(console, {"advance": "P9D"})
    assert abs((clock(console, {"resume": True}) - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.parametrize(
    "order",
    [
        *({}, [], "freeze", None, {"freeze": "tomorrow"}, {"freeze": 7}, {"freeze": None}, {"advance": "1 hour"}),
        *({"advance": 3600}, {"advance": "P99999Y"}, {"advance": "P9999999999D"}, {"resume": False}, {"stop": True}),
    ],
)
def test_an_order_it_cannot_read_leaves_the_clock_alone(console: Call, stage: Stage, order: Any) -> None:
    answer = console("POST", "/clock", json=order)
    assert (answer.status_code, answer.json()["field"]) == (422, "body")
    assert stage.clock.now() == NOW


def test_the_summary_counts_what_came_of_every_event(console: Call, stage: Stage) -> None:
    """contract: accepted, rejected, duplicate, pending, processed; available interval; per game."""
    stage.submit([event(event_uuid="u"), event(event_uuid="u"), event(v=1)])
    stage.submit([event(session_id=1)], game_id="1002")
    console("POST", "/process")
    stage.submit([event()])
    summary = console("GET", "/summary").json()
    assert {name: summary[name] for name in counted(stage)} == {
        "accepted": 3,
        "rejected": 2,
        "duplicate": 1,
        "pending": 1,
        "processed": 1,
    }
    assert summary["games"] == {
        "1001": {"accepted": 3, "rejected": 1, "pending": 1},
        "1002": {"accepted": 0, "rejected": 1, "pending": 0},
    }
    assert summary["available"]["acme"] == "2026-11-20T00:00Z/2026-11-20T10:00Z"


def test_a_game_id_of_two_organisations_is_two_games(make_stage: Callable[..., Stage], tmp_path: Path) -> None:
    """contract: per game. An id belongs to its organisation, and so do its numbers."""
    make_stage().sandbox.close()
    config = tmp_path / "twins.toml"
    config.write_text((tmp_path / "sandbox.toml").read_text().replace('id = "9001"', 'id = "1001"'))
    sandbox = Sandbox(SandboxOptions(state=tmp_path / "twins", config=config), clock=Clock())
    ours, theirs = (game for org in sandbox.tenants.organisations for game in org.games if game.id == "1001")
    for game, events in ((ours, [event()]), (theirs, [event(), event(v=1)])):
        body = json.dumps(events).encode()
        headers = {"Authorization": sign(body, secret_key=game.secret_key)}
        call(sandbox.collector, "POST", f"/v2/{game.game_key}/events", content=body, headers=headers)
    assert sandbox.summary()["games"] == {
        "acme/1001": {"accepted": 1, "rejected": 0, "pending": 1},
        "rival/1001": {"accepted": 1, "rejected": 1, "pending": 1},
    }
    assert sandbox.summary()["accepted"] == 2
    sandbox.close()


def test_processing_on_demand_answers_what_is_available(console: Call, stage: Stage) -> None:
    """contract: as `gamelens sandbox process`."""
    stage.submit([event()])
    assert console("POST", "/process").json() == {
        "acme": "2026-11-20T00:00Z/2026-11-20T10:00Z",
        "rival": "2026-11-20T10:00Z/2026-11-20T10:00Z",
    }
    assert number(stage) == 1


def test_reset_forgets_events_and_keeps_keys(console: Call, stage: Stage) -> None:
    """contract: forgets events, keeps keys."""
    stage.submit([event(event_uuid="u")])
    stage.process()
    keys = stage.game("1002").secret_key
    assert console("POST", "/reset").json()["accepted"] == 0
    assert number(stage) == 0
    assert not list(stage.sandbox.lake.root.rglob("*.parquet"))
    assert stage.game("1002").secret_key == keys


def test_after_a_reset_everything_begins_again(console: Call, stage: Stage) -> None:
    """contract: forgets events. An `event_uuid` of before is no duplicate."""
    for _ in range(2):
        stage.submit([event(event_uuid="u")])
        stage.process()
        assert counted(stage) == {"accepted": 1, "rejected": 0, "pending": 0, "processed": 1, "duplicate": 0}
        assert number(stage, "new_users") == 1
        console("POST", "/reset")


def test_health_is_ok_when_the_store_commits(console: Call) -> None:
    """contract: 200 when both services take requests and the store commits."""
    assert (console("GET", "/health").status_code, console("GET", "/health").json()) == (200, {"status": "ok"})


def test_a_run_that_fails_is_503_and_says_why(console: Call, stage: Stage) -> None:
    stage.submit([event()])
    (stage.sandbox.lake.root / "1").write_text("")
    answer = console("POST", "/process")
    assert answer.status_code == 503
    assert "nothing was changed" in answer.json()["message"]
