"""The ATen operations that a formula consists of, one after the other, forward and backward.

``Operators`` is told of each. What it does not know is taken apart as PyTorch's own decompositions do it: a
norm comes as product, sum and root. What remains unknown is refused by name.

Layer: imports torch.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.problems.explained import FormulaError

aten: Any = torch.ops.aten


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs each operation inside of it by ``run``. PyTorch's mode is on again while a composed one runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch's own hook: no, as to skip its compiler it loads that first, which takes seconds."""
        return False

    @abstractmethod
    def knows(self, name: str, args: Sequence[Any]) -> bool:
        """Whether ``run`` takes an operation, by its name without a trailing ``_``; it takes all views."""

    @abstractmethod
    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """The result of one operation, called as ``func``."""

    @abstractmethod
    def refused(self, name: str) -> FormulaError:
        """The error for an operation that is neither known nor composed of known ones."""

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - PyTorch's protocol
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        packet, view = _described(func)
        name, named = packet.removesuffix("_"), kwargs or {}
        known = self.knows(name, args) and name == packet and "out" not in named
        if view or packet == "copy_" or known:
            return self.run(name, func, args, named)
        with self:
            if "out" in named:
                # Only what an operation returns has errors, so it fills nothing by itself.
                others = {key: value for key, value in named.items() if key != "out"}
                return named["out"].copy_(func.overloadpacket(*args, **others))
            if name != packet and hasattr(getattr(aten, name, None), func._overloadname):  # noqa: SLF001
                changed = getattr(getattr(aten, name), func._overloadname)(*args, **named)  # noqa: SLF001
                return args[0].copy_(changed)
            if func in decomposition_table:
                return decomposition_table[func](*args, **named)
            if func._can_decompose():  # noqa: SLF001
                return func.decompose(*args, **named)
            if name in _COMPOSED:
                return _COMPOSED[name](*args, **named)
        raise self.refused(name)


class Results(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the shapes of the results of all operations inside of it that are no views.

    Attributes:
        shapes: of tensors, in the order of the operations.
        products: of matrix products and convolutions, the numbers whose product is that of multiplications.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: list[tuple[int, ...]] = []
        self.products: list[tuple[int, ...]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return the answer of ``Operators`` to this question of PyTorch."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - PyTorch's protocol
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        if not func.is_view and isinstance(result, torch.Tensor):
            self.shapes.append(tuple(result.shape))
            if func.overloadpacket in _TERMS:
                self.products.append((*result.shape, *_TERMS[func.overloadpacket](args)))
        return result


_TERMS: Mapping[Any, Callable[[Sequence[Any]], Sequence[int]]] = {
    **dict.fromkeys((aten.mm, aten.bmm), lambda args: args[0].shape[-1:]),
    **dict.fromkeys((aten.addmm, aten.baddbmm), lambda args: args[1].shape[-1:]),
    aten.convolution: lambda args: args[1].shape[1:],
}
"""Of these operations, what an element of the result is a sum over."""


@cache
def _described(func: Any) -> tuple[str, bool]:  # noqa: ANN401
    """The name of an operation, and whether it is a view, as which ``to`` counts in PyTorch."""
    return func.overloadpacket.__name__, func.is_view and not func._can_decompose()  # noqa: SLF001


def _variance(x: torch.Tensor, axes: Sequence[int] | None, correction: float) -> torch.Tensor:
    dimensions = tuple(axes) if axes else tuple(range(x.dim()))
    centred = x - x.mean(dimensions, keepdim=True)
    count = prod(x.shape[axis] for axis in dimensions)
    return (centred * centred).sum(dimensions) / (count - correction)


_COMPOSED = {"var": _variance}
"""What PyTorch's decompositions end in, taken further apart."""
