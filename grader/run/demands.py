"""What an assignment asks for beside right results and speed: how large the code is, how even the speed.

Layer: imports assignments, records, languages and submissions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records.record import DemandResult
from grader.records.verdict import Verdict
from grader.submissions.submission import collect
from grader.submissions.trees import SubmissionError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from grader.assignments.rules import Demand, ProblemPoints
    from grader.languages.language import Language
    from grader.problems.problem import Problem
    from grader.records.record import PerformanceResult

NO_CODE = "not measured: the machine code here, or that of the reference, is not known"


def reference_code(
    folder: Path, graded: Iterable[tuple[ProblemPoints, Problem]], language: Language
) -> Mapping[str, int]:
    """Bytes of machine code of the reference by file, where a problem asks for them and they are known.

    Args:
        folder: of the reference.
        graded: the problems that are graded, with the files that their language asks for.
        language: that builds it.

    Raises:
        BuildError: the machine failed.
    """
    asking = {
        problem.file for entry, problem in graded if any(demand.measure == "code" for demand in entry.demands)
    }
    if not asking:
        return {}
    try:
        with collect(folder, sorted(asking)) as reference:
            sources = {name: reference.contents(name) for name in asking & reference.files.keys()}
            builds = language.build(sources, dict.fromkeys(sources, ()))
    except (SubmissionError, UnreadableError):  # it does not come with every installation
        return {}
    artefacts = {name: build.full.artefact for name, build in builds.items()}
    sizes = {
        name: language.code_bytes(artefact) for name, artefact in artefacts.items() if artefact is not None
    }
    return {name: size for name, size in sizes.items() if size is not None}


def judged(
    demand: Demand, submitted: int | None, reference: int | None, performance: PerformanceResult
) -> DemandResult:
    """What was found for a demand.

    Args:
        demand: of the assignment.
        submitted: bytes of machine code of the submission's library.
        reference: those of the reference's.
        performance: the measured speed; where it says nothing, nor does its spread.
    """
    if demand.measure == "code":
        measured = None if submitted is None or reference is None else submitted / reference
        message, verdict = "" if measured is not None else NO_CODE, Verdict.NOT_MEASURED
    else:
        speedups = [case.speedup for case in performance.cases if case.speedup is not None]
        measured, message = (max(speedups) / min(speedups), "") if speedups else (None, performance.message)
        verdict = performance.verdict
    if measured is not None:
        verdict = Verdict.PASS if measured <= demand.most else Verdict.FAIL
    return DemandResult(
        measure=demand.measure,
        verdict=verdict,
        most=demand.most,
        points=demand.points,
        found=measured,
        message=message,
    )
