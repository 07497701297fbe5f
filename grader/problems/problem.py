"""What a problem is: a kernel problem asks for launchers on arrays, a model problem for a PyTorch file.

A module in the folder ``problems`` of an assignment defines ``PROBLEM``, which is one of the two, or a
program problem (``program.py``). Judge, scoring and reports read only what stands in these files.

Layer: imports the element types, numpy and the standard library (problem modules may use torch).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.problems.dtypes import DTYPES
from grader.problems.explained import check_positions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from grader.problems.checking import Wrong
    from grader.problems.operations import Operation
    from grader.problems.structs import Field, Struct

MEMORY_GROUP = "memory and concurrency"
"""The case group that findings of the checkers decide; it holds no cases of its own."""
STRUCT = "struct"
"""Stands for the type of a scalar that is a struct, passed by value."""
ANY_TYPE = "T"
"""The element type of arrays of which each case says the type; see ``several_types``."""


class Role(StrEnum):
    """The use of an array by the entry point: read, written, or both."""

    INPUT = "in"
    OUTPUT = "out"
    INOUT = "inout"


@dataclass(frozen=True)
class ArrayParameter:
    """A pointer parameter. Where the inputs hold no array for it, it is a null pointer.

    Attributes:
        name: of the parameter.
        role: what the launcher may do with it.
        dtype: of the elements; ``grader.problems.dtypes`` has the names. Or ``ANY_TYPE``.
        vector: CUDA's vector that the launcher takes them in, such as ``float4``, of which each is the last
            axis; "" for single elements.
        optional: whether a launcher may lack it, as no formula needs it.
        other_names: further names that launchers give it.
        free: whether the launcher may leave anything in it: it is a workspace, or an input that is used up.
    """

    name: str
    role: Role
    dtype: str = "float32"
    optional: bool = False
    other_names: tuple[str, ...] = ()
    vector: str = ""
    free: bool = False

    @property
    def spelling(self) -> str:
        """What C++ calls the elements that it points to."""
        return self.vector or DTYPES[self.dtype].spellings[0]


@dataclass(frozen=True)
class ScalarParameter:
    """A parameter passed by value: ``ctype`` is ``int``, ``long``, ``bool``, ``float`` or ``double``.

    Or ``longs``: a pointer to 64-bit integers that the host reads, such as the sizes of a tensor. Or
    ``ANY_TYPE``: a number in the type that arithmetic on the case's element type is done in.
    """

    name: str
    ctype: str


@dataclass(frozen=True)
class StreamParameter:
    """A ``cudaStream_t``. Streams of different names may be equal."""

    name: str


@dataclass(frozen=True)
class StructParameter:
    """A pointer to structs, or a struct that is passed by value.

    Inputs and outputs hold its fields by their names behind its own, such as ``bodies.mass``.

    Attributes:
        name: of the parameter.
        struct: what it points to, or is.
        role: what the launcher may do with an array; None of a struct that is passed by value.
    """

    name: str
    struct: Struct
    role: Role | None

    @property
    def fields(self) -> Mapping[str, Field]:
        """The fields by the names that inputs and outputs have for them, in order."""
        return {f"{self.name}.{field.name}": field for field in self.struct.fields}

    @property
    def arrays(self) -> tuple[ArrayParameter, ...]:
        """The fields of an array of structs, as arrays of their own."""
        if self.role is None:
            return ()
        return tuple(ArrayParameter(name, self.role, field.dtype) for name, field in self.fields.items())

    @property
    def scalars(self) -> tuple[ScalarParameter, ...]:
        """The fields of a struct that is passed by value, as numbers of their own."""
        if self.role is not None:
            return ()
        return tuple(
            ScalarParameter(name, DTYPES[field.dtype].arithmetic) for name, field in self.fields.items()
        )


@dataclass(frozen=True)
class HandleParameter:
    """A pointer that an earlier launcher of the same case has returned, such as to a plan.

    Attributes:
        name: of the parameter.
        type: what it points to, which the earlier launcher ``returns``.
    """

    name: str
    type: str


Parameter = ArrayParameter | ScalarParameter | StreamParameter | StructParameter | HandleParameter
Scalar = int | bool | float | tuple[int, ...] | tuple[tuple[str, int | bool | float], ...]
"""What is passed by value: a number, integers that the host reads, or a struct's fields, type and number."""


