"""What can be set when a sandbox starts, declared once: `gamelens sandbox up` makes an option of each field.

Its annotation gives type and limits, its help is the first sentence of the words below.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gamelens.sandbox.state.tenants import Titles
from gamelens.wire.limits import MIB, QUERY_S, REFRESH_S, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

Reply = Literal["auto", "empty", "json"]
InitStatus = Literal["auto", "200", "201"]
Repeats = Literal["drop", "count"]
Port = Annotated[int, Meta(ge=0, le=65_535)]


class SandboxOptions(Struct, frozen=True, kw_only=True):
    """Options of a sandbox.

    Attributes:
        state: state directory. It is created if it does not exist.
        collector_port, metrics_port: 0: any free port.
        config: organisations, games and keys (TOML). None goes on with the stored organisations (Wire 5.4, Sandbox
            configuration).
        titles: studios and titles of their games, instead of *config*. The command takes them from a scenario.
        ready: written once both services are listening. It is a second path of the ready file, beside the one in
            *state*.
        reply: body of a 200 for events (Wire 1.7, Submitting events).
        init_status: status of the version 2 init; auto: 201 only with configs or an experiment (Wire 1.11, Version 2
            init).
        validation: strict refuses what the documentation does not describe, everywhere or in PARTS: events, headers,
            init, or several with commas (Wire 3.7, Strict validation).
        repeats: events with an event_uuid that came before; by default as before, in a new state: drop (Wire 4.8,
            Repeated events).
        refresh_s: seconds for which the available interval is cached (Wire 2.4, Available interval).
        rate: requests a second for each organisation (Wire 2.3, Rate limits). Each node has this limit for itself.
        concurrency: concurrent requests for each organisation. Each node has this limit for itself.
        query_seconds: time limit of a metric query.
        geoip: countries by IP address (.mmdb). The database has MaxMind's format (Wire 1.17, Country).
        nodes: number of nodes, each with its own limits.
        tls: HTTPS, with a certificate made at the first start and stored in the state.
        tls_name: with --tls, also accept games built for HOST; repeatable. A name alone turns HTTPS on too.
        keep_free: MB of disk space to keep free. They are 2^20 bytes, and the inbox never fills them.
        engine: engine that answers metric queries: duckdb, spark, or the address of a Spark master.
        lake_url: where that engine finds the state's folder `lake`, if not on this machine.
        stop_after_idle: seconds without a request after which it stops, unless it has users (`SandboxUsers`).
    """

    state: Path
    collector_port: Port = 0
    metrics_port: Port = 0
    config: Path | None = None
    titles: Titles = ()
    ready: Path | None = None
    reply: Reply = "auto"
    init_status: InitStatus = "auto"
    validation: str = "lenient"
    repeats: Repeats | None = None
    refresh_s: Annotated[float, Meta(ge=0)] = REFRESH_S
    rate: Annotated[int, Meta(ge=1)] = REQUESTS_PER_SECOND
    concurrency: Annotated[int, Meta(ge=1)] = REQUESTS_AT_ONCE
    query_seconds: Annotated[float, Meta(ge=0.001)] = QUERY_S
    geoip: Path | None = None
    nodes: Annotated[int, Meta(ge=1, le=100)] = 1
    tls: bool = False
    tls_name: tuple[str, ...] = ()
    keep_free: Annotated[int, Meta(ge=0)] = 256
    engine: str = "duckdb"
    lake_url: str | None = None
    stop_after_idle: Annotated[float, Meta(ge=0)] = math.inf

    @property
    def speaks_tls(self) -> bool:
        """Whether both services speak HTTPS."""
        return self.tls or bool(self.tls_name)

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the disk that the inbox never fills."""
        return self.keep_free * MIB
