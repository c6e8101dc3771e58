"""Completion in a notebook: attributes of our objects and frames, and texts of queries.

IPython would ask jedi, which reads the source of pandas and plotly for it: half a minute for the first `df.`, more for
`df.plot.`. What we know is offered at once instead, and jedi is not asked.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final, NamedTuple

from gamelens.catalog import CATALOG, DIMENSIONS, TITLES

_PATH: Final = re.compile(r"(?<![\w.)\]}\"'])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(\w*)$")
_TOKEN: Final = re.compile(r"#[^\n]*|(\"\"\"|'''|\"|')(?:\\.|(?!\1).)*(\1|\Z)|[()\[\]{},]", re.DOTALL)
_CALLEE: Final = re.compile(r"([A-Za-z_]\w*)(?:\.\w+)*?\.(\w+)\s*$")
_KEYWORD: Final = re.compile(r"\s*(\w+)\s*=(?!=)")
_FIRST: Final = {
    "query": "metric",
    "plan": "metric",
    "retention": "days",
    "restatements": "metric",
    "describe": "name",
    "dimension_values": "dimension",
    "games": "",
    "studios": "",
    "explorer": "",
}
"""Methods whose texts are completed, each with the name of its first argument."""
_KNOWN: Final = ("gamelens", "pandas", "plotly")
_ACCESSORS: Final = ("lens", "plot", "str", "dt", "cat", "index", "columns", "dtypes")
"""Attributes of a frame or a column that cost nothing to read."""
_LIST_S: Final = 0.8  # how long a completion waits for titles: the next one has them


class OpenText(NamedTuple):
    """The *text* that is being typed, the *argument* it is, and the variable *root*."""

    argument: str
    text: str
    root: str


def register() -> None:
    """Offer completions in the notebook or the prompt of this process, if it has one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or getattr(shell, "Completer", None) is None:
        return
    from IPython.core.completer import context_matcher

    def match(context: Any) -> Any:
        return matches(context, shell.user_ns)

    matchers = shell.Completer.custom_matchers
    if not any(getattr(matcher, "matcher_identifier", "") == __name__ for matcher in matchers):
        # The highest priority, so that jedi is not asked first.
        decorate: Callable[[Any], Any] = context_matcher(priority=1000, identifier=__name__)
        matchers.append(decorate(match))


