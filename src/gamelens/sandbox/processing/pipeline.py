"""From the inbox to the lake: typed rows, one file a day, who installed and first paid when, and the aggregates.

Three steps. *Stage* (`staging`) decodes new batches into Parquet; *build* (`building`) drops repeated events and writes
the days they touch anew, with the players and what is aggregated from those days; *commit* makes it all one version. A
crash before the commit changes nothing: the same batches are taken again. Late events need nothing special, since a day
is always written whole and an earliest event only ever moves earlier.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.processing.day_builder import build
from gamelens.sandbox.processing.staging import Staged, stage
from gamelens.sandbox.storage.inbox import open_store, pending
from gamelens.sandbox.storage.lake import Lake, LakeFile


def process(state: Path, clock: Clock) -> int:
    """Take everything received so far into the lake; answer its version.

    Raises:
        Refused: the engine or the disk could not do it; the lake is as it was.
    """
    store = open_store(state / "gamelens.db")
    scratch = state / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        lake = Lake(state / "lake", store)
        after = lake.last_run().last_batch
        (last_batch,) = store.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        staged = stage(pending(store, after=after, up_to=last_batch), scratch) if last_batch > after else {}
        return commit_staged(staged, lake, scratch, processed_ms=round(clock.now_s() * 1000), last_batch=last_batch)
    except (OSError, sqlite3.Error) as error:
        raise Refused(f"processing stopped, nothing was changed: {error}") from error
    finally:
        store.close()
        shutil.rmtree(scratch, ignore_errors=True)


def commit_staged(staged: Staged, lake: Lake, scratch: Path, *, processed_ms: int, last_batch: int) -> int:
    """Make *staged* files a part of *lake*, which has all batches up to *last_batch* then; answer its version."""
    version = lake.last_run().version + 1
    files: list[LakeFile] = []
    duplicates = 0
    for organisation, days in staged.items():
        built, repeated = build(organisation, days, lake, scratch, version=version)
        files += built
        duplicates += repeated
    version = lake.commit(processed_ms=processed_ms, last_batch=last_batch, duplicates=duplicates, files=files)
    lake.sweep()
    return version
