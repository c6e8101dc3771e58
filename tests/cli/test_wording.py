"""How a command says no: one line, in the words of a terminal."""

from __future__ import annotations

import click
import pandas as pd
import pytest
from click.testing import CliRunner

from gamelens.cli.command_group import Commands
from gamelens.cli.terminal_text import error_line
from gamelens.errors import BadQuery, GamelensError, NotRecorded, NotYetAvailable, PartialResult, Truncated

GAP = {"metric": "revenue", "interval": "2026-11-01/2026-11-08", "scope": {"game_id": "1"}, "error": "answered 500."}


@pytest.mark.parametrize(
    ("error", "option"),
    [
        (PartialResult(pd.DataFrame(), [GAP, GAP]), "--on-error gaps"),
        (NotYetAvailable("2031-01-01", "2026-08-22/2026-11-20"), "--when-unavailable clip"),
        (NotYetAvailable("2031-01-01", "2026-08-22/2026-11-20", tried="wait"), "--deadline"),
        (NotYetAvailable("2031-01-01", "2026-08-22/2026-11-20", tried="clip"), "another interval"),
        (NotRecorded("GET /x", None), "--record DIR"),
        (Truncated(30_000), "--top"),
    ],
)
def test_a_refusal_names_options_and_no_arguments_of_python(error: GamelensError, option: str) -> None:
    said = error_line(error)
    assert option in said
    assert not [
        word for word in ("client.", "where=", "games=", 'when_unavailable="', "Client(", ".frame") if word in said
    ]


def test_a_missing_piece_is_named() -> None:
    assert error_line(PartialResult(pd.DataFrame(), [GAP])) == (
        "1 piece is missing: revenue in 2026-11-01/2026-11-08 (game_id = 1): answered 500. "
        "--on-error gaps shows what came"
    )


def test_everything_else_is_said_as_it_is() -> None:
    error = BadQuery("metric", "revenu", "is not a metric", ["revenue"])
    assert error_line(error) == str(error)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BadQuery("top", 0, "must be 1 or more"), "Error: top = 0 must be 1 or more.\n"),
        (FileNotFoundError(2, "No such file", "a.csv"), "Error: a.csv: No such file\n"),
        (ModuleNotFoundError("no", name="duckdb"), "Error: this needs duckdb: pip install 'gamelens[lab,sandbox]'\n"),
        (KeyError("x"), "Error: KeyError: 'x'. `gamelens --debug …` shows where\n"),
    ],
)
def test_whatever_goes_wrong_is_one_line_and_exit_code_1(error: Exception, said: str) -> None:
    """contract, Commands: no traceback unless --debug."""

    @click.group(cls=Commands)
    @click.option("--debug", is_flag=True)
    def group(debug: bool) -> None: ...

    @group.command()
    def fail() -> None:
        raise error

    done = CliRunner().invoke(group, ["fail"])
    assert (done.exit_code, done.stderr) == (1, said)
    assert CliRunner().invoke(group, ["--debug", "fail"]).exception is error
