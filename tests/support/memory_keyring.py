"""A keyring in memory."""

from __future__ import annotations

from collections.abc import Callable

from keyring.backend import KeyringBackend


class Drawer(KeyringBackend):
    """A keyring in memory, which counts how often it is opened and may refuse."""

    priority = 1

    def __init__(self, held: dict[str, str], refuse: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._held = held
        self._refuse = refuse

    def get_password(self, service: str, username: str) -> str | None:
        self.asked.append(username)
        self._refuse()
        return self._held.get(username) if service == "gamelens" else None

    def set_password(self, service: str, username: str, password: str) -> None:
        self._held[username] = password


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail
