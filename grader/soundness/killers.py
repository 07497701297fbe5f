"""The cases of one right kernel, as what finds wrong versions of it.

A version is judged no further than to the first case that it fails. Those cases come first that have found
most versions for what they cost, and all run in program order before any runs in another one.

Layer: imports problems, devices, judge, run, and of this folder builds, intervals, kernels, ptx and trial.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from pathlib import PurePath
from random import Random
from typing import TYPE_CHECKING

from grader.assignments.rules import AssignmentError
from grader.devices.device import Memory, Schedule
from grader.judge.correctness.remembered import remembered
from grader.problems.problem import KernelProblem
from grader.run.judging import excuses
from grader.soundness.intervals import BUDGET
from grader.soundness.ptx import code
from grader.soundness.trial import trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from grader.assignments.assignment import Assignment
    from grader.devices.device import Device
    from grader.problems.problem import Case, Space
    from grader.soundness.builds import Builder, Version
    from grader.soundness.intervals import Interval
    from grader.soundness.kernels import RightKernel
    from grader.soundness.ptx import Code, Line
    from grader.soundness.trial import Shown, Trial

SEED = 1
"""Of the cases that versions are judged on."""

_SECONDS_OF_AN_INPUT = 3.0
"""Of processor time that a call may take on an input which is no case."""


class Status(StrEnum):
    """What became of a mutant; of several problems, the first here counts that occurs."""

    KILLED = "killed"
    REPORTED = "reported"
    SURVIVED = "survived"
    NOT_JUDGED = "not judged"
    NOT_COMPILED = "does not compile"
    NOT_EXECUTED = "not executed"
    EQUIVALENT = "same PTX"
    UNSEEN = "no input shows it"
    GPU_ALONE = "for a GPU alone"


@dataclass(frozen=True)
class Finding:
    """The result of judging a mutant by the cases of one problem.

    Attributes:
        status: what became of it.
        case: the name of the case that it fails, or in which it is reported; of a tier that survives, of an
            input that would find it.
        text: what was wrong or reported there; of a mutant that no case runs, what is not run.
        launched: how many cases launch a kernel that it changes.
    """

    status: Status
    case: str = ""
    text: str = ""
    launched: int = 0


@dataclass(frozen=True)
class Ran:
    """The kernels and lines that one case of a right kernel ran.

    Attributes:
        kernels: their mangled names, as in version 0.
        lines: that instructions of these belong to.
        instructions: of all warps.
    """

    kernels: frozenset[str]
    lines: frozenset[Line]
    instructions: int


@dataclass(frozen=True)
class Original:
    """A right kernel as it is.

    Attributes:
        code: its PTX.
        memory: which pointers it takes.
        ran: what each case ran, by the case's name.
    """

    code: Code
    memory: Memory
    ran: Mapping[str, Ran]


class Killers:
    """The cases of a right kernel.

    Args:
        assignment: that it belongs to.
        kernel: the right one.
        device: that runs it.
        builder: of its versions.
        entry_points: of all launchers that its files may hold.

    Raises:
        AssignmentError: it is not right.
        MachineError: the machine failed; here and in any method.
    """

    def __init__(
        self,
        assignment: Assignment,
        kernel: RightKernel,
        device: Device,
        builder: Builder,
        entry_points: Iterable[str],
    ) -> None:
        self._kernel = kernel
        self._device = device
        self._builder = builder
        self._entry_points = tuple(entry_points)
        problem = remembered(kernel.problem)
        assert isinstance(problem, KernelProblem)
        self._problem = problem
        self.cases = problem.cases(SEED)
        self._excuses = excuses(assignment.rules, problem.id, self.cases)
        self._seconds = assignment.rules.limits.run_seconds_sim
        self._kills: Counter[str] = Counter()
        self.original, self._version = self._run_original()

    def built(self, texts: Sequence[Mapping[str, str]]) -> list[Version]:
        """Versions of the kernel, each from its files."""
        alone = [replace(self._kernel, files=files).alone(self._entry_points) for files in texts]
        return self._builder.versions(self._problem, alone)

    def tried(self, version: Version, cases: Sequence[Case]) -> Finding:
        """Whether one of ``cases`` finds a version, which has to have a library."""
        return self._judged(self._shown(version, sorted(cases, key=self._worth)), len(cases))

    def _judged(self, shown: Iterable[tuple[Case, Shown]], launched: int) -> Finding:
        """What cases find, one after the other until one fails: these may follow from what others showed."""
        reported: dict[str, str] = {}  # findings that cost no points: the first case of each
        for case, outcome in shown:
            if outcome.wrong:
                return self._killed(case, outcome.wrong, launched)
            reported = {**dict.fromkeys(outcome.reported, case.name), **reported}
        for text, name in sorted(reported.items()):
            if text not in self._reported_anyway:
                return Finding(Status.REPORTED, name, text, launched)
        return Finding(Status.SURVIVED, launched=launched)

    def tried_within(self, version: Version, interval: Interval) -> Finding:
        """Whether a case in an interval finds a version that is right outside of it.

        Of one that survives, inputs in the interval are tried, which are no cases: it is wrong if the right
        kernel passes one of them and the version does not. Where the right kernel fails one, because it takes
        too long, no larger ones are tried.
        """
        cases = [case for case in self.cases if _meets(interval, case)]
        finding = self.tried(version, cases) if cases else Finding(Status.SURVIVED)
        if finding.status is not Status.SURVIVED:
            return finding
        most = BUDGET
        for case in self._inputs_within(interval):
            elements = self._space.elements(case.sizes)
            wrong = self._wrong_in(version, case) if elements <= most else ""
            if wrong and not self._wrong_in(self._version, case):
                return Finding(Status.SURVIVED, case.name, wrong[:300], len(cases))
            most = elements - 1 if wrong else most
        return Finding(Status.UNSEEN, launched=len(cases))

    def written(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Mapping[str, NDArray[np.generic]]]]:
        """The arrays that the right kernel leaves in each case, in program order."""
        with self._trial(self._version, self.original.memory) as trial:
            for case in cases:
                answer = trial.run(case, (Schedule.PROGRAM,)).answers[-1]
                if answer.usable:
                    yield case, answer.arrays

    @property
    def _space(self) -> Space:
        assert self._problem.space is not None, "tiers are made of problems that have a space alone"
        return self._problem.space

    def _inputs_within(self, interval: Interval) -> Iterator[Case]:
        """Cases in an interval, of which the smaller ones have every distribution that may be there."""
        space = self._space
        sizes = interval.drawn(space, Random(str(interval)))
        for distribution in space.distributions:
            usual = distribution == space.distributions[0]
            for chosen in sizes if usual else sizes[:: len(sizes) // 2 or 1][:2]:
                if space.legal(chosen, distribution):
                    yield replace(space.case(str(interval), chosen, distribution, SEED), orders=1)

    def _wrong_in(self, version: Version, case: Case) -> str:
        """The fault that one case shows, in program order and within a few seconds."""
        seconds = min(self._seconds, _SECONDS_OF_AN_INPUT)
        with self._trial(version, self.original.memory, seconds) as trial:
            return trial.run(case, (Schedule.PROGRAM,)).wrong

    def _shown(self, version: Version, cases: Sequence[Case]) -> Iterator[tuple[Case, Shown]]:
        """What each case shows of a version: of all in program order first, then in the other ones."""
        first, *further = self._device.schedules
        with self._trial(version, self.original.memory) as trial:
            for case in cases:
                yield case, trial.run(case, (first,))
            for case in cases:
                orders = further if case.orders is None else further[: case.orders - 1]
                if orders:
                    yield case, trial.run(replace(case, orders=None), orders)

    @cached_property
    def _reported_anyway(self) -> frozenset[str]:
        """The findings of the right kernel itself, which cost no points."""
        shown = self._shown(self._version, self.cases)
        return frozenset(finding for _, outcome in shown for finding in outcome.reported)

    def _killed(self, case: Case, wrong: str, launched: int) -> Finding:
        self._kills[case.name] += 1
        return Finding(Status.KILLED, case.name, wrong[:300], launched)

    def _worth(self, case: Case) -> float:
        """Less for a case that finds more versions with fewer instructions."""
        return (self.original.ran[case.name].instructions + 10_000) / (self._kills[case.name] + 1)

    def _run_original(self) -> tuple[Original, Version]:
        (version,) = self.built([self._kernel.files])
        if version.library is None:
            raise AssignmentError(f"{self._kernel.id} does not compile: {version.log}")
        faults = []
        for memory in Memory:
            with self._trial(version, memory) as trial:
                ran, wrong = _covered(trial, self.cases)
            if not wrong:
                return Original(code(version.library, version.number), memory, ran), version
            faults.append(f"with {memory} pointers {wrong}")
        raise AssignmentError(f"{self._kernel.id} is not right: {'; '.join(faults)}")

    def _trial(
        self, version: Version, memory: Memory, seconds: float | None = None
    ) -> AbstractContextManager[Trial]:
        assert version.library is not None
        problem = version.answering(self._problem)
        opened = partial(self._device.open, version.library, problem.entry_points)
        return trial(problem, opened, memory, seconds or self._seconds, self._excuses)


def _meets(interval: Interval, case: Case) -> bool:
    """Whether a case, or the call that is queued behind it, is in an interval."""
    return interval.holds(case.sizes) or (bool(case.queued) and interval.holds({**case.sizes, **case.queued}))


def _covered(trial: Trial, cases: Iterable[Case]) -> tuple[dict[str, Ran], str]:
    """What each case of the right kernel runs, and the fault of the first one that fails."""
    ran: dict[str, Ran] = {}
    for case in cases:
        shown = trial.run(case, (Schedule.PROGRAM,))
        if shown.wrong:
            return ran, f"{case.name}: {shown.wrong}"
        counts = [count for answer in shown.answers for count in answer.counts if count.instructions]
        ran[case.name] = Ran(
            frozenset(count.kernel for count in counts),
            frozenset((PurePath(count.file).name, count.line) for count in counts),
            sum(count.instructions for count in counts),
        )
    return ran, ""
