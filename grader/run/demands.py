"""What an assignment asks for beside right results and speed: the code, how even the speed, what is counted.

Layer: imports assignments, records, languages and submissions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.records.record import DemandResult
from grader.records.verdict import Verdict
from grader.submissions.submission import collect
from grader.submissions.trees import SubmissionError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from grader.assignments.rules import Demand, ProblemPoints
    from grader.judge.correctness.counted import Counted
    from grader.languages.language import Language
    from grader.problems.problem import Problem
    from grader.records.record import PerformanceResult

NOT_COUNTED = "not counted: no case ran to its end on the simulator"
_SHOWN = 3  # includes that a message names
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
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


@dataclass(frozen=True)
class Facts:
    """What is known of a submission's answer to a problem.

    Attributes:
        code: bytes of machine code of its library.
        reference_code: those of the reference's.
        performance: the measured speed; where it says nothing, nor does its spread.
        counted: by the simulator, in all cases.
        sources: its files, by name.
    """

    code: int | None
    reference_code: int | None
    performance: PerformanceResult
    counted: Counted
    sources: Mapping[str, bytes]


def judged(demand: Demand, facts: Facts) -> DemandResult:
    """What was found for a demand of the assignment."""
    verdict, message = Verdict.NOT_MEASURED, ""
    if demand.measure == "code":
        known = facts.code is not None and facts.reference_code is not None
        measured = facts.code / facts.reference_code if known else None  # type: ignore[operator]
        message = "" if known else NO_CODE
    elif demand.measure == "spread":
        speedups = [case.speedup for case in facts.performance.cases if case.speedup is not None]
        measured = max(speedups) / min(speedups) if speedups else None
        verdict = facts.performance.verdict
        message = "" if speedups else facts.performance.message
    elif demand.measure == "headers":
        included = list(_included(demand.names, facts.sources))
        measured, message = float(len(included)), ", ".join(included[:_SHOWN])
    else:
        measured = _of_counts(demand, facts.counted)
        message = "" if measured is not None else NOT_COUNTED
    if measured is not None:
        met = measured <= demand.most if demand.most is not None else measured >= (demand.least or 0.0)
        verdict = Verdict.PASS if met else Verdict.FAIL
    return DemandResult(
        measure=demand.measure,
        verdict=verdict,
        most=demand.most,
        least=demand.least,
        points=demand.points,
        required=demand.required,
        found=measured,
        message=message,
    )


def _of_counts(demand: Demand, counted: Counted) -> float | None:
    """The figure of a demand that the simulator counts; None where nothing was counted."""
    if not counted.calls:
        return None
    match demand.measure:
        case "launches":
            return counted.fewest_launches if demand.most is None else counted.most_launches
        case "kernels":
            return len(counted.kernels)
        case "shared":
            return counted.shared
        case "atomics":
            return counted.atomics
        case _:
            return counted.sectors / counted.minimal_sectors if counted.minimal_sectors else None


def _included(names: Collection[str], sources: Mapping[str, bytes]) -> Iterator[str]:
    """Where the sources include a header of one of these names, or one in a folder of such a name."""
    for file, content in sources.items():
        text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), content.decode(errors="replace"))
        for number, line in enumerate(text.splitlines(), 1):
            header = _INCLUDE.match(line)
            if header and {header[1], header[1].partition("/")[0]} & set(names):
                yield f"{file}:{number} {header[1]}"
