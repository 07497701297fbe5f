"""Is an assignment sound: its reference earns full marks, its template none, its cases find what is wrong.

Each check is a function from the assignment to rows of one table.

Layer: imports assignments, run and all below, and the other modules of this folder.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments import names
from grader.assignments.cases import counted, doubts
from grader.assignments.mutants import VARIANTS, table
from grader.assignments.rules import AssignmentError, nearest
from grader.judge.correctness.diagnosis import CANCELS
from grader.languages.cache import Cache
from grader.languages.cuda.source import functions
from grader.languages.known import files, lacking
from grader.problems.contents import SUBNORMAL
from grader.problems.grid import missing, required
from grader.problems.module import ModuleProblem
from grader.problems.problem import KernelProblem, ModelProblem
from grader.problems.program import ProgramProblem
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.file_names import HANDOUTS, is_pattern
from grader.records.verdict import Ending, Verdict
from grader.run.bench import Bench
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions
from grader.soundness.attacks import ATTACKS, CONTROL
from grader.soundness.builds import TOGETHER, Builder
from grader.soundness.checkers import tried
from grader.soundness.kept import Kept, identity
from grader.soundness.kernels import entry_points, kernel_problems, right_kernels
from grader.soundness.killers import SEED, Killers, Status
from grader.soundness.mutants import mutants, sample
from grader.soundness.mutate import finding
from grader.soundness.programs import program_rows
from grader.soundness.survivors import explained
from grader.soundness.targets import target_row
from grader.soundness.unfused import small_cases, wrong_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.assignments.assignment import Assignment
    from grader.assignments.mutants import Mutant
    from grader.devices.device import Answer, Memory
    from grader.problems.problem import Case, Problem
    from grader.records.record import CaseResult, PerformanceResult, ProblemResult, Record
    from grader.run.bench import Machine
    from grader.run.preparation import Observe
    from grader.soundness.kernels import RightKernel
    from grader.soundness.mutants import AutomaticMutant

"""What the text for students may be called, in the template or beside it."""

ELEVEN_BITS = "__uint_as_float(0xffffe000u & (0x1000u + __float_as_uint({})))"
"""A float32 rounded to as many bits as half precision has."""

_FOLDERS = ("problems", "mutants", VARIANTS, "cases")
_IN_LANGUAGES = ("reference", "student_template")
_ALIKE = 0.75  # so that a name seems to be another one

MOST_SECONDS = 60.0
"""That the cases of a problem take with the reference, before the check warns."""

ALLOW = ". If that formula is as right, let the bound allow it: also=(formula,), as docs/assignments.md says"
"""What a teacher may do where a right kernel cancels near 0."""

LIMITED = (
    ". If a right kernel needs as much, raise the limit in [limits] of assignment.toml "
    "(docs/assignment_toml.md), or let a size, or seconds, of the problem be smaller"
)
"""What a teacher may do where the reference runs into a limit."""


@dataclass(frozen=True)
class Row:
    """The result of one check.

    Attributes:
        title: what was checked.
        sound: whether it is as it must be; None where this machine cannot tell.
        text: figures, or what is wrong.
    """

    title: str
    sound: bool | None
    text: str


@dataclass(frozen=True)
class Examination:
    """An assignment that is checked, with the options of the check and what its gradings share.

    Attributes:
        assignment: to check.
        problems: of these only, by id.
        seeds: how many the reference is graded with.
        device: the option of ``grade``.
        sandbox: likewise.
        progress: told what comes next.
        bench: what the gradings share.
        kept: what an earlier check of the same has worked out.
    """

    assignment: Assignment
    problems: Sequence[str]
    seeds: int
    device: str
    sandbox: str
    progress: Callable[[str], None]
    bench: Bench
    kept: Kept = field(default_factory=Kept)

    def graded(
        self,
        folder: Path,
        seed: int,
        problems: Sequence[str] | None = None,
        device: str | None = None,
        *,
        fast: bool = False,
        observe: Observe | None = None,
    ) -> Record:
        """The record of a submission; ``observe`` is shown each call of a case, unless an earlier check was.

        Raises:
            MachineError: it could not be graded.
        """
        request = GradingRequest(
            path=folder,
            assignment=self.assignment,
            problems=tuple(self.problems if problems is None else problems),
            options=GradingOptions(self.device if device is None else device, self.sandbox),
            seed=seed,
            fast=fast,
            observe=observe,
        )
        about = f"{request.problems} {request.options.device} seed {seed}{' fast' if fast else ''}"
        return self.kept.record(folder, about, lambda: self._judged(request))

    def _judged(self, request: GradingRequest) -> Record:
        record = grade(request, self.progress, self.bench)
        if record.exit_code in {ExitCode.MACHINE_FAULT, ExitCode.INTERRUPTED}:
            reasons = [_reason(result) for result in record.problems if result.verdict is Verdict.INFRA_ERROR]
            raise MachineError(record.error or "; ".join(reasons) or f"{request.path} could not be graded.")
        return record

    @cached_property
    def machine(self) -> Machine:
        """The machine that judges versions of kernels, with the simulator as its device."""
        return self.bench.machine("sim", self.sandbox, self.assignment.rules.limits)

    @cached_property
    def kernel_problems(self) -> Mapping[str, KernelProblem]:
        """The problems that ask for launchers, by id."""
        return kernel_problems(self.assignment, self.problems)

    @cached_property
    def kernels(self) -> tuple[RightKernel, ...]:
        """The right kernels of these problems."""
        return right_kernels(self.assignment, self.problems)

    @cached_property
    def references(self) -> Mapping[str, Killers]:
        """The reference as an answer to each kernel problem, with the cases that judge versions of it."""
        launchers = entry_points(self.assignment)
        builder = Builder(self.machine, Cache())
        return {
            kernel.problem.id: Killers(self.assignment, kernel, self.machine.device, builder, launchers)
            for kernel in self.kernels
            if kernel.name == "reference"
        }


def check(
    assignment: Assignment,
    problems: Sequence[str],
    *,
    seeds: int = 20,
    device: str = "auto",
    sandbox: str = "auto",
    progress: Callable[[str], None] = lambda _text: None,
    path: Path | None = None,
) -> Iterator[Row]:
    """The rows of the table, as they come.

    Args:
        assignment: to check.
        problems: to check of it, by id.
        seeds: how many the reference is graded with.
        device: the option of ``grade``.
        sandbox: likewise.
        progress: told what comes next.
        path: of a file that keeps what is worked out, and from which the check goes on.

    Raises:
        MachineError: the machine failed.
        AssignmentError: the file is of something else, or cannot be written.
    """
    try:
        names.check(assignment)
        names.try_out(assignment)
    except AssignmentError as error:
        yield Row("rules", False, str(error))
        return
    cases = sum(len(assignment.problems[name].cases(SEED)) for name in problems)
    yield Row("rules", True, f"problems: {len(problems)}, cases: {cases}")
    kept = Kept(path, identity(assignment, device, sandbox))
    bench = Bench(remembers=True)
    examination = Examination(assignment, problems, seeds, device, sandbox, progress, bench, kept)
    yield from folders(examination)
    yield from handout(examination)
    yield from enough_cases(examination)
    yield from magnitudes(examination)
    others = [name for name in problems if not _is_in_python_alone(assignment, name)]
    results: list[ProblemResult] = []
    speeds: dict[str, dict[str, PerformanceResult]] = {}
    if others:
        usual = replace(examination, problems=others)
        yield from template(usual)
        clock = Clock()
        first = usual.graded(assignment.reference, SEED, observe=clock.observe)
        yield from reference(usual, first)
        yield from costs(usual, clock)
        results = first.problems
        if not all(map(_right, results)):
            yield Row("variants, mutants, targets", None, "not looked at: the reference is to be right first")
            return
        yield from variants(usual, speeds)
        yield from wrong_kernels(usual)
        yield from checkers(usual)
        yield from half_precision(usual)
    yield from unfused(examination)
    yield from further_languages(examination)
    yield from programs(examination)
    yield from attacked(examination)
    for result in results:
        entry = assignment.rules.problem(result.id)
        yield Row(f"target of {result.id}", *target_row(entry, result.performance, speeds.get(result.id, {})))


def _is_in_python_alone(assignment: Assignment, name: str) -> bool:
    """Whether kernels are answered by Python files alone, for which there are folders of their own."""
    of_kernels = isinstance(assignment.problems[name], KernelProblem)
    return of_kernels and "cuda" not in assignment.rules.languages_of(name)


def _asked_for(assignment: Assignment, name: str) -> tuple[str, ...]:
    """The functions, or the file, that the handout has to name of a problem."""
    problem = assignment.problems[name]
    if not isinstance(problem, KernelProblem):
        return (problem.file,)
    is_function = _is_in_python_alone(assignment, name) and not isinstance(problem, ModuleProblem)
    return (name,) if is_function else problem.entry_points


def handout(examination: Examination) -> Iterator[Row]:
    """The handout names every entry point, every target, every step of points and every further demand."""
    folders = (examination.assignment.template, examination.assignment.folder)
    paths = [folder / name for folder in folders for name in HANDOUTS if (folder / name).is_file()]
    if not paths:
        yield Row("handout", False, f"there is none: write {examination.assignment.template / HANDOUTS[1]}")
        return
    text = paths[0].read_text(encoding="utf-8", errors="replace")
    missing = []
    for entry in map(examination.assignment.rules.problem, examination.problems):
        terms = _asked_for(examination.assignment, entry.id)
        missing += [f"{entry.id}'s {name}" for name in terms if name not in text]
        speeds = [("target", entry.target)] if entry.performance else []
        speeds += [("step at", step.at) for step in entry.steps]
        speeds += [(f"target in {name}", at) for name, at in entry.language_targets.items()]
        speeds += [(f"target on {name}", at) for name, at in entry.gpu_targets.items()]
        bounds = ((demand.measure, demand.least or demand.most or 0.0) for demand in entry.demands)
        speeds += [(f"demand of {measure}", at) for measure, at in bounds]
        missing += [f"{entry.id}'s {figure} {at:g}" for figure, at in speeds if f"{at:g}" not in text]
    summary = f"does not name {', '.join(missing)}" if missing else "names all"
    yield Row("handout", not missing, f"{paths[0].name} {summary}")


def folders(examination: Examination) -> Iterator[Row]:
    """No folder has a name that nothing looks at, and that seems to be meant for another one."""
    rules, own = examination.assignment.rules, examination.assignment.folder
    further = (f"{name}_{language}" for name in _IN_LANGUAGES for language in rules.every_language)
    known = [*_FOLDERS, rules.template, rules.reference, *further]
    for path in (path for path in sorted(own.iterdir()) if path.is_dir() and path.name not in known):
        if meant := get_close_matches(path.name, known, 1, _ALIKE):
            yield Row("folders", False, f"nothing looks at {path.name}/: call it {meant[0]}")
    ids = [entry.id for entry in rules.problems]
    for path in (path for path in sorted(own.glob(f"{VARIANTS}/*")) if path.name not in ids):
        yield Row("folders", False, f"{VARIANTS}/{path.name} is of no problem.{nearest(path.name, ids)}")


def enough_cases(examination: Examination) -> Iterator[Row]:
    """Each problem has cases beyond the borders at which kernels go wrong; few may be enough, so it warns."""
    for name, problem in examination.kernel_problems.items():
        lacks = "; ".join(doubts(problem))
        text = f"{counted(problem)}; {lacks}" if lacks else counted(problem)
        yield Row(f"cases of {name}", None if lacks else True, text)


def magnitudes(examination: Examination) -> Iterator[Row]:
    """Every two sizes of a problem meet in every pair of octaves that the budget of its cases allows."""
    for name, problem in examination.kernel_problems.items():
        title = f"sizes of {name}"
        if problem.space is None:
            yield Row(title, None, "the problem does not say which inputs it has")
            continue
        pairs, absent = required(problem.space), missing(problem.space, problem.cases(SEED))
        text = f"{len(pairs) - len(absent)} of {len(pairs)} pairs of octaves have a case"
        if absent:
            levels = (f"{size} from {1 << number >> 1} to {(1 << number) - 1}" for size, number in absent[0])
            text += f"; none has {' and '.join(levels)}"
        yield Row(title, not absent, text)


def template(examination: Examination) -> Iterator[Row]:
    """The template has each problem's files, compiles and earns nothing, with a reason."""
    folder = examination.assignment.template
    names = {path.name for path in folder.rglob("*")}
    begun = []
    for name in examination.problems:
        files = [file for file in examination.assignment.problems[name].files if not is_pattern(file)]
        absent = [file for file in files if Path(file).name not in names]
        if absent:
            text = f"{folder.name} has no {', '.join(absent)}: write there what students begin with"
            yield Row(f"template: {name}", False, text)
        else:
            begun.append(name)
    if begun:
        yield from _nothing_earned("template", examination.graded(folder, SEED, begun, device="sim"))


