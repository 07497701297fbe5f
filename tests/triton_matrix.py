"""The matrix of kernels in Triton on a GPU: is the verdict of each case that of the simulator?

    python tests/triton_matrix.py [--only TEXT ...] [--json FILE] [--seconds S] [--jobs N]

References, variants and mutants in Triton of every assignment are judged as submissions are, on the GPU with
the simulator beside it, and without measuring their speed. With ``--json`` each result is kept, and a run
that was stopped goes on.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import torch
from resumed import GPU_SESSIONS, add_file, add_options, results, write

from grader.assignments.assignment import load
from grader.assignments.mutants import VARIANTS, table
from grader.languages.known import files
from grader.records.record import PerformanceResult
from grader.records.verdict import Verdict
from grader.run.bench import Bench
from grader.run.grading import GradingRequest, grade
from grader.run.judging import Measured, ProblemJudge
from grader.run.kernel import PreparedKernel
from grader.run.options import GradingOptions
from grader.soundness.kernels import kernel_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.devices.device import Device
    from grader.judge.correctness.cases import Judged
    from grader.problems.problem import Problem
    from grader.records.record import CaseResult
    from grader.run.prepared import Prepared

ASSIGNMENTS = Path(__file__).parents[1] / "assignments"
SEED = 20_240_607
NOT_RUN = "not run:"

_bench = Bench()  # of a worker process,
_turn: AbstractContextManager[object] = nullcontext()  # and what keeps a GPU from being crowded


@dataclass(frozen=True)
class Entry:
    """A kernel in Triton that answers a problem."""

    assignment: str
    problem: str
    name: str
    right: bool
    file: str
    text: str

    @property
    def id(self) -> str:
        """Where it is, in words."""
        return f"{self.assignment} {self.problem} {self.name}"


@dataclass(frozen=True)
class Result:
    """What both devices said of an entry.

    Attributes:
        id: of the entry.
        verdict: of the problem, without its speed.
        as_it_must: whether a right one passes and a wrong one fails.
        cases: that ran on both devices.
        differing: those whose verdict in the record is another one than the simulator's.
        by_the_gpu_alone: those on which the GPU's own verdict is another one.
        seconds: of the grading.
    """

    id: str
    verdict: str
    as_it_must: bool
    cases: int
    differing: tuple[str, ...]
    by_the_gpu_alone: tuple[str, ...]
    seconds: float


def entries() -> Iterator[Entry]:
    """The references, variants and mutants in Triton."""
    for path in sorted(ASSIGNMENTS.glob("*/reference_triton")):
        assignment = load(str(path.parent))
        mutants = table(assignment, "triton")
        for name, problem in kernel_problems(assignment).items():
            if "triton" not in assignment.rules.languages_of(name):
                continue
            (file,) = files(problem, ("triton",))
            texts = {"reference": (path / file).read_text()}
            variants = (assignment.folder / VARIANTS / name).glob("*.py")
            texts |= {f"variant {one.stem}": one.read_text() for one in sorted(variants)}
            for kind, text in texts.items():
                yield Entry(assignment.id, name, kind, True, file, text)
            for mutant in mutants:
                if mutant.problem == name:
                    text = mutant.text(assignment)
                    yield Entry(assignment.id, name, f"mutant {mutant.id}", False, file, text)


def _apart(sim: CaseResult, other: CaseResult) -> str:
    said = [
        f"{one.verdict} {'; '.join(filter(None, (one.message, one.diagnosis)))[:160]}".rstrip()
        for one in (other, sim)
    ]
    return f"{sim.name}: {said[0]} | on the sim {said[1]}"


def judged(entry: Entry) -> Result:
    """Judge an entry on both devices.

    Raises:
        RuntimeError: it could not be graded.
    """
    began = time.monotonic()
    pairs: list[tuple[CaseResult, CaseResult, CaseResult]] = []
    combined = PreparedKernel.combined

    def beside(self: PreparedKernel, judged: Judged, checked: Judged, device: str) -> tuple[CaseResult, ...]:
        both = combined(self, judged, checked, device)
        pairs.extend(zip(judged.cases, checked.cases, both, strict=True))
        return both

    run_cases = ProblemJudge._run_cases

    def in_turn(self: ProblemJudge, device: Device, answer: Prepared, problem: Problem) -> Judged:
        with _turn if device.kind == "gpu" else nullcontext():
            return run_cases(self, device, answer, problem)

    not_measured = Measured(PerformanceResult(verdict=Verdict.NOT_MEASURED, target=1.0))
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(PreparedKernel, "combined", beside),
        mock.patch.object(ProblemJudge, "_measured", return_value=not_measured),
        mock.patch.object(ProblemJudge, "_run_cases", in_turn),
    ):
        (Path(folder) / entry.file).write_text(entry.text)
        request = GradingRequest(
            path=Path(folder),
            assignment=load(str(ASSIGNMENTS / entry.assignment)),
            problems=(entry.problem,),
            options=GradingOptions("gpu"),
            seed=SEED,
        )
        record = grade(request, bench=_bench)
    (result,) = record.problems
    if record.error or result.verdict is Verdict.INFRA_ERROR:
        raise RuntimeError(f"{entry.id}: {record.error or result.message}")
    ran = [pair for pair in pairs if not any((one.message or "").startswith(NOT_RUN) for one in pair)]
    return Result(
        entry.id,
        result.verdict,
        (result.verdict is not Verdict.FAIL) == entry.right,
        len(ran),
        tuple(_apart(sim, both) for _, sim, both in ran if both.verdict is not sim.verdict),
        tuple(_apart(sim, gpu) for gpu, sim, _ in ran if gpu.verdict is not sim.verdict),
        round(time.monotonic() - began, 1),
    )


def _start(turn: AbstractContextManager[object]) -> None:
    global _bench, _turn
    torch.set_num_threads(1)
    _bench, _turn = Bench(remembers=True, problems_at_once=1), turn


def _read(file: Path | None) -> dict[str, Result]:
    if file is None or not file.exists():
        return {}
    lists = ("differing", "by_the_gpu_alone")
    rows = json.loads(file.read_text())
    return {row["id"]: Result(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows}


def table_of(seen: Sequence[Result]) -> str:
    """A row for each assignment, and the cases that differ."""
    lines = [
        "| assignment | kernels | as they must | cases | other verdicts in the record | by the GPU alone |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in dict.fromkeys(one.id.partition(" ")[0] for one in seen):
        mine = [one for one in seen if one.id.startswith(f"{name} ")]
        cells = (
            len(mine),
            sum(one.as_it_must for one in mine),
            sum(one.cases for one in mine),
            sum(len(one.differing) for one in mine),
            sum(len(one.by_the_gpu_alone) for one in mine),
        )
        lines.append(f"| `{name}` | {' | '.join(map(str, cells))} |")
    for one in seen:
        if not one.as_it_must:
            lines.append(f"{one.id}: {one.verdict}")
        if one.differing or one.by_the_gpu_alone:
            lines.append(
                f"{one.id}: {len(one.differing)} cases differ in the record, "
                f"{len(one.by_the_gpu_alone)} by the GPU alone"
            )
            lines += [f"    {text}" for text in dict.fromkeys((*one.differing, *one.by_the_gpu_alone))]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Judge every kernel in Triton on a GPU and on the simulator."
    )
    add_options(parser)
    add_file(parser)
    options = parser.parse_args()
    wanted = [one for one in entries() if not options.only or any(text in one.id for text in options.only)]
    done = _read(options.json)
    todo = [one for one in wanted if one.id not in done]
    new = results(todo, judged, _start, jobs=options.jobs, turns=GPU_SESSIONS, seconds=options.seconds)
    for result in new:
        done[result.id] = result
        if options.json is not None:
            write(options.json, map(asdict, done.values()))
    seen = [done[one.id] for one in wanted if one.id in done]
    print(table_of(seen))
    if len(seen) < len(wanted):
        print(f"{len(wanted) - len(seen)} are left: run again with the same --json")
    right = all(one.as_it_must and not one.differing for one in seen)
    return 0 if right and len(seen) == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
