"""Both init routes of the collector: bodies, refusals and strict validation."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from support.collector_requests import COLLECTOR_PATHS, EVENTS_PATH, GAME_KEY, send_signed
from support.game_events import NOW, event
from support.sandbox_stage import CONFIG, NO_EVENTS, Stage, event_counts

V2_PATH = f"/v2/{GAME_KEY}/init"
REMOTE_PATH = f"/remote_configs/v1/init?game_key={GAME_KEY}"
BOTH = pytest.mark.parametrize("path", [V2_PATH, REMOTE_PATH])

UNREADABLE_INITS = [
    *(b"", b"{", b"[]", b"7", b"null", b'"x"', b"[{}, {}]", b"[[]]", b"\xff", b"\xef\xbb\xbf{}"),
    *('{"user_id": "a"}'.encode("utf-16"), b'{"user_id": "a", "x": "\xff"}', b'{"user_id": "a"} {}'),
    *(b'{"user_id": "\\ud800"}', b'{"user_id": "a", "x": "\\ud800"}', b'{"user_id": "a", "x": NaN}'),
    *(b'{"user_id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"user_id": "a", "x": [}'),
]
INIT = {"user_id": "ann", "platform": "ios", "os_version": "ios 17", "sdk_version": "rest api v2", "random_salt": "x"}
OLDER = {"platform": "ios", "os_version": "ios 17", "sdk_version": "rest api v2"}
EVERYONE = CONFIG.replace(
    '      value = "normal"\n',
    """      value = "normal"
      [[organisation.studio.game.experiment]]
      id = "exp1"
        [[organisation.studio.game.experiment.variant]]
        id = "fast"
""",
)
"""A configuration with an experiment in which every player takes part."""


@pytest.fixture
def strict_stage(make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox with strict validation."""
    return make_stage(validation="strict")


def errors(*named: tuple[str, str]) -> list[Any]:
    """Return the response body that names these types of errors and their paths."""
    return [{"errors": [{"error_type": error_type, "path": path} for error_type, path in named]}]


@pytest.mark.parametrize(
    "body", [INIT, [INIT], INIT | {"random_salt": 7}, INIT | {"build": None, "session_num": 3, "x": []}, OLDER, {}]
)
@BOTH
def test_init_is_an_object_or_an_array_of_one(shared: Stage, body: Any, path: str) -> None:
    """An init is an object or an array of one, with unknown, null and missing fields.

    Wire 1.11, Version 2 init.
    """
    answer = send_signed(shared, json.dumps(body).encode(), path=path)
    assert answer.status_code == 201
    assert answer.json()["server_ts"] == int(NOW.timestamp())


@pytest.mark.parametrize("body", UNREADABLE_INITS)
@BOTH
def test_an_unreadable_init_is_400(shared: Stage, body: bytes, path: str) -> None:
    """A body that is not strict JSON, or not an object, is refused with 400 and a JSON answer.

    Wire 1.8, Rejected events; Wire 1.11, Version 2 init.
    """
    answer = send_signed(shared, body, path=path)
    assert (answer.status_code, answer.json()[0]["errors"][0]["path"]) == (400, "/")


@pytest.mark.parametrize(
    ("body", "path_of_error"),
    [
        (b'{"user_id": null}', "/user_id"),
        (b'{"user_id": 5}', "/user_id"),
        (b'[{"user_id": 5}]', "/user_id"),
        (b'{"user_id": "a", "user_id": [[]]}', "/user_id"),
        (b'{"platform": 5}', "/platform"),
        (b'{"os_version": 17.0}', "/os_version"),
        (b'{"sdk_version": {}}', "/sdk_version"),
        (b'{"random_salt": true}', "/random_salt"),
        (b'{"random_salt": 1.5}', "/random_salt"),
        (b'{"build": 7}', "/build"),
    ],
)
@BOTH
def test_a_wrong_type_in_an_init_is_named(shared: Stage, path: str, body: bytes, path_of_error: str) -> None:
    """A field of an init with another JSON type gets 400 with the path of the field.

    Wire 1.11, Version 2 init.
    """
    answer = send_signed(shared, body, path=path)
    assert (answer.status_code, answer.json()) == (400, errors(("wrong_type", path_of_error)))


def test_every_wrong_type_of_an_init_is_named(shared: Stage) -> None:
    """All mistyped fields of one init are in its answer (Wire 1.11, Version 2 init)."""
    body = json.dumps({name: [1] for name in INIT}).encode()
    assert send_signed(shared, body, path=V2_PATH).json() == errors(*(("wrong_type", f"/{name}") for name in INIT))


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("path", COLLECTOR_PATHS[1:])
def test_an_init_request_takes_no_more_memory_than_its_size(shared: Stage, path: str) -> None:
    """16 MB of tiny values in an unread field take less than 80 MB of memory.

    Wire 1.6, Body limits.
    """
    body = gzip.compress(b'{"user_id": "ann", "x": [' + b"[]," * 5_000_000 + b"[]]}", 1)
    tracemalloc.start()
    try:
        assert send_signed(shared, body, path=path, encoding="gzip").status_code < 300
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_a_bad_init_of_too_many_values_is_413(shared: Stage) -> None:
    """The faults of an init of five million values are not looked for (Wire 1.6, Body limits)."""
    body = gzip.compress(b'{"user_id": 5, "x": [' + b"[]," * 5_000_000 + b"[]]}", 1)
    assert send_signed(shared, body, path=V2_PATH, encoding="gzip").status_code == 413


