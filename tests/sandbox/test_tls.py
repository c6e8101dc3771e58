"""HTTPS of both services, with a certificate of the sandbox (Wire 1.2, Connections)."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, Refused, Unreachable
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import populate
from gamelens.local.sandbox_process import running_sandbox
from gamelens.sandbox.http.http_server import Certificate, load_certificate
from gamelens.simulator import load_scenario

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def secure_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """Run a sandbox process with TLS."""
    with running_sandbox(tmp_path_factory.mktemp("tls") / "state", tls=True) as ready:
        yield ready


def test_both_services_are_https_and_the_control_api_is_not(secure_sandbox: SandboxInfo) -> None:
    """Both services use HTTPS, and the control API stays on loopback HTTP.

    Wire 1.2, Connections; Wire 5.1, Control API.
    """
    schemes = [
        url.partition(":")[0]
        for url in (secure_sandbox.collector_url, secure_sandbox.metrics_url, secure_sandbox.console_url)
    ]
    assert schemes == ["https", "https", "http"]


def test_a_client_that_trusts_the_ca_file_connects(secure_sandbox: SandboxInfo) -> None:
    """A client that trusts the `ca_file` of the ready file reaches both services.

    Wire 1.2, Connections.
    """
    trusting = ssl.create_default_context(cafile=secure_sandbox.ca_file)
    with httpx.Client(verify=trusting) as client:
        assert client.get(f"{secure_sandbox.metrics_url}/metrics/v1/metrics").status_code == 401
        assert client.get(f"{secure_sandbox.collector_url}/").status_code == 404


def test_without_its_package_tls_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is there needs no package; one that is not says what to install."""
    made = load_certificate(tmp_path)
    monkeypatch.setitem(sys.modules, "trustme", None)
    assert load_certificate(tmp_path) == made
    (tmp_path / "new").mkdir()
    with pytest.raises(Refused, match=r"trustme: pip install 'gamelens\[tls\]'"):
        load_certificate(tmp_path / "new")


def test_other_clients_do_not_connect(secure_sandbox: SandboxInfo) -> None:
    """A client without the `ca_file` fails to verify the certificate."""
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(secure_sandbox.metrics_url)


def test_players_send_events_over_https(secure_sandbox: SandboxInfo) -> None:
    """A scenario is played over HTTPS like over HTTP."""
    few_players = msgspec.structs.replace(load_scenario("small"), players=5, days=3)
    assert populate(secure_sandbox, few_players).events > 0


def test_the_client_trusts_ssl_cert_file(secure_sandbox: SandboxInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client trusts the certificates of `SSL_CERT_FILE`, as curl and OpenSSL do."""
    for name, value in environment_of(secure_sandbox).items():
        monkeypatch.setenv(name, value)
    with Client() as client:
        assert "revenue" in client.metrics()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_the_client_trusts_the_authorities_of_the_system(
    secure_sandbox: SandboxInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An authority that this machine trusts is trusted, here by a folder in place of the system's."""
    authority = Path(secure_sandbox.ca_file or "").read_text()
    name = subprocess.run(
        ["openssl", "x509", "-hash", "-noout"], input=authority, capture_output=True, text=True, check=True
    )
    (tmp_path / f"{name.stdout.strip()}.0").write_text(authority)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    api_key = secure_sandbox.organisations[0].api_key
    with Client(api_key=api_key, metrics_url=secure_sandbox.metrics_url, max_wait_s=0) as client:
        assert "revenue" in client.metrics()


def test_an_untrusted_certificate_is_reported(secure_sandbox: SandboxInfo) -> None:
    """The error for an untrusted certificate names `SSL_CERT_FILE`."""
    api_key = secure_sandbox.organisations[0].api_key
    with (
        Client(api_key=api_key, metrics_url=secure_sandbox.metrics_url, max_wait_s=0) as client,
        pytest.raises(Unreachable, match="SSL_CERT_FILE"),
    ):
        client.metrics()


def test_a_missing_ca_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An `SSL_CERT_FILE` that does not exist raises `BadQuery` with its name."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    with pytest.raises(BadQuery, match=r"nowhere\.pem"):
        Client(api_key="k", metrics_url="https://127.0.0.1:1")


def test_plain_http_reads_no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client of a plain HTTP address does not read the file that `SSL_CERT_FILE` names."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    Client(api_key="k", metrics_url="http://127.0.0.1:1").close()


def test_the_certificate_is_kept(state: Path) -> None:
    """The certificate of the first start is used again, so that clients trust it still.

    Wire 1.2, Connections.
    """
    certificate = load_certificate(state)
    before = certificate.ca_file.read_bytes(), certificate.server_file.read_bytes()
    reloaded = load_certificate(state)
    assert (reloaded.ca_file.read_bytes(), reloaded.server_file.read_bytes()) == before


def test_a_certificate_for_the_host_of_a_built_in_address(state: Path) -> None:
    """A name is in the certificate beside those of this machine, and one that lacks it is made anew."""
    plain = load_certificate(state).server_file.read_bytes()
    named = load_certificate(state, ["api.example.com"])
    assert named.server_file.read_bytes() != plain
    assert _trusted_names(named) >= {"api.example.com", "localhost"}
    before = named.server_file.read_bytes()
    assert load_certificate(state).server_file.read_bytes() == before
    assert load_certificate(state, ["api.example.com"]).server_file.read_bytes() == before
    assert "other.example.com" not in _trusted_names(named)


def test_a_certificate_for_what_is_no_name_is_refused(state: Path) -> None:
    """A host that no certificate can have is named, and nothing is written."""
    with pytest.raises(Refused, match="no host"):
        load_certificate(state, ["no host"])
    assert not (state / "server.pem").exists()


def _trusted_names(certificate: Certificate) -> set[str]:
    """Return the names that a client accepts the certificate for."""
    names = ("localhost", "api.example.com", "other.example.com")
    return {name for name in names if _is_trusted(certificate, name)}


def _is_trusted(certificate: Certificate, name: str) -> bool:
    """Return whether a handshake with the certificate succeeds for *name*."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate.server_file)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context(cafile=certificate.ca_file)
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    try:
        for end in (client, server, client):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError:
        return False
    return True


def test_the_certificate_is_its_owners_only(state: Path) -> None:
    """The files of the certificate have mode 0600."""
    certificate = load_certificate(state)
    assert {path.stat().st_mode & 0o777 for path in (certificate.ca_file, certificate.server_file)} == {0o600}


def test_the_authority_cannot_sign_again(state: Path) -> None:
    """The key of the authority is not stored, so that it signs one certificate only."""
    load_certificate(state)
    assert b"PRIVATE KEY" not in (state / "ca.pem").read_bytes()
