"""The functions of a submission's file, which launch kernels that the judge builds: in Triton or C++."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from grader.runner.library import UnloadableError
from grader.runner.pytorch.answers import answer_for
from grader.runner.pytorch.cuda import answer_for_streams
from grader.runner.pytorch.extensions import Extensions
from grader.runner.pytorch.raw import Libraries
from grader.runner.raised import RaisedError, RefusedError, account, raised
from grader.runner.triton import task_types
from grader.runner.triton.arrays import Arrays
from grader.runner.triton.form import NotReturnedError, WeightError
from grader.runner.triton.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from grader.runner.gpu import Gpu
    from grader.runner.protocol import Frame, Header
    from grader.runner.triton.form import Form

_ANY_KERNEL = "dynamic_func()"  # what Triton calls a kernel whose arguments do not fit


class Launchers:
    """A file whose functions are called with tensors on the device.

    Args:
        path: of the file.
        ask: sends the judge a header in the middle of a call, and returns its answer.
        gpu: where they run; None for the simulator.
        form: how they are called.
        extensions: the modules of C++ that it builds: of each the library, by the key of its call.
        kernels: the linker's names of the kernels in these.
    """

    def __init__(
        self,
        path: str,
        ask: Callable[[Header], Frame],
        gpu: Gpu | None,
        form: Form,
        extensions: Mapping[str, str],
        kernels: Iterable[str],
    ) -> None:
        torch.set_num_threads(1)
        torch.cuda._lazy_init = _no_cuda  # noqa: SLF001 (PyTorch calls it before its first work on a GPU)
        self._path = path
        self._runtime = _runtime(gpu)
        self._runtime.built = frozenset(kernels)
        answer_for(self._runtime)
        answer_for_streams(self._runtime, partial(setattr, self._runtime, "stream"))
        self._form = form
        self._arrays = Arrays(self._runtime, form.operators)
        self._extensions = Extensions(extensions, self._runtime, os.path.basename(path))  # noqa: PTH119
        self._modules = _stand_ins(Libraries(extensions, self._runtime), Path(path).read_bytes())
        if b"triton" in Path(path).read_bytes():  # to import it takes a second
            importlib.import_module("grader.runner.triton.judged").begin(self._runtime, self._arrays, ask)

    def functions(self, names: Sequence[str]) -> Mapping[str, Callable[..., object]]:
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
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        task_types.define()
        try:
            with self._arrays:
                spec.loader.exec_module(module)
        except Exception as error:
            raise UnloadableError(account(error, self._path)) from error
        for function in names:
            if not callable(getattr(module, function, None)):
                raise UnloadableError(f"{os.path.basename(self._path)} has no function {function}", function)  # noqa: PTH119
        return {function: partial(self._call, getattr(module, function)) for function in names}

    def _import(
        self,
        name: str,
        names: Mapping[str, object] | None = None,
        inner: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        """What the file imports: modules that compile kernels are ours for it, and for nobody else."""
        if level or name not in self._modules:
            return builtins.__import__(name, names, inner, fromlist, level)
        return self._modules[name if fromlist else name.partition(".")[0]]

    def argument(self, kind: str, value: Any, pointers: list[int], _streams: list[int]) -> Any:  # noqa: ANN401
        """Turn an argument ``[kind, value]`` of a request into a function's; arrays are at ``pointers``."""
        match kind, value:
            case "array", [index, dtype, shape]:
                return self._arrays.tensor(pointers[index], dtype, shape)
            case "tensor", [address, dtype, shape]:
                return self._arrays.tensor(address, dtype, shape)
        return value

    def use(self, stream: int) -> None:
        """Let the following calls work on ``stream``, with no memory that earlier ones have freed."""
        self._runtime.stream = stream
        self._runtime.forget()

    def strangers(self, graphs: Iterable[int]) -> list[str]:
        """Texts about all that captured calls do but launching kernels that the judge has built."""
        return sorted({words for graph in graphs for words in self._runtime.strangers(graph)})

    def _call(self, function: Callable[..., object], *arguments: Any) -> object:  # noqa: ANN401
        try:
            with self._arrays:
                returned = self._form.call(function, arguments)
        except WeightError as error:
            raise RaisedError(f"{os.path.basename(self._path)}: {error}") from error  # noqa: PTH119
        except Exception as error:
            failure = raised(error, self._path)
            raise type(failure)(str(failure).replace(_ANY_KERNEL, "kernel()")) from error
        try:
            for name, value, output in self._form.returned(returned, arguments):
                self._arrays.take(name, value, output)
        except NotReturnedError as error:
            raise RaisedError(f"{self._place(function)} {error}") from error
        return returned

    def _place(self, function: Any) -> str:  # noqa: ANN401
        """The line of a function in the file, and its name."""
        code = getattr(function, "__code__", None)
        line = f":{code.co_firstlineno}" if code is not None else ""
        return f"{os.path.basename(self._path)}{line}: {getattr(function, '__name__', 'the function')}"  # noqa: PTH119


def _runtime(gpu: Gpu | None) -> Runtime:
    if gpu is None:
        return Runtime()
    runtime: Runtime = importlib.import_module("grader.runner.triton.gpu").GpuRuntime(gpu)  # it needs CuPy
    return runtime


def _stand_ins(libraries: Libraries, content: bytes) -> Mapping[str, ModuleType]:
    """The modules that a file may compile kernels by, by name; those that it does not name are left out."""
    modules: dict[str, ModuleType] = {}
    for name in ("cupy", "cuda_core"):
        if name.partition("_")[0].encode() in content:
            modules |= importlib.import_module(f"grader.runner.pytorch.{name}").modules(libraries)
    return modules


def _no_cuda() -> NoReturn:
    raise RefusedError("PyTorch would work on the device: launch a kernel for that")
