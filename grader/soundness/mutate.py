"""Which automatic mutants of an assignment's right kernels its cases find.

A mutant is judged on one problem after the other. Cases that launch none of the kernels that it changes are
left out, as long as it changes no code of the host; of a tier, cases outside of its interval.

Layer: imports assignments, run, and of this folder builds, killers, kernels, mutants and ptx.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import torch

from grader.languages.cache import Cache
from grader.problems.program import ProgramProblem
from grader.records.record import write_text
from grader.run.bench import find_machine
from grader.soundness.builds import TOGETHER, Builder
from grader.soundness.kernels import entry_points, right_kernels, right_programs
from grader.soundness.killers import SEED, Finding, Killers, Status
from grader.soundness.mutants import mutants, sample, tier_mutants
from grader.soundness.program_killers import ProgramKillers
from grader.soundness.ptx import code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.problems.problem import Case
    from grader.soundness.builds import Version
    from grader.soundness.kernels import RightKernel
    from grader.soundness.mutants import AutomaticMutant

    _Built = Callable[[Sequence[Mapping[str, str]]], Sequence[Any]]
    _Found = Callable[[AutomaticMutant, Any], Finding]

_FINAL = frozenset({Status.KILLED, Status.NOT_COMPILED})
"""Once the cases of one problem show one of these, those of other problems are not run."""


@dataclass(frozen=True)
class Judgement:
    """A mutant with its findings so far: one for each right kernel that was judged with it, by id."""

    mutant: AutomaticMutant
    findings: Mapping[str, Finding] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The status of the mutant over all its right kernels."""
        statuses = {finding.status for finding in self.findings.values()}
        if self.pending:
            return Status.NOT_JUDGED
        return min(statuses, key=[*Status].index, default=Status.NOT_EXECUTED)

    @property
    def pending(self) -> tuple[RightKernel, ...]:
        """The right kernels that are still to be judged with its edit."""
        if any(finding.status in _FINAL for finding in self.findings.values()):
            return ()
        return tuple(kernel for kernel in self.mutant.kernels if kernel.id not in self.findings)


@dataclass(frozen=True)
class Plan:
    """The choice of mutants to judge, and the time for it.

    Attributes:
        only: words, one of which is in the key, the place or the operator of a mutant; none for all.
        per_file: how many mutants of each file, or tiers of each right kernel, at most; None for all.
        seed: of the sample and of tiers.
        seconds: after these no further mutants are begun.
        file: where findings are kept and taken from; None for nowhere.
        sandbox: the option of ``grade``.
        tiers: whether to judge tiers, instead of mutants that are wrong everywhere.
    """

    only: tuple[str, ...] = ()
    per_file: int | None = None
    seed: int = 0
    seconds: float = float("inf")
    file: Path | None = None
    sandbox: str = "auto"
    tiers: bool = False

    def mutants(self, kernels: Sequence[RightKernel]) -> tuple[AutomaticMutant, ...]:
        """The mutants of ``kernels`` that this plan judges."""
        chosen = tier_mutants(kernels, self.seed) if self.tiers else mutants(kernels)
        if self.only:
            chosen = tuple(mutant for mutant in chosen if any(word in _words(mutant) for word in self.only))
        return chosen if self.per_file is None else sample(chosen, self.per_file, self.seed)


def mutate(
    assignment: Assignment, plan: Plan, progress: Callable[[str], None] = lambda _text: None
) -> tuple[Judgement, ...]:
    """Judge the mutants of an assignment's right kernels.

    Raises:
        AssignmentError: a right kernel fails.
        MachineError: the machine failed.
    """
    end = time.monotonic() + plan.seconds
    torch.set_num_threads(1)  # PyTorch's own threads would spin while the simulator works
    kernels = (*right_kernels(assignment), *right_programs(assignment))
    stored = _Stored(assignment, plan.file)
    judgements = {mutant.key: stored.judgement(mutant) for mutant in plan.mutants(kernels)}
    for mutant in [
        judgement.mutant
        for judgement in judgements.values()
        if judgement.pending and _for_a_gpu(judgement.mutant)
    ]:
        judgements[mutant.key] = Judgement(mutant, {mutant.kernels[0].id: Finding(Status.GPU_ALONE)})
    machine = find_machine("sim", plan.sandbox, assignment.rules.limits)
    launchers = entry_points(assignment)
    builder = Builder(machine, Cache())

    def opened(kernel: RightKernel) -> tuple[_Built, _Found]:
        if isinstance(kernel.problem, ProgramProblem):
            killing = ProgramKillers(assignment, kernel, machine, builder.cache)
            return killing.built, killing.finding
        killers = Killers(assignment, kernel, machine.device, builder, launchers)
        return killers.built, partial(finding, killers)

    for kernel in kernels:
        todo = [judgement.mutant for judgement in judgements.values() if kernel in judgement.pending]
        if not todo or time.monotonic() > end:
            continue
        progress(f"{kernel.id}: what its cases run")
        built_of, found_of = opened(kernel)

        def build(
            group: Sequence[AutomaticMutant], built_of: _Built = built_of, kernel: RightKernel = kernel
        ) -> Sequence[Any]:
            return built_of([mutant.of(kernel) for mutant in group])

        with ThreadPoolExecutor(1) as pool:  # the next ones are built while these are judged
            groups = [todo[begin : begin + TOGETHER] for begin in range(0, len(todo), TOGETHER)]
            building = [pool.submit(build, group) for group in groups[:1]]
            for number, group in enumerate(groups):
                built = building[number].result()
                if time.monotonic() > end:
                    break
                building += [pool.submit(build, later) for later in groups[number + 1 : number + 2]]
                for mutant, version in zip(group, built, strict=True):
                    progress(f"{kernel.id}: {mutant.title}")
                    before = judgements[mutant.key]
                    findings = {**before.findings, kernel.id: found_of(mutant, version)}
                    judgements[mutant.key] = replace(before, findings=findings)
                stored.write(judgements.values())
    return tuple(judgements.values())


