"""Answers a runner that asks for kernels of a Python file in the middle of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.devices.device import RefusedKernelError, Status
from grader.devices.runner import RunnerError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from grader.devices.device import DeviceKernel, Script
    from grader.runner.protocol import Bytes, Header

MOST_KERNELS = 500  # that a runner may ask for


class Kernels:
    """The kernels of a file, each built when it is asked for.

    ``close`` ends what builds them.

    Args:
        script: the file.
        observe: called with each kernel that the runner gets.
    """

    def __init__(
        self, script: Script, observe: Callable[[DeviceKernel], None] = lambda _kernel: None
    ) -> None:
        self._build = script.build
        self.close = script.close
        self._observe = observe
        self._asked = 0

    def __call__(self, request: Header, closed: threading.Event) -> tuple[Header, Bytes]:
        """The answer to a runner that asks for a kernel: its code, or why there is none.

        Args:
            request: of the runner.
            closed: set once the runner's session is closed, which ends a compile.

        Raises:
            RunnerError: it asks for too many.
            MachineError: the machine failed, or the session was closed.
        """
        self._asked += 1
        if self._asked > MOST_KERNELS:
            raise RunnerError(Status.LIMIT, f"more than {MOST_KERNELS} kernels, for as many specialisations")
        try:
            kernel = self._build(request.get("specialisation", {}), closed)
        except RefusedKernelError as error:
            return {"operation": "built", "refused": str(error)}, b""
        self._observe(kernel)
        return {"operation": "built", "refused": "", "facts": kernel.facts}, kernel.code
