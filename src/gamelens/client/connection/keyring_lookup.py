"""The user's keyring, where the package `keyring` is installed: asked last, for keys only, and not waited for for ever.

    keyring set gamelens api_key

Some backends open a window or wait for a service that is not there: it is asked on a thread that may be left behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Final

SERVICE: Final = "gamelens"
WAIT_S: Final = 30.0  # long enough to click on "Allow"

Got = tuple[str | None, str | None]


class KeyringLookup:
    """Passwords of the service `gamelens`. A backend that fails is not an error: `trouble` says what it did.

    It is asked once for each name, and after its first failure no more.

    Args:
        wait_s: how long it may take over one answer.
    """

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self.trouble: str | None = None
        self._wait_s = wait_s
        self._told: dict[str, str | None] = {}

    @property
    def was_asked(self) -> bool:
        """Whether it was asked for anything."""
        return bool(self._told)

    @property
    def is_installed(self) -> bool:
        """Whether there is anything to ask."""
        return find_spec("keyring") is not None

    def find(self, name: str) -> str | None:
        """The password called *name*, or None where there is none or nobody says."""
        if name not in self._told and self.trouble is None and self.is_installed:
            self._told[name], self.trouble = _within(self._wait_s, lambda: _ask(name))
        return self._told.get(name)


def _within(seconds: float, ask: Callable[[], Got]) -> Got:
    answers: SimpleQueue[Got] = SimpleQueue()
    # Not of a pool, which would wait for it at the end of the process.
    threading.Thread(target=lambda: answers.put(ask()), name="gamelens-keyring", daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except Empty:
        return None, f"it did not answer within {seconds:g} s"


def _ask(name: str) -> Got:
    """The password, and what went wrong; whatever a backend raises, the search for a key goes on without it."""
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except Exception as error:  # a backend named in the environment or the configuration is loaded here
        return None, f"it cannot be loaded ({type(error).__name__})"
    try:
        return keyring.get_password(SERVICE, name) or None, None
    except NoKeyringError:
        return None, None  # installed on a machine that has none, as most servers
    except KeyringError as error:
        return None, f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception as error:  # of a library below, whose message may hold anything
        return None, type(error).__name__
