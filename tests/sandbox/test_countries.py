"""Collector, What the service does 7: the country of an IP address, which itself is not stored; 8, X-Forwarded-For."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from conftest import Stage, event
from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.collector.geoip import GeoIp
from gamelens.wire.signing import sign
from sandbox.conftest import GAME_KEY, Call
from support.raw_sockets import SECRET

RECORDS = {
    "81.2.69.0/24": {"country": {"iso_code": "GB"}, "registered_country": {"iso_code": "FR"}},
    "89.160.20.0/24": {"country_code": "SE", "asn": "AS29518"},
    "175.16.199.0/24": {"country": "cn"},
    "202.196.224.0/24": {"country": {"names": {"en": "nowhere"}}},
    "216.160.83.0/24": {"country": {"iso_code": "United States"}},
    "192.0.2.0/25": {"country": {"iso_code": "FI"}},
    "2a02:d100::/32": {"country": {"iso_code": "PL"}},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny database in MaxMind's format."""
    path = tmp_path_factory.mktemp("geoip") / "tiny.mmdb"
    writer = MMDBWriter(ip_version=6, ipv4_compatible=True, database_type="Tiny-Country")
    for network, record in RECORDS.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return path


@pytest.fixture
def countries(database: Path) -> Iterator[GeoIp]:
    opened = GeoIp(database)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("address", "country"),
    [
        ("81.2.69.142", "GB"),
        ("89.160.20.112", "SE"),
        ("175.16.199.9", "CN"),
        ("2a02:d100::7", "PL"),
        ("::ffff:81.2.69.142", "GB"),
        ("202.196.224.1", None),
        ("216.160.83.56", None),
        ("8.8.8.8", None),
        ("127.0.0.1", None),
        ("10.1.2.3", None),
    ],
)
def test_the_database_says_where_an_address_is(countries: GeoIp, address: str, country: str | None) -> None:
    """As MaxMind's own files have it, and others in their format; two letters or nothing."""
    assert countries.of(address) == country


def test_the_database_comes_before_the_test_ranges(countries: GeoIp) -> None:
    """The sandbox package, Our choices."""
    assert [countries.of(address) for address in ("192.0.2.7", "192.0.2.200", "203.0.113.9")] == ["FI", "US", "JP"]


@pytest.mark.parametrize(
    ("text", "country"),
    [
        ("203.0.113.9", "JP"),
        ("203.0.113.9, 192.0.2.1, 198.51.100.1", "JP"),
        (" 203.0.113.9 ,192.0.2.1", "JP"),
        ("203.0.113.9:41234", "JP"),
        ("[2001:db8::1]:443", "NA"),
        ("2001:db8::1", "NA"),
        ("fe80::1%eth0", None),
        ("unknown, 203.0.113.9", None),
        ("203.0.113.999", None),
        ("', DROP", None),
        ("", None),
        (None, None),
    ],
)
def test_the_first_address_of_a_list_counts(text: str | None, country: str | None) -> None:
    """Proxies put the client's before their own."""
    assert GeoIp().of(text) == country


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, database: Path) -> None:
    """At the start, and by name."""
    (tmp_path / "words.mmdb").write_text("words " * 1000)
    (tmp_path / "cut.mmdb").write_bytes(database.read_bytes()[:-300])
    (tmp_path / "empty.mmdb").touch()
    for name in ("words.mmdb", "cut.mmdb", "empty.mmdb", "nowhere.mmdb", "."):
        with pytest.raises(Refused, match=str(tmp_path)):
            GeoIp(tmp_path / name)


def test_a_damaged_database_knows_nothing(tmp_path: Path, database: Path) -> None:
    """A request is not refused for it."""
    damaged = bytearray(database.read_bytes())
    start = damaged.index(b"iso_code")
    damaged[start - 40 : start + 40] = b"\xff" * 80
    (tmp_path / "damaged.mmdb").write_bytes(damaged)
    countries = GeoIp(tmp_path / "damaged.mmdb")
    assert {countries.of(str(ip_address("81.2.69.0") + last)) for last in range(256)} == {None}
    countries.close()


def test_up_refuses_what_is_no_database(tmp_path: Path) -> None:
    """contract, Commands: one clear line, exit code 1."""
    (tmp_path / "words.mmdb").write_text("words")
    arguments = ["sandbox", "up", "--state", str(tmp_path / "state"), "--geoip", str(tmp_path / "words.mmdb")]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 1
    assert "words.mmdb is no database" in done.output


