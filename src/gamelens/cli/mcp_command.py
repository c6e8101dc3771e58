"""The command `gamelens mcp`: a server for assistants over standard input and output."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Final

import click

from gamelens.cli.command_group import cli
from gamelens.cli.doctor_command import all_findings

_DOCTOR_S: Final = 20.0


@cli.command()
@click.option(
    "--budget",
    "most_requests",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Maximum number of requests of a question without showing its plan first.",
)
def mcp(most_requests: int) -> None:
    """Answer an assistant over the Model Context Protocol, on standard input and output.

    \b
    Example: claude mcp add metrics -- gamelens mcp

    Numbers come from the configured service, else from the sandbox with invented players, and each with its receipt.
    """
    from gamelens.assistant.assistant_server import build_server
    from gamelens.local.connect import connect

    with connect(progress=False) as lens:
        build_server(lens, lambda: all_findings(time.monotonic() + _DOCTOR_S), most_requests=most_requests).run("stdio")
    sys.stdout.flush()
    if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        os._exit(0)  # a call was under way when the input ended, and the interpreter would wait for its thread
