"""Inputs and expectations that the processes of a batch make once for all of them, in files of one folder.

A file holds some facts as JSON, and arrays behind them, which whoever opens it maps into its memory: they
take memory of the machine once, and no memory of a process. The kernel writes them to the disk and reads them
again as it likes. A file appears at once as a whole, and is never changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import mmap
import os
import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.problems.problem import Candidate, Expectation, Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.generic]
    Facts = dict[str, Any]

MACHINE_SHARE = 8  # this part of the machine's memory is the most that the files of a folder have
LEAST_SECONDS = 1e-3  # what took less to make is not kept, because a file costs a part of that
ALIGNED = 64  # bytes, as NumPy and PyTorch like them best
_LENGTH = 8  # bytes that say how long the facts are


class SharedArrays:
    """The files of ``folder``, of at most ``most_bytes`` in all; see ``MACHINE_SHARE``."""

    def __init__(self, folder: Path, most_bytes: int | None = None) -> None:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._most_bytes = memory // MACHINE_SHARE if most_bytes is None else most_bytes
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)

    def inputs(self, key: Sequence[object], draw: Callable[[], Inputs]) -> tuple[Inputs, bool]:
        """The inputs called ``key``, by ``draw`` if nobody has drawn them, and whether they are in a file."""
        with self._making(key) as file:
            if (stored := _read(file)) is None:
                began = time.perf_counter()
                drawn = draw()
                facts, arrays = _of_inputs(drawn)
                if facts is None or not self._keep(began, file, facts, arrays):
                    return drawn, False
                stored = _read(file)
            assert stored is not None
            return _inputs(*stored), True

    def expectations(
        self, key: Sequence[object], work_out: Callable[[], Mapping[str, Expectation]]
    ) -> tuple[Mapping[str, Expectation], bool]:
        """What is right for what ``key`` names, worked out if nobody has, and whether it is in a file.

        Further candidates are not kept: whoever needs them works everything out again.
        """
        with self._making(key) as file:
            if (stored := _read(file)) is None:
                began = time.perf_counter()
                right = work_out()
                if not self._keep(began, file, *_of_expectations(right)):
                    return right, False
                stored = _read(file)
            assert stored is not None
            return _expectations(*stored, work_out), True

    @contextmanager
    def _making(self, key: Sequence[object]) -> Iterator[Path]:
        """The file of ``key``, which nobody else makes meanwhile."""
        file = self._folder / hashlib.sha256(repr(tuple(key)).encode()).hexdigest()
        if file.exists():
            yield file
            return
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield file

    def _keep(self, began: float, file: Path, facts: Facts, arrays: Sequence[Array]) -> bool:
        """Whether the file is there now: it is worth it, there is room, and arrays are stored row by row.

        ``began`` is when the arrays began to be made.
        """
        if time.perf_counter() - began < LEAST_SECONDS or not all(map(_by_rows, arrays)):
            return False
        described = [(array.dtype.name, array.shape) for array in arrays]
        header = json.dumps({**facts, "stored": described}).encode()
        starts, end = _starts(_LENGTH + len(header), [array.nbytes for array in arrays])
        if not self._takes(end):
            return False
        unfinished = file.with_suffix(f".{os.getpid()}-{threading.get_native_id()}")
        try:
            with unfinished.open("wb") as stream:
                stream.write(len(header).to_bytes(_LENGTH, "little") + header)
                for start, array in zip(starts, arrays, strict=True):
                    stream.seek(start)
                    stream.write(array.reshape(-1).view(np.uint8).data)
                stream.truncate(end)
        except OSError:  # the disk is full
            unfinished.unlink(missing_ok=True)
            return False
        unfinished.replace(file)
        return True

    def _takes(self, size: int) -> bool:
        """Whether there is room for ``size`` bytes, which are taken then."""
        descriptor = os.open(self._folder / "taken", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            taken = int(os.pread(descriptor, 32, 0) or b"0") + size
            if taken > self._most_bytes:
                return False
            os.pwrite(descriptor, b"%d" % taken, 0)
        finally:
            os.close(descriptor)
        return True


def _by_rows(array: Array) -> bool:
    return array.flags.c_contiguous


def _starts(first: int, sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where arrays of these sizes lie in a file, from ``first`` on, and where it ends."""
    starts, end = [], first
    for size in sizes:
        starts.append(-(-end // ALIGNED) * ALIGNED)
        end = starts[-1] + size
    return starts, end


def _read(file: Path) -> tuple[Facts, list[Array]] | None:
    """Facts and arrays of a file, which stay mapped as long as anybody has one of them; None without it."""
    try:
        with file.open("rb") as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        return None
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    facts = json.loads(content[_LENGTH:end])
    described = [(np.dtype(dtype), tuple(shape)) for dtype, shape in facts.pop("stored")]
    counts = [math.prod(shape) for _, shape in described]
    starts, _ = _starts(
        end, [count * dtype.itemsize for (dtype, _), count in zip(described, counts, strict=True)]
    )
    arrays: list[Array] = [
        np.frombuffer(content, dtype, count, start).reshape(shape) if count else np.empty(shape, dtype)
        for (dtype, shape), count, start in zip(described, counts, starts, strict=True)
    ]
    return facts, arrays


def _of_inputs(inputs: Inputs) -> tuple[Facts | None, list[Array]]:
    """Facts and arrays to store; no facts where a scalar is none that JSON gives back as it was."""
    arrays = {name: array for name, array in inputs.arrays.items() if array is not None}
    facts = {
        "names": list(inputs.arrays),
        "null": [name for name, array in inputs.arrays.items() if array is None],
        "outputs": dict(inputs.outputs),
        "scalars": dict(inputs.scalars),
    }
    plain = all(
        type(number) in {bool, int, float}
        for scalar in inputs.scalars.values()
        for number in (scalar if isinstance(scalar, tuple) else (scalar,))
    )
    return facts if plain else None, list(arrays.values())


def _inputs(facts: Facts, arrays: Sequence[Array]) -> Inputs:
    coming = iter(arrays)
    return Inputs(
        arrays={name: None if name in facts["null"] else next(coming) for name in facts["names"]},
        outputs={name: tuple(shape) for name, shape in facts["outputs"].items()},
        scalars={
            name: tuple(scalar) if isinstance(scalar, list) else scalar
            for name, scalar in facts["scalars"].items()
        },
    )


def _of_expectations(right: Mapping[str, Expectation]) -> tuple[Facts, list[Array]]:
    facts: Facts = {"outputs": []}
    arrays: list[Array] = []
    for name, expectation in right.items():
        loose = expectation.finite_only
        facts["outputs"].append((name, len(expectation.candidates), loose is not None))
        for candidate in expectation.candidates:
            arrays += [candidate.expected, candidate.allowed]
        arrays += [] if loose is None else [loose]
    return facts, arrays


def _expectations(
    facts: Facts, arrays: Sequence[Array], work_out: Callable[[], Mapping[str, Expectation]]
) -> Mapping[str, Expectation]:
    coming: Iterator[Any] = iter(arrays)

    def expectation(name: str, candidates: int, loose: bool) -> Expectation:
        return Expectation(
            tuple(Candidate(next(coming), next(coming)) for _ in range(candidates)),
            next(coming) if loose else None,
            partial(_further, work_out, name),
        )

    return {name: expectation(name, candidates, loose) for name, candidates, loose in facts["outputs"]}


def _further(work_out: Callable[[], Mapping[str, Expectation]], name: str) -> tuple[Candidate, ...]:
    return work_out()[name].further()
