"""HTTP servers of the sandbox and their certificate: uvicorn with its public settings, several in one process.

Limits of body size and body time are in `request_body`. Slow request heads are left to uvicorn, because the sandbox
listens on loopback only (Wire 1.2, Connections).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gamelens._files import write_private
from gamelens.errors import Refused

_CLOSE: Final = "gamelens.close"
_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_LISTED: Final = "names:"  # begins the first line of the server's file; text before a PEM block is ignored
_H2C_OFFER: Final = b"\r\nUpgrade: h2c\r\n"


class _Connection(HttpToolsProtocol):
    """A connection that applications can close, and that ignores the offer to change to HTTP/2."""

    def connection_made(self, transport: Any) -> None:
        """Put the function that closes the connection into the state of every request."""
        self.app_state = {**self.app_state, _CLOSE: transport.close}
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Remove the offer of Java's own client and `curl --http2`, after which httptools parses no body.

        RFC 9110 7.8 allows a server to ignore it. Neither JSON nor gzip in a request body contains this line.
        """
        super().data_received(data.replace(_H2C_OFFER, b"\r\n"))


class _QuietServer(uvicorn.Server):
    """A server that leaves signals to the caller: three servers share one process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def http_server(app: Any, *, certificate: Path | None = None) -> uvicorn.Server:
    """Build a server for *app*, an ASGI application: for HTTPS with the PEM file *certificate*, else for plain HTTP."""
    return _QuietServer(
        uvicorn.Config(
            app,
            http=_Connection,
            ws="none",
            ssl_certfile=certificate,
            log_level="error",  # input that is not HTTP is a warning, and could fill the log
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=10,
            proxy_headers=False,
        )
    )


async def hang_up(scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    """Close the connection of a request after all written bytes are out, and wait for that.

    Raises:
        ConnectionAbortedError: there is no connection, as when an application is called in process.
    """
    close = scope.get("state", {}).get(_CLOSE)
    if close is None:
        raise ConnectionAbortedError("hung up")
    close()
    while (await receive())["type"] != "http.disconnect":
        pass


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop, or None for asyncio's own loop.

    uvloop answers about twice as many small requests and changes nothing else. It is not there on Windows.
    """
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class Certificate(msgspec.Struct, frozen=True):
    """Two PEM files: the authority that clients have to trust, and chain and key of the services."""

    ca_file: Path
    server_file: Path


def load_certificate(state: Path, names: Sequence[str] = ()) -> Certificate:
    """Return the certificate in *state*, or issue one for the loopback names and *names*.

    One that lacks a name is replaced. Both files are readable by their owner only.

    Raises:
        Refused: a certificate has to be issued and the package trustme is missing, or *names* has no host name.
    """
    certificate = Certificate(state.resolve() / "ca.pem", state.resolve() / "server.pem")
    if certificate.ca_file.exists() and certificate.server_file.exists():
        first, *listed = certificate.server_file.read_text().partition("\n")[0].split()
        if set(names).issubset(listed if first == _LISTED else _NAMES):
            return certificate
    try:
        import trustme
    except ImportError:
        raise Refused("--tls needs the package trustme: pip install 'gamelens[tls]'") from None
    # The authority's own key is discarded, so no second certificate can be issued that clients would trust.
    authority = trustme.CA(organization_name="gamelens sandbox")
    try:
        issued = authority.issue_cert(*_NAMES, *names, organization_name="gamelens sandbox", common_name="localhost")
    except ValueError as error:
        raise Refused(f"no certificate for {', '.join(names)}: {error}") from None
    first_line = f"{_LISTED} {' '.join((*_NAMES, *names))}\n".encode()
    write_private(certificate.server_file, first_line + issued.private_key_and_cert_chain_pem.bytes())
    write_private(certificate.ca_file, authority.cert_pem.bytes())
    return certificate
