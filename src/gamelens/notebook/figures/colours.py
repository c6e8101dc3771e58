"""One colour for each game, and one for each of the other things a figure compares.

A game's place in the palette follows from its title, so it is the same in every process, notebook and report. Two
games that want the same place: the later one in the alphabet takes the next that is free, among all games of the
organisation (the receipt names them) while the palette has a colour for each, else among those of the figure.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from pandas import DataFrame

from gamelens.analysis.tidy_frames import UNKNOWN, label_columns
from gamelens.notebook.figures.theme import theme
from gamelens.wire.receipts import Receipt


def game_colours(games: Iterable[str], frame: DataFrame) -> dict[str, str]:
    """The colour of each of *games* in the theme in force; the receipt of *frame* says which others there are."""
    games, palette = list(games), theme().palette
    everybody = {*games, *Receipt.of(frame.attrs).titles}
    places = _places(everybody if len(everybody) <= len(palette) else games, len(palette))
    return {game: palette[places[game]] for game in games}


def colours_of(frame: DataFrame, by: str | Sequence[str] | None, names: Sequence[str]) -> dict[str, str]:
    """A colour for each of *names*, the values of *by* in *frame*: a game's own, or the next of the palette."""
    look, known = theme(), [name for name in names if name != UNKNOWN]
    own = {name: look.palette[place % len(look.palette)] for place, name in enumerate(known)}
    colours = game_colours(known, frame) if is_game(frame, by) else own
    return {name: colours.get(name, look.muted) for name in names}


def is_game(frame: DataFrame, by: str | Sequence[str] | None) -> bool:
    """Whether a figure of *frame* compares games, and nothing else."""
    columns = label_columns(frame) if by is None else [by] if isinstance(by, str) else list(by)
    return columns in (["game"], ["game_id"])


def _places(games: Iterable[str], many: int) -> dict[str, int]:
    """A place below *many* for each game; two share one only where there are more games than places."""
    places: dict[str, int] = {}
    for game in sorted({*games}):
        taken, wanted = Counter(places.values()), _wanted(game) % many
        places[game] = min(range(many), key=lambda place: (taken[place], (place - wanted) % many))
    return places


def _wanted(game: str) -> int:
    return int.from_bytes(hashlib.blake2b(game.encode(errors="replace"), digest_size=8).digest())
