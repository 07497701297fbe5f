"""What a case calls: each launcher once, or what the assignment says, if that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from grader.problems.contents import real
from grader.problems.formula import FormulaError, Range, problem
from grader.problems.problem import KernelProblem, LauncherCall, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PLAN = "Plan* plan(int n, cudaStream_t stream)"
RUN = "void run(Plan* plan, float* y, const float* x, float by, int step, cudaStream_t stream)"


def made(
    calls: Callable[..., Sequence[object]] | None = None,
    launcher: Sequence[str] = (PLAN, RUN),
    **changed: Any,  # noqa: ANN401 - parts of a problem
) -> KernelProblem:
    parts: dict[str, Any] = {
        "formula": lambda x: 2 * x,
        "inputs": lambda n, rows: {"x": real(rows, n), "by": 2.0},
        "sizes": {"n": Range(1, 64), "rows": Range(1, 4)},
    }
    return problem(id="plan", file="plan.cu", launcher=launcher, calls=calls, **{**parts, **changed})  # type: ignore[arg-type]


def in_rows(rows: int) -> list[object]:
    return ["plan", *(("run", {"x": row, "y": row, "step": row + 1}) for row in range(rows))]


def test_a_case_calls_what_its_sizes_say() -> None:
    asked = made(in_rows)
    case = asked.space.case("exact", {"n": 5, "rows": 2}, "normal", 1) if asked.space else None
    assert case is not None
    assert asked.calls(case) == (
        LauncherCall("plan"),
        LauncherCall("run", {"x": 0, "y": 0, "step": 1}),
        LauncherCall("run", {"x": 1, "y": 1, "step": 2}),
    )
    assert asked.entry_points == ("plan", "run")
    assert asked.roles == {"y": Role.OUTPUT, "x": Role.INPUT}
    assert asked.inputs(case).outputs == {"y": (2, 5)}
    assert {case.queued.get("rows") for case in asked.cases(1)} == {None}  # or more would be called


def test_an_array_that_one_launcher_writes_and_another_reads_is_an_output() -> None:
    first, second = "a(float* half, const float* x, int n)", "b(float* y, const float* half, int n)"
    asked = made(
        launcher=(first, second),
        formula=lambda x: {"half": x / 2, "y": x * 2},
        inputs=lambda n: {"x": real(n)},
        sizes={"n": Range(1, 64)},
    )
    assert asked.roles == {"half": Role.OUTPUT, "x": Role.INPUT, "y": Role.OUTPUT}
    assert [call.launcher for call in asked.calls(asked.cases(1)[0])] == ["a", "b"]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (lambda: ["plan", ("run", {"step": 1}), "go"], "calls has go, which is no launcher: plan, run"),
        (lambda: [("run", {"step": 1})], "run takes plan, and no call before it returns a Plan\\*"),
        (lambda: ["plan", ("run", {"step": 1, "z": 2})], "a number for z, which is no scalar"),
        (lambda: ["plan", ("run", {"step": 1, "x": 99})], "row 99 of x, whose shape is"),
        (
            lambda: ["plan", ("run", {"step": 1, "x": 0}), ("run", {"step": 1})],
            "x is passed as a whole in one",
        ),
        (lambda: ["plan", ("run", {"step": 1}), "run"], "gives step to some calls alone: run lacks it"),
        (lambda: ["plan", "run"], "step is no size, and inputs has no value for it"),
        (lambda k: ["plan"] * k, "calls asks for k, which is no size"),
        (lambda n: [1 / (n - n)], "calls fails with"),
    ],
)
def test_calls_that_cannot_be_made_are_refused(calls: Callable[..., Sequence[object]], words: str) -> None:
    with pytest.raises(FormulaError, match=words):
        made(calls)


def test_what_several_calls_cannot_be_is_said() -> None:
    with pytest.raises(FormulaError, match="timing is for one launcher that is called once"):
        made(in_rows, timing=({"n": 8, "rows": 2},))
    with pytest.raises(FormulaError, match="returns a float\\*, which arrays are, too"):
        made(launcher=("float* plan(int n)", RUN))
