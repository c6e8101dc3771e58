"""Recording what the service answers, and answering from it (promise 15)."""

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

from conftest import Stage, event
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.recording import RecordedRequest, RecordingSender, ReplaySender
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import AuthError, BadQuery, GamelensError, NotRecorded, RateLimited, ServiceError
from gamelens.wire.intervals import Interval

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
    return HttpRequest(method="POST", path=f"/metrics/v1/metrics/{name}", body=json.dumps(body).encode())


def listing(path: str, *params: tuple[str, str]) -> HttpRequest:
    return HttpRequest(method="GET", path=f"/metrics/v1/{path}", params=params)


def send(door: Any, request: HttpRequest, tally: RequestStats | None = None) -> HttpResponse:
    return asyncio.run(door.send(request, tally))


def outcome(door: Any, request: HttpRequest) -> Any:
    """What comes of *request*: the JSON of the answer, or the kind and the words of the error."""
    try:
        return json.loads(send(door, request).body)
    except GamelensError as error:
        return type(error), str(error)


def recording(folder: Path, *answers: Response) -> RecordingSender:
    """Records a service that gives the *answers* in turn, the last for ever."""
    left = list(answers)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(scope, receive, send)

    pool = httpx.ASGITransport(app)
    transport = Transport("http://127.0.0.1", key=Secret(KEY), pool=pool, max_wait_s=0)
    return RecordingSender(transport, folder, now=lambda: NOW)


def recorded(folder: Path, answer: Any, request: HttpRequest | None = None) -> Path:
    """The one new file in *folder* once *answer* is recorded."""
    before = set(folder.glob("*"))
    outcome(
        recording(folder, answer if isinstance(answer, Response) else JSONResponse(answer)), request or metric(a="b")
    )
    (new,) = set(folder.glob("*")) - before
    return new


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "answers"


@pytest.fixture
def real(stage: Stage, folder: Path) -> RecordingSender:
    """Records the sandbox, where two players were in an hour."""
    stage.submit([event(), event(user_id="bob", country_code="NA", platform="android", os_version="android 14")])
    stage.process()
    pool = httpx.ASGITransport(stage.metrics_app)
    return RecordingSender(Transport("http://127.0.0.1", key=Secret("key-of-acme"), pool=pool), folder)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["type"])
def test_a_replay_answers_a_metric_as_the_service_did(
    real: RecordingSender, folder: Path, kind: dict[str, Any]
) -> None:
    request = metric("user_unique", interval=DAY, granularity="day", query=kind)
    answer = outcome(real, request)
    assert answer["result"]
    assert outcome(ReplaySender(folder), request) == answer


def everything(door: Any) -> Any:
    """All lists of the service behind *door*."""

    async def ask() -> Any:
        service = MetricsApi(door)
        day = Interval.parse(DAY)
        values = await service.dimension_values("platform", day)
        lists = (await service.metrics(), await service.dimensions(), await service.games(day))
        return await service.available(), values, lists

    return asyncio.run(ask())


def test_a_replay_answers_the_lists_as_the_service_did(real: RecordingSender, folder: Path) -> None:
    """Metrics, Endpoints."""
    lists = everything(real)
    assert lists[1] == ["android", "ios"]
    assert everything(ReplaySender(folder)) == lists


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
def test_a_replay_refuses_as_the_service_did(real: RecordingSender, folder: Path, request_: HttpRequest) -> None:
    refused = outcome(real, request_)
    assert refused[0] in (BadQuery, ServiceError)
    assert outcome(ReplaySender(folder), request_) == refused


def test_a_refusal_keeps_what_is_allowed(folder: Path) -> None:
    said = {"field": "query.dimension", "value": "x", "message": "no", "allowed": ["build"], "did_you_mean": "build"}
    recorded(folder, JSONResponse(said, 422))
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
def test_a_refusal_in_plain_words_is_kept_as_text(folder: Path, status: int) -> None:
    file = recorded(folder, PlainTextResponse("no “such” thing", status))
    assert json.loads(file.read_text("utf-8"))["answer"] == {"status": status, "text": "no “such” thing"}
    assert outcome(ReplaySender(folder), metric(a="b"))[0] in (BadQuery, ServiceError)