@pytest.mark.parametrize("user", [{}, {"user_id": ""}])
@BOTH
def test_without_a_user_id_there_is_no_experiment(
    make_stage: Callable[..., Stage], path: str, user: dict[str, str]
) -> None:
    """Without `user_id` the global configs are served, where everyone else is enrolled.

    Wire 1.13, Configs and experiments.
    """
    stage = make_stage(tenants=EVERYONE)
    enrolled, other = (send_signed(stage, json.dumps(body).encode(), path=path).json() for body in (INIT, OLDER | user))
    assert (enrolled["ab_id"], enrolled["configs"]) == ("exp1", [])
    assert {"ab_id", "ab_variant_id"}.isdisjoint(other)
    assert [config["key"] for config in other["configs"]] == ["difficulty"]


def test_version_2_init_serves_what_remote_init_serves(make_stage: Callable[..., Stage]) -> None:
    """Both routes answer one player with the same configs, ids and hash.

    The version 2 answer has `enabled` and `flags` besides. Wire 1.11, Version 2 init.
    """
    stage, body = make_stage(tenants=EVERYONE), json.dumps(INIT).encode()
    version_2, remote = (send_signed(stage, body, path=path).json() for path in (V2_PATH, REMOTE_PATH))
    assert version_2 == remote | {"enabled": True, "flags": []}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("configs_hash=", 201),
        ("configs_hash=stale", 201),
        ("interval_seconds=60", 201),
        ("interval_seconds=x", 400),
        ("interval_seconds=-1", 400),
        ("interval_seconds=%D9%A6%D9%A0", 400),  # 60 in Arabic-Indic digits
        ("config_vsn_supported=3", 201),
    ],
)
@BOTH
def test_both_inits_read_the_same_query_parameters(shared: Stage, path: str, query: str, status: int) -> None:
    """Query parameters of remote configs hold for version 2, too (Wire 1.11, Version 2 init)."""
    separator = "&" if "?" in path else "?"
    answer = send_signed(shared, json.dumps(INIT).encode(), path=f"{path}{separator}{query}")
    assert answer.status_code == status
    if "config_vsn_supported" in query:
        assert {"id", "vsn"} <= answer.json()["configs"][0].keys()


def test_a_disabled_game_is_told_so_in_both_answers(make_stage: Callable[..., Stage]) -> None:
    """`enabled` is false in the full and in the small answer (Wire 1.11, Version 2 init)."""
    stage = make_stage(tenants=CONFIG.replace('title = "Tile Saga"', 'title = "Tile Saga"\nenabled = false'))
    body = json.dumps(INIT).encode()
    full = send_signed(stage, body, path=V2_PATH)
    short = send_signed(stage, body, path=f"{V2_PATH}?configs_hash={full.json()['configs_hash']}")
    assert (full.json()["enabled"], short.json()["enabled"]) == (False, False)
    assert set(short.json()) == {"enabled", "server_ts", "flags"}


def test_server_ts_follows_the_clock_of_the_sandbox(stage: Stage) -> None:
    """`server_ts` is the time of the sandbox's clock, which a test can set.

    Wire 1.14, Server time.
    """
    stage.clock.freeze(NOW.replace(year=2027))
    answer = send_signed(stage, json.dumps(INIT).encode(), path=V2_PATH)
    assert answer.json()["server_ts"] == int(NOW.replace(year=2027).timestamp())


@pytest.mark.parametrize("body", [INIT, [INIT], INIT | {"build": "1.0"}])
@BOTH
def test_strict_mode_accepts_a_documented_init(strict_stage: Stage, path: str, body: Any) -> None:
    """An init with all documented fields gets 201 in strict mode (Wire 3.7, Strict validation)."""
    assert send_signed(strict_stage, json.dumps(body).encode(), path=path).status_code == 201


@BOTH
def test_strict_mode_names_every_missing_field_of_an_init(strict_stage: Stage, path: str) -> None:
    """In strict mode all five fields are required (Wire 3.7, Strict validation)."""
    answer = send_signed(strict_stage, b"{}", path=path)
    assert answer.status_code == 400
    assert {(error["error_type"], error["path"]) for error in answer.json()[0]["errors"]} == {
        ("missing_required_property", f"/{name}") for name in INIT
    }


