"""Modules of C++ that a file builds by ``load_inline``: the judge has built them, this calls their functions.

Their tensors are those of Python, by name. ``grader/languages/inline/include/grader`` has the other side, and
the structures of its ``bridge.h`` stand here, too.
"""

from __future__ import annotations

import ctypes
import inspect
import itertools
import os
import sys
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from grader.runner.inlined import PARAMETERS, REQUIRED, key
from grader.runner.raised import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.runner.triton.runtime import Runtime

MODULE = "torch.utils.cpp_extension"
_NOTHING, _MISSING, _BOOLEAN, _INTEGER, _REAL, _TEXT, _TENSOR, _INTEGERS, _TENSORS, _DTYPE, _DEVICE = range(
    11
)
_DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    11: torch.bool,
    15: torch.bfloat16,
}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}
_RETURNED, _RAISED_IN_PYTHON, _RAISED, _WRONG_ARGUMENTS = range(4)


class _Value(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int64),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("pointer", ctypes.c_void_p),
    )


class _Layout(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int64),
        ("on_device", ctypes.c_int64),
        ("dimensions", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Value), ctypes.c_int64, ctypes.POINTER(_Value)
)
_LOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.POINTER(_Layout))
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
_STREAM = ctypes.CFUNCTYPE(ctypes.c_void_p)


class _Bridge(ctypes.Structure):
    _fields_ = (("call", _CALL), ("look", _LOOK), ("release", _RELEASE), ("stream", _STREAM))


_SIGNATURE = inspect.Signature(
    [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if name in REQUIRED else None,
        )
        for name in PARAMETERS
    ]
)


