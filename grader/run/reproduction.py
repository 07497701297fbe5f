"""One case of a kernel problem outside of the grader: its arrays, and what the submission makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import ArrayArgument, Call
from grader.judge.correctness.calls import case_call
from grader.judge.correctness.comparison import compare
from grader.problems.dtypes import DTYPES
from grader.problems.module import ModuleProblem
from grader.problems.problem import KernelProblem
from grader.records.mangled import own_names_in
from grader.records.verdict import Verdict
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions
from grader.run.own_program import files, variable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from grader.assignments.assignment import Assignment
    from grader.devices.device import Answer, Memory
    from grader.problems.problem import Case, Inputs, Problem
    from grader.records.record import CaseResult, Record

    Arrays = Mapping[str, NDArray[np.generic]]


class ReproductionError(Exception):
    """A case cannot be reproduced; the text says why, and what to do."""


@dataclass(frozen=True)
class Reproduction:
    """A case, and what a submission makes of it.

    Attributes:
        problem: as the submission's launcher takes it.
        case: with the seed of the content that was wrong, or of the last one.
        seed: of the run.
        source: the submission's file with the launcher.
        call: of the launchers, with their arguments.
        inputs: the arrays that the launchers are given, by name, but for those that are null; a row has its
            own name where a call gets one. An output has all bits set, which is NaN in floating-point types.
        expected: what is right, by output: float64, or the output's own type where it is of integers.
        allowed: the largest absolute error of each element of an output, infinite where any finite number is
            right.
        actual: what the launcher made; empty where it ended before.
        wrong: which elements are wrong, by output that was made.
        result: what the grader says of it.
    """

    problem: KernelProblem
    case: Case
    seed: int
    source: Path
    call: Call
    inputs: Arrays
    expected: Arrays
    allowed: Arrays
    actual: Arrays
    wrong: Mapping[str, NDArray[np.bool_]]
    result: CaseResult

    @property
    def verdict(self) -> str:
        """What is wrong, in one line."""
        counts = [
            f"{name}: {np.count_nonzero(wrong):,} of {wrong.size:,} wrong"
            for name, wrong in self.wrong.items()
        ]
        told = "; ".join(counts) or own_names_in(self.result.message) or self.result.verdict
        return f"{self.case.name}: {told}"

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write arrays, a program and a Makefile; returns the names of the files.

        Raises:
            ReproductionError: the folder holds other files, or cannot be written.
        """
        texts = files(self.problem, self.case, self.seed, self.source, self.call, folder)
        arrays = {variable(name): array for name, array in self.inputs.items()}
        for kind in ("expected", "allowed", "actual"):
            outputs = self._by_row(getattr(self, kind))
            arrays |= {f"{variable(name)}_{kind}": array for name, array in outputs.items()}
        names = (*texts, *(f"{name}.npy" for name in arrays))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(path.suffix != ".npy" and path.name not in texts for path in folder.iterdir()):
                raise ReproductionError(f"{folder} holds other files. Name a new folder.")
            for name, text in texts.items():
                (folder / name).write_text(text, encoding="utf-8")
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", _plain(array), allow_pickle=False)
        except OSError as error:
            raise ReproductionError(f"{folder} cannot be written: {error.strerror}.") from error
        return names

    def _by_row(self, outputs: Arrays) -> dict[str, NDArray[np.generic]]:
        """``outputs``, with the rows of those of which each call gets a row."""
        return {
            part: row
            for name, array in outputs.items()
            for part, row in (
                [(f"{name}[{number}]", row) for number, row in enumerate(array)]
                if f"{name}[0]" in self.inputs
                else [(name, array)]
            )
        }


@dataclass
class _Calls:
    """The calls of one case: it keeps the first that is wrong, or else the last."""

    kept: tuple[Problem, Memory, Case, CaseResult, Answer] | None = None

    def observe(
        self, problem: Problem, memory: Memory, case: Case, result: CaseResult, answer: Answer
    ) -> None:
        """Look at a call."""
        if self.kept is None or self.kept[3].verdict is Verdict.PASS:
            self.kept = problem, memory, case, result, answer


def is_reproducible(problem: Problem) -> bool:
    """Whether a program can call what ``problem`` asks for: launchers that take no structs."""
    return (
        isinstance(problem, KernelProblem) and not isinstance(problem, ModuleProblem) and not problem.structs
    )


