"""Error messages of commands: one line, in terms of options."""

from __future__ import annotations

import click
import pandas as pd
import pytest
from click.testing import CliRunner

from gamelens.cli.command_group import Commands
from gamelens.cli.terminal.terminal_text import error_line
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
    """Errors of the client are reworded to name options of the command."""
    text = error_line(error)
    assert option in text
    assert not [
        word for word in ("client.", "where=", "games=", 'when_unavailable="', "Client(", ".frame") if word in text
    ]


def test_a_gap_is_named() -> None:
    """A partial result names metric, interval, scope and error of the gap."""
    assert error_line(PartialResult(pd.DataFrame(), [GAP])) == (
        "1 piece is missing: revenue in 2026-11-01/2026-11-08 (game_id = 1): answered 500. "
        "--on-error gaps shows the rest"
    )


def test_other_errors_keep_their_message() -> None:
    """An error without a wording of its own keeps its message."""
    error = BadQuery("metric", "revenu", "is not a metric", ["revenue"])
    assert error_line(error) == str(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (BadQuery("top", 0, "must be 1 or more"), "Error: top = 0 must be 1 or more.\n"),
        (FileNotFoundError(2, "No such file", "a.csv"), "Error: a.csv: No such file\n"),
        (ModuleNotFoundError("no", name="duckdb"), "Error: this needs duckdb: pip install 'gamelens[lab,sandbox]'\n"),
        (ValueError("a\nb"), "Error: ValueError: a b. `gamelens --debug …` shows where\n"),
        (KeyError("x"), "Error: KeyError: 'x'. `gamelens --debug …` shows where\n"),
    ],
)
def test_any_error_is_one_line_and_exit_code_1(error: Exception, text: str) -> None:
    """Any exception is one line and exit code 1, and is raised only with --debug."""

    @click.group(cls=Commands)
    @click.option("--debug", is_flag=True)
    def group(debug: bool) -> None: ...

    @group.command()
    def fail() -> None:
        """Raise the error under test."""
        raise error

    result = CliRunner().invoke(group, ["fail"])
    assert (result.exit_code, result.stderr) == (1, text)
    assert CliRunner().invoke(group, ["--debug", "fail"]).exception is error