# -- of requests ------------------------------------------------------------------------------------------------------


def submit_from(stage: Stage, peer: str, headers: dict[str, str] | None = None, **fields: Any) -> None:
    """Good and bad events and an init request from an address, which is that of the connection."""
    posts = [("events", [event(**({"country_code": None} | fields)), event(v=3)]), ("init", {"user_id": "ann"})]

    async def post() -> None:
        transport = httpx.ASGITransport(stage.sandbox.collector, client=(peer, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for route, content in posts:
                body = json.dumps(content).encode()
                sent = {"Authorization": sign(body, secret_key=SECRET), **(headers or {})}
                answer = await client.post(f"/v2/{GAME_KEY}/{route}", content=body, headers=sent)
                assert answer.status_code in (200, 400)

    asyncio.run(post())


FROM = [
    ("81.2.69.142", {}, {}, "GB"),
    ("81.2.69.142", {"X-Forwarded-For": "89.160.20.112"}, {}, "SE"),
    ("81.2.69.142", {"X-Forwarded-For": "89.160.20.112"}, {"country_code": "DK"}, "DK"),
    ("81.2.69.142", {"X-Forwarded-For": "unknown"}, {}, None),
    ("127.0.0.1", {}, {}, None),
    ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9, 127.0.0.1"}, {}, "JP"),
]


@pytest.fixture(scope="module")
def country_by_build(tmp_path_factory: pytest.TempPathFactory, database: Path) -> dict[str, str | None]:
    """What the metrics service has for an event of each row of FROM, whose build is its number."""
    stage = Stage(tmp_path_factory.mktemp("countries") / "state", geoip=database)
    for number, (peer, headers, fields, _) in enumerate(FROM):
        submit_from(stage, peer, headers, build=str(number), **fields)
    stage.process()
    query = {"type": "split", "dimensions": ["build", "country_code"]}
    answer = stage.ask("event_count", interval="2020-01-01/2030-01-01", granularity="all", query=query).json()
    stage.sandbox.close()
    return {row["event"]["build"]: row["event"]["country_code"] for row in answer["result"]}


@pytest.mark.parametrize("number", range(len(FROM)), ids=lambda number: " ".join(map(str, FROM[number])))
def test_the_event_comes_first_then_the_header_then_the_sender(
    country_by_build: dict[str, str | None], number: int
) -> None:
    """architecture, Decisions: country; Collector, Submitting on behalf of clients 2."""
    assert country_by_build[str(number)] == FROM[number][3]


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "89.160.20.112, 89.160.20.7"}])
def test_no_address_is_kept_anywhere(
    make_stage: Callable[..., Stage], database: Path, headers: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Collector, What the service does 7: not in the store, the lake, the live view, nor any log."""
    caplog.set_level(logging.DEBUG)
    stage = make_stage(geoip=database)
    submit_from(stage, "81.2.69.142", headers)
    stage.process()
    addresses = ("81.2.69.142", "89.160.20.112", "89.160.20.7")
    forms = [form for it in addresses for form in (it.encode(), ip_address(it).packed)]
    kept = {path: path.read_bytes() for path in stage.sandbox.options.state.rglob("*") if path.is_file()}
    assert any(b"GB" in content or b"SE" in content for content in kept.values())
    assert not [(path, form) for path, content in kept.items() for form in forms if form in content]
    assert not [it for it in addresses if it in caplog.text]


def test_no_address_is_shown(stage: Stage, console: Call) -> None:
    """Neither on the page nor behind it."""
    submit_from(stage, "81.2.69.142", {"X-Forwarded-For": "89.160.20.112"})
    shown = "".join(console("GET", path).text for path in ("/", "/events", "/summary"))
    assert len(console("GET", "/events").json()) == 2
    assert not [it for it in ("81.2.69", "89.160.20") if it in shown]


def test_a_forwarded_address_is_for_the_country_and_nothing_else(stage: Stage) -> None:
    """Issue, Bad input: whoever claims another address is answered just the same."""
    answers = [
        stage.post(f"/v2/{GAME_KEY}/events", b"[]", {"Authorization": signature} | forwarded)
        for signature in (sign(b"[]", secret_key=SECRET), "wrong")
        for forwarded in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-For": "x" * 5000})
    ]
    assert [answer.status_code for answer in answers] == [200] * 3 + [401] * 3
    assert len({(answer.status_code, answer.content, tuple(answer.headers.items())) for answer in answers}) == 2