def test_what_a_request_counts_as_an_answer_is_answered_by_a_replay_too(folder: Path) -> None:
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
def test_what_would_not_come_again_is_not_recorded(folder: Path, answer: Response, error: type[Exception]) -> None:
    with pytest.raises(error):
        send(recording(folder, answer), metric())
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"[NaN]", b'["\xff"]', b"[" * 100_000])
def test_a_broken_answer_is_not_recorded(folder: Path, body: bytes) -> None:
    assert send(recording(folder, Response(body)), metric()).body == body
    assert list(folder.iterdir()) == []


def test_a_number_comes_back_digit_for_digit(folder: Path) -> None:
    body = b'{"result":[0.1,1e-7,1.50,123456789012345678901234567890,-0.0,5e-324]}'
    recorded(folder, Response(body))
    assert re.sub(rb"\s", b"", send(ReplaySender(folder), metric(a="b")).body) == body


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=60,
    )
)
def test_any_json_comes_back(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    recorded(folder, Response(json.dumps(content)))
    assert json.dumps(json.loads(send(ReplaySender(folder), metric(a="b")).body)) == json.dumps(content)


def test_json_that_is_nested_deeply_comes_back(folder: Path) -> None:
    body = b'{"a":["' + b"x" * 200 + b'",'
    recorded(folder, Response(body * 100 + b"1" + b"]}" * 100))
    assert json.loads(send(ReplaySender(folder), metric(a="b")).body) == json.loads(body * 100 + b"1" + b"]}" * 100)


def test_a_file_is_read_by_people_row_for_row(folder: Path) -> None:
    rows = [{"country_code": "US", "event_count": number, "mean": 0.5, "sum": 1.5} for number in range(40)]
    file = recorded(folder, {"result": [{"timestamp": "2026-11-20T00:00:00Z", "result": rows}]})
    lines = file.read_text("utf-8").splitlines()
    assert [json.loads(line.rstrip(",")) for line in lines if '"country_code"' in line] == rows


def test_a_file_says_what_was_asked_when_and_by_which_version(folder: Path) -> None:
    file = json.loads(recorded(folder, {"result": []}, metric(b=1, a=2)).read_text("utf-8"))
    assert re.fullmatch(r"\d+\.\d+.*", file.pop("version"))
    assert file == {
        "format": 1,
        "recorded_at": "2026-11-18T11:06:40+00:00",
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
def test_a_file_is_called_what_it_answers(request_: HttpRequest, name: str) -> None:
    assert re.fullmatch(rf"{name}-[0-9a-f]{{12}}\.json", RecordedRequest.of(request_).file_name)


def test_the_order_of_what_has_none_makes_no_difference(folder: Path) -> None:
    either = [{"platform": "ios"}, {"country_code": ["US", "NA"]}]
    request = metric(query=KINDS[2], games=["1", "2"], studios=["a", "b"], filter={"or": either})
    file = recorded(folder, {"result": []}, request)
    other = [{"country_code": ["NA", "US"]}, {"platform": "ios"}]
    same = metric(filter={"or": other}, studios=["b", "a"], games=["2", "1"], query=dict(reversed(KINDS[2].items())))
    assert RecordedRequest.of(same).file_name == file.name
    assert send(ReplaySender(folder), same).status == 200


def test_the_order_of_parameters_makes_no_difference(folder: Path) -> None:
    params = [("studios", "a"), ("interval", DAY), ("studios", "b")]
    recorded(folder, [], listing("games", *params))
    assert send(ReplaySender(folder), listing("games", *reversed(params))).body == b"[]"


def test_the_order_of_the_dimensions_of_a_split_does_make_a_difference(folder: Path) -> None:
    recorded(folder, {"result": []}, metric(query=KINDS[2]))
    turned = metric(query={"type": "split", "dimensions": ["platform", "country_code"]})
    with pytest.raises(NotRecorded):
        send(ReplaySender(folder), turned)


def test_recording_again_overwrites(folder: Path) -> None:
    again = recording(folder, JSONResponse([1]), JSONResponse([2]))
    send(again, metric())
    send(again, metric())
    assert json.loads(send(ReplaySender(folder), metric()).body) == [2]
    assert len(list(folder.iterdir())) == 1


def test_a_replay_sends_nothing(folder: Path) -> None:
    recorded(folder, {"result": []})
    tally = RequestStats()
    send(ReplaySender(folder), metric(a="b"), tally)
    assert (tally.requests, tally.retries) == (0, 0)


def test_a_file_may_be_renamed(folder: Path) -> None:
    file = recorded(folder, [7])
    file.rename(folder / "what the board saw.json")
    assert json.loads(send(ReplaySender(folder), metric(a="b")).body) == [7]


def test_what_stands_under_anothers_name_is_not_taken_for_it(folder: Path) -> None:
    recorded(folder, [1], metric(a="b")).rename(folder / RecordedRequest.of(metric(a="c")).file_name)
    with pytest.raises(NotRecorded):
        send(ReplaySender(folder), metric(a="c"))


def test_what_was_not_recorded_is_refused_with_the_nearest_that_was(folder: Path) -> None:
    recorded(folder, [], metric(interval="2026-11-01/P1W", query=KINDS[1]))
    recorded(folder, [], metric(interval="2026-10-01/P1W", query=KINDS[0]))
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), metric(interval="2026-11-02/P1W", query=KINDS[1]))
    asked = (
        'POST /metrics/v1/metrics/revenue {"interval":"2026-11-02/P1W",'
        '"query":{"dimension":"country_code","limit":5,"type":"group"}}'
    )
    assert refused.value.asked == asked
    assert refused.value.nearest == asked.replace("11-02", "11-01")


