"""Recording the answers of a service in a folder, and replaying them."""

from __future__ import annotations

import asyncio
import json
import re
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.recording import RecordedRequest, RecordingSender, ReplaySender
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import AuthError, BadQuery, GamelensError, NotRecorded, RateLimited, ServiceError
from gamelens.wire.intervals import Interval
from support.game_events import event
from support.hypothesis_profiles import examples
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

KEY = "sesame/0123456789"
NOW = 1_795_000_000.0
DAY = "2026-11-20T00:00Z/2026-11-20T10:00Z"
KINDS: list[dict[str, Any]] = [
    {"type": "timeseries"},
    {"type": "group", "dimension": "country_code", "limit": 5},
    {"type": "split", "dimensions": ["country_code", "platform"]},
]


def metric(name: str = "revenue", **body: Any) -> HttpRequest:
    """Return a metric request."""
    return HttpRequest(method="POST", path=f"/metrics/v1/metrics/{name}", body=json.dumps(body).encode())


def listing(path: str, *params: tuple[str, str]) -> HttpRequest:
    """Return a list request."""
    return HttpRequest(method="GET", path=f"/metrics/v1/{path}", params=params)


def send(
    sender: RecordingSender | ReplaySender, request: HttpRequest, tally: RequestStats | None = None
) -> HttpResponse:
    """Return the response of *door* to *request*."""
    return asyncio.run(sender.send(request, tally))


def outcome(sender: RecordingSender | ReplaySender, request: HttpRequest) -> Any:
    """Return the JSON of the response, or type and message of the error."""
    try:
        return json.loads(send(sender, request).body)
    except GamelensError as error:
        return type(error), str(error)


def recording(folder: Path, *answers: Response) -> RecordingSender:
    """Return a recording of a service that gives *answers* in turn, the last for ever."""
    remaining = list(answers)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (remaining.pop(0) if len(remaining) > 1 else remaining[0])(scope, receive, send)

    pool = httpx.ASGITransport(app)
    transport = Transport("http://127.0.0.1", key=Secret(KEY), pool=pool, max_wait_s=0)
    return RecordingSender(transport, folder, now=lambda: NOW)


def recorded(folder: Path, answer: object, request: HttpRequest | None = None) -> Path:
    """Record *answer* and return its new file in *folder*."""
    before = set(folder.glob("*"))
    outcome(
        recording(folder, answer if isinstance(answer, Response) else JSONResponse(answer)), request or metric(a="b")
    )
    (new,) = set(folder.glob("*")) - before
    return new


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the path of a folder for recordings, which does not exist yet."""
    return tmp_path / "answers"


@pytest.fixture(scope="module")
def two_players(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox with an hour of events of two players."""
    stage = Stage(tmp_path_factory.mktemp("two") / "state")
    stage.submit([event(), event(user_id="bob", country_code="NA", platform="android", os_version="android 14")])
    stage.process()
    yield stage
    stage.sandbox.close()


@pytest.fixture
def sandbox_recording(two_players: Stage, folder: Path) -> RecordingSender:
    """Return a recording of the sandbox."""
    pool = httpx.ASGITransport(two_players.metrics_app)
    return RecordingSender(Transport("http://127.0.0.1", key=Secret("key-of-acme"), pool=pool), folder)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["type"])
def test_a_replay_answers_a_metric_as_the_service_did(
    sandbox_recording: RecordingSender, folder: Path, kind: dict[str, Any]
) -> None:
    """A replayed metric has the JSON of the service, for each query kind."""
    request = metric("user_unique", interval=DAY, granularity="day", query=kind)
    answer = outcome(sandbox_recording, request)
    assert answer["result"]
    assert outcome(ReplaySender(folder), request) == answer


def all_lists(sender: RecordingSender | ReplaySender) -> tuple[Interval, list[str], tuple[object, ...]]:
    """Return all lists of the service behind *door*."""

    async def ask() -> tuple[Interval, list[str], tuple[object, ...]]:
        service = MetricsApi(sender)
        day = Interval.parse(DAY)
        values = await service.dimension_values("platform", day)
        lists = (await service.metrics(), await service.dimensions(), await service.games(day))
        return await service.available(), values, lists

    return asyncio.run(ask())


