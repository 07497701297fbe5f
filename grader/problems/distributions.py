"""Where the numbers of a case come from: seeds, value distributions and masks.

Everything is float32 and follows from the case's seed alone, however many threads draw it.

Layer: imports numpy and the problem's shape.
"""

from __future__ import annotations

import math
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.problem import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from numpy.typing import DTypeLike, NDArray

    Floats = NDArray[np.float32]
    Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[Any]]

STREAMS = "streams"
"""The case group whose arrays travel through the streams of the call."""

IN_ONE_ORDER = 1 << 21
"""From so many elements on a case is about places in arrays, which no order of execution changes."""

BLOCK = 1 << 20
"""Numbers of a large array that come from one generator."""


def build_cases(
    seed: int, table: Iterable[tuple[str, Mapping[str, int], str]], *, both_streams: str | None = None
) -> tuple[Case, ...]:
    """Cases from rows of (group, sizes, distribution), each with a seed of its own drawn from ``seed``.

    The cases of the group ``both_streams`` are made twice: with streams of their own and with one stream for
    all.
    """
    cases = []
    for group, sizes, distribution in table:
        shape = " x ".join(str(value) for name, value in sizes.items() if not name.startswith("mask_"))
        flags = "".join(f", {name}" for name, value in sizes.items() if name.startswith("mask_") and value)
        for same_stream in (False, True) if group == both_streams else (False,):
            name = f"{shape}, {distribution}{flags}" + (", one stream" if same_stream else "")
            content = int(
                np.random.SeedSequence((seed, zlib.crc32(name.encode()))).generate_state(1, np.uint64)[0]
            )
            elements = math.prod(size for name, size in sizes.items() if not name.startswith("mask_"))
            orders = 1 if elements >= IN_ONE_ORDER else None
            cases.append(Case(name, group, sizes, distribution, content, same_stream, orders=orders))
    return tuple(
        replace(case, staged=True, queued=_smaller(case.sizes)) if case.group == STREAMS else case
        for case in cases
    )


def build_case(group: str, sizes: Mapping[str, int], distribution: str, seed: int) -> Case:
    """One case, with a seed of its own drawn from ``seed``."""
    (case,) = build_cases(seed, [(group, sizes, distribution)])
    return case


def _smaller(sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Return sizes of about half, which fit into the same arrays; a multiple of four stays one."""
    return {
        name: max(4, size // 8 * 4) if size % 4 == 0 else (size + 1) // 2
        for name, size in sizes.items()
        if not name.startswith("mask_")
    }


def generator(seed: int) -> np.random.Generator:
    """The source of all random numbers of one case, or of the drawn sizes of a run."""
    return np.random.default_rng(seed)


def side_by_side(
    random: np.random.Generator, shape: tuple[int, ...], dtype: DTypeLike, draw: Draw
) -> NDArray[Any]:
    """Independent numbers by ``draw``, of a large array in threads: each ``BLOCK`` has its own generator."""
    size = math.prod(shape)
    if size <= BLOCK:
        return draw(random, shape).astype(dtype, copy=False)
    numbers = np.empty(size, dtype)
    starts = range(0, size, BLOCK)

    def fill(start: int, stream: np.random.Generator) -> None:
        part = numbers[start : start + BLOCK]
        part[:] = draw(stream, part.shape)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, starts, random.spawn(len(starts))))
    return numbers.reshape(shape)


def standard_normal(
    random: np.random.Generator, shape: tuple[int, ...], dtype: type[np.float32 | np.float64]
) -> NDArray[Any]:
    """Normal numbers with mean 0 and deviation 1."""
    return side_by_side(random, shape, dtype, lambda stream, size: stream.standard_normal(size, dtype=dtype))


def normal(
    random: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0, mean: float = 0.0
) -> Floats:
    """Draw float32 numbers with mean 0 and deviation 1."""
    values: Floats = standard_normal(random, shape, np.float32)
    values *= np.float32(scale)
    values += np.float32(mean)
    return values


def with_one_huge(random: np.random.Generator, values: Floats, huge: float) -> Floats:
    """``values`` with one element of every row (last axis) replaced by ``huge``, at a random column."""
    columns = random.integers(values.shape[-1], size=(*values.shape[:-1], 1))
    np.put_along_axis(values, columns, np.float32(huge), axis=-1)
    return values


def padding(random: np.random.Generator, batches: int, keys: int, hidden: float) -> Floats:
    """A mask [batches, keys] that hides the tail of every sequence: each keeps its own number of keys.

    The first key of each batch stays visible, so that no query loses all its keys, also under the future
    mask.
    """
    visible = random.integers(1, keys + 1, size=batches)
    visible[0] = max(1, keys // 2)  # one of them always hides something, where there is something to hide
    mask = np.where(np.arange(keys) < visible[:, None], np.float32(0), np.float32(hidden))
    return mask.astype(np.float32)
