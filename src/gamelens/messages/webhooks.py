"""A message to a webhook: one POST of JSON, never repeated by itself."""

from __future__ import annotations

from typing import Final

import msgspec

from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.connection.transport import HttpRequest, HttpResponse, Transport
from gamelens.errors import Unreachable
from gamelens.messages.chat_shapes import SHAPES
from gamelens.messages.journal import NotSent
from gamelens.messages.morning_message import MorningMessage

_TIMEOUT_S: Final = 30.0
_ANY_STATUS: Final = range(100, 600)


class Webhook(msgspec.Struct, frozen=True):
    """A webhook.

    Attributes:
        shape: the name of its JSON in `SHAPES`.
        address: scheme, host and port.
        path: path and query, which hold its secret.
    """

    shape: str
    address: str
    path: str

    def __repr__(self) -> str:
        return f"Webhook({self.shape!r}, {self.address!r})"


def post(message: MorningMessage, webhook: Webhook) -> None:
    """Send the message once.

    Raises:
        NotSent: nothing answers, or the answer is a refusal.
        Unreachable: the connection ended without an answer, or the server failed: it may have arrived.
    """
    try:
        response = shared_loop().run(_posted(webhook, msgspec.json.encode(SHAPES[webhook.shape](message))))
    except Unreachable as error:
        if error.is_unsent:
            raise NotSent(str(error)) from None
        raise
    if response.status in range(200, 300):
        return
    if response.status == 408 or response.status >= 500:
        raise Unreachable(f"{webhook.address} answered {response.status}")
    raise NotSent(f"{webhook.address} refused the message with status {response.status}: check the webhook's address")


async def _posted(webhook: Webhook, body: bytes) -> HttpResponse:
    transport = Transport(webhook.address, max_wait_s=_TIMEOUT_S, timeout_s=_TIMEOUT_S)
    request = HttpRequest(
        method="POST",
        path=webhook.path,
        headers={"Content-Type": "application/json"},
        body=body,
        expected_statuses=_ANY_STATUS,
        attempts=1,
    )
    try:
        return await transport.send(request)
    finally:
        await transport.aclose()
