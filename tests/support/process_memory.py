"""Memory of a process, as Linux counts it."""

from __future__ import annotations

from pathlib import Path


def memory_mib(pid: int | str | None, field: str) -> float:
    """Return the MiB of process *pid*, where *field* is VmRSS (resident now) or VmHWM (peak)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(f"{field}:"))
