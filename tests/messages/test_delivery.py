"""Messages to real receivers: a webhook, a mail server and a file, each day once."""

from __future__ import annotations

import email
import json
import socket
from collections.abc import Iterator
from datetime import date
from email import policy
from pathlib import Path

import pytest

from gamelens.errors import BadQuery
from gamelens.messages.journal import MessageJournal
from gamelens.messages.mail import MOST_BYTES
from gamelens.messages.morning_message import GameNews, MorningMessage
from gamelens.messages.targets import target_of
from support.message_receivers import ReceivedMails, ReceivedPosts, mail_server, webhook

DAY, NEXT = date(2026, 11, 21), date(2026, 11, 22)
MESSAGE = MorningMessage(
    day=DAY,
    headline="1 of 10 numbers is not as usual",
    badge="demo data",
    games=(GameNews("Tile Harbor", "1 new", ("Revenue $12,300 (-20%)",), ("New: Revenue fell by 20%",)),),
    source="Source: gamelens",
)
SECRET = "T0KEN-OF-THE-HOOK"


@pytest.fixture
def journal(tmp_path: Path) -> MessageJournal:
    """An empty journal."""
    return MessageJournal(tmp_path / "messages")


@pytest.fixture
def posts() -> Iterator[ReceivedPosts]:
    """A running webhook."""
    with webhook() as received:
        yield received


@pytest.fixture
def mails() -> Iterator[ReceivedMails]:
    """A running mail server."""
    with mail_server() as received:
        yield received


def deliver(journal: MessageJournal, text: str, day: date = DAY) -> tuple[str, str]:
    """Deliver the message of *day* to the target *text* and return outcome and reason."""
    target = target_of(text)
    done = journal.deliver(target.identity, day, {"a": "b"}, lambda: target.send(MESSAGE))
    return done.outcome, done.why


def test_a_day_is_posted_once(journal: MessageJournal, posts: ReceivedPosts) -> None:
    """The second try of a day sends nothing, the next day does, and an earlier day never follows."""
    text = f"slack+{posts.address}/services/{SECRET}?x=1"
    assert [deliver(journal, text, day)[0] for day in (DAY, DAY, NEXT, DAY)] == [
        *("sent", "already sent", "sent", "already sent")
    ]
    assert posts.paths == [f"/services/{SECRET}?x=1"] * 2


@pytest.mark.parametrize("status", [400, 404, 429])
def test_a_refused_message_is_sent_again(journal: MessageJournal, posts: ReceivedPosts, status: int) -> None:
    """A refusal is certain, so that the next try sends the message."""
    posts.status = status
    outcome, why = deliver(journal, f"json+{posts.address}/{SECRET}")
    assert (outcome, str(status) in why, SECRET in why) == ("not sent", True, False)
    posts.status = 200
    assert deliver(journal, f"json+{posts.address}/{SECRET}")[0] == "sent"


@pytest.mark.parametrize("status", [0, 500, 503])
def test_a_message_without_an_answer_is_unsure(journal: MessageJournal, posts: ReceivedPosts, status: int) -> None:
    """A broken connection or a failing server: it is sent once, and again only when a person says it is lost."""
    text = f"json+{posts.address}/{SECRET}"
    posts.status = status
    assert [deliver(journal, text)[0], deliver(journal, text)[0]] == ["unsure", "unsure"]
    assert len(posts.bodies) == 1
    posts.status = 200
    assert journal.settle(target_of(text).identity, arrived=False)
    assert (deliver(journal, text)[0], len(posts.bodies)) == ("sent", 2)


def test_what_arrived_is_not_sent_again(journal: MessageJournal, posts: ReceivedPosts) -> None:
    """A person who saw the message says so, and the day is done with its alarms."""
    text = f"json+{posts.address}/x"
    posts.status = 500
    deliver(journal, text)
    identity = target_of(text).identity
    assert journal.settle(identity, arrived=True)
    assert not journal.settle(identity, arrived=True)
    sent = journal.record(identity).sent
    assert (deliver(journal, text)[0], sent is not None and sent.alarms) == ("already sent", {"a": "b"})


def test_an_earlier_unsure_day_is_named_when_the_next_is_sent(journal: MessageJournal, posts: ReceivedPosts) -> None:
    """An unsure day does not keep the next from being sent, and does not vanish without a word."""
    text = f"json+{posts.address}/x"
    posts.status = 500
    deliver(journal, text)
    posts.status = 200
    assert deliver(journal, text, NEXT) == ("sent", f"it is not known whether {DAY} arrived")


