"""The country of an event from an IP address, which is not stored (Wire 1.17, Country)."""

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
from netaddr import IPSet  # type: ignore[import-untyped]

from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.collector.geoip import GeoIp
from gamelens.wire.signing import sign
from support.app_requests import Call
from support.collector_requests import GAME_KEY, SECRET_KEY
from support.game_events import event
from support.sandbox_stage import Stage

RECORDS: dict[str, dict[str, Any]] = {
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
    """Write a small database in MaxMind's format."""
    path = tmp_path_factory.mktemp("geoip") / "tiny.mmdb"
    writer = MMDBWriter(ip_version=6, ipv4_compatible=True, database_type="Tiny-Country")
    for network, record in RECORDS.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return path


@pytest.fixture
def geoip(database: Path) -> Iterator[GeoIp]:
    """Open the small database."""
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
def test_a_database_gives_the_country_of_an_address(geoip: GeoIp, address: str, country: str | None) -> None:
    """Records of several layouts give two capitals, and other values give no country.

    Wire 1.17, Country.
    """
    assert geoip.of(address) == country


def test_the_database_comes_before_the_test_ranges(geoip: GeoIp) -> None:
    """An address in the database has its country, the test ranges have theirs.

    Wire 1.17, Country.
    """
    assert [geoip.of(address) for address in ("192.0.2.7", "192.0.2.200", "203.0.113.9")] == ["FI", "US", "JP"]


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
    """The first address of `X-Forwarded-For` counts, as proxies append their own.

    Wire 1.17, Country.
    """
    assert GeoIp().of(text) == country


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, database: Path) -> None:
    """A file that is missing, cut or no database is refused at the start, by name."""
    (tmp_path / "words.mmdb").write_text("words " * 1000)
    (tmp_path / "cut.mmdb").write_bytes(database.read_bytes()[:-300])
    (tmp_path / "empty.mmdb").touch()
    for name in ("words.mmdb", "cut.mmdb", "empty.mmdb", "nowhere.mmdb", "."):
        with pytest.raises(Refused, match=str(tmp_path)):
            GeoIp(tmp_path / name)


def test_a_damaged_database_gives_no_country(tmp_path: Path, database: Path) -> None:
    """A damaged record gives no country and no error."""
    damaged = bytearray(database.read_bytes())
    start = damaged.index(b"iso_code")
    damaged[start - 40 : start + 40] = b"\xff" * 80
    (tmp_path / "damaged.mmdb").write_bytes(damaged)
    geoip = GeoIp(tmp_path / "damaged.mmdb")
    assert {geoip.of(str(ip_address("81.2.69.0") + last)) for last in range(256)} == {None}
    geoip.close()


def test_sandbox_up_refuses_a_file_that_is_no_database(tmp_path: Path) -> None:
    """`sandbox up --geoip` exits with 1 and a line that names the bad file."""
    (tmp_path / "words.mmdb").write_text("words")
    arguments = ["sandbox", "up", "--state", str(tmp_path / "state"), "--geoip", str(tmp_path / "words.mmdb")]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 1
    assert "words.mmdb is not a GeoIP database" in done.output


# -- of requests ------------------------------------------------------------------------------------------------------


