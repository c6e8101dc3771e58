"""A client asked on the side: what a widget asks with while its owner goes on.

Such a one draws no bar and warns of nothing, since nobody knows in which cell that would end up: what there is to say
is in the receipt of each frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gamelens.client.async_client import AsyncClient
from gamelens.client.base_client import Asking, BaseClient
from gamelens.client.query.progress import Progress
from gamelens.client.sync_client import Client

if TYPE_CHECKING:
    from pandas import DataFrame


class QuietAsyncClient(AsyncClient):
    """*client* itself, its methods awaited: the same connections, budget and cache, and what it remembers."""

    def __init__(self, client: BaseClient) -> None:
        share_connection(self, client)

    async def _ask_async(self, ask: Asking, shown: bool | None) -> DataFrame:
        answered = await self._loop.run_async(ask(Progress()))
        return cast("DataFrame", answered.frame)


class QuietClient(Client):
    """The same, for a thread that may wait."""

    def __init__(self, client: BaseClient) -> None:
        share_connection(self, client)

    def _ask(self, ask: Asking, shown: bool | None) -> DataFrame:
        return cast("DataFrame", self._loop.run(ask(Progress())).frame)


def share_connection(aside: BaseClient, client: BaseClient) -> None:
    """Make *aside* of what *client* is made of, instead of connections and a cache of its own."""
    # the client itself is kept too: its connections close with the last reference to it
    aside.__dict__.update({**client.__dict__, "_owner": client})