def reproduce(
    path: Path,
    assignment: Assignment,
    problem: str,
    case: str,
    seed: int,
    *,
    device: str = "auto",
    sandbox: str = "auto",
    memory: str = "auto",
) -> tuple[Reproduction, Record]:
    """Run one case of a submission, and keep its arrays; the record of that run comes, too.

    Args:
        path: the folder of the submission.
        assignment: that the submission answers.
        problem: id of one of its problems.
        case: the name of one of the problem's cases with this seed.
        seed: of the run that the report is of.
        device: as the option of ``grader grade``.
        sandbox: likewise.
        memory: likewise.

    Raises:
        ReproductionError: there is no such case, students do not see it yet, or nothing could be called.
    """
    defined = assignment.problems.get(problem)
    if defined is None or not is_reproducible(defined):
        raise ReproductionError(
            f"{problem} asks for no calls of launchers on arrays, so that no program can make them. "
            "Grade the case alone: grader grade . --problem ID --case NAME"
        )
    chosen = next((each for each in defined.cases(seed) if each.name == case), None)
    if chosen is None:
        raise ReproductionError(
            f"{problem} has no case {case!r} with the seed {seed}, from which sizes are drawn. Take both "
            "from one report."
        )
    hidden = assignment.rules.hidden
    if hidden is not None and chosen.group in hidden.groups and datetime.now(UTC) < hidden.until:
        raise ReproductionError(f"{case!r} is hidden until {hidden.until:%Y-%m-%d %H:%M %z}.")
    calls = _Calls()
    request = GradingRequest(
        path=path,
        assignment=assignment,
        problems=(problem,),
        options=GradingOptions(device, sandbox, memory),
        seed=seed,
        cases=(case,),
        observe=calls.observe,
    )
    record = grade(request)
    if calls.kept is None:
        raise ReproductionError(_why_not(record))
    taken, pointers, content, result, answer = calls.kept
    assert isinstance(taken, KernelProblem)
    launcher, inputs = taken.launcher(content), taken.inputs(content)
    call = case_call(taken, content, inputs, 0.0, pointers)
    judged = _judged(taken, content, inputs, answer)
    return (
        Reproduction(
            problem=launcher,
            case=content,
            seed=seed,
            source=path / taken.file,
            call=call,
            inputs={
                argument.name: _before(argument)
                for argument in call.arguments
                if isinstance(argument, ArrayArgument) and not argument.null
            },
            result=result,
            expected=judged.expected,
            allowed=judged.allowed,
            actual=judged.actual,
            wrong=judged.wrong,
        ),
        record,
    )


def _why_not(record: Record) -> str:
    """Why the launcher was not called at all."""
    (problem,) = record.problems
    reasons = (record.error, record.submission.error, problem.message, problem.build and problem.build.log)
    return next((reason for reason in reasons if reason), "the case was not run on this machine")


@dataclass(frozen=True)
class _Judged:
    """See the fields of ``Reproduction``."""

    expected: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    allowed: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    actual: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    wrong: dict[str, NDArray[np.bool_]] = field(default_factory=dict)


def _judged(problem: KernelProblem, case: Case, inputs: Inputs, answer: Answer) -> _Judged:
    """The outputs against what is right, or that alone where the launcher did not return."""
    judged = _Judged()
    for name, expectation in problem.oracle(case, inputs).items():
        first = expectation.candidates[0]
        right: NDArray[np.generic] = first.expected
        bound = first.allowed
        if answer.usable:
            judged.actual[name] = made = answer.arrays[name]
            comparison = compare(name, expectation, made)
            judged.wrong[name] = comparison.wrong
            nearest, bound = comparison.expected, comparison.bound
            # Float64 cannot hold all large integers, which the first candidate does.
            right = np.where(nearest == right.astype(np.float64), right, nearest.astype(right.dtype))
        judged.expected[name] = right if right.dtype.kind == "f" else right.astype(_stored(problem, name))
        judged.allowed[name] = np.broadcast_to(bound, right.shape)
    return judged


def _before(argument: ArrayArgument) -> NDArray[np.generic]:
    """What an array holds before the call."""
    if argument.data is not None:
        return argument.data
    storage = DTYPES[argument.dtype].storage
    return np.full((*argument.shape, storage.itemsize), 0xFF, np.uint8).view(storage)[..., 0]


def _stored(problem: KernelProblem, name: str) -> np.dtype[np.generic]:
    return DTYPES[next(array.dtype for array in problem.arrays if array.name == name)].storage


def _plain(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The array in a type that NumPy can save; the bits of those that it has not, as bfloat16."""
    own = array.dtype.isbuiltin != 1
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}") if own else array
