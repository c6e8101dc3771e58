"""One sandbox on this machine, with players in it, and a client for it.

This room never computes a metric, checks an event or makes a player itself: it joins the rooms that do. Its public
names load when they are first used. Open `connect` first.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gamelens.errors import no_such_name

if TYPE_CHECKING:
    from gamelens.local.pytest_plugin import sandbox_for
    from gamelens.local.sample_data import sample_files
    from gamelens.local.sample_events import demo_lake, own_lake, sample_lake
    from gamelens.local.sandbox_population import populate
    from gamelens.local.sandbox_process import running_sandbox

__all__ = ["demo_lake", "own_lake", "populate", "running_sandbox", "sample_files", "sample_lake", "sandbox_for"]

_HOME = {
    "demo_lake": "gamelens.local.sample_events",
    "own_lake": "gamelens.local.sample_events",
    "populate": "gamelens.local.sandbox_population",
    "running_sandbox": "gamelens.local.sandbox_process",
    "sample_files": "gamelens.local.sample_data",
    "sample_lake": "gamelens.local.sample_events",
    "sandbox_for": "gamelens.local.pytest_plugin",
}


if not TYPE_CHECKING:  # type checkers should find a name that does not exist

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            no_such_name(__name__, __all__)(name)
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
