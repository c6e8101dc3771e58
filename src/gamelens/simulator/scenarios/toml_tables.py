"""Scenario files read into tables that remember where each key stands, and decoded with errors that tell it.

A file may build on others: `extends = "demo"` takes every top-level key it does not give itself from a shipped
scenario, and a game with `like = "Tile Harbor"` takes what it does not give itself from the game of that title, above
it in the file or in the scenario extended.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

from gamelens.errors import BadQuery
from gamelens.simulator.scenarios.toml_lines import lines_of
from gamelens.simulator.scenarios.validation import InvalidScenario, InvalidScenarioValue

T = TypeVar("T")
Keys = list[str]

_SHIPPED: Final = resources.files("gamelens.simulator.scenarios") / "shipped"
_MERGED: Final = ("retention", "sessions", "progression", "ads", "purchases", "economy", "paid")
"""Tables of a game that keep, key by key, what `like` brings; all others are taken whole."""


class LocatedTable(dict[str, Any]):
    """A table of a file; *places* says where each of its keys stands."""

    def __init__(self, items: dict[str, Any], places: dict[str, str]) -> None:
        super().__init__(items)
        self.places = places


_TYPES: Final = {str: "str", int: "int", float: "float", bool: "bool", LocatedTable: "object", list: "array"}
"""What msgspec calls what TOML holds."""


def scenario_names() -> list[str]:
    """Names of the scenarios that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))


def read_tables(name_or_path: str | Path) -> LocatedTable:
    """The scenario called *name_or_path*, or written in that file, with what it builds on.

    Raises:
        BadQuery: no such scenario, or no TOML.
    """
    text = str(name_or_path)
    is_file = text.endswith(".toml")
    if not is_file and text not in scenario_names():
        raise BadQuery("scenario", text, "is not a shipped scenario, nor a .toml file", scenario_names())
    source = Path(text) if is_file else _SHIPPED / f"{text}.toml"
    try:
        written = source.read_text(encoding="utf-8")
        raw = tomllib.loads(written)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadQuery("scenario", text, f"cannot be read: {error}") from None
    lines = lines_of(written)
    read = _placed(raw, (), lambda path: f"{Path(source.name).name}, line {lines.get(path, 1)}")
    base = _base(read, text)
    _fill_games(read, base)
    return LocatedTable({**base, **read}, base.places | read.places)


def decode(table: LocatedTable, kind: type[T]) -> T:
    """*table* as a value of *kind*.

    Raises:
        ScenarioRefused: a key it does not know, or a value it does not allow.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise _refusal(table, kind, error) from None


def _placed(value: Any, path: tuple[str | int, ...], place: Callable[[tuple[str | int, ...]], str]) -> Any:
    if isinstance(value, dict):
        inside = {key: _placed(child, (*path, key), place) for key, child in value.items()}
        return LocatedTable(inside, {key: place((*path, key)) for key in value})
    if isinstance(value, list):
        return [_placed(child, (*path, i), place) for i, child in enumerate(value)]
    return value


def _base(read: LocatedTable, itself: str) -> LocatedTable:
    if "extends" not in read:
        return LocatedTable({}, {})
    where, name = read.places["extends"], read.pop("extends")
    if not isinstance(name, str) or name == itself or name not in scenario_names():
        raise InvalidScenario(where, "extends", name, "is not a shipped scenario", scenario_names())
    return read_tables(name)


def _fill_games(read: LocatedTable, base: LocatedTable) -> None:
    """Gives each game that is `like` another what it has not got itself."""
    known = {game.get("title"): game for game in _games(base)}
    for game in _games(read):
        if "like" in game:
            where, title = game.places["like"], game.pop("like")
            if title not in known:
                names = [name for name in known if isinstance(name, str)]
                raise InvalidScenario(where, "studio.game.like", title, "is no game above it", names)
            _fill(game, known[title])
        known[game.get("title")] = game


def _games(table: LocatedTable) -> Iterator[LocatedTable]:
    for studio in table.get("studio", ()):
        found = studio.get("game", ()) if isinstance(studio, LocatedTable) else ()
        yield from (game for game in found if isinstance(game, LocatedTable))


def _fill(table: LocatedTable, like: LocatedTable) -> None:
    for key, value in like.items():
        if key not in table:
            table[key], table.places[key] = value, like.places[key]
        elif key in _MERGED and isinstance(table[key], LocatedTable) and isinstance(value, LocatedTable):
            _fill(table[key], value)


def _refusal(table: LocatedTable, kind: Any, error: msgspec.ValidationError) -> InvalidScenario:
    """Msgspec's message, turned into place, key, value, rule and what is allowed."""
    told = re.fullmatch(r"(.*?)(?: - at `(key)` in `(.*)`| - at `(.*)`)?", str(error), re.DOTALL)
    rule, of_key, place = (told[1], told[2], told[3] or told[4] or "") if told else (str(error), None, "")
    keys = re.findall(r"[^.\[\]$`]+|\.\.\.", place)
    cause = error.__cause__
    if isinstance(cause, InvalidScenarioValue):
        keys = _named(table, keys, lambda value: bool(value == cause.value), cause.field.split(".")[-1:])
        keys += _below(_at(table, keys), cause.field.split("."))
        return InvalidScenario(_place(table, keys), _dotted(keys, cause.field), cause.value, cause.rule, cause.allowed)
    if unknown := re.search("unknown field `(.+)`", rule):
        at, name = [*keys, unknown[1]], unknown[1]
        return InvalidScenario(_place(table, at), _dotted(at), name, "is not a key here", _keys_of(kind, keys))
    if missing := re.search("missing required field `(.+)`", rule):
        at, there = [*keys, missing[1]], list(_at(table, keys) or ())
        return InvalidScenario(_place(table, at), _dotted(at), there, f"lacks the key {missing[1]}")
    if got := re.search("got `(.+)`", rule):
        keys = _named(table, keys, lambda value: _TYPES.get(type(value)) == got[1], [])
    value = _at(table, keys)
    if of_key and (named := re.search("'(.*)'", rule)):
        value, keys = named[1], [*keys, named[1]]
    rule = f"is refused: {rule[:1].lower()}{rule[1:]}"
    return InvalidScenario(_place(table, keys), _dotted(keys), value, rule, _values_of(kind, keys))


