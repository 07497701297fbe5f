"""Kernels in Triton that the judge compiles: the runner says for what, and launches what it gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import triton
from triton.runtime.errors import OutOfResources

from grader.runner.raised import RefusedError
from grader.runner.triton.driver import Driver, Launcher
from grader.runner.triton.specialisation import encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.runner.protocol import Frame, Header
    from grader.runner.triton.arrays import Arrays
    from grader.runner.triton.runtime import Runtime

_MOST_SHARED = 97  # of cudaDeviceAttr: bytes that a block may ask for


def begin(runtime: Runtime, arrays: Arrays, ask: Callable[[Header], Frame]) -> None:
    """Let Triton launch on the device of ``runtime`` what the judge compiles.

    Args:
        runtime: of the device.
        arrays: the tensors on it.
        ask: sends the judge a header in the middle of a call, and returns its answer.
    """
    driver = Driver(runtime, arrays)
    kernels = _Kernels(runtime, arrays, ask, driver)
    triton.runtime.driver.set_active(driver)
    triton.compiler.compile = kernels.compile  # the hooks around it can end a launch, but not replace it


class _Kernels:
    """Asks the judge for kernels."""

    def __init__(
        self, runtime: Runtime, arrays: Arrays, ask: Callable[[Header], Frame], driver: Driver
    ) -> None:
        self._runtime = runtime
        self._arrays = arrays
        self._ask = ask
        self._defaults = triton.compiler.make_backend(driver.get_current_target()).parse_options({}).__dict__

    def compile(self, source: Any, *, options: Mapping[str, Any], **_: object) -> _Built:  # noqa: ANN401
        """What Triton's ``compile`` returns, from the judge's build of the kernel.

        Raises:
            RefusedError: it cannot be built, or is given what this device cannot take.
            OutOfResources: it needs more shared memory than the device has; autotuning passes it by.
        """
        specialisation = encoded(source, options, self._defaults)
        answer = self._ask({"status": "build", "specialisation": specialisation})
        if refused := answer.header["refused"]:
            raise RefusedError(refused)
        facts = SimpleNamespace(**answer.header["facts"])
        if facts.descriptors:
            raise RefusedError("the GPU takes no descriptor of the host: use tl.make_tensor_descriptor")
        most = self._runtime.attribute(_MOST_SHARED)
        if facts.shared > most:
            raise OutOfResources(facts.shared, most, "shared memory")
        function = self._runtime.load(bytes(answer.payload), facts.name, facts.shared)
        signature = tuple(source.signature.values())
        return _Built(Launcher(self._runtime, self._arrays, signature, facts), function)


class _Built:
    """A kernel as Triton's just-in-time compiler keeps and launches it."""

    packed_metadata = None

    def __init__(self, run: Launcher, function: int) -> None:
        self.run = run
        self.function = function

    def launch_metadata(self, *_: object) -> None:
        """Nothing: no hook asks for it."""
