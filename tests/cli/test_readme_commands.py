"""Commands, pictures and workflows that the READMEs and the pages of the documentation print."""

from __future__ import annotations

import re
import shlex

import click
import pytest
import yaml

from gamelens.cli import cli
from support.printed_commands import BLOCKS, COMMANDS, README, ROOT


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_printed_command_would_be_understood(typed: str) -> None:
    """Every printed command has an existing name, options and arguments."""
    command: click.Command = cli
    words, context = shlex.split(typed), click.Context(cli, info_name="gamelens", **cli.context_settings)
    while isinstance(command, click.Group) and words:
        name, *words = words
        subcommand = command.get_command(context, name)
        assert subcommand is not None, f"gamelens {typed}: there is no {name}"
        command, context = subcommand, click.Context(subcommand, info_name=name, parent=context)
    command.make_context(context.info_name, words, parent=context.parent)


def test_its_pictures_are_there() -> None:
    """The pictures of the README are in the repository."""
    pictures = re.findall(r'(?:src|srcset)="(data/[^"]+)"', README)
    assert len(pictures) == 2
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_there_are_commands_to_look_at() -> None:
    """The READMEs print more than ten commands, so that the check is not empty."""
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "yaml"])
def test_a_printed_workflow_has_jobs_with_steps(code: str) -> None:
    """Every printed workflow has triggers, and jobs whose steps use or run something."""
    workflow = yaml.safe_load(code)
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all({"uses", "run"} & step.keys() for step in steps)
    assert workflow[True]  # what YAML makes of `on`
