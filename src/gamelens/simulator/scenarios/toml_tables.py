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

    def __init__(self, items: dict[str, Any], locations: dict[str, str]) -> None:
        super().__init__(items)
        self.locations = locations


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
    read = _with_locations(raw, (), lambda path: f"{Path(source.name).name}, line {lines.get(path, 1)}")
    base = _read_base(read, text)
    _fill_games(read, base)
    return LocatedTable({**base, **read}, base.locations | read.locations)


def decode(table: LocatedTable, kind: type[T]) -> T:
    """*table* as a value of *kind*.

    Raises:
        ScenarioRefused: a key it does not know, or a value it does not allow.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise _invalid_scenario(table, kind, error) from None


def _with_locations(value: Any, path: tuple[str | int, ...], location: Callable[[tuple[str | int, ...]], str]) -> Any:
    if isinstance(value, dict):
        inside = {key: _with_locations(child, (*path, key), location) for key, child in value.items()}
        return LocatedTable(inside, {key: location((*path, key)) for key in value})
    if isinstance(value, list):
        return [_with_locations(child, (*path, i), location) for i, child in enumerate(value)]
    return value


def _read_base(read: LocatedTable, own_name: str) -> LocatedTable:
    if "extends" not in read:
        return LocatedTable({}, {})
    location, name = read.locations["extends"], read.pop("extends")
    if not isinstance(name, str) or name == own_name or name not in scenario_names():
        raise InvalidScenario(location, "extends", name, "is not a shipped scenario", scenario_names())
    return read_tables(name)


def _fill_games(read: LocatedTable, base: LocatedTable) -> None:
    """Gives each game that is `like` another what it has not got itself."""
    games_by_title = {game.get("title"): game for game in _games(base)}
    for game in _games(read):
        if "like" in game:
            location, title = game.locations["like"], game.pop("like")
            if title not in games_by_title:
                names = [name for name in games_by_title if isinstance(name, str)]
                raise InvalidScenario(location, "studio.game.like", title, "is no game above it", names)
            _fill(game, games_by_title[title])
        games_by_title[game.get("title")] = game


def _games(table: LocatedTable) -> Iterator[LocatedTable]:
    for studio in table.get("studio", ()):
        games = studio.get("game", ()) if isinstance(studio, LocatedTable) else ()
        yield from (game for game in games if isinstance(game, LocatedTable))


def _fill(table: LocatedTable, source: LocatedTable) -> None:
    for key, value in source.items():
        if key not in table:
            table[key], table.locations[key] = value, source.locations[key]
        elif key in _MERGED and isinstance(table[key], LocatedTable) and isinstance(value, LocatedTable):
            _fill(table[key], value)


def _invalid_scenario(table: LocatedTable, kind: Any, error: msgspec.ValidationError) -> InvalidScenario:
    """Msgspec's message, turned into place, key, value, rule and what is allowed."""
    parsed = re.fullmatch(r"(.*?)(?: - at `(key)` in `(.*)`| - at `(.*)`)?", str(error), re.DOTALL)
    rule, of_key, path = (parsed[1], parsed[2], parsed[3] or parsed[4] or "") if parsed else (str(error), None, "")
    keys = re.findall(r"[^.\[\]$`]+|\.\.\.", path)
    cause = error.__cause__
    if isinstance(cause, InvalidScenarioValue):
        keys = _fill_free_key(table, keys, lambda value: bool(value == cause.value), cause.field.split(".")[-1:])
        keys += _existing_suffix(_value_at(table, keys), cause.field.split("."))
        return InvalidScenario(
            _location_of(table, keys), _dotted_path(keys, cause.field), cause.value, cause.rule, cause.allowed
        )
    if unknown := re.search("unknown field `(.+)`", rule):
        full_path, name = [*keys, unknown[1]], unknown[1]
        return InvalidScenario(
            _location_of(table, full_path), _dotted_path(full_path), name, "is not a key here", _keys_of(kind, keys)
        )
    if missing := re.search("missing required field `(.+)`", rule):
        full_path, present = [*keys, missing[1]], list(_value_at(table, keys) or ())
        return InvalidScenario(
            _location_of(table, full_path), _dotted_path(full_path), present, f"lacks the key {missing[1]}"
        )
    if got := re.search("got `(.+)`", rule):
        keys = _fill_free_key(table, keys, lambda value: _TYPES.get(type(value)) == got[1], [])
    value = _value_at(table, keys)
    if of_key and (named := re.search("'(.*)'", rule)):
        value, keys = named[1], [*keys, named[1]]
    rule = f"is refused: {rule[:1].lower()}{rule[1:]}"
    return InvalidScenario(_location_of(table, keys), _dotted_path(keys), value, rule, _values_of(kind, keys))