def test_a_replay_answers_the_lists_as_the_service_did(sandbox_recording: RecordingSender, folder: Path) -> None:
    """A replay returns interval and lists unchanged (Wire 2.11, Lists)."""
    lists = all_lists(sandbox_recording)
    assert lists[1] == ["android", "ios"]
    assert all_lists(ReplaySender(folder)) == lists


@pytest.mark.parametrize(
    "request_",
    [
        metric("revenu", interval=DAY, query=KINDS[0]),
        metric("revenue", interval="yesterday", query=KINDS[0]),
        metric("revenue", interval=DAY, query={"type": "group", "dimension": "platfrom"}),
        listing("dimensions/platfrom", ("interval", DAY)),
    ],
    ids=["metric", "interval", "dimension", "values"],
)
def test_a_replay_refuses_as_the_service_did(
    sandbox_recording: RecordingSender, folder: Path, request_: HttpRequest
) -> None:
    """A refused request is refused by the replay with the same error and message."""
    refused = outcome(sandbox_recording, request_)
    assert refused[0] in (BadQuery, ServiceError)
    assert outcome(ReplaySender(folder), request_) == refused


def test_a_replayed_refusal_has_all_its_details(folder: Path) -> None:
    """A replayed 422 has field, value, allowed names and suggestion (Wire 2.12, Refusals)."""
    refusal = {"field": "query.dimension", "value": "x", "message": "no", "allowed": ["build"], "did_you_mean": "build"}
    recorded(folder, JSONResponse(refusal, 422))
    with pytest.raises(BadQuery) as bad:
        send(ReplaySender(folder), metric(a="b"))
    error = bad.value
    assert (error.field, error.value, error.allowed, error.did_you_mean) == (
        "query.dimension",
        "x",
        ("build",),
        "build",
    )


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_refusal_in_plain_text_is_recorded_as_text(folder: Path, status: int) -> None:
    """A refusal whose body is not JSON is recorded as text."""
    file = recorded(folder, PlainTextResponse("no “such” thing", status))
    assert json.loads(file.read_text("utf-8"))["answer"] == {"status": status, "text": "no “such” thing"}
    assert outcome(ReplaySender(folder), metric(a="b"))[0] in (BadQuery, ServiceError)


def test_a_status_accepted_by_the_request_is_replayed(folder: Path) -> None:
    """A 404 that the request accepts is replayed as a response, not raised."""
    request = HttpRequest(method="GET", path="/metrics/v1/x", expected_statuses=frozenset({200, 404}))
    recorded(folder, JSONResponse({"not": "there"}, 404), request)
    assert send(ReplaySender(folder), request).status == 404


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        *[(JSONResponse({"message": "no"}, status), AuthError) for status in (401, 403)],
        (JSONResponse({}, 429), RateLimited),
        *[(JSONResponse({}, status), ServiceError) for status in (302, 500, 502, 503, 504)],
    ],
    ids=lambda value: getattr(value, "status_code", ""),
)
def test_temporary_failures_are_not_recorded(folder: Path, answer: Response, error: type[Exception]) -> None:
    """401, 403, 429, redirects and 5xx are raised and not recorded."""
    with pytest.raises(error):
        send(recording(folder, answer), metric())
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("body", [b"", b"{", b"[NaN]", b'["\xff"]', b"[" * 100_000])
def test_a_broken_answer_is_not_recorded(folder: Path, body: bytes) -> None:
    """A 200 whose body is not JSON is passed on and not recorded."""
    assert send(recording(folder, Response(body)), metric()).body == body
    assert list(folder.iterdir()) == []


def test_numbers_are_replayed_digit_for_digit(folder: Path) -> None:
    """Numbers keep their spelling: no digit is lost in a recording."""
    body = b'{"result":[0.1,1e-7,1.50,123456789012345678901234567890,-0.0,5e-324]}'
    recorded(folder, Response(body))
    assert re.sub(rb"\s", b"", send(ReplaySender(folder), metric(a="b")).body) == body


