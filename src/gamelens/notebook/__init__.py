"""Everything an analyst sees: `df.lens`, sentences, figures, widgets and reports.

Never computes a metric, which is the work of `analysis`, and sends requests only through a client that it is given.
Importing it loads neither pandas, plotly nor IPython. Open `accessor` first.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gamelens.errors import extra_named, no_such_name

if TYPE_CHECKING:
    from gamelens.investigations.health_check import check_health
    from gamelens.investigations.previous_period import query_before
    from gamelens.notebook import charts, widgets
    from gamelens.notebook.sentences import conclusions
    from gamelens.notebook.tiles import key_numbers

__all__ = ["charts", "check_health", "conclusions", "key_numbers", "query_before", "widgets"]

_HOME = {
    "check_health": "gamelens.investigations.health_check",
    "conclusions": "gamelens.notebook.sentences",
    "key_numbers": "gamelens.notebook.tiles",
    "query_before": "gamelens.investigations.previous_period",
}
_PARTS = frozenset({"charts", "widgets"})


if not TYPE_CHECKING:  # so that type checkers report a name that is not there

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            with extra_named(f"{__name__}.{name}"):
                return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            no_such_name(__name__, __all__)(name)
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
