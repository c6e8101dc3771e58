"""A process that sends is killed at any moment: no day arrives twice, and none is lost without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.message_campaign import check_days, run_campaign
from support.message_receivers import mail_server, webhook

KILLS = 12


@pytest.mark.disk
def test_each_day_arrives_once_or_is_unsure(tmp_path: Path) -> None:
    """Over a webhook and a mail server, with kills at random moments."""
    with webhook() as posts, mail_server() as mails:
        texts = [f"json+{posts.address}/hook", f"smtp://127.0.0.1:{mails.port}?to=a@b.example&from=c@b.example"]
        found = run_campaign(tmp_path, KILLS, 7, texts)
    arrived = [re.findall(rb"^Message-ID: <([\d-]{10})\.", mail, re.MULTILINE)[0].decode() for mail in mails.contents]
    check_days(found["json at 127.0.0.1"], [body["day"] for body in posts.bodies])
    check_days(found["mail to a@b.example"], arrived)