@settings(max_examples=examples(40), deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=60,
    )
)
def test_any_json_is_replayed_unchanged(tmp_path_factory: pytest.TempPathFactory, content: object) -> None:
    """Any JSON document is replayed with equal content."""
    folder = tmp_path_factory.mktemp("any")
    recorded(folder, Response(json.dumps(content)))
    assert json.dumps(json.loads(send(ReplaySender(folder), metric(a="b")).body)) == json.dumps(content)


def test_deeply_nested_json_is_replayed_unchanged(folder: Path) -> None:
    """JSON of 200 levels is replayed with equal content."""
    body = b'{"a":["' + b"x" * 200 + b'",'
    recorded(folder, Response(body * 100 + b"1" + b"]}" * 100))
    assert json.loads(send(ReplaySender(folder), metric(a="b")).body) == json.loads(body * 100 + b"1" + b"]}" * 100)


def test_a_file_has_one_line_for_each_row(folder: Path) -> None:
    """A recorded file has each row of a result on a line of its own."""
    rows = [{"country_code": "US", "event_count": number, "mean": 0.5, "sum": 1.5} for number in range(40)]
    file = recorded(folder, {"result": [{"timestamp": "2026-11-20T00:00:00Z", "result": rows}]})
    lines = file.read_text("utf-8").splitlines()
    assert [json.loads(line.rstrip(",")) for line in lines if '"country_code"' in line] == rows


