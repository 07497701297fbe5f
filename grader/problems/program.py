"""What a program problem is: a program of the student's, what it is run with, and what has to come out.

A case becomes a ``Run``: arguments, input files, and what is expected of each output. It comes from a
function of the assignment, with content drawn from the case's seed, or from a folder of files
(``folder.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.problem import Case, Inputs, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.problem import Expectation, Parameter

STDOUT = "stdout"
"""The name of an output that is what the program prints, and of no file."""

FIXED = "fixed"
"""The distribution of a case whose content stands in files: it does not follow the seed."""

FRESH = "fresh"
"""The distribution of a case whose content is drawn from the seed."""


@dataclass(frozen=True)
class Text:
    """Text that has to come out exactly, but for white space at the ends of lines and behind the last one."""

    text: str


@dataclass(frozen=True)
class Words:
    """Text that has to come out word by word: numbers as numbers, everything else exactly.

    A number x may differ from what is expected, e, by ``atol`` + ``rtol`` |e|.
    """

    text: str
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Numbers:
    """An array that has to come out.

    Attributes:
        values: what is expected, as an oracle has it; integers have to be met exactly unless there is a
            tolerance.
        format: by its name in ``formats.FORMATS``.
        rtol: relative tolerance, as of ``Words``.
        atol: absolute tolerance, likewise.
        allowed: the largest absolute error of each element instead, as a bound is derived.
    """

    values: NDArray[np.generic]
    format: str = "numbers"
    rtol: float = 0.0
    atol: float = 0.0
    allowed: NDArray[np.float64] | None = None


Expected = Text | Words | Numbers


@dataclass(frozen=True)
class Run:
    """One run of a program.

    Attributes:
        expected: what has to come out, by the name of the file, or ``STDOUT``.
        arguments: behind the program's name.
        files: that lie in its working folder, by name.
        stdin: what it reads from there.
        environment: further variables.
        exit_code: that it has to end with.
    """

    expected: Mapping[str, Expected]
    arguments: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0


def _no_arrays(_: Case) -> Inputs:
    return Inputs({}, {}, {})


def _no_outputs(_: Case, __: Inputs) -> Mapping[str, Expectation]:
    return {}


def _untimed(_: int) -> tuple[Case, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class ProgramProblem(Problem):
    """A program that is built of the student's files and the assignment's own.

    Attributes:
        run: what a case runs the program with, and what has to come out. The same case gives the same run.
        further: the student's files beside ``file`` that are compiled, too.
        given: the assignment's own files by name, which lie beside the student's when these are compiled.
            Those whose names end in .cu, .cpp, .cc or .c are compiled, too.
        flags: of nvcc, in addition.
        make: the target of a Makefile among these files that is the program; "" where nvcc compiles them.
        ignored: regular expressions; lines of text outputs in which one is found are not compared.
        kernels: whether a run counts only if it launches a kernel.
    """

    run: Callable[[Case], Run]
    further: tuple[str, ...] = ()
    given: Mapping[str, bytes] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    make: str = ""
    ignored: tuple[str, ...] = ()
    kernels: bool = True
    timing_cases: Callable[[int], tuple[Case, ...]] = _untimed
    inputs: Callable[[Case], Inputs] = _no_arrays
    oracle: Callable[[Case, Inputs], Mapping[str, Expectation]] = _no_outputs

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The function with which the program begins; it may be one of the assignment's files."""
        return ("main",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """None that an assignment knows the meaning of."""
        return ()

    @property
    def space(self) -> None:
        """Nobody says which inputs a program may have."""
        return

    @property
    def sources(self) -> tuple[str, ...]:
        """The student's files that are compiled."""
        return (self.file, *self.further)

    @property
    def libraries(self) -> tuple[str, ...]:
        """None: all files together make one program."""
        return ()


def program(
    *,
    id: str,  # noqa: A002 - the name of the field
    file: str,
    run: Callable[[Case], Run] | None = None,
    sizes: Mapping[str, Sequence[Mapping[str, int]]] | None = None,
    fixed: Mapping[str, Mapping[str, Run]] | None = None,
    further: Sequence[str] = (),
    given: Mapping[str, bytes] | None = None,
    flags: Sequence[str] = (),
    make: str = "",
    ignored: Sequence[str] = (),
    kernels: bool = True,
) -> ProgramProblem:
    """A program problem with cases from a function, from files, or from both.

    Args:
        id: name of the problem's module.
        file: the student's file.
        run: what a case with some ``sizes`` runs; ``numpy.random.default_rng(case.seed)`` draws its content.
        sizes: by group of cases, the sizes of each case.
        fixed: by group of cases, runs that are always the same, by the name of the case; see ``folder.py``.
        further: see ``ProgramProblem``, as the rest.
        given: likewise.
        flags: likewise.
        make: likewise.
        ignored: likewise.
        kernels: likewise.

    Raises:
        ValueError: there is no case, or there are two of the same name.
    """
    drawn, runs = dict(sizes or {}), dict(fixed or {})
    by_name = {name: one for cases in runs.values() for name, one in cases.items()}
    names = [*by_name, *(_name(numbers) for listed in drawn.values() for numbers in listed)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{id} has two cases {min(twice)!r}")
    if not names:
        raise ValueError(f"{id} has no cases")
    if bool(drawn) != (run is not None):
        raise ValueError(f"{id}: sizes of cases need the function run, and it needs them")

    def cases(seed: int) -> tuple[Case, ...]:
        fresh = [
            Case(_name(numbers), group, dict(numbers), FRESH, _seed(seed, at))
            for at, (group, numbers) in enumerate(
                (group, numbers) for group, listed in drawn.items() for numbers in listed
            )
        ]
        always = [Case(name, group, {}, FIXED, 0) for group, listed in runs.items() for name in listed]
        return (*always, *fresh)

    def case_run(case: Case) -> Run:
        if case.distribution == FIXED:
            return by_name[case.name]
        assert run is not None
        return run(case)

    return ProgramProblem(
        id=id,
        file=file,
        groups=tuple(dict.fromkeys((*runs, *drawn))),
        cases=cases,
        run=case_run,
        further=tuple(further),
        given=dict(given or {}),
        flags=tuple(flags),
        make=make,
        ignored=tuple(ignored),
        kernels=kernels,
    )


def _name(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {number:,}" for name, number in sizes.items())


def _seed(seed: int, number: int) -> int:
    """The seed of a case: every order of execution adds a little to it, for content of its own."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
