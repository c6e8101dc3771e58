"""Access to a lake: its manifest, read only, and its metrics without a socket."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import httpx

from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import Transport
from gamelens.errors import BadQuery, Refused
from gamelens.receipts import Provenance
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.state.tenants import Organisation
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.sandbox.storage.manifest import WRITTEN

AT_ONCE: Final = 16
"""Requests at the same time."""
QUERY_S: Final = 600.0
"""Seconds after which a question is stopped."""
MOST_FILES: Final = 20
"""Names of imported files in a receipt."""
_ADDRESS: Final = "http://localhost"


class LakeTransport(Transport):
    """Requests to the metrics service over a lake, in this process."""

    def __init__(self, app: MetricsApp, key: Secret, folder: Path, lake: Lake, organisation: str) -> None:
        super().__init__(_ADDRESS, key=key, at_once=AT_ONCE, max_wait_s=QUERY_S, pool=httpx.ASGITransport(app.app()))
        self._folder, self._lake, self._organisation = folder, lake, organisation
        self._known: tuple[tuple[int, str | None], Provenance] | None = None

    @property
    def provenance(self) -> Provenance:
        """The lake and where its events come from, read again after each run."""
        read = self._lake.last_run().version, self._lake.scenario
        if self._known is None or self._known[0] != read:
            sources = lake_sources(self._lake, self._organisation)
            scenario = next((source.scenario for source in sources), None)
            self._known = read, Provenance(kind="lake", url=str(self._folder), scenario=scenario, sources=sources)
        return self._known[1]


def lake_sources(lake: Lake, organisation: str) -> tuple[Provenance, ...]:
    """Return where the events of *organisation* come from: simulated, imported, collected, or several of these.

    A scenario names the events that the sandbox received, or those that were written to the lake as files. A lake that
    has neither got its scenario's events from an import: an export of simulated players, as that of `sample_lake`.
    """
    run, scenario = lake.last_run(), lake.scenario
    files = [file.name for file in lake.taken_files() if file.organisation == organisation]
    received, is_received_here = lake.store.execute(
        "SELECT EXISTS (SELECT 1 FROM batches), EXISTS (SELECT 1 FROM batches WHERE organisation = ? AND id <= ?)",
        (organisation, run.last_batch),
    ).fetchone()
    is_written = run.last_batch == WRITTEN or (run.is_written and not lake.taken_files())
    is_simulated_export = scenario is not None and not received and not is_written
    sources = []
    if is_written or is_simulated_export or (scenario is not None and is_received_here):
        sources.append(Provenance(kind="simulated", scenario=scenario))  # only simulated players are written
    if files and not is_simulated_export:
        names = tuple(dict.fromkeys(files))[:MOST_FILES]  # folders of an export have files of the same name
        sources.append(Provenance(kind="imported", files=names, file_count=len(files)))
    if is_received_here and (scenario is None or is_written):
        sources.append(Provenance(kind="collected"))
    return tuple(sources)


def chosen(organisations: tuple[Organisation, ...], name: str | None) -> Organisation:
    """Return the organisation called *name*, or the only one.

    Raises:
        BadQuery: there is no such organisation, or several without a name.
    """
    names = [each.name for each in organisations]
    if name is None and len(organisations) == 1:
        return organisations[0]
    if name is None:
        raise BadQuery("organisation", name, "must be named, since the lake has several", names)
    if name not in names:
        raise BadQuery("organisation", name, "is not in the lake", names)
    return organisations[names.index(name)]


def read_only(path: Path) -> sqlite3.Connection:
    """Open the manifest of a lake, to be read.

    Raises:
        Refused: it cannot be read, or the lake has the layout of another version.
    """
    address = f"file:{path.resolve().as_posix().replace('?', '%3f').replace('#', '%23')}?mode=ro"
    try:
        store = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
        ((layout,),) = store.execute("PRAGMA user_version")
    except sqlite3.Error as error:
        raise Refused(f"{path} cannot be read: {error}. See that the folder is the state of a sandbox") from None
    if layout != FORMAT:
        store.close()
        next_step = (
            f"`gamelens sandbox rebuild --state {path.parent}` makes it again from its inbox; what was imported is "
            "imported again"
        )
        raise Refused(f"the lake in {path.parent} has layout {layout}, and this version reads {FORMAT}: {next_step}")
    return store
