"""Tensors whose content is on the device alone, for functions that launch kernels on them.

Such a tensor has a shape, an element type and an address, but no memory of this process: for PyTorch its
device is ``meta``. Its views and new tensors beside it work as usual. Whatever would compute is refused: that
is for kernels.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from grader.runner.raised import RefusedError

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
_OPERATORS = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
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
    """While it is entered, new tensors on a CUDA device are in the device's memory."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime
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

    def leave(self, tensors: Iterable[torch.Tensor]) -> None:
        """Nothing: kernels run when their stream gets to them."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call ``func``, which makes tensors on the device or looks at them.

        Raises:
            RefusedError: it would compute.
        """
        named = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func in _EMPTY or func in _ZEROS:
            if _on_device(args, named):
                tensor = self._new(func(*map(_plain, args), **named | {"device": "meta"}))
                return self._cleared(tensor) if func in _ZEROS else tensor
        elif any(isinstance(tensor, DeviceTensor) for tensor in _tensors((*args, *named.values()))):
            if name == "zero_":
                return self._cleared(args[0])
            if name == "clone":
                return self._copied(self._new(torch.empty_like(_plain(args[0]))), args[0])
            if name == "copy_":
                return self._copied(*args[:2])
            if name in _WRITING or "out" in named or (name.endswith("_") and not name.startswith("__")):
                raise _computing(name)
            plain = {key: _plain(value) for key, value in named.items()}
            return self._view(func(*map(_plain, args), **plain), name)
        return func(*args, **named)

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
        block = self._blocks.get(result.untyped_storage()._cdata)  # noqa: SLF001 (the only name that it has)
        if block is None:
            raise _computing(name)
        return self._placed(result, block)

    def _placed(self, tensor: torch.Tensor, block: _Block) -> DeviceTensor:
        placed = tensor.as_subclass(DeviceTensor)
        placed.address = block.address + int(tensor.storage_offset()) * tensor.element_size()
        placed.block = block
        self._blocks[tensor.untyped_storage()._cdata] = block  # noqa: SLF001
        return placed


def _dense(*tensors: DeviceTensor) -> bool:
    return all(tensor.is_contiguous() for tensor in tensors)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Tensors on the device as those of ``meta`` that they are: some operators look at the device."""
    if isinstance(value, DeviceTensor):
        return value.as_subclass(torch.Tensor)
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
