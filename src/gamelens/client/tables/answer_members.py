"""What an answer has beside its rows, in words: nothing that the service says is dropped in silence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gamelens._text import one_line, printable, shortened

_SHOWN_CHARS: Final = 300
_WORDS: Final = re.compile(r"warn|messag|notic|note|info|remark|deprecat|hint|advi[cs]e", re.I)
_LACKS: Final = re.compile(r"truncat|partial|incomplete|next|more|cursor|continu|(^|_)cut|limited|capped|exceed", re.I)
_MAKING: Final = re.compile(
    r"took|elapsed|duration|latency|timing|(request|trace|span|query|correlation)_?id|(server|generated|served)_?(at|by|time|ts)?"
    r"|host|node|cached|cache_hit",
    re.I,
)
"""How an answer was made: how long it took, by which server, under which id. It says nothing about the rows."""
_WHOLE: Final = re.compile(r"complete|final|whole|exact|fresh|valid", re.I)


def member_notes(about: str, members: Mapping[str, Any]) -> list[str]:
    """Return a note for each of *members*, which stand beside *about*, such as "the rows of revenue"."""
    return [
        note
        for name in sorted(members)
        if not _MAKING.fullmatch(re.sub(r"_?(ms|s|seconds|millis)$", "", name))
        for note in _notes(about, name, members[name])
    ]


def _notes(about: str, name: str, value: Any) -> Iterator[str]:
    says = f"{printable(one_line(name))} = {_text(value)}"
    if _WHOLE.search(name) and not _LACKS.search(name):
        if value is not True:
            yield f"the service says beside {about}: {says}. They may still change or be incomplete"
    elif _LACKS.search(name):
        if value not in (False, 0):
            yield f"the service says beside {about}: {says}. Some may be missing"
    elif name.lower() == "version":
        yield f"the service says that {about} are of version {_text(value)}; this version of gamelens reads v1"
    elif _WORDS.search(name):
        yield f"the service says with {about}: {_text(value)}"
    elif isinstance(value, bool | str) and len(str(value)) <= 20:
        yield f"{says} stands beside {about} and was not read"
    else:  # a number or an id, of each answer another one
        yield f"{printable(one_line(name))} stands beside {about} and was not read"


def _text(value: Any) -> str:
    """Return a member as text on one line."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = "; ".join(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shortened(printable(one_line(text)), _SHOWN_CHARS)
