"""Keys from the user's keyring, if the package `keyring` is installed.

    keyring set gamelens api_key

The keyring is the last source, and for keys only. Some backends open a window or wait for a service that does not
run, so the lookup runs on a thread that is abandoned after a timeout.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Final

SERVICE: Final = "gamelens"
WAIT_S: Final = 30.0  # long enough to click on "Allow"

LookupResult = tuple[str | None, str | None]


class KeyringLookup:
    """Passwords of the keyring service `gamelens`.

    Each name is looked up once. A failure of the backend is stored in `error`, and no further lookup is tried.

    Args:
        wait_s: time limit of one lookup.
    """

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self.error: str | None = None
        self._wait_s = wait_s
        self._passwords: dict[str, str | None] = {}

    @property
    def was_queried(self) -> bool:
        """Whether any name was looked up."""
        return bool(self._passwords)

    @property
    def is_installed(self) -> bool:
        """Whether the package `keyring` is installed."""
        return find_spec("keyring") is not None

    def find(self, name: str) -> str | None:
        """Return the password *name*, or None without one or after a failed lookup."""
        if name not in self._passwords and self.error is None and self.is_installed:
            self._passwords[name], self.error = _run_with_timeout(self._wait_s, lambda: _query_backend(name))
        return self._passwords.get(name)


def _run_with_timeout(seconds: float, query: Callable[[], LookupResult]) -> LookupResult:
    """Run *query* on a daemon thread and return its result, or an error after *seconds*."""
    answers: SimpleQueue[LookupResult] = SimpleQueue()
    # Not a pool thread: the process would wait for it at exit.
    threading.Thread(target=lambda: answers.put(query()), name="gamelens-keyring", daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except Empty:
        return None, f"it did not answer within {seconds:g} s"


def _query_backend(name: str) -> LookupResult:
    """Return the password and an error text.

    No exception of a backend gets out.
    """
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except Exception as error:  # loads the backend named in the environment or configuration, which may raise anything
        return None, f"it cannot be loaded ({type(error).__name__})"
    try:
        return keyring.get_password(SERVICE, name) or None, None
    except NoKeyringError:
        return None, None  # no backend on this machine, as on most servers
    except KeyringError as error:
        return None, f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception as error:  # from a lower library: its message may hold a secret
        return None, type(error).__name__
