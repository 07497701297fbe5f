"""Whether what an assignment names is there to be graded.

A name that means nothing would be passed over without a word: a problem that is never graded, a group whose
points go to others, a waiver that covers nothing.

Layer: imports problems, and with them PyTorch.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.assignment import FILE
from grader.assignments.modules import defined, located
from grader.assignments.rules import AssignmentError, nearest
from grader.problems.module import ModuleProblem
from grader.problems.operations import multiply_adds
from grader.problems.problem import MEMORY_GROUP, KernelProblem
from grader.problems.program import ProgramProblem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from grader.assignments.assignment import Assignment
    from grader.assignments.rules import ProblemPoints, Rules, Waiver
    from grader.problems.problem import Case, Problem


def check(assignment: Assignment) -> None:
    """Refuse an assignment with a name that no problem knows.

    Raises:
        AssignmentError: it has one; the message says all of them, each with the nearest valid name.
    """
    rules = assignment.rules
    problems = {name: assignment.problems[name] for name in _looked_at(assignment)}
    if broken := [fault for name in problems if (fault := _derived(assignment, name))]:
        raise AssignmentError("\n".join(broken))
    wanted = [entry.id for entry in rules.problems if entry.graded]
    undefined = [name for name in wanted if name not in problems and name in (assignment.only or wanted)]
    faults = list(_unknown("graded problem", undefined, defined(assignment.modules)))
    graded = [problems[entry.id] for entry in rules.problems if entry.id in problems]
    groups = {name: None for problem in graded for name in (*problem.groups, MEMORY_GROUP)}
    if graded and assignment.only is None:
        faults += _unknown("case group", rules.group_points, groups)
        if rules.hidden is not None:
            of_cases = [name for name in groups if name != MEMORY_GROUP]
            faults += _unknown("group of cases", rules.hidden.groups, of_cases)
    for waiver in rules.waivers:
        if waiver.problem in problems:
            faults += _unknown_conditions(waiver, problems[waiver.problem])
    entries = [(entry, problems[entry.id]) for entry in rules.problems if entry.id in problems]
    for without in (_without_baseline, _without_code, _without_times, _without_kernels, _untimed):
        faults += [fault for entry, problem in entries if (fault := without(entry, problem))]
    faults += [fault for entry, problem in entries if (fault := _without_rival(assignment, entry, problem))]
    faults += [fault for entry, problem in entries if (fault := _not_in_python(rules, entry, problem))]
    if faults:
        raise AssignmentError(f"{assignment.folder / FILE}: {'; '.join(faults)}")


def try_out(assignment: Assignment) -> None:
    """Work out what is right in a small case of each distribution of each kernel problem.

    Raises:
        AssignmentError: that fails; the message has a line for each problem.
    """
    faults = [fault for name in _looked_at(assignment) if (fault := _derived(assignment, name, deep=True))]
    if faults:
        raise AssignmentError("\n".join(faults))


def _looked_at(assignment: Assignment) -> list[str]:
    """The problems that are there and looked at."""
    return [name for name in assignment.problems if assignment.only is None or name in assignment.only]


def _derived(assignment: Assignment, name: str, *, deep: bool = False) -> str:
    """Why the baseline of a problem, or with ``deep`` also what is right, cannot be derived; else ""."""
    problem = assignment.problems[name]
    if not isinstance(problem, KernelProblem):
        return ""
    try:
        for case in problem.timing_cases(0)[:1]:
            problem.unfused(case)
        for case in _smallest(problem) if deep else ():
            expected = problem.launcher(case).oracle(case, problem.inputs(case))
            for output in expected:
                expected[output]
    except Exception as error:  # noqa: BLE001 - a teacher's code may raise anything
        return located(error, assignment.modules, Path(f"{name}.py"))
    return ""


def _smallest(problem: KernelProblem) -> Iterable[Case]:
    """The smallest case of each distribution."""
    by_distribution: dict[str, Case] = {}
    for case in sorted(problem.cases(0), key=lambda case: prod(case.sizes.values()), reverse=True):
        by_distribution[case.distribution] = case
    return by_distribution.values()


def _without_baseline(entry: ProblemPoints, problem: Problem) -> str:
    """Why a speedup of the problem would be over nothing; "" where it has what to compare with."""
    if not isinstance(problem, KernelProblem) or entry.measure == "share_of_limit" or not entry.performance:
        return ""
    timed = problem.timing_cases(0)
    program = problem.unfused(timed[0]) if timed else ()
    if timed and not program:
        return f'{entry.id} has timing cases and no unfused program: write it, or measure = "share_of_limit"'
    if timed and entry.measure == "share_of_arithmetic":
        try:
            multiply_adds(program)
        except ValueError as error:
            return f"{entry.id}: {error}"
    return ""


def _without_code(entry: ProblemPoints, problem: Problem) -> str:
    """Why there would be no code to look at; "" where it is that of kernels, or is not asked for."""
    measures = [demand.measure for demand in entry.demands if demand.measure != "spread"]
    if not measures or isinstance(problem, KernelProblem | ProgramProblem):
        return ""
    return f"{entry.id} has a demand of {measures[0]} and is neither a kernel problem nor a program"


def _without_times(entry: ProblemPoints, problem: Problem) -> str:
    """Why a spread of speeds would be that of none; "" where some are measured, or it is not asked for."""
    measured = any(demand.measure == "spread" for demand in entry.demands)
    unknown = measured and not problem.timing_cases(0)
    return f"{entry.id} asks for a spread of speeds and has no timing cases" if unknown else ""


def _without_kernels(entry: ProblemPoints, problem: Problem) -> str:
    """Why its own languages would mean nothing; "" where it has kernels, or names none."""
    unknown = bool(entry.languages) and not isinstance(problem, KernelProblem)
    return f"{entry.id} names languages and is no kernel problem" if unknown else ""


def _not_in_python(rules: Rules, entry: ProblemPoints, problem: Problem) -> str:
    """Why a language is none that the problem's file can be in; "" where all of them are."""
    languages = set(rules.languages_of(entry.id))
    if isinstance(problem, ModuleProblem) and "cuda" in languages:
        return (
            f'{entry.id} is a module problem, whose file is Python: say languages = ["triton"] in its table, '
            'or ["triton", "load_inline", "cupy", "nvrtc"] where kernels may also be in C++'
        )
    further = sorted(languages - {"cuda", "triton"})
    if not isinstance(problem, ModuleProblem) and further:
        return f"{entry.id} is no module problem, and so has no {further[0]}: take that out of its languages"
    return ""


