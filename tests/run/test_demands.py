"""What is found for further demands, and that the reference is built only where they ask for its code."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from grader.assignments.rules import Demand, ProblemPoints
from grader.records.record import PerformanceResult, TimedCase
from grader.records.verdict import Verdict
from grader.run.demands import NO_CODE, judged, reference_code

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grader.problems.problem import Problem

CODE = Demand(measure="code", most=1.5, points=2.0)
SPREAD = Demand(measure="spread", most=1.3, points=2.0)
NO_GPU = PerformanceResult(verdict=Verdict.NOT_MEASURED, target=1, message="no GPU here")


def timed(*speedups: float) -> PerformanceResult:
    cases = [TimedCase(name="", verdict=Verdict.PASS, speedup=speedup) for speedup in speedups]
    return PerformanceResult(verdict=Verdict.PASS, target=1, cases=cases)


@pytest.mark.parametrize(
    ("own", "reference", "verdict", "said"),
    [
        (1500, 1000, Verdict.PASS, "1.50, of at most 1.5"),
        (1501, 1000, Verdict.FAIL, "1.50, of at most 1.5"),
        (None, 1000, Verdict.NOT_MEASURED, NO_CODE),
        (1000, None, Verdict.NOT_MEASURED, NO_CODE),
    ],
)
def test_code_is_compared_with_that_of_the_reference(
    own: int | None, reference: int | None, verdict: Verdict, said: str
) -> None:
    found = judged(CODE, own, reference, NO_GPU)
    assert (found.verdict, found.points) == (verdict, 2.0)
    assert found.said == f"bytes of machine code over the reference's: {said}"


@pytest.mark.parametrize(
    ("performance", "verdict", "said"),
    [
        (timed(0.9, 0.75, 0.97), Verdict.PASS, "1.29, of at most 1.3"),
        (timed(0.9, 0.5, 1.0), Verdict.FAIL, "2.00, of at most 1.3"),
        (NO_GPU, Verdict.NOT_MEASURED, "no GPU here"),
    ],
)
def test_the_spread_is_that_of_the_timed_cases(
    performance: PerformanceResult, verdict: Verdict, said: str
) -> None:
    found = judged(SPREAD, None, None, performance)
    assert found.verdict is verdict
    assert found.said == f"largest over smallest speedup: {said}"


@dataclass
class Compiler:
    """A language whose libraries are their sources, of which each byte is machine code."""

    built: list[str] = field(default_factory=list)

    def build(self, sources: Mapping[str, Mapping[str, bytes]], _: object) -> Mapping[str, object]:
        self.built += sources
        return {
            name: SimpleNamespace(full=SimpleNamespace(artefact=contents[name] or None))
            for name, contents in sources.items()
        }

    def code_bytes(self, library: bytes) -> int:
        return len(library)


def wanted(file: str, *demands: Demand) -> tuple[ProblemPoints, Problem]:
    entry = ProblemPoints(id=file, title="", correctness=12, performance=4, target=1, demands=demands)
    return entry, cast("Problem", SimpleNamespace(file=file))


def test_the_reference_is_built_where_its_code_is_asked_for(tmp_path: Path) -> None:
    for name, text in (("a.cu", "kernel"), ("b.cu", ""), ("c.cu", "kernel")):
        (tmp_path / name).write_text(text)
    compiler: Any = Compiler()
    problems = [
        wanted("a.cu", CODE),
        wanted("b.cu", CODE),
        wanted("c.cu", SPREAD),
        wanted("missing.cu", CODE),
    ]
    assert reference_code(tmp_path, problems, compiler) == {"a.cu": 6}
    assert sorted(compiler.built) == ["a.cu", "b.cu"]
    assert reference_code(tmp_path / "nowhere", problems, compiler) == {}
    assert reference_code(tmp_path / "nowhere", problems[2:3], compiler) == {}