def test_a_file_has_request_time_and_version(folder: Path) -> None:
    """A file has format, version, time, service, request and answer."""
    file = json.loads(recorded(folder, {"result": []}, metric(b=1, a=2)).read_text("utf-8"))
    assert re.fullmatch(r"\d+\.\d+.*", file.pop("version"))
    assert file == {
        "format": 1,
        "recorded_at": "2026-11-18T11:06:40+00:00",
        "service": "http://127.0.0.1",
        "request": {"method": "POST", "path": "/metrics/v1/metrics/revenue", "params": [], "body": {"a": 2, "b": 1}},
        "answer": {"status": 200, "body": {"result": []}},
    }


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (metric(query=KINDS[0]), "revenue-timeseries"),
        (metric(query=KINDS[1]), "revenue-group-country_code"),
        (metric(query=KINDS[2]), "revenue-split-country_code-platform"),
        (metric("conversion", split_by="platform"), "conversion-platform"),
        (metric("ARPU", query=KINDS[0]), "arpu-timeseries"),
        (listing("metrics"), "metrics"),
        (listing("dimensions/ad_type", ("interval", DAY)), "dimensions-ad_type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_is_named_after_its_request(request_: HttpRequest, name: str) -> None:
    """A file name has metric or list, kind and dimensions, and a digest."""
    assert re.fullmatch(rf"{name}-[0-9a-f]{{12}}\.json", RecordedRequest.of(request_).file_name)


def test_the_order_of_games_and_filter_members_makes_no_difference(folder: Path) -> None:
    """Requests that differ only in unordered parts share a file."""
    either = [{"platform": "ios"}, {"country_code": ["US", "NA"]}]
    request = metric(query=KINDS[2], games=["1", "2"], studios=["a", "b"], filter={"or": either})
    file = recorded(folder, {"result": []}, request)
    other = [{"country_code": ["NA", "US"]}, {"platform": "ios"}]
    same = metric(filter={"or": other}, studios=["b", "a"], games=["2", "1"], query=dict(reversed(KINDS[2].items())))
    assert RecordedRequest.of(same).file_name == file.name
    assert send(ReplaySender(folder), same).status == 200


def test_the_one_granularity_of_retention_makes_no_difference(folder: Path) -> None:
    """A recording of retention by day replays for a request that names no granularity (Wire 2.5, Query body)."""
    body = {"interval": "2026-11-01/P1D", "split_by": "platform", "since_days_ago": 1}
    path = "/metrics/v1/metrics/retention_retro"
    requests = [
        HttpRequest(method="POST", path=path, body=json.dumps(body | more).encode())
        for more in ({"granularity": "day"}, {}, {"granularity": "week"})
    ]
    file = recorded(folder, {"result": []}, requests[0])
    names = [RecordedRequest.of(request).file_name for request in requests]
    assert [name == file.name for name in names] == [True, True, False]


def test_the_form_of_an_interval_makes_no_difference(folder: Path) -> None:
    """Start and end, as earlier versions sent them, or start and duration."""
    recorded(folder, {"result": []}, metric(interval="2026-11-01T00:00Z/2026-11-08T00:00Z"))
    assert send(ReplaySender(folder), metric(interval="2026-11-01/P7D")).status == 200
    recorded(folder, [], listing("games", ("interval", "2026-11-01/P7D")))
    assert send(ReplaySender(folder), listing("games", ("interval", "2026-11-01/2026-11-08"))).body == b"[]"


def test_the_order_of_parameters_makes_no_difference(folder: Path) -> None:
    """The order of query parameters does not matter."""
    params = [("studios", "a"), ("interval", DAY), ("studios", "b")]
    recorded(folder, [], listing("games", *params))
    assert send(ReplaySender(folder), listing("games", *reversed(params))).body == b"[]"


def test_the_order_of_split_dimensions_makes_a_difference(folder: Path) -> None:
    """A split by the same dimensions in another order is another request."""
    recorded(folder, {"result": []}, metric(query=KINDS[2]))
    turned = metric(query={"type": "split", "dimensions": ["platform", "country_code"]})
    with pytest.raises(NotRecorded):
        send(ReplaySender(folder), turned)


def test_recording_again_overwrites(folder: Path) -> None:
    """A request recorded twice has one file with the last answer."""
    again = recording(folder, JSONResponse([1]), JSONResponse([2]))
    send(again, metric())
    send(again, metric())
    assert json.loads(send(ReplaySender(folder), metric()).body) == [2]
    assert len(list(folder.iterdir())) == 1


def test_a_replay_sends_nothing(folder: Path) -> None:
    """A replayed request counts as 0 requests and 0 retries."""
    recorded(folder, {"result": []})
    tally = RequestStats()
    send(ReplaySender(folder), metric(a="b"), tally)
    assert (tally.requests, tally.retries) == (0, 0)


def test_a_file_may_be_renamed(folder: Path) -> None:
    """A replay finds a recording under any file name."""
    file = recorded(folder, [7])
    file.rename(folder / "what the board saw.json")
    assert json.loads(send(ReplaySender(folder), metric(a="b")).body) == [7]


def test_a_file_under_the_name_of_another_request_is_not_used(folder: Path) -> None:
    """A replay checks the request in the file, not only its name."""
    recorded(folder, [1], metric(a="b")).rename(folder / RecordedRequest.of(metric(a="c")).file_name)
    with pytest.raises(NotRecorded):
        send(ReplaySender(folder), metric(a="c"))


def test_a_request_not_recorded_names_the_nearest_recorded_one(folder: Path) -> None:
    """`NotRecorded` has the request and the most similar recorded one."""
    recorded(folder, [], metric(interval="2026-11-01/P1W", query=KINDS[1]))
    recorded(folder, [], metric(interval="2026-10-01/P1W", query=KINDS[0]))
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), metric(interval="2026-11-02/P1W", query=KINDS[1]))
    text = (
        'POST /metrics/v1/metrics/revenue {"interval":"2026-11-02T00:00Z/2026-11-09T00:00Z",'
        '"query":{"dimension":"country_code","limit":5,"type":"group"}}'
    )
    assert refused.value.asked == text
    assert refused.value.nearest == text.replace("11-02", "11-01").replace("11-09", "11-08")


def test_the_nearest_request_has_the_same_path_if_possible(folder: Path) -> None:
    """A recorded request for the same metric is nearer than any other."""
    recorded(folder, [], metric("new_users", interval="2025", query=KINDS[2]))
    recorded(folder, [], metric("ilrd_revenue", interval="2026", query=KINDS[0]))
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), metric("new_users", interval="2026", query=KINDS[0]))
    assert "new_users" in str(refused.value.nearest)