def _untimed(entry: ProblemPoints, problem: Problem) -> str:
    """Why a program could get no points for speed; "" where it can, or there are none."""
    asked = entry.performance > 0 and isinstance(problem, ProgramProblem)
    if not asked or problem.timing_cases(0):
        return ""
    return f"{entry.id} gives points for speed and has no cases to time: name their folder as timed"


def _without_rival(assignment: Assignment, entry: ProblemPoints, problem: Problem) -> str:
    """Why the speed of a program would be over nothing; "" where the reference has it, or is not here."""
    if not isinstance(problem, ProgramProblem) or not problem.timing_cases(0):
        return ""
    missing = [name for name in problem.sources if not (assignment.reference / name).is_file()]
    if not missing or not assignment.reference.is_dir():
        return ""
    return f"{entry.id} is timed beside the reference, which has no {missing[0]}: write it"


def _unknown(kind: str, names: Collection[str], valid: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in valid:
            yield f"there is no {kind} {name!r}.{nearest(name, list(valid))}"


def _unknown_conditions(waiver: Waiver, problem: Problem) -> Iterator[str]:
    cases = problem.cases(0)
    sizes = {name: None for case in cases for name in case.sizes}
    contents = {case.distribution: None for case in cases}
    of_it = f"of {waiver.problem}'s cases"
    yield from _unknown(f"size {of_it}", [*waiver.not_multiple_of, *waiver.above], sizes)
    yield from _unknown(f"distribution {of_it}", waiver.contents, contents)
