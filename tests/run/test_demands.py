"""What is found for further demands, and that the reference is built only where they ask for its code."""

from __future__ import annotations

from dataclasses import dataclass, field
from shutil import copytree, ignore_patterns
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pydantic import ValidationError

from assignments import own_assignment
from grader.assignments.assignment import EXAMPLE_PROGRAM, read
from grader.assignments.rules import Demand, ProblemPoints
from grader.judge.correctness.counted import Counted
from grader.records.record import PerformanceResult, TimedCase
from grader.records.verdict import Verdict
from grader.run.demands import NO_CODE, NOT_COUNTED, Facts, judged, reference_code
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grader.problems.problem import Problem
    from grader.records.record import ProblemResult

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
    found = judged(CODE, Facts(own, reference, NO_GPU, Counted(), {}))
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
    found = judged(SPREAD, Facts(None, None, performance, Counted(), {}))
    assert found.verdict is verdict
    assert found.said == f"largest over smallest speedup: {said}"


COUNTED = Counted(
    calls=9,
    most_launches=3,
    fewest_launches=2,
    kernels=frozenset({"ker_first", "ker_second"}),
    shared=70,
    atomics=0,
    sectors=150,
    minimal_sectors=100,
)


@pytest.mark.parametrize(
    ("demand", "verdict", "said"),
    [
        (
            {"measure": "launches", "most": 3},
            Verdict.PASS,
            "launches of kernels in one call: 3, of at most 3",
        ),
        (
            {"measure": "launches", "most": 2},
            Verdict.FAIL,
            "launches of kernels in one call: 3, of at most 2",
        ),
        ({"measure": "launches", "least": 3}, Verdict.FAIL, "in one call: 2, of at least 3"),
        (
            {"measure": "kernels", "least": 2},
            Verdict.PASS,
            "different kernels that are launched: 2, of at least 2",
        ),
        (
            {"measure": "shared", "least": 1},
            Verdict.PASS,
            "accesses of warps to shared memory: 70, of at least 1",
        ),
        ({"measure": "atomics", "most": 0}, Verdict.PASS, "atomic operations of threads: 0, of at most 0"),
        ({"measure": "sectors", "most": 1.2}, Verdict.FAIL, "that would do: 1.50, of at most 1.2"),
        ({"measure": "headers", "names": ["cub"]}, Verdict.PASS, "not to be used: 0, of at most 0"),
        (
            {"measure": "headers", "names": ["thrust", "mma.h"], "required": True},
            Verdict.FAIL,
            "2 (a.cu:2 thrust/sort.h, a.cu:6 mma.h), of at most 0, or the problem earns nothing",
        ),
    ],
)
def test_what_is_counted_is_compared_with_what_is_asked_for(
    demand: dict[str, Any], verdict: Verdict, said: str
) -> None:
    lines = (
        b"// #include <cub/a.h>",
        b"#include <thrust/sort.h>",
        b"/*",
        b"#include <cub/b.h>",
        b"*/",
        b'#include "mma.h"',
    )
    text = b"\n".join(lines)
    found = judged(Demand(points=1.0, **demand), Facts(None, None, NO_GPU, COUNTED, {"a.cu": text}))
    assert found.verdict is verdict
    assert found.said.endswith(said)


def test_what_nobody_counted_is_undecided() -> None:
    demand = Demand(measure="atomics", most=0, points=1.0)
    found = judged(demand, Facts(None, None, NO_GPU, Counted(), {}))
    assert (found.verdict, found.message) == (Verdict.NOT_MEASURED, NOT_COUNTED)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"measure": "atomics", "points": 1.0}, "either most, the largest right value, or least"),
        ({"measure": "atomics", "most": 1, "least": 1, "points": 1.0}, "either most"),
        ({"measure": "atomics", "most": 0}, "give it points, or required = true"),
        ({"measure": "headers", "points": 1.0}, r"names = \["),
    ],
)
def test_a_demand_that_says_too_little_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Demand(**wrong)


