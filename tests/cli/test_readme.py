"""Every command that the README prints is one: its name, its options, its arguments."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from gamelens.cli import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
LINES = [line for language, code in BLOCKS if language in ("", "console", "yaml") for line in code.splitlines()]
TYPED = re.compile(r"(?<![\w/'])gamelens ([^#&|;)]+)")
COMMANDS = sorted({found.strip() for line in LINES for found in TYPED.findall(line)})


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_printed_command_would_be_understood(typed: str) -> None:
    command, words, context = cli, shlex.split(typed), click.Context(cli, info_name="gamelens")
    while isinstance(command, click.Group) and words:
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"gamelens {typed}: there is no {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    command.make_context(context.info_name, words, resilient_parsing=False)


def test_its_pictures_are_there() -> None:
    pictures = re.findall(r'(?:src|srcset)="(data/[^"]+)"', README)
    assert len(pictures) == 2
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_there_are_commands_to_look_at() -> None:
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "yaml"])
def test_a_printed_workflow_has_jobs_with_steps(code: str) -> None:
    workflow = yaml.safe_load(code)
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all({"uses", "run"} & step.keys() for step in steps)
    assert workflow[True]  # what YAML makes of `on`