def _nothing_earned(name: str, record: Record) -> Iterator[Row]:
    for result in record.problems:
        title, reason = f"{name}: {result.id}", _reason(result)
        if _unbuilt(result):
            yield Row(title, False, _compiler(result))
        elif result.points.earned > 0:
            groups = [group.name for group in result.correctness.groups if group.earned > 0]
            yield Row(title, False, f"earns {result.points.earned:g} points, of: {', '.join(groups)}")
        else:
            yield Row(
                title, bool(reason), f"0 points: {reason}" if reason else "0 points, and no reason is given"
            )


def reference(examination: Examination, first: Record) -> Iterator[Row]:
    """The reference gets full marks for right results with every seed; how much of its bounds it uses."""
    lost: dict[str, str] = {}
    used: dict[str, tuple[float, str]] = {result.id: (0.0, "") for result in first.problems}
    for number in range(examination.seeds):
        seed = SEED + number
        device = None if number == 0 else "sim"
        record = (
            first
            if number == 0
            else examination.graded(examination.assignment.reference, seed, device=device)
        )
        for result in record.problems:
            if not _right(result):
                remedy = LIMITED if _limited(result) else ""
                lost.setdefault(result.id, f"loses points with seed {seed}: {_reason(result)}{remedy}")
            used[result.id] = max(used[result.id], _most_used(result))
    for name, most in used.items():
        checked = examination.assignment.problems[name].checker is not None
        text = lost.get(name, _full_marks(examination.seeds, *most, checked=checked))
        yield Row(f"reference: {name}", name not in lost, text)


