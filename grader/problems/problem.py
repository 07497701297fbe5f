"""What a problem is: the one shape that every module of this package fills.

A problem module defines ``PROBLEM``. Adding a problem is adding a module here, its kernel to ``reference/``
and its stub to ``student_template/``; judge, scoring and reports read only what stands in this file.

Layer: imports numpy and the standard library, and nothing else of the grader (problem modules may use torch).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from grader.baseline.operations import Operation

MEMORY_GROUP = "memory and concurrency"
"""The case group that findings of the checkers decide; it holds no cases of its own."""


class Role(StrEnum):
    """What the entry point may do with an array."""

    INPUT = "in"
    OUTPUT = "out"
    INOUT = "inout"


@dataclass(frozen=True)
class ArrayParameter:
    """A pointer parameter.

    ``nullable`` inputs may be passed as a null pointer. No formula needs an ``optional`` one: a launcher may
    lack it.
    """

    name: str
    role: Role
    dtype: str = "float32"
    nullable: bool = False
    optional: bool = False


@dataclass(frozen=True)
class ScalarParameter:
    """A parameter passed by value: ``ctype`` is ``int``, ``bool`` or ``float``."""

    name: str
    ctype: str


@dataclass(frozen=True)
class StreamParameter:
    """A ``cudaStream_t``. Streams of different names may be equal."""

    name: str


Parameter = ArrayParameter | ScalarParameter | StreamParameter


@dataclass(frozen=True)
class Case:
    """One concrete input: ``name`` is unique in its problem, ``group`` a theme that a student understands."""

    name: str
    group: str
    sizes: Mapping[str, int]
    distribution: str
    seed: int
    same_stream: bool = False  # pass one stream for all stream parameters
    staged: bool = False  # inputs arrive through the given streams, outputs leave through them
    queued: Mapping[str, int] = field(default_factory=dict)  # sizes of a call behind a staged one: see Call
    function: str = ""  # what is called, where a problem has several functions
    orders: int | None = None  # of execution that it runs under, from program order on; None for all


@dataclass(frozen=True)
class Inputs:
    """What the entry point is called with, before it runs.

    ``arrays`` holds every INPUT and INOUT array (None for a null pointer); ``outputs`` the shape of every
    OUTPUT.
    """

    arrays: Mapping[str, NDArray[np.generic] | None]
    outputs: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, int | bool | float]

    def wide(self, name: str) -> NDArray[np.float64]:
        """The content of an array as float64.

        Raises:
            ValueError: it is a null pointer.
        """
        array = self.arrays[name]
        if array is None:
            raise ValueError(f"{name} is a null pointer")
        return array.astype("float64")


@dataclass(frozen=True)
class Candidate:
    """One acceptable content of an output: ``expected`` and ``allowed`` are float64 of the output's shape.

    An expected NaN is matched by NaN alone; ``allowed`` is the largest absolute error of each element.
    """

    expected: NDArray[np.float64]
    allowed: NDArray[np.float64]


@dataclass(frozen=True)
class Expectation:
    """What is right for one output: each row (last axis) must match one of the candidates as a whole.

    ``finite_only`` marks rows (shape of the output without its last axis) of which only finiteness is asked.
    """

    candidates: tuple[Candidate, ...]
    finite_only: NDArray[np.bool_] | None = None


Bug = Callable[[Inputs], "Mapping[str, NDArray[np.float64]]"]
"""What a known wrong formula would compute: the outputs that it gets wrong, by name."""


@dataclass(frozen=True)
class Slices:
    """A way in which outputs fall apart: each of their slices needs some of the inputs only.

    Attributes:
        outputs: their names; slice i of one is ``output.reshape(count, -1)[i]``.
        count: how many slices a case has.
        take: the inputs of these slices alone, by index and in that order, as inputs of the same problem.
    """

    outputs: tuple[str, ...]
    count: Callable[[Case], int]
    take: Callable[[Inputs, NDArray[np.intp]], Inputs]


Fused = Callable[[Mapping[str, Any], Mapping[str, int | bool | float]], Callable[[], object]]
"""From PyTorch tensors by name and the scalars to a call of PyTorch's own operator on them."""


def _nothing(_: Case) -> tuple[Operation, ...]:
    return ()


def _no_terms(_: Inputs) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _needs_nothing(_: Case) -> tuple[tuple[Problem, Case, int], ...]:
    return ()


@dataclass(frozen=True)
class Problem:
    """One thing to implement.

    Attributes:
        id: stable name, also the module's name.
        title: what a student calls it.
        file: the source file of a submission that holds the entry point.
        entry_point: the ``extern "C"`` function.
        parameters: its parameters in order.
        groups: names of the case groups in the order of reports, without ``MEMORY_GROUP``.
        cases: the correctness cases drawn from a seed.
        timing_cases: the cases that performance is measured on, drawn from a seed.
        inputs: the inputs of a case; the same case gives the same inputs.
        oracle: what is right for those inputs, per output (OUTPUT and INOUT parameters).
        minimal_bytes: bytes that any implementation must move through device memory for a case.
        unfused: the baseline as a program of generic operations over the named arrays.
        kernels: the handout's kernel names.
        bugs: typical wrong formulas; the key says in a student's words what is wrong, the diagnosis shows it.
        terms: of outputs that are sums over the rows of the inputs, by name: [rows, *shape of the output].
        slices: ways to judge parts of the outputs alone; each output belongs to one of them, or to none.
        turning: arrays that may be rotated along their first axis, all by the same number of places: outputs
            among them rotate likewise, the others stay as they are.
        fused: PyTorch's own way to the outputs, timed for information.
        libraries: where ``file`` is a PyTorch file, the sources of the kernels that it calls. Such a problem
            has no ``parameters``; its cases name their arrays and scalars as they like.
        needs: which entry points of other problems a case must call, each with a case that has the sizes of
            those calls, and how often at least.
    """

    id: str
    title: str
    file: str
    entry_point: str
    parameters: tuple[Parameter, ...]
    groups: tuple[str, ...]
    cases: Callable[[int], tuple[Case, ...]]
    timing_cases: Callable[[int], tuple[Case, ...]]
    inputs: Callable[[Case], Inputs]
    oracle: Callable[[Case, Inputs], Mapping[str, Expectation]]
    minimal_bytes: Callable[[Case], int]
    unfused: Callable[[Case], tuple[Operation, ...]] = _nothing
    kernels: tuple[str, ...] = ()
    bugs: Mapping[str, Bug] = field(default_factory=dict)
    terms: Bug = _no_terms
    slices: tuple[Slices, ...] = ()
    turning: tuple[str, ...] = ()
    fused: Fused | None = None
    libraries: tuple[str, ...] = ()
    needs: Callable[[Case], tuple[tuple[Problem, Case, int], ...]] = _needs_nothing

    @property
    def files(self) -> tuple[str, ...]:
        """Every file of a submission that the problem is graded from."""
        return (self.file, *self.libraries)

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that are compiled."""
        return self.libraries or (self.file,)
