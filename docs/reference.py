"""Pages of the reference that are made from the catalog, the commands and the README of the wire room."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence

import click

import gamelens.sandbox
from gamelens._text import escape_markdown
from gamelens.catalog import ALIASES, METRICS, Alias, Field, Metric, Quotient
from gamelens.cli import cli
from gamelens.wire.dimensions import DIMENSIONS, Dimension

WIRE = "../rooms/wire.md"
_ADDS = {
    "everywhere": "over time and over any dimension",
    "over time and games": "over time and over games",
    "over games": "over games only: of several days or countries it counts the same player or session again",
    "never": "never",
}
_KINDS = {
    "plain": "",
    "per game": "It exists for each game. Without `game` in *by* it is made from its parts over all games.",
    "retention": "Ask for it with `lens.retention`, which also reads it by install day.",
}
_SECTIONS = {"retention": ("4.12 Retention", "412-retention")}
_LEVELS = {
    "event": "the event",
    "player": "the player",
    "ad": "`ads` events; null on others",
    "ilrd": "`impression` events; null on others",
}
_BUCKETS = {"day": "days", "week": "ISO weeks", "month": "calendar months"}


def metrics_page() -> str:
    """Return the page of all metrics and aliases."""
    head = [
        "# Metrics",
        "Every number that `lens.query` takes, with its definition, columns, units, and what it may be summed over. "
        '`lens.describe("arpdau")` prints the same in a notebook. A *metric* is computed by the service, an *alias* by '
        "gamelens from metrics of the service.",
        markdown_table(
            ("name", "is", "unit", "adds up"),
            (
                (f"[`{it.name}`](#{it.name})", it.meaning, _main_field(it).unit, it.adds)
                for it in (*METRICS.values(), *ALIASES.values())
            ),
        ),
        "## Metrics of the service { #of-the-service }",
        *map(_metric, METRICS.values()),
        "## Aliases { #aliases }",
        *map(_metric, ALIASES.values()),
    ]
    return "\n\n".join(head) + "\n"


def _main_field(metric: Metric) -> Field:
    return next((it for it in metric.fields if it.name == metric.sorts_by), metric.fields[0])


def _metric(metric: Metric) -> str:
    title, anchor = _SECTIONS.get(metric.kinds, ("4.11 Metrics", "411-metrics"))
    parts = [
        f"### {metric.name} {{ #{metric.name} }}",
        f"{metric.meaning[0].upper()}{metric.meaning[1:]}.",
        markdown_table(("column", "unit", "type", "of several rows"), map(_field, metric.fields)),
        f"Adds up {_ADDS[metric.adds]} ([4.14 Adding up]({WIRE}#414-adding-up)). {_KINDS[metric.kinds]}".rstrip(),
        _alias(metric) if isinstance(metric, Alias) else f"Specification: [{title}]({WIRE}#{anchor}).",
        f"```python\n{_query(metric)}\n```",
    ]
    return "\n\n".join(parts)


def _field(field: Field) -> tuple[str, ...]:
    match field.combines:
        case Quotient(part=part, whole=whole, worth=worth, plus=plus):
            above = f"`{part}`" if plus is None else f"(`{part}` + `{plus}`)"
            rule = f"{above} / `{whole}`" + ("" if worth == 1 else f" x {worth:g}")
        case rule:
            rule = rule or "not defined"
    return f"`{field.name}`", field.unit, "Int64" if field.kind == "count" else "float64", rule


def _alias(alias: Alias) -> str:
    sources = [f"[`{metric}`](#{metric})" + (f" by {every}" if every else "") for metric, every in alias.needs]
    buckets = f" It is counted in {_BUCKETS[alias.every]} only." if alias.every in _BUCKETS else ""
    return f"Computed from {' and '.join(sources)}.{buckets}"


def _query(metric: Metric) -> str:
    if metric.kinds == "retention":
        return 'lens.query("retention_retro", since_days_ago=7, by="game", over="last 14 complete days")'
    over = "last complete month" if getattr(metric, "every", None) == "month" else "last 14 complete days"
    return f'lens.query("{metric.name}", by="game", over="{over}")'


def dimensions_page() -> str:
    """Return the page of all dimensions."""
    lines = [
        "# Dimensions",
        "Each splits a number (`by`) and selects events (`where`). A missing value is null: a group of its own, and "
        f"equal to nothing in a filter. Specification: [4.10 Dimensions]({WIRE}#410-dimensions).",
        "`game` and `studio` are written in *by* too: they give the id and the title. `network` and `format` are the "
        "ad networks and formats under one name each, whatever an SDK calls them, in functions of "
        "`gamelens.analysis.ads`.",
        markdown_table(("dimension", "is", "value of", "usual number of values"), map(_dimension, DIMENSIONS.values())),
        "A value of the player is null on events without `user_id`.",
    ]
    return "\n\n".join(lines) + "\n"


def _dimension(dimension: Dimension) -> tuple[str, ...]:
    return f"`{dimension.name}`", dimension.meaning, _LEVELS[dimension.level], str(dimension.typical)


def commands_page() -> str:
    """Return the page of every command with its options."""
    head = (
        "# Commands\n\nEvery command of `gamelens`, with its options. `gamelens COMMAND --help` prints the same; "
        '`eval "$(gamelens completion bash)"` completes names, times and values.'
    )
    return "\n\n".join([head, *_commands(cli, "gamelens")]) + "\n"


def _commands(group: click.Group, path: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield _command(command, f"{path} {name}")


def _command(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path, **cli.context_settings)
    usage = " ".join(command.collect_usage_pieces(context))
    about = inspect.cleandoc(command.help or "").split("\n\n")
    parts = [f"## {path}", *map(_help_text, about), f"```text\n{path} {usage}\n```"]
    rows = [row for it in command.get_params(context) if (row := _option(it, context))]
    return "\n\n".join([*parts, markdown_table(("option", "meaning"), rows)] if rows else parts)


def _help_text(paragraph: str) -> str:
    """Return a paragraph of a help text; one that click does not wrap has commands."""
    if not paragraph.startswith("\b"):
        return escape_lines(paragraph)
    lines = paragraph.removeprefix("\b").strip().splitlines()
    return f"```console\n{''.join(f'{_prompt(line)}{line}{chr(10)}' for line in lines)}```"


def _prompt(line: str) -> str:
    return "$ " if line.startswith("gamelens ") else ""


def _option(option: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    record = option.get_help_record(context)
    if record is None or "--help" in record[0]:
        return None
    return f"`{record[0]}`", record[1]


def escape_lines(text: str) -> str:
    """Return text of a docstring as Markdown: what looks like a tag is shown, code in backticks stays."""
    parts = text.strip().split("`")
    return "`".join(part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(parts))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, whose cells are text unless they begin like code, a link or a bracket."""
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    is_markup = text.startswith(("`", "[", "("))
    return (text.replace("|", "\\|") if is_markup else escape_markdown(text)).strip()


def sandbox_choices() -> str:
    """Return what the sandbox decides where the documentation of both services is silent, with links to sections."""
    about = inspect.getdoc(gamelens.sandbox) or ""
    listed = about.partition("documentation of the services is silent:")[2].strip()
    return re.sub(r"Wire (\d+)\.(\d+), ([A-Z][^.;)]*)", _section_link, re.sub(r"\n {2}", " ", listed))


def _section_link(cited: re.Match[str]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", cited[3].lower()).strip("-")
    return f"[Wire {cited[1]}.{cited[2]}, {cited[3]}]({WIRE}#{cited[1]}{cited[2]}-{slug})"
