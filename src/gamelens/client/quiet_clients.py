"""Copies of a client without bar and warnings, for queries in the background.

A warning or a bar of a background query would appear in an arbitrary notebook cell. The same texts are in the receipt
of each frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gamelens.client.async_client import AsyncClient
from gamelens.client.base_client import BaseClient, RunQuery
from gamelens.client.query.progress import Progress
from gamelens.client.sync_client import Client

if TYPE_CHECKING:
    from pandas import DataFrame


class QuietAsyncClient(AsyncClient):
    """A copy of *client* with awaited methods.

    It shares connections, rate limit, cache and remembered lists with *client*.
    """

    def __init__(self, client: BaseClient) -> None:
        share_connection(self, client)

    async def _run_async(self, run: RunQuery, progress: bool | None) -> DataFrame:
        result = await self._loop.run_async(run(Progress()))
        return cast("DataFrame", result.frame)


class QuietClient(Client):
    """A copy of *client* for a thread that may wait.

    It shares connections, rate limit, cache and remembered lists with *client*.
    """

    def __init__(self, client: BaseClient) -> None:
        share_connection(self, client)

    def _run(self, run: RunQuery, progress: bool | None) -> DataFrame:
        return cast("DataFrame", self._loop.run(run(Progress())).frame)


def share_connection(copy: BaseClient, client: BaseClient) -> None:
    """Give *copy* the attributes of *client*, so that it opens nothing of its own."""
    # the client itself is kept too: its connections close with the last reference to it
    copy.__dict__.update({**client.__dict__, "_owner": client})
