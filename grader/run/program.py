"""A submission's answer to a program problem: the program that is built of its files, and how it is run."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from grader.devices import condition
from grader.devices.device import Memory
from grader.judge.correctness.cases import beside
from grader.judge.correctness.programs import PROGRAMS
from grader.judge.timing.measure import PRECISE, UNTIL_CLEAR, Measured, unmeasured
from grader.judge.timing.processes import ProgramTiming, measure_programs
from grader.languages.cache import Cache
from grader.languages.cuda.compile import reachable
from grader.languages.cuda.executable import Recipe, build_executable, unbuilt
from grader.languages.cuda.imports import violations
from grader.languages.cuda.libraries import LIBRARIES, inclusions, needed, real, replacements
from grader.languages.cuda.machine_code import machine_code
from grader.languages.cuda.toolchain import ToolchainError
from grader.languages.jobs import compile_limits
from grader.problems.program import ProgramProblem
from grader.records.verdict import Verdict
from grader.run.kind import ProblemKind
from grader.run.preparation import NotJudgedError, build_result, check_files, forbidden_use
from grader.run.scoring import goal
from grader.submissions.submission import collect
from grader.submissions.trees import SubmissionError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.judge.correctness.cases import Judged
    from grader.languages.cuda.libraries import Inclusion
    from grader.languages.cuda.toolchain import Toolchain
    from grader.languages.language import Build
    from grader.problems.problem import Case
    from grader.records.record import BuildResult, CaseResult
    from grader.run.preparation import Material
    from grader.run.prepared import Conduct
    from grader.submissions.submission import Submission


@dataclass(frozen=True)
class PreparedProgram:
    """A program that can be run; see ``Prepared``.

    Attributes:
        problem: what it answers.
        entry: its points.
        executable: that was built.
        libraries: what takes the place of CUDA's libraries on the simulator.
        toolchain: that built it, which has them.
        notes: what of the submission does not count.
        build: how it was built.
        memory: of pointers, of which a program gets none.
    """

    problem: ProgramProblem
    entry: ProblemPoints
    executable: Path
    libraries: tuple[Path, ...]
    toolchain: Toolchain
    notes: tuple[str, ...]
    build: BuildResult
    memory: Memory = Memory.DEVICE

    def lacks(self, _case: Case) -> str:
        """Nothing: every case runs the same program."""
        return ""

    def open(self, device: Device) -> Session:
        """Get ready to run it."""
        return _opened(device, self.executable, self.libraries, self.toolchain)

    def combined(self, judged: Judged, checked: Judged, device: str) -> tuple[CaseResult, ...]:
        """The cases of the GPU called ``device``, with what the simulator saw of them."""
        seen = {case.name: case for case in checked.cases}
        both = [case for case in judged.cases if case.name in seen]
        together = {case.name: case for case in (*checked.cases, *judged.cases)}
        together |= {case.name: case for case in beside(both, [seen[case.name] for case in both], device)}
        return tuple(together.values())

    def code_bytes(self, conduct: Conduct) -> tuple[int | None, int | None]:
        """Bytes of the program's machine code; the reference is built where they are demanded."""
        own, asked = _code_bytes(self.executable), (demand.measure for demand in self.entry.demands)
        if "code" not in asked:
            return own, None
        try:
            reference = _built_reference(conduct, self.problem)
        except (NotJudgedError, ToolchainError):
            return own, None
        return own, None if reference.artefact is None else _code_bytes(reference.artefact)

    def foresee(self, gpu: Gpu, conduct: Conduct) -> None:
        """Begin nothing: a process starts within a second."""

    def forget(self) -> None:
        """Nothing was begun."""

    def measured(self, gpu: Gpu, _baseline: Mapping[Path, tuple[str, ...]], conduct: Conduct) -> Measured:
        """Run it beside the reference of the assignment."""
        material = conduct.material
        try:
            reference = _opened(gpu, *_reference(conduct, self.problem), self.toolchain)
            submission = self.open(gpu)
        except (NotJudgedError, ToolchainError) as error:
            return unmeasured(Verdict.INFRA_ERROR, self.entry.target, f"the reference: {error}")
        timing = ProgramTiming(
            problem=self.problem,
            sessions={"A": reference, "B": submission},
            seed=material.seed,
            seconds=material.assignment.rules.limits.run_seconds_gpu,
            progress=conduct.begin,
            look=condition.look,
            alone=lambda: gpu.sharing.alone(conduct.waiting),
            effort=PRECISE if material.precise else UNTIL_CLEAR,
        )
        found = measure_programs(timing, goal(self.entry))
        return replace(found, performance=found.performance.model_copy(update={"measure": "over_reference"}))


