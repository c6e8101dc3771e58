"""Parameters of a notebook: the names that the cell tagged `parameters` assigns.

The convention is papermill's: given values go into a cell of their own below it, tagged `injected-parameters`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gamelens.errors import BadQuery, Refused

TAG: Final = "parameters"
INJECTED: Final = "injected-parameters"
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class _Cell(msgspec.Struct):
    """A cell of a file. Its source may be a list of lines."""

    text: str | list[str] = msgspec.field(name="source", default="")
    metadata: dict[str, Any] = {}

    @property
    def source(self) -> str:
        return "".join(self.text)


class _Notebook(msgspec.Struct):
    """A notebook as its file has it, in any version of format 4."""

    cells: list[_Cell]


def parameters_of(document: Any) -> dict[str, Any]:
    """Return names and defaults of a notebook's parameters, None for one that is not a literal."""
    cell = next((cell for cell in document.cells if TAG in _tags(cell)), None)
    if cell is None:
        return {}
    return {name: _literal(value) for name, value in _assignments(cell.source)}


def read_parameters(notebook: Path) -> dict[str, Any]:
    """Return names and defaults of the parameters of the file *notebook*, as `parameters_of`.

    nbformat, which takes seconds to import, is not needed for it.

    Raises:
        Refused: it cannot be read, or is not a notebook.
    """
    try:
        return parameters_of(msgspec.json.decode(notebook.read_bytes(), type=_Notebook))
    except OSError as error:
        raise Refused(f"cannot read {notebook}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise Refused(f"{notebook} is not a notebook: {error}") from None


def typed(given: Iterable[tuple[str, str]], defaults: Mapping[str, Any], *, notebook: str) -> dict[str, Any]:
    """Return the *given* texts as values of the types of the *defaults*.

    A name that is given several times makes a list.

    Args:
        given: names and texts, as typed on a command line.
        defaults: names and defaults of the notebook's parameters.
        notebook: its name, for messages.

    Raises:
        BadQuery: there is no such parameter, or a text does not fit its default.
    """
    texts: dict[str, list[str]] = {}
    for name, text in given:
        if name not in defaults:
            rule = f"is not a parameter of {notebook}"
            if not defaults:
                rule = f"is not for {notebook}: none of its cells is tagged `{TAG}`"
            raise BadQuery(name, text, rule, defaults, name=name)
        texts.setdefault(name, []).append(text)
    return {name: _as_default(name, all_of, defaults[name]) for name, all_of in texts.items()}


def inject(document: Any, values: Mapping[str, Any]) -> None:
    """Add a cell that sets *values* below the cell with the parameters."""
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
    """Return *texts* as a list where the default is one, else the only text as a value."""
    if isinstance(default, (list, tuple)) or (default is None and len(texts) > 1):
        return _as_list(name, texts, default or ())
    if len(texts) > 1:
        raise BadQuery(name, texts, f"is given {len(texts)} times, but takes one value")
    return _as_one(name, texts[0], default)


def _as_one(name: str, text: str, default: Any) -> Any:
    """Return *text* as a value of the type of *default*.

    Raises:
        BadQuery: it does not fit.
    """
    match default:
        case None:
            return _untyped(text)
        case bool():
            if text.lower() in _BOOLEANS:
                return _BOOLEANS[text.lower()]
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
    """Return one element for each text, or the list that a single text spells."""
    if len(texts) == 1 and isinstance(whole := _parsed(texts[0]), (list, tuple)):
        return list(whole)
    like = default[0] if default else ""
    return [_as_one(name, text, like) for text in texts]


def _untyped(text: str) -> Any:
    """Return the Python literal of a text whose default is None, but keep a number as text.

    Such numbers are ids more often than quantities.
    """
    value = _parsed(text)
    is_number = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
    return text if is_number else value


def _number(text: str, kind: type[int] | type[float]) -> int | float | None:
    """Return *text* as a number, or None.

    An int default accepts a fraction too: 0 is often short for 0.0.
    """
    try:
        value = float(text)
        return int(text) if kind is int and value == int(value) else value if math.isfinite(value) else None
    except (ValueError, OverflowError):
        return None


def _parsed(text: str) -> Any:
    """Return the literal that *text* spells, or *text* itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _assignments(source: str) -> Iterable[tuple[str, ast.expr]]:
    """Yield name and value of each assignment at the top level of *source*."""
    try:
        lines = ast.parse(source).body
    except SyntaxError:
        return
    for line in lines:
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        value = getattr(line, "value", None)
        yield from ((target.id, value) for target in targets if isinstance(target, ast.Name) and value is not None)


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError):
        return None


def _tags(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))
