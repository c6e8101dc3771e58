"""Processing from the inbox to the lake, in three steps.

*Stage* (`staging`) decodes new batches into Parquet. *Build* (`day_builder`) drops repeated events and writes the days
they touch anew, with the players and the aggregates of those days. *Commit* makes all of it one version of the lake. A
crash before the commit changes nothing: the next run takes the same batches again. Late events need no special case,
because a day is always written whole and the earliest event of a player can only move earlier (Wire 4.9, Late events).
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.processing.day_builder import build_files
from gamelens.sandbox.processing.staging import StagedFiles, stage
from gamelens.sandbox.storage.inbox import open_store, pending
from gamelens.sandbox.storage.lake import Lake, LakeFile


def process(state: Path, clock: Clock) -> int:
    """Process everything received so far into the lake of *state* and return its version.

    Raises:
        Refused: the engine or the disk failed. The lake is as before.
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


def commit_staged(staged: StagedFiles, lake: Lake, scratch: Path, *, processed_ms: int, last_batch: int) -> int:
    """Build and commit *staged* files as the next version of *lake*, and return its number.

    Args:
        staged: files of new events, by organisation and day.
        lake: the lake to extend.
        scratch: folder for temporary files of the engine.
        processed_ms: time of the processing, in milliseconds since the epoch.
        last_batch: id of the last batch that the version includes.
    """
    version = lake.last_run().version + 1
    files: list[LakeFile] = []
    duplicates = 0
    for organisation, days in staged.items():
        built, repeated = build_files(organisation, days, lake, scratch, version=version)
        files += built
        duplicates += repeated
    version = lake.commit(processed_ms=processed_ms, last_batch=last_batch, duplicates=duplicates, files=files)
    lake.sweep()
    return version
