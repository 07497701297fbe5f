"""Copies that the host has of tensors on the device, while an operator of PyTorch computes with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from grader.runner.triton.runtime import Runtime


@dataclass(frozen=True)
class Span:
    """Where a tensor lies on the device.

    Attributes:
        block: address of the memory that it is in, which other tensors may share.
        address: of its first element.
        layout: a tensor of the same shape, strides and type.
    """

    block: int
    address: int
    layout: torch.Tensor

    @property
    def nbytes(self) -> int:
        """The bytes from its first element to its last."""
        if not self.layout.numel():
            return 0
        steps = zip(self.layout.shape, self.layout.stride(), strict=True)
        return (1 + sum((length - 1) * stride for length, stride in steps)) * self.layout.element_size()


class Copies:
    """The copies for one call of an operator; tensors that share memory have copies that share theirs."""

    def __init__(self, runtime: Runtime) -> None:
        runtime.synchronize()  # kernels on the launcher's stream may still be writing
        self._runtime = runtime
        self._blocks: dict[int, torch.Tensor] = {}
        self._taken: list[tuple[torch.Tensor, int, Span, torch.Tensor]] = []

    def of(self, tensor: torch.Tensor, span: Span) -> torch.Tensor:
        """The copy of ``tensor``, which lies at ``span``."""
        first, size = span.address - span.block, span.nbytes
        bytes_held = self._blocks.get(span.block, torch.empty(0, dtype=torch.uint8))
        if len(bytes_held) < first + size:  # one storage for all that share the block
            storage = bytes_held.untyped_storage()
            storage.resize_(first + size)
            bytes_held = self._blocks[span.block] = torch.empty(0, dtype=torch.uint8).set_(storage)
        self._runtime.copy_out(bytes_held.data_ptr() + first, span.address, size)
        copy = torch.empty(0, dtype=span.layout.dtype).set_(
            bytes_held.untyped_storage(),
            first // span.layout.element_size(),
            span.layout.shape,
            span.layout.stride(),
        )
        self._taken.append((copy, copy._version, span, tensor))  # noqa: SLF001 (nothing else tells of writes)
        return copy

    def original(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The tensor on the device of which ``tensor`` is the copy, if it is one."""
        return next((original for copy, *_, original in self._taken if copy is tensor), None)

    def write_back(self) -> None:
        """Let the device have what the operator has written."""
        for copy, version, span, _ in self._taken:
            if copy._version != version and span.nbytes:  # noqa: SLF001
                self._runtime.copy_in(span.address, copy.data_ptr(), span.nbytes)
        self._runtime.synchronize()