def prepare(conduct: Conduct, entry: ProblemPoints, problem: ProgramProblem) -> PreparedProgram:
    """The program of a submission for ``problem``.

    Raises:
        NotJudgedError: a file is missing, it did not compile or link, or it uses what it may not use.
    """
    material = conduct.material
    check_files(material, problem)
    contents, matched = _contents(material.submission, problem), material.submission.matched
    refused = next(inclusions(_of_student(contents, problem, matched), problem.uses), None)
    if refused is not None and not refused.library.linked:
        raise NotJudgedError(_refusal(refused, problem))
    conduct.begin(f"{entry.id}: compiling {', '.join(problem.sources)}")
    build = _built(conduct, problem, contents, matched)
    result = build_result(build)
    ignored = _overridden(problem, contents, material.submission.files.keys())
    notes = (f"{' and '.join(ignored)}: the assignment's was taken, not yours",) if ignored else ()
    if build.artefact is None:
        if refused is not None:
            raise NotJudgedError(_refusal(refused, problem), result)
        why = unbuilt(build, problem.uses, contents)
        verdict = Verdict.FAIL if why.decides else Verdict.NOT_MEASURED
        remedied = result.model_copy(update={"remedy": why.remedy or "".join(f"{note}." for note in notes)})
        raise NotJudgedError("; ".join((why.message, *notes)), remedied, verdict)
    libraries, toolchain = _replacements(material, problem), material.machine.toolchain
    allowed = (*material.assignment.rules.allowed_imports, *_libraries(problem.flags))
    allowed = (*allowed, *(re.escape(library.name) for library in libraries))
    if reasons := violations(build.artefact, contents, allowed, program=True):
        raise forbidden_use(problem.file, reasons, result, mistaken=False)
    return PreparedProgram(problem, entry, build.artefact, libraries, toolchain, notes, result)


def _code_bytes(program: Path) -> int | None:
    return sum(machine_code(program.read_bytes()).values()) or None


def _opened(device: Device, program: Path, libraries: Sequence[Path], toolchain: Toolchain) -> Session:
    """A session of ``program`` with the libraries that it needs: on a GPU NVIDIA's, on the simulator ours."""
    ours = needed(program, libraries)
    return device.open_program(
        program, ours if device.kind == "sim" else [real(library.name, toolchain) for library in ours]
    )


def _replacements(material: Material, problem: ProgramProblem) -> tuple[Path, ...]:
    return replacements(problem.uses, material.machine.toolchain, material.machine.sandbox, Cache())


def _of_student(
    contents: Mapping[str, bytes], problem: ProgramProblem, matched: Iterable[str]
) -> dict[str, bytes]:
    """The student's files that are compiled, and what they include."""
    files = sources(problem, matched)
    reached = {name: text for file in files for name, text in reachable(file, contents).items()}
    return {name: text for name, text in reached.items() if name not in problem.given}


def _refusal(refused: Inclusion, problem: ProgramProblem) -> str:
    """Why the program is not taken, where it uses a library that it may not use."""
    others = f"it allows {' and '.join(problem.uses)}" if problem.uses else "it allows none"
    return f"{refused}: this assignment does not allow the library {refused.library.name} ({others})"


