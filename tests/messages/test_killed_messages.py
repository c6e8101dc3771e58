"""A process that sends is killed at any moment: no day arrives twice, and none is lost without a word."""

from __future__ import annotations

from email import message_from_bytes, policy
from pathlib import Path

import pytest

from support.message_campaign import check_days, days_of, run_campaign
from support.message_receivers import mail_server, webhook

KILLS = 12


@pytest.mark.wide
@pytest.mark.disk
def test_each_day_arrives_once_or_is_unsure(tmp_path: Path) -> None:
    """Messages go to a web service and a mail server, and the sender is killed at random moments."""
    with webhook() as posts, mail_server() as mails:
        texts = [
            posts.target("hook"),
            f"mailto://127.0.0.1:{mails.port}?to=a@b.example&from=me@studio.example",
        ]
        found = run_campaign(tmp_path, KILLS, 7, texts)
    check_days(found["JSON by apprise"], days_of(body["title"] for body in posts.bodies))
    subjects = (str(message_from_bytes(mail, policy=policy.default)["Subject"]) for mail in mails.contents)
    check_days(found["E-Mail by apprise"], days_of(subjects))
