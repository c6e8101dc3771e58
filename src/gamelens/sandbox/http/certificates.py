"""The certificate of a sandbox that speaks HTTPS: made at the first start, kept in the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gamelens._files import write_private
from gamelens.errors import Refused

_NAMES = ("localhost", "127.0.0.1", "::1")


class Certificate(msgspec.Struct, frozen=True):
    """Two PEM files: what a client has to trust, and what the services show (certificate chain and key)."""

    ca_file: Path
    server_file: Path


def load_certificate(state: Path) -> Certificate:
    """The certificate kept in *state*, or a new one for the loopback names; both files are their owner's only.

    Raises:
        Refused: one has to be made and the package that does it is missing.
    """
    certificate = Certificate(state.resolve() / "ca.pem", state.resolve() / "server.pem")
    if not (certificate.ca_file.exists() and certificate.server_file.exists()):
        _make(certificate)
    return certificate


def _make(certificate: Certificate) -> None:
    try:
        import trustme
    except ImportError:
        raise Refused("--tls needs the package trustme: pip install 'gamelens[sandbox]'") from None
    # The authority's own key is not kept: nobody can issue a second certificate that clients would trust.
    authority = trustme.CA(organization_name="gamelens sandbox")
    issued = authority.issue_cert(*_NAMES, organization_name="gamelens sandbox", common_name="localhost")
    write_private(certificate.server_file, issued.private_key_and_cert_chain_pem.bytes())
    write_private(certificate.ca_file, authority.cert_pem.bytes())
