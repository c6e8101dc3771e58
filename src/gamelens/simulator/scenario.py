"""What a population is like, as a frozen value read from a TOML file.

Studios and games are matched to the organisation that receives them by position: the first game of the first studio
plays into the first game there. A scenario that exists can be played; what cannot is refused when it is made, with
the key, its value and what is allowed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from gamelens.errors import BadQuery
from gamelens.simulator.traits import (
    Ads,
    AdUnit,
    Build,
    Country,
    Game,
    Item,
    Network,
    Part,
    Progression,
    Purchases,
    Retention,
    Sessions,
    positive,
    within,
)


class Studio(Part, frozen=True, kw_only=True):
    """One studio and its games."""

    name: str
    games: tuple[Game, ...] = msgspec.field(name="game")


class Scenario(Part, frozen=True, kw_only=True):
    """A whole population: *players* in all, installing over *days* days, more on some weekdays (Monday first)."""

    name: str
    seed: int
    days: int
    players: int
    weekdays: tuple[float, float, float, float, float, float, float]
    countries: tuple[Country, ...] = msgspec.field(name="country")
    studios: tuple[Studio, ...] = msgspec.field(name="studio")
    about: str = ""

    def __post_init__(self) -> None:
        within("seed", self.seed, 0, 2**63 - 1)
        within("days", self.days, 1, 3660)
        within("players", self.players, 1, 10**9)
        for weight in self.weekdays:
            positive("weekdays", weight)
        if not self.games:
            raise BadQuery("studio.game", (), "must hold at least one game")
        for game in self.games:
            _check_countries(game, {country.code: country for country in self.countries})

    @property
    def games(self) -> tuple[Game, ...]:
        """Every game, studio by studio: the order game ids are given in."""
        return tuple(game for studio in self.studios for game in studio.games)

    def players_by_game(self) -> list[int]:
        """Players of each game; they add up to *players* (largest remainders get the odd ones)."""
        total = sum(game.share for game in self.games)
        exact = [self.players * game.share / total for game in self.games]
        counts = [int(count) for count in exact]
        by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
        for i in by_remainder[: self.players - sum(counts)]:
            counts[i] += 1
        return counts

    def country(self, code: str) -> Country:
        """The country called *code*."""
        return next(country for country in self.countries if country.code == code)


def scenario_names() -> list[str]:
    """Names of the scenarios that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))


def load_scenario(
    name_or_path: str | Path, *, players: int | None = None, days: int | None = None, seed: int | None = None
) -> Scenario:
    """The scenario called *name_or_path* or written in that TOML file, with what is given here in place of its own.

    A file may say `extends = "demo"` and hold only the top-level keys that differ.

    Raises:
        BadQuery: no such scenario, no TOML, or a key with a value that is not allowed.
    """
    scenario = _decode(_read(name_or_path))
    given = {"players": players, "days": days, "seed": seed}
    changed = {key: value for key, value in given.items() if value is not None}
    return msgspec.structs.replace(scenario, **changed) if changed else scenario


_SHIPPED: Final = resources.files("gamelens.simulator") / "scenarios"


def _read(name_or_path: str | Path) -> dict[str, Any]:
    text = str(name_or_path)
    is_file = text.endswith(".toml")
    if not is_file and text not in scenario_names():
        raise BadQuery("scenario", text, "is not a shipped scenario, nor a .toml file", scenario_names())
    source = Path(text) if is_file else _SHIPPED / f"{text}.toml"
    try:
        raw = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadQuery("scenario", text, f"cannot be read: {error}") from None
    base = raw.pop("extends", None)
    if base is None:
        return raw
    if not isinstance(base, str) or base == text or base not in scenario_names():
        raise BadQuery("extends", base, "is not a shipped scenario", scenario_names())
    return {**_read(base), **raw}


def _decode(raw: dict[str, Any]) -> Scenario:
    try:
        return msgspec.convert(raw, Scenario)
    except msgspec.ValidationError as error:
        raise _refusal(raw, str(error)) from None


def _refusal(raw: dict[str, Any], message: str) -> BadQuery:
    """Msgspec's message, turned into the key, the value and the rule."""
    rule, _, place = message.partition(" - at `")
    keys = re.findall(r"[^.\[\]$`]+", place)
    if unknown := re.search("unknown field `(.+)`", rule):
        table = next((key for key in reversed(keys) if not key.isdigit() and key != "..."), "")
        return BadQuery(".".join([*keys, unknown[1]]), unknown[1], "is not a key here", _keys_of(table))
    value: Any = raw
    for key in keys:
        value = value[int(key)] if isinstance(value, list) and key.isdigit() else _child(value, key)
    return BadQuery(".".join(keys) or "scenario", value if keys else "…", f"is refused: {rule[:1].lower()}{rule[1:]}")


def _child(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else value


def _keys_of(table: str) -> Iterable[str]:
    parts: dict[str, type[Part]] = {
        "country": Country,
        "studio": Studio,
        "game": Game,
        "retention": Retention,
        "sessions": Sessions,
        "progression": Progression,
        "ads": Ads,
        "formats": AdUnit,
        "network": Network,
        "purchases": Purchases,
        "item": Item,
        "build": Build,
    }
    return [field.encode_name for field in msgspec.structs.fields(parts.get(table, Scenario))]


def _check_countries(game: Game, known: Mapping[str, Country]) -> None:
    for code in game.countries:
        if code not in known:
            raise BadQuery(f"countries of {game.title}", code, "is not a country of the scenario", known)
        for item in game.purchases.items:
            if (currency := known[code].currency) not in item.price:
                raise BadQuery(f"price of {item.id}", sorted(item.price), f"lacks {currency}, which {code} pays in")
