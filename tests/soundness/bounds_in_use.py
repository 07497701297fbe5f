"""How much of their bounds right kernels use, and what half precision inside of them makes of that.

    PYTHONPATH=tests python -m soundness.bounds_in_use FOLDER [PROBLEM ...]

prints the table of docs/first_kernels.md, on the simulator: the largest error of each output in all cases, in
units of what is allowed there. Of the reference and the variants as they are, and of the reference where it
rounds a number to 11 bits, in up to eight places.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from grader.assignments.assignment import load
from grader.devices.device import Memory, Schedule
from grader.judge.correctness.remembered import remembered
from grader.languages.cache import Cache
from grader.problems.problem import KernelProblem, Role
from grader.run.bench import find_machine
from grader.soundness.builds import TOGETHER, Builder
from grader.soundness.check import in_eleven_bits
from grader.soundness.kernels import entry_points, right_kernels
from grader.soundness.killers import SEED
from grader.soundness.trial import trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grader.assignments.assignment import Assignment
    from grader.run.bench import Machine

    Share = tuple[float, str]  # of what is allowed, and where

HEAD = (
    "| problem | output | right kernels use | most in | half precision inside |",
    "|---|---|--:|---|--:|",
)


@dataclass(frozen=True)
class Lab:
    """What runs versions of the kernels of an assignment."""

    assignment: Assignment
    machine: Machine

    def shares(self, problem: KernelProblem, texts: Mapping[str, Mapping[str, str]]) -> dict[str, Share]:
        """The largest share of each output in all cases, of the versions by name that can be built."""
        found: list[tuple[str, Share]] = []
        names, builder = [*texts], Builder(self.machine, Cache())
        for begin in range(0, len(names), TOGETHER):
            group = names[begin : begin + TOGETHER]
            for name, version in zip(
                group, builder.versions(problem, [texts[one] for one in group]), strict=True
            ):
                if version.library is None:
                    continue
                asked = version.answering(problem)
                opened = partial(self.machine.device.open, version.library, asked.entry_points)
                seconds = self.assignment.rules.limits.run_seconds_sim
                with trial(asked, opened, Memory.DEVICE, seconds, {}) as one:
                    for case in problem.cases(SEED):
                        found += [
                            (
                                output.name,
                                (float(output.max_error) / float(output.allowed), f"{name}, {case.name}"),
                            )
                            for output in one.run(case, (Schedule.PROGRAM,)).outputs
                            if output.allowed
                        ]
        return {output: max(share for name, share in found if name == output) for output in dict(found)}


def table(assignment: Assignment, only: Sequence[str]) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield from HEAD
    lab = Lab(assignment, find_machine("sim", "auto", assignment.rules.limits))
    launchers, kernels = entry_points(assignment), right_kernels(assignment)
    for reference, edits in in_eleven_bits([one for one in kernels if one.name == "reference"]):
        problem = remembered(reference.problem)
        assert isinstance(problem, KernelProblem)
        if only and problem.id not in only:
            continue
        mine = [one for one in kernels if one.problem.id == problem.id]
        right = lab.shares(problem, {one.name.rpartition("/")[2]: one.alone(launchers) for one in mine})
        half = lab.shares(problem, {edit.key: edit.of(reference) for edit in edits})
        for output in (array.name for array in problem.arrays if array.role is not Role.INPUT):
            share, where = right.get(output, (0.0, ""))
            rounded = f"{half[output][0]:.3g}x" if output in half else ""
            cells = (f"{share:.2f}", where, rounded) if where else ("exact", "", "")
            yield f"| `{problem.id}` | `{output}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in table(load(sys.argv[1]), sys.argv[2:]):
        print(line, flush=True)  # noqa: T201 - what the command is for