@dataclass
class Clock:
    """How long the cases of each problem take, in seconds of wall time, from their first call on."""

    seconds: dict[str, float] = field(default_factory=dict)
    _before: dict[str, float] = field(default_factory=dict)

    def observe(
        self, problem: Problem, _memory: Memory, _case: Case, _result: CaseResult, _answer: Answer
    ) -> None:
        """Look at the time behind a call."""
        now = time.monotonic()
        passed = now - self._before.get(problem.id, now)
        self.seconds[problem.id] = self.seconds.get(problem.id, 0.0) + passed
        self._before[problem.id] = now


def costs(examination: Examination, clock: Clock) -> Iterator[Row]:
    """How long the reference's cases take: so long each student waits; it warns where that is long."""
    for name in examination.kernel_problems:
        title = f"cost of {name}"
        yield Row(title, *examination.kept.row(title, partial(_cost, clock.seconds.get(name))))


def _cost(seconds: float | None) -> tuple[bool | None, str]:
    if seconds is None:
        return None, "not known: no case was run now"
    text = f"the cases of the reference take {seconds:.0f} s here"
    if seconds <= MOST_SECONDS:
        return True, text
    return None, f"{text}: let seconds, the budget or a size be smaller, as each student waits so long"


def _full_marks(seeds: int, share: float, where: str, *, checked: bool = False) -> str:
    """The text about a reference that is right: how much of a bound its outputs use at most, and where."""
    unbounded = "its checker finds nothing wrong" if checked else "its outputs are exact"
    bound = f"uses at most {share:.0%} of a bound ({where})" if where else unbounded
    return f"full marks, seeds: {seeds}; {bound}"


