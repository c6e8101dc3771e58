"""Analyses: functions from tidy frames to the frames that an analyst shows.

Never asks a service, never draws, never changes the frame it is given. Open `ads/ad_revenue` first.

Every function declares the frames it takes and refuses others with the query to use instead (`BadQuery`), keeps null
groups, keeps NA where a value is not known yet, and hands the receipt on. Topics are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gamelens.errors import no_such_name

if TYPE_CHECKING:
    from gamelens.analysis import (
        ads,
        changes,
        claims,
        decomposition,
        experiments,
        health,
        outside_data,
        over_days,
        retention,
        revenue,
        significance,
        tidy_frames,
        totals,
    )

__all__ = [
    "ads",
    "changes",
    "claims",
    "decomposition",
    "experiments",
    "health",
    "outside_data",
    "over_days",
    "retention",
    "revenue",
    "significance",
    "tidy_frames",
    "totals",
]


if not TYPE_CHECKING:  # type checkers must report an unknown name

    def __getattr__(name: str) -> Any:
        """Import a topic when it is first used."""
        if name not in __all__:
            no_such_name(__name__, __all__)(name)
        return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
