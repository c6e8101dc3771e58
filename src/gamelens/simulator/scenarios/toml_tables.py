"""Scenario files as tables, decoded with errors that name the file, the key, its value and the rule.

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
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from gamelens.errors import BadQuery
from gamelens.simulator.scenarios.validation import InvalidScenario, InvalidScenarioValue

T = TypeVar("T")
TomlTable = dict[str, Any]
TomlKeys = list[str]

_SHIPPED: Final = resources.files("gamelens.simulator.scenarios") / "shipped"
_MERGED: Final = ("retention", "sessions", "progression", "ads", "purchases", "economy", "paid")
"""Tables of a game that `like` merges key by key. All others are replaced whole."""
_TYPES: Final = {str: "str", int: "int", float: "float", bool: "bool", dict: "object", list: "array"}
"""Names of TOML types in messages of msgspec."""


class ScenarioFile(NamedTuple):
    """The tables of a scenario, and the name of the file that each top-level key stands in."""

    name: str
    tables: TomlTable
    file_of: dict[str, str]

    def decode(self, kind: type[T]) -> T:
        """Convert the tables to a value of *kind*.

        Raises:
            InvalidScenario: a key is unknown or missing, or a value is not allowed.
        """
        try:
            return msgspec.convert(self.tables, kind)
        except msgspec.ValidationError as error:
            raise _refusal(self, kind, error) from None


def scenario_names() -> list[str]:
    """Return the names of the scenarios that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))


def read_scenario_file(name_or_path: str | Path) -> ScenarioFile:
    """Read a shipped scenario or a .toml file, with the scenario it extends.

    Raises:
        BadQuery: there is no such scenario, or the file is not TOML.
        InvalidScenario: `extends` or `like` names something unknown.
    """
    text = str(name_or_path)
    is_file = text.endswith(".toml")
    if not is_file and text not in scenario_names():
        raise BadQuery("scenario", text, "is neither a shipped scenario nor a .toml file", scenario_names())
    source = Path(text) if is_file else _SHIPPED / f"{text}.toml"
    try:
        tables: TomlTable = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadQuery("scenario", text, f"cannot be read: {error}") from None
    base = ScenarioFile("", {}, {})
    if "extends" in tables:
        extended = tables.pop("extends")
        if not isinstance(extended, str) or extended == text or extended not in scenario_names():
            raise InvalidScenario(source.name, "extends", extended, "is not a shipped scenario", scenario_names())
        base = read_scenario_file(extended)
    games_by_title = {game.get("title"): game for _, game in _games(base.tables)}
    for path, game in _games(tables):
        if "like" in game:
            title = game.pop("like")
            if title not in games_by_title:
                names = [name for name in games_by_title if isinstance(name, str)]
                raise InvalidScenario(source.name, f"{path}.like", title, "is not a game defined above it", names)
            _fill(game, games_by_title[title])
        games_by_title[game.get("title")] = game
    return ScenarioFile(source.name, base.tables | tables, base.file_of | dict.fromkeys(tables, source.name))


def _games(tables: TomlTable) -> Iterator[tuple[str, TomlTable]]:
    """Yield the games of all studios, each with its path."""
    for number, studio in enumerate(tables.get("studio", ())):
        for place, game in enumerate(studio.get("game", ()) if isinstance(studio, dict) else ()):
            if isinstance(game, dict):
                yield f"studio[{number}].game[{place}]", game


def _fill(table: TomlTable, source: TomlTable) -> None:
    for key, value in source.items():
        if key not in table:
            table[key] = value
        elif key in _MERGED and isinstance(table[key], dict) and isinstance(value, dict):
            _fill(table[key], value)


def _refusal(file: ScenarioFile, kind: Any, error: msgspec.ValidationError) -> InvalidScenario:
    """Build the error for a message of msgspec, such as "Expected `int`, got `str` - at `$.studio[0].name`"."""
    message, _, place = str(error).partition(" - at `")
    keys = re.findall(r"[^.\[\]$`]+|\.\.\.", place.removeprefix("key` in `"))
    value: Any
    allowed: Iterable[str] = ()
    if isinstance(cause := error.__cause__, InvalidScenarioValue):
        value, rule, allowed = cause.value, cause.rule, cause.allowed
        names = cause.field.split(".")
        keys = _fill_free_key(file.tables, keys, lambda found: bool(found == value), names[-1:])
        # msgspec has the path of the table, the check the path of the value, which begins with the name of the table.
        table = _value_at(file.tables, keys)
        ends = [names[start:] for start in range(len(names))]
        keys += next((end for end in ends if isinstance(table, dict) and end[0] in table), [])
        place = ".".join(names)
    elif unknown := re.search("unknown field `(.+)`", message):
        allowed = dict.fromkeys(
            field.encode_name for struct in _structs(_type_at(kind, keys)) for field in struct.fields
        )
        keys, value, rule = [*keys, unknown[1]], unknown[1], "is not a key here"
    elif missing := re.search("missing required field `(.+)`", message):
        value, rule = list(_value_at(file.tables, keys) or ()), f"lacks the key {missing[1]}"
        keys = [*keys, missing[1]]
    else:
        if got := re.search("got `(.+)`", message):
            keys = _fill_free_key(file.tables, keys, lambda found: _TYPES.get(type(found)) == got[1], [])
        value, rule = _value_at(file.tables, keys), f"is refused: {message[:1].lower()}{message[1:]}"
        if place.startswith("key` in `") and (named := re.search("'(.*)'", message)):
            value, keys = named[1], [*keys, named[1]]
        allowed = _values_of(kind, keys)
    path = "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in keys).removeprefix(".") or place or "scenario"
    return InvalidScenario(file.file_of.get(path.split(".")[0].split("[")[0], file.name), path, value, rule, allowed)


def _fill_free_key(tables: TomlTable, keys: TomlKeys, matches: Callable[[Any], bool], suffix: TomlKeys) -> TomlKeys:
    """Fill in the key that msgspec writes as `...` in the path of an error.

    It is the first key for which the value at *suffix* below it satisfies *matches*.
    """
    if "..." not in keys:
        return keys
    index = keys.index("...")
    before, rest = keys[:index], keys[index + 1 :]
    names = (name for name in _value_at(tables, before) if matches(_value_at(tables, [*before, name, *rest, *suffix])))
    return [*before, *([name, *rest] if (name := next(names, None)) else [])]


def _value_at(value: Any, keys: TomlKeys) -> Any:
    """Return the value at the path *keys*, or None."""
    for key in keys:
        if isinstance(value, list) and key.isdigit():
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _values_of(kind: Any, keys: TomlKeys) -> Iterable[str]:
    """Return the allowed values at the path *keys* if they can be listed, else none."""
    type_, parent = _type_at(kind, keys), _type_at(kind, keys[:-1])
    if isinstance(type_, inspect.LiteralType):
        return [str(value) for value in type_.values]
    if isinstance(parent, inspect.DictType) and isinstance(parent.key_type, inspect.LiteralType):
        return [str(value) for value in parent.key_type.values]
    return [str(struct.tag) for struct in _structs(parent)] if keys[-1:] == ["kind"] else []


def _type_at(kind: Any, keys: TomlKeys) -> inspect.Type | None:
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