def variants(examination: Examination, speeds: dict[str, dict[str, PerformanceResult]]) -> Iterator[Row]:
    """Every variant passes; what is measured of them goes into ``speeds``."""
    for name, problem in examination.kernel_problems.items():
        kernels = [
            kernel
            for kernel in examination.kernels
            if kernel.problem.id == name and kernel.name != "reference"
        ]
        lost, most = [], (0.0, "")
        for kernel in kernels:
            with tempfile.TemporaryDirectory() as folder:
                for file, text in kernel.files.items():
                    (Path(folder) / file).write_text(text, encoding="utf-8")
                (result,) = examination.graded(Path(folder), SEED, [problem.id]).problems
            speeds.setdefault(name, {})[Path(kernel.name).stem] = result.performance
            most = max(most, _most_used(result))
            if not _right(result):
                lost.append(f"{kernel.name} fails: {_reason(result)}")
        share, where = most
        used = f", with at most {share:.0%} of a bound ({where})" if where else ""
        summary = "; ".join(lost) or (f"{len(kernels)} pass{used}" if kernels else "there are none")
        yield Row(f"variants of {name}", not lost if kernels else None, summary)


def wrong_kernels(examination: Examination) -> Iterator[Row]:
    """Every mutant of the table fails in its problem.

    It can fail in no other problem, as long as it changes no function that another launcher calls, too.
    """
    try:
        rows = table(examination.assignment)
        problems = kernel_problems(examination.assignment)
        ids = {*problems, *_programs(examination.assignment), *examination.assignment.absent}
        strange = [mutant.id for mutant in rows if mutant.problem not in ids]
        if strange:
            yield Row("mutants", False, f"of no kernel problem and no program: {', '.join(strange)}")
        for name, killers in examination.references.items():
            yield _killed(examination, killers, name, [mutant for mutant in rows if mutant.problem == name])
    except (AssignmentError, ValueError) as error:
        yield Row("mutants", False, str(error))


