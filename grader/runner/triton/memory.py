"""Tensors of the CPU as the device's memory.

Each storage that a kernel gets has a twin on the device. Before a launch the twin receives what the host has
changed since, afterwards the host receives what the twin holds. A tensor of ``torch.empty`` counts as never
written on the device until the host writes to it.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from grader.runner.triton.runtime import Runtime

_ALIGNMENT = 16  # bytes: Triton specialises kernels on it
_LIBC = ctypes.CDLL(None)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt
_KEPT = 1 << 25  # bytes: no more is allowed
_UNWRITTEN = {
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}


_IS_CUDA: Any = getattr(torch.Tensor.is_cuda, "__get__")  # noqa: B009 (its stub says it is a bool)


@dataclass
class _Twin:
    """Device memory of a storage, and what both held when they were last equal; None if never."""

    address: int
    last: torch.Tensor | None

    def see(self, content: torch.Tensor) -> None:
        """Remember that both hold ``content`` now."""
        self.last = content.clone() if self.last is None else self.last.copy_(content)


class Memory:
    """The twins of this process's storages; each lives as long as its storage."""

    def __init__(self, runtime: Runtime) -> None:
        # Tensors of a loop come and go: to get their pages anew each time costs more than a small kernel.
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            _LIBC.mallopt(option, _KEPT)
        self._runtime = runtime
        self._twins: dict[int, _Twin] = {}
        self._noise = torch.randint(
            256, (1 << 20,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
        )

    def scribble(self, tensor: torch.Tensor) -> None:
        """Take a new tensor as never written.

        It is filled with noise, so that whatever the host writes to it makes a difference. Truth values have
        no room for noise: they count as written.
        """
        if tensor.dtype is torch.bool or not tensor.nbytes or tensor.device.type != "cpu":
            return
        content = _bytes(tensor.untyped_storage())
        for start in range(0, len(content), len(self._noise)):
            part = content[start : start + len(self._noise)]
            part.copy_(self._noise[: len(part)])
        self._twin(tensor.untyped_storage()).see(content)

    def enter(self, tensor: torch.Tensor) -> int:
        """Address on the device of a tensor's first element, with the content that the host sees."""
        storage = tensor.untyped_storage()
        twin, content = self._twin(storage), _bytes(storage)
        if twin.last is None or not _equal(twin.last, content):
            self._runtime.copy_in(twin.address, storage.data_ptr(), storage.nbytes())
            twin.see(content)
        return twin.address + tensor.data_ptr() - storage.data_ptr()

    def leave(self, tensors: Iterable[torch.Tensor]) -> None:
        """Wait for the kernel, and give the host what the device holds."""
        storages = {id(tensor.untyped_storage()): tensor.untyped_storage() for tensor in tensors}
        if not storages:
            self._runtime.synchronize()
        for storage in storages.values():  # the first copy waits for the kernel
            twin = self._twin(storage)
            self._runtime.copy_out(storage.data_ptr(), twin.address, storage.nbytes())
            twin.see(_bytes(storage))

    def _twin(self, storage: torch.UntypedStorage) -> _Twin:
        if storage._cdata not in self._twins:  # noqa: SLF001 (the only name that a storage has)
            front = storage.data_ptr() % _ALIGNMENT
            base = self._runtime.allocate(front + storage.nbytes())
            self._twins[storage._cdata] = _Twin(base + front, None)  # noqa: SLF001
            weakref.finalize(storage, self._forget, storage._cdata, base)  # noqa: SLF001
        return self._twins[storage._cdata]  # noqa: SLF001

    def _forget(self, name: int, base: int) -> None:
        del self._twins[name]
        self._runtime.release(base)


def _equal(first: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of as many bytes hold the same; PyTorch's own way takes twenty times as long."""
    addresses = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (first, other))
    return not _LIBC.memcmp(*addresses, ctypes.c_size_t(len(first)))


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(storage)


class OnTheSimulator(TorchFunctionMode):
    """While it is entered, a script's CUDA device is the CPU, and ``torch.empty`` gives unwritten memory."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call ``func`` with the CPU in the place of a GPU."""
        if func == _IS_CUDA:  # equal, not the same: each look-up makes a new one
            return True
        if func is torch.Tensor.cuda:
            return args[0]
        named = {name: _on_the_cpu(value) for name, value in (kwargs or {}).items()}
        result = func(*map(_on_the_cpu, args), **named)
        if func in _UNWRITTEN:
            self._memory.scribble(result)
        return result


def _on_the_cpu(value: object) -> object:
    """The CPU for a CUDA device, by its name or as an object; anything else as it is."""
    if (isinstance(value, str) and value.partition(":")[0] == "cuda") or (
        isinstance(value, torch.device) and value.type == "cuda"
    ):
        return torch.device("cpu")
    return value
