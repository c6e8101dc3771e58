"""Error responses of services that nobody here wrote: their words, values and keys."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse

from gamelens.cli.terminal.terminal_text import error_line
from gamelens.client.connection.error_responses import error_details, error_for, sent_value
from gamelens.client.events.collector_client import CollectorClient
from gamelens.client.sync_client import Client
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, ServiceError
from gamelens.local.connect import connect
from support.memory_keyring import MemoryKeyring
from support.plain_server import PlainRequest, plain_server
from support.scripted_service import KEY, Script

Make = Callable[..., Client]
Use = Callable[[MemoryKeyring], MemoryKeyring]
GAME = {"game_key": "0123456789abcdef0123456789abcdef", "secret_key": "0123456789abcdef0123456789abcdef01234567"}
VARIABLES = ("API_KEY", "METRICS_URL", "GAME_KEY", "SECRET_KEY", "COLLECTOR_URL", "ALLOW_HTTP", "REPLAY", "RECORD")

PAGE = b"""<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>h1 {color: red}</style>
<script>track("visit")</script></head><body><!-- padding --><center><h1>502 Bad Gateway</h1></center>
<p>the upstream &amp; its&nbsp;friend are away</p></body></html>"""
SHAPES: dict[str, tuple[bytes, str]] = {
    "documented": (b'{"error": "failed", "message": "the moon is full"}', "the moon is full"),
    "error text": (b'{"error": "the moon is full"}', "the moon is full"),
    "error object": (b'{"error": {"code": 17, "message": "the moon is full"}}', 'the moon is full {"code":17}'),
    "detail": (b'{"detail": "the moon is full"}', "the moon is full"),
    "problem": (
        b'{"type": "about:blank", "title": "Moon", "detail": "the moon is full"}',
        'the moon is full {"type":"about:blank","title":"Moon"}',
    ),
    "list of details": (
        b'{"detail": [{"loc": ["body", "interval"], "msg": "Field required", "input": {}}]}',
        'Field required {"loc":["body","interval"]}',
    ),
    "errors": (b'{"errors": [{"detail": "too long", "source": "interval"}]}', 'too long {"source":"interval"}'),
    "several": (b'{"errors": ["too long", "too late"]}', '["too long","too late"]'),
    "capitals": (b'{"Message": "Access denied"}', "Access denied"),
    "other keys": (b'{"code": 17, "grund": "Vollmond"}', '{"code":17,"grund":"Vollmond"}'),
    "the field as key": (b'{"interval": ["is required"]}', '{"interval":["is required"]}'),
    "text in quotes": (b'"the moon is full"', "the moon is full"),
    "a list": (b'["the moon is full"]', "the moon is full"),
    "text": (b"  the moon\n is full\n", "the moon is full"),
    "half JSON": (b'{"message": "the moon', '{"message": "the moon'),
    "deep JSON": (b"[" * 5000, "[" * 299 + "…"),
    "HTML": (PAGE, "502 Bad Gateway the upstream & its friend are away"),
    "XML": (b'<?xml version="1.0"?><E><Code>17</Code><M>full moon</M></E>', "17 full moon"),
    "controls": (b"the \x1b[31mmoon\x07 is\x00 full", "the [31mmoon is full"),
    "escaped controls": (b'{"message": "the \\u001b[31mmoon \\u202e is full"}', "the [31mmoon is full"),
    "not UTF-8": (b"pleine l\xfbne", "pleine l\ufffdne"),
    "nothing": (b"", "no reason given"),
    "an empty object": (b"{}", "no reason given"),
    "an empty sentence": (b'{"message": ""}', "no reason given"),
}


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a configuration folder of its own and no settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.delenv(f"GAMELENS_{name}", raising=False)


def answered(status: int, body: bytes, **headers: str) -> GamelensError:
    """Return the error of a server that answers so, and that asks to wait for an hour."""
    headers = {"retry_after": "3600"} | headers  # so that no answer is requested again
    with (
        plain_server(lambda request: request.answer(status, body, **headers)) as server,
        Client(api_key=KEY, metrics_url=server.url, cache=False) as lens,
        pytest.raises(GamelensError) as failed,
    ):
        lens.available()
    return failed.value


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_failure_keeps_the_words_of_any_service(shape: str) -> None:
    """The message of a 500 ends with the readable words of its body, whatever its shape."""
    body, words = SHAPES[shape]
    error = answered(500, body)
    assert isinstance(error, ServiceError)
    assert str(error) == f"the service answered 500: {words}"


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("shape", ["error text", "list of details", "other keys", "HTML", "text", "nothing"])
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_keeps_the_words_of_any_service(shape: str, status: int) -> None:
    """The message of a 400, 413 or 422 without a field has the status and the words."""
    body, words = SHAPES[shape]
    error = answered(status, body)
    assert isinstance(error, BadQuery)
    says = "" if shape == "nothing" else f": {words}"
    assert str(error) == f"request is refused by the service ({status}){says}."


@pytest.mark.parametrize(("status", "kind"), [(401, AuthError), (403, AuthError), (429, RateLimited)])
@pytest.mark.parametrize("shape", ["error object", "HTML", "text"])
def test_other_refusals_keep_the_words_too(status: int, kind: type[GamelensError], shape: str) -> None:
    """The messages of 401, 403 and 429 have the words of the service."""
    body, words = SHAPES[shape]
    error = answered(status, body)
    assert isinstance(error, kind)
    assert words in str(error)


@pytest.mark.parametrize("body", [b"moon " * 5000, b'{"message": "%s"}' % (b"moon " * 5000), b"<p>" + b"moon " * 5000])
def test_the_words_are_at_most_300_characters(body: bytes) -> None:
    """Longer words are cut at 300 characters, the ellipsis included."""
    words = str(answered(500, body)).partition(": ")[2]
    assert (len(words), words[-1]) == (300, "…")


def test_a_charset_is_obeyed() -> None:
    """Words in another charset are decoded as the response says."""
    body = "la lune est pleine, déjà".encode("utf-16")
    assert "pleine, déjà" in str(answered(500, body, content_type='text/plain; charset="UTF-16"'))


@pytest.mark.parametrize("charset", ["no-such", "base64", "undefined", "idna"])
def test_a_charset_that_is_none_is_ignored(charset: str) -> None:
    """Under an unknown charset the words are read as UTF-8."""
    assert "the moon" in str(answered(500, b"the moon", content_type=f"text/plain; charset={charset}"))


QUOTES: dict[str, tuple[bytes, str]] = {
    "text": (KEY.encode(), ""),
    "JSON": (json.dumps({"seen": {"key": [KEY]}}).encode(), ""),
    "a JSON key": (json.dumps({KEY: "is unknown"}).encode(), ""),
    "JSON escapes": (b'{"value": "%s", "field": "x"}' % "".join(f"\\u{ord(c):04x}" for c in KEY).encode(), ""),
    "HTML entities": (("<p>" + "".join(f"&#{ord(c)};" for c in KEY)).encode(), ""),
    "UTF-16": (KEY.encode("utf-16"), "text/plain; charset=utf-16"),
    "at the cut": (b"m" * 290 + KEY.encode(), ""),
}


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("status", [401, 422, 429, 500])
@pytest.mark.parametrize("quote", QUOTES)
def test_a_key_that_a_service_quotes_is_masked(quote: str, status: int) -> None:
    """No beginning of the key is in an error, in whatever encoding a service quotes it."""
    body, content_type = QUOTES[quote]
    error = answered(status, body, content_type=content_type)
    shown = f"{error!r} {vars(error)}"
    assert KEY[:5] not in shown
    assert "…" in shown


def test_an_error_page_without_end_is_read_in_part() -> None:
    """Of a 500 with 4 MB of text the beginning is read, and the status is kept."""
    assert str(answered(500, b"moon " * 800_000)).startswith("the service answered 500: moon moon")


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "gzip"])
def test_words_that_cannot_be_unpacked_leave_the_status(encoding: str) -> None:
    """A 401 whose body cannot be unpacked is an `AuthError` all the same."""
    assert isinstance(answered(401, b"\x8b\x02\x80not gzip", content_encoding=encoding), AuthError)


# -- fields and values ------------------------------------------------------------------------------------------------


def refused_query(make_lens: Make, script: Script, body: dict[str, Any], **arguments: Any) -> BadQuery:
    """Return the error of a query that the scripted service refuses with 422 and *body*."""
    script.answers["revenue"] = lambda _: JSONResponse(body, 422)
    with pytest.raises(BadQuery) as bad:
        make_lens().query("revenue", over=("2026-11-01", "2026-11-03"), **arguments)
    return bad.value


def test_a_refused_field_is_shown_with_the_value_that_was_sent(make_lens: Make, script: Script) -> None:
    """A service that names the field alone gets its value from the request."""
    error = refused_query(make_lens, script, {"field": "interval"})
    sent = script.bodies[0]["interval"]
    assert (error.field, error.value) == ("interval", sent)
    assert str(error) == f"interval = {sent!r} is refused by the service (422)."


def test_a_nested_field_is_found_in_the_request(make_lens: Make, script: Script) -> None:
    """`query.dimension` is looked up at its place in the request."""
    error = refused_query(make_lens, script, {"field": "query.dimension", "value": None}, by="platform")
    assert str(error) == "query.dimension = 'platform' is refused by the service (422)."


def test_a_field_that_was_not_sent_has_no_value(make_lens: Make, script: Script) -> None:
    """A field that the request does not have is named without a value, never with `None`."""
    error = refused_query(make_lens, script, {"field": "tenant", "reason": "which one?"})
    assert str(error) == "tenant is refused by the service (422): which one?."


def test_refused_ids_keep_the_words_and_say_where_ids_are(make_lens: Make, script: Script) -> None:
    """A refusal of `games` is not taken for an unknown id: the words stay, the list is named."""
    error = refused_query(make_lens, script, {"field": "games", "message": "too many games"}, games=["1", "2"])
    assert str(error) == "too many games. lens.games(over=...) has the ids that the service knows"
    error = refused_query(make_lens, script, {"field": "games"}, games=["1", "2"])
    assert str(error).startswith("games = ['1', '2'] is refused by the service (422). lens.games(over=...)")


def test_a_sentence_without_its_field_is_put_behind_it(make_lens: Make, script: Script) -> None:
    """A sentence that does not name the field follows the field and its value."""
    error = refused_query(make_lens, script, {"field": "granularity", "message": "must be coarser"})
    assert str(error) == "granularity = 'day' is refused by the service (422): must be coarser."


def test_a_value_in_the_address_is_found_too() -> None:
    """The value of a GET request is that of its parameter, all of a repeated one."""
    assert sent_value("games", [("games", "1"), ("limit", "3"), ("games", "2")], None) == "1,2"
    assert sent_value("limit", [("limit", "3")], None) == "3"


@pytest.mark.parametrize("body", [None, b"", b"\x1f\x8bgzip", b"[]", b'{"query": 3}'])
def test_a_body_without_the_field_has_no_value(body: bytes | None) -> None:
    """A value that cannot be found is None, which no message shows."""
    assert sent_value("query.limit", [], body) is None
    details = error_details(b'{"field": "query.limit"}')
    assert "None" not in str(error_for(422, details, lambda field: sent_value(field, [], body)))


# -- keys -------------------------------------------------------------------------------------------------------------


def refuse_key(request: PlainRequest) -> None:
    """Answer that the key is wrong."""
    request.answer(401, b'{"why": "never seen"}')


def key_error(**settings: Any) -> str:
    """Return the message of a client whose key is refused."""
    with plain_server(refuse_key) as server:
        lens = Client(metrics_url=server.url, cache=False, **settings)
        with pytest.raises(AuthError, match=r"answers 401.*never seen") as refused:
            lens.available()
    return str(refused.value)


ELSEWHERE = r"for another, pass api_key=, set GAMELENS_API_KEY, or write api_key into .*config\.toml"


def test_a_refused_key_from_an_argument_says_so() -> None:
    """A key from an argument is said to be, and the places for another are listed."""
    assert re.search(f"api_key is from the argument; {ELSEWHERE}", key_error(api_key=KEY))


def test_a_refused_key_from_the_environment_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key from the environment is said to be from its variable."""
    monkeypatch.setenv("GAMELENS_API_KEY", KEY)
    assert re.search(f"api_key is from the variable GAMELENS_API_KEY; {ELSEWHERE}", key_error())