def _programs(assignment: Assignment) -> list[str]:
    """The ids of its program problems."""
    return [name for name, problem in assignment.problems.items() if isinstance(problem, ProgramProblem)]


def _killed(examination: Examination, killers: Killers, name: str, rows: Sequence[Mutant]) -> Row:
    title = f"mutants of {name}"
    if not rows:
        return Row(title, None, "there are none")
    kernels = {kernel.problem.id: kernel for kernel in examination.kernels if kernel.name == "reference"}
    return Row(
        title, *examination.kept.row(title, lambda: _passing(examination, killers, name, rows, kernels))
    )


def _passing(
    examination: Examination,
    killers: Killers,
    name: str,
    rows: Sequence[Mutant],
    kernels: Mapping[str, RightKernel],
) -> tuple[bool, str]:
    """Whether all mutants of a problem fail, and which do not."""
    title = f"mutants of {name}"
    passing, shared = [], 0
    for begin in range(0, len(rows), TOGETHER):
        group = rows[begin : begin + TOGETHER]
        edited = [_edited(examination.assignment, mutant, kernels[name]) for mutant in group]
        examination.progress(f"{title}: compiling {len(group)}")
        for number, (mutant, version) in enumerate(zip(group, killers.built(edited), strict=True), begin + 1):
            examination.progress(f"{title}: {number} of {len(rows)}, {mutant.id}")
            if version.library is None:
                passing.append(f"{mutant.id} does not compile: {_first_line(version.log)}")
            elif killers.tried(version, killers.cases).status is Status.SURVIVED:
                passing.append(f"{mutant.id} passes: no case finds that {mutant.why}")
            shared += any(_calls(other, mutant) for key, other in kernels.items() if key != name)
    more = f", {shared} of them in code that other problems share" if shared else ""
    return not passing, "; ".join(passing) or f"{len(rows)} fail{more}"


def _edited(assignment: Assignment, mutant: Mutant, kernel: RightKernel) -> dict[str, str]:
    if mutant.variant:
        return {mutant.file: mutant.text(assignment)}
    if mutant.file not in kernel.files:
        raise AssignmentError(f"{mutant.id} edits {mutant.file}, which {mutant.problem} is not built from")
    return {**kernel.files, mutant.file: mutant.applied(kernel.files[mutant.file])}


