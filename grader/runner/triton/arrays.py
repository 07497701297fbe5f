"""Tensors whose content is on the device alone, for functions that launch kernels on them.

Such a tensor has a shape, an element type and an address, but no memory of this process: for PyTorch its
device is ``meta``. Its views and new tensors beside it work as usual. Whatever would compute is refused, as
that is for kernels, or where PyTorch may compute is done on copies (``copies.py``). Where no operator may be
used, views are refused, too.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from grader.runner.raised import RefusedError
from grader.runner.triton.copies import Copies, Span
from grader.runner.triton.form import NotReturnedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grader.runner.triton.runtime import Runtime

_EMPTY = {
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}
_ZEROS = {torch.zeros, torch.zeros_like, torch.Tensor.new_zeros}
_LIKE: Mapping[Any, Callable[..., torch.Tensor]] = {
    torch.empty_like: torch.empty,
    torch.zeros_like: torch.zeros,
}
_OPERATORS = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_TO_HOST = {"cpu", "numpy", "item", "tolist"}
_WRITING = {"__setitem__", *(f"__i{name}__" for name in _OPERATORS)}


class DeviceTensor(torch.Tensor):
    """A tensor on the device.

    Attributes:
        address: of its first element, on the device.
        block: the memory that it is in, which lives as long as a tensor in it.
    """

    address: int
    block: _Block
    device = torch.device("cuda", 0)  # type: ignore[assignment, unused-ignore]
    is_cuda = True
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment] # noqa: SLF001

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.address

    def __repr__(self, **_: object) -> str:  # type: ignore[override, unused-ignore]
        """Shape and type: the content is on the device."""
        return f"tensor(on the device, shape={tuple(self.shape)}, dtype={self.dtype})"


class _Block:
    """Memory on the device."""

    def __init__(self, address: int) -> None:
        self.address = address


class Arrays(TorchFunctionMode):
    """While it is entered, new tensors on a CUDA device are in the device's memory.

    Args:
        runtime: of the device.
        operators: which operators of PyTorch may be used: "none", those that only give "views", or "all".
    """

    def __init__(self, runtime: Runtime, operators: str = "views") -> None:
        super().__init__()
        self._runtime = runtime
        self._operators = operators
        self._blocks: weakref.WeakValueDictionary[int, _Block] = weakref.WeakValueDictionary()

    def tensor(self, address: int, dtype: str, shape: Sequence[int]) -> DeviceTensor:
        """A tensor over memory of the judge's: dense, row-major."""
        tensor = torch.empty(tuple(shape), dtype=getattr(torch, dtype), device="meta")
        return self._placed(tensor, _Block(address))

    def enter(self, tensor: torch.Tensor) -> int:
        """Address of a tensor's first element.

        Raises:
            TypeError: it is in the host's memory.
        """
        if not isinstance(tensor, DeviceTensor):
            raise TypeError(
                f"a kernel gets a tensor of the host, {tuple(tensor.shape)}: make it on the device"
            )
        return tensor.address

    def take(self, name: str, returned: Any, output: DeviceTensor) -> None:  # noqa: ANN401
        """Let the memory of ``output`` hold what a function returned in its place, once its kernels have run.

        Raises:
            NotReturnedError: that is no such tensor.
        """
        wanted = f"a tensor {tuple(output.shape)} of {_dtype(output)} on the device"
        if not isinstance(returned, torch.Tensor):
            raise NotReturnedError(f"returns {_kind(returned)} for {name}, which is {wanted}")
        alike = (returned.shape, returned.dtype) == (output.shape, output.dtype)
        if not (alike and isinstance(returned, DeviceTensor)):
            held = "on the device" if isinstance(returned, DeviceTensor) else "of the host"
            got = f"a tensor {tuple(returned.shape)} of {_dtype(returned)} {held}"
            raise NotReturnedError(f"returns {got} for {name}, which is {wanted}")
        if not returned.is_contiguous():
            raise NotReturnedError(
                f"returns a tensor with strides {returned.stride()} for {name}: it has to be contiguous"
            )
        if returned.address != output.address and output.nbytes:
            self._runtime.copy_on(self._runtime.stream, output.address, returned.address, output.nbytes)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call ``func``, which makes tensors on the device or looks at them.

        Raises:
            RefusedError: it would compute, and PyTorch may not.
        """
        named = dict(kwargs or {})
        name = _name(func)
        if func in _EMPTY or func in _ZEROS:
            if _on_device(args, named):
                tensor = self._new(_without_content(func, args, named))
                return self._cleared(tensor) if func in _ZEROS else tensor
        elif self._operators == "all":
            return self._anything(func, name, args, named)
        elif any(isinstance(tensor, DeviceTensor) for tensor in _tensors((*args, *named.values()))):
            return self._viewed(func, name, args, named)
        return func(*args, **named)

    def _viewed(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401
        """The result of a call of PyTorch that gives a view, or that the device can do by itself."""
        if name == "cuda":
            return args[0]
        if name == "zero_":
            return self._cleared(args[0])
        if name == "clone":
            return self._copied(self._new(torch.empty_like(_plain(args[0]))), args[0])
        if name == "copy_":
            return self._copied(*args[:2])
        if _writes(name, named):
            raise _computing(name)
        return self._view(_on_meta(func, args, named), name)

    def _anything(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401
        """The result of any call of PyTorch: a view where that is all it gives, or computed on copies."""
        on_device = any(isinstance(tensor, DeviceTensor) for tensor in _tensors((*args, *named.values())))
        if on_device and name not in _TO_HOST and not _writes(name, named):
            try:
                result = _on_meta(func, args, named)
            except (NotImplementedError, RuntimeError):  # meta tensors have no numbers that it could look at
                result = None
            if isinstance(result, torch.Tensor) and self._block(result) is not None:
                return self._view(result, name)
        placed = [value for value in (*args, *named.values()) if _names_device(value)]
        goes = torch.device(placed[0]).type == "cuda" if placed else on_device and name not in _TO_HOST
        copies = Copies(self._runtime)
        if name == "cuda":
            return args[0] if on_device else self._onto(args[0], copies)
        if not (on_device or goes):
            return func(*args, **named)
        result = func(
            *(self._copy(copies, value) for value in args),
            **{key: self._copy(copies, value) for key, value in named.items()},
        )
        copies.write_back()
        return self._onto(result, copies) if goes else result

    def _copy(self, copies: Copies, value: Any) -> Any:  # noqa: ANN401
        """``value`` with copies on the host of its tensors, and the host for the device."""
        if isinstance(value, DeviceTensor):
            return copies.of(value, Span(value.block.address, value.address, value.as_subclass(torch.Tensor)))
        if _names_device(value):
            return torch.device("cpu")
        if type(value) in {tuple, list}:
            return type(value)(self._copy(copies, element) for element in value)
        return value

    def _onto(self, result: Any, copies: Copies) -> Any:  # noqa: ANN401
        """The result of a call on copies, with its tensors on the device."""
        if isinstance(result, tuple | list) and _holds_tensors(result):
            return type(result)([self._onto(element, copies) for element in result])
        if not isinstance(result, torch.Tensor):
            return result
        if (original := copies.original(result)) is not None:
            return original
        content = result.contiguous()
        tensor = self._new(torch.empty(content.shape, dtype=content.dtype, device="meta"))
        self._runtime.synchronize()  # the copy is on another stream, and finds the memory only then
        self._runtime.copy_in(tensor.address, content.data_ptr(), content.nbytes)
        self._runtime.synchronize()
        return tensor

    def _block(self, tensor: torch.Tensor) -> _Block | None:
        """The memory that a tensor of ``meta`` stands for."""
        return self._blocks.get(tensor.untyped_storage()._cdata)  # noqa: SLF001 (the only name that it has)

    def _new(self, tensor: torch.Tensor) -> DeviceTensor:
        address = self._runtime.allocate_on(self._runtime.stream, tensor.untyped_storage().nbytes())
        block = _Block(address)
        weakref.finalize(block, self._release, address).atexit = False  # type: ignore[misc]  # a property
        return self._placed(tensor, block)

    def _release(self, address: int) -> None:
        self._runtime.release_on(self._runtime.stream, address)

    def _cleared(self, tensor: DeviceTensor) -> DeviceTensor:
        if not tensor.is_contiguous():
            raise _computing("zero_ of a tensor with gaps")
        self._runtime.fill(tensor.address, tensor.nbytes, self._runtime.stream)
        return tensor

    def _copied(self, to: Any, source: Any) -> DeviceTensor:  # noqa: ANN401
        """``to`` with the content of ``source``, as autotuning keeps what kernels change in place."""
        alike = isinstance(to, DeviceTensor) and isinstance(source, DeviceTensor)
        if not (alike and (to.shape, to.dtype) == (source.shape, source.dtype) and _dense(to, source)):
            raise _computing("a copy of another shape or type, or with gaps,")
        self._runtime.copy_on(self._runtime.stream, to.address, source.address, to.nbytes)
        copied: DeviceTensor = to
        return copied

    def _view(self, result: Any, name: str) -> Any:  # noqa: ANN401
        """The result of a call of PyTorch, whose tensors have to be views."""
        if isinstance(result, tuple | list):
            return (
                type(result)(self._view(element, name) for element in result)
                if _holds_tensors(result)
                else result
            )
        if not isinstance(result, torch.Tensor):
            return result
        block = self._block(result)
        if block is None:
            raise _computing(name)
        if self._operators == "none":
            raise RefusedError(f"{name} is PyTorch's, and this problem allows none of its operators")
        return self._placed(result, block)

    def _placed(self, tensor: torch.Tensor, block: _Block) -> DeviceTensor:
        placed = tensor.as_subclass(DeviceTensor)
        placed.address = block.address + int(tensor.storage_offset()) * tensor.element_size()
        placed.block = block
        self._blocks[tensor.untyped_storage()._cdata] = block  # noqa: SLF001
        return placed


def _name(func: Callable[..., Any]) -> str:
    """The name of a function of PyTorch; that of the attribute, where it reads one."""
    name: str = getattr(func, "__name__", "")
    owner = getattr(func, "__self__", None)
    return getattr(owner, "__name__", name) if name == "__get__" else name


def _writes(name: str, named: Mapping[str, Any]) -> bool:
    """Whether a function of PyTorch changes a tensor that it is given."""
    return name in _WRITING or "out" in named or (name.endswith("_") and not name.startswith("__"))


def _on_meta(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """The result of a call on tensors without content."""
    return func(*map(_plain, args), **{key: _plain(value) for key, value in named.items()})


def _without_content(
    func: Callable[..., torch.Tensor], args: Sequence[Any], named: Mapping[str, Any]
) -> torch.Tensor:
    """A new tensor as ``func`` makes it, without content."""
    if func in _LIKE and args and args[0].is_contiguous() and not {*named} - {"dtype", "device"}:
        # PyTorch imports SymPy, for half a second, to make a tensor like one that has no content.
        return _LIKE[func](args[0].shape, dtype=named.get("dtype") or args[0].dtype, device="meta")
    return func(*map(_plain, args), **{**named, "device": "meta"})


def _names_device(value: Any) -> bool:  # noqa: ANN401
    """Whether an argument says where a tensor is to be."""
    if isinstance(value, str):
        return value.partition(":")[0] in {"cuda", "cpu"}
    return isinstance(value, torch.device)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _dense(*tensors: DeviceTensor) -> bool:
    return all(tensor.is_contiguous() for tensor in tensors)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Tensors on the device, and the device itself, as ``meta``: some operators look at the device."""
    if isinstance(value, DeviceTensor):
        return value.as_subclass(torch.Tensor)
    if _names_device(value) and torch.device(value).type == "cuda":
        return "meta"
    return type(value)(map(_plain, value)) if type(value) in {tuple, list} else value


def _computing(name: str) -> RefusedError:
    """No TypeError: of that, operators such as * make another one."""
    return RefusedError(f"{name} is PyTorch's and would compute on the device: launch a kernel for that")


def _on_device(args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a new tensor is to be on the device, as is said, or as the tensor is that it is made like."""
    device = named.get("device")
    if device is None:
        return bool(args) and isinstance(args[0], DeviceTensor)
    return torch.device(device).type == "cuda"


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)


def _holds_tensors(result: Sequence[Any]) -> bool:
    return any(isinstance(element, torch.Tensor) for element in result)