@pytest.mark.usefixtures("ptx_only")
def test_the_simulator_counts_what_is_demanded(tmp_path: Path) -> None:
    own = own_assignment.write(tmp_path)
    asked = """
demands = [
  { measure = "launches", most = 1, points = 1.0 },
  { measure = "kernels", least = 2, points = 1.0 },
  { measure = "shared", least = 1, required = true },
  { measure = "sectors", most = 1.5, points = 1.0 },
]
"""
    rules = own / "assignment.toml"
    rules.write_text(rules.read_text().rstrip() + asked)
    right = tmp_path / "class" / "right"

    def result() -> ProblemResult:
        request = GradingRequest(
            right, read(own), ("int_add",), GradingOptions("sim", "process", "device"), 1
        )
        return grade(request).problems[0]

    plain = result()
    assert [round(demand.found or 0, 1) for demand in plain.demands] == [1, 1, 0, 1.0]
    assert plain.verdict is Verdict.FAIL
    assert (plain.points.earned, plain.points.decided) == (0, 13)  # what is required was not met
    file = right / "int_add.cu"
    own_memory = (
        "__shared__ int own[128];\n  own[threadIdx.x] = x[i];\n  if (i < n) x[i] = own[threadIdx.x] +"
    )
    file.write_text(
        file.read_text().replace("if (i < n) x[i] +=", own_memory).replace("x[i];\n", "i < n ? x[i] : 0;\n")
    )
    shared = result()
    assert [demand.verdict for demand in shared.demands][2] is Verdict.PASS
    assert shared.points.earned == 8  # all six for right results, one launch and few sectors


DEMANDS_OF_A_PROGRAM = """
demands = [
  { measure = "code", most = 1.2, points = 1.0 },
  { measure = "launches", most = 1, points = 1.0 },
  { measure = "shared", least = 1, points = 1.0 },
  { measure = "sectors", most = 1.2, points = 1.0 },
  { measure = "headers", names = ["thrust"], points = 1.0 },
]
"""


def test_a_program_may_have_demands(tmp_path: Path) -> None:
    own = copytree(EXAMPLE_PROGRAM, tmp_path / "own", ignore=ignore_patterns("__pycache__"))
    rules = own / "assignment.toml"
    rules.write_text(
        rules.read_text().replace("correctness = 10.0", f"correctness = 10.0{DEMANDS_OF_A_PROGRAM}")
    )

    def demands() -> list[tuple[str, Verdict, float]]:
        request = GradingRequest(
            tmp_path / "mine", read(own), ("vector_add",), GradingOptions("sim", "process"), 1
        )
        (result,) = grade(request).problems
        assert result.points.decided == 15
        return [(each.measure, each.verdict, round(each.found or 0, 1)) for each in result.demands]

    mine = copytree(own / "reference", tmp_path / "mine") / "vector_add.cu"
    right = mine.read_text()
    assert demands() == [
        ("code", Verdict.PASS, 1.0),
        ("launches", Verdict.PASS, 1.0),
        ("shared", Verdict.FAIL, 0.0),
        ("sectors", Verdict.PASS, 1.0),
        ("headers", Verdict.PASS, 0.0),
    ]
    more = "  if (i < n) c[i] = a[i] + b[i];\n" + "  if (i < n && a[i] > 1e30f) c[i] = sinf(a[i]);\n"
    launch = "  add<<<(n + 255) / 256, 256>>>"
    twice = right.replace("  if (i < n) c[i] = a[i] + b[i];\n", more).replace(
        launch, f"{launch}(on_device[0], on_device[1], on_device[2], n);\n{launch}"
    )
    mine.write_text(f"#include <thrust/version.h>\n{twice}")
    assert [verdict for _, verdict, _ in demands()] == [
        *(Verdict.FAIL, Verdict.FAIL, Verdict.FAIL, Verdict.PASS, Verdict.FAIL)
    ]


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