def test_the_nearest_is_of_the_same_path_where_there_is_one(folder: Path) -> None:
    recorded(folder, [], metric("new_users", interval="2025", query=KINDS[2]))
    recorded(folder, [], metric("ilrd_revenue", interval="2026", query=KINDS[0]))
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), metric("new_users", interval="2026", query=KINDS[0]))
    assert "new_users" in str(refused.value.nearest)


def test_the_nearest_of_a_path_nobody_asked_is_whatever_is_most_like_it(folder: Path) -> None:
    recorded(folder, [], listing("interval"))
    recorded(folder, [], listing("studios", ("interval", DAY)))
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), listing("games", ("interval", DAY)))
    assert refused.value.nearest == f"GET /metrics/v1/studios?interval={DAY}"


def test_a_refused_request_is_one_line_however_long_its_lists_and_strange_its_names(folder: Path) -> None:
    recorded(folder, [])
    with pytest.raises(NotRecorded) as refused:
        send(ReplaySender(folder), metric(games=[str(number) for number in range(5000)], filter={"build": "a\nb"}))
    assert "… 4994 more" in refused.value.asked
    assert "\n" not in refused.value.asked


@pytest.mark.parametrize("make", [lambda folder: None, Path.mkdir], ids=["missing", "empty"])
def test_a_folder_with_nothing_recorded_is_refused_by_name(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder)
    with pytest.raises(BadQuery, match=r"answers.*record=DIR"):
        ReplaySender(folder)


def test_a_file_where_the_folder_should_be_is_refused(folder: Path) -> None:
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
    file = recorded(folder, [1, 2, 3])
    file.write_text(damage(file.read_text()))
    file = file.rename(folder / (name or file.name))
    with pytest.raises(BadQuery, match=rf"{re.escape(str(file))}.*is damaged.*record again"):
        send(ReplaySender(folder), metric(a="b"))