def test_the_nearest_request_of_an_unrecorded_path_is_the_most_similar(folder: Path) -> None:
    """Without a recording of the path the most similar request is named."""
    recorded(folder, [], listing("interval"))
    recorded(folder, [], listing("studios", ("interval", DAY)))
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), listing("games", ("interval", DAY)))
    assert refused.value.nearest == f"GET /metrics/v1/studios?interval={DAY}"


def test_a_request_in_an_error_is_one_short_line(folder: Path) -> None:
    """Long lists are cut and line breaks escaped in `NotRecorded`."""
    recorded(folder, [])
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), metric(games=[str(number) for number in range(5000)], filter={"build": "a\nb"}))
    assert "… 4994 more" in refused.value.asked
    assert "\n" not in refused.value.asked


@pytest.mark.parametrize("make", [lambda folder: None, Path.mkdir], ids=["missing", "empty"])
def test_a_folder_with_nothing_recorded_is_refused_by_name(folder: Path, make: Callable[[Path], None]) -> None:
    """A missing or empty folder is a `BadQuery` that shows how to record."""
    make(folder)
    with pytest.raises(BadQuery, match=r"answers.*record=DIR"):
        ReplaySender(folder)


def test_a_file_where_the_folder_should_be_is_refused(folder: Path) -> None:
    """Recording to the path of a file is a `BadQuery`."""
    folder.write_text("")
    with pytest.raises(BadQuery, match="cannot be written to"):
        recording(folder, JSONResponse([]))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"status": 200', '"status": "fine"'),
        lambda text: "[" * 100_000,
    ],
    ids=["half", "empty", "another format", "no status", "deep"],
)
@pytest.mark.parametrize("name", [None, "renamed.json"])
def test_a_damaged_file_is_named(folder: Path, damage: Callable[[str], str], name: str | None) -> None:
    """A damaged recording is a `BadQuery` with its path and the advice to record again."""
    file = recorded(folder, [1, 2, 3])
    file.write_text(damage(file.read_text()))
    file = file.rename(folder / (name or file.name))
    with pytest.raises(BadQuery, match=rf"{re.escape(str(file))}.*is damaged.*record again"):
        send(ReplaySender(folder), metric(a="b"))


def test_a_file_that_is_no_utf_8_is_named(folder: Path) -> None:
    """A recording that is not UTF-8 is a `BadQuery` with its name."""
    file = recorded(folder, ["x"])
    file.write_bytes(file.read_bytes().replace(b'"x"', b'"\xff"'))
    with pytest.raises(BadQuery, match=re.escape(file.name)):
        send(ReplaySender(folder), metric(a="b"))


def bytes_in(folder: Path) -> bytes:
    """Return names and contents of all files in *folder*."""
    return b"\n".join(path.name.encode() + b"\n" + path.read_bytes() for path in folder.rglob("*"))


ESCAPED = '{"%s": "the key is %s."}'


@pytest.mark.parametrize(
    "quoted",
    [
        KEY,
        KEY.replace("/", r"\/"),
        "".join(f"\\u{ord(letter):04x}" for letter in KEY),
        r"\"" + KEY.replace("s", r"\u0073") + r"\\",
    ],
)
@pytest.mark.parametrize("status", [200, 422])
def test_a_key_that_the_service_quotes_is_in_no_file(folder: Path, quoted: str, status: int) -> None:
    """An API key quoted in an answer is masked, however its characters are escaped."""
    file = recorded(folder, Response(ESCAPED % (quoted, quoted), status))
    (member,) = json.loads(file.read_bytes())["answer"]["body"].items()
    assert KEY not in member[0] + member[1]
    assert KEY.encode() not in bytes_in(folder)


def test_a_key_that_a_refusal_quotes_is_in_no_error(folder: Path) -> None:
    """An API key quoted in a refusal is masked in message and field."""
    with pytest.raises(BadQuery) as bad:
        send(recording(folder, JSONResponse({"message": f"not with {KEY}", "field": KEY}, 422)), metric())
    assert KEY not in str(bad.value) + bad.value.field


