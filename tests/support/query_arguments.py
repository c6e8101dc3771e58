"""The arguments of a call of a client, by name, as its methods pass them on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def given(method: Callable[..., object], *first: object, **more: object) -> dict[str, Any]:
    """Return the arguments of a call of *method*, with its defaults."""
    bound = inspect.signature(method).bind(None, *first, **more)
    bound.apply_defaults()
    return dict(bound.arguments)