def test_a_file_that_is_no_text_is_named(folder: Path) -> None:
    file = recorded(folder, ["x"])
    file.write_bytes(file.read_bytes().replace(b'"x"', b'"\xff"'))
    with pytest.raises(BadQuery, match=re.escape(file.name)):
        send(ReplaySender(folder), metric(a="b"))


def everything_in(folder: Path) -> bytes:
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
    file = recorded(folder, Response(ESCAPED % (quoted, quoted), status))
    (said,) = json.loads(file.read_bytes())["answer"]["body"].items()
    assert KEY not in said[0] + said[1]
    assert KEY.encode() not in everything_in(folder)


def test_a_key_that_a_refusal_quotes_is_in_no_error(folder: Path) -> None:
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
    send(recording(folder, JSONResponse([])), request_)
    assert everything_in(folder) == b""


def test_the_key_is_in_no_file_of_the_real_service(real: RecordingSender, folder: Path) -> None:
    everything(real)
    assert folder.exists()
    assert b"1001" in everything_in(folder)
    assert b"key-of-acme" not in everything_in(folder)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "..%2F..%2Fevil", "/etc/passwd", "C:\\evil", "a" * 5000, "CON", "a\0b", "~", "-rf", "Ω"],
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, folder: Path, name: str) -> None:
    request = metric(query={"type": "group", "dimension": name}, split_by=name)
    paths = (HttpRequest(method="GET", path=f"/metrics/v1/dimensions/{name}"), request)
    for each in paths:
        asked = RecordedRequest.of(each)
        assert re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,80}\.json", asked.file_name)
    recorded(folder, [1], request)
    assert [path.name for path in tmp_path.iterdir()] == ["answers"]
    assert json.loads(send(ReplaySender(folder), request).body) == [1]


@given(st.text(), st.text())
def test_names_that_differ_have_files_that_differ_in_more_than_case(one: str, other: str) -> None:
    names = [RecordedRequest.of(metric(query={"dimension": name})).file_name for name in (one, other)]
    assert (one == other) == (names[0] == names[1])
    assert [name.lower() for name in names] == names


def test_names_that_differ_in_case_only_have_files_of_their_own() -> None:
    assert (
        RecordedRequest.of(metric("Revenue")).file_name.lower()
        != RecordedRequest.of(metric("revenue")).file_name.lower()
    )


def test_several_may_record_the_same_while_others_replay_it(folder: Path) -> None:
    long, short = (
        {"result": [{"n": number, "who": who} for number in range(size)]} for who, size in (("a", 3000), ("b", 2))
    )
    recorded(folder, short)

    def record(content: Any) -> None:
        door = recording(folder, JSONResponse(content))
        for _ in range(30):
            send(door, metric(a="b"))

    def replay() -> list[Any]:
        return [json.loads(send(ReplaySender(folder), metric(a="b")).body) for _ in range(60)]

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(record, content) for content in (long, short)]
        seen = [answer for reading in [pool.submit(replay) for _ in range(2)] for answer in reading.result()]
        for future in writing:
            future.result()
    assert all(answer in (long, short) for answer in seen)
    assert len(list(folder.iterdir())) == 1


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process grows beyond *size* bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_that_cannot_be_finished_leaves_the_old_one(folder: Path) -> None:
    recorded(folder, ["old"])
    door = recording(folder, JSONResponse(["new"] * 100_000))
    with room_for(50_000), pytest.raises(BadQuery, match="cannot be written to: File too large"):
        send(door, metric(a="b"))
    assert json.loads(send(ReplaySender(folder), metric(a="b")).body) == ["old"]
    assert len(list(folder.iterdir())) == 1


def test_neither_repr_says_more_than_the_folder(folder: Path) -> None:
    door = recording(folder, JSONResponse([]))
    send(door, metric())
    assert repr(door) == f"RecordingSender({str(folder)!r})"
    assert repr(ReplaySender(folder)) == f"ReplaySender({str(folder)!r})"
