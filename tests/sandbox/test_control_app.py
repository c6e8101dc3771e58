"""The control API: its token, clock, counts and processing (Wire 5.1, Control API)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import load_scenario, play_columns
from gamelens.wire.signing import sign
from support.app_requests import Call, call
from support.game_events import NOW, event
from support.sandbox_stage import Stage, event_counts, metric_value

pytestmark = pytest.mark.slow


@pytest.fixture
def in_tokyo() -> Iterator[None]:
    """Set the time zone of this process nine hours ahead of UTC."""
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    yield
    os.environ.pop("TZ")
    os.environ |= {"TZ": zone} if zone is not None else {}
    time.tzset()


def set_clock(control_api: Call, order: Any) -> datetime:
    """Send an order to the clock, and return the time it then shows."""
    answer = control_api("POST", "/clock", json=order)
    assert answer.status_code == 200, answer.text
    return datetime.fromisoformat(answer.json()["now"])


@pytest.mark.parametrize("token", ["", "/toke", "/token2", "/TOKEN", "/summary"])
def test_without_the_token_every_path_is_404(stage: Stage, token: str) -> None:
    """A path without the exact token is 404, for reading and for changing.

    Wire 5.1, Control API.
    """
    app = control_app(stage.sandbox, token="token")
    assert call(app, "GET", f"{token}/summary").status_code == 404
    assert call(app, "POST", f"{token}/reset").status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", "10.0.0.1"]
)
def test_another_host_is_refused(control_api: Call, stage: Stage, host: str) -> None:
    """A foreign `Host` header gets 403, as a page that rebinds its name would send.

    Wire 5.1, Control API.
    """
    stage.submit([event()])
    assert control_api("GET", "/summary", headers={"Host": host}).status_code == 403
    assert control_api("POST", "/reset", headers={"Host": host}).status_code == 403
    assert event_counts(stage)["accepted"] == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "localhost:1", "[::1]", "[::1]:8080"])
def test_this_machine_is_answered(control_api: Call, host: str) -> None:
    """A `Host` header with a loopback name and any port is accepted (Wire 5.1, Control API)."""
    assert control_api("GET", "/summary", headers={"Host": host}).status_code == 200


def test_no_browser_of_another_origin_may_read_it(control_api: Call) -> None:
    """A response has no CORS header, so that no other origin can read it.

    Wire 5.1, Control API.
    """
    answer = control_api("GET", "/summary", headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/reset", 405), ("POST", "/summary", 405)]
)
def test_unknown_paths_and_methods_are_refused_in_json(control_api: Call, method: str, path: str, status: int) -> None:
    """An unknown path is 404 and a wrong method 405, each as JSON with a message.

    Wire 5.1, Control API.
    """
    answer = control_api(method, path)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "message"})


def test_the_clock_stands_still_where_it_is_frozen(control_api: Call, stage: Stage) -> None:
    """A frozen clock shows the given time and does not advance (Wire 5.1, Control API)."""
    assert set_clock(control_api, {"freeze": "2026-12-24T18:00:00Z"}) == datetime(2026, 12, 24, 18, tzinfo=UTC)
    assert stage.clock.now() == stage.clock.now()


@pytest.mark.parametrize(
    ("moment", "hour"), [("2026-12-24T18:00:00", 18), ("2026-12-24T18:00:00+02:00", 16), ("2026-12-24", 0)]
)
def test_a_moment_without_a_zone_is_utc(control_api: Call, in_tokyo: None, moment: str, hour: int) -> None:
    """A time without an offset is UTC, whatever the time zone of the machine.

    Wire 5.1, Control API.
    """
    assert set_clock(control_api, {"freeze": moment}) == datetime(2026, 12, 24, hour, tzinfo=UTC)


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
def test_the_clock_is_advanced_by_a_duration(control_api: Call, duration: str, moment: datetime) -> None:
    """The clock is advanced by an ISO 8601 duration, a negative one included.

    Wire 5.1, Control API.
    """
    assert set_clock(control_api, {"advance": duration}) == moment


def test_advances_add_up(control_api: Call) -> None:
    """Two advances of an hour move the clock by two hours (Wire 5.1, Control API)."""
    set_clock(control_api, {"advance": "PT1H"})
    assert set_clock(control_api, {"advance": "PT1H"}) == NOW.replace(hour=12)


def test_the_clock_resumes_to_real_time(control_api: Call) -> None:
    """`resume` sets the clock back to the time of the machine (Wire 5.1, Control API)."""
    set_clock(control_api, {"advance": "P9D"})
    assert abs((set_clock(control_api, {"resume": True}) - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.parametrize(
    "order",
    [
        *({}, [], "freeze", None, {"freeze": "tomorrow"}, {"freeze": 7}, {"freeze": None}, {"advance": "1 hour"}),
        *({"advance": 3600}, {"advance": "P99999Y"}, {"advance": "P9999999999D"}, {"resume": False}, {"stop": True}),
    ],
)
def test_an_unreadable_order_does_not_change_the_clock(control_api: Call, stage: Stage, order: Any) -> None:
    """An order that is not a freeze, advance or resume gets 422 and changes nothing.

    Wire 5.1, Control API.
    """
    answer = control_api("POST", "/clock", json=order)
    assert (answer.status_code, answer.json()["field"]) == (422, "body")
    assert stage.clock.now() == NOW


@pytest.mark.parametrize(
    "order",
    [
        *({"freeze": "0001-01-01T00:00:00Z"}, {"freeze": "1969-12-31T23:59:59Z"}, {"freeze": "9999-01-01T00:00:00Z"}),
        *({"freeze": "1970-01-01T00:00:00+01:00"}, {"advance": "-P57Y"}, {"advance": "P7973Y"}),
        {"freeze": "2026-12-24T18:00:00Z", "advance": "P1D"},
    ],
)
def test_an_order_that_leads_out_of_range_does_not_change_the_clock(
    control_api: Call, stage: Stage, order: Any
) -> None:
    """A time before 1970 or after 9998, or two orders at once, get 422 and change nothing.

    Wire 5.1, Control API.
    """
    answer = control_api("POST", "/clock", json=order)
    assert answer.status_code == 422
    assert stage.clock.now() == NOW


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("moment", ["1970-01-01T00:00:00Z", "9998-12-31T23:59:59Z"])
def test_the_sandbox_works_at_either_end_of_its_clock(control_api: Call, stage: Stage, moment: str) -> None:
    """Events are taken, processed and answered for at the first and the last second that the clock can show.

    Wire 5.1, Control API.
    """
    set_clock(control_api, {"freeze": moment})
    assert stage.submit([event()]).status_code == 200
    assert control_api("POST", "/process").status_code == 200
    set_clock(control_api, {"freeze": NOW.isoformat()})
    assert stage.submit([event(user_id="later")]).status_code == 200
    assert control_api("POST", "/process").json()["acme"].endswith("2026-11-20T10:00Z")
    assert control_api("GET", "/summary").json()["processed"] == 2


def test_the_summary_counts_events_by_their_state(control_api: Call, stage: Stage) -> None:
    """The summary has the counts of every state, per game, and the available intervals.

    Wire 5.1, Control API.
    """
    stage.submit([event(event_uuid="u"), event(event_uuid="u"), event(v=1)])
    stage.submit([event(session_id=1)], game_id="1002")
    control_api("POST", "/process")
    stage.submit([event()])
    summary = control_api("GET", "/summary").json()
    assert {name: summary[name] for name in event_counts(stage)} == {
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
    """Games with one id in two organisations are counted apart, by organisation/id.

    Wire 5.1, Control API.
    """
    make_stage().sandbox.close()
    config = tmp_path / "twins.toml"
    config.write_text((tmp_path / "sandbox.toml").read_text().replace('id = "9001"', 'id = "1001"'))
    sandbox = Sandbox(SandboxOptions(state=tmp_path / "twins", config=config), clock=Clock())
    game_of_acme, game_of_rival = (
        game for org in sandbox.tenants.organisations for game in org.games if game.id == "1001"
    )
    for game, events in ((game_of_acme, [event()]), (game_of_rival, [event(), event(v=1)])):
        body = json.dumps(events).encode()
        headers = {"Authorization": sign(body, secret_key=game.secret_key)}
        call(sandbox.collector, "POST", f"/v2/{game.game_key}/events", content=body, headers=headers)
    assert sandbox.summary()["games"] == {
        "acme/1001": {"accepted": 1, "rejected": 0, "pending": 1},
        "rival/1001": {"accepted": 1, "rejected": 1, "pending": 1},
    }
    assert sandbox.summary()["accepted"] == 2
    sandbox.close()


def test_processing_on_demand_answers_what_is_available(control_api: Call, stage: Stage) -> None:
    """`POST /process` returns the available interval of each organisation.

    Wire 5.1, Control API.
    """
    stage.submit([event()])
    assert control_api("POST", "/process").json() == {
        "acme": "2026-11-20T00:00Z/2026-11-20T10:00Z",
        "rival": "2026-11-20T10:00Z/2026-11-20T10:00Z",
    }
    assert metric_value(stage) == 1


def test_reset_deletes_events_and_keeps_keys(control_api: Call, stage: Stage) -> None:
    """`POST /reset` deletes all events and files and keeps the keys (Wire 5.1, Control API)."""
    stage.submit([event(event_uuid="u")])
    stage.process()
    keys = stage.game("1002").secret_key
    assert control_api("POST", "/reset").json()["accepted"] == 0
    assert metric_value(stage) == 0
    assert not list(stage.sandbox.lake.root.rglob("*.parquet"))
    assert stage.game("1002").secret_key == keys


def test_files_that_wait_are_loaded_into_a_sandbox_without_events(control_api: Call, stage: Stage) -> None:
    """`POST /load` takes the files of the folder `load`, once, and none where events are (Wire 5.1, Control API)."""
    folder = stage.sandbox.options.state / "load"
    for status in (200, 503, 503):
        folder.mkdir()
        scenario = load_scenario("small", players=20, days=3)
        play_columns(scenario, folder, ends_on=NOW.date(), game_ids=["1001", "1002", "2001"])
        answer = control_api("POST", "/load")
        assert answer.status_code == status
        assert not folder.exists()
        if status == 200:
            assert answer.json() == json.loads(control_api("GET", "/summary").content)["available"]
            assert stage.sandbox.lake.snapshot("acme").rows("events") > 100
            stage.submit([event(event_uuid="u")])
            stage.process()
        else:
            assert "events already" in answer.text
    control_api("POST", "/reset")
    assert not list(stage.sandbox.lake.root.rglob("*.parquet"))


@pytest.mark.wide
def test_after_a_reset_all_counts_start_at_zero(control_api: Call, stage: Stage) -> None:
    """An `event_uuid` from before a reset is not a duplicate, and its player is new.

    Wire 5.1, Control API.
    """
    for _ in range(2):
        stage.submit([event(event_uuid="u")])
        stage.process()
        assert event_counts(stage) == {"accepted": 1, "rejected": 0, "pending": 0, "processed": 1, "duplicate": 0}
        assert metric_value(stage, "new_users") == 1
        control_api("POST", "/reset")


def test_health_is_ok_when_the_store_commits(control_api: Call) -> None:
    """`GET /health` is 200 when the inbox can commit (Wire 5.1, Control API)."""
    assert (control_api("GET", "/health").status_code, control_api("GET", "/health").json()) == (200, {"status": "ok"})


def test_a_run_that_fails_is_503_and_says_why(control_api: Call, stage: Stage) -> None:
    """A failed run gets 503 with the reason, and nothing is changed (Wire 5.1, Control API)."""
    stage.submit([event()])
    (stage.sandbox.lake.root / "1").write_text("")
    answer = control_api("POST", "/process")
    assert answer.status_code == 503
    assert "nothing was changed" in answer.json()["message"]
