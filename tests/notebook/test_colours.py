"""Colours: one per game, the same in every figure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from itertools import combinations

import pandas as pd
import pytest

from gamelens.notebook.figures.colours import colours_of, game_colours
from gamelens.notebook.figures.theme import LIGHT, theme
from support.sandbox_stage import Stage

GAMES = ["Tile Harbor", "Rooftop Dash", "Ember Realms", "Bubble Cove", "Word Orchard"]


def frame_of(titles: Iterable[str]) -> pd.DataFrame:
    """Return a frame of the games *titles*, with all titles in its receipt."""
    frame = pd.DataFrame({"game": pd.Categorical(list(titles))})
    frame.attrs["gamelens"] = {"titles": sorted(GAMES)}
    return frame


@pytest.mark.parametrize("many", [1, 2, 3, 5])
def test_a_game_has_one_colour_whichever_games_are_shown(many: int) -> None:
    """The colour of a game does not depend on the other games in the figure."""
    colours = game_colours(GAMES, frame_of(GAMES))
    for shown in combinations(GAMES, many):
        assert game_colours(shown, frame_of(shown)) == {game: colours[game] for game in shown}


def test_no_two_games_of_an_organisation_share_one() -> None:
    """Games of one organisation have different colours."""
    assert len({*game_colours(GAMES, frame_of(GAMES)).values()}) == len(GAMES)


@pytest.mark.wide
@pytest.mark.slow
def test_another_process_says_the_same() -> None:
    """Another process gives the same colours."""
    code = (
        "import pandas as pd; from gamelens.notebook.figures.colours import game_colours; frame = pd.DataFrame();"
        f"frame.attrs['gamelens'] = {{'titles': {GAMES}}}; print(game_colours({GAMES[::-1]}, frame))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert dict(eval(printed)) == game_colours(GAMES, frame_of(GAMES))


def test_the_order_says_nothing() -> None:
    """The order of the titles does not change the colours."""
    assert game_colours(GAMES[::-1], frame_of(GAMES)) == game_colours(GAMES, frame_of(GAMES))


def test_eight_of_two_hundred_have_eight_colours() -> None:
    """Eight of two hundred games have eight different colours in one figure."""
    frame = pd.DataFrame()
    frame.attrs["gamelens"] = {"titles": [f"Game {place}" for place in range(200)]}
    shown = [f"Game {place}" for place in range(0, 200, 25)]
    assert len({*game_colours(shown, frame).values()}) == len(LIGHT.palette) == 8


def test_without_a_receipt_games_still_differ() -> None:
    """Without a receipt games have different colours."""
    assert len({*game_colours(GAMES, pd.DataFrame()).values()}) == len(GAMES)


def test_the_unknown_group_is_grey() -> None:
    """The (unknown) group has the muted colour of the theme."""
    assert colours_of(frame_of(GAMES), "game", ["(unknown)"]) == {"(unknown)": theme().muted}
    networks = pd.DataFrame({"network": ["a", None]})
    assert colours_of(networks, "network", ["a", "(unknown)"]) == {"a": LIGHT.palette[0], "(unknown)": LIGHT.muted}


@pytest.mark.slow
def test_the_client_names_the_games_of_the_organisation(stage: Stage) -> None:
    """The receipt has the titles of all games, those outside the query included."""
    from support.watched_service import quick, sale, sell

    for game_id in ("1001", "1002", "2001"):
        sell(stage, sale("2026-11-18"), game_id=game_id)
    one = quick(stage.metrics_app).query("revenue", by="game", games=["2001"], over="2026-11-18", progress=False)
    assert one.attrs["gamelens"]["titles"] == ["Ember", "Tile Empire", "Tile Saga"]
    assert one["game"].tolist() == ["Ember"]
