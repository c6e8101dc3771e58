"""Tables from outside: read and understood, beside what pandas takes to read the same file as texts.

Run by `make bench`. 100,000 rows in at most 1.5 s and 1,000,000 in at most 12 s of processor time, with at most three
times the size of the file in memory; a workbook of 100,000 rows in at most 5 s, where its numbers have the formats of a
currency. Each is measured in a process of its own that has read a small file before.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import xlsxwriter

import gamelens as gl
from support.process_memory import memory_mib

MOST_SECONDS = {100_000: 1.5, 1_000_000: 12.0}
MOST_SECONDS_OF_WORKBOOK = 5.0
MOST_OF_FILE = 3.0
COUNTRIES = ("US", "DE", "GB", "FR", "BR", "MX", "JP", "IN", "CA", "AU")


class Measured(NamedTuple):
    """Seconds of processor time, and the MiB of memory at the peak beyond those before."""

    seconds: float
    mib: float


def google_ads(rows: int) -> pd.DataFrame:
    """Return an export of Google Ads: cells such as $1,234.50, in pesos by the column of codes."""
    draw = np.random.default_rng(7)
    clicks, installs = draw.poisson(300, rows), draw.poisson(9, rows)
    days = pd.date_range("2026-01-01", periods=300).strftime("%Y-%m-%d").to_numpy()
    cost = draw.gamma(2, 600, rows).round(2)
    return pd.DataFrame(
        {
            "Day": days[np.arange(rows) * 300 // rows],
            "Campaign": np.array([f"Tile Harbor {place} Broad" for place in range(400)])[draw.integers(0, 400, rows)],
            "Country": np.array(COUNTRIES)[draw.integers(0, len(COUNTRIES), rows)],
            "Currency code": "MXN",
            "Cost": [f"${value:,.2f}" for value in cost],
            "Impr.": [f"{value:,}" for value in clicks * 17 + draw.integers(0, 17, rows)],
            "Clicks": clicks,
            "CTR": [f"{value:.2f}%" for value in draw.uniform(3, 6, rows)],
            "Installs": installs,
        }
    )


def of_semicolons(rows: int) -> pd.DataFrame:
    """Return an export with days before months and decimal commas."""
    frame = google_ads(rows)
    days = pd.to_datetime(frame["Day"]).dt.strftime("%d.%m.%Y")
    cost = frame["Cost"].str.translate(str.maketrans(",.", ".,", "$")) + " €"
    others = {"Campaign": "Kampagne", "Country": "Land", "Clicks": "Klicks"}
    return frame[[*others]].rename(columns=others).assign(Tag=days, Kosten=cost)


def as_workbook(path: Path, rows: int) -> None:
    """Write such an export as a workbook, whose costs are numbers in the format of pesos."""
    frame = google_ads(rows).drop(columns="Currency code")
    frame["Cost"] = frame["Cost"].str.replace("[$,]", "", regex=True).astype("float64")
    frame["Impr."] = frame["Impr."].str.replace(",", "").astype("int64")
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        page, pesos = book.add_worksheet(), book.add_format({"num_format": "[$$-80A]#,##0.00"})
        page.write_row(0, 0, [*frame.columns])
        for number, row in enumerate(frame.itertuples(index=False), 1):
            page.write_row(number, 0, row)
            page.write_number(number, 3, row[3], pesos)


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "google.csv": lambda path, rows: google_ads(rows).to_csv(path, index=False),
    "semicolons.csv": lambda path, rows: of_semicolons(rows).to_csv(path, index=False, sep=";"),
}


def measured(work: Callable[[Path], object], path: Path, small: Path) -> Measured:
    """Do *work* with the file in a new process, after the same with a *small* one."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(sender, work, path, small))
    child.start()
    sender.close()
    found: Measured = receiver.recv()
    child.join()
    return found


def _measure(sender: Connection, work: Callable[[Path], object], path: Path, small: Path) -> None:
    work(small)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = memory_mib("self", "VmRSS"), time.process_time()
    found = work(path)
    seconds = time.process_time() - began
    sender.send(Measured(seconds, memory_mib("self", "VmHWM") - before))
    del found


def by_pandas(path: Path) -> Any:
    """Read the texts of a file, as a reader that understands nothing does."""
    if path.suffix == ".xlsx":
        return pd.read_excel(path, dtype="str", engine="calamine")
    return pd.read_csv(path, sep=";" if path.name.startswith("semi") else ",", dtype="str")


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("rows", MOST_SECONDS)
def test_a_table_is_understood_while_you_wait(name: str, rows: int, tmp_path: Path) -> None:
    path, small = tmp_path / name, tmp_path / f"{name.partition('.')[0]}_small.csv"
    WRITERS[name](path, rows)
    WRITERS[name](small, 1_000)
    ours, theirs = measured(gl.read_table, path, small), measured(by_pandas, path, small)
    size = path.stat().st_size / 2**20
    print(
        f"\n{name}, {rows:,} rows, {size:.1f} MiB: {ours.seconds:.2f} s, {ours.seconds / theirs.seconds:.1f} times"
        f" {theirs.seconds:.2f} s of pandas; {ours.mib:.0f} MiB, {ours.mib / size:.1f} times the file"
        f" (pandas {theirs.mib / size:.1f} times)"
    )
    assert ours.seconds <= MOST_SECONDS[rows]
    if rows == 1_000_000:  # below, what is loaded once counts more
        assert ours.mib <= MOST_OF_FILE * size


def test_a_workbook_is_understood_while_you_wait(tmp_path: Path) -> None:
    """Its cells, and the formats of its numbers, which pandas does not read."""
    path, small = tmp_path / "google.xlsx", tmp_path / "small.xlsx"
    as_workbook(path, 100_000)
    as_workbook(small, 1_000)
    ours, theirs = measured(gl.read_table, path, small), measured(by_pandas, path, small)
    print(f"\n100,000 rows of a workbook: {ours.seconds:.2f} s, {ours.seconds / theirs.seconds:.1f} times pandas")
    assert gl.read_table(path).column("Cost").currency == "MXN"
    assert ours.seconds <= MOST_SECONDS_OF_WORKBOOK
