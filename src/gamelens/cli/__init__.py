"""The command `gamelens`: every line a script may rely on, each with an example in its help.

The top of the house: this room may ask everybody, and nobody asks it. Rooms are imported inside the commands, so that
help and completion cost next to nothing. Open `root` first; `query` is what an analyst types, `sandbox` and `stage`
are what runs on this machine.
"""

from gamelens.cli import completion, doctor, health, query, report, sandbox, stage
from gamelens.cli.root import cli

__all__ = ["cli", "completion", "doctor", "health", "query", "report", "sandbox", "stage"]
