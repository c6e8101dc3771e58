"""Certificate of a sandbox that speaks HTTPS, stored in the state directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from gamelens._files import write_private
from gamelens.errors import Refused

_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_LISTED: Final = "names:"  # begins the first line of the server's file; text before a PEM block is ignored


class Certificate(msgspec.Struct, frozen=True):
    """Two PEM files in the state directory.

    Attributes:
        ca_file: certificate of the authority that clients have to trust.
        server_file: certificate chain and key of the services.
    """

    ca_file: Path
    server_file: Path


def load_certificate(state: Path, names: Sequence[str] = ()) -> Certificate:
    """Return the certificate in *state*, or issue one for the loopback names and *names*.

    One that lacks a name is replaced. Both files are readable by their owner only.

    Raises:
        Refused: a certificate has to be issued and the package trustme is missing, or *names* has no host name.
    """
    certificate = Certificate(state.resolve() / "ca.pem", state.resolve() / "server.pem")
    is_there = certificate.ca_file.exists() and certificate.server_file.exists()
    if not is_there or not set(names).issubset(_names_of(certificate)):
        _issue(certificate, (*_NAMES, *names))
    return certificate


def _names_of(certificate: Certificate) -> Sequence[str]:
    first, *listed = certificate.server_file.read_text().partition("\n")[0].split()
    return listed if first == _LISTED else _NAMES


def _issue(certificate: Certificate, names: Sequence[str]) -> None:
    try:
        import trustme
    except ImportError:
        raise Refused("--tls needs the package trustme: pip install 'gamelens[sandbox]'") from None
    # The authority's own key is discarded, so no second certificate can be issued that clients would trust.
    authority = trustme.CA(organization_name="gamelens sandbox")
    try:
        issued = authority.issue_cert(*names, organization_name="gamelens sandbox", common_name="localhost")
    except ValueError as error:
        raise Refused(f"no certificate for {', '.join(names[len(_NAMES) :])}: {error}") from None
    listed = f"{_LISTED} {' '.join(names)}\n".encode()
    write_private(certificate.server_file, listed + issued.private_key_and_cert_chain_pem.bytes())
    write_private(certificate.ca_file, authority.cert_pem.bytes())
