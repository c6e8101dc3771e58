"""Scenario files as tables that know the line of each key, for exact errors.

A file may build on others. `extends = "demo"` takes every top-level key that it does not give itself from a shipped
scenario. A game with `like = "Tile Harbor"` takes every key that it does not give itself from the game with that title,
which must stand above it in the file or in the scenario it extends.
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
"""Tables of a game that `like` merges key by key. All others are replaced whole."""


class LocatedTable(dict[str, Any]):
    """A table of a file, with file and line of each key in *locations*."""

    def __init__(self, items: dict[str, Any], locations: dict[str, str]) -> None:
        super().__init__(items)
        self.locations = locations


_TYPES: Final = {str: "str", int: "int", float: "float", bool: "bool", LocatedTable: "object", list: "array"}
"""Names of TOML types in messages of msgspec."""


def scenario_names() -> list[str]:
    """Return the names of the scenarios that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))


def read_tables(name_or_path: str | Path) -> LocatedTable:
    """Read a shipped scenario or a .toml file, with the scenario it extends.

    Raises:
        BadQuery: there is no such scenario, or the file is not TOML.
        InvalidScenario: `extends` or `like` names something unknown.
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
    """Convert *table* to a value of *kind*.

    Raises:
        InvalidScenario: a key is unknown or missing, or a value is not allowed.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise _invalid_scenario(table, kind, error) from None


def _with_locations(value: Any, path: tuple[str | int, ...], location: Callable[[tuple[str | int, ...]], str]) -> Any:
    """Convert each dict below *value* to a `LocatedTable`."""
    if isinstance(value, dict):
        inside = {key: _with_locations(child, (*path, key), location) for key, child in value.items()}
        return LocatedTable(inside, {key: location((*path, key)) for key in value})
    if isinstance(value, list):
        return [_with_locations(child, (*path, i), location) for i, child in enumerate(value)]
    return value


def _read_base(read: LocatedTable, own_name: str) -> LocatedTable:
    """Read the scenario that `extends` names, if any, and remove the key."""
    if "extends" not in read:
        return LocatedTable({}, {})
    location, name = read.locations["extends"], read.pop("extends")
    if not isinstance(name, str) or name == own_name or name not in scenario_names():
        raise InvalidScenario(location, "extends", name, "is not a shipped scenario", scenario_names())
    return read_tables(name)


def _fill_games(read: LocatedTable, base: LocatedTable) -> None:
    """Add to each game with `like` the keys of the game it names."""
    games_by_title = {game.get("title"): game for game in _games(base)}
    for game in _games(read):
        if "like" in game:
            location, title = game.locations["like"], game.pop("like")
            if title not in games_by_title:
                names = [name for name in games_by_title if isinstance(name, str)]
                raise InvalidScenario(location, "studio.game.like", title, "is not a game above it", names)
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
    """Build the error for a message of msgspec: location, key, value, rule and allowed values."""
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
    """Fill in the key that msgspec writes as `...` in the path of an error.

    It is the first key for which the value at *suffix* below it satisfies *matches*.
    """
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
    """Return the value at the path *keys*, or None."""
    for key in keys:
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _existing_suffix(value: Any, names: Keys) -> Keys:
    """Return the longest suffix of *names* whose first key is in the table, or an empty list.

    The names begin with that of the table itself, which is not a key in it.
    """
    ends = [names[i:] for i in range(len(names))]
    return next((end for end in ends if isinstance(value, dict) and end[0] in value), [])


def _location_of(table: LocatedTable, keys: Keys) -> str:
    """Return file and line of the path *keys*, or of its last part that exists."""
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
    """Return the keys that the table at the path *keys* may have."""
    names = [field.encode_name for struct in _structs(_type_at(kind, keys)) for field in struct.fields]
    return dict.fromkeys(names)


def _values_of(kind: Any, keys: Keys) -> Iterable[str]:
    """Return the allowed values at the path *keys* if they can be listed, else none."""
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
    """Return the type that *kind* has at the path *keys*."""
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
