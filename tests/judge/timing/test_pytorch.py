"""What PyTorch is timed with computes what the problem asks, and its times stand beside a speedup."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from first_assignment import ASSIGNMENT, KERNELS
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import grader
from grader.assignments.assignment import load
from grader.judge.correctness.comparison import compare
from grader.judge.timing import others, pytorch
from grader.judge.timing.others import FUSED, STEPWISE, Others
from grader.problems.dtypes import DTYPES
from grader.problems.problem import ArrayParameter, Inputs, KernelProblem, Role
from grader.records.record import PerformanceResult, TimedCase
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.problems.problem import Case, Problem

PROBLEMS = {name: problem for name, problem in KERNELS.items() if problem.fused is not None}
ORDER = {
    "softmax_forward": ("inp",),
    "softmax_backward": ("out_grad",),
    "layernorm_forward": ("ln_res", "means", None),
    "layernorm_backward": ("inp_grad", "gamma_grad", "betta_grad"),
}


def small(problem: Problem) -> list[tuple[Case, Inputs]]:
    cases = [case for case in problem.cases(3) if case.group != "streams"]
    wanted = [
        case for case in cases if case.distribution == "normal" and math.prod(case.sizes.values()) < 1e5
    ]
    if problem.id == "softmax_forward":
        wanted = [*wanted[:1], *(case for case in cases if case.sizes["mask_future"])]
    return [(case, problem.inputs(case)) for case in wanted[:4]]


def arrays(given: Inputs) -> dict[str, torch.Tensor]:
    read = {n: torch.from_numpy(a.astype(np.float32)) for n, a in given.arrays.items() if a is not None}
    return read | {name: torch.zeros(shape) for name, shape in given.outputs.items()}


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_both_ways_of_pytorch_are_right(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    assert problem.fused is not None
    for case, given in small(problem):
        right = problem.oracle(case, given)
        memory = pytorch.stepwise(problem.unfused(case), arrays(given))()
        fused = problem.fused(arrays(given), given.scalars)()
        outputs = fused if isinstance(fused, tuple) else (fused,)
        for name, output in zip(ORDER[problem_id], outputs, strict=True):
            if name is not None:
                shape = right[name].candidates[0].expected.shape
                for found in (memory[name], output):
                    assert compare(name, right[name], found.reshape(shape).numpy()).right, (case.name, name)


class OneDevice(TorchDispatchMode):
    """Refuses operations on arrays that do not all belong to the device, as the capture of a graph does."""

    def __torch_dispatch__(
        self,
        function: Callable[..., object],
        _types: object,
        arguments: tuple[object, ...] = (),
        options: Mapping[str, object] | None = None,
    ) -> object:
        returned = function(*arguments, **(options or {}))
        for one in tree_leaves((arguments, options, returned)):
            # A number of the host may meet an array, but for an operator that copies it first.
            if isinstance(one, torch.Tensor) and (one.dim() or function is torch.ops.aten.where.self):
                assert one.device.type == "meta", function
        return returned


@pytest.mark.parametrize("problem_id", load("first_kernels").problems)
def test_all_arrays_of_a_launch_are_on_its_device(problem_id: str) -> None:
    problem = load("first_kernels").problems[problem_id]
    assert isinstance(problem, KernelProblem)
    case = problem.timing_cases(1)[0]
    small = replace(case, sizes=dict.fromkeys(case.sizes, 64))
    arrays = pytorch.tensors(problem, problem.inputs(small), 0, "cpu")
    arrays = {name: array.to("meta") for name, array in arrays.items()}
    launch = pytorch.stepwise(problem.unfused(small), arrays)
    with OneDevice():
        launch()


def test_nothing_is_imported_from_the_folder_of_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("open('taken', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(grader.__file__).parents[1]))
    with others.Process(ASSIGNMENT.folder, 1, ["softmax_forward"]) as process:
        process.wait_until_ready()
        process.result()
    assert not (tmp_path / "taken").exists()


def performance() -> PerformanceResult:
    cases = [
        TimedCase(name=name, verdict=Verdict.PASS, yours_us=yours) for name, yours in (("a", 10), ("b", 20))
    ]
    return PerformanceResult(verdict=Verdict.PASS, target=2, cases=cases)


def test_their_times_stand_beside_each_case_with_the_geometric_mean_in_words() -> None:
    times = {"p": {"a": {STEPWISE: 40.0, FUSED: 10.0}, "b": {STEPWISE: 180.0, FUSED: 40.0}}}
    result = Others("PyTorch 9.9", times=times).beside("p", performance())
    assert result.cases[1].others_us == {STEPWISE: 180.0, FUSED: 40.0}
    assert result.info == [
        "6.00x the speed of PyTorch 9.9, one operation at a time",
        "1.41x the speed of PyTorch 9.9, its own operator",
    ]
    assert result.verdict is Verdict.PASS


def test_without_cuda_the_record_says_so_and_nothing_else_changes() -> None:
    if torch.cuda.is_available():
        pytest.skip("this PyTorch has CUDA")
    with others.Process(ASSIGNMENT.folder, 1, ["softmax_forward"]) as process:
        process.wait_until_ready()
        found = process.result()
    assert "has no CUDA here" in found.absent
    result = found.beside("softmax_forward", performance())
    assert result.info == [found.absent]
    assert result.model_copy(update={"info": []}) == performance()


def test_a_problem_that_cannot_be_timed_leaves_the_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def times(problem: KernelProblem, _: Case) -> dict[str, float]:
        if problem.id == "softmax_forward":
            raise RuntimeError("no capture\nof this")
        return {FUSED: 20.0}

    monkeypatch.setattr(pytorch, "_times", times)
    monkeypatch.setattr(pytorch.cuda, "is_available", lambda: True)
    found = pytorch.main(str(ASSIGNMENT.folder), 1, ["softmax_forward", "layernorm_forward"])
    assert found.beside("softmax_forward", performance()).info == ["PyTorch was not timed: no capture"]
    assert found.times is not None
    assert found.times.keys() == {"layernorm_forward"}


def test_a_process_that_fails_is_told_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with others.Process(ASSIGNMENT.folder, 1, ["softmax_forward"]) as process:
        assert process.result().absent == "PyTorch was not timed: exit code 1"


def test_nothing_is_said_beside_a_kernel_that_was_not_timed() -> None:
    nothing = PerformanceResult(verdict=Verdict.NOT_MEASURED, target=2)
    assert Others(absent="no").beside("p", nothing) == nothing


def test_nothing_is_said_beside_whole_calls_with_host_pointers() -> None:
    cases = [case.model_copy(update={"method": "host"}) for case in performance().cases]
    host = performance().model_copy(update={"cases": cases})
    times = {"p": {"a": {FUSED: 10.0}, "b": {FUSED: 40.0}}}
    assert Others("PyTorch 9.9", times=times).beside("p", host) == host


def test_what_pytorch_is_timed_on_has_the_types_of_the_problem() -> None:
    types = {"h": "bfloat16", "d": "float64", "i": "int64", "t": "bool"}
    parameters = (
        *(ArrayParameter(name, Role.INPUT, dtype) for name, dtype in types.items()),
        ArrayParameter("y", Role.OUTPUT, "float16"),
    )
    problem = replace(KERNELS["softmax_backward"], parameters=parameters)
    given = {name: np.arange(6).astype(DTYPES[dtype].storage) for name, dtype in types.items()}
    made = pytorch.tensors(problem, Inputs(given, {"y": (6,)}, {}), 1, "cpu")
    assert {name: str(tensor.dtype) for name, tensor in made.items()} == {
        **{name: f"torch.{dtype}" for name, dtype in types.items()},
        "y": "torch.float16",
    }
    assert made["i"].tolist() == list(range(6))  # an index stays one
