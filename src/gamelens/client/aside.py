"""A client asked on the side: what a widget asks with while its owner goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gamelens.client.async_metrics import AsyncClient
from gamelens.client.faces import Asking, Face
from gamelens.client.progress import Progress

if TYPE_CHECKING:
    from pandas import DataFrame


class Aside(AsyncClient):
    """*client* itself, its methods awaited: the same connections, budget and cache, and what it remembers.

    It draws no bar and warns of nothing, since nobody knows which cell that would end up in: what there is to say is in
    the receipt of each frame.
    """

    def __init__(self, client: Face) -> None:
        # Face would open connections and a cache of its own
        self.__dict__.update(client.__dict__)
        self._client = client  # whose connections close with the last reference to it

    async def _ask_async(self, ask: Asking, shown: bool | None) -> DataFrame:
        answered = await self._loop.wait_async(ask(Progress()))
        return cast("DataFrame", answered.frame)
