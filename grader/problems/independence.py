"""Which parts of a formula's outputs need a part of its inputs only, found by trying it on small arrays.

Timed calls are verified by such parts: rows of which each has its own result, and arrays that may be rotated.
A size is a dimension of an array if the array's shape changes with it.

Layer: imports numpy and the problem's shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.problem import Inputs, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]
    Evaluate = Callable[[Inputs], Arrays]
    Shapes = Callable[[Mapping[str, int]], Mapping[str, tuple[int, ...]]]

CLOSE = 1e-9


def dimensions(shapes: Shapes, sizes: Mapping[str, int], name: str, step: int) -> dict[str, list[int]]:
    """The dimensions of each array that grow with the size ``name``, of those that have any."""
    before, after = shapes(sizes), shapes({**sizes, name: sizes[name] + step})
    grown = {
        array: [axis for axis, length in enumerate(shape) if after[array][axis] != length]
        for array, shape in before.items()
    }
    return {array: axes for array, axes in grown.items() if axes}


def part(inputs: Inputs, axes: Mapping[str, int], size: str, index: NDArray[np.intp]) -> Inputs:
    """Some places of the size ``size`` alone; ``axes`` has its dimension in each array."""

    def taken(name: str, array: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.take(array, index, axis=axes[name]) if name in axes else array

    def length(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        axis = axes.get(name)
        return shape if axis is None else (*shape[:axis], index.size, *shape[axis + 1 :])

    return Inputs(
        {name: None if array is None else taken(name, array) for name, array in inputs.arrays.items()},
        {name: length(name, shape) for name, shape in inputs.outputs.items()},
        {**inputs.scalars, size: index.size},
    )


def slices(inputs: Inputs, axes: Mapping[str, Mapping[str, int]], evaluate: Evaluate) -> tuple[Slices, ...]:
    """The sizes along whose places outputs fall apart, each with these outputs; then the other outputs.

    Args:
        inputs: a small example.
        axes: by size: its dimension in each array.
        evaluate: the outputs of inputs.
    """
    whole, found, left = evaluate(inputs), [], set(evaluate(inputs))
    for size, own in axes.items():
        count = inputs.scalars[size]
        apart = {name for name in left if own.get(name) == 0 and whole[name].shape[0] == count}
        random = np.random.default_rng(int(count))
        for chosen in (int(count), int(count), 2, 1):
            index = random.integers(int(count), size=chosen)
            if apart:
                alone = evaluate(part(inputs, own, size, index))
                apart = {name for name in apart if _same(alone[name], whole[name][index])}
        if apart:
            left -= apart
            found.append(_slices(tuple(name for name in whole if name in apart), size, own))
    if found and left:  # the others need all inputs
        rest = tuple(name for name in whole if name in left)
        found.append(Slices(rest, lambda _: 1, lambda inputs, _: inputs))
    return tuple(found)


def _slices(outputs: tuple[str, ...], size: str, axes: Mapping[str, int]) -> Slices:
    return Slices(
        outputs, lambda case: case.sizes[size], lambda inputs, index: part(inputs, axes, size, index)
    )


def turning(inputs: Inputs, axes: Mapping[str, Mapping[str, int]], evaluate: Evaluate) -> tuple[str, ...]:
    """The arrays that may be rotated together along their first dimension, if there are any."""
    whole = evaluate(inputs)
    for own in axes.values():
        names = [name for name, axis in own.items() if axis == 0]
        rotated = {
            name: np.roll(array, 1, 0) if name in names and array is not None else array
            for name, array in inputs.arrays.items()
        }
        made = evaluate(replace(inputs, arrays=rotated))
        if all(
            _same(made[name], np.roll(one, 1, 0) if name in names else one) for name, one in whole.items()
        ):
            return tuple(names)
    return ()


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    if one.shape != other.shape:
        return False
    left, right = one.astype(np.float64), other.astype(np.float64)
    room = CLOSE * np.max(np.abs(right), initial=0.0, where=np.isfinite(right))
    return bool(np.allclose(left, right, rtol=0, atol=room, equal_nan=True))


def axes(
    shapes: Shapes, sizes: Mapping[str, int], steps: Mapping[str, int], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    """By size: its dimension in each array, for the sizes that are at most one dimension of every array.

    A dimension that is longer than the size, as that of n + 1 places between n segments, has no part for each
    place of the size.
    """
    found, before = {}, shapes(sizes)
    for name in names:
        grown = dimensions(shapes, sizes, name, steps[name])
        lengths = {before[array][axis] for array, axes in grown.items() for axis in axes}
        if lengths == {sizes[name]} and all(len(one) == 1 for one in grown.values()):
            found[name] = {array: one[0] for array, one in grown.items()}
    return found