class Extensions:
    """The modules that the judge has built for a file.

    Args:
        libraries: of each, by the key of its call.
        runtime: of the device.
        file: the name of the submission's file.
    """

    def __init__(self, libraries: Mapping[str, str], runtime: Runtime, file: str) -> None:
        self._libraries = libraries
        self._runtime = runtime
        self._file = file
        self._tensors: dict[int, tuple[torch.Tensor, Any, Any]] = {}
        self._names = itertools.count(1)
        self._raised: Exception | None = None
        self._bridge = _Bridge(
            _CALL(self._call), _LOOK(self._look), _RELEASE(self._release), _STREAM(lambda: runtime.stream)
        )
        module = ModuleType(MODULE)
        vars(module)["load_inline"] = self._load_inline
        sys.modules[MODULE] = module
        setattr(torch.utils, MODULE.rpartition(".")[2], module)

    def _load_inline(self, *arguments: Any, **named: Any) -> SimpleNamespace:  # noqa: ANN401
        """The module that a call of ``load_inline`` makes."""
        parameters = _SIGNATURE.bind(*arguments, **named).arguments
        path = self._libraries.get(key(parameters))
        if path is None:
            raise RefusedError("load_inline gets other texts than stand in its call: write them there")
        library = ctypes.CDLL(path, mode=os.RTLD_NOW)
        for function in ("name", "arguments", "types", "message", "place"):
            getattr(library, f"grader_{function}").restype = ctypes.c_char_p
        library.grader_count.restype = library.grader_result.restype = ctypes.c_int64
        library.grader_begin(ctypes.byref(self._bridge))
        module = SimpleNamespace()
        for index in map(ctypes.c_int64, range(library.grader_count())):
            name, names, types = (
                getattr(library, f"grader_{part}")(index).decode() for part in ("name", "arguments", "types")
            )
            described = f"{name}({types})"
            setattr(
                module,
                name,
                partial(self._invoke, library, index, names.split(",") if names else [], described),
            )
        return module

    def _invoke(
        self,
        library: ctypes.CDLL,
        index: ctypes.c_int64,
        names: Sequence[str],
        described: str,
        *arguments: Any,  # noqa: ANN401
        **named: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Call a function of a module.

        Raises:
            TypeError: it takes other arguments.
            RefusedError: C++ raised an error; the text says where, if it told.
        """
        wrong = TypeError(f"the arguments do not fit {described}")
        if any(name not in names[len(arguments) :] for name in named):
            raise wrong
        passed = [*arguments]
        if named:
            last = max(names.index(name) for name in named)
            passed += [named.get(name, inspect.Parameter.empty) for name in names[len(arguments) : last + 1]]
        values = (_Value * len(passed))()
        owners = [self._pass(value, argument, wrong) for value, argument in zip(values, passed, strict=True)]
        self._raised = None
        ending = library.grader_call(index, values, ctypes.c_int64(len(passed)))
        del owners
        try:
            if ending == _WRONG_ARGUMENTS:
                raise wrong
            if ending == _RAISED_IN_PYTHON and self._raised is not None:
                raise self._raised
            if ending != _RETURNED:
                raise self._error(library)
            return self._result(library)
        finally:
            library.grader_done()

    def _error(self, library: ctypes.CDLL) -> RefusedError:
        line = ctypes.c_int()
        file = os.path.basename(library.grader_place(ctypes.byref(line)).decode(errors="replace"))  # noqa: PTH119
        message = f"RuntimeError: {library.grader_message().decode(errors='replace')}"
        return RefusedError(f"{self._file}:{line.value}: {message}" if file == self._file else message)

    def _result(self, library: ctypes.CDLL) -> Any:  # noqa: ANN401
        values, alone = ctypes.POINTER(_Value)(), ctypes.c_int()
        count = library.grader_result(ctypes.byref(values), ctypes.byref(alone))
        results = tuple(self._taken(values[index]) for index in range(count))
        return results[0] if alone.value else results

    # --- values

    def _pass(self, value: _Value, argument: Any, wrong: TypeError) -> Any:  # noqa: ANN401
        """Let ``value`` be an argument; what it points to lives as long as what comes back."""
        match argument:
            case torch.Tensor():
                value.kind, value.integer = _TENSOR, self._lent(argument)
            case None:
                value.kind = _NOTHING
            case inspect.Parameter.empty:
                value.kind = _MISSING
            case float():
                value.kind, value.real = _REAL, argument
            case int():
                value.kind, value.integer = _BOOLEAN if isinstance(argument, bool) else _INTEGER, argument
            case torch.dtype() if argument in _NUMBERS:
                value.kind, value.integer = _DTYPE, _NUMBERS[argument]
            case torch.device():
                value.kind, value.integer = _DEVICE, argument.type == "cuda"
            case str() | list() | tuple():
                return self._pass_several(value, argument, wrong)
            case _:
                raise wrong
        return None

    def _pass_several(self, value: _Value, argument: Any, wrong: TypeError) -> Any:  # noqa: ANN401
        """The same for a text, tensors or whole numbers."""
        if isinstance(argument, str):
            text = ctypes.c_char_p(argument.encode())
            value.kind, value.pointer = _TEXT, ctypes.cast(text, ctypes.c_void_p)
            return text
        if argument and all(isinstance(element, torch.Tensor) for element in argument):
            return self._listed(value, _TENSORS, [self._lent(tensor) for tensor in argument])
        if all(isinstance(element, int) for element in argument):
            return self._listed(value, _INTEGERS, argument)
        raise wrong

    @staticmethod
    def _listed(value: _Value, kind: int, numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
        elements = (ctypes.c_int64 * len(numbers))(*numbers)
        value.kind, value.integer = kind, len(numbers)
        value.pointer = ctypes.cast(elements, ctypes.c_void_p)
        return elements

    def _taken(self, value: _Value) -> Any:  # noqa: ANN401
        """What C++ says with ``value``."""
        kind, integer = value.kind, value.integer
        elements = ctypes.cast(value.pointer or 0, ctypes.POINTER(ctypes.c_int64))
        plain: dict[int, Callable[[], Any]] = {
            _BOOLEAN: lambda: bool(integer),
            _INTEGER: lambda: integer,
            _REAL: lambda: value.real,
            _TEXT: lambda: ctypes.string_at(value.pointer).decode(errors="replace"),
            _TENSOR: lambda: self._tensors[integer][0],
            _INTEGERS: lambda: elements[:integer],
            _TENSORS: lambda: [self._tensors[name][0] for name in elements[:integer]],
            _DTYPE: lambda: _DTYPES[integer],
            _DEVICE: lambda: torch.device("cuda", 0) if integer else torch.device("cpu"),
        }
        return plain[kind]() if kind in plain else None

    def _lent(self, tensor: torch.Tensor) -> int:
        """The name under which C++ owns a share of ``tensor`` until it releases it."""
        name = next(self._names)
        with torch._C.DisableTorchFunction():  # noqa: SLF001 (to look at a tensor is no operator)
            sizes, strides = tuple(tensor.shape), tensor.stride()
        count = ctypes.c_int64 * len(sizes)
        self._tensors[name] = (tensor, count(*sizes), count(*strides))
        return name

    # --- what C++ asks for

    def _release(self, name: int) -> None:
        self._tensors.pop(name, None)

    def _look(self, name: int, layout: ctypes._Pointer[_Layout]) -> int:
        tensor, sizes, strides = self._tensors[name]
        if tensor.dtype not in _NUMBERS:
            self._raised = RefusedError(
                f"C++ gets a tensor of {tensor.dtype}, which is none of its types here"
            )
            return 1
        content = layout.contents
        content.data, content.dtype = tensor.data_ptr(), _NUMBERS[tensor.dtype]
        content.on_device, content.dimensions = tensor.is_cuda, len(sizes)
        content.offset = tensor.storage_offset()
        content.sizes, content.strides = sizes, strides
        return 0

    def _call(
        self, name: bytes, values: ctypes._Pointer[_Value], count: int, result: ctypes._Pointer[_Value]
    ) -> int:
        """Call an operator of PyTorch; what it raises is raised again when C++ has returned."""
        try:
            plain, named = [], {}
            for index in range(count):
                value = values[index]
                taken = self._taken(value)
                if value.kind == _DTYPE:
                    named["dtype"] = taken
                elif value.kind == _DEVICE:
                    named["device"] = taken
                else:
                    plain.append(taken)
            self._pass(result.contents, _operator(name.decode(), plain)(*plain, **named), _UNKNOWN)
        except Exception as error:  # noqa: BLE001 - C++ must not be jumped over, and the author reads it
            self._raised = error
            return 1
        return 0


_UNKNOWN = TypeError("C++ cannot take this result of PyTorch")


def _operator(name: str, arguments: Sequence[Any]) -> Callable[..., Any]:
    """The operator that C++ calls ``name``."""
    further: dict[str, Callable[..., Any]] = {"slice": _sliced, "view_as_type": torch.Tensor.view}
    if name in further:
        return further[name]
    of_tensor = arguments and isinstance(arguments[0], torch.Tensor) and hasattr(torch.Tensor, name)
    operator: Callable[..., Any] = getattr(torch.Tensor if of_tensor else torch, name)
    return operator


def _sliced(tensor: torch.Tensor, dimension: int, first: int, last: int, step: int) -> torch.Tensor:
    index: list[slice] = [slice(None)] * tensor.dim()
    index[dimension] = slice(first, last, step)
    return tensor[tuple(index)]
