"""A message as plain text, as Markdown and as the HTML of a mail.

The HTML has inline styles, no script, no image and nothing from another host, so that a mail program shows all of it.
"""

from __future__ import annotations

from html import escape
from typing import Final

from gamelens._text import escape_markdown, markdown_table, one_line
from gamelens.messages.morning_message import HeadlineNumber, MorningMessage

_HEADER: Final = ("Game", "Number", "Value", "Against a usual day")
_FONT: Final = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif"
_CELL: Final = "padding:6px 12px 6px 0;border-bottom:1px solid #d0d7de;vertical-align:top"
_COLOURS: Final = {"New": "#b42318", "Still open": "#9a6700", "Recovered": "#1a7f37", "Reports": "#1f2328"}


def plain_text(message: MorningMessage) -> str:
    """Return the message as plain text."""
    parts = [message.title, *message.notes]
    for heading, lines in message.sections:
        parts.append("\n".join([f"{heading}:", *(f"- {one_line(line)}" for line in lines)]))
    numbers = ((it, f" ({it.change})" if it.change else "") for it in message.numbers)
    parts.append("\n".join(f"{it.game}: {it.name} {it.value}{change}" for it, change in numbers))
    return "\n\n".join(part for part in (*parts, message.source) if part) + "\n"


def markdown(message: MorningMessage) -> str:
    """Return the message as Markdown of a page, with names from outside escaped."""
    parts = [f"# {escape_markdown(message.title)}", *map(escape_markdown, message.notes)]
    for heading, lines in message.sections:
        parts += [f"## {heading}", "\n".join(f"- {escape_markdown(line)}" for line in lines)]
    if message.numbers:
        rows = [(it.game, it.name, it.value, it.change) for it in message.numbers]
        parts += ["## Headline numbers", markdown_table(_HEADER, rows)]
    return "\n\n".join(part for part in (*parts, escape_markdown(message.source)) if part) + "\n"


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
    for heading, lines in message.sections:
        items = "".join(f'<li style="margin:0 0 6px">{escape(one_line(line))}</li>' for line in lines)
        parts.append(f'<h2 style="font-size:16px;margin:20px 0 8px;color:{_COLOURS[heading]}">{heading}</h2>')
        parts.append(f'<ul style="margin:0;padding-left:20px">{items}</ul>')
    if message.numbers:
        parts.append(_html_table(message.numbers))
    if message.source:
        parts.append(f'<p style="margin:20px 0 0;font-size:12px;color:#57606a">{escape(one_line(message.source))}</p>')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(message.title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"></head>'
        f'<body style="margin:0;background:#ffffff;color:#1f2328;{_FONT};font-size:15px;line-height:1.45">'
        f'<div style="max-width:640px;margin:0 auto;padding:20px">{"".join(parts)}</div></body></html>'
    )


def _html_table(numbers: tuple[HeadlineNumber, ...]) -> str:
    head = "".join(
        f'<th scope="col" style="{_CELL};text-align:{_side(place)};font-weight:600">{name}</th>'
        for place, name in enumerate(_HEADER)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL};text-align:{_side(place)}">{escape(cell)}</td>'
            for place, cell in enumerate((it.game, it.name, it.value, it.change or "n/a"))
        )
        + "</tr>"
        for it in numbers
    )
    return (
        '<h2 style="font-size:16px;margin:20px 0 8px">Headline numbers</h2>'
        f'<table style="border-collapse:collapse;width:100%;font-size:14px"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _side(place: int) -> str:
    return "left" if place < 2 else "right"
