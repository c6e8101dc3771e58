"""The entry point of `python -m gamelens` and of the command `gamelens`."""

from __future__ import annotations

import logging
import sys


def main() -> None:
    """Run the command line, or print what to install if it is missing."""
    try:
        from gamelens.cli import cli
    except ModuleNotFoundError as error:
        sys.exit(f"the gamelens command needs {error.name}: pip install 'gamelens[lab,sandbox]'")
    # A command shows the warnings of its log on standard error, as Python does where nobody has said otherwise.
    logging.getLogger("gamelens").handlers.clear()
    cli(prog_name="gamelens")


if __name__ == "__main__":
    main()
