"""What a message says, and that no shape lets a name from outside act."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser

import pandas as pd
import pytest

from gamelens.analysis import health
from gamelens.messages.mail import MOST_BYTES
from gamelens.messages.message_text import html_page, markdown, plain_text
from gamelens.messages.morning_message import (
    MOST_ALARMS,
    MOST_NUMBERS,
    HeadlineNumber,
    MorningMessage,
    alarms_of,
    message_of,
)
from gamelens.messages.webhooks import SHAPES, discord, slack
from gamelens.notebook.health_check import HealthReport
from support.hostile_names import NAMES
from support.tidy_frames import tidy_frame

DAY = date(2026, 11, 21)


def hostile_message(name: str, number: int = 1) -> MorningMessage:
    """Return a message in which every text from outside is *name*."""
    lines = tuple(f"{name}: revenue fell by 20%" for _ in range(number))
    return MorningMessage(
        day=DAY,
        headline=f"{name} is not as usual",
        numbers=(HeadlineNumber(name, "revenue", "$1", "-20%"),) * number,
        new=lines,
        recovered=lines,
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


def test_nobody_is_mentioned() -> None:
    """A game called like a mention calls nobody in Slack and Discord, and is not a link in Markdown."""
    message = hostile_message("<!channel> @everyone [x](https://evil.example)")
    assert not {"<", ">"} & {*json.dumps(slack(message))}
    assert discord(message)["allowed_mentions"] == {"parse": []}
    assert " @everyone" not in discord(message)["embeds"][0]["description"]
    assert "](" not in markdown(message)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_message_fits(shape: str) -> None:
    """With as many long sentences as a message has, the limits of each chat and of a mail hold."""
    message = hostile_message("x" * 250, MOST_ALARMS + 1)
    body = SHAPES[shape](message)
    assert len(json.dumps(body)) < 28_000
    if shape == "slack":
        assert len(body["blocks"]) <= 50
        assert all(len(block["text"]["text"]) <= 3000 for block in body["blocks"] if "text" in block)
    if shape == "discord":
        assert len(body["embeds"][0]["title"]) <= 256
        assert len(body["embeds"][0]["description"]) + len(body["embeds"][0]["footer"]["text"]) <= 5700
    assert len(html_page(message).encode()) <= MOST_BYTES


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


def test_alarms_are_new_then_open_then_recovered() -> None:
    """Each message compares its alarms with those of the last one."""
    now = datetime(2026, 11, 22, 6, tzinfo=UTC)
    quiet, one, both = board_with(), board_with("Tile"), board_with("Tile", "Word")
    first = message_of(one, {}, now=now)
    assert first is not None
    assert [len(lines) for lines in (first.new, first.still_open, first.recovered)] == [1, 0, 0]
    assert "Tile" in first.new[0]
    second = message_of(both, alarms_of(one), now=now)
    assert second is not None
    assert [len(lines) for lines in (second.new, second.still_open, second.recovered)] == [1, 1, 0]
    assert ("Word" in second.new[0], second.still_open) == (True, first.new)
    third = message_of(quiet, alarms_of(one), now=now)
    assert third is not None
    assert [third.new, third.still_open, third.recovered] == [(), (), first.new]


def test_headline_numbers_are_those_of_the_board() -> None:
    """Each game's number of the day, and its change against a usual day."""
    message = message_of(board_with("Tile"), {}, now=datetime(2026, 11, 22, tzinfo=UTC))
    assert message is not None
    assert {(it.game, it.name, it.value) for it in message.numbers} == {
        ("Tile", "Active players", "300"),
        ("Word", "Active players", "1,021"),
    }
    assert {it.game: it.change[:2] for it in message.numbers}["Tile"] == "-7"


@pytest.mark.parametrize(("hours", "is_late"), [(1, False), (23, False), (24, True)])
def test_a_late_day_is_named(hours: int, is_late: bool) -> None:
    """From the second midnight on, yesterday is missing, and the message says so."""
    now = datetime(2026, 11, 22, tzinfo=UTC) + timedelta(hours=hours)
    message = message_of(board_with(), {}, now=now)
    assert message is not None
    late = ("22 Nov 2026 is not complete yet: these are the numbers of 21 Nov 2026.",)
    assert message.notes == (late if is_late else ())
    assert ("not complete" in plain_text(message)) == is_late


@pytest.mark.parametrize(("many", "left_out"), [(12, 0), (20, 16), (30, 30)])
def test_every_game_has_a_number_and_what_is_cut_is_counted(many: int, left_out: int) -> None:
    """In every shape, however many games there are; a note has the count of the other numbers."""
    games = [f"Game {number:02}" for number in range(many)]
    report = board_with(games=games, metrics=("user_unique", "event_count"))
    message = message_of(report, {}, now=datetime(2026, 11, 22, 8, tzinfo=UTC))
    assert len(message.numbers) == max(MOST_NUMBERS, many) == 2 * many - left_out
    cut = f"{left_out} more headline numbers: gamelens health --json has them all."
    assert message.notes == ((cut,) if left_out else ())
    texts = [json.dumps(shape(message)) for shape in SHAPES.values()]
    for text in (*texts, plain_text(message), markdown(message), html_page(message)):
        assert all(game in text for game in games)
        assert ("more headline numbers" in text) == bool(left_out)


def test_the_games_share_the_numbers() -> None:
    """A game with one number leaves room for those of the others."""
    both = board_with(games=("Tile", "Word"), metrics=("user_unique", "event_count"))
    board = both.board[(both.board["game"] != "Word") | (both.board["watch"] == both.board["watch"].iloc[0])]
    message = message_of(
        HealthReport(board, both.scores, pd.DataFrame(), 1), {}, now=datetime(2026, 11, 22, tzinfo=UTC)
    )
    assert sorted(it.game for it in message.numbers) == ["Tile", "Tile", "Word"]


@pytest.mark.parametrize("letter", ["x", "&", "*"])
def test_a_chat_counts_the_lines_that_do_not_fit(letter: str) -> None:
    """Slack and Discord show whole lines, and say how many more there are."""
    message = hostile_message(letter * 250, MOST_ALARMS)
    (new,) = (block["text"]["text"] for block in slack(message)["blocks"] if "*New*" in str(block))
    shown, more = new.splitlines()[1:-1], new.splitlines()[-1]
    assert all(line.endswith("fell by 20%") for line in shown)
    assert re.match(rf"… and {MOST_ALARMS - len(shown)} more lines?: gamelens health", more)
    *shown, more = discord(message)["embeds"][0]["description"].splitlines()
    assert re.match(rf"… and {1 + 2 * (1 + MOST_ALARMS) + MOST_ALARMS - len(shown)} more lines: gamelens health", more)
