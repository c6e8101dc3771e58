"""The page of the formats of outside files: what each is recognised by, and what becomes of the columns of its samples.

It is made from the table of formats and from what is understood of the samples that the tests have, so it cannot drift.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gamelens as gl
from docs.reference import markdown_table
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.outside_table import OutsideTable
from gamelens.analysis.outside_data.roles import Vendor, vendors

SAMPLES = Path(__file__).parents[1] / "tests/analysis/vendor_samples"


def formats_page() -> str:
    """Return the page of all formats."""
    samples = tomllib.loads((SAMPLES / "roles.toml").read_text(encoding="utf-8"))
    tables = {name: gl.read_table(SAMPLES / name) for name in samples}
    found = {
        vendor.key: [it for name, it in tables.items() if samples[name]["format"] == vendor.name]
        for vendor in vendors()
    }
    head = [
        "# Formats of outside files",
        "Files that `gl.read_table` recognises by their headers, so that `gl.join`, `outside_data.roas`, "
        "`cost_per_install` and `in_dollars` need nothing but their path. "
        "`outside_data.formats()` has the same as a frame. All other files are understood by their headers and cells.",
        markdown_table(
            ("format", "paid to", "days of", "a row is"),
            (
                (
                    f"[{vendor.name}](#{_anchor(vendor)})",
                    vendor.table.get("publisher", ""),
                    _days(vendor),
                    _row(found[vendor.key]),
                )
                for vendor in vendors()
            ),
        ),
        *(part for vendor in vendors() for part in _entry(vendor, found[vendor.key])),
    ]
    return "\n\n".join(head) + "\n"


def _anchor(vendor: Vendor) -> str:
    return vendor.key.replace("_", "-")


def _days(vendor: Vendor) -> str:
    zone = str(vendor.table.get("zone", ""))
    return f"the zone of the {zone}" if zone.islower() else zone


def _row(tables: list[OutsideTable]) -> str:
    return " or ".join(dict.fromkeys(f"a {table.period}" for table in tables if table.period)) or "no day"


def _entry(vendor: Vendor, tables: list[OutsideTable]) -> Iterator[str]:
    """Yield the entry of a format: what it is recognised by, what it means without saying it, and its columns."""
    yield f"## {vendor.name} {{ #{_anchor(vendor)} }}"
    needs = [_names(names) for names in vendor.table["needs"]]
    distinct = [f", and {_others(vendor, said)}" for said in vendor.recognised_by[len(needs) :]]
    yield f"A file with the headers {'; '.join(needs)}{''.join(distinct)}."
    meant = " ".join(_meant(vendor.table))
    if meant:
        yield meant
    shown: set[str] = set()
    for table in tables:
        yield f"What becomes of the columns of `{table.source}`:"
        columns = [column for column in table.columns if column.name not in shown]
        rows = [(f"`{name}`", text) for name, text in table.in_words().items() if name in {it.name for it in columns}]
        yield markdown_table(("column", "is"), rows)
        shown |= {column.name for column in columns}
    stated = outside_data.formats(vendor.name).set_index("column")["is"]
    others = [(names, text) for names, text in stated.items() if not shown & {*str(names).split("|")}]
    if others:
        yield "Also known:"
        yield markdown_table(("column", "is"), ((_names(str(names)), text) for names, text in others))


def _names(names: str) -> str:
    return " or ".join(f"`{name}`" for name in names.split("|"))


def _others(vendor: Vendor, said: str) -> str:
    """Return what tells headers from those of other vendors, its names and patterns as code."""
    for key in ("only", "above", "wide"):
        if (text := vendor.table.get(key)) and text in said:
            return said.replace(text, _names(text) if key == "only" else f"`{text}`")
    return said


def _meant(table: Mapping[str, Any]) -> Iterator[str]:
    if "publisher" in table:
        yield f"{table['publisher']} is paid in every row, unless a column or `network=` says who."
    if "wide" in table:
        (key,) = {*re.findall(r"P<(\w+)>", table["wide"])} - {"value"}
        yield f"Headers hold a {key} each, which becomes a row."
    if "split" in table:
        parts = " and ".join(re.findall(r"P<(\w+)>", table["split"]["pattern"]))
        yield f"`{table['split']['column']}` is taken apart into {parts}."
    if "rows_are" in table:
        yield f"A row is an event, and the column `{table['rows_are']}` counts them."
    if "rates_of" in table:
        yield f"Its numbers are units of a currency for one {table['rates_of']}: pass the file as `rate=`."
    if "rates_in" in table:
        yield f"Its numbers are prices in {table['rates_in']}, or of one: pass the file as `rate=`."
    if table.get("day_first") is False:
        yield "The month stands before the day."
