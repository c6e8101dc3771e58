"""Two hundred kills of a process that sends messages."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from support.message_campaign import check_days, days_of, run_campaign
from support.message_receivers import webhook

KILLS = 200


def test_two_hundred_kills(tmp_path: Path) -> None:
    """Each day arrives once, or the journal says that it is unsure."""
    with webhook() as posts:
        found = run_campaign(tmp_path, KILLS, 11, [posts.target("hook")])["JSON by apprise"]
    check_days(found, days_of(body["title"] for body in posts.bodies))
    print(f"{KILLS} kills, {len(posts.bodies):,} messages, {len(cast('list[str]', found['unsure']))} days unsure")
