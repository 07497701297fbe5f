"""Which parts of a formula's outputs need a part of its inputs only, found by trying it on small arrays.

Timed calls are verified by such parts: rows of which each has its own result, or needs only those near it,
and arrays that may be rotated. A size is a dimension of an array if the array's shape changes with it.

Layer: imports numpy and the problem's shape.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.problem import Inputs, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.problem import Case

    Arrays = Mapping[str, NDArray[np.generic]]
    Evaluate = Callable[[Inputs], Arrays]
    Sizes = Mapping[str, int]
    Shapes = Callable[[Sizes], Mapping[str, tuple[int, ...]]]
    Long = Callable[[str, Sizes], Inputs]

CLOSE = 1e-9
MOST_HALO = 16
PLACES = 3 * MOST_HALO  # in an example that shows how many places beside its own a result needs


def dimensions(shapes: Shapes, sizes: Sizes, name: str, step: int) -> dict[str, list[int]]:
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


def slices(
    inputs: Inputs,
    axes: Mapping[str, Mapping[str, int]],
    evaluate: Evaluate,
    fewest: Mapping[str, int],
    long: Long,
) -> tuple[Slices, ...]:
    """The sizes along whose places outputs fall apart, each with these outputs; then the other outputs.

    Args:
        inputs: a small example.
        axes: by size: its dimension in each array.
        evaluate: the outputs of inputs.
        fewest: the sizes whose places may need those near them, each with the fewest places that it may have.
        long: from one of these and the sizes of a case to an example with ``PLACES`` places of it.
    """
    outputs, parts = evaluate(inputs), []
    pending = set(outputs)
    for size, dimensions_of in axes.items():
        count = int(inputs.scalars[size])
        along = {name for name in pending if dimensions_of.get(name) == 0 and outputs[name].shape[0] == count}
        apart, random = along, np.random.default_rng(count)
        for chosen in (count, count, 2, 1):
            index = random.integers(count, size=chosen)
            if apart:
                alone = evaluate(part(inputs, dimensions_of, size, index))
                apart = {name for name in apart if _same(alone[name], outputs[name][index])}
        if apart:
            pending -= apart
            parts.append(_slices(tuple(name for name in outputs if name in apart), size, dimensions_of))
        near = tuple(name for name in outputs if name in along - apart)
        if near and size in fewest:
            halos = _halos(size, dimensions_of, near, evaluate, fewest[size], long)
            if halos({}) is not None:
                pending -= {*near}
                parts.append(replace(_slices(near, size, dimensions_of), halo=_of_cases(size, halos)))
    if parts and pending:  # the others need all inputs
        rest = tuple(name for name in outputs if name in pending)
        parts.append(Slices(rest, lambda _: 1, lambda inputs, _: inputs))
    return tuple(parts)


def _slices(outputs: tuple[str, ...], size: str, axes: Mapping[str, int]) -> Slices:
    return Slices(
        outputs, lambda case: case.sizes[size], lambda inputs, index: part(inputs, axes, size, index)
    )


def halo(
    inputs: Inputs,
    axes: Mapping[str, int],
    size: str,
    outputs: Sequence[str],
    evaluate: Evaluate,
    fewest: int,
) -> int | None:
    """How many places of ``size`` on each side of its own a result needs; None if more than ``MOST_HALO``."""
    expected, count = evaluate(inputs), int(inputs.scalars[size])

    def enough(position: int, reach: int) -> bool:
        begin, end = max(0, position - reach), min(count, position + reach + 1)
        alone = evaluate(part(inputs, axes, size, np.arange(begin, end)))
        return all(_same(alone[name][position - begin], expected[name][position]) for name in outputs)

    reach = fewest - 1
    if reach > MOST_HALO or count < PLACES or not enough(count // 2, MOST_HALO):
        return None
    for position in (0, *range(MOST_HALO, count - MOST_HALO, 4), count - 1):
        while not enough(position, reach):
            reach += 1
            if reach > MOST_HALO:
                return None
    return reach


def _halos(
    size: str, axes: Mapping[str, int], outputs: Sequence[str], evaluate: Evaluate, fewest: int, long: Long
) -> Callable[[Sizes], int | None]:
    """The halo for the sizes of a case, each looked for once."""

    @cache
    def halo_of(sizes: frozenset[tuple[str, int]]) -> int | None:
        return halo(long(size, dict(sizes)), axes, size, outputs, evaluate, fewest)

    return lambda sizes: halo_of(frozenset(sizes.items()))


def _of_cases(size: str, halos: Callable[[Sizes], int | None]) -> Callable[[Case], int]:
    """The halo of a case; all places where it is not known."""

    def of_case(case: Case) -> int:
        width = halos(case.sizes)
        return case.sizes[size] if width is None else width

    return of_case


def turning(inputs: Inputs, axes: Mapping[str, Mapping[str, int]], evaluate: Evaluate) -> tuple[str, ...]:
    """The arrays that may be rotated together along their first dimension, if there are any."""
    outputs = evaluate(inputs)
    for axes_of_size in axes.values():
        names = [name for name, axis in axes_of_size.items() if axis == 0]
        rotated = {
            name: np.roll(array, 1, 0) if name in names and array is not None else array
            for name, array in inputs.arrays.items()
        }
        results = evaluate(replace(inputs, arrays=rotated))
        if all(
            _same(results[name], np.roll(output, 1, 0) if name in names else output)
            for name, output in outputs.items()
        ):
            return tuple(names)
    return ()


def _same(first: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    if first.shape != other.shape:
        return False
    a, right = first.astype(np.float64), other.astype(np.float64)
    room = CLOSE * np.max(np.abs(right), initial=0.0, where=np.isfinite(right))
    return bool(np.allclose(a, right, rtol=0, atol=room, equal_nan=True))


def axes(
    shapes: Shapes, sizes: Sizes, steps: Mapping[str, int], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    """By size: its dimension in each array, for the sizes that are at most one dimension of every array.

    A dimension that is longer than the size, as that of n + 1 places between n segments, has no part for each
    place of the size.
    """
    axes_of, before = {}, shapes(sizes)
    for name in names:
        grown = dimensions(shapes, sizes, name, steps[name])
        lengths = {before[array][axis] for array, axes in grown.items() for axis in axes}
        if lengths == {sizes[name]} and all(len(positions) == 1 for positions in grown.values()):
            axes_of[name] = {array: positions[0] for array, positions in grown.items()}
    return axes_of