def submit_events_and_init(stage: Stage, peer: str, headers: dict[str, str] | None = None, **fields: Any) -> None:
    """Submit a good event, a bad one and an init over a connection from *peer*."""
    posts = [("events", [event(**({"country_code": None} | fields)), event(v=3)]), ("init", {"user_id": "ann"})]

    async def post() -> None:
        transport = httpx.ASGITransport(stage.sandbox.collector, client=(peer, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for route, content in posts:
                body = json.dumps(content).encode()
                sent = {"Authorization": sign(body, secret_key=SECRET_KEY), **(headers or {})}
                answer = await client.post(f"/v2/{GAME_KEY}/{route}", content=body, headers=sent)
                assert answer.status_code in (200, 201, 400)

    asyncio.run(post())


SENDERS = [
    ("81.2.69.142", {}, {}, "GB"),
    ("81.2.69.142", {"X-Forwarded-For": "89.160.20.112"}, {}, "SE"),
    ("81.2.69.142", {"X-Forwarded-For": "89.160.20.112"}, {"country_code": "DK"}, "DK"),
    ("81.2.69.142", {"X-Forwarded-For": "unknown"}, {}, None),
    ("127.0.0.1", {}, {}, None),
    ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9, 127.0.0.1"}, {}, "JP"),
]


@pytest.fixture(scope="module")
def country_by_build(tmp_path_factory: pytest.TempPathFactory, database: Path) -> dict[str, str | None]:
    """Return the country of an event of each sender, whose number is the event's build."""
    stage = Stage(tmp_path_factory.mktemp("countries") / "state", geoip=database)
    for number, (peer, headers, fields, _) in enumerate(SENDERS):
        submit_events_and_init(stage, peer, headers, build=str(number), **fields)
    stage.process()
    query = {"type": "split", "dimensions": ["build", "country_code"]}
    answer = stage.ask("event_count", interval="2020-01-01/2030-01-01", granularity="all", query=query).json()
    stage.sandbox.close()
    return {row["event"]["build"]: row["event"]["country_code"] for row in answer["result"]}


@pytest.mark.parametrize("number", range(len(SENDERS)), ids=lambda number: " ".join(map(str, SENDERS[number])))
def test_the_event_counts_first_then_the_header_then_the_peer(
    country_by_build: dict[str, str | None], number: int
) -> None:
    """`country_code` counts first, then `X-Forwarded-For`, then the peer.

    Wire 1.17, Country; Wire 1.16, Submitting for players.
    """
    assert country_by_build[str(number)] == SENDERS[number][3]


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "89.160.20.112, 89.160.20.7"}])
def test_no_address_is_stored_or_logged(
    make_stage: Callable[..., Stage], database: Path, headers: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """No address is in a file of the state directory or in the log, in any form.

    Wire 1.17, Country.
    """
    caplog.set_level(logging.DEBUG)
    stage = make_stage(geoip=database)
    submit_events_and_init(stage, "81.2.69.142", headers)
    stage.process()
    addresses = ("81.2.69.142", "89.160.20.112", "89.160.20.7")
    forms = [form for address in addresses for form in (address.encode(), ip_address(address).packed)]
    contents = {path: path.read_bytes() for path in stage.sandbox.options.state.rglob("*") if path.is_file()}
    assert any(b"GB" in content or b"SE" in content for content in contents.values())
    assert not [(path, form) for path, content in contents.items() for form in forms if form in content]
    assert not [address for address in addresses if address in caplog.text]


def test_no_address_is_shown(stage: Stage, control_api: Call) -> None:
    """No address is on the page of the live feed, in its events or in the summary.

    Wire 1.17, Country.
    """
    submit_events_and_init(stage, "81.2.69.142", {"X-Forwarded-For": "89.160.20.112"})
    shown = "".join(control_api("GET", path).text for path in ("/", "/events", "/summary"))
    assert len(control_api("GET", "/events").json()) == 2
    assert not [prefix for prefix in ("81.2.69", "89.160.20") if prefix in shown]


def test_a_forwarded_address_changes_no_response(stage: Stage) -> None:
    """A request that claims another address gets exactly the same response.

    Wire 1.17, Country.
    """
    answers = [
        stage.post(f"/v2/{GAME_KEY}/events", b"[]", {"Authorization": signature} | forwarded)
        for signature in (sign(b"[]", secret_key=SECRET_KEY), "wrong")
        for forwarded in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-For": "x" * 5000})
    ]
    assert [answer.status_code for answer in answers] == [200] * 3 + [401] * 3
    assert len({(answer.status_code, answer.content, tuple(answer.headers.items())) for answer in answers}) == 2
