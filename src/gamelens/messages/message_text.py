"""A message as plain text, as the text of a chat, as Markdown and as the HTML of a mail.

The HTML has inline styles, no script, no image and nothing from another host, so that a mail program shows all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Final

from gamelens._text import counted, escape_markdown, one_line, shortened
from gamelens.messages.morning_message import MorningMessage

_FONT: Final = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif"
_ACTIVE: Final = re.compile(r"[@<!|]|\](?=\()|:(?=//)")
_LETTERS_OF_MORE: Final = 80
_COLOURS: Final = {"New": "#b42318", "Still open": "#9a6700", "Recovered": "#1a7f37"}


def plain_text(message: MorningMessage) -> str:
    """Return the message as plain text."""
    return "\n\n".join([message.title, *_paragraphs(message)]) + "\n"


def chat_text(message: MorningMessage, most_letters: int) -> str:
    """Return what follows the title, in at most *most_letters*. Names in it mention nobody and link nowhere.

    Where there is little room, each game has fewer lines and numbers; lines that still do not fit are counted.
    """
    parts = _paragraphs(message, harmless)
    if len(whole := "\n\n".join(parts)) <= most_letters:
        return whole
    around = sum(len(line) + 2 for line in (*message.notes, *message.footnotes, message.source))
    parts = _paragraphs(message, harmless, max(0, most_letters - around))
    if len(whole := "\n\n".join(parts)) <= most_letters:
        return whole
    lines = "\n".join(parts).splitlines()
    room, fitting = most_letters - _LETTERS_OF_MORE, list[str]()
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    fitting = fitting or [shortened(lines[0], max(1, most_letters - _LETTERS_OF_MORE))]
    return "\n".join(
        [*fitting, f"… and {counted(len(lines) - len(fitting), 'more line')}: gamelens health shows them all"]
    )


def harmless(text: str) -> str:
    """Return *text* with an invisible letter behind what begins a mention, a channel or a link in any chat."""
    return _ACTIVE.sub(lambda found: f"{found[0]}\u2060", one_line(text))


def _paragraphs(
    message: MorningMessage, write: Callable[[str], str] = one_line, most_letters: int | None = None
) -> list[str]:
    games = (
        "\n".join([first, *(f"- {line}" for line in rest)])
        for first, *rest in message.lines_by_game(write, most_letters)
    )
    parts = (*map(write, message.notes), *games, "\n".join(map(write, message.footnotes)), write(message.source))
    return [part for part in parts if part]


def markdown(message: MorningMessage) -> str:
    """Return the message as Markdown of a page, with names from outside escaped."""
    parts = [f"# {escape_markdown(message.title)}", *map(escape_markdown, message.notes)]
    for first, *rest in message.lines_by_game(escape_markdown):
        parts.append("\n".join([f"- {first}", *(f"  - {line}" for line in rest)]))
    parts += map(escape_markdown, (*message.footnotes, message.source))
    return "\n\n".join(part for part in parts if part) + "\n"


def html_page(message: MorningMessage) -> str:
    """Return the message as an HTML page of a few kilobytes."""
    badge = (
        f'<span style="background:#fff3c4;color:#5c4400;padding:2px 8px;border-radius:4px;font-size:13px">'
        f"{escape(message.badge)}</span>"
    )
    parts = [badge] if message.badge else []
    parts.append(f'<h1 style="font-size:20px;line-height:1.35;margin:12px 0">{escape(one_line(message.headline))}</h1>')
    parts.append(f'<p style="margin:0 0 16px;color:#57606a">{message.day.day} {message.day:%b %Y}, UTC</p>')
    parts += [f'<p style="margin:0 0 16px;font-weight:600">{escape(one_line(note))}</p>' for note in message.notes]
    for game, (first, *rest) in zip(message.games, message.lines_by_game(), strict=True):
        name, text = escape(one_line(game.game)), escape(first.removeprefix(one_line(game.game)))
        parts.append(f'<p style="margin:16px 0 4px"><strong>{name}</strong>{text}</p>')
        if rest:
            parts.append(f'<ul style="margin:0;padding-left:20px">{"".join(map(_html_item, rest))}</ul>')
    if small := [line for line in (*message.footnotes, message.source) if line]:
        lines = "<br>".join(escape(one_line(line)) for line in small)
        parts.append(f'<p style="margin:20px 0 0;font-size:12px;color:#57606a">{lines}</p>')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(message.title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"></head>'
        f'<body style="margin:0;background:#ffffff;color:#1f2328;{_FONT};font-size:15px;line-height:1.45">'
        f'<div style="max-width:640px;margin:0 auto;padding:20px">{"".join(parts)}</div></body></html>'
    )


def _html_item(line: str) -> str:
    """Return an alarm as an item of a list, the word that it begins with in its colour."""
    kind, colon, text = line.partition(":")
    if kind not in _COLOURS:
        return f'<li style="margin:0 0 4px">{escape(line)}</li>'
    word = f'<strong style="color:{_COLOURS[kind]}">{kind}{colon}</strong>'
    return f'<li style="margin:0 0 4px">{word}{escape(text)}</li>'