def _calls(kernel: RightKernel, mutant: Mutant) -> bool:
    """Whether a launcher may come to call what a mutant edits."""
    text = kernel.files.get(mutant.file)
    if text is None or mutant.variant:
        return False
    offsets = [text.index(old) for old in (mutant.old, *(old for old, _ in mutant.also))]
    definitions = functions(text)
    around = [
        next((function.name for function in definitions if function.begin <= at < function.end), "")
        for at in offsets
    ]
    return any(not name or name in kernel.used for name in around)


def checkers(examination: Examination) -> Iterator[Row]:
    """Each checker refuses changes of every output of the reference, and none makes it fail."""
    for name, killers in examination.references.items():
        problem = examination.kernel_problems[name]
        if problem.checker is not None:
            title = f"checker of {name}"
            examination.progress(title)
            yield Row(title, *examination.kept.row(title, partial(tried, problem, killers)))


def half_precision(examination: Examination) -> Iterator[Row]:
    """The cases find where the reference is made to keep a number in the 11 bits of half precision.

    Its range stays that of float32, as numbers that overflow would be found whatever the bounds are. So would
    subnormal numbers, which have fewer bits: their cases tell nothing of bounds.
    """
    kernels = [kernel for kernel in examination.kernels if kernel.name == "reference"]
    wide = {name: problem.wide for name, problem in examination.kernel_problems.items() if problem.wide}
    for name, why in wide.items():
        yield Row(f"half precision in {name}", None, f"not looked at: {why}")
    looked_at = [kernel for kernel in kernels if kernel.problem.id not in wide]
    for kernel, edits in in_eleven_bits(looked_at):
        title = f"half precision in {kernel.problem.id}"
        yield Row(title, *examination.kept.row(title, partial(_rounded, examination, kernel, edits, title)))


def _rounded(
    examination: Examination, kernel: RightKernel, edits: Sequence[AutomaticMutant], title: str
) -> tuple[bool | None, str]:
    """Whether the cases find the reference with these edits, and which they do not."""
    survivors, killers = explained(examination.assignment), examination.references[kernel.problem.id]
    examination.progress(f"{title}: compiling {len(edits)}")
    built = killers.built([edit.of(kernel) for edit in edits])
    cases = [case for case in killers.cases if case.distribution != SUBNORMAL]
    shown = []
    for number, (edit, version) in enumerate(zip(edits, built, strict=True), 1):
        examination.progress(f"{title}: {number} of {len(edits)}, line {edit.lines[0]} of {edit.label}")
        shown.append(finding(killers, edit, version, cases).status)
    lost = [
        f"`{edit.edit.old}` of {edit.label}:{edit.lines[0]}"
        for edit, status in zip(edits, shown, strict=True)
        if status is Status.SURVIVED and edit.key not in survivors
    ]
    if lost:
        return False, f"no case finds it, is a bound too wide? {', '.join(lost)}"
    killed = shown.count(Status.KILLED)
    more = f"; {shown.count(Status.SURVIVED)} are explained" if Status.SURVIVED in shown else ""
    return True if killed else None, f"found in all {killed} places that change{more}"


def in_eleven_bits(
    references: Sequence[RightKernel],
) -> Iterator[tuple[RightKernel, list[AutomaticMutant]]]:
    """For each reference, some versions of it that round a number to the 11 bits of half precision."""
    rounding = [edit for edit in mutants(references) if edit.edit.operator == "half precision"]
    for kernel in references:
        edits = sample([edit for edit in rounding if kernel in edit.kernels], TOGETHER, SEED)[:TOGETHER]
        yield (
            kernel,
            [
                replace(mutant, edit=replace(mutant.edit, new=ELEVEN_BITS.format(mutant.edit.old)))
                for mutant in edits
            ],
        )


