"""Certificate of a sandbox that speaks HTTPS, stored in the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gamelens._files import write_private
from gamelens.errors import Refused

_NAMES = ("localhost", "127.0.0.1", "::1")


class Certificate(msgspec.Struct, frozen=True):
    """Two PEM files in the state directory.

    Attributes:
        ca_file: certificate of the authority that clients have to trust.
        server_file: certificate chain and key of the services.
    """

    ca_file: Path
    server_file: Path


def load_certificate(state: Path) -> Certificate:
    """Return the certificate in *state*, or issue one for the loopback names.

    Both files are readable by their owner only.

    Raises:
        Refused: a certificate has to be issued and the package trustme is missing.
    """
    certificate = Certificate(state.resolve() / "ca.pem", state.resolve() / "server.pem")
    if not (certificate.ca_file.exists() and certificate.server_file.exists()):
        _issue(certificate)
    return certificate


def _issue(certificate: Certificate) -> None:
    try:
        import trustme
    except ImportError:
        raise Refused("--tls needs the package trustme: pip install 'gamelens[sandbox]'") from None
    # The authority's own key is discarded, so no second certificate can be issued that clients would trust.
    authority = trustme.CA(organization_name="gamelens sandbox")
    issued = authority.issue_cert(*_NAMES, organization_name="gamelens sandbox", common_name="localhost")
    write_private(certificate.server_file, issued.private_key_and_cert_chain_pem.bytes())
    write_private(certificate.ca_file, authority.cert_pem.bytes())
