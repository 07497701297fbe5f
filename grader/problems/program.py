"""What a program problem is: a program of the student's, what it is run with, and what has to come out.

A case becomes a ``Run``: arguments, input files, and what is expected of each output. It comes from a
function of the assignment, with content drawn from the case's seed, or from a folder of files
(``folder.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.problem import Case, Inputs, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.problem import Checker, Expectation, Parameter

STDOUT = "stdout"
"""The name of an output that is what the program prints, and of no file."""

FIXED = "fixed"
"""The distribution of a case whose content stands in files: it does not follow the seed."""

TIMED = "timed"
"""The group of the cases whose speed is measured."""

USUAL_LIBRARIES = ("thrust", "cub")
"""What a program may use where its assignment does not say."""

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
        outputs: further files that it writes, which only a checker looks at; ``STDOUT`` is always there.
    """

    expected: Mapping[str, Expected]
    arguments: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0
    outputs: tuple[str, ...] = ()


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
        patterns: of the names of still further ones beside these, such as ``*.cu``; there may be none.
        given: the assignment's own files by name, which lie beside the student's when these are compiled.
            Those whose names end in .cu, .cpp, .cc or .c are compiled, too.
        flags: of nvcc, in addition.
        make: the target of a Makefile among these files that is the program; "" where nvcc compiles them.
        cmake: likewise of a CMakeLists.txt.
        folders: where in the project a student's file lies, by its name; the others lie at the top.
        ignored: regular expressions; lines of text outputs in which one is found are not compared.
        kernels: whether a run counts only if it launches a kernel.
        uses: names of the libraries of CUDA that the student's files may use.
        checker: as of every problem. A ``ValueError``, which reading numbers may raise, means that an output
            cannot be read.
        rival: files of the assignment that take the place of the student's in the program that its speed is
            compared with, by path; with none of them the reference's do. They may use all libraries.
        region: a regular expression for what the program prints of the time that counts, in a group named
            ``s``, ``ms`` or ``us``; "" where the time of its process does.
    """

    run: Callable[[Case], Run]
    further: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    given: Mapping[str, bytes] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    make: str = ""
    cmake: str = ""
    folders: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    kernels: bool = True
    uses: tuple[str, ...] = USUAL_LIBRARIES
    rival: Mapping[str, bytes] = field(default_factory=dict)
    region: str = ""
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
    def files(self) -> tuple[str, ...]:
        """The student's files, and the patterns of further ones."""
        return (*self.sources, *self.patterns)

    def matching(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of ``names`` that are compiled because of a pattern."""
        return tuple(
            name for name in sorted(names) if any(fnmatchcase(name, pattern) for pattern in self.patterns)
        )

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
    patterns: Sequence[str] = (),
    given: Mapping[str, bytes] | None = None,
    flags: Sequence[str] = (),
    make: str = "",
    cmake: str = "",
    ignored: Sequence[str] = (),
    kernels: bool = True,
    libraries: Sequence[str] = USUAL_LIBRARIES,
    checker: Checker | None = None,
    on: Mapping[str, str] | None = None,
    timed: Sequence[Mapping[str, int]] = (),
    timed_fixed: Mapping[str, Run] | None = None,
    rival: Mapping[str, bytes] | None = None,
    region: str = "",
) -> ProgramProblem:
    """A program problem with cases from a function, from files, or from both.

    Args:
        id: name of the problem's module.
        file: the student's file; in a project its path, of which the student's may have another folder.
        run: what a case with some ``sizes`` runs; ``numpy.random.default_rng(case.seed)`` draws its content.
        sizes: by group of cases, the sizes of each case.
        fixed: by group of cases, runs that are always the same, by the name of the case; see ``folder.py``.
        further: see ``ProgramProblem``, as the rest.
        patterns: likewise.
        given: likewise.
        flags: likewise.
        make: likewise.
        cmake: likewise.
        ignored: likewise.
        kernels: likewise.
        libraries: those that it ``uses``.
        checker: likewise.
        on: by group of cases, the only kind of device, ``sim`` or ``gpu``, that runs them.
        timed: the sizes of further cases, whose speed is measured on a GPU.
        timed_fixed: runs that are always the same, likewise, by the name of the case.
        rival: see ``ProgramProblem``.
        region: likewise.

    Raises:
        ValueError: there is no case, or there are two of the same name.
    """
    drawn, runs, devices = dict(sizes or {}), dict(fixed or {}), dict(on or {})
    if unknown := [group for group in devices if group not in drawn and group not in runs]:
        raise ValueError(f"{id}: on names {unknown[0]!r}, which is no group of its cases")
    by_name = {name: one for cases in runs.values() for name, one in cases.items()} | dict(timed_fixed or {})
    names = [name for cases in runs.values() for name in cases]
    names += [_name(numbers) for listed in drawn.values() for numbers in listed]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{id} has two cases {min(twice)!r}")
    if not names:
        raise ValueError(f"{id} has no cases")
    if bool(drawn or timed) != (run is not None):
        raise ValueError(f"{id}: sizes of cases need the function run, and it needs them")

    def cases(seed: int) -> tuple[Case, ...]:
        fresh = [
            Case(_name(numbers), group, dict(numbers), FRESH, _seed(seed, at), on=devices.get(group, ""))
            for at, (group, numbers) in enumerate(
                (group, numbers) for group, listed in drawn.items() for numbers in listed
            )
        ]
        always = [
            Case(name, group, {}, FIXED, 0, on=devices.get(group, ""))
            for group, listed in runs.items()
            for name in listed
        ]
        return (*always, *fresh)

    def timing_cases(seed: int) -> tuple[Case, ...]:
        fresh = [
            Case(_name(numbers), TIMED, dict(numbers), FRESH, _seed(seed, at))
            for at, numbers in enumerate(timed, len(names))
        ]
        return (*(Case(name, TIMED, {}, FIXED, 0) for name in timed_fixed or {}), *fresh)

    def case_run(case: Case) -> Run:
        if case.distribution == FIXED:
            return by_name[case.name]
        assert run is not None
        return run(case)

    paths = [PurePosixPath(path) for path in (file, *further)]
    return ProgramProblem(
        id=id,
        file=paths[0].name,
        groups=tuple(dict.fromkeys((*runs, *drawn))),
        cases=cases,
        run=case_run,
        further=tuple(path.name for path in paths[1:]),
        patterns=tuple(patterns),
        folders={path.name: str(path.parent) for path in paths if len(path.parts) > 1},
        given=dict(given or {}),
        flags=tuple(flags),
        make=make,
        cmake=cmake,
        ignored=tuple(ignored),
        kernels=kernels,
        uses=tuple(libraries),
        checker=checker,
        rival=dict(rival or {}),
        region=region,
        timing_cases=timing_cases,
    )


def _name(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {number:,}" for name, number in sizes.items())


def _seed(seed: int, number: int) -> int:
    """The seed of a case: every order of execution adds a little to it, for content of its own."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