def test_a_refused_key_from_the_file_names_it(tmp_path: Path) -> None:
    """A key from the config file is said to be from that file, by its path."""
    file = tmp_path / "gamelens" / "config.toml"
    file.parent.mkdir()
    file.write_text(f'api_key = "{KEY}"\n')
    assert f"api_key is from {file}; for another" in key_error()


def test_a_refused_key_from_the_keyring_says_so(use: Use) -> None:
    """A key from the keyring is said to be, with the command to replace it."""
    use(MemoryKeyring({"api_key": KEY}))
    message = key_error()
    assert "api_key is from the keyring; for another" in message
    assert "`keyring set gamelens api_key`" in message


def test_connect_keeps_the_source_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that `connect` looked up is not said to be an argument."""
    monkeypatch.setenv("GAMELENS_API_KEY", KEY)
    with plain_server(refuse_key) as server:
        lens = connect(metrics_url=server.url, cache=False)
        with pytest.raises(AuthError, match="from the variable GAMELENS_API_KEY"):
            lens.available()


def test_refused_keys_of_a_game_say_where_they_are_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 401 of the collector names the sources of game key and secret key."""
    monkeypatch.setenv("GAMELENS_GAME_KEY", GAME["game_key"])

    async def submit(url: str) -> None:
        async with CollectorClient(collector_url=url, secret_key=GAME["secret_key"]) as collector:
            await collector.submit(b"[]")

    with plain_server(refuse_key) as server, pytest.raises(AuthError) as refused:
        asyncio.run(submit(server.url))
    origins = "game_key is from the variable GAMELENS_GAME_KEY and secret_key is from the argument"
    assert f"{origins}; for another, pass game_key= and secret_key=, set" in str(refused.value)
    assert GAME["secret_key"] not in str(refused.value)


def test_the_error_is_one_line_on_the_terminal() -> None:
    """The message of a page is one line of printable characters."""
    line = error_line(answered(500, PAGE + b"\x1b[2J"))
    assert line.isprintable()


def test_an_answer_of_a_mock_transport_keeps_its_words() -> None:
    """A substitute for the network that returns whole responses is read like the network."""
    pool = httpx.MockTransport(
        lambda _: httpx.Response(500, json={"grund": "Vollmond"}, headers={"Retry-After": "3600"})
    )
    with pytest.raises(ServiceError, match="Vollmond"):
        Client(api_key=KEY, metrics_url="http://127.0.0.1:9", cache=False, transport=pool).available()
