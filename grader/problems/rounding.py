"""Error bounds of float32 programs by Monte Carlo arithmetic, where no formula gives them.

The bounds of single kernels are derived by hand (``bounds``). For a model with dozens of operations,
forward and backward, the same first-order argument is carried out by the machine (Monte Carlo arithmetic,
Parker 1997): the program runs in float64, and every result of an operation is off by a random error as
large as float32 arithmetic makes it. What comes out differs from the exact run by a sum of many small
independent contributions, each carried through the rest of the program; ``spread`` is its root mean square.
With u = 2^-24, one operation is off by

    c u |result|                        c = 2 for + - * and the root, ``bounds.QUOTIENT`` for /, 8 for others
    bounds.exp_error(x) |result|        for exp, as the fast exponential
    u sqrt(n) max(|sum|, |terms|_2)     for a sum or a dot product of n terms, in whatever order

A right program stays within ``bounds.LUCK`` times the spread of its row, and ``bounds.allowed`` doubles that.

Layer: imports numpy, torch and the bounds.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grader.problems import bounds
from grader.problems.problem import Candidate, Expectation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

SAMPLES = 6
UNIT = bounds.PRECISIONS["float32"].unit
_RELATIVE = {
    "add": 2.0,
    "sub": 2.0,
    "rsub": 2.0,
    "mul": 2.0,
    "sqrt": 2.0,
    "div": bounds.QUOTIENT,
    "erf": 8.0,
    "log": 8.0,
}


class Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds to each float64 result, forward and backward, the error that float32 may make there."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._random = torch.Generator().manual_seed(seed % 2**63)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - PyTorch's protocol
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        size = _size(func.overloadpacket.__name__, args, result)
        if size is None:
            return result
        noise = torch.empty_like(result).uniform_(-math.sqrt(3), math.sqrt(3), generator=self._random)
        return torch.where(torch.isfinite(result), result + noise * size, result)


def _size(name: str, args: Sequence[Any], result: Any) -> Tensor | None:  # noqa: ANN401
    """The root mean square of the error of one operation; None for those that are exact."""
    if not isinstance(result, torch.Tensor) or result.dtype is not torch.float64:
        return None
    first: Tensor = args[0]
    if name in _RELATIVE:
        return _RELATIVE[name] * UNIT * result.abs()
    if name == "exp":
        return UNIT * (4.0 + 3.346 * first.abs().nan_to_num(posinf=0.0)) * result.abs()
    if name in {"sum", "mean"}:
        terms = first.numel() // max(1, result.numel())
        axes: Any = args[1:]
        squares = (first * first).sum(*axes)
        length = torch.sqrt(squares) / (terms if name == "mean" else 1)
        return UNIT * math.sqrt(terms) * torch.maximum(result.abs(), length)
    if name in {"mm", "bmm"}:
        length = torch.sqrt(torch.matmul(first * first, args[1] * args[1]))
        return UNIT * math.sqrt(first.shape[-1]) * torch.maximum(result.abs(), length)
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit PyTorch to one thread: in thousands of small operations more threads only wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def expectations(
    program: Callable[[], Mapping[str, Tensor]], seed: int, samples: int = SAMPLES
) -> dict[str, Expectation]:
    """What ``program`` computes in float64, and how far a right float32 program may be from it, by row."""
    exact = program()
    squares = {name: torch.zeros_like(value) for name, value in exact.items()}
    for sample in range(samples):
        with Rounding(seed + sample):
            rough = program()
        for name, value in rough.items():
            squares[name] += (value - exact[name]) ** 2
    return {
        name: Expectation((_candidate(value.numpy(), squares[name].numpy() / samples),))
        for name, value in exact.items()
    }


def _candidate(
    expected: np.ndarray[Any, np.dtype[np.float64]], square: np.ndarray[Any, np.dtype[np.float64]]
) -> Candidate:
    spread = np.broadcast_to(np.sqrt(square.mean(axis=-1, keepdims=True)), expected.shape)
    return Candidate(expected, bounds.allowed(bounds.LUCK * spread, expected, bounds.PRECISIONS["float32"]))
