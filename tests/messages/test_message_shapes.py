"""What a message says, and that no form lets a name from outside act."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser

import pandas as pd
import pytest
import requests

from gamelens.analysis import health
from gamelens.investigations.health_check import HealthReport
from gamelens.messages.message_text import chat_text, html_page, markdown, plain_text
from gamelens.messages.morning_message import (
    MOST_LINES,
    GameNews,
    MorningMessage,
    alarms_of,
    message_of,
)
from gamelens.messages.targets import target_of
from support.hostile_names import NAMES
from support.tidy_frames import tidy_frame

DAY = date(2026, 11, 21)
CHATS = [
    f"https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/{'T' * 24}",
    f"https://discord.com/api/webhooks/4174216298/{'J' * 68}",
    f"workflows://prod.westus.logic.azure.com/643e69f83c8944438d68119179a10a64/{'s' * 30}/",
    f"gchat://{'w' * 10}/{'k' * 20}/{'t' * 20}",
    f"mmost://chat.example/{'a' * 26}",
]


def hostile_message(name: str, games: int = 1, alarms: int = 1) -> MorningMessage:
    """Return a message in which every text from outside is *name*."""
    kinds = ("New", "Still open", "Recovered")
    sentences = tuple(f"{kinds[number % 3]}: {name} fell by 20%" for number in range(alarms))
    return MorningMessage(
        day=DAY,
        headline=f"{name} is not as usual",
        games=(GameNews(name, "1 new", (f"{name} $1 (-20%)",) * 12, sentences),) * games,
        notes=(name,),
        source=name,
    )


class Tags(HTMLParser):
    """The names of all tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.names.add(tag)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_adds_no_tag_to_a_page(name: str) -> None:
    """Tags are those of a message whose names are plain words."""
    plain, hostile = Tags(), Tags()
    plain.feed(html_page(hostile_message("Tile")))
    hostile.feed(html_page(hostile_message(name)))
    assert hostile.names == plain.names