def _fill_free_key(table: LocatedTable, keys: Keys, matches: Callable[[Any], bool], suffix: Keys) -> Keys:
    """*keys* with the name msgspec leaves out where names are free: the first with *is_it* what lies *below* it."""
    if "..." not in keys:
        return keys
    index = keys.index("...")
    before, rest = keys[:index], keys[index + 1 :]
    names = (name for name in _value_at(table, before) if matches(_value_at(table, [*before, name, *rest, *suffix])))
    return [*before, *([name, *rest] if (name := next(names, None)) else [])]


def _dotted_path(keys: Keys, default: str = "scenario") -> str:
    written = "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in keys)
    return written.removeprefix(".") or default


def _value_at(value: Any, keys: Keys) -> Any:
    for key in keys:
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _existing_suffix(value: Any, names: Keys) -> Keys:
    """The end of *names*, which start with the table's own, that leads somewhere in it; at worst the last."""
    ends = [names[i:] for i in range(len(names))]
    return next((end for end in ends if isinstance(value, dict) and end[0] in value), [])


def _location_of(table: LocatedTable, keys: Keys) -> str:
    """Where *keys* lead, or as far as they lead."""
    value: Any = table
    location = next(iter(table.locations.values()), "the scenario")
    for key in keys:
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)]
            if isinstance(value, LocatedTable):
                location = next(iter(value.locations.values()), location)
        elif isinstance(value, LocatedTable) and key in value:
            location, value = value.locations.get(key, location), value[key]
        else:
            break
    return location


def _keys_of(kind: Any, keys: Keys) -> Iterable[str]:
    """The keys of the table that *keys* lead to."""
    names = [field.encode_name for struct in _structs(_type_at(kind, keys)) for field in struct.fields]
    return dict.fromkeys(names)


def _values_of(kind: Any, keys: Keys) -> Iterable[str]:
    """The values allowed where *keys* lead, where they can be listed."""
    type_ = _type_at(kind, keys)
    if isinstance(type_, inspect.LiteralType):
        return [str(value) for value in type_.values]
    parent = _type_at(kind, keys[:-1])
    if isinstance(parent, inspect.DictType) and isinstance(parent.key_type, inspect.LiteralType):
        return [str(value) for value in parent.key_type.values]
    if keys and keys[-1] == "kind":
        return [str(struct.tag) for struct in _structs(parent)]
    return []


def _type_at(kind: Any, keys: Keys) -> inspect.Type | None:
    type_: inspect.Type | None = inspect.type_info(kind)
    for key in keys:
        if isinstance(type_, inspect.VarTupleType):
            type_ = type_.item_type
        elif isinstance(type_, inspect.DictType):
            type_ = type_.value_type
        else:
            fields = [field for struct in _structs(type_) for field in struct.fields if field.encode_name == key]
            type_ = fields[0].type if fields else None
    return type_


def _structs(type_: inspect.Type | None) -> list[inspect.StructType]:
    members = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    return [member for member in members if isinstance(member, inspect.StructType)]
