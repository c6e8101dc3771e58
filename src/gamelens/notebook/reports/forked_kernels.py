"""Kernels of several notebooks, forked from one process that has imported what all of them import.

Each new kernel would import pandas, plotly and SciPy again, which takes seconds, and several times as long where Python
may not keep what it compiles. The process that is forked only imports: it asks nothing, opens no files, and its only
other threads are those of libraries that provide for forks.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

if TYPE_CHECKING:
    from jupyter_client.connect import KernelConnectionInfo
    from jupyter_client.manager import KernelManager

_KERNEL: Final = [sys.executable, "-m", "ipykernel_launcher"]
_IMPORTED: Final = (
    __name__,
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
    "ipykernel.zmqshell",
    "nbformat",
    "plotly.io",
)
"""This module first, whose room defers a grammar that nbformat would load."""
_forking: Final[list[bool]] = []


@contextmanager
def forked_kernels(modules: Sequence[str]) -> Iterator[None]:
    """Fork the kernels of the block from one process that has imported *modules*; on Linux, else each starts anew.

    That process begins to import at once, and ends with this one.
    """
    can_fork = sys.platform == "linux"
    if can_fork:
        get_context("forkserver").set_forkserver_preload([*_IMPORTED, *modules])
        from multiprocessing.forkserver import ensure_running

        ensure_running()
    _forking.append(can_fork)
    try:
        yield
    finally:
        _forking.pop()


def fork_kernel(manager: KernelManager) -> None:
    """Let *manager* fork its kernel in a block of `forked_kernels`."""
    if _forking and _forking[-1]:
        manager.provisioner = _Fork(kernel_id="", kernel_spec=manager.kernel_spec, parent=manager)


class _Fork(LocalProvisioner):
    """Starts a kernel of this Python as a fork, and one of another as usual."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel of the command *cmd*."""
        if cmd[: len(_KERNEL)] != _KERNEL:
            return await super().launch_kernel(cmd, **kwargs)
        errors = f"/proc/{os.getpid()}/fd/{kwargs['stderr'].fileno()}"
        kernel = _KernelProcess(cmd[len(_KERNEL) :], kwargs["env"], Path(kwargs["cwd"]), errors)
        self.process = kernel  # type: ignore[assignment]  # of a Popen it has all that is called
        self.pid, self.cwd = kernel.pid, kwargs["cwd"]
        self.pgid = kernel.pid  # the group that it begins, and never that of this process
        return self.connection_info


class _KernelProcess:
    """A fork with the methods of a `subprocess.Popen` that a provisioner calls."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], environment: dict[str, str], folder: Path, errors: str) -> None:
        given = (arguments, environment, folder, errors)
        self._fork = get_context("forkserver").Process(target=_run_kernel, args=given)
        self._fork.start()
        self.pid = self._fork.pid

    def poll(self) -> int | None:
        """Return the exit code, or None if the kernel runs."""
        return self._fork.exitcode

    def wait(self) -> int | None:
        """Wait for the end, and return the exit code."""
        self._fork.join()
        return self._fork.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, if the kernel runs."""
        if self.poll() is None and self.pid is not None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """End the kernel."""
        self._fork.terminate()

    def kill(self) -> None:
        """End the kernel at once."""
        self._fork.kill()


def _run_kernel(arguments: list[str], environment: dict[str, str], folder: Path, errors: str) -> None:
    """Be the kernel until its end, in the fork."""
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with open(errors, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        # The kernel ends when the process that it is forked from has ended.
        launch_new_instance(argv=[*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
    finally:
        atexit._run_exitfuncs()  # which a fork leaves out: files and processes of the notebook's cells
