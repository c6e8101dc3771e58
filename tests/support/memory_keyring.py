"""A keyring in memory for tests."""

from __future__ import annotations

from collections.abc import Callable

from keyring.backend import KeyringBackend


class MemoryKeyring(KeyringBackend):
    """A keyring in memory that records the names it is asked for and may raise."""

    priority = 1

    def __init__(self, passwords: dict[str, str], refuse: Callable[[], object] = lambda: None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.requested: list[str] = []
        self._passwords = passwords
        self._refuse = refuse

    def get_password(self, service: str, username: str) -> str | None:
        self.requested.append(username)
        self._refuse()
        return self._passwords.get(username) if service == "gamelens" else None

    def set_password(self, service: str, username: str, password: str) -> None:
        self._passwords[username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._passwords[username]


def failing(error: Exception) -> Callable[[], None]:
    """Return a function that raises *error*."""

    def fail() -> None:
        raise error

    return fail
