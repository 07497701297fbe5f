"""What is wrong with a formula or its inputs, in a teacher's words instead of PyTorch's."""

from __future__ import annotations

import inspect
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_REMEDIES = {
    r"bincount|nonzero|unique|masked_select|register_meta|Meta tensors|meta kernel": (
        "the shape of an output depends on the inputs' numbers. Write it with operations whose results have "
        "shapes that follow from the sizes, such as torch.zeros(k).index_add(0, x, torch.ones(n)) for "
        "bincount, and torch.where for nonzero and for a mask as an index"
    ),
    r"\.item\(\) cannot be called|Boolean value of Tensor|_local_scalar_dense": (
        "it asks for one number of an array (.item(), float(x), if x > 0), which is not known when cases are "
        "made. Write torch.where(x > 0, a, b) for an if, and keep numbers in arrays, x[:1] for x[0].item()"
    ),
    r"predicate to be bool|byte or bool tensors|mask tensor": (
        "a condition or a mask is no bool tensor. Write mask.bool(), or mask != 0; and "
        "torch.where(mask.bool(), x, 0) for x[mask]"
    ),
    r"not in range for dimension|out of range|out of bounds|exceeds dimension": (
        "an index or a count is larger than the axis. Let the smallest size of its Range be large enough, or "
        'the largest count small enough; or say that one size is at most another: Range(1, 64, at_most="n")'
    ),
    r"broadcast|must match the size|size mismatch|shapes cannot be multiplied": (
        "arrays do not fit together. Compare their shapes in inputs, or add axes, as in x[:, None]"
    ),
}
"""What to write instead, by the words of an error."""


class FormulaError(Exception):
    """A formula that nothing can be derived from; the message says why, and what to do."""


@contextmanager
def explained(part: str, sizes: Mapping[str, int]) -> Iterator[None]:
    """A context in which whatever a teacher's function raises becomes a FormulaError of one line.

    Args:
        part: of the problem, as in ``problem(formula=...)``.
        sizes: that it is called with.

    Raises:
        FormulaError: the function raised something.
    """
    try:
        yield
    except FormulaError:
        raise
    except Exception as error:  # a teacher's code may raise anything
        where = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        text = str(error).partition("\n")[0].rstrip(".")
        remedy = next((words for pattern, words in _REMEDIES.items() if re.search(pattern, str(error))), "")
        summary = remedy or f"{type(error).__name__}: {text}"
        raise FormulaError(f"{part} fails{f' with {where}' if where else ''}: {summary}") from error


def check_named(part: str, function: Callable[..., object]) -> None:
    """Refuse a function that does not say what its arguments are called, as those of PyTorch do not.

    Args:
        part: of the problem, as in ``problem(formula=...)``.
        function: that is called with arguments by name.

    Raises:
        FormulaError: it does not.
    """
    try:
        inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise FormulaError(
            f"{part} has no names of arguments that can be seen: write a function of them around it, as in "
            "lambda x, w: torch.conv2d(x, w)"
        ) from error


def check_positions(part: str, function: Callable[..., object], *names: str) -> None:
    """Refuse a function that cannot be called with arguments of these names, in this order.

    Args:
        part: of the problem, as in ``problem(check=...)``.
        function: to be called.
        names: of the arguments.

    Raises:
        FormulaError: it takes others.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise FormulaError(f"{part} is no function: write def {part}({', '.join(names)})") from error
    try:
        signature.bind(*names)
    except TypeError as error:
        asked = ", ".join(names)
        message = f"{part} is def {part}{signature}: it gets {asked}, so write def {part}({asked})"
        raise FormulaError(message) from error
