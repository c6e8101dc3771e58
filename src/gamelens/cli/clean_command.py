"""The command `gamelens clean`: what gamelens has stored on this machine, and an end to what nobody needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gamelens._text import printable
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.table_printer import PrintedColumn, print_columns
from gamelens.cli.terminal.terminal_text import print_line

if TYPE_CHECKING:
    from gamelens.local.stored_files import StoredItem


@cli.command()
@click.option("--yes", is_flag=True, help="Remove without asking.")
@click.option("--all", "is_all", is_flag=True, help="Also the config file, keys in the keyring and the journal.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print what is stored as a JSON array; removes nothing without --yes."
)
def clean(yes: bool, is_all: bool, as_json: bool) -> None:
    """Show what gamelens has stored on this machine, and remove what can be recreated.

    \b
    Example: gamelens clean --yes

    Removes cached answers, the sandboxes and lakes of demos, and runtime files. Your own lakes, sandboxes and notebooks
    are listed but kept. Without --all, the config file, the keys and the journal of morning messages are kept too:
    without the journal, a message could be sent twice.
    """
    from gamelens.errors import Refused
    from gamelens.local.stored_files import StoredItem, remove, stored_items
    from gamelens.messages.journal import journal_folder

    items = [*stored_items(is_all=is_all)]
    if journal_folder().is_dir():
        size = sum(path.stat().st_size for path in journal_folder().glob("*"))
        why = "" if is_all else "records which messages were sent: removed with --all only"
        items.append(StoredItem("journal", str(journal_folder()), size, why))
    removable = [item for item in items if not item.stays]
    if items and not as_json:
        _print(items)
    if removable and not yes and not as_json:
        total = _megabytes(sum(item.size_bytes for item in removable))
        yes = click.confirm(f"Remove everything that is not marked as kept, {total}?")
    refused, removed = [], []
    for item in removable if yes else ():
        try:
            remove(item)
            removed.append(item)
        except (Refused, OSError) as error:
            refused.append(str(error))
    if as_json:
        click.echo(json.dumps([_as_json(item, is_removed=item in removed) for item in items]))
    else:
        print_line(
            f"removed {_megabytes(sum(item.size_bytes for item in removed))}" if removed else "nothing was removed"
        )
    if refused:
        raise click.ClickException("; ".join(refused))


def _print(items: Sequence[StoredItem]) -> None:
    columns: dict[str, list[str]] = {
        "kind": [item.kind for item in items],
        "size": [_megabytes(item.size_bytes) for item in items],
        "path": [item.path for item in items],
        "stays": [item.stays for item in items],
    }
    print_columns(
        [
            PrintedColumn(name, [*map(printable, cells)], is_key=name == "path", is_text=name != "size")
            for name, cells in columns.items()
        ]
    )


def _as_json(item: StoredItem, *, is_removed: bool) -> dict[str, object]:
    found = {"kind": item.kind, "path": item.path, "bytes": item.size_bytes, "stays": item.stays or None}
    return found | {"is_removed": is_removed}


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
