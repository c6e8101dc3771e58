"""What a widget says when something goes wrong: a sentence and what to do, never a traceback."""

from __future__ import annotations

import logging
from typing import Final

from gamelens.errors import AuthError, GamelensError, Refused

AGAIN: Final = "The pickers stay as they are: press Ask again when the service is back."
_log: Final = logging.getLogger(__name__)


def said(error: Exception, *, then: str = AGAIN) -> str:
    """What went wrong and what to do about it, in plain text; *then* is for a service that may come back."""
    if not isinstance(error, GamelensError):
        _log.debug("unexpected in a widget", exc_info=error)
        return f"Something is wrong inside gamelens ({type(error).__name__}). Try something else, or ask again."
    text = str(error).rstrip(".")
    if isinstance(error, AuthError):
        return f"{text}. `gamelens doctor` says which key is used."
    return f"{text}. {'Try something else.' if isinstance(error, Refused) else then}"