def arrays_of(parameters: Iterable[Parameter]) -> tuple[ArrayParameter, ...]:
    """The arrays among ``parameters``, and those that the fields of structs are, in order."""
    arrays: list[ArrayParameter] = []
    for parameter in parameters:
        if isinstance(parameter, ArrayParameter):
            arrays.append(parameter)
        elif isinstance(parameter, StructParameter):
            arrays += parameter.arrays
    return tuple(arrays)


def scalars_of(parameters: Iterable[Parameter]) -> tuple[ScalarParameter, ...]:
    """The numbers among ``parameters``, and those in structs that are passed by value, in order."""
    scalars: list[ScalarParameter] = []
    for parameter in parameters:
        if isinstance(parameter, ScalarParameter):
            scalars.append(parameter)
        elif isinstance(parameter, StructParameter):
            scalars += parameter.scalars
    return tuple(scalars)


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
    dtype: str = ""  # of the arrays of ``ANY_TYPE``
    at_places: bool = False  # whether large outputs may be compared at some places alone
    on: str = ""  # the kind of device that alone runs it, "sim" or "gpu"; "" for both
    mark: float | None = None  # a number that the arrays of its distribution hold; see Space.marked
    moved: int = 0  # which numbers of the inputs change places; see Problem.similar

    @property
    def content(self) -> tuple[str, int, int]:
        """What its inputs follow from, in a problem and a run."""
        return self.name, self.seed, self.moved


