"""`gamelens morning`: printed, sent once to each target, and plain about what is unsure."""

from __future__ import annotations

import re
from pathlib import Path

from support.command_process import RunCommand
from support.message_receivers import webhook


def test_the_message_is_printed(run_command: RunCommand) -> None:
    """Without a target it goes to standard output, with headline numbers and the source."""
    shown = run_command("morning", "--metrics", "user_unique")
    assert shown.exit_code == 0, shown.output
    assert re.search(r"gamelens \d{4}-\d\d-\d\d: ", shown.output)
    assert "Active players" in shown.output
    assert "Source: gamelens" in shown.output


def test_each_target_gets_the_day_once(run_command: RunCommand, tmp_path: Path) -> None:
    """The second call sends nothing and exits with 0."""
    own = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "GAMELENS_CACHE_DIR": str(tmp_path / "cache")}
    with webhook() as posts:
        own["HOOK"] = f"slack+{posts.address}/secret-path"
        call = ("morning", "--metrics", "user_unique", "--to", "env:HOOK", "--to", "github")
        first, second = run_command(*call, **own), run_command(*call, **own)
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert first.output.count(" sent") == 2
    assert second.output.count("already sent") == 2
    assert len(posts.bodies) == 1
    assert (tmp_path / "summary.md").read_text().count("Headline numbers") == 1
    assert "secret-path" not in first.output + second.output


def test_an_unsure_target_says_how_to_look(run_command: RunCommand, tmp_path: Path) -> None:
    """The exit code is 1 until a person says what became of the message."""
    with webhook() as posts:
        own = {"GAMELENS_CACHE_DIR": str(tmp_path / "cache")}
        call = ("morning", "--metrics", "user_unique", "--to", f"json+{posts.address}/x")
        posts.status = 500
        unsure = run_command(*call, **own)
        posts.status = 200
        again = run_command(*call, **own)
        settled = run_command(*call, "--unsure", "lost", **own)
    assert (unsure.exit_code, again.exit_code, settled.exit_code) == (1, 1, 0)
    assert 'look there for "gamelens 20' in again.output
    assert len(posts.bodies) == 2
