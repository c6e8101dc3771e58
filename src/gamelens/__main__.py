"""The entry point of `python -m gamelens` and of the command `gamelens`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or print what to install if it is missing."""
    try:
        from gamelens.cli import cli
    except ModuleNotFoundError as error:
        sys.exit(f"the gamelens command needs {error.name}: pip install 'gamelens[lab,sandbox]'")
    cli(prog_name="gamelens")


if __name__ == "__main__":
    main()
