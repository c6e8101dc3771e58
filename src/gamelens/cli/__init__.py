"""The command `gamelens`: every line a script may rely on, each with an example in its help.

The top of the house: this room may ask everybody, and nobody asks it. Rooms are imported inside the commands, so that
help and completion cost next to nothing. Open `root` first; `query` is what an analyst types, `sandbox` and `stage`
are what runs on this machine.
"""

from gamelens.cli import (
    completion,
    demo_commands,
    doctor_command,
    health_command,
    query_commands,
    report_command,
    sandbox_commands,
)
from gamelens.cli.command_group import cli

__all__ = [
    "cli",
    "completion",
    "demo_commands",
    "doctor_command",
    "health_command",
    "query_commands",
    "report_command",
    "sandbox_commands",
]
