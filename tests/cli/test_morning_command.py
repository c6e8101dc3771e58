"""`gamelens morning`: printed, sent once to each target, and plain about what is unsure."""

from __future__ import annotations

import json
import re
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from support.command_process import RunCommand
from support.message_receivers import mail_server, webhook


def test_the_message_is_printed(run_command: RunCommand) -> None:
    """Without a target it goes to standard output, with headline numbers and the source."""
    shown = run_command("morning", "--metrics", "user_unique")
    assert shown.exit_code == 4, shown.output
    assert re.search(r"gamelens \d{4}-\d\d-\d\d: ", shown.output)
    assert "Active players" in shown.output
    assert "Source: gamelens" in shown.output


def test_each_target_gets_the_day_once(run_command: RunCommand, tmp_path: Path) -> None:
    """The second call sends nothing. Both exit with 4: the sandbox has too few days to judge."""
    own = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "GAMELENS_CACHE_DIR": str(tmp_path / "cache")}
    with webhook() as posts:
        own["HOOK"] = posts.target("secret-path")
        call = ("morning", "--metrics", "user_unique", "--to", "env:HOOK", "--to", "github")
        first, second = run_command(*call, **own), run_command(*call, **own)
    assert (first.exit_code, second.exit_code) == (4, 4), first.output + second.output
    assert first.output.count(" sent") == 2
    assert second.output.count("already sent") == 2
    assert len(posts.bodies) == 1
    assert (tmp_path / "summary.md").read_text().count("# ") == 1
    assert "secret-path" not in first.output + second.output


@pytest.mark.wide
def test_an_unsure_target_says_how_to_look(run_command: RunCommand, tmp_path: Path) -> None:
    """The exit code is 1 until a person says what became of the message."""
    with webhook() as posts:
        own = {"GAMELENS_CACHE_DIR": str(tmp_path / "cache")}
        call = ("morning", "--metrics", "user_unique", "--to", posts.target("x"))
        posts.status = 500
        unsure = run_command(*call, **own)
        posts.status = 200
        again = run_command(*call, **own)
        settled = run_command(*call, "--unsure", "lost", **own)
    assert (unsure.exit_code, again.exit_code, settled.exit_code) == (1, 1, 4)
    assert 'look there for "gamelens 20' in again.output
    assert len(posts.bodies) == 2


def notebook_at(path: Path, code: str) -> str:
    """Write a notebook of one cell and return its path as text."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "only",
        "source": code,
        "metadata": {},
        "execution_count": None,
        "outputs": [],
    }
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return str(path)


@pytest.mark.wide
def test_a_mail_carries_the_reports(run_command: RunCommand, tmp_path: Path) -> None:
    """Its page is attached, another target names it, and it is not made again for a target that has the day."""
    report = notebook_at(tmp_path / "sales.ipynb", "print('seven sales')")
    own = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "GAMELENS_CACHE_DIR": str(tmp_path / "cache")}
    with mail_server() as mails:
        mail = f"mailto://127.0.0.1:{mails.port}?to=anna@studio.example&from=me@studio.example"
        to = ("--to", mail, "--to", "github")
        call = ("morning", "--metrics", "user_unique", *to, "--report", report, "--out", str(tmp_path / "pages"))
        first, second = run_command(*call, **own), run_command(*call, **own)
    assert (first.exit_code, second.exit_code) == (4, 4), first.output + second.output
    (attached,) = message_from_bytes(mails.contents[0], policy=policy.default).iter_attachments()
    assert attached.get_filename() == "sales.html"
    assert "seven sales" in attached.get_content()
    assert "sales.html" in (tmp_path / "summary.md").read_text()
    assert (first.output.count("running sales.ipynb"), second.output.count("running")) == (1, 0)


@pytest.mark.wide
def test_a_report_that_fails_is_named_in_the_message(run_command: RunCommand, tmp_path: Path) -> None:
    """The numbers still arrive, and the exit code is 1."""
    report = notebook_at(tmp_path / "sales.ipynb", "1 / 0")
    shown = run_command("morning", "--metrics", "user_unique", "--report", report, "--out", str(tmp_path))
    assert shown.exit_code == 1
    assert "The report sales is missing: sales.ipynb did not run: cell 1 (1 / 0)" in " ".join(shown.output.split())
    assert "Active players" in shown.output


def test_a_misspelt_report_is_refused_before_anything_is_asked(run_command: RunCommand) -> None:
    """The error names the nearest notebook of ours."""
    shown = run_command("morning", "--report", "ad_revenu")
    assert shown.exit_code != 0
    assert "ad_revenue" in shown.output
    assert "Active players" not in shown.output
