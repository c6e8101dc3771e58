"""Parameters of a notebook: the names a cell tagged `parameters` assigns, and how a typed text becomes such a value.

The convention is papermill's: what is given goes into a cell of its own right below, tagged `injected-parameters`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gamelens.errors import BadQuery

TAG: Final = "parameters"
INJECTED: Final = "injected-parameters"
_YES: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parameters_of(document: Any) -> dict[str, Any]:
    """Names and defaults of a notebook's parameters; None where a default is no plain literal."""
    cell = next((cell for cell in document.cells if TAG in _tags(cell)), None)
    if cell is None:
        return {}
    return {name: _literal(value) for name, value in _assignments(cell.source)}


def typed(given: Iterable[tuple[str, str]], defaults: Mapping[str, Any], *, of: str) -> dict[str, Any]:
    """What was typed, as the types of the *defaults* of the notebook called *of*; a name typed again adds to a list.

    Raises:
        BadQuery: no such parameter, or a text that does not fit its default.
    """
    texts: dict[str, list[str]] = {}
    for name, text in given:
        if name not in defaults:
            rule = f"is no parameter of {of}" if defaults else f"is not for {of}: no cell of it is tagged `{TAG}`"
            raise BadQuery(name, text, rule, defaults, name=name)
        texts.setdefault(name, []).append(text)
    return {name: _as_default(name, all_of, defaults[name]) for name, all_of in texts.items()}


def inject(document: Any, values: Mapping[str, Any]) -> None:
    """Add a cell that sets *values*, below the parameters."""
    import nbformat

    if not values:
        return
    source = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell = nbformat.v4.new_code_cell(  # type: ignore[no-untyped-call]
        source, metadata={"tags": [INJECTED]}
    )
    at = next(place for place, cell in enumerate(document.cells) if TAG in _tags(cell))
    document.cells.insert(at + 1, cell)


def _as_default(name: str, texts: list[str], default: Any) -> Any:
    if isinstance(default, (list, tuple)) or (default is None and len(texts) > 1):
        return _as_list(name, texts, default or ())
    if len(texts) > 1:
        raise BadQuery(name, texts, f"is given {len(texts)} times, and takes one value")
    return _as_one(name, texts[0], default)


def _as_one(name: str, text: str, default: Any) -> Any:
    match default:
        case None:
            return _untyped(text)
        case bool():
            if text.lower() in _YES:
                return _YES[text.lower()]
        case int() | float():
            if text == "None" or (value := _number(text, type(default))) is not None:
                return None if text == "None" else value
        case dict():
            if isinstance(value := _parsed(text), dict):
                return value
        case _:
            return text
    raise BadQuery(name, text, f"must be written like its default, {default!r}")


def _as_list(name: str, texts: list[str], default: Any) -> list[Any]:
    """One element for each text, or the list that the only text spells."""
    if len(texts) == 1 and isinstance(whole := _parsed(texts[0]), (list, tuple)):
        return list(whole)
    like = default[0] if default else ""
    return [_as_one(name, text, like) for text in texts]


def _untyped(text: str) -> Any:
    """A text whose default says nothing: what it spells in Python, but for numbers, which are ids more often."""
    value = _parsed(text)
    is_number = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
    return text if is_number else value


def _number(text: str, kind: type[int] | type[float]) -> int | float | None:
    """*text* as *kind*; a whole default takes a fraction too, since 0 is how many write 0.0."""
    try:
        value = float(text)
        return int(text) if kind is int and value == int(value) else value if math.isfinite(value) else None
    except (ValueError, OverflowError):
        return None


def _parsed(text: str) -> Any:
    """The literal that *text* spells, or *text*."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _assignments(source: str) -> Iterable[tuple[str, ast.expr]]:
    try:
        lines = ast.parse(source).body
    except SyntaxError:
        return
    for line in lines:
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        value = getattr(line, "value", None)
        yield from ((it.id, value) for it in targets if isinstance(it, ast.Name) and value is not None)


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError):
        return None


def _tags(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))
