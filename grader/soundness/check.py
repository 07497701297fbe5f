"""Is an assignment sound: its reference earns full marks, its template none, its cases find what is wrong.

Each check is a function from the assignment to rows of one table.

Layer: imports assignments, run and all below, and the other modules of this folder.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments import names
from grader.assignments.mutants import VARIANTS, table
from grader.assignments.rules import AssignmentError
from grader.judge.correctness.diagnosis import CANCELS
from grader.languages.cache import Cache
from grader.languages.cuda.source import functions
from grader.languages.known import files, lacking
from grader.problems.problem import KernelProblem, ModelProblem
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.verdict import Verdict
from grader.run.bench import Bench
from grader.run.grading import GradingRequest, grade
from grader.soundness.attacks import ATTACKS, CONTROL
from grader.soundness.builds import TOGETHER, Builder
from grader.soundness.kernels import entry_points, kernel_problems, right_kernels
from grader.soundness.killers import SEED, Killers, Status
from grader.soundness.mutants import mutants, sample
from grader.soundness.mutate import finding
from grader.soundness.survivors import explained
from grader.soundness.targets import target_row
from grader.soundness.unfused import small_cases, wrong_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.assignments.assignment import Assignment
    from grader.assignments.mutants import Mutant
    from grader.records.record import PerformanceResult, ProblemResult, Record
    from grader.run.bench import Machine
    from grader.soundness.kernels import RightKernel
    from grader.soundness.mutants import AutomaticMutant

HANDOUTS = ("ASSIGNMENT.md", "HANDOUT.md", "README.md")
"""What the text for students may be called, in the template or beside it."""

ELEVEN_BITS = "__uint_as_float(0xffffe000u & (0x1000u + __float_as_uint({})))"
"""A float32 rounded to as many bits as half precision has."""

ALLOW = ". If that formula is as right, let the bound allow it: also=(formula,), as docs/assignments.md says"
"""What a teacher may do where a right kernel cancels near 0."""


@dataclass(frozen=True)
class Row:
    """What one check says.

    Attributes:
        what: was checked.
        sound: whether it is as it must be; None where this machine cannot tell.
        said: figures, or what is wrong.
    """

    what: str
    sound: bool | None
    said: str


@dataclass(frozen=True)
class Examination:
    """What is checked, and with what.

    Attributes:
        assignment: to check.
        problems: of these only, by id.
        seeds: how many the reference is graded with.
        device: the option of ``grade``.
        sandbox: likewise.
        progress: told what comes next.
        bench: what the gradings share.
    """

    assignment: Assignment
    problems: Sequence[str]
    seeds: int
    device: str
    sandbox: str
    progress: Callable[[str], None]
    bench: Bench

    def graded(
        self,
        folder: Path,
        seed: int,
        problems: Sequence[str] | None = None,
        device: str | None = None,
        *,
        fast: bool = False,
    ) -> Record:
        """The record of a submission.

        Raises:
            MachineError: it could not be graded.
        """
        request = GradingRequest(
            path=folder,
            assignment=self.assignment,
            problems=tuple(self.problems if problems is None else problems),
            device=self.device if device is None else device,
            sandbox=self.sandbox,
            memory="auto",
            seed=seed,
            fast=fast,
        )
        record = grade(request, self.progress, self.bench)
        if record.exit_code in {ExitCode.MACHINE_FAULT, ExitCode.INTERRUPTED}:
            reasons = [_reason(one) for one in record.problems if one.verdict is Verdict.INFRA_ERROR]
            raise MachineError(record.error or "; ".join(reasons) or f"{folder} could not be graded.")
        return record

    @cached_property
    def machine(self) -> Machine:
        """What judges versions of kernels: the simulator."""
        return self.bench.machine("sim", self.sandbox, self.assignment.rules.limits)

    @cached_property
    def kernel_problems(self) -> Mapping[str, KernelProblem]:
        """Those of the problems that ask for launchers, by id."""
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
) -> Iterator[Row]:
    """The rows of the table, as they come.

    Args:
        assignment: to check.
        problems: to check of it, by id.
        seeds: how many the reference is graded with.
        device: the option of ``grade``.
        sandbox: likewise.
        progress: told what comes next.

    Raises:
        MachineError: the machine failed.
    """
    try:
        names.check(assignment)
    except AssignmentError as error:
        yield Row("rules", False, str(error))
        return
    cases = sum(len(assignment.problems[name].cases(SEED)) for name in problems)
    yield Row("rules", True, f"problems: {len(problems)}, cases: {cases}")
    one = Examination(assignment, problems, seeds, device, sandbox, progress, Bench(remembers=True))
    yield from handout(one)
    yield from template(one)
    first = one.graded(assignment.reference, SEED)
    yield from reference(one, first)
    if not all(map(_right, first.problems)):
        yield Row("variants, mutants, targets", None, "not looked at: the reference is to be right first")
        return
    speeds: dict[str, dict[str, PerformanceResult]] = {}
    yield from variants(one, speeds)
    yield from wrong_kernels(one)
    yield from half_precision(one)
    yield from unfused(one)
    yield from further_languages(one)
    yield from attacked(one)
    for result in first.problems:
        entry = assignment.rules.problem(result.id)
        yield Row(f"target of {result.id}", *target_row(entry, result.performance, speeds.get(result.id, {})))


def handout(one: Examination) -> Iterator[Row]:
    """The handout names every entry point, every target, every step of points and every further demand."""
    folders = (one.assignment.template, one.assignment.folder)
    paths = [folder / name for folder in folders for name in HANDOUTS if (folder / name).is_file()]
    if not paths:
        yield Row("handout", False, f"there is none: write {one.assignment.template / HANDOUTS[1]}")
        return
    text = paths[0].read_text(encoding="utf-8", errors="replace")
    missing = []
    for entry in (entry for entry in one.assignment.rules.problems if entry.graded):
        problem = one.assignment.problems[entry.id]
        wanted = problem.entry_points if isinstance(problem, KernelProblem) else (problem.file,)
        missing += [f"{entry.id}'s {name}" for name in wanted if name not in text]
        speeds = [("target", entry.target), *(("step at", step.at) for step in entry.steps)]
        speeds += [(f"target in {name}", at) for name, at in entry.language_targets.items()]
        speeds += [(f"demand of {one.measure}", one.most) for one in entry.demands]
        missing += [f"{entry.id}'s {what} {at:g}" for what, at in speeds if f"{at:g}" not in text]
    said = f"{paths[0].name} does not name {', '.join(missing)}" if missing else f"{paths[0].name} names all"
    yield Row("handout", not missing, said)


def template(one: Examination) -> Iterator[Row]:
    """The template compiles and earns nothing, with a reason."""
    yield from _nothing_earned("template", one.graded(one.assignment.template, SEED, device="sim"))


def _nothing_earned(name: str, record: Record) -> Iterator[Row]:
    for result in record.problems:
        what, reason = f"{name}: {result.id}", _reason(result)
        if result.build is not None and not result.build.ok:
            yield Row(what, False, f"does not compile: {_first_line(result.build.log)}")
        elif result.points.earned > 0:
            groups = [group.name for group in result.correctness.groups if group.earned > 0]
            yield Row(what, False, f"earns {result.points.earned:g} points, of: {', '.join(groups)}")
        else:
            yield Row(
                what, bool(reason), f"0 points: {reason}" if reason else "0 points, and no reason is given"
            )


def reference(one: Examination, first: Record) -> Iterator[Row]:
    """The reference gets full marks for right results with every seed; how much of its bounds it uses."""
    lost: dict[str, str] = {}
    used: dict[str, tuple[float, str]] = {result.id: (0.0, "") for result in first.problems}
    for number in range(one.seeds):
        seed = SEED + number
        device = None if number == 0 else "sim"
        record = first if number == 0 else one.graded(one.assignment.reference, seed, device=device)
        for result in record.problems:
            if not _right(result):
                lost.setdefault(result.id, f"loses points with seed {seed}: {_reason(result)}")
            used[result.id] = max(used[result.id], _most_used(result))
    for name, most in used.items():
        said = lost.get(name, _full_marks(one.seeds, *most))
        yield Row(f"reference: {name}", name not in lost, said)


def _full_marks(seeds: int, share: float, where: str) -> str:
    """What is said of a reference that is right: how much of a bound its outputs use at most, and where."""
    bound = f"uses at most {share:.0%} of a bound ({where})" if where else "its outputs are exact"
    return f"full marks, seeds: {seeds}; {bound}"


def variants(one: Examination, speeds: dict[str, dict[str, PerformanceResult]]) -> Iterator[Row]:
    """Every variant passes; what is measured of them goes into ``speeds``."""
    for name, problem in one.kernel_problems.items():
        mine = [kernel for kernel in one.kernels if kernel.problem.id == name and kernel.name != "reference"]
        lost, most = [], (0.0, "")
        for kernel in mine:
            with tempfile.TemporaryDirectory() as folder:
                for file, text in kernel.files.items():
                    (Path(folder) / file).write_text(text, encoding="utf-8")
                (result,) = one.graded(Path(folder), SEED, [problem.id]).problems
            speeds.setdefault(name, {})[Path(kernel.name).stem] = result.performance
            most = max(most, _most_used(result))
            if not _right(result):
                lost.append(f"{kernel.name} fails: {_reason(result)}")
        share, where = most
        used = f", with at most {share:.0%} of a bound ({where})" if where else ""
        said = "; ".join(lost) or (f"{len(mine)} pass{used}" if mine else "there are none")
        yield Row(f"variants of {name}", not lost if mine else None, said)


def wrong_kernels(one: Examination) -> Iterator[Row]:
    """Every mutant of the table fails in its problem.

    It can fail in no other one, as long as it changes no function that another launcher calls, too.
    """
    try:
        found = table(one.assignment)
        known = kernel_problems(one.assignment)
        strange = [mutant.id for mutant in found if mutant.problem not in known]
        if strange:
            yield Row("mutants", False, f"of no kernel problem: {', '.join(strange)}")
        for name, killers in one.references.items():
            yield _killed(one, killers, name, [mutant for mutant in found if mutant.problem == name])
    except (AssignmentError, ValueError) as error:
        yield Row("mutants", False, str(error))


def _killed(one: Examination, killers: Killers, name: str, mine: Sequence[Mutant]) -> Row:
    what = f"mutants of {name}"
    if not mine:
        return Row(what, None, "there are none")
    kernels = {kernel.problem.id: kernel for kernel in one.kernels if kernel.name == "reference"}
    passing, shared = [], 0
    for begin in range(0, len(mine), TOGETHER):
        group = mine[begin : begin + TOGETHER]
        one.progress(f"{what}: {', '.join(mutant.id for mutant in group)}")
        for mutant, version in zip(
            group,
            killers.built([_edited(one.assignment, mutant, kernels[name]) for mutant in group]),
            strict=True,
        ):
            if version.library is None:
                passing.append(f"{mutant.id} does not compile: {_first_line(version.log)}")
            elif killers.tried(version, killers.cases).status is Status.SURVIVED:
                passing.append(f"{mutant.id} passes: no case finds that {mutant.why}")
            shared += any(_calls(other, mutant) for key, other in kernels.items() if key != name)
    more = f", {shared} of them in code that other problems share" if shared else ""
    return Row(what, not passing, "; ".join(passing) or f"{len(mine)} fail{more}")


def _edited(one: Assignment, mutant: Mutant, kernel: RightKernel) -> dict[str, str]:
    if mutant.variant:
        return {mutant.file: mutant.text(one)}
    if mutant.file not in kernel.files:
        raise AssignmentError(f"{mutant.id} edits {mutant.file}, which {mutant.problem} is not built from")
    return {**kernel.files, mutant.file: mutant.applied(kernel.files[mutant.file])}


def _calls(kernel: RightKernel, mutant: Mutant) -> bool:
    """Whether a launcher may come to call what a mutant edits."""
    text = kernel.files.get(mutant.file)
    if text is None or mutant.variant:
        return False
    places = [text.index(old) for old in (mutant.old, *(old for old, _ in mutant.also))]
    known = functions(text)
    around = [next((one.name for one in known if one.begin <= at < one.end), "") for at in places]
    return any(not name or name in kernel.used for name in around)


def half_precision(one: Examination) -> Iterator[Row]:
    """The cases find where the reference is made to keep a number in the 11 bits of half precision.

    Its range stays that of float32, as numbers that overflow would be found whatever the bounds are.
    """
    known = explained(one.assignment)
    references = [kernel for kernel in one.kernels if kernel.name == "reference"]
    for kernel, mine in in_eleven_bits(references):
        what, killers = f"half precision in {kernel.problem.id}", one.references[kernel.problem.id]
        one.progress(what)
        built = killers.built([edit.of(kernel) for edit in mine])
        shown = [finding(killers, edit, version).status for edit, version in zip(mine, built, strict=True)]
        lost = [
            f"`{edit.edit.old}` of {edit.label}:{edit.lines[0]}"
            for edit, status in zip(mine, shown, strict=True)
            if status is Status.SURVIVED and edit.key not in known
        ]
        killed = shown.count(Status.KILLED)
        if lost:
            yield Row(what, False, f"no case finds it, is a bound too wide? {', '.join(lost)}")
        else:
            more = f"; {shown.count(Status.SURVIVED)} are explained" if Status.SURVIVED in shown else ""
            yield Row(what, True if killed else None, f"found in all {killed} places that change{more}")


def in_eleven_bits(
    references: Sequence[RightKernel],
) -> Iterator[tuple[RightKernel, list[AutomaticMutant]]]:
    """Of each reference some versions that round a number to the 11 bits of half precision."""
    rounding = [edit for edit in mutants(references) if edit.edit.operator == "half precision"]
    for kernel in references:
        mine = sample([edit for edit in rounding if kernel in edit.kernels], TOGETHER, SEED)[:TOGETHER]
        yield (
            kernel,
            [replace(one, edit=replace(one.edit, new=ELEVEN_BITS.format(one.edit.old))) for one in mine],
        )


def unfused(one: Examination) -> Iterator[Row]:
    """The unfused baseline equals the oracle, on the simulator."""
    builder, seconds = Builder(one.machine, Cache()), one.assignment.rules.limits.run_seconds_sim
    for name, problem in one.kernel_problems.items():
        cases = [case for case in small_cases(problem, SEED) if problem.unfused(case)]
        if not cases:
            compared = one.assignment.rules.problem(name).measure == "speedup"
            needed = compared and bool(problem.timing_cases(SEED))
            yield Row(f"baseline of {name}", False if needed else None, "there is none")
            continue
        one.progress(f"baseline of {name}")
        wrong = [f"{case.name}: {said}" for case, said in wrong_programs(problem, cases, builder, seconds)]
        said = (
            f"differs from the oracle in {'; '.join(wrong)}"
            if wrong
            else f"equals the oracle in {len(cases)} cases"
        )
        yield Row(f"baseline of {name}", not wrong, said)


def further_languages(one: Examination) -> Iterator[Row]:
    """What is asked of answers in CUDA, of those in each further language that the assignment allows."""
    allowed = one.assignment.rules.languages_of
    for language in one.assignment.rules.every_language:
        known = one.kernel_problems.items()
        problems = {name: problem for name, problem in known if language in allowed(name)}
        if language == "cuda" or not problems:
            continue
        folders = one.assignment.reference_in(language), one.assignment.template_in(language)
        wanted = {file: None for problem in problems.values() for file in files(problem, (language,))}
        absent = ", ".join(path.name for path in folders if not path.is_dir())
        lost = [f"{path.name}/{file}" for path in folders for file in wanted if not (path / file).is_file()]
        if said := lacking(language):
            yield Row(language, None, _first_line(said))
        elif absent:
            yield Row(language, None, f"there is no {absent}")
        elif lost:
            remedy = f"write it, or leave {language} out of the problem's languages"
            yield Row(language, False, f"there is no {', '.join(lost)}: {remedy}")
        else:
            yield from _in_language(one, language, problems)


def _in_language(one: Examination, language: str, problems: Mapping[str, KernelProblem]) -> Iterator[Row]:
    begun = one.graded(one.assignment.template_in(language), SEED, [*problems], device="sim")
    yield from _nothing_earned(f"{language} template", begun)
    for result in one.graded(one.assignment.reference_in(language), SEED, [*problems]).problems:
        right = _right(result)
        said = _full_marks(1, *_most_used(result)) if right else _reason(result)
        yield Row(f"{language} reference: {result.id}", right, said)
        if result.performance.speedup is not None:
            entry = one.assignment.rules.problem(result.id).in_language(language)
            yield Row(f"{language} target of {result.id}", *target_row(entry, result.performance, {}))
    for name, problem in problems.items():
        (file,) = files(problem, (language,))
        paths = sorted((one.assignment.folder / VARIANTS / name).glob(f"*{Path(file).suffix}"))
        texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
        lost = [variant for variant, text in texts.items() if not _right(_answered(one, name, file, text))]
        said = f"wrong: {', '.join(lost)}" if lost else f"{len(texts)} pass"
        yield Row(f"{language} variants of {name}", not lost if texts else None, said)
        yield _mutants_fail(one, language, name, file)


def _mutants_fail(one: Examination, language: str, name: str, file: str) -> Row:
    what = f"{language} mutants of {name}"
    try:
        mine = [mutant for mutant in table(one.assignment, language) if mutant.problem == name]
        edited = {mutant: mutant.text(one.assignment) for mutant in mine}
    except (AssignmentError, ValueError) as error:
        return Row(what, False, str(error))
    passing = [
        f"{mutant.id} passes: no case finds that {mutant.why}"
        for mutant, text in edited.items()
        if _answered(one, name, file, text, fast=True).verdict is not Verdict.FAIL
    ]
    return Row(what, not passing if mine else None, "; ".join(passing) or f"{len(mine)} fail")


def attacked(one: Examination) -> Iterator[Row]:
    """No attack on a model earns its points, and its reference does with launches that are wrapped alike."""
    for name in one.problems:
        problem = one.assignment.problems[name]
        if not isinstance(problem, ModelProblem):
            continue
        original = (one.assignment.reference / problem.file).read_text(encoding="utf-8")
        passing = []
        for attack in (CONTROL, *ATTACKS):
            one.progress(f"attack on {name}: {attack.id}")
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(one.assignment.reference, folder, dirs_exist_ok=True)
                (Path(folder) / problem.file).write_text(original + attack.text, encoding="utf-8")
                (result,) = one.graded(Path(folder), SEED, [name], "sim", fast=True).problems
            if _right(result) != (attack is CONTROL):
                passing.append(f"{attack.id}: {_reason(result) or 'it passes'}")
            elif attack.refused and result.trust.verdict is not Verdict.UNTRUSTED:
                passing.append(f"{attack.id}: it is not UNTRUSTED")
        yield Row(f"attacks on {name}", not passing, "; ".join(passing) or f"{len(ATTACKS)} earn nothing")


def _answered(one: Examination, name: str, file: str, text: str, *, fast: bool = False) -> ProblemResult:
    """The result of a problem that is answered by a file alone; a mutant has no need of more than the sim."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file).write_text(text, encoding="utf-8")
        device = "sim" if fast else None
        (result,) = one.graded(Path(folder), SEED, [name], device, fast=fast).problems
    return result


def _right(result: ProblemResult) -> bool:
    """Whether a kernel is right; how fast it is belongs to the target."""
    return result.correctness.verdict in {Verdict.PASS, Verdict.NOT_MEASURED}


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
    if text := result.message or result.correctness.summary:
        return text
    for case in result.correctness.cases:
        if case.verdict is not Verdict.PASS and (text := case.message or case.diagnosis):
            cancels = any(diagnosis.kind == CANCELS.kind for diagnosis in case.diagnoses)
            remedy = ALLOW if cancels and not case.message else ""
            return f"{case.name}: {text}{remedy}"
    found = [finding.message for tool in result.checks for finding in tool.findings if not finding.waived]
    return next(iter([*found, *result.trust.reasons]), "")


def _first_line(log: str) -> str:
    return log.partition("\n")[0]