def matches(context: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return what can stand at the cursor of *context*, as IPython's matchers do.

    Args:
        context: a `CompletionContext` of IPython.
        names: the variables of the notebook.
    """
    lines = context.full_text.split("\n")[: context.cursor_line + 1]
    before = "\n".join([*lines[:-1], lines[-1][: context.cursor_position]])
    opened = open_text(before)
    if opened is not None:
        fragment, offered = _texts(opened, names)
    else:
        fragment, offered = _attributes(lines[-1][: context.cursor_position], names)
    found = [completion for completion in offered if completion.text.casefold().startswith(fragment.casefold())]
    return {"completions": found, "matched_fragment": fragment, "suppress": bool(found)}


def open_text(source: str) -> OpenText | None:
    """Return the text that *source* ends in, if it is an argument of a known call."""
    brackets: list[tuple[int, int, int]] = []  # where each opens, where its last argument begins, and its commas
    for token in _TOKEN.finditer(source):
        sign = token[0][0]
        if token[1] and not token[2]:
            return _argument(source, brackets, token.start() + len(token[1]))
        if sign in "([{":
            brackets.append((token.start(), token.end(), 0))
        elif sign in ")]}" and brackets:
            brackets.pop()
        elif sign in ",#" and brackets:
            opens, _, commas = brackets[-1]
            brackets[-1] = (opens, token.end(), commas + (sign == ","))
    return None


def _argument(source: str, brackets: list[tuple[int, int, int]], start: int) -> OpenText | None:
    """Return the text that begins at *start* as an argument of the innermost call."""
    for opens, argument, commas in reversed(brackets):
        callee = _CALLEE.search(source[:opens]) if source[opens] == "(" else None
        if callee is None:
            continue
        if callee[2] not in _FIRST:
            return None
        keyword = _KEYWORD.match(source[argument:start])
        name = keyword[1] if keyword else _FIRST[callee[2]] if commas == 0 else ""
        return OpenText(name, source[start:], callee[1])
    return None


def _texts(opened: OpenText, names: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the part of the text to complete, and what it can be."""
    from IPython.core.completer import SimpleCompletion

    fragment = re.search(r"\w*$", opened.text)[0] if opened.argument == "where" else opened.text  # type: ignore[index]
    if opened.argument in ("games", "studio", "studios"):
        offered: Iterable[str] = _titles(names.get(opened.root), opened.argument.rstrip("s"))
    else:
        offered = _names_of(opened.argument, names.get(opened.root))
    return fragment, [SimpleCompletion(text=text, type="text") for text in offered]


def _names_of(argument: str, lens: Any) -> Iterable[str]:
    """Return the texts that *argument* of a query of *lens* can be."""
    from gamelens.client.base_client import BaseClient
    from gamelens.client.query.arguments import KINDS, ON_ERROR
    from gamelens.client.tables.time_ranges import TIME_WORDS, WHEN_UNAVAILABLE
    from gamelens.wire.intervals import GRANULARITIES

    metrics = lens.metric_catalog.metrics if isinstance(lens, BaseClient) else CATALOG.metrics
    return {
        "metric": [*metrics],
        "name": [*metrics, *DIMENSIONS],
        "by": [*TITLES.values(), *DIMENSIONS],
        "dimension": [*DIMENSIONS],
        "where": [*DIMENSIONS],
        "over": TIME_WORDS,
        "every": GRANULARITIES,
        "when_unavailable": WHEN_UNAVAILABLE,
        "on_error": ON_ERROR,
        "to": KINDS,
    }.get(argument, ())


def _titles(lens: Any, what: str) -> list[str]:
    """Return the titles of games or studios that *lens* can list within a moment."""
    from gamelens.client.async_client import AsyncClient
    from gamelens.client.base_client import BaseClient, quiet_copy
    from gamelens.client.connection.event_loop import shared_loop

    if not isinstance(lens, BaseClient):
        return []
    client = quiet_copy(lens, AsyncClient)
    listing = shared_loop().submit(client.games() if what == "game" else client.studios())
    try:
        titles = listing.result(timeout=_LIST_S)[what]
    except Exception:  # a completion has no place for an error
        return []
    return sorted({" ".join(str(title).split()) for title in titles})


def _attributes(line: str, names: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the attribute that *line* ends in, and the public ones of its object."""
    from IPython.core.completer import SimpleCompletion

    path = _PATH.search(line)
    if path is None:
        return "", []
    first, *rest = path[1].split(".")
    value = names.get(first)
    for name in rest:
        value = _attribute(value, name)
    if not _is_known(value) or path[2].startswith("_"):
        return "", []
    public = [name for name in dir(value) if not name.startswith("_")]
    return path[2], [SimpleCompletion(text=name, type=_kind(value, name)) for name in public]


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute that costs nothing to read, or None."""
    is_cheap = isinstance(value, ModuleType) or name in _ACCESSORS
    return getattr(value, name, None) if is_cheap and _is_known(value) else None


def _is_known(value: Any) -> bool:
    """Return whether *value* is of a package that jedi would take long to read."""
    home = value.__name__ if isinstance(value, ModuleType) else type(value).__module__
    return home.partition(".")[0] in _KNOWN


def _kind(value: Any, name: str) -> str:
    """Return the kind of an attribute, for the icon beside it."""
    found = inspect.getattr_static(value, name, None)
    return "function" if inspect.isroutine(found) else "class" if inspect.isclass(found) else "instance"
