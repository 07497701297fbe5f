"""Writes ``results.json`` for Gradescope: a test for each case group, and one for the speed.

What was not measured has no test, so that nobody loses points on a machine without a GPU. After a machine
fault, the file contains only this fault, and the submission has to be run again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grader.records.verdict import Verdict
from grader.reports.causes import case_cause, sightings, wrong
from grader.reports.escaping import line, plain, readable
from grader.reports.fix_first import fix_first
from grader.reports.gradebook import totals
from grader.reports.views import MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.records.record import GroupResult, ProblemResult, Record
    from grader.reports.causes import Sighting
    from grader.reports.views import View

SHOWN_CASES = 8
SHOWN_LOG_LINES = 60

Json = dict[str, Any]


def results(view: View) -> str:
    """``/autograder/results/results.json`` for one record."""
    record = view.record
    score = totals(record).earned
    content: Json = {
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "execution_time": record.seconds,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "output": "\n".join(_overview(record)),
        "extra_data": {
            "assignment": record.assignment,
            "grader": record.grader.version,
            "submission_sha256": record.submission.sha256,
        },
    }
    if score is not None:
        tests = [
            test for number, problem in enumerate(record.problems, 1) for test in _tests(number, problem)
        ]
        content |= {"score": score, "tests": tests, "leaderboard": list(_leaderboard(record))}
    else:
        name = "The submission" if record.not_graded else "The grading machine"
        content["tests"] = [{"name": name, "status": "failed", "score": 0, "max_score": 0}]
        content["tests"][0]["output"] = plain(record.not_graded or record.error or MACHINE)
    return json.dumps(content, indent=1) + "\n"


def _overview(record: Record) -> Iterator[str]:
    if error := record.not_graded or record.submission.error:
        yield plain(error)
    yield from (line(note) for note in record.submission.notes)
    undecided = record.score.possible - record.score.decided
    if undecided > 0 and not record.not_graded:
        yield (
            f"{record.score.decided:g} of {record.score.possible:g} points are decided here; the other "
            f"{undecided:g} points are for what this machine cannot measure, and are not lost."
        )
    if record.device:
        yield f"Ran on {line(record.device.name)}."
    for problem in record.problems:
        if first := fix_first(problem):
            yield ""
            yield f"{line(problem.title)}, fix first:"
            yield from map(plain, first.lines)


def _tests(number: int, problem: ProblemResult) -> Iterator[Json]:
    if not problem.points.decided:
        return
    title = line(problem.title)
    build = problem.build
    texts = [plain(problem.message), *map(plain, problem.trust.reasons)]
    if build and not build.ok:
        texts += [line(build.command), *_capped(plain(build.log))]
    yield {
        "number": f"{number}.0",
        "name": f"{title}: build",
        "status": "passed" if build and build.ok and not problem.trust.reasons else "failed",
        "output": "\n".join(filter(None, texts)),
    }
    groups = [group for group in problem.correctness.groups if group.verdict.decided]
    speed, rest = _speed_points(problem, groups)
    passed = all(group.earned == group.possible for group in groups)
    for index, group in enumerate(groups, 1):
        extra = rest if index == len(groups) else 0.0
        earns = group.earned == group.possible
        yield {
            "number": f"{number}.{index}",
            "name": f"{title}: {line(group.name)}",
            "score": round(group.earned + extra * earns, 2),
            "max_score": round(group.possible + extra, 2),
            "status": "passed" if earns else "failed",
            "output": "\n".join(_group(problem, group)),
        }
    if sighted := sightings(problem):
        yield {
            "number": f"{number}.{len(groups) + 1}",
            "name": f"{title}: what the checkers found",
            "status": "passed" if all(sighting.waived for sighting in sighted) else "failed",
            "output": "\n".join(map(_sighting, sighted)),
        }
    if speed > 0:
        earned = problem.points.earned - rest - sum(group.earned for group in groups)
        yield {
            "number": f"{number}.{len(groups) + 2}",
            "name": f"{title}: {_what_else(problem) if groups else 'points'}",
            "score": round(earned, 2) if passed else 0,
            "max_score": speed,
            "output": "\n".join((*_speed(problem), *(demand.said for demand in problem.demands))),
        }


def _speed_points(problem: ProblemResult, groups: list[GroupResult]) -> tuple[float, float]:
    """The decided points that are not in ``groups``, and the rounding error of the groups' points.

    The points of groups are rounded to 0.01, so their sum may be wrong by 0.005 for each group. Points of an
    assignment are multiples of 0.25, so a value that is close enough to such a multiple is rounded to it.
    """
    remaining = problem.points.decided - sum(group.possible for group in groups)
    quarters = round(4 * remaining) / 4
    speed = quarters if abs(remaining - quarters) <= 0.005 * len(groups) + 1e-9 else remaining
    return round(speed, 2), round(remaining - speed, 2)


def _sighting(sighting: Sighting) -> str:
    waived = f" (costs no points: {sighting.waived})" if sighting.waived else ""
    return line(f"{sighting.where}  {sighting.title}  {readable(sighting.message)}{waived}")


def _group(problem: ProblemResult, group: GroupResult) -> Iterator[str]:
    cases = [case for case in problem.correctness.cases if case.group == group.name and not case.waived]
    failing = [case for case in wrong(problem) if case.group == group.name]
    if cases and problem.correctness.summary:
        yield line(problem.correctness.summary)
        return
    if cases:
        right = sum(case.verdict is Verdict.PASS for case in cases)
        yield f"{right} of {len(cases)} cases are right"
    for case in failing[:SHOWN_CASES]:
        yield f"{line(case.name)}: {case_cause(case)}"
    if len(failing) > SHOWN_CASES:
        yield f"[...] {len(failing) - SHOWN_CASES} more"


def _what_else(problem: ProblemResult) -> str:
    return "speed and further demands" if problem.demands else "speed"


def _speed(problem: ProblemResult) -> Iterator[str]:
    performance = problem.performance
    if performance.speedup is not None and performance.interval is not None:
        low, high = performance.interval
        yield (
            f"{performance.speedup:.2f}x {performance.compared_with} ({low:.2f} to {high:.2f}), "
            f"target {performance.target:g}x: {performance.verdict}"
        )
    if performance.verdict is Verdict.AMBIGUOUS:
        yield "too close to call, counted in your favour"
    for case in performance.cases:
        if case.speedup is not None:
            yield f"{line(case.name)}: {case.speedup:.2f}x"
    if performance.message:
        yield plain(performance.message)


def _leaderboard(record: Record) -> Iterator[Json]:
    for problem in record.problems:
        measured = problem.performance
        if measured.speedup is not None and measured.verdict is not Verdict.UNTRUSTED:
            yield {
                "name": f"{line(problem.title)} (speedup)",
                "value": round(measured.speedup, 3),
                "order": "desc",
            }


def _capped(log: str) -> list[str]:
    lines = log.splitlines()
    more = [f"[...] {len(lines) - SHOWN_LOG_LINES} lines omitted"] if len(lines) > SHOWN_LOG_LINES else []
    return lines[:SHOWN_LOG_LINES] + more
