"""One simulated population in a sandbox of its own, and the truth about it."""

from __future__ import annotations

import msgspec

from gamelens.client.sync_client import Client
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.simulator import Ledger


class Journey(msgspec.Struct, frozen=True):
    """A sandbox with a population in it, the ledger of its events, and a client."""

    ready: SandboxInfo
    ledger: Ledger
    client: Client
