"""The health board widget: rows by severity, search, drill-down and failures."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from gamelens import BadQuery
from gamelens.analysis import health
from gamelens.client.sync_client import Client
from gamelens.notebook import widgets
from gamelens.notebook.escaping import plain
from gamelens.notebook.widgets.health_board import MOST_ROWS, HealthBoard
from gamelens.notebook.widgets.html_blocks import FIGURE
from support.served_metrics import KEY, World
from support.thousand_networks import HOSTILE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def board(calm: Client) -> Iterator[HealthBoard]:
    """A health board of the service without faults."""
    board = widgets.health_board(calm)
    assert board.settled()
    yield board
    board.close()


def test_it_shows_the_worst_first(board: HealthBoard) -> None:
    """Rows are those of the board, the most severe first, up to a page."""
    assert board.seen is not None
    shown = [re.sub("^▲+ ", "", row["label"]).split(" · ")[0] for row in board.rows.rows]
    assert shown == [str(severity) for severity in board.seen.board["severity"].head(MOST_ROWS)]


def test_a_button_is_named_with_what_it_says(board: HealthBoard) -> None:
    """The text of a button, its name for a screen reader, has severity and subject, and no two are the same."""
    assert board.seen is not None
    names = [row["tooltip"] for row in board.rows.rows]
    subjects = [plain(health.subject(row)) for row in board.seen.board.head(MOST_ROWS).to_dict("records")]
    assert all(subject in name for subject, name in zip(subjects, names, strict=True))
    assert len(set(names)) == len(names)


def test_a_search_narrows_it(board: HealthBoard) -> None:
    """A search keeps the rows that contain its text."""
    board.search.take({"text": "ember"})
    assert 0 < len(board.rows.rows) < MOST_ROWS
    assert all("Ember" in row["text"] for row in board.rows.rows)
    board.search.value = "nothing of the kind"
    assert len(board.rows.rows) == 0
    board.search.value = ""
    assert len(board.rows.rows) > 0


def test_a_least_severity_narrows_it(board: HealthBoard) -> None:
    """A least severity keeps only rows of at least that severity."""
    board.least.value = "critical"
    assert all(("critical · " in row["label"], row["tone"]) == (True, "critical") for row in board.rows.rows)
    board.least.value = ""
    assert len(board.rows.rows) > 0


def test_a_click_shows_the_days_and_segments_of_a_row(board: HealthBoard) -> None:
    """A click on a row shows its days as a figure and its segments as a table."""
    place = next(place for place, row in enumerate(board.rows.rows) if "Active players" in row["text"])
    board.rows.take({"place": place, "label": board.rows.rows[place]["label"]})
    assert board.settled()
    assert board.figure is not None
    assert board.picked is not None
    assert board.picked["metric"] == "Active players"
    assert "country" in board._segments.value


def test_its_static_view_is_a_table_and_a_figure(board: HealthBoard) -> None:
    """The static view has a table and a figure, and does not contain the key."""
    table, figure = board.bundles()
    assert "<table>" in table["text/html"]
    assert figure[FIGURE]["data"]
    assert KEY not in table["text/html"]


def test_hostile_names_are_only_text(board: HealthBoard) -> None:
    """Hostile names are escaped in details and figure; rows are texts."""
    assert "<img" not in board.static().html
    assert board.seen is not None
    row = board.seen.board.iloc[0].to_dict() | {"game": HOSTILE, "sentence": HOSTILE}
    board.pick(row)
    assert board.settled()
    assert "<img" not in board._about.value
    assert "<img" not in str(board.figure)


def test_a_service_that_fails_is_a_message(world: World, lens: Client) -> None:
    """If the service fails, a message says what to do, and a click recovers."""
    world.fail(status=500)
    board = widgets.health_board(lens, metrics=["user_unique"])
    assert board.settled()
    assert "press Ask again" in board.static().html
    assert board.seen is None
    world.heal()
    board.again.click()
    assert board.settled()
    assert board.seen is not None
    board.close()


def test_only_a_client_is_accepted() -> None:
    """Anything but a client raises `BadQuery`."""
    with pytest.raises(BadQuery, match="must be a client"):
        widgets.health_board("https://somewhere")  # type: ignore[arg-type]
