"""Work for another process that fails."""

from __future__ import annotations


def raise_error(error: Exception) -> None:
    """Raise *error*."""
    raise error
