"""The grammar of international addresses, loaded only when it is used: it takes 2 s.

jsonschema imports `rfc3987_syntax`, if it is installed, for two formats that no notebook has. JupyterLab, nbformat and
with it the first figure of each kernel import jsonschema.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

_NAME: Final = "rfc3987_syntax"


class _StandIn(ModuleType):
    """A module that gives way to the real one when its function is called."""

    def is_valid_syntax(self, *given: str, **named: str) -> bool:
        """Return what the real function does."""
        return bool(_real().is_valid_syntax(*given, **named))

    def __getattr__(self, name: str) -> Any:
        return getattr(_real(), name)


def _real() -> Any:
    if isinstance(sys.modules.get(_NAME), _StandIn):
        del sys.modules[_NAME]
    return import_module(_NAME)


def defer_iri_grammar() -> None:
    """Load the grammar when it is first used, unless it is loaded already."""
    spec = None if _NAME in sys.modules else find_spec(_NAME)
    if spec is not None:
        stand_in = _StandIn(_NAME)
        stand_in.__file__ = spec.origin  # so do programs that look through the modules that are loaded
        stand_in.__path__ = list(spec.submodule_search_locations or ())  # an import asks for it
        sys.modules[_NAME] = stand_in