@pytest.mark.shown_by(6)
@pytest.mark.parametrize(
    ("change", "error_type"),
    [
        ({"user_id": ""}, "wrong_length"),
        ({"user_id": "x" * 65}, "wrong_length"),
        ({"platform": "iOS"}, "not_in_enum"),
        ({"os_version": "17.0"}, "no_match"),
        ({"os_version": "ios 17\n"}, "no_match"),
        ({"sdk_version": "rest api v3"}, "no_match"),
        ({"random_salt": 7}, "wrong_type"),
        ({"random_salt": ""}, "wrong_length"),
        ({"build": None}, "wrong_type"),
        ({"build": "x" * 33}, "wrong_length"),
        ({"session_num": 3}, "no_extra_properties_allowed"),
    ],
)
@BOTH
def test_strict_mode_judges_the_form_of_each_field_of_an_init(
    strict_stage: Stage, path: str, change: dict[str, Any], error_type: str
) -> None:
    """In strict mode a field has its documented form, as in events.

    Wire 3.4, Platforms and versions; Wire 3.7, Strict validation.
    """
    (name,) = change
    answer = send_signed(strict_stage, json.dumps(INIT | change).encode(), path=path)
    assert (answer.status_code, answer.json()) == (400, errors((error_type, f"/{name}")))


@pytest.mark.parametrize(
    ("content_type", "error_type"),
    [
        (None, "missing_required_property"),
        ("text/plain", "no_match"),
        ("application/x-www-form-urlencoded", "no_match"),
        ("application/jsonp", "no_match"),
    ],
)
@pytest.mark.parametrize("path", COLLECTOR_PATHS)
def test_strict_mode_requires_the_content_type(
    strict_stage: Stage, path: str, content_type: str | None, error_type: str
) -> None:
    """In strict mode each route requires `Content-Type: application/json`, and nothing is collected else.

    Wire 1.3, Request headers; Wire 3.7, Strict validation.
    """
    body = json.dumps([event()] if path == EVENTS_PATH else INIT).encode()
    answer = send_signed(strict_stage, body, path=path, content_type=content_type)
    assert (answer.status_code, answer.json()) == (400, errors((error_type, "/Content-Type")))
    assert event_counts(strict_stage) == NO_EVENTS


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
@pytest.mark.parametrize("path", COLLECTOR_PATHS)
def test_strict_mode_accepts_every_spelling_of_the_content_type(
    strict_stage: Stage, path: str, content_type: str
) -> None:
    """Case and parameters of a media type do not count (Wire 1.3, Request headers)."""
    body = json.dumps([event()] if path == EVENTS_PATH else INIT).encode()
    assert send_signed(strict_stage, body, path=path, content_type=content_type).status_code in (200, 201)


@pytest.mark.parametrize("path", COLLECTOR_PATHS)
def test_lenient_mode_does_not_look_at_the_content_type(stage: Stage, path: str) -> None:
    """By default a request without `Content-Type` is accepted (Wire 1.3, Request headers)."""
    body = json.dumps([event()] if path == EVENTS_PATH else INIT).encode()
    assert send_signed(stage, body, path=path, content_type=None).status_code in (200, 201)


WITHOUT_CONFIGS = CONFIG.replace(
    """      [[organisation.studio.game.config]]
      key = "difficulty"
      value = "normal"
""",
    "",
)
CONTROL = CONFIG.replace(
    '      value = "normal"\n',
    """      value = "normal"
      [[organisation.studio.game.experiment]]
      id = "exp1"
        [[organisation.studio.game.experiment.variant]]
        id = "ctrl"
""",
)
"""A configuration with an experiment that hands out no configs."""


@pytest.mark.parametrize("body", [OLDER, [OLDER], INIT])
@pytest.mark.parametrize(
    ("tenants", "init_status", "status"),
    [
        (WITHOUT_CONFIGS, "auto", 200),
        (CONFIG, "auto", 201),
        (CONTROL, "auto", 201),
        (CONFIG, "200", 200),
        (WITHOUT_CONFIGS, "201", 201),
    ],
    ids=["no configs", "configs", "experiment", "always 200", "always 201"],
)
def test_version_2_init_is_200_unless_it_hands_something_out(
    make_stage: Callable[..., Stage], tenants: str, init_status: str, status: int, body: Any
) -> None:
    """Public clients accept only 200: 201 is for configs and experiments, and `--init-status` fixes either.

    The answer is in full with either status. Wire 1.11, Version 2 init.
    """
    stage = make_stage(tenants=tenants, init_status=init_status)
    in_experiment = tenants == CONTROL and body == INIT
    answer = send_signed(stage, json.dumps(body).encode(), path=V2_PATH)
    assert answer.status_code == status
    assert {"enabled", "server_ts", "flags", "configs", "configs_hash"} <= answer.json().keys()
    assert ("ab_id" in answer.json()) == in_experiment


@pytest.mark.parametrize(("init_status", "status", "has_configs"), [("auto", 200, False), ("201", 201, True)])
def test_an_init_with_a_current_hash_follows_the_status(
    make_stage: Callable[..., Stage], init_status: str, status: int, has_configs: bool
) -> None:
    """A client that takes 201 for new configs finds them in it, current or not (Wire 1.11, Version 2 init)."""
    stage, body = make_stage(init_status=init_status), json.dumps(INIT).encode()
    hash_of = send_signed(stage, body, path=V2_PATH).json()["configs_hash"]
    answer = send_signed(stage, body, path=f"{V2_PATH}?configs_hash={hash_of}")
    assert (answer.status_code, "configs" in answer.json()) == (status, has_configs)
