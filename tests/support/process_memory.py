"""Memory and CPU time of a process, as Linux counts them."""

from __future__ import annotations

import time
from pathlib import Path


def memory_mib(pid: int | str | None, field: str) -> float:
    """Return the MiB of process *pid*, where *field* is VmRSS (resident now) or VmHWM (peak)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(f"{field}:"))


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that process *pid* has used so far, in all its threads."""
    return time.clock_gettime(~pid << 3 | 2)  # the clock id of another process, as clock_getcpuclockid makes it