def unfused(examination: Examination) -> Iterator[Row]:
    """The unfused baseline equals the oracle, on the simulator."""
    builder, seconds = (
        Builder(examination.machine, Cache()),
        examination.assignment.rules.limits.run_seconds_sim,
    )
    for name, problem in examination.kernel_problems.items():
        cases = [case for case in small_cases(problem, SEED) if problem.unfused(case)]
        if not cases:
            entry = examination.assignment.rules.problem(name)
            timed = entry.performance > 0 and bool(problem.timing_cases(SEED))
            needed = timed and entry.measure == "speedup"
            yield Row(f"baseline of {name}", False if needed else None, "there is none")
            continue
        title = f"baseline of {name}"
        examination.progress(title)
        yield Row(title, *examination.kept.row(title, partial(_compared, problem, cases, builder, seconds)))


def _compared(
    problem: KernelProblem, cases: Sequence[Case], builder: Builder, seconds: float
) -> tuple[bool, str]:
    """Whether the baseline of a problem equals the oracle, and where it does not."""
    wrong = [f"{case.name}: {error}" for case, error in wrong_programs(problem, cases, builder, seconds)]
    if wrong:
        return False, f"differs from the oracle in {'; '.join(wrong)}"
    return True, f"equals the oracle in {len(cases)} cases"


def further_languages(examination: Examination) -> Iterator[Row]:
    """Templates, references, variants and mutants in each language but CUDA that the assignment allows."""
    allowed = examination.assignment.rules.languages_of
    for language in examination.assignment.rules.every_language:
        entries = examination.kernel_problems.items()
        problems = {name: problem for name, problem in entries if language in allowed(name)}
        if language == "cuda" or not problems:
            continue
        folders = examination.assignment.reference_in(language), examination.assignment.template_in(language)
        needed = {file: None for problem in problems.values() for file in files(problem, (language,))}
        absent = ", ".join(path.name for path in folders if not path.is_dir() or not any(path.iterdir()))
        lost = [f"{path.name}/{file}" for path in folders for file in needed if not (path / file).is_file()]
        if reason := lacking(language):
            yield Row(language, None, _first_line(reason))
        elif absent:
            yield Row(language, None, f"there is no {absent}")
        elif lost:
            remedy = f"write it, or leave {language} out of the problem's languages"
            yield Row(language, False, f"there is no {', '.join(lost)}: {remedy}")
        else:
            yield from _in_language(examination, language, problems)


def _in_language(
    examination: Examination, language: str, problems: Mapping[str, KernelProblem]
) -> Iterator[Row]:
    begun = examination.graded(examination.assignment.template_in(language), SEED, [*problems], device="sim")
    yield from _nothing_earned(f"{language} template", begun)
    for result in examination.graded(
        examination.assignment.reference_in(language), SEED, [*problems]
    ).problems:
        right = _right(result)
        summary = _full_marks(1, *_most_used(result)) if right else _reason(result)
        yield Row(f"{language} reference: {result.id}", right, summary)
        if result.performance.speedup is not None:
            entry = examination.assignment.rules.problem(result.id).in_language(language)
            yield Row(f"{language} target of {result.id}", *target_row(entry, result.performance, {}))
    for name, problem in problems.items():
        (file,) = files(problem, (language,))
        paths = sorted((examination.assignment.folder / VARIANTS / name).glob(f"*{Path(file).suffix}"))
        texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
        answers = {path: _answered(examination, name, file, text) for path, text in texts.items()}
        own = {path: answer for path, answer in answers.items() if answer.language == language}
        lost = [path for path, answer in own.items() if not _right(answer)]
        summary = f"wrong: {', '.join(lost)}" if lost else f"{len(own)} pass"
        yield Row(f"{language} variants of {name}", not lost if own else None, summary)
        yield _mutants_fail(examination, language, name, file)


def _mutants_fail(examination: Examination, language: str, name: str, file: str) -> Row:
    title = f"{language} mutants of {name}"
    try:
        rows = [mutant for mutant in table(examination.assignment, language) if mutant.problem == name]
        edited = {mutant: mutant.text(examination.assignment) for mutant in rows}
    except (AssignmentError, ValueError) as error:
        return Row(title, False, str(error))
    passing = [
        f"{mutant.id} passes: no case finds that {mutant.why}"
        for mutant, text in edited.items()
        if _answered(examination, name, file, text, fast=True).verdict is not Verdict.FAIL
    ]
    return Row(title, not passing if rows else None, "; ".join(passing) or f"{len(rows)} fail")


