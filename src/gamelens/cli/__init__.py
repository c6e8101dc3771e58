"""The command `gamelens`, with an example in the help of every subcommand.

This room computes nothing, and no other room imports it. Rooms are imported inside the commands, so that help and
completion stay fast. Open `command_group` first.
"""

from gamelens.cli import (
    clean_command,
    demo_commands,
    doctor_command,
    health_command,
    lake_commands,
    mcp_command,
    morning_command,
    query_commands,
    report_command,
    sandbox_commands,
    submit_command,
)
from gamelens.cli.command_group import cli

__all__ = [
    "clean_command",
    "cli",
    "demo_commands",
    "doctor_command",
    "health_command",
    "lake_commands",
    "mcp_command",
    "morning_command",
    "query_commands",
    "report_command",
    "sandbox_commands",
    "submit_command",
]