@dataclass(frozen=True)
class Range:
    """The values that a size may take: from ``low`` to ``high``, multiples of ``multiple_of``.

    A GPU alone gets further, up to ``end`` where there is one. With ``at_most`` it is never larger than the
    size of that name.
    """

    low: int
    high: int
    multiple_of: int = 1
    end: int = 0
    at_most: str = ""

    def __post_init__(self) -> None:
        """Refuse one that holds no value."""
        if self.multiple_of < 1 or self.high // self.multiple_of * self.multiple_of < max(self.low, 1):
            raise ValueError(
                f"{self} holds no value from 1 on: low <= high is needed, and a multiple of multiple_of"
            )

    @property
    def last(self) -> int:
        """The largest value on a GPU."""
        return max(self.high, self.end)

    @property
    def values(self) -> range:
        """All values on a GPU, in rising order."""
        return range(self.nearest(self.low), self.last + 1, self.multiple_of)

    def nearest(self, value: int) -> int:
        """The smallest value of the range that is at least ``value``; the largest one if there is none."""
        step = self.multiple_of
        largest = self.high // step * step
        return min(largest, -(-max(self.low, value) // step) * step)

    def within(self, value: int) -> int:
        """The largest value of the range that is at most ``value``; the smallest one if there is none."""
        return max(self.nearest(self.low), min(value, self.high) // self.multiple_of * self.multiple_of)

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high and value % self.multiple_of == 0


def fitted(
    ranges: Mapping[str, Range], sizes: Mapping[str, int], kept: Collection[str] | None = None
) -> dict[str, int]:
    """``sizes`` in which none is above the one that its range names in ``at_most``.

    Args:
        ranges: by size.
        sizes: some, with all those of ``ranges``.
        kept: the sizes that do not grow. The others grow to what the smaller ones need; where one cannot, the
            smaller ones are lowered. Without this none grows, but to the least that the others can be.
    """
    fitting = dict(sizes)
    bound = [(name, limits.at_most) for name, limits in ranges.items() if limits.at_most]
    for _ in bound:  # as many times as a chain may be long
        for name, above in bound:
            if fitting[name] > fitting[above] and kept is not None and above not in kept:
                fitting[above] = ranges[above].nearest(fitting[name])
    for _ in bound:
        for name, above in bound:
            if fitting[name] > fitting[above]:
                fitting[name] = ranges[name].within(fitting[above])
                fitting[above] = max(fitting[above], ranges[above].nearest(fitting[name]))
    return fitting


@dataclass(frozen=True)
class Budget:
    """How many elements all arrays of a case may have at the smallest sizes of its octaves.

    Attributes:
        pairs: of any two sizes.
        parts: where one of them is a part of a product, which is large in other cases.
        largest: of two sizes, of which neither can be an octave larger with so many elements. What is wrong
            from two sizes on shows there.
        alone: where one is.
        contents: of the largest case of each distribution.
        compared: beyond which outputs are compared at some places alone; see ``Case.at_places``.
        on_gpu: of the cases that are too large for the simulator, so that a GPU alone runs them.
    """

    pairs: int = 1 << 15
    parts: int = 1 << 10
    largest: int = 1 << 18
    alone: int = 1 << 18
    contents: int = 1 << 15
    compared: int = 1 << 20
    on_gpu: int = 1 << 26


def _none_is_marked(_group: str, _sizes: Mapping[str, int], _mark: float, _seed: int) -> tuple[Case, ...]:
    return ()


def _every_one(_sizes: Mapping[str, int], _distribution: str) -> bool:
    return True


@dataclass(frozen=True)
class Space:
    """Which inputs a problem may have, and how a case is made of any of them.

    Attributes:
        ranges: the values of each size, in the order of a case's sizes.
        distributions: of the contents, the usual one first. Where a problem has several element types or
            layouts, a distribution names them, too.
        elements: of all arrays, for some sizes: what a case costs. A short row may count as more.
        case: from a group, sizes, a distribution and the seed of a run to a case.
        allows: whether these sizes, which are in their ranges, may have that distribution.
        alike: distributions in which a wrong place shows as well as in the usual one; none but that if empty.
        products: by name, sizes whose product kernels treat as a size: rows of batches, heads and queries.
        budget: of the cases that ``grid`` draws from it.
        marked: from a group, sizes, a number of a submission and the seed of a run to cases whose inputs hold
            that number, alone or before zeros: a kernel to which it means "nothing yet" is wrong there.
    """

    ranges: Mapping[str, Range]
    distributions: tuple[str, ...]
    elements: Callable[[Mapping[str, int]], int]
    case: Callable[[str, Mapping[str, int], str, int], Case]
    allows: Callable[[Mapping[str, int], str], bool] = _every_one
    alike: tuple[str, ...] = ()
    products: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    budget: Budget = Budget()
    marked: Callable[[str, Mapping[str, int], float, int], tuple[Case, ...]] = _none_is_marked

    @property
    def least(self) -> Mapping[str, int]:
        """The smallest value of each size; larger, where another size must not be above it."""
        smallest = {name: limits.nearest(limits.low) for name, limits in self.ranges.items()}
        return fitted(self.ranges, smallest, ())

    def legal(self, sizes: Mapping[str, int], distribution: str) -> bool:
        """Whether the problem may have inputs of these sizes and that distribution."""
        within = all(sizes[name] in limits for name, limits in self.ranges.items())
        within = within and fitted(self.ranges, sizes) == dict(sizes)
        return within and distribution in self.distributions and self.allows(sizes, distribution)


@dataclass(frozen=True)
class Inputs:
    """The arguments of the entry point before it runs.

    ``arrays`` holds every INPUT and INOUT array (None for a null pointer); ``outputs`` the shape of every
    OUTPUT; ``scalars`` each ``Scalar`` by name.
    """

    arrays: Mapping[str, NDArray[np.generic] | None]
    outputs: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, Any]

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
    """One acceptable content of an output: ``expected`` and ``allowed`` have the output's shape.

    ``expected`` is float64, or of an integer type, which has to be met exactly. An expected NaN is matched by
    NaN alone. ``allowed`` is float64, the largest absolute error of each element.
    """

    expected: NDArray[np.float64] | NDArray[np.integer[Any]]
    allowed: NDArray[np.float64]


@dataclass(frozen=True)
class Expectation:
    """What is right for one output: each row (last axis) must match one of the candidates as a whole.

    ``finite_only`` marks rows (shape of the output without its last axis) of which only finiteness is asked.
    ``further`` makes more candidates, which a right output mostly does not need.
    """

    candidates: tuple[Candidate, ...]
    finite_only: NDArray[np.bool_] | None = None
    further: Callable[[], tuple[Candidate, ...]] = tuple

    def part(self, window: slice) -> Expectation:
        """The part in a window along the first axis, without ``further``."""
        candidates = tuple(
            Candidate(candidate.expected[window], candidate.allowed[window]) for candidate in self.candidates
        )
        return Expectation(candidates, None if self.finite_only is None else self.finite_only[window])


class OnDemand(Mapping[str, Expectation]):
    """Expectations by output, each worked out when it is first asked for: slices need some of them alone."""

    def __init__(self, worked_out: Mapping[str, Callable[[], Expectation]]) -> None:
        """What works them out, by output."""
        self._worked_out = {name: cache(work) for name, work in worked_out.items()}

    def __getitem__(self, name: str) -> Expectation:
        return self._worked_out[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._worked_out)

    def __len__(self) -> int:
        return len(self._worked_out)


Bug = Callable[[Inputs], "Mapping[str, NDArray[np.float64]]"]
"""What a known wrong formula would compute: the outputs that it gets wrong, by name."""


def _alone(_: Case) -> int:
    return 0


@dataclass(frozen=True)
class Slices:
    """A way in which outputs fall apart: each of their slices needs some of the inputs only.

    Attributes:
        outputs: their names; slice i of one is ``output.reshape(count, -1)[i]``.
        count: how many slices a case has.
        take: the inputs of these consecutive slices alone, by index, as inputs of the same problem.
        halo: how many slices on each side a slice needs beside itself. Where it needs any, slices lie along
            the first axis of the outputs.
    """

    outputs: tuple[str, ...]
    count: Callable[[Case], int]
    take: Callable[[Inputs, NDArray[np.intp]], Inputs]
    halo: Callable[[Case], int] = _alone

    def window(self, case: Case, inputs: Inputs, first: int, length: int) -> tuple[Inputs, slice]:
        """The inputs of ``length`` slices from ``first`` on, and where these are in what they give."""
        halo = self.halo(case)
        begin, end = max(0, first - halo), min(self.count(case), first + length + halo)
        return self.take(inputs, np.arange(begin, end)), slice(first - begin, first - begin + length)


Oracle = Callable[[Case, Inputs], Mapping[str, Expectation]]


def of_slices(
    oracle: Oracle, case: Case, inputs: Inputs, slices: Slices, first: int, length: int
) -> Mapping[str, Expectation]:
    """What ``oracle`` says of ``length`` slices from ``first`` on, from the inputs that they need alone."""
    part, inner = slices.window(case, inputs, first, length)
    expected = oracle(case, part)
    return {
        name: expected[name].part(inner) if slices.halo(case) else expected[name] for name in slices.outputs
    }


Fused = Callable[[Mapping[str, Any], Mapping[str, Any]], Callable[[], object]]
"""From PyTorch tensors by name and the scalars to a call of PyTorch's own operator on them."""


Checker = Callable[[Case, Any, Mapping[str, Any]], "str | Wrong"]
"""Says what is wrong with outputs of which more than one is right; "" where nothing is. See ``checking.py``.

Of a launcher it gets ``Inputs`` and the arrays that it may have written, of a program its ``Run`` and the
content of files.
"""


def _nothing(_: Case) -> tuple[Operation, ...]:
    return ()


def _none_is_similar(_case: Case, _number: int) -> Case | None:
    return None


def _no_terms(_: Inputs) -> Mapping[str, NDArray[np.float64]]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The fields of a problem of any kind.

    Attributes:
        id: stable name, also the module's name.
        file: the source file of a submission that holds what is asked for.
        groups: names of the case groups in the order of reports, without ``MEMORY_GROUP``.
        cases: the correctness cases drawn from a seed.
        timing_cases: the cases that performance is measured on, drawn from a seed.
        inputs: the inputs of a case; the same case gives the same inputs.
        oracle: what is right for those inputs, per output.
        bugs: typical wrong formulas; the key says in a student's words what is wrong, the diagnosis shows it.
        terms: of outputs that are sums over the rows of the inputs, by name: [rows, *shape of the output].
        checker: looks at the outputs once all that the oracle expects is right; None where the oracle says
            everything. Outputs that the oracle does not know are the checker's alone.
        similar: the case whose inputs are those of a case but for a few numbers, which have changed places;
            other ones for each number from 1 on. None where the problem has no such case.
    """

    id: str
    file: str
    groups: tuple[str, ...]
    cases: Callable[[int], tuple[Case, ...]]
    timing_cases: Callable[[int], tuple[Case, ...]]
    inputs: Callable[[Case], Inputs]
    oracle: Oracle
    bugs: Mapping[str, Bug] = field(default_factory=dict)
    terms: Bug = _no_terms
    checker: Checker | None = None
    similar: Callable[[Case, int], Case | None] = _none_is_similar

    def __post_init__(self) -> None:
        """Refuse a checker that cannot be called."""
        if self.checker is not None:
            check_positions("check", self.checker, "case", "inputs", "outputs")

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of a submission that are compiled."""
        return (self.file,)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Those of them of which each is built into a library."""
        return self.sources

    @property
    def files(self) -> tuple[str, ...]:
        """Every file of a submission that the problem is graded from."""
        return tuple(dict.fromkeys((self.file, *self.sources)))

    @property
    def roles(self) -> Mapping[str, Role]:
        """The role of each array that a launcher takes; empty where arrays have no roles."""
        return {}

    @property
    def free(self) -> frozenset[str]:
        """The arrays in which a launcher may leave anything."""
        return frozenset()


@dataclass(frozen=True)
class LauncherCall:
    """One of the calls that a case makes.

    Attributes:
        launcher: its name in ``KernelProblem.launchers``; what that lacks is the problem's only launcher.
        arguments: by parameter: of a scalar the number that it has in this call, of an array the row along
            its first axis that this call gets instead of all of it.
    """

    launcher: str
    arguments: Mapping[str, int | float] = field(default_factory=dict)


def called_once(case: Case) -> tuple[LauncherCall, ...]:
    """One call, of the launcher for the element type of ``case`` where there are several."""
    return (LauncherCall(case.dtype),)


@dataclass(frozen=True, kw_only=True)
class KernelProblem(Problem):
    """A launcher on arrays, or several that are called one after the other.

    Attributes:
        entry_point: the ``extern "C"`` function in ``file``; of several the first.
        parameters: its parameters in order. The outputs are the arrays with the roles OUTPUT and INOUT. Of
            several launchers it is all arrays, streams and numbers that the case has for them.
        minimal_bytes: bytes that any implementation must move through device memory for a case.
        unfused: the baseline as a program of generic operations over the named arrays.
        other_ways: programs that compute the same in another way that many take: the diagnosis looks for
            faults in these, too.
        slices: ways to judge parts of the outputs alone; each output belongs to one of them, or to none.
        of_slices: what the oracle says of some of them.
        turning: arrays that may be rotated along their first axis, all by the same number of places: outputs
            among them rotate likewise, the others stay as they are.
        fused: PyTorch's own way to the outputs, timed for information.
        launchers: where there are several: one for each element type of the cases, by its name, or those
            that ``calls`` names, each as the problem that has its parameters alone.
        calls: what a case calls, in order. All of it gets the same arrays, and they are compared at the end.
        returns: what the launcher returns a pointer to, for the ``HandleParameter`` of later ones; "" if it
            returns nothing.
        space: which inputs it may have; None where nobody has said.
        wide: why its bounds are wider than rounding explains, such as of a mean of random samples; otherwise
            empty. The soundness check then asks for no case that finds numbers of fewer bits.
        seconds: about how long the simulator takes for a case on two cores; None where nobody knows.
    """

    entry_point: str
    parameters: tuple[Parameter, ...]
    minimal_bytes: Callable[[Case], int]
    unfused: Callable[[Case], tuple[Operation, ...]] = _nothing
    other_ways: tuple[Callable[[Case], tuple[Operation, ...]], ...] = ()
    slices: tuple[Slices, ...] = ()
    of_slices: Callable[[Oracle, Case, Inputs, Slices, int, int], Mapping[str, Expectation]] = of_slices
    turning: tuple[str, ...] = ()
    fused: Fused | None = None
    launchers: Mapping[str, KernelProblem] = field(default_factory=dict)
    calls: Callable[[Case], tuple[LauncherCall, ...]] = called_once
    returns: str = ""
    space: Space | None = None
    wide: str = ""
    seconds: Callable[[Case], float] | None = None

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The functions that are asked for."""
        return tuple(problem.entry_point for problem in self.launchers.values()) or (self.entry_point,)

    def launcher(self, case: Case) -> KernelProblem:
        """The problem for the element type of ``case``."""
        return self.launchers[case.dtype] if self.launchers and self.calls is called_once else self

    def expected_in(
        self, case: Case, inputs: Inputs, slices: Slices, first: int, length: int
    ) -> Mapping[str, Expectation]:
        """What is right in ``length`` slices from ``first`` on; see ``of_slices``."""
        return self.of_slices(self.oracle, case, inputs, slices, first, length)

    @property
    def arrays(self) -> tuple[ArrayParameter, ...]:
        """Its array parameters in order; of an array of structs, each field."""
        return arrays_of(self.parameters)

    @property
    def structs(self) -> tuple[StructParameter, ...]:
        """Its parameters that are structs, or point to them, in order."""
        return tuple(parameter for parameter in self.parameters if isinstance(parameter, StructParameter))

    @property
    def roles(self) -> Mapping[str, Role]:
        """The role of each array that the launcher takes."""
        return {array.name: array.role for array in self.arrays}

    @property
    def free(self) -> frozenset[str]:
        """The arrays in which the launcher may leave anything."""
        return frozenset(array.name for array in self.arrays if array.free)


def several_types(problem: KernelProblem, types: Collection[str]) -> KernelProblem:
    """``problem`` for several element types, each with an entry point of its own: its name, ``_``, the type.

    The arrays of ``ANY_TYPE`` have the type that a case names in ``Case.dtype``; scalars of it have the type
    that arithmetic on those is done in.
    """

    def typed(parameter: Parameter, dtype: str) -> Parameter:
        match parameter:
            case ArrayParameter() if parameter.dtype == ANY_TYPE:
                return replace(parameter, dtype=dtype)
            case ScalarParameter() if parameter.ctype == ANY_TYPE:
                return replace(parameter, ctype=DTYPES[dtype].arithmetic)
        return parameter

    def of_type(dtype: str) -> KernelProblem:
        def of_dtype(cases: Callable[[int], tuple[Case, ...]]) -> Callable[[int], tuple[Case, ...]]:
            return lambda seed: tuple(case for case in cases(seed) if case.dtype == dtype)

        space = problem.space
        return replace(
            problem,
            space=None if space is None else _of_type(space, dtype),
            entry_point=f"{problem.entry_point}_{dtype}",
            parameters=tuple(typed(parameter, dtype) for parameter in problem.parameters),
            cases=of_dtype(problem.cases),
            timing_cases=of_dtype(problem.timing_cases),
        )

    return replace(problem, launchers={dtype: of_type(dtype) for dtype in types})


def _of_type(space: Space, dtype: str) -> Space:
    """``space`` with the distributions of an element type alone."""
    names = (name for name in space.distributions if space.case("", space.least, name, 0).dtype == dtype)
    return replace(space, distributions=tuple(names))


def _needs_nothing(_: Case) -> tuple[tuple[KernelProblem, Case, int], ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class ModelProblem(Problem):
    """A PyTorch file that calls launchers of other problems; a case names the function that is called.

    Attributes:
        harness: the Python file that calls the student's file in the runner; see ``grader/runner/model.py``.
        modules: those of the template that the student's file imports.
        launchers: the entry points that it calls, by the source file that they are in.
        needs: which of them a case must call: the problem that each belongs to, a case of that with the sizes
            of the call, and how often at least.
    """

    harness: Path
    modules: tuple[str, ...] = ()
    launchers: Mapping[str, tuple[str, ...]]
    needs: Callable[[Case], tuple[tuple[KernelProblem, Case, int], ...]] = _needs_nothing

    @property
    def sources(self) -> tuple[str, ...]:
        """The files with the launchers."""
        return tuple(self.launchers)
