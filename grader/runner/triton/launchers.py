"""The functions of a submission's file, which launch kernels in Triton that the judge builds."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import triton

from grader.runner.library import UnloadableError
from grader.runner.raised import RaisedError, account
from grader.runner.triton.arrays import Arrays
from grader.runner.triton.driver import Launcher, SimulatorDriver
from grader.runner.triton.ptx import CAPABILITY
from grader.runner.triton.runtime import Runtime
from grader.runner.triton.specialisation import encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.runner.protocol import Frame, Header


class Launchers:
    """A file whose functions are called with tensors on the device.

    Args:
        path: of the file.
        ask: sends the judge a header in the middle of a call, and returns its answer.
    """

    def __init__(self, path: str, ask: Callable[[Header], Frame]) -> None:
        torch.set_num_threads(1)
        self._path = path
        self._ask = ask
        self._runtime = Runtime()
        self._arrays = Arrays(self._runtime)
        driver = _Driver(self._runtime, self._arrays)
        self._defaults = triton.compiler.make_backend(driver.get_current_target()).parse_options({}).__dict__
        triton.runtime.driver.set_active(driver)
        triton.compiler.compile = self._compile  # the hooks around it can end a launch, but not replace it

    def functions(self, names: Sequence[str]) -> Mapping[str, Callable[..., None]]:
        """The functions of these names.

        Raises:
            UnloadableError: the file raises an exception, or lacks one of them.
        """
        name = os.path.splitext(os.path.basename(self._path))[0]  # noqa: PTH119, PTH122
        spec = importlib.util.spec_from_file_location(name, self._path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with self._arrays:
                spec.loader.exec_module(module)
        except Exception as error:
            raise UnloadableError(account(error, self._path)) from error
        for one in names:
            if not callable(getattr(module, one, None)):
                raise UnloadableError(f"{os.path.basename(self._path)} has no function {one}", one)  # noqa: PTH119
        return {one: partial(self._call, getattr(module, one)) for one in names}

    def argument(self, kind: str, value: Any) -> Any:  # noqa: ANN401
        """What a function gets for an argument ``[kind, value]`` of a request."""
        return self._arrays.tensor(*value) if kind == "tensor" else value

    def use(self, stream: int) -> None:
        """Let the following calls work on ``stream``."""
        self._arrays.stream = stream

    def _call(self, function: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401
        try:
            with self._arrays:
                function(*arguments)
        except Exception as error:
            raise RaisedError(account(error, self._path)) from error

    def _compile(self, source: Any, *, options: Mapping[str, Any], **_: object) -> _Built:  # noqa: ANN401
        """What Triton's ``compile`` returns, from the judge's build of the kernel.

        Raises:
            RuntimeError: it cannot be built; the text says why.
        """
        specialisation = encoded(source, options, self._defaults)
        answer = self._ask({"status": "build", "specialisation": specialisation})
        if refused := answer.header["refused"]:
            raise RuntimeError(refused)
        facts = SimpleNamespace(**answer.header["facts"])
        function = self._runtime.load(bytes(answer.payload), facts.name, CAPABILITY)
        signature = tuple(source.signature.values())
        return _Built(Launcher(self._runtime, self._arrays, signature, facts), function)


class _Driver(SimulatorDriver):
    """The simulator, on the stream of a call."""

    def __init__(self, runtime: Runtime, arrays: Arrays) -> None:
        super().__init__(runtime, arrays)
        self._arrays = arrays

    def get_current_stream(self, _device: int) -> int:
        """The stream of the call."""
        return self._arrays.stream


class _Built:
    """A kernel as Triton's just-in-time compiler keeps and launches it."""

    packed_metadata = None

    def __init__(self, run: Launcher, function: int) -> None:
        self.run = run
        self.function = function

    def launch_metadata(self, *_: object) -> None:
        """Nothing: no hook asks for it."""