@pytest.mark.parametrize(
    "request_",
    [
        metric(filter={"build": KEY}),
        listing("games", ("studios", KEY)),
        listing(f"dimensions/{KEY}"),
        listing(f"dimensions/{KEY.replace('/', '%2F')}"),
    ],
    ids=["body", "parameter", "path", "quoted path"],
)
def test_a_request_that_holds_the_key_is_not_recorded(folder: Path, request_: HttpRequest) -> None:
    """A request with the API key in body, parameter or path is not recorded."""
    send(recording(folder, JSONResponse([])), request_)
    assert bytes_in(folder) == b""


def test_the_key_is_in_no_file_of_the_sandbox(sandbox_recording: RecordingSender, folder: Path) -> None:
    """Recordings of the sandbox hold its data and not the API key."""
    all_lists(sandbox_recording)
    assert folder.exists()
    assert b"1001" in bytes_in(folder)
    assert b"key-of-acme" not in bytes_in(folder)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "..%2F..%2Fevil", "/etc/passwd", "C:\\evil", "a" * 5000, "CON", "a\0b", "~", "-rf", "Ω"],
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, folder: Path, name: str) -> None:
    """No dimension or path makes a file name outside the folder."""
    request = metric(query={"type": "group", "dimension": name}, split_by=name)
    paths = (HttpRequest(method="GET", path=f"/metrics/v1/dimensions/{name}"), request)
    for each in paths:
        request_ = RecordedRequest.of(each)
        assert re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,80}\.json", request_.file_name)
    recorded(folder, [1], request)
    assert [path.name for path in tmp_path.iterdir()] == ["answers"]
    assert json.loads(send(ReplaySender(folder), request).body) == [1]


@given(st.text(), st.text())
def test_different_requests_have_file_names_that_differ_without_case(one: str, other: str) -> None:
    """File names are lower case and differ if and only if the requests do."""
    names = [RecordedRequest.of(metric(query={"dimension": name})).file_name for name in (one, other)]
    assert (one == other) == (names[0] == names[1])
    assert [name.lower() for name in names] == names


def test_requests_that_differ_in_case_have_files_of_their_own() -> None:
    """Requests whose names differ only in case have different files."""
    assert (
        RecordedRequest.of(metric("Revenue")).file_name.lower()
        != RecordedRequest.of(metric("revenue")).file_name.lower()
    )


@pytest.mark.wide
def test_recording_and_replaying_at_once_reads_whole_answers(folder: Path) -> None:
    """A replay never reads a half-written file."""
    long, short = (
        {"result": [{"n": number, "who": who} for number in range(size)]} for who, size in (("a", 3000), ("b", 2))
    )
    recorded(folder, short)

    def record(content: object) -> None:
        sender = recording(folder, JSONResponse(content))
        for _ in range(30):
            send(sender, metric(a="b"))

    def replay() -> list[object]:
        return [json.loads(send(ReplaySender(folder), metric(a="b")).body) for _ in range(60)]

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(record, content) for content in (long, short)]
        seen = [answer for reading in [pool.submit(replay) for _ in range(2)] for answer in reading.result()]
        for future in writing:
            future.result()
    assert all(answer in (long, short) for answer in seen)
    assert len(list(folder.iterdir())) == 1


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Keep files of this process from growing beyond *size* bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_that_cannot_be_finished_leaves_the_old_one(folder: Path) -> None:
    """If the disk is full the previous recording stays and no partial file is left."""
    recorded(folder, ["old"])
    sender = recording(folder, JSONResponse(["new"] * 100_000))
    with file_size_limit(50_000), pytest.raises(BadQuery, match="cannot be written to: File too large"):
        send(sender, metric(a="b"))
    assert json.loads(send(ReplaySender(folder), metric(a="b")).body) == ["old"]
    assert len(list(folder.iterdir())) == 1


def test_the_reprs_show_only_the_folder(folder: Path) -> None:
    """The reprs of a recording and a replay show the folder and no key."""
    sender = recording(folder, JSONResponse([]))
    send(sender, metric())
    assert repr(sender) == f"RecordingSender({str(folder)!r})"
    assert repr(ReplaySender(folder)) == f"ReplaySender({str(folder)!r})"