@pytest.mark.parametrize("address", CHATS)
def test_nobody_is_mentioned(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request to a chat mentions anybody or links anywhere, whatever a game is called."""
    asked: list[str] = []

    def post(*_: object, **options: object) -> requests.Response:
        asked.append(json.dumps(options, default=str, ensure_ascii=False))
        response = requests.Response()
        response.status_code = 200
        response._content = b"ok"
        return response

    for name in ("post", "request"):
        monkeypatch.setattr(requests, name, post)
    names = "<!channel> <!here|x> @everyone @here <@U6TTX1F9R> [x](https://evil.example) <https://evil.example|Click>"
    with contextlib.suppress(OSError):  # an answer that the chat would not give: what was sent counts
        target_of(address).send(hostile_message(names))
    assert asked
    for active in (r"<!\w", r"@(everyone|here)", r"<@\w", r"\]\(", r"https?://evil"):
        assert not re.search(active, "".join(asked)), active
    assert "1 new" in asked[0]
    assert "apprise" not in "".join(asked).lower().replace(address, "")


def test_nobody_is_linked_in_markdown() -> None:
    """A game called like a link is not one on the page of a job."""
    assert "](" not in markdown(hostile_message("[x](https://evil.example)"))


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("room", [700, 1000, 2000, 4000, 32768])
@pytest.mark.parametrize("letter", ["x", "@", "*"])
def test_a_large_message_fits(room: int, letter: str) -> None:
    """A chat gets as many whole lines as it has room for, and the number of the others."""
    message = hostile_message(letter * 250, games=40, alarms=9)
    text = chat_text(message, room)
    assert len(text) <= room
    if hidden := re.search(r"… and (\d+) more lines: gamelens health shows them all$", text):
        shown = text.splitlines()[:-1]
        assert int(hidden[1]) > 0
        assert all(len(line) > 200 or line == "" for line in shown)


def board_with(
    *missing: str, games: Sequence[str] = ("Tile", "Word"), metrics: Sequence[str] = ("user_unique",)
) -> HealthReport:
    """Return a health report of *games* in which the players of those *missing* are missing on `DAY`."""
    days = [datetime(2026, 10, 1, tzinfo=UTC) + timedelta(days=number) for number in range(52)]
    rows = [(day, game) for day in days for game in games]
    frames = []
    for metric in metrics:
        frame = tidy_frame(
            metric,
            timestamp=[f"{day:%Y-%m-%d}" for day, _ in rows],
            game=[game for _, game in rows],
            game_id=[game for _, game in rows],
            **{metric: [300 if day.date() == DAY and game in missing else 1000 + day.day for day, game in rows]},
        )
        frame.attrs["gamelens"]["asked"] |= {"by": ["game"], "every": "day", "interval": "2026-10-01/2026-11-22"}
        frames.append(frame)
    scores = health.score_days(health.daily(frames, health.watches(metrics)))
    return HealthReport(health.board(scores), scores, pd.DataFrame(), 1)


def alarms_by_game(message: MorningMessage) -> dict[str, list[str]]:
    """Return what each alarm of a message is, by game."""
    return {news.game: [line.partition(":")[0] for line in news.alarms] for news in message.games}


def test_alarms_are_new_then_open_then_recovered() -> None:
    """Each message compares its alarms with those of the last one."""
    quiet, one, both = board_with(), board_with("Tile"), board_with("Tile", "Word")
    first = message_of(one, {})
    assert first is not None
    assert alarms_by_game(first) == {"Tile": ["New"], "Word": []}
    assert first.games[0].status == "1 new"
    second = message_of(both, alarms_of(one))
    assert second is not None
    assert alarms_by_game(second) == {"Tile": ["Still open"], "Word": ["New"]}
    third = message_of(quiet, alarms_of(one))
    assert third is not None
    assert alarms_by_game(third) == {"Tile": ["Recovered"], "Word": []}
    one_game = message_of(board_with(games=["Word"]), alarms_of(one))
    assert [note.partition(": Tile: ")[0] for note in one_game.notes] == ["No longer on the board"]


def test_headline_numbers_are_those_of_the_board() -> None:
    """Each game's number of the day, and its change against a usual day."""
    message = message_of(board_with("Tile"), {})
    assert message is not None
    assert [(it.game, *it.numbers) for it in message.games] == [
        ("Tile", "Active players 300 (-71%)"),
        ("Word", "Active players 1,021 (0%)"),
    ]


@pytest.mark.parametrize(("hours", "is_late"), [(1, False), (23, False), (24, True)])
def test_a_late_day_is_named(hours: int, is_late: bool) -> None:
    """From the second midnight on, yesterday is missing, and the title says so first."""
    end = datetime(2026, 11, 22, tzinfo=UTC)
    report = board_with()
    asked_at = (end + timedelta(hours=hours)).isoformat()
    report.board.attrs["gamelens"] |= {"as_of": end.isoformat(), "asked_at": asked_at}
    message = message_of(report, {})
    assert message.headline.startswith("The data end on 22 Nov 2026 00:00 UTC, 24 h ago: ") == is_late
    assert ("The data end" in plain_text(message)) == is_late


def test_a_game_has_five_lines_at_most_and_says_what_is_cut() -> None:
    """The numbers are one line, the worst alarms follow, and both count what is left out."""
    news = GameNews("Tile", "9 new", tuple(f"number {it}" for it in range(12)), tuple(f"New: {it}" for it in range(9)))
    lines = news.lines()
    assert len(lines) == MOST_LINES == 5
    assert lines[0].endswith(" · number 7 · 4 more numbers")
    assert lines[1:] == ["New: 0", "New: 1", "New: 2", "6 more alarms not shown."]
    assert GameNews("Tile", "4 new", (), ("New: 1", "New: 2", "New: 3", "New: 4")).lines()[-1] == "New: 4"
    assert len(GameNews("Tile", "nothing stands out", ("Sessions 3",)).lines()) == 1
    text = plain_text(MorningMessage(day=DAY, headline="alarms", games=(news,)))
    assert "gamelens health --json lists every number" in text


def test_the_day_is_written_once() -> None:
    """The title has it; alarms and the headline do not repeat it."""
    message = message_of(board_with("Tile"), {})
    text = plain_text(message).partition("Source:")[0]
    assert (text.count("2026-11-21"), text.count("21 Nov 2026")) == (1, 0)
    assert re.search(r"- New: Active players 7\d% below a usual Saturday \(300 instead of about ", text)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("many", [12, 20, 60])
def test_every_game_is_in_every_form(many: int) -> None:
    """However many games there are: where there is little room, each has fewer lines and numbers."""
    games = [f"Game {number:02}" for number in range(many)]
    report = board_with(*games[:30], games=games, metrics=("user_unique", "event_count"))
    message = message_of(report, {})
    for text in (chat_text(message, 2000), chat_text(message, 32768), markdown(message), html_page(message)):
        assert all(game in text for game in games)
        assert not re.search("more lines?:", text)


def test_a_number_has_its_unit() -> None:
    """Seconds are named where the name of the number does not say them."""
    report = board_with(metrics=("user_unique",))
    board = report.board.assign(watch="session_length", metric="Session length", kind="number")
    news = message_of(HealthReport(board, report.scores, pd.DataFrame(), 1), {})
    assert news.games[0].numbers[0].startswith("Session length 1,021 seconds")
