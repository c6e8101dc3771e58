"""Colours: one for each game, and one for each other value that a figure compares.

A game's place in the palette follows from its title, so it is the same in every process, notebook and report. If two
games hash to the same place, the later one in the alphabet takes the next free place. Places are shared out among all
games of the organisation, which the receipt lists, as long as the palette has a colour for each, else among the games
of the figure.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from pandas import DataFrame

from gamelens.analysis.tidy_frames import UNKNOWN, label_columns
from gamelens.notebook.figures.theme import theme
from gamelens.receipts import Receipt

MOST_LINES: Final = 8
"""Lines of one figure at most, which is the number of colours of a palette."""


def game_colours(games: Iterable[str], frame: DataFrame) -> dict[str, str]:
    """Return the colour of each of *games* in the current theme.

    Args:
        games: titles of games.
        frame: its receipt lists the other games of the organisation.
    """
    games, palette = list(games), theme().palette
    titles = {*games, *Receipt.of(frame.attrs).titles}
    places = _places(titles if len(titles) <= len(palette) else games, len(palette))
    return {game: palette[places[game]] for game in games}


def colours_of(frame: DataFrame, by: str | Sequence[str] | None, names: Sequence[str]) -> dict[str, str]:
    """Return a colour for each of *names*, the values of *by* in *frame*.

    A game has its own colour, other values take the palette in order, and unknown values are muted.
    """
    look, named = theme(), [name for name in names if name != UNKNOWN]
    in_order = {name: look.palette[place % len(look.palette)] for place, name in enumerate(named)}
    colours = game_colours(named, frame) if is_game(frame, by) else in_order
    return {name: colours.get(name, look.muted) for name in names}


def is_game(frame: DataFrame, by: str | Sequence[str] | None) -> bool:
    """Return whether a figure of *frame* by *by* compares games and nothing else."""
    columns = label_columns(frame) if by is None else [by] if isinstance(by, str) else list(by)
    return columns in (["game"], ["game_id"])


def _places(games: Iterable[str], many: int) -> dict[str, int]:
    """Return a place below *many* for each game, unique unless there are more games."""
    places: dict[str, int] = {}
    for game in sorted({*games}):
        taken, preferred = Counter(places.values()), _preferred_place(game) % many
        places[game] = min(range(many), key=lambda place: (taken[place], (place - preferred) % many))
    return places


def _preferred_place(game: str) -> int:
    return int.from_bytes(hashlib.blake2b(game.encode(errors="replace"), digest_size=8).digest())