def programs(examination: Examination) -> Iterator[Row]:
    """Variants, mutants and content of the problems that ask for a whole program."""
    for name in examination.problems:

        def graded(folder: Path, name: str = name) -> ProblemResult:
            examination.progress(f"versions of {name}")
            (result,) = examination.graded(folder, SEED, [name], "sim", fast=True).problems
            return result

        for row in program_rows(examination.assignment, name, graded, _reason):
            yield Row(*row)


def attacked(examination: Examination) -> Iterator[Row]:
    """No attack on a model earns its points, and its reference does with launches that are wrapped alike."""
    for name in examination.problems:
        problem = examination.assignment.problems[name]
        if not isinstance(problem, ModelProblem):
            continue
        original = (examination.assignment.reference / problem.file).read_text(encoding="utf-8")
        passing = []
        for attack in (CONTROL, *ATTACKS):
            examination.progress(f"attack on {name}: {attack.id}")
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(examination.assignment.reference, folder, dirs_exist_ok=True)
                (Path(folder) / problem.file).write_text(original + attack.text, encoding="utf-8")
                (result,) = examination.graded(Path(folder), SEED, [name], "sim", fast=True).problems
            if _right(result) != (attack is CONTROL):
                passing.append(f"{attack.id}: {_reason(result) or 'it passes'}")
            elif attack.refused and result.trust.verdict is not Verdict.UNTRUSTED:
                passing.append(f"{attack.id}: it is not UNTRUSTED")
        yield Row(f"attacks on {name}", not passing, "; ".join(passing) or f"{len(ATTACKS)} earn nothing")


def _answered(
    examination: Examination, name: str, file: str, text: str, *, fast: bool = False
) -> ProblemResult:
    """The result of a problem that is answered by a file alone; a mutant has no need of more than the sim."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file).write_text(text, encoding="utf-8")
        device = "sim" if fast else None
        (result,) = examination.graded(Path(folder), SEED, [name], device, fast=fast).problems
    return result


def _right(result: ProblemResult) -> bool:
    """Whether a kernel is right; how fast it is belongs to the target."""
    return result.correctness.verdict in {Verdict.PASS, Verdict.NOT_MEASURED}


def _limited(result: ProblemResult) -> bool:
    """Whether a kernel was ended because it took too long."""
    hung = any(check.tool == "hang" and check.findings for check in result.checks)
    return hung or any(case.ending is Ending.LIMIT for case in result.correctness.cases)


def _most_used(result: ProblemResult) -> tuple[float, str]:
    """The largest share of its bound that an output comes to, and where."""
    shares = [
        (float(output.max_error) / float(output.allowed), f"{output.name} in {case.name}")
        for case in result.correctness.cases
        for output in case.outputs
        if output.allowed
        and isinstance(output.max_error, int | float)
        and isinstance(output.allowed, int | float)
    ]
    return max(shares, default=(0.0, ""))


def _reason(result: ProblemResult) -> str:
    """Why a problem lost points, in one line."""
    if _unbuilt(result):
        return _compiler(result)
    if text := result.message or result.correctness.summary:
        return text
    for case in result.correctness.cases:
        if case.verdict is not Verdict.PASS and (text := case.message or case.diagnosis):
            cancels = any(diagnosis.kind == CANCELS.kind for diagnosis in case.diagnoses)
            remedy = ALLOW if cancels and not case.message else ""
            return f"{case.name}: {text}{remedy}"
    messages = [finding.message for tool in result.checks for finding in tool.findings if not finding.waived]
    return next(iter([*messages, *result.trust.reasons]), "")


def _unbuilt(result: ProblemResult) -> bool:
    return result.build is not None and not result.build.ok


def _compiler(result: ProblemResult) -> str:
    """What the compiler says first of a file that it refuses."""
    assert result.build is not None
    return f"does not compile: {_first_line(result.build.log)}"


def _first_line(log: str) -> str:
    return log.partition("\n")[0]
