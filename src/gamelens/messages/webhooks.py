"""A message to a webhook: one POST of JSON, never repeated by itself, in the shape that the chat takes.

Names from outside are escaped so that none mentions a person, a channel or everybody, or becomes a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from gamelens._text import counted, escape_markdown, one_line, shortened
from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.connection.transport import HttpRequest, HttpResponse, Transport
from gamelens.errors import Unreachable
from gamelens.messages.journal import NotSent
from gamelens.messages.message_text import plain_text
from gamelens.messages.morning_message import MorningMessage

Shape = Callable[[MorningMessage], dict[str, Any]]
_TIMEOUT_S: Final = 30.0
_ANY_STATUS: Final = range(100, 600)
_SLACK_LETTERS: Final = 3000
_DISCORD_LETTERS: Final = 4000
_TEAMS_LETTERS: Final = 500
_MESSAGE_LETTERS: Final = 12_000
"""Letters of all games where a chat limits the message as a whole: about 28 KB in Teams."""
_LETTERS_OF_MORE: Final = 80
_MARKUP: Final = re.compile(r"([\\*_~`|>#\[\]()<@:-])")


def post(message: MorningMessage, *, shape: str, address: str, path: str) -> None:
    """Send the message once, in one of `SHAPES`. The secret of a webhook is in *path*.

    Raises:
        NotSent: nothing answers, or the answer is a refusal.
        Unreachable: the connection ended without an answer, or the server failed: it may have arrived.
    """
    request = HttpRequest(
        method="POST",
        path=path,
        headers={"Content-Type": "application/json"},
        body=msgspec.json.encode(SHAPES[shape](message)),
        expected_statuses=_ANY_STATUS,
        attempts=1,
    )

    async def posted() -> HttpResponse:
        transport = Transport(address, max_wait_s=_TIMEOUT_S, timeout_s=_TIMEOUT_S)
        try:
            return await transport.send(request)
        finally:
            await transport.aclose()

    try:
        response = shared_loop().run(posted())
    except Unreachable as error:
        if error.is_unsent:
            raise NotSent(str(error)) from None
        raise
    if response.status in range(200, 300):
        return
    if response.status == 408 or response.status >= 500:
        raise Unreachable(f"{address} answered {response.status}")
    raise NotSent(f"{address} refused the message with status {response.status}: check the webhook's address")


def slack(message: MorningMessage) -> dict[str, Any]:
    """Return the message as blocks of Slack, as many games in one as fit."""
    blocks: list[dict[str, Any]] = [_slack_block(f"*{_slack_text(message.title)}*")]
    blocks += [_slack_block(_slack_text(note)) for note in message.notes]
    together: list[str] = []
    for first, *rest in message.lines_by_game(_slack_text, _MESSAGE_LETTERS):
        lines = [first, *(f"• {line}" for line in rest)]
        if together and len("\n".join([*together, "", *lines])) > _SLACK_LETTERS:
            blocks.append(_slack_block(*together))
            together = []
        together += ["", *lines] if together else lines
    blocks += [_slack_block(*together)] if together else []
    small = [_slack_text(line) for line in (*message.footnotes, message.source) if line]
    if small:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": "\n".join(small)}]})
    return {"text": _slack_text(message.title), "blocks": blocks, "unfurl_links": False}


def discord(message: MorningMessage) -> dict[str, Any]:
    """Return the message as an embed of Discord, without mentions."""
    lines = [_discord_text(line) for line in (*message.notes, *message.footnotes)]
    room = _DISCORD_LETTERS - sum(len(line) + 2 for line in lines)
    for first, *rest in message.lines_by_game(_discord_text, room):
        lines += [first, *(f"- {line}" for line in rest)]
    embed: dict[str, Any] = {"title": shortened(_discord_text(message.title), 256)}
    embed |= {"description": _cut_lines(lines, _DISCORD_LETTERS), "footer": {"text": shortened(message.source, 2000)}}
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def teams(message: MorningMessage) -> dict[str, Any]:
    """Return the message as an Adaptive Card of Teams."""
    body = [_teams_block(message.title, weight="Bolder", size="Medium")]
    body += [_teams_block(note, weight="Bolder") for note in message.notes]
    for first, *rest in message.lines_by_game(most_letters=_MESSAGE_LETTERS):
        body.append(_teams_block(first, separator=True))
        body += [_teams_block(f"• {line}", spacing="Small") for line in rest]
    body += [_teams_block(line, isSubtle=True, size="Small") for line in (*message.footnotes, message.source) if line]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def plain_json(message: MorningMessage) -> dict[str, Any]:
    """Return the message as day, title and text, for a program that takes any JSON."""
    return {"day": str(message.day), "title": message.title, "text": plain_text(message)}


SHAPES: Final[dict[str, Shape]] = {"slack": slack, "teams": teams, "discord": discord, "json": plain_json}


def _slack_block(*lines: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut_lines(lines, _SLACK_LETTERS)}}


def _slack_text(text: str) -> str:
    """Return *text* with entities for what begins a link or mention in Slack."""
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _discord_text(text: str) -> str:
    return _MARKUP.sub(r"\\\1", one_line(text))


def _teams_block(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextBlock", "wrap": True, "text": shortened(escape_markdown(text), _TEAMS_LETTERS), **style}


def _cut_lines(lines: Sequence[str], most: int) -> str:
    """Return as many whole lines as fit into *most* letters, and how many more there are."""
    if len(whole := "\n".join(lines)) <= most:
        return whole
    room, fitting = most - _LETTERS_OF_MORE, list[str]()
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    fitting = fitting or [shortened(lines[0], most - _LETTERS_OF_MORE)]
    more = len(lines) - len(fitting)
    last = [f"… and {counted(more, 'more line')}: gamelens health shows them all"] if more else []
    return "\n".join([*fitting, *last])