def _named(table: LocatedTable, keys: Keys, is_it: Callable[[Any], bool], below: Keys) -> Keys:
    """*keys* with the name msgspec leaves out where names are free: the first with *is_it* what lies *below* it."""
    if "..." not in keys:
        return keys
    place = keys.index("...")
    above, rest = keys[:place], keys[place + 1 :]
    found = (name for name in _at(table, above) if is_it(_at(table, [*above, name, *rest, *below])))
    return [*above, *([name, *rest] if (name := next(found, None)) else [])]


def _dotted(keys: Keys, otherwise: str = "scenario") -> str:
    written = "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in keys)
    return written.removeprefix(".") or otherwise


def _at(value: Any, keys: Keys) -> Any:
    for key in keys:
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _below(value: Any, names: Keys) -> Keys:
    """The end of *names*, which start with the table's own, that leads somewhere in it; at worst the last."""
    ends = [names[i:] for i in range(len(names))]
    return next((end for end in ends if isinstance(value, dict) and end[0] in value), [])


def _place(table: LocatedTable, keys: Keys) -> str:
    """Where *keys* lead, or as far as they lead."""
    value: Any = table
    found = next(iter(table.places.values()), "the scenario")
    for key in keys:
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)]
            if isinstance(value, LocatedTable):
                found = next(iter(value.places.values()), found)
        elif isinstance(value, LocatedTable) and key in value:
            found, value = value.places.get(key, found), value[key]
        else:
            break
    return found


def _keys_of(kind: Any, keys: Keys) -> Iterable[str]:
    """The keys of the table that *keys* lead to."""
    found = [field.encode_name for struct in _structs(_type_at(kind, keys)) for field in struct.fields]
    return dict.fromkeys(found)


def _values_of(kind: Any, keys: Keys) -> Iterable[str]:
    """The values allowed where *keys* lead, where they can be listed."""
    found = _type_at(kind, keys)
    if isinstance(found, inspect.LiteralType):
        return [str(value) for value in found.values]
    above = _type_at(kind, keys[:-1])
    if isinstance(above, inspect.DictType) and isinstance(above.key_type, inspect.LiteralType):
        return [str(value) for value in above.key_type.values]
    if keys and keys[-1] == "kind":
        return [str(struct.tag) for struct in _structs(above)]
    return []


def _type_at(kind: Any, keys: Keys) -> inspect.Type | None:
    found: inspect.Type | None = inspect.type_info(kind)
    for key in keys:
        if isinstance(found, inspect.VarTupleType):
            found = found.item_type
        elif isinstance(found, inspect.DictType):
            found = found.value_type
        else:
            fields = [field for struct in _structs(found) for field in struct.fields if field.encode_name == key]
            found = fields[0].type if fields else None
    return found


def _structs(found: inspect.Type | None) -> list[inspect.StructType]:
    members = found.types if isinstance(found, inspect.UnionType) else (found,)
    return [member for member in members if isinstance(member, inspect.StructType)]