def _contents(submission: Submission, problem: ProgramProblem) -> dict[str, bytes]:
    """The student's files, and the headers that belong to them, by path in the project."""
    contents: dict[str, bytes] = {}
    for file in (*problem.sources, *problem.matching(submission.matched)):
        folder = problem.folders.get(file, "")
        contents |= in_folder(folder, submission.contents(file))
    return contents


def in_folder(folder: str, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files by path from a folder of a project, by their paths in the project instead."""
    return {posixpath.normpath(posixpath.join(folder, name)): text for name, text in contents.items()}


def sources(problem: ProgramProblem, matched: Iterable[str]) -> list[str]:
    """The student's files that are compiled, by their paths in the project."""
    names = (*problem.sources, *problem.matching(matched))
    return [posixpath.join(problem.folders.get(name, ""), name) for name in names]


def recipe(
    problem: ProgramProblem,
    contents: Mapping[str, bytes],
    matched: Iterable[str],
    libraries: Sequence[Path],
    flags: Sequence[str] = (),
) -> Recipe:
    """What makes the program of a problem.

    Args:
        problem: that it answers.
        contents: the student's files, by path in the project.
        matched: names of files that no name asked for, only a pattern, maybe of another problem.
        libraries: to link with where it calls them.
        flags: of nvcc, beside those of the problem.
    """
    return Recipe(
        sources(problem, matched),
        contents,
        problem.given,
        (*problem.flags, *flags),
        problem.make,
        problem.cmake,
        libraries,
    )


def _built(
    conduct: Conduct, problem: ProgramProblem, contents: Mapping[str, bytes], matched: Iterable[str]
) -> Build:
    material = conduct.material
    limits, machine = material.assignment.rules.limits, material.machine
    return build_executable(
        recipe(problem, contents, matched, _replacements(material, problem)),
        machine.toolchain,
        machine.sandbox,
        compile_limits(limits.compile_seconds, int(limits.compile_memory_gib * 2**30)),
        Cache(),
        machine.device.architecture,
        conduct.stopped,
    )


def _reference(conduct: Conduct, problem: ProgramProblem) -> tuple[Path, tuple[Path, ...]]:
    """The program that the speed is compared with, and the libraries of the simulator that it might use.

    Raises:
        NotJudgedError: it lacks a file, or is not built.
    """
    material = conduct.material
    conduct.begin(f"{problem.id}: compiling the reference")
    if problem.rival:
        problem = replace(problem, uses=tuple(LIBRARIES))
        build = _built(conduct, problem, problem.rival, ())
    else:
        build = _built_reference(conduct, problem)
    if build.artefact is None:
        raise NotJudgedError(unbuilt(build, problem.uses, problem.rival).message)
    return build.artefact, _replacements(material, problem)


def _built_reference(conduct: Conduct, problem: ProgramProblem) -> Build:
    try:
        with collect(conduct.material.assignment.reference, problem.files) as files:
            if missing := [name for name in problem.sources if name not in files.files]:
                raise NotJudgedError(f"{missing[0]} is missing")
            return _built(conduct, problem, _contents(files, problem), files.matched)
    except (SubmissionError, UnreadableError) as error:  # it does not come with every installation
        raise NotJudgedError(str(error)) from error


def _overridden(problem: ProgramProblem, contents: Mapping[str, bytes], wanted: Collection[str]) -> list[str]:
    """The student's files that the assignment's take the place of; those ``wanted`` of other problems may."""
    others = {name for name in wanted if name not in problem.sources}
    own = {posixpath.basename(name): text for name, text in contents.items() if name not in problem.sources}
    return [
        name
        for name, text in problem.given.items()
        if own.get(base := posixpath.basename(name), text) != text and base not in others
    ]


def _libraries(flags: Iterable[str]) -> tuple[str, ...]:
    """The libraries that the assignment links with, as the policy's exceptions."""
    names = (PurePosixPath(flag.removeprefix("-l")).name for flag in flags if flag.startswith("-l"))
    return tuple(rf"lib{re.escape(name)}\.so(\.\d+)*" for name in names)


KIND = ProblemKind("program problem", ProgramProblem, prepare, PROGRAMS)
