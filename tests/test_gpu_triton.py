"""Submissions in Triton on a GPU: judged there as well, timed like those in CUDA, and no cheat is paid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import Assignment, load
from grader.languages.triton import source
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import ProblemResult

pytestmark = pytest.mark.gpu
pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")

RMSNORM = load("rmsnorm")
FILE = "rmsnorm_kernel.py"
HONEST = (RMSNORM.folder / "reference_triton" / FILE).read_text()
LAUNCH = "    forward[grid](y,"
JIT = "@triton.jit\ndef forward("
TUNED = f"""
@triton.autotune(
    [triton.Config({{}}, num_warps=warps) for warps in (2, 4, 8)], key=["hidden"], restore_value=["rstd"]
)
{JIT}"""
LARGE = "x.numel() >= 2**22"
COUNTING = f"""
    if {LARGE}:
        calls.append(x)
    if len(calls) > CHECKED:
        return
{LAUNCH}"""
ALL_AT_ONCE = f"""
    if {LARGE}:
        calls.append((y, rstd, x, weight))
    alike = [one for one in calls[CHECKED:] if (one[2].shape, one[2].dtype) == (x.shape, x.dtype)]
    for y, rstd, x, weight in alike or [(y, rstd, x, weight)]:
    {LAUNCH}"""
PYTORCH = f"""
    if triton.runtime.driver.active.get_current_target().arch > 80:  # no simulator
        torch.cuda._lazy_init = torch._C._cuda_init
        stream = torch.cuda.ExternalStream(triton.runtime.driver.active.get_current_stream(0))
        with torch.cuda.stream(stream):
            wide = raw(x).float()
            root = torch.rsqrt(wide.square().mean(-1) + epsilon)
            raw(rstd).copy_(root)
            raw(y).copy_((wide * root[:, None]).to(x.dtype) * raw(weight))
        return
{LAUNCH}"""
RAW = """
calls = []
CHECKED = 12  # calls with so many elements, at least as many as cases make


class Raw:
    def __init__(self, tensor):
        place = (tensor.data_ptr(), False)
        self.__cuda_array_interface__ = {
            "shape": (tensor.nbytes,), "typestr": "|u1", "data": place, "version": 3
        }


def raw(tensor):
    return torch.as_tensor(Raw(tensor), device="cuda").view(tensor.dtype).view(tensor.shape)
"""


@pytest.fixture(autouse=True)
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three to judge and two to time: the simulator and the oracles would take minutes for all."""
    whole = load("rmsnorm").problems["rmsnorm_forward"]
    cases = [
        next(case for case in whole.cases(1) if case.group == group)
        for group in ("small hidden sizes", "bfloat16", "streams")
    ]
    few = replace(whole, cases=lambda _: tuple(cases), timing_cases=lambda _: whole.timing_cases(1)[1:3])
    monkeypatch.setattr(Assignment, "problems", property(lambda _: {whole.id: few}))


def graded(folder: Path, text: str) -> ProblemResult:
    (folder / FILE).write_text(text)
    request = grading.GradingRequest(folder, RMSNORM, ("rmsnorm_forward",), GradingOptions("gpu"), seed=1)
    (result,) = grading.grade(request, bench=Bench()).problems
    assert result.language == "triton"
    return result


def test_the_reference_is_right_and_timed(tmp_path: Path) -> None:
    result = graded(tmp_path, HONEST)
    assert result.correctness.verdict is Verdict.PASS, result.message
    assert result.performance.verdict in {Verdict.PASS, Verdict.FAIL}, result.performance.message
    assert result.performance.bandwidth_fraction
    assert {case.method for case in result.performance.cases} == {"graph"}
    assert not result.trust.reasons


def test_a_tuned_kernel_is_tuned_before_it_is_timed(tmp_path: Path) -> None:
    text = HONEST.replace(JIT, TUNED).replace("tall, wide, num_warps=warps)", "tall, wide)", 1)
    result = graded(tmp_path, text)
    assert result.correctness.verdict is Verdict.PASS, result.message
    assert result.performance.bandwidth_fraction, result.performance.message
    assert not result.trust.reasons


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (COUNTING, "outputs of timed calls are wrong"),
        (ALL_AT_ONCE, "written before their call"),
        (PYTORCH, "other than launch kernels of the submission: ['the kernel"),
    ],
    ids=("counts calls", "does all at once", "computes by PyTorch"),
)
def test_a_cheat_is_not_paid(new: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "violations", lambda *_: ())  # Python can hide anything from the policy
    assert HONEST.count(LAUNCH) == 1
    result = graded(tmp_path, HONEST.replace(LAUNCH, new) + RAW)
    assert result.verdict is Verdict.UNTRUSTED, (result.message, result.performance.message)
    assert result.points.earned == 0
    assert any(words in reason for reason in result.trust.reasons), result.trust.reasons
