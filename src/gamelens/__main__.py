"""`python -m gamelens`, the same as the command `gamelens`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; say what to install where it is missing."""
    try:
        from gamelens.cli import cli
    except ModuleNotFoundError as error:
        sys.exit(f"the gamelens command needs {error.name}: pip install 'gamelens[cli]'")
    cli(prog_name="gamelens")


if __name__ == "__main__":
    main()