def _for_a_gpu(mutant: AutomaticMutant) -> bool:
    """Whether no input that the simulator can take meets the interval of a tier."""
    if mutant.tier is None:
        return False
    space = mutant.kernels[0].problem.space
    return space is not None and not mutant.tier.interval.in_budget(space)


def _words(mutant: AutomaticMutant) -> str:
    return f"{mutant.key} {mutant.title} {mutant.edit.operator}"


def finding(
    killers: Killers, mutant: AutomaticMutant, version: Version, among: Sequence[Case] | None = None
) -> Finding:
    """Judge a mutant by the cases of a right kernel.

    Args:
        killers: the right kernel with its cases.
        mutant: to judge.
        version: the mutant's build.
        among: the cases to run; all if it is None.

    Raises:
        DeviceError: the machine failed.
    """
    if version.library is None:
        return Finding(Status.NOT_COMPILED, text=version.log.partition("\n")[0])
    original, cases = killers.original, killers.cases if among is None else tuple(among)
    changed = code(version.library, version.number).differing(original.code)
    if mutant.on_device and not changed:
        return Finding(Status.EQUIVALENT)
    if mutant.tier is not None:
        return killers.tried_within(version, mutant.tier.interval)
    if mutant.on_device:
        cases = tuple(case for case in cases if original.ran[case.name].kernels & changed)
        if not cases:
            return Finding(Status.NOT_EXECUTED, text="kernels that no case launches")
    result = killers.tried(version, cases)
    if result.status is Status.SURVIVED and mutant.on_device and _idle(killers, mutant, cases):
        return Finding(Status.NOT_EXECUTED, text="a line that no case runs")
    return result


def _idle(killers: Killers, mutant: AutomaticMutant, cases: Sequence[Case]) -> bool:
    """Whether the lines that a mutant changes have instructions, and no case runs one of them."""
    file, (first, last) = PurePath(mutant.file).name, mutant.lines
    lines = {(file, line) for line in range(first, last + 1)} & killers.original.code.lines
    return bool(lines) and not any(killers.original.ran[case.name].lines & lines for case in cases)


class _Stored:
    """The file that findings are kept in.

    A finding is taken from there as long as the edited file is the same. That a mutant survived counts only
    while the assignment is the same, too; that it was killed, while there is such a case.
    """

    def __init__(self, assignment: Assignment, file: Path | None) -> None:
        self._file = file
        self._assignment = assignment
        self._names = {
            name: {case.name for case in problem.cases(SEED)} for name, problem in assignment.problems.items()
        }
        rows = json.loads(file.read_text()) if file is not None and file.exists() else []
        self._rows = {row["key"]: row for row in rows}

    def judgement(self, mutant: AutomaticMutant) -> Judgement:
        """The findings about a mutant that the file has and that still count."""
        row = self._rows.get(mutant.key)
        if row is None or not mutant.kernels or row.get("sha256") != mutant.text_sha256:
            return Judgement(mutant)
        findings = {
            name: Finding(**{**stored, "status": Status(stored["status"])})
            for name, stored in row["findings"].items()
        }
        problems = {kernel.id: kernel.problem.id for kernel in mutant.kernels}
        same = row["assignment"] == self._assignment.sha256

        def counts(name: str, finding: Finding) -> bool:
            if finding.status is Status.KILLED:
                return finding.case in self._names[problems[name]]
            return same or finding.status in {Status.EQUIVALENT, Status.NOT_COMPILED}

        current = {
            name: finding for name, finding in findings.items() if name in problems and counts(name, finding)
        }
        return Judgement(mutant, current)

    def write(self, judgements: Iterable[Judgement]) -> None:
        """Write these judgements, with those of other mutants that the file has, in one step."""
        if self._file is None:
            return
        for judgement in judgements:
            if judgement.findings:
                self._rows[judgement.mutant.key] = {
                    "key": judgement.mutant.key,
                    "title": judgement.mutant.title,
                    "operator": judgement.mutant.edit.operator,
                    "status": judgement.status,
                    "sha256": judgement.mutant.text_sha256,
                    "assignment": self._assignment.sha256,
                    "findings": {name: asdict(finding) for name, finding in judgement.findings.items()},
                }
        write_text(json.dumps([*self._rows.values()], indent=1), self._file)
