"""Arrays that are free afterwards: a workspace, and an input that may be used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grader.devices.device import Answer, ArrayArgument, Memory, Schedule, Status
from grader.judge.correctness.arrays import ARRAYS
from grader.problems.contents import real
from grader.problems.explained import FormulaError
from grader.problems.formula import Range, problem
from grader.problems.problem import Case, Role
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.devices.device import Call
    from grader.problems.problem import KernelProblem
    from grader.records.record import CaseResult

CASE = Case("7", "sizes", {"n": 7}, "normal", 3)


def sums(**changed: Any) -> KernelProblem:  # noqa: ANN401 - arguments of ``problem``
    arguments: dict[str, Any] = {
        "id": "sum",
        "file": "sum.cu",
        "launcher": "launch_sum(double* y, double* x, float* workspace, int n, cudaStream_t stream)",
        "formula": lambda x: {"y": x.sum().view(1)},
        "inputs": lambda n: {"x": real(n)},
        "outputs": lambda n: {"workspace": (n + 1,)},
        "free": ["workspace", "x"],
        "sizes": {"n": Range(1, 100)},
    }
    return problem(**(arguments | changed))


SUM = sums()


class Session:
    """Leaves these arrays behind, and notes the call."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self.calls: list[Call] = []

    def run(self, call: Call) -> Answer:
        self.calls.append(call)
        return Answer(Status.RETURNED, arrays=self.arrays)

    def close(self) -> None:
        """Nothing is open."""


def judged(asked: KernelProblem, session: Session) -> CaseResult:
    return ARRAYS.called(
        asked,
        CASE,
        session,  # type: ignore[arg-type]
        Schedule.PROGRAM,
        None,
        memory=Memory.DEVICE,
        seconds=1.0,
    )[0]


def test_whatever_is_left_in_them_is_right() -> None:
    x = SUM.inputs(CASE).wide("x")
    session = Session({"y": x.sum(keepdims=True), "x": x + 1, "workspace": np.full(8, np.nan, np.float32)})
    result = judged(SUM, session)
    assert result.verdict is Verdict.PASS
    assert [output.name for output in result.outputs] == ["y"]
    arrays = {each.name: each for each in session.calls[0].arguments if isinstance(each, ArrayArgument)}
    assert arrays["workspace"].shape == (8,)
    assert arrays["workspace"].data is None
    assert not arrays["x"].constant
    kept = sums(free=["workspace"], formula=lambda x: {"y": x.sum().view(1), "x": x})
    assert judged(kept, session).verdict is Verdict.FAIL


def test_they_count_for_no_traffic_and_no_baseline() -> None:
    assert SUM.minimal_bytes(CASE) == 7 * 8 + 8
    assert SUM.roles == {"y": Role.OUTPUT, "x": Role.INOUT, "workspace": Role.OUTPUT}
    assert {operation.output.name for operation in SUM.unfused(CASE)} == {"y"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"free": ["work"]}, "free has work, which is no array"),
        ({"outputs": None}, "the shape of workspace is not known"),
        (
            {"launcher": "f(double* y, const double* x, float* workspace, int n, cudaStream_t s)"},
            "x is const, and so not free",
        ),
    ],
)
def test_what_cannot_be_free_is_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        sums(**changed).cases(1)
