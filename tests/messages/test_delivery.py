"""Messages to real receivers: a web service, a mail server and a file, each day once."""

from __future__ import annotations

import email
import json
import socket
from collections.abc import Iterator
from datetime import date
from email import policy
from pathlib import Path

import pytest
from msgspec.structs import replace

from gamelens.errors import BadQuery
from gamelens.messages.journal import MessageJournal
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
    text = posts.target(SECRET)
    assert [deliver(journal, text, day)[0] for day in (DAY, DAY, NEXT, DAY)] == [
        *("sent", "already sent", "sent", "already sent")
    ]
    assert posts.paths == [f"/{SECRET}"] * 2
    assert MESSAGE.title in json.dumps(posts.bodies[0])


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("status", [0, 400, 404, 429, 500, 503])
def test_what_apprise_does_not_confirm_is_unsure(journal: MessageJournal, posts: ReceivedPosts, status: int) -> None:
    """Whatever went wrong: it is sent once, and again only when a person says it is lost."""
    posts.status = status
    outcome, why = deliver(journal, posts.target(SECRET))
    assert (outcome, SECRET in why) == ("unsure", False)
    assert deliver(journal, posts.target(SECRET))[0] == "unsure"
    assert len(posts.bodies) == 1
    posts.status = 200
    assert journal.settle(target_of(posts.target(SECRET)).identity, arrived=False)
    assert (deliver(journal, posts.target(SECRET))[0], len(posts.bodies)) == ("sent", 2)


def test_what_arrived_is_not_sent_again(journal: MessageJournal, posts: ReceivedPosts) -> None:
    """A person who saw the message says so, and the day is done with its alarms."""
    text = posts.target("x")
    posts.status = 500
    deliver(journal, text)
    identity = target_of(text).identity
    assert journal.settle(identity, arrived=True)
    assert not journal.settle(identity, arrived=True)
    sent = journal.record(identity).sent
    assert (deliver(journal, text)[0], sent is not None and sent.alarms) == ("already sent", {"a": "b"})


def test_an_earlier_unsure_day_is_named_when_the_next_is_sent(journal: MessageJournal, posts: ReceivedPosts) -> None:
    """An unsure day does not keep the next from being sent, and does not vanish without a word."""
    text = posts.target("x")
    posts.status = 500
    deliver(journal, text)
    posts.status = 200
    assert deliver(journal, text, NEXT) == ("sent", f"it is not known whether {DAY} arrived")


def test_where_nothing_answers_it_is_unsure(journal: MessageJournal) -> None:
    """The connection may have failed half-way. The reason does not show the secret."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for text in (
        f"json://127.0.0.1:{port}/{SECRET}",
        f"mailto://u:{SECRET}@127.0.0.1:{port}?to=a@b.example&from=c@d.example",
    ):
        outcome, why = deliver(journal, text)
        assert (outcome, SECRET in why) == ("unsure", False)


def test_a_mail_has_text_and_a_small_page(journal: MessageJournal, mails: ReceivedMails, tmp_path: Path) -> None:
    """The page has no script, no image and nothing from elsewhere, the text says the same, and reports are attached."""
    (tmp_path / "sales 100%?.html").write_text("seven sales")
    text = f"mailto://127.0.0.1:{mails.port}?to=anna@studio.example&from=me@studio.example"
    target = target_of(text)
    message = replace(MESSAGE, reports=(tmp_path / "sales 100%?.html",))
    assert journal.deliver(target.identity, DAY, {}, lambda: target.send(message)).outcome == "sent"
    assert deliver(journal, text)[0] == "already sent"
    (content,) = mails.contents
    mail = email.message_from_bytes(content, policy=policy.default)
    assert ("anna@studio.example" in mail["To"], mail["Subject"]) == (True, MESSAGE.title)
    plain, page = (mail.get_body([kind]) for kind in ("plain", "html"))
    assert plain is not None
    assert page is not None
    texts = [plain.get_content(), page.get_content()]
    assert len(texts[1]) < 10_000
    assert all(word not in texts[1].lower() for word in ("<script", "<img", "http://", "https://", "url(", "<style"))
    assert all(word in part for part in texts for word in ("$12,300", "fell by 20%", "demo data"))
    (attached,) = mail.iter_attachments()
    assert "seven sales" in attached.get_content()


def test_a_refused_mail_is_unsure(journal: MessageJournal, mails: ReceivedMails) -> None:
    """A server that answers 550 has no mail, which apprise does not say."""
    mails.refuses = True
    assert (
        deliver(journal, f"mailto://127.0.0.1:{mails.port}?to=anna@studio.example&from=me@studio.example")[0]
        == "unsure"
    )
    assert not mails.contents


def test_a_file_gets_one_message_below_the_other(journal: MessageJournal, tmp_path: Path) -> None:
    """The file gets plain text. If it cannot be written, the message is not sent."""
    path = tmp_path / "morning.txt"
    assert [deliver(journal, f"file:{path}", day)[0] for day in (DAY, DAY, NEXT)] == ["sent", "already sent", "sent"]
    assert path.read_text().count(MESSAGE.title) == 2
    outcome, why = deliver(journal, f"file:{tmp_path}/no such folder/morning.txt")
    assert (outcome, "No such file or directory" in why) == ("not sent", True)


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
    target = target_of(posts.target(SECRET))
    deliver(journal, posts.target(SECRET))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 1
    assert all(SECRET not in path.name + path.read_text() for path in files)
    assert SECRET not in repr(target) + target.name
    assert SECRET not in repr(target_of(f"mailto://u:{SECRET}@mail.example?to=a@b.example&from=c@d.example"))
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}


@pytest.mark.parametrize(
    "text",
    [
        f"smtp://me:{SECRET}@mail.example?to=a@b.example",
        f"smtps://me:{SECRET}@mail.example?to=a@b.example",
        f"slack+https://hooks.slack.com/services/{SECRET}",
        f"teams+https://flows.example/{SECRET}",
        f"json+http://localhost/{SECRET}",
        f"slack://[{SECRET}",
        f"nothing://{SECRET}",
        "file:",
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
    """`env:NAME` reads the target from that variable, without the line end."""
    environ = {"HOOK": posts.target(SECRET) + "\n"}
    assert target_of("env:HOOK", environ).identity == target_of(posts.target(SECRET)).identity


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (f"https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/{'T' * 24}", "Slack by apprise"),
        (f"https://discord.com/api/webhooks/4174216298/{'J' * 68}", "Discord by apprise"),
    ],
)
def test_the_address_that_a_chat_shows_is_a_target(address: str, name: str) -> None:
    """Its webhook is taken as it is copied."""
    assert target_of(address).name == name
