"""A problem from one formula: oracle, error bounds, baseline, cases and gradients follow from it.

The formula is a PyTorch function over arrays, scalars and sizes, by name. A whole problem module:

    \"\"\"z = a x + y, element by element.\"\"\"

    from grader.problems.contents import real
    from grader.problems.formula import Range, problem

    PROBLEM = problem(
        id="add_scaled",
        file="add_scaled.cu",
        launcher="add_scaled(float* z, const float* x, const float* y, float a, int n, cudaStream_t stream)",
        formula=lambda x, y, a: a * x + y,
        inputs=lambda n: {"x": real(n), "y": real(n), "a": 2.5},
        sizes={"n": Range(1, 1 << 24)},
        timing=({"n": 1 << 20}, {"n": 1 << 24}),
    )

``launcher`` is what students are asked for; a list of several is called one after the other, as ``calls``
says. An array that is not ``const`` is an output, in place where
``inputs`` has it, too; the formula returns the outputs in the launcher's order, or by name. ``contents`` has
what arrays may hold.

What follows (``rounding``, ``tracing`` and ``sizes`` say how):

- oracle: the formula in float64; integers are exact,
- bound of each element: Monte Carlo arithmetic, for any order of summation. An equally right way to compute
  the same that loses more, such as a variance as E[x^2] - E[x]^2, is listed in ``also``. Of large outputs
  whose rows have results of their own it is worked out for some rows, and the largest holds in all others,
- baseline: one generic kernel for each operation of the formula,
- PyTorch's time: the formula itself on a GPU,
- cases: borders of every size and distributions that hurt; further ones in ``cases``, and ``without`` names
  distributions that the formula cannot take.

``backward_of`` makes the formula of the gradients from that of the forward pass. All of it is a
``KernelProblem``, of which ``dataclasses.replace`` replaces what you know better:
``replace(problem(...), oracle=..., bugs=...)``.

Layer: imports numpy, torch and the library of problems.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grader.problems import bounds, independence
from grader.problems.aten import Results
from grader.problems.contents import (
    EQUAL,
    FAR_BELOW,
    HUGE,
    IN_GRIDS,
    LAST,
    NORMAL,
    SCALED,
    WHOLE,
    ZEROS,
    Content,
    Number,
)
from grader.problems.distributions import build_cases, generator
from grader.problems.dtypes import DTYPES, VECTORS
from grader.problems.explained import FormulaError, check_named, explained
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.problem import (
    ArrayParameter,
    Budget,
    Candidate,
    Case,
    Expectation,
    HandleParameter,
    Inputs,
    KernelProblem,
    Range,
    Role,
    ScalarParameter,
    Space,
    StreamParameter,
    StructParameter,
    arrays_of,
    fitted,
    scalars_of,
)
from grader.problems.rounding import Rounding, squared_errors, steady_errors
from grader.problems.scalars import ExactSizes
from grader.problems.sequence import CallSequence, Declared
from grader.problems.sizes import MANY_ELEMENTS, MOST_ELEMENTS, SECONDS, Cost, derived, suited
from grader.problems.structs import flat, grouped, struct
from grader.problems.tracing import traced

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.operations import Operation
    from grader.problems.problem import Checker, Parameter, Slices
    from grader.problems.sequence import Calls
    from grader.problems.structs import Struct

    Formula = Callable[..., Tensor | Sequence[Tensor] | Mapping[str, Tensor]]
    Sizes = Mapping[str, int]
    Arguments = Mapping[str, Any]

__all__ = ["FormulaError", "Range", "backward_of", "problem"]

FEW = 6  # places along a size of an example
SOME = 64  # elements of a case, from which on a few of them may change places
MULTIPLICATIONS = 128  # that count as much as an element in the budget of a grid
SAMPLED_ELEMENTS = 1 << 16  # of large outputs, of which the bound is worked out

_LAUNCHER = re.compile(r"\s*(?:void\s+|([\w ]+?)\s*\*\s*)?(\w+)\s*\((.*)\)\s*;?\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*(const\s+)?([\w: ]+?)(?:\s*(\*)\s*|\s+)(\w+)\s*")
_CONTENTS = (Content, Number, int, float, np.number)
_CTYPES = {
    **dict.fromkeys(("int", "int32_t", "unsigned int", "unsigned", "uint32_t"), "int"),
    **dict.fromkeys(("long", "long long", "int64_t", "size_t", "unsigned long long", "uint64_t"), "long"),
    **dict.fromkeys(("char", "signed char", "unsigned char", "short", "unsigned short"), "int"),
    "bool": "bool",
    "float": "float",
    "double": "double",
}


def problem(
    *,
    id: str,  # noqa: A002 - the field's name
    file: str,
    launcher: str | Sequence[str],
    inputs: Callable[..., Mapping[str, Content | Number | float]],
    sizes: Mapping[str, Range],
    formula: Formula | None = None,
    check: Checker | None = None,
    outputs: Callable[..., Mapping[str, tuple[int, ...]]] | None = None,
    calls: Calls | None = None,
    free: Sequence[str] = (),
    structs: Mapping[str, object] = MappingProxyType({}),
    timing: Sequence[Sizes] = (),
    also: Sequence[Formula] = (),
    cases: Sequence[tuple[str, Sizes, str]] = (),
    without: Sequence[str] = (),
    most: int = MOST_ELEMENTS,
    seconds: float = SECONDS,
    budget: Budget | None = None,
) -> KernelProblem:
    """The problem of implementing ``formula``; the module's text has an example.

    Where more than one output is right, ``check`` looks at the outputs, once those that the formula returns
    are right. The formula may then return some of them alone, by name, or be left out.

    Args:
        id: the module's name.
        file: the source file of a submission.
        launcher: name and parameters, as in C; of several launchers, a list of these. One that returns a
            pointer, as ``Plan* make_plan(int n)``, gives it to the later ones that take a ``Plan*``.
        inputs: from the sizes that it names to the contents of input arrays, and the values of other
            scalars.
        sizes: the range of each.
        formula: from arrays, scalars and sizes by name to the outputs.
        check: what is wrong with the outputs of a case; see ``checking.py``.
        outputs: from the sizes, arrays and scalars that it names to the shape of each output that the formula
            does not return and ``inputs`` does not have.
        calls: from the sizes that it names to what a case calls, in order: the name of a launcher, or that
            and a dictionary. This has scalars that differ from call to call, and for an array the row along
            its first axis that the call gets. Without it each launcher is called once, in order.
        free: arrays in which the launcher may leave anything: a workspace, whose shape ``outputs`` says, or
            an input that may be used up.
        structs: by the names that the launcher has for them, structured types of NumPy or ``ctypes``.
            ``inputs`` has contents of their fields in a dictionary, and a formula gets and returns these as
            attributes of one object.
        timing: sizes of the cases that performance is measured on.
        also: formulas of the same value that are as right; the bound allows each of them.
        cases: further cases: group, sizes and distribution.
        without: distributions to leave out. With ``HUGE``, ``FAR_BELOW``, ``SCALED`` and ``WHOLE`` are, too.
        most: elements of all arrays of a derived case; fewer where the formula itself makes far larger ones.
        seconds: that the simulator may take on two cores for all derived cases: where the formula multiplies
            much, their sizes are lowered, and those that never fit are left out.
        budget: elements of all arrays of the cases in which sizes are large together; without it the usual
            ones, and not more than ``most``.

    Raises:
        FormulaError: the parts do not fit together.
    """
    known = {name: struct(name, described) for name, described in structs.items()}
    launchers = _launchers([launcher] if isinstance(launcher, str) else launcher, known)
    several = len(launchers) > 1 or calls is not None
    return of_parameters(
        launchers[0].parameters,
        sequence=CallSequence(launchers, calls) if several else None,
        id=id,
        file=file,
        entry_point=launchers[0].name,
        formula=formula,
        check=check,
        outputs=outputs,
        free=free,
        inputs=inputs,
        sizes=sizes,
        timing=timing,
        also=also,
        cases=cases,
        without=without,
        most=most,
        seconds=seconds,
        budget=budget,
    )


def of_parameters(
    parameters: tuple[Parameter, ...],
    *,
    id: str,  # noqa: A002 - the field's name
    file: str,
    entry_point: str,
    inputs: Callable[..., Mapping[str, Content | Number | float]],
    sizes: Mapping[str, Range],
    formula: Formula | None = None,
    check: Checker | None = None,
    outputs: Callable[..., Mapping[str, tuple[int, ...]]] | None = None,
    free: Sequence[str] = (),
    timing: Sequence[Sizes] = (),
    also: Sequence[Formula] = (),
    cases: Sequence[tuple[str, Sizes, str]] = (),
    without: Sequence[str] = (),
    most: int = MOST_ELEMENTS,
    seconds: float = SECONDS,
    budget: Budget | None = None,
    sequence: CallSequence | None = None,
) -> KernelProblem:
    """The same for an entry point with these parameters; an output that ``inputs`` has is in place.

    With a ``sequence`` it has those of all its launchers.

    Raises:
        FormulaError: the parts do not fit together.
    """
    _check_ranges(sizes)
    for part, points in (("timing", timing), ("cases", [point for _, point, _ in cases])):
        for point in points:
            _check_point(part, point, sizes)
    passed = [parameter.name for parameter in parameters if isinstance(parameter, StructParameter)]
    if passed and timing:
        raise FormulaError(
            f"timing is for launchers on arrays: the speed of one that takes structs, as {passed[0]} is, "
            "cannot be measured. Leave timing out"
        )
    if sequence is not None and timing:
        raise FormulaError(
            "timing is for one launcher that is called once: the speed of several calls cannot be measured. "
            "Leave timing out"
        )
    _check_functions(formula, also, inputs, outputs)
    if formula is None and check is None:
        raise FormulaError("there is neither a formula nor a check: one of them says what is right")
    if sequence is not None:
        least = {name: limits.nearest(limits.low) for name, limits in sizes.items()}
        parameters = sequence.parameters(fitted(sizes, least, ()))
    parts = _Parts(
        parameters,
        formula,
        check,
        outputs,
        tuple(also),
        inputs,
        sizes,
        tuple(cases),
        tuple(without),
        most,
        seconds,
        budget or _budget(most),
        timed=bool(timing),
        free=tuple(free),
        steering=() if sequence is None else sequence.sizes,
    )
    problem = KernelProblem(
        id=id,
        file=file,
        entry_point=entry_point,
        parameters=parts.parameters,
        groups=(*dict.fromkeys(case.group for case in parts.cases(0)), MAGNITUDES),
        cases=with_grid(parts.cases, parts.space),
        timing_cases=lambda seed: build_cases(seed, [("timed", point, NORMAL) for point in timing]),
        inputs=parts.inputs,
        oracle=parts.oracle,
        minimal_bytes=parts.minimal_bytes,
        space=parts.space,
        similar=parts.similar,
        wide=parts.wide_bounds,
        seconds=parts.seconds_of,
    )
    if sequence is not None:
        sequence.checked(parts.roomy, parts.shapes(parts.roomy))
        problem = sequence.asked(problem, parts.shapes)
    if check is not None:  # looks at all outputs together, and at all of each
        wide = parts.wide_bounds if formula else "the assignment's checker says what is right"
        return replace(problem, checker=check, wide=wide)
    if passed:  # the baseline's kernels take arrays
        return problem
    return replace(
        problem,
        unfused=parts.unfused,
        fused=parts.fused,
        slices=parts.slices,
        turning=() if parts.fixed else independence.turning(*parts.example),
    )


def _check_functions(
    formula: Formula | None,
    also: Sequence[Formula],
    inputs: Callable[..., object],
    outputs: Callable[..., object] | None,
) -> None:
    """Refuse functions whose arguments have no names."""
    functions = [("the formula", formula), ("inputs", inputs), ("outputs", outputs)]
    for part, function in (*functions, *(("a formula of also", other) for other in also)):
        if function is not None:
            check_named(part, function)


def _check_ranges(sizes: Mapping[str, Range]) -> None:
    """Refuse ranges that no sizes fit."""
    if strange := [name for name, limits in sizes.items() if not isinstance(limits, Range)]:
        raise FormulaError(f"sizes has no Range for {strange[0]}: write Range(1, 1 << 20)")
    for name, limits in sizes.items():
        if limits.at_most and limits.at_most not in sizes:
            raise FormulaError(
                f"{name} is at most {limits.at_most}, which is no size: there are {', '.join(sizes)}"
            )
    if all(limits.at_most for limits in sizes.values()) and sizes:
        raise FormulaError("each size is at most another one: one of them has to be free")


def _check_point(part: str, point: Sizes, sizes: Mapping[str, Range]) -> None:
    """Refuse sizes of ``timing`` or ``cases`` of which one is missing, or above one that it is at most."""
    if {*point} != {*sizes}:
        raise FormulaError(f"{part} has {', '.join(point) or 'no sizes'}; the sizes are {', '.join(sizes)}")
    for name, limits in sizes.items():
        if limits.at_most and point[name] > point[limits.at_most]:
            raise FormulaError(
                f"{part} has {name} = {point[name]} with {limits.at_most} = {point[limits.at_most]}, and "
                f"{name} is at most {limits.at_most}: lower {name}, or raise {limits.at_most}"
            )


def backward_of(formula: Formula, incoming: str | Sequence[str], gradients: Mapping[str, str]) -> Formula:
    """The formula of gradients, by automatic differentiation.

    ::

        backward_of(norm, "y_grad", {"x_grad": "x", "scale_grad": "scale"})

    Args:
        formula: of the forward pass.
        incoming: the array with the gradient of its output, or those of its outputs in order.
        gradients: by the name of each array to write: the input that it is the gradient of.
    """
    arriving = [incoming] if isinstance(incoming, str) else list(incoming)
    forward = list(inspect.signature(formula).parameters)

    def backward(**arguments: Any) -> dict[str, Tensor]:  # noqa: ANN401 - arrays and scalars
        leaves = {name: arguments[name].detach().requires_grad_() for name in gradients.values()}
        with torch.enable_grad():
            outcome = formula(**{name: leaves.get(name, arguments[name]) for name in forward})
        outputs = (
            [outcome]
            if isinstance(outcome, torch.Tensor)
            else list(dict(outcome).values() if isinstance(outcome, Mapping) else outcome)
        )
        results = torch.autograd.grad(outputs, list(leaves.values()), [arguments[name] for name in arriving])
        return dict(zip(gradients, results, strict=True))

    names = [*forward, *arriving]
    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    backward.__signature__ = signature  # type: ignore[attr-defined]
    return backward


@dataclass(frozen=True)
class _Growing:
    """A shape whose lengths grow evenly with sizes.

    Attributes:
        lengths: of each dimension: its length where sizes are 0, and what each size adds to it.
    """

    lengths: tuple[tuple[float, tuple[tuple[str, float], ...]], ...]

    def elements(self, sizes: Sizes) -> int:
        """The number of elements of all arrays for some sizes."""
        product = 1.0
        for fixed, slopes in self.lengths:
            length = fixed
            for size, slope in slopes:
                length += slope * sizes[size]
            product *= length
        return int(product)


@dataclass(frozen=True)
class _Parts:
    """The parts of a problem that are written, and what follows from them."""

    signature: tuple[Parameter, ...]
    formula: Formula | None
    check: Checker | None
    shapes_of_outputs: Callable[..., Mapping[str, tuple[int, ...]]] | None
    also: tuple[Formula, ...]
    contents: Callable[..., Mapping[str, Content | Number | float]]
    sizes: Mapping[str, Range]
    by_hand: tuple[tuple[str, Sizes, str], ...]
    without: tuple[str, ...]
    most: int
    seconds: float
    budget: Budget
    timed: bool
    free: tuple[str, ...]
    steering: tuple[str, ...]  # sizes that say what is called

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The launcher's parameters; an array that is written is an output, or in place."""
        arguments, parameters = self.contents_of(self.least), []
        known: list[str] = []
        for parameter in self.signature:
            scalars = scalars_of([parameter])
            if isinstance(parameter, ArrayParameter | StructParameter) and not scalars:
                names = [array.name for array in arrays_of([parameter])]
                if parameter.role is Role.OUTPUT and arguments.keys() & names:
                    parameter = replace(parameter, role=Role.INOUT)  # noqa: PLW2901
                if isinstance(parameter, ArrayParameter) and parameter.name in self.free:
                    parameter = self.freed(parameter)  # noqa: PLW2901
                missing = [name for name in names if name not in arguments]
                if parameter.role is not Role.OUTPUT and missing:
                    raise FormulaError(f"inputs has no content for {missing[0]}")
                known += names
            for scalar in scalars:
                if scalar.name not in {*arguments, *self.sizes}:
                    raise FormulaError(f"{scalar.name} is no size, and inputs has no value for it")
                known.append(scalar.name)
            parameters.append(parameter)
        if strange := [name for name in self.free if name not in known]:
            raise FormulaError(f"free has {strange[0]}, which is no array of the launcher")
        unknown = arguments.keys() - {*known}
        if unknown:
            raise FormulaError(f"the launcher has no parameter {' and no '.join(sorted(unknown))}")
        return tuple(parameters)

    def freed(self, array: ArrayParameter) -> ArrayParameter:
        """An array in which the launcher may leave anything."""
        if array.role is Role.INPUT:
            raise FormulaError(f"{array.name} is const, and so not free: write it without const")
        return replace(array, free=True)

    @cached_property
    def least(self) -> Sizes:
        """The smallest value of each size; larger, where another size must not be above it."""
        smallest = {name: limits.nearest(limits.low) for name, limits in self.sizes.items()}
        return fitted(self.sizes, smallest, ())

    @cached_property
    def roomy(self) -> Sizes:
        """Small sizes, of which each may grow a little: those that others must not be above are larger."""
        sizes = dict(self.least)
        for _ in self.bounding:
            for name in self.bounding:
                below = [sizes[other] for other, limits in self.sizes.items() if limits.at_most == name]
                sizes[name] = max(sizes[name], self.sizes[name].nearest(max(below) + 2 * FEW))
        return sizes

    @property
    def fixed(self) -> bool:
        """Whether elements of an array belong where they are."""
        contents = self.contents_of(self.least).values()
        return any(isinstance(content, Content) and content.fixed for content in contents)

    @cached_property
    def bounding(self) -> tuple[str, ...]:
        """The sizes that others must not be above."""
        return tuple(dict.fromkeys(limits.at_most for limits in self.sizes.values() if limits.at_most))

    def contents_of(self, sizes: Sizes) -> Mapping[str, Content | Number | float]:
        """Contents and other scalars for those sizes that they depend on."""
        named = inspect.signature(self.contents).parameters
        if unknown := [name for name in named if name not in self.sizes]:
            raise FormulaError(
                f"inputs asks for {unknown[0]}, which is no size. Add it to sizes, which has "
                f"{', '.join(self.sizes)}"
            )
        with explained("inputs", sizes):
            contents = flat(self.contents(**{name: size for name, size in sizes.items() if name in named}))
        if strange := [name for name, value in contents.items() if not isinstance(value, _CONTENTS)]:
            raise FormulaError(
                f"inputs has for {strange[0]} neither a content, as real(n), nor a number: see "
                "grader.problems.contents"
            )
        return contents

    @property
    def arrays(self) -> tuple[ArrayParameter, ...]:
        return arrays_of(self.parameters)

    @property
    def scalar_parameters(self) -> tuple[ScalarParameter, ...]:
        return scalars_of(self.parameters)

    @property
    def outputs(self) -> tuple[ArrayParameter, ...]:
        return tuple(array for array in self.arrays if array.role is not Role.INPUT)

    @property
    def asked(self) -> tuple[ArrayParameter, ...]:
        """The outputs in which a launcher may not leave anything."""
        return tuple(output for output in self.outputs if not output.free)

    @cached_property
    def unit(self) -> float:
        """The roundoff of a right kernel's arithmetic: double where an output is."""
        double = any(output.dtype == "float64" for output in self.asked)
        return bounds.PRECISIONS["float64" if double else "float32"].unit

    @property
    def wide_bounds(self) -> str:
        """Why the bounds are too wide to find half precision; "" where they are not."""
        real = {DTYPES[output.dtype].itemsize for output in self.asked if not DTYPES[output.dtype].exact}
        return "the outputs have eight bits" if real == {1} else ""

    @cached_property
    def space(self) -> Space:
        """Any sizes of the ranges, in any distribution that one of the arrays knows."""
        known = self.distributions
        alike = tuple(name for name in (NORMAL, LAST) if name in known)
        return Space(
            self.sizes, known, self.about, self.case, alike=alike, budget=self.budget, marked=self.marked
        )

    @property
    def distributions(self) -> tuple[str, ...]:
        """The distributions that at least one of the arrays can have, the usual one first."""
        names = {NORMAL: None}
        for array in self.arrays:
            content = self.contents_of(self.least).get(array.name)
            if isinstance(content, Content):
                names |= dict.fromkeys(content.draws(array.dtype))
        without = {*self.without, *([FAR_BELOW, SCALED, WHOLE] if HUGE in self.without else [])}
        return tuple(name for name in names if name not in without)

    def elements(self, sizes: Sizes) -> int:
        """The number of elements of all arrays together, for some sizes."""
        return sum(prod(shape) for shape in self.shapes(sizes).values())

    def about(self, sizes: Sizes) -> int:
        """A quick estimate of ``elements``; of an intermediate result, or of the work, if that is more."""
        arrays, results, _ = self._growth
        work = self.multiplications(sizes) // MULTIPLICATIONS
        return max(work, sum(shape.elements(sizes) for shape in arrays), *_elements(results, sizes))

    def multiplications(self, sizes: Sizes) -> int:
        """About how many of its matrix products and convolutions the formula makes."""
        *_, products = self._growth
        return sum(_elements(products, sizes))

    def seconds_of(self, case: Case) -> float:
        """About how long the simulator takes for a case."""
        return self.cost.of_case({**self.least, **case.sizes}, case.orders)

    @cached_property
    def cost(self) -> Cost:
        """What the derived cases may cost."""
        return Cost(self.elements, self.multiplications, self.most, self.seconds)

    @cached_property
    def _growth(self) -> tuple[list[_Growing], list[_Growing], list[_Growing]]:
        """How the arrays grow, how the results of the formula's operations do, and how its products do."""
        results = self._growing(lambda sizes: _numbered(self.results(sizes).shapes))
        products = self._growing(lambda sizes: _numbered(self.results(sizes).products))
        return self._growing(self.shapes), list(dict.fromkeys(results)), products

    def results(self, sizes: Sizes) -> Results:
        """The result of each operation; none where one depends on the inputs' numbers."""
        recorded = Results()
        with torch.device("meta"), recorded, suppress(FormulaError):
            if self.formula is not None:
                self.called(self.formula, self.empty(sizes))
        return recorded

    def _growing(self, shapes: Callable[[Sizes], Mapping[str, tuple[int, ...]]]) -> list[_Growing]:
        begin = self.roomy
        least = shapes(begin)
        more = {size: limits.nearest(begin[size] + FEW) for size, limits in self.sizes.items()}
        longer = {
            size: (value - begin[size], shapes({**begin, size: value}))
            for size, value in more.items()
            if value > begin[size]
        }

        def line(name: str, axis: int, length: int) -> tuple[float, tuple[tuple[str, float], ...]]:
            slopes = tuple(
                (size, slope)
                for size, (by, other) in longer.items()
                if len(other[name]) > axis and (slope := (other[name][axis] - length) / by)
            )
            return length - sum(slope * begin[size] for size, slope in slopes), slopes

        return [
            _Growing(tuple(line(name, axis, length) for axis, length in enumerate(shape)))
            for name, shape in least.items()
            if all(name in other for _, other in longer.values())
        ]

    @cached_property
    def passed(self) -> tuple[str, ...]:
        """The sizes that a call which is queued behind one with streams may take smaller."""
        return tuple(scalar.name for scalar in self.scalar_parameters if self.loose(scalar.name))

    def case(self, group: str, sizes: Sizes, distribution: str, seed: int) -> Case:
        """A case of these sizes, lowered where one is above another that it must not be above."""
        row = group, fitted(self.sizes, {name: sizes[name] for name in self.sizes}), distribution
        (case,) = build_cases(seed, [row])
        return suited(case, self.sizes, self.passed, self.about)

    def similar(self, case: Case, number: int) -> Case | None:
        """The case of which some numbers have changed places; None where they are few, or alike."""
        if case.distribution != NORMAL or self.about(case.sizes) < SOME:
            return None
        return replace(case, moved=number)

    def marked(self, group: str, sizes: Sizes, mark: float, seed: int) -> tuple[Case, ...]:
        """Cases of these sizes in which the arrays are ``mark`` alone, or begin with it before zeros."""
        cases = []
        contents = self.of_arrays(self.contents_of(sizes))
        for distribution, form in ((EQUAL, "{}, {:g} alone"), (ZEROS, "{}, {:g} first")):
            case = self.case(group, sizes, distribution, seed)
            if distribution in self.distributions and any(
                content.can_hold(mark, array.dtype, distribution)
                for array, content in _distributed(contents, distribution).items()
            ):
                cases.append(replace(case, mark=mark, name=form.format(case.name, mark)))
        return tuple(cases)

    def cases(self, seed: int) -> tuple[Case, ...]:
        """The derived cases and those by hand."""
        return derived(
            seed,
            self.sizes,
            [name for name in self.distributions if name not in IN_GRIDS],
            self.passed,
            self.cost,
            self.by_hand,
            streams=any(isinstance(parameter, StreamParameter) for parameter in self.parameters),
        )

    def loose(self, size: str) -> bool:
        """Whether the arrays of a call suit one with a smaller ``size``: no number of theirs is too large."""
        if size not in self.sizes or size in (*self.bounding, *self.steering) or self.fixed:
            return False
        longer = {**self.roomy, size: self.sizes[size].nearest(self.roomy[size] + 1)}
        return self.below(self.roomy) == self.below(longer)

    def below(self, sizes: Sizes) -> list[int]:
        """For each input array, the number that all its elements stay below."""
        return [content.below for content in self.contents_of(sizes).values() if isinstance(content, Content)]

    def shapes(self, sizes: Sizes) -> Mapping[str, tuple[int, ...]]:
        """The shape of every array; many cases are of the same sizes, and PyTorch takes a millisecond."""
        return self._shapes(tuple(sizes.items()))

    @cached_property
    def _shapes(self) -> Callable[[tuple[tuple[str, int], ...]], Mapping[str, tuple[int, ...]]]:
        return cache(lambda sizes: self._shapes_of(dict(sizes)))

    def _shapes_of(self, sizes: Sizes) -> Mapping[str, tuple[int, ...]]:
        shapes = self.shapes_as_written(sizes)
        if unknown := [output.name for output in self.outputs if output.name not in shapes]:
            raise FormulaError(
                f"the shape of {unknown[0]} is not known: let the formula return it, or outputs say it, as "
                f"in outputs=lambda n: {{{unknown[0]!r}: (n,)}}"
            )
        if strange := [name for name in shapes if name not in {array.name for array in self.arrays}]:
            raise FormulaError(f"outputs has {strange[0]}, which is no array that the launcher writes")
        for array in self.arrays:
            lanes = VECTORS[array.vector][1] if array.vector else 0
            if lanes and shapes[array.name][-1:] != (lanes,):
                raise FormulaError(
                    f"{array.name} holds {array.vector}, and its shape is {shapes[array.name]}: the last "
                    f"axis is that of their {lanes} numbers, as in real(n, {lanes})"
                )
        for parameter in self.parameters:
            if isinstance(parameter, StructParameter):
                _check_fields(parameter, shapes)
        return shapes

    def shapes_as_written(self, sizes: Sizes) -> Mapping[str, tuple[int, ...]]:
        """The shape of each array that the contents, the formula or ``outputs`` say."""
        arguments = self.contents_of(sizes)
        arrays = {array.name for array in self.arrays}
        read = {
            name: content.shape
            for name, content in arguments.items()
            if isinstance(content, Content) and name in arrays
        }
        if all(array.name in read for array in self.outputs):
            return read
        if self.shapes_of_outputs is None:
            shapes: Mapping[str, tuple[int, ...]] = {}
        elif set(inspect.signature(self.shapes_of_outputs).parameters) <= set(sizes):
            shapes = self.declared(sizes, sizes)
        else:  # as large as the usual content makes them
            shapes = self.inputs(Case("example", "", sizes, NORMAL, 1)).outputs
        return read | self.returned(sizes) | dict(shapes)

    def returned(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs that the formula returns; PyTorch takes a millisecond for them."""
        return self._returned(tuple(sizes.items()))

    @cached_property
    def _returned(self) -> Callable[[tuple[tuple[str, int], ...]], dict[str, tuple[int, ...]]]:
        return cache(lambda sizes: self._returned_of(dict(sizes)))

    def _returned_of(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        if self.formula is None or all(array.role is Role.INOUT for array in self.asked):
            return {}
        with torch.device("meta"):
            results = self.called(self.formula, self.empty(sizes))
        return {name: tuple(result.shape) for name, result in results.items()}

    def declared(self, sizes: Sizes, values: Arguments) -> dict[str, tuple[int, ...]]:
        """The shapes of outputs that ``outputs`` says, from the sizes, arrays and scalars in ``values``."""
        if self.shapes_of_outputs is None:
            return {}
        named = inspect.signature(self.shapes_of_outputs).parameters
        if unknown := [name for name in named if name not in values]:
            raise FormulaError(f"outputs asks for {unknown[0]}, which is no size, scalar or input")
        with explained("outputs", sizes):
            shapes = dict(self.shapes_of_outputs(**{name: values[name] for name in named}))
            return {name: tuple(map(int, shape)) for name, shape in shapes.items()}

    def empty(self, sizes: Sizes) -> dict[str, Any]:
        """Arguments of the formula, with arrays that have shapes and types but no content."""
        arguments = self.contents_of(sizes)
        arrays = {
            array.name: torch.empty(
                content.shape, dtype=getattr(torch, DTYPES[array.dtype].tensor), device="meta"
            )
            for array in self.arrays
            if isinstance(content := arguments.get(array.name), Content)
        }
        usual = Case("example", "", sizes, NORMAL, 1)
        _, numbers = self.drawn_together(generator(usual.seed), arguments, usual)
        return {**sizes, **self.scalars(arguments), **numbers, **arrays}

    def scalars(
        self, arguments: Mapping[str, Content | Number | float], case: Case | None = None
    ) -> dict[str, int | bool | float]:
        """The scalars that are no sizes, as the launcher gets them; in a case of a grid they may be drawn."""
        types = {scalar.name: scalar.ctype for scalar in self.scalar_parameters}
        random = generator(case.seed + 1) if case and case.group == MAGNITUDES else None
        scalars: dict[str, int | bool | float] = {}
        for name, value in arguments.items():
            if isinstance(value, Content):
                continue
            number = value
            if isinstance(number, Number):
                number = number.drawn(random) if random else number.usual
            scalars[name] = _of_type(types[name], number)
        return scalars

    def inputs(self, case: Case) -> Inputs:
        """The arrays of a case, its sizes and its other scalars."""
        random, arguments = generator(case.seed), self.contents_of(case.sizes)
        contents = self.of_arrays(arguments)
        distributed = _distributed(contents, case.distribution)
        linked, numbers = self.drawn_together(random, arguments, case)
        arrays = {
            array.name: linked[array.name]
            if array.name in linked
            else content.drawn(
                random,
                array.dtype,
                case.distribution if array in distributed else NORMAL,
            )
            for array, content in contents.items()
        }
        if case.mark is not None:
            for array, content in distributed.items():
                content.marked(arrays[array.name], case.mark, array.dtype, case.distribution)
        if case.moved:
            for array, content in contents.items():
                if content.move is not None and array.name not in linked:
                    content.move(generator(case.seed + case.moved), arrays[array.name])
        scalars = {**case.sizes, **self.scalars(arguments, case), **numbers}
        shapes = self.returned(case.sizes) | self.declared(case.sizes, {**scalars, **arrays})
        written = [array.name for array in self.outputs if array.role is Role.OUTPUT]
        return Inputs(arrays, {name: shapes[name] for name in written if name in shapes}, scalars)

    def of_arrays(self, arguments: Mapping[str, Content | Number | float]) -> dict[ArrayParameter, Content]:
        """The contents of the arrays that have one, of the arguments for some sizes."""
        return {
            array: content
            for array in self.arrays
            if isinstance(content := arguments.get(array.name), Content)
        }

    def drawn_together(
        self,
        random: np.random.Generator,
        arguments: Mapping[str, Content | Number | float],
        case: Case,
    ) -> tuple[dict[str, NDArray[Any]], dict[str, int | bool | float]]:
        """The arrays that are drawn together with others, and the scalars that follow from these."""
        linked = [value.linked for value in arguments.values() if isinstance(value, Content) and value.linked]
        drawn: dict[str, NDArray[Any]] = {}
        with explained("inputs", case.sizes):
            for draws in {id(draws): draws for draws in linked}.values():
                drawn |= draws.drawn(random, case.distribution)
        types = {scalar.name: scalar.ctype for scalar in self.scalar_parameters}
        numbers = {name: drawn.pop(name).item() for name in types if name in drawn}
        arrays = {
            array.name: _stored(array, drawn[array.name]) for array in self.arrays if array.name in drawn
        }
        for name, number in numbers.items():
            if types[name] not in {"float", "double"} and number != _of_type(types[name], number):
                raise FormulaError(
                    f"together draws {number:g} for {name}, which is no {types[name]}: round it"
                )
        return arrays, {name: _of_type(types[name], number) for name, number in numbers.items()}

    def called(self, formula: Formula, arguments: Arguments) -> dict[str, Tensor]:
        """The outputs of a formula by name."""
        arguments = grouped(arguments)
        parameters = inspect.signature(formula).parameters
        missing = [
            name
            for name, parameter in parameters.items()
            if name not in arguments and parameter.default is parameter.empty
        ]
        if missing:
            raise FormulaError(f"the formula asks for {missing[0]}, which is no input, scalar or size")
        with explained("the formula", {name: arguments[name] for name in self.sizes if name in arguments}):
            result = formula(**{name: arguments[name] for name in parameters if name in arguments})
        names = [output.name for output in self.asked]
        if isinstance(result, Mapping):
            outputs = flat(result)
        else:
            in_order = (result,) if isinstance(result, torch.Tensor) else result
            outputs = dict(zip(names, in_order, strict=False))
        some = isinstance(result, Mapping) and self.check is not None
        # A field in place that the formula does not return stays as it is.
        needed = [] if some else [output.name for output in self.asked if not self.is_kept(output)]
        if not set(needed) <= set(outputs) <= set(names):
            expected = ", ".join(names)
            raise FormulaError(f"the formula returns {', '.join(outputs)}; the outputs are {expected}")
        return outputs

    def is_kept(self, output: ArrayParameter) -> bool:
        """Whether an output is a field of a struct in place, of which a launcher may change others alone."""
        return output.role is Role.INOUT and "." in output.name

    @cached_property
    def example(
        self,
    ) -> tuple[Inputs, Mapping[str, Mapping[str, int]], Callable[[Inputs], Mapping[str, Any]]]:
        """Small inputs, the dimension of each size in each array, and the outputs in float64 of inputs."""
        sizes = {
            name: limits.nearest(FEW + number) for number, (name, limits) in enumerate(self.sizes.items())
        }
        sizes = fitted(self.sizes, sizes, ())
        steps = {name: limits.multiple_of for name, limits in self.sizes.items()}
        loose = [
            name
            for name, limits in self.sizes.items()
            if limits.multiple_of == 1 and limits.high > limits.low
            if not limits.at_most and name not in self.bounding
        ]
        axes = independence.axes(self.shapes, sizes, steps, loose)

        def outputs(inputs: Inputs) -> dict[str, NDArray[Any]]:
            return {name: tensor.numpy() for name, tensor in self.exact(self.values(inputs))[0].items()}

        return self.inputs(Case("example", "", sizes, NORMAL, 1)), axes, outputs

    @cached_property
    def slices(self) -> tuple[Slices, ...]:
        """The parts of the outputs that can be computed from parts of the inputs."""
        if self.fixed:  # a part of what belongs together may be no input
            return ()
        inputs, axes, outputs = self.example

        def long(size: str, sizes: Sizes) -> Inputs:
            few = {name: self.sizes[name].nearest(FEW) for name in axes}
            longest = {size: self.sizes[size].nearest(independence.PLACES)}
            all_sizes = fitted(self.sizes, {**self.least, **sizes, **few, **longest}, longest)
            return self.inputs(Case("example", "", all_sizes, NORMAL, 1))

        fewest = {name: self.least[name] for name in axes if self.loose(name)}
        return independence.slices(inputs, axes, outputs, fewest, long)

    def values(self, inputs: Inputs) -> Arguments:
        """The arguments that a formula may have, by name; floating-point arrays are float64."""
        return {**inputs.scalars, **self.wide(inputs)}

    def exact(self, values: Arguments) -> tuple[dict[str, Tensor], float]:
        """The outputs in float64, and how many operations of a right kernel make errors."""
        assert self.formula is not None
        with Rounding(None) as counter:
            outputs = self.in_rounding(self.formula, values, counter)
        return outputs, math.inf if self.also else counter.inexact

    def oracle(self, case: Case, inputs: Inputs) -> Mapping[str, Expectation]:
        """The formula in float64, and how far a right kernel may be from it."""
        if self.formula is None:
            return {}
        values = self.values(inputs)
        exact, inexact = self.exact(values)
        whole = inexact <= 1 or case.distribution != NORMAL or self.check is not None
        parts = () if whole else self.slices
        squares = (
            self.sampled(case, inputs, exact)
            if parts and all(_large(case, slices, exact) for slices in parts)
            else self.squares(values, exact, inexact, case.seed)
        )
        return {
            output.name: Expectation(_candidates(exact[output.name], squares.get(output.name), output.dtype))
            for output in self.outputs
            if output.name in exact
        }

    def squares(
        self, values: Arguments, exact: Mapping[str, Tensor], inexact: float, seed: int
    ) -> dict[str, Tensor]:
        """The mean square error of each element of the floating-point outputs; none where all are 0."""
        real = {name: value for name, value in exact.items() if value.is_floating_point()}
        if not real or not inexact or self.formula is None:
            return {}
        programs = [partial(self.inexact, formula, values) for formula in (self.formula, *self.also)]
        if inexact == 1:
            return steady_errors(programs[0], real, self.unit)
        return squared_errors(programs, real, seed, unit=self.unit)

    def sampled(self, case: Case, inputs: Inputs, exact: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The squared errors of large outputs, from some of their slices, which the case's seed draws.

        The largest of these errors stands for that of every other element: all are of one distribution.
        """
        squares, random = {}, generator(case.seed)
        for slices in self.slices:
            count = slices.count(case)
            elements = sum(exact[name].numel() for name in slices.outputs)
            length = max(1, count * SAMPLED_ELEMENTS // elements)
            first = int(random.integers(count - length + 1))
            part, window = slices.window(case, inputs, first, length)
            values = self.values(part)
            for name, square in self.squares(values, *self.exact(values), case.seed).items():
                if name in slices.outputs:
                    largest = float(square[window].nan_to_num(0.0, 0.0).max())
                    squares[name] = torch.full_like(exact[name], largest)
                    squares[name][first : first + length] = square[window]
        return squares

    def inexact(self, formula: Formula, values: Arguments, rounding: Rounding) -> dict[str, Tensor]:
        """The outputs of a formula that are of a floating-point type, by name, with errors."""
        outputs = self.in_rounding(formula, values, rounding)
        return {name: value for name, value in outputs.items() if value.is_floating_point()}

    def in_rounding(self, formula: Formula, values: Arguments, rounding: Rounding) -> dict[str, Tensor]:
        """The outputs of a formula whose arithmetic in Python is ``rounding``'s, too."""
        rough = {
            name: rounding.in_python(value) if isinstance(value, int | float) else value
            for name, value in values.items()
        }
        with ExactSizes():
            return self.called(rounding.with_constants(formula), rough)

    def wide(self, inputs: Inputs) -> dict[str, Tensor]:
        """The input arrays: float64 for all floating-point types."""
        wide = {}
        for array in self.arrays:
            data = inputs.arrays.get(array.name)
            if data is not None:
                dtype = DTYPES[array.dtype]
                tensor = _copied(data.astype(dtype.wider) if dtype.wider else data, exact=dtype.exact)
                wide[array.name] = tensor.bool() if array.dtype == "bool" else tensor
        return wide

    def minimal_bytes(self, case: Case) -> int:
        """Every input read and every output written once, and nothing of what is free afterwards written."""
        shapes = self.shapes(case.sizes)
        return sum(
            prod(shapes[array.name])
            * DTYPES[array.dtype].itemsize
            * ((array.role is not Role.OUTPUT) + (array.role is not Role.INPUT and not array.free))
            for array in self.arrays
        )

    def unfused(self, case: Case) -> tuple[Operation, ...]:
        """The baseline's program: one kernel for each operation of the formula.

        Where some operation has none, and nothing is timed, there is no baseline.
        """
        assert self.formula is not None
        drawn = self.scalars(self.contents_of(case.sizes), case)
        arguments = {**self.empty(case.sizes), **drawn}
        if any(output.dtype in {"float32", "float64"} for output in self.asked):  # halves are only read
            arguments |= {
                name: value.float()
                for name, value in arguments.items()
                if isinstance(value, torch.Tensor) and value.dtype in {torch.float16, torch.bfloat16}
            }
        arrays = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        types = {array.name: array.dtype for array in self.arrays}
        outputs = {output.name: output.dtype for output in self.asked}
        try:
            return traced(partial(self.called, self.formula, arguments), arrays, outputs, types)
        except FormulaError:
            if self.timed:
                raise
            return ()

    def fused(self, arrays: Mapping[str, Any], scalars: Mapping[str, float]) -> Callable[[], object]:
        """The formula as it stands, on a GPU."""
        formula = self.formula
        assert formula is not None

        def run() -> object:
            with torch.device(next(iter(arrays.values())).device):
                return tuple(self.called(formula, {**scalars, **arrays}).values())

        return run


def _elements(shapes: Sequence[_Growing], sizes: Sizes) -> list[int]:
    return [shape.elements(sizes) for shape in shapes]


def _numbered(shapes: Sequence[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {str(number): shape for number, shape in enumerate(shapes)}


def _distributed(
    contents: Mapping[ArrayParameter, Content], distribution: str
) -> dict[ArrayParameter, Content]:
    """The arrays that have the distribution of a case: those of the most dimensions that know it."""
    knowing = {
        array: content for array, content in contents.items() if distribution in content.draws(array.dtype)
    }
    most = max((len(content.shape) for content in knowing.values()), default=0)
    return {array: content for array, content in knowing.items() if len(content.shape) == most}


def _stored(array: ArrayParameter, drawn: NDArray[Any]) -> NDArray[np.generic]:
    """The numbers of ``together`` as elements of an array; integers have to be the same there."""
    dtype = DTYPES[array.dtype]
    with np.errstate(invalid="ignore", over="ignore"):
        stored = drawn.astype(dtype.storage)
    changed = stored != drawn
    if dtype.exact and changed.any():
        raise FormulaError(
            f"together draws {drawn[changed][0]:g} for {array.name}, which {dtype.spellings[0]} does not "
            "hold: draw integers of its range, or round them"
        )
    return stored


def _of_type(ctype: str, number: float) -> int | bool | float:
    """A number as a scalar of this type holds it."""
    if ctype == "float":
        return float(np.float32(number))
    if ctype == "double":
        return float(number)
    return bool(number) if ctype == "bool" else int(number)


def _budget(most: int) -> Budget:
    """The usual one; less for formulas that allow few elements: the octaves of two sizes span four times."""
    usual = Budget()
    clipped = {name: min(most // 4, elements) for name, elements in asdict(usual).items()}
    if most >= MOST_ELEMENTS:
        clipped["on_gpu"] = usual.on_gpu
    return Budget(**clipped)


def _large(case: Case, slices: Slices, exact: Mapping[str, Tensor]) -> bool:
    """Whether the outputs of ``slices`` are those of the whole case, and too many to try each element."""
    complete = all(len(exact[name]) == slices.count(case) for name in slices.outputs)
    return complete and sum(exact[name].numel() for name in slices.outputs) >= MANY_ELEMENTS


def _copied(data: NDArray[Any], *, exact: bool) -> Tensor:
    """A tensor with these numbers, as float64 unless they are ``exact``."""
    if data.flags.carray and data.dtype.kind in "fiu":  # usually true, and PyTorch has threads
        tensor = torch.from_numpy(data)
        return tensor.clone() if exact else tensor.to(torch.float64, copy=True)
    return torch.from_numpy(np.array(data, None if exact else np.float64))


def _candidates(exact: Tensor, square: Tensor | None, dtype: str) -> tuple[Candidate, ...]:
    """What a right kernel may store for ``exact`` numbers whose mean square errors are ``square``."""
    stored = DTYPES[dtype].storage
    if DTYPES[dtype].exact:
        stored_values = exact.numpy().astype(stored)
        return (Candidate(stored_values, np.zeros(stored_values.shape)),)
    values, precision = exact.double(), bounds.PRECISIONS[dtype]
    errors = torch.zeros_like(values) if square is None else square.sqrt().mul_(bounds.LUCK)
    low, high = values.aminmax()
    most = torch.finfo(getattr(torch, dtype)).max
    if -most <= low and high <= most and math.isfinite(errors.sum()):  # usually true, and cheaper
        return (Candidate(values.numpy(), bounds.allowed(errors, values, precision).numpy()),)
    expected, error = values.numpy(), errors.numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = expected.astype(stored).astype(np.float64)
    finite = np.isfinite(rounded)
    beyond = np.copysign(np.inf, expected) if np.isinf(np.float64(stored.type(np.inf))) else np.nan
    infinite = np.where(finite | np.isnan(expected), expected, beyond)
    allowed = bounds.allowed(
        np.where(finite, np.nan_to_num(error), 0.0), np.where(finite, expected, 0.0), precision
    )
    unclamped = Candidate(infinite, np.where(finite, allowed, 0.0))
    if not DTYPES[dtype].clamps:
        return (unclamped,)
    clamped = expected.clip(-most, most)
    return Candidate(clamped, bounds.allowed(np.nan_to_num(error, posinf=0.0), clamped, precision)), unclamped


def _check_fields(parameter: StructParameter, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse fields of which some are in more structs than others, or of other shapes than theirs."""
    leads = set()
    for field, array in zip(parameter.struct.fields, parameter.arrays, strict=False):
        shape = shapes[array.name]
        lead = shape[: len(shape) - len(field.shape)]
        leads.add(lead)
        if (*lead, *field.shape) != shape or len(leads) > 1:
            axes = "".join(f", {length}" for length in field.shape)
            raise FormulaError(
                f"{array.name} has the shape {shape}: all fields of {parameter.struct.name} need that of the "
                f"array of structs, then their own, as in real(n{axes})"
            )


def _of_structs(name: str, struct: Struct, role: Role | None) -> StructParameter:
    if role is None:
        strange = [
            field.name
            for field in struct.fields
            if field.shape or "." in field.name or DTYPES[field.dtype].storage.kind not in "iuf"
        ] + [field.name for field in struct.fields if DTYPES[field.dtype].sums == "float32"]
        if strange:
            raise FormulaError(
                f"{name}: {strange[0]} of {struct.name} is no float, double, bool or integer, and a struct "
                "that is passed by value holds nothing else"
            )
    return StructParameter(name, struct, role)


def _launchers(texts: Sequence[str], structs: Mapping[str, Struct]) -> tuple[Declared, ...]:
    """The launchers of these declarations; each may take what an earlier one returns."""
    launchers: list[Declared] = []
    for text in texts:
        match = _LAUNCHER.fullmatch(text)
        if match is None:
            raise FormulaError(f"this is no launcher: {text!r}")
        returned, name, parameters = match.groups(default="")
        handles = {launcher.returns for launcher in launchers if launcher.returns}
        launchers.append(
            Declared(
                name,
                tuple(
                    _parameter(parameter, structs, handles)
                    for parameter in parameters.split(",")
                    if parameters.strip()
                ),
                _returned(name, returned.removeprefix("struct ").strip(), structs),
            )
        )
    return tuple(launchers)


def _returned(name: str, kind: str, structs: Mapping[str, Struct]) -> str:
    """What a launcher returns a pointer to, which no array holds."""
    of_arrays = {*structs, *VECTORS, *(text for known in DTYPES.values() for text in known.spellings)}
    if kind in of_arrays:
        raise FormulaError(
            f"{name} returns a {kind}*, which arrays are, too: let it return a pointer to a struct of the "
            "submission's own, as Plan*, or void*"
        )
    return kind


def _parameter(text: str, structs: Mapping[str, Struct], handles: Collection[str]) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise FormulaError(f"this is no parameter of a launcher: {text.strip()!r}")
    const, ctype, pointer, name = match.groups()
    if ctype == "cudaStream_t":
        return StreamParameter(name)
    ctype = ctype.removeprefix("struct ")
    if pointer and ctype in handles:
        return HandleParameter(name, ctype)
    if ctype in structs:
        return _of_structs(name, structs[ctype], (Role.INPUT if const else Role.OUTPUT) if pointer else None)
    if not pointer:
        if ctype not in _CTYPES:
            raise FormulaError(f"{name}: a scalar is {', '.join(_CTYPES)}, not {ctype}")
        return ScalarParameter(name, _CTYPES[ctype])
    role = Role.INPUT if const else Role.OUTPUT
    if ctype in VECTORS:
        dtype, _ = VECTORS[ctype]
        return ArrayParameter(name, role, dtype, vector=ctype)
    for known in DTYPES.values():
        if ctype in known.spellings:
            return ArrayParameter(name, role, known.name)
    known_types = ", ".join([*(known.spellings[0] for known in DTYPES.values()), "float4 and its like"])
    raise FormulaError(
        f"{name}: no array has elements of type {ctype}; there are {known_types}, and the names in structs="
    )