def test_where_nothing_answers_nothing_is_sent(journal: MessageJournal) -> None:
    """A closed port is certain: the message may be sent again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert deliver(journal, f"json+http://127.0.0.1:{port}/{SECRET}")[0] == "not sent"
    outcome, why = deliver(journal, f"smtp://u:{SECRET}@127.0.0.1:{port}?to=a@b.example")
    assert (outcome, SECRET in why) == ("not sent", False)


def test_a_mail_has_text_and_a_small_page(journal: MessageJournal, mails: ReceivedMails) -> None:
    """The page has no script, no image and nothing from elsewhere, and the text says the same."""
    text = f"smtp://127.0.0.1:{mails.port}?to=anna@studio.example&from=me@studio.example"
    assert [deliver(journal, text)[0], deliver(journal, text)[0]] == ["sent", "already sent"]
    mail = email.message_from_bytes(mails.contents[0], policy=policy.default)
    plain, page = (part.get_content() for part in mail.iter_parts())
    assert (mail["To"], mail["Subject"]) == ("anna@studio.example", MESSAGE.title)
    assert len(page.encode()) < MOST_BYTES / 10
    assert all(word not in page.lower() for word in ("<script", "<img", "http://", "https://", "url(", "<style"))
    assert all(word in part for part in (plain, page) for word in ("$12,300", "fell by 20%", "demo data"))


def test_a_refused_mail_is_not_sent(journal: MessageJournal, mails: ReceivedMails) -> None:
    """A server that answers 550 has no mail."""
    mails.refuses = True
    text = f"smtp://127.0.0.1:{mails.port}?to=anna@studio.example"
    outcome, why = deliver(journal, text)
    assert (outcome, why) == ("not sent", "127.0.0.1 refused the mail to anna@studio.example, code 550")
    mails.refuses = False
    assert deliver(journal, text)[0] == "sent"


def test_a_summary_keeps_what_it_has(journal: MessageJournal, tmp_path: Path) -> None:
    """The message stands below what other steps wrote."""
    path = tmp_path / "summary.md"
    path.write_text("# Tests\n")
    target = target_of("github", {"GITHUB_STEP_SUMMARY": str(path)})
    assert journal.deliver(target.identity, DAY, {}, lambda: target.send(MESSAGE)).outcome == "sent"
    assert path.read_text().startswith("# Tests\n\n# &#91;demo data&#93; gamelens 2026-11-21")
    assert "- Tile Harbor: 1 new. Revenue &#36;12,300 (-20%)\n  - New: Revenue fell by 20%" in path.read_text()


def test_the_journal_holds_no_secret(journal: MessageJournal, posts: ReceivedPosts, tmp_path: Path) -> None:
    """No file, name of a file, repr or error has the path of a webhook or a password."""
    target = target_of(f"teams+{posts.address}/{SECRET}")
    deliver(journal, f"teams+{posts.address}/{SECRET}")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 1
    assert all(SECRET not in path.name + path.read_text() for path in files)
    assert SECRET not in repr(target) + target.name
    assert SECRET not in repr(target_of(f"smtp://u:{SECRET}@mail.example?to=a@b.example"))
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}


@pytest.mark.parametrize(
    "text",
    [
        f"https://chat.example/{SECRET}",
        f"xyz+https://chat.example/{SECRET}",
        f"https://me:{SECRET}@hooks.slack.com/x",
        f"smtp://me:{SECRET}@mail.example",
        f"smtp://me:{SECRET}@mail.example?to=a@b.example&to=c@d.example",
        f"smtp://me:{SECRET}@mail.example?to=a@b.example%0d%0aBcc:x@y.example",
        f"slack+https://[{SECRET}",
        f"nothing://{SECRET}",
        SECRET,
        "env:NOT_SET_ANYWHERE",
        "github",
    ],
)
def test_a_target_that_is_none_is_refused_without_its_secret(text: str) -> None:
    """The error says what a target looks like, and shows neither path nor password."""
    with pytest.raises(BadQuery) as caught:
        target_of(text, {})
    assert SECRET not in str(caught.value)
    assert "A target is" in str(caught.value)


def test_a_target_may_stand_in_the_environment(posts: ReceivedPosts) -> None:
    """`env:NAME` is the target in that variable."""
    text = f"json+{posts.address}/{SECRET}"
    assert target_of("env:HOOK", {"HOOK": text}).identity == target_of(text).identity


def test_apprise_takes_other_addresses(journal: MessageJournal, posts: ReceivedPosts) -> None:
    """A service of apprise gets the message, here its own JSON over HTTP."""
    host = posts.address.removeprefix("http://")
    assert deliver(journal, f"json://{host}/{SECRET}")[0] == "sent"
    assert MESSAGE.title in json.dumps(posts.bodies[0])
    posts.status = 500
    assert deliver(journal, f"json://{host}/{SECRET}", NEXT)[0] == "unsure"
