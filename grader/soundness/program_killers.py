"""The cases of a right program, as what finds wrong versions of it: each is built and run by itself.

Layer: imports problems, devices, languages, judge, run, and of this folder builds, killers, kernels, ptx and
trial.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from grader.assignments.rules import AssignmentError
from grader.devices.device import Memory
from grader.judge.correctness.programs import PROGRAMS
from grader.languages.cuda.executable import build_executable
from grader.languages.cuda.libraries import replacements
from grader.languages.jobs import compile_limits
from grader.problems.program import ProgramProblem
from grader.run.judging import excuses
from grader.run.program import recipe
from grader.soundness.builds import PTX_ONLY
from grader.soundness.killers import SEED, Finding, Status
from grader.soundness.ptx import of_program
from grader.soundness.trial import trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.languages.cache import Cache
    from grader.languages.language import Build
    from grader.run.bench import Machine
    from grader.soundness.kernels import RightKernel
    from grader.soundness.mutants import AutomaticMutant


_FOR_EDITS = ("-include", "cuda_fp16.h")  # which some edits need


class ProgramKillers:
    """The cases of a right program.

    Args:
        assignment: that it belongs to.
        program: the right one.
        machine: that builds and runs it.
        cache: where builds are kept.

    Raises:
        AssignmentError: it is not right.
        MachineError: the machine failed; here and in any method.
    """

    def __init__(self, assignment: Assignment, program: RightKernel, machine: Machine, cache: Cache) -> None:
        assert isinstance(program.problem, ProgramProblem)
        self._problem = program.problem
        self._machine = machine
        self._cache = cache
        self._libraries = replacements(self._problem.uses, machine.toolchain, machine.sandbox, cache)
        self._seconds = assignment.rules.limits.run_seconds_sim
        self.cases = self._problem.cases(SEED)
        self._excuses = excuses(assignment.rules, self._problem.id, self.cases)
        self._kills: Counter[str] = Counter()
        self._reported_anyway: frozenset[str] = frozenset()
        (build,) = self.built([program.files])
        if build.artefact is None:
            raise AssignmentError(f"{program.id} does not compile: {build.log}")
        self._original = of_program(build.artefact)
        outcome = self._tried(build.artefact)
        if outcome.status is Status.KILLED:
            raise AssignmentError(f"{program.id} is not right: {outcome.case}: {outcome.text}")
        self._reported_anyway = frozenset({outcome.text} - {""})

    def built(self, texts: Sequence[Mapping[str, str]]) -> list[Build]:
        """Versions of the program, each from its files."""
        return [self._built({name: text.encode() for name, text in files.items()}) for files in texts]

    def _built(self, contents: Mapping[str, bytes]) -> Build:
        problem, machine = self._problem, self._machine
        matched = contents.keys() - problem.given.keys()
        return build_executable(
            recipe(problem, contents, matched, self._libraries, _FOR_EDITS),
            machine.toolchain,
            machine.sandbox,
            compile_limits(),
            self._cache,
            PTX_ONLY,
        )

    def finding(self, mutant: AutomaticMutant, build: Build) -> Finding:
        """Judge a mutant, up to the first case that it fails."""
        if build.artefact is None:
            return Finding(Status.NOT_COMPILED, text=build.log.partition("\n")[0])
        if mutant.on_device and of_program(build.artefact) == self._original:
            return Finding(Status.EQUIVALENT)
        return self._tried(build.artefact)

    def _tried(self, program: Path) -> Finding:
        reported: dict[str, str] = {}
        device = self._machine.device
        opened = partial(device.open_program, program, self._libraries)
        cases = sorted(self.cases, key=lambda case: -self._kills[case.name])
        with trial(self._problem, opened, Memory.DEVICE, self._seconds, self._excuses, PROGRAMS) as attempt:
            for schedules in (device.schedules[:1], device.schedules[1:]):
                for case in cases:
                    shown = attempt.run(case, schedules)
                    if shown.wrong:
                        self._kills[case.name] += 1
                        return Finding(Status.KILLED, case.name, shown.wrong[:300], len(cases))
                    reported = {**dict.fromkeys(shown.reported, case.name), **reported}
        for text, name in sorted(reported.items()):
            if text not in self._reported_anyway:
                return Finding(Status.REPORTED, name, text, len(cases))
        return Finding(Status.SURVIVED, launched=len(cases))
