"""Collector, What the service does 3: only HTTPS in earnest; contract, sandbox up --tls."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, Unreachable
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import populate
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.http.certificates import load_certificate
from gamelens.simulator import load_scenario

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    with running_sandbox(tmp_path_factory.mktemp("tls") / "state", tls=True) as ready:
        yield ready


def test_both_services_are_https_and_the_console_is_not(secure: SandboxInfo) -> None:
    """contract: the console stays on loopback, in plain HTTP."""
    schemes = [url.partition(":")[0] for url in (secure.collector_url, secure.metrics_url, secure.console_url)]
    assert schemes == ["https", "https", "http"]


def test_whoever_trusts_the_ca_file_may_talk(secure: SandboxInfo) -> None:
    """contract: the ready file names the certificate to trust."""
    trusting = ssl.create_default_context(cafile=secure.ca_file)
    with httpx.Client(verify=trusting) as client:
        assert client.get(f"{secure.metrics_url}/metrics/v1/metrics").status_code == 401
        assert client.get(f"{secure.collector_url}/").status_code == 404


def test_nobody_else_does(secure: SandboxInfo) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(secure.metrics_url)


def test_players_play_over_https(secure: SandboxInfo) -> None:
    """The same scenario, the same requests."""
    few = msgspec.structs.replace(load_scenario("small"), players=5, days=3)
    assert populate(secure, few).events > 0


def test_the_library_trusts_what_ssl_cert_file_names(secure: SandboxInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gamelens sandbox up --help`: SSL_CERT_FILE, as with curl and OpenSSL."""
    for name, value in environment_of(secure).items():
        monkeypatch.setenv(name, value)
    with Client() as client:
        assert "revenue" in client.metrics()


def test_an_untrusted_certificate_is_called_that(secure: SandboxInfo) -> None:
    """house-style: every message names the next step."""
    api_key = secure.organisations[0].api_key
    with (
        Client(api_key=api_key, metrics_url=secure.metrics_url, max_wait_s=0) as client,
        pytest.raises(Unreachable, match="SSL_CERT_FILE"),
    ):
        client.metrics()


def test_a_ca_file_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    with pytest.raises(BadQuery, match=r"nowhere\.pem"):
        Client(api_key="k", metrics_url="https://127.0.0.1:1")


def test_the_certificate_is_kept(state: Path) -> None:
    """contract: made at the first start; a client goes on trusting it."""
    made = load_certificate(state)
    before = made.ca_file.read_bytes(), made.server_file.read_bytes()
    kept = load_certificate(state)
    assert (kept.ca_file.read_bytes(), kept.server_file.read_bytes()) == before


def test_the_certificate_is_its_owners_only(state: Path) -> None:
    """architecture, Decisions: one state directory, for nobody else."""
    made = load_certificate(state)
    assert {path.stat().st_mode & 0o777 for path in (made.ca_file, made.server_file)} == {0o600}


def test_the_authority_cannot_sign_again(state: Path) -> None:
    """Its key is thrown away: trusting the file is trusting one certificate."""
    load_certificate(state)
    assert b"PRIVATE KEY" not in (state / "ca.pem").read_bytes()
