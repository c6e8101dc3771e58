"""A server in a process of its own, such as JupyterLab or marimo, until it answers."""

from __future__ import annotations

import time
from typing import Final

import httpx

START_S: Final = 120  # on a machine that runs other tests beside


def wait_for(address: str) -> None:
    """Wait until *address* answers, at most `START_S` seconds."""
    ends_at = time.monotonic() + START_S
    while True:
        try:
            httpx.get(address, timeout=2)
        except httpx.TransportError:
            assert time.monotonic() < ends_at, f"{address} does not start"
            time.sleep(0.1)
        else:
            return
