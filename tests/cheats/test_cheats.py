"""Submissions that cheat for speed: none of them is paid.

What correctness or the import policy already catch is caught on the simulator as well; the others pass there,
where nothing is timed, and must fail on a GPU.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import load
from grader.devices.gpu import Gpu
from grader.devices.sim import Sim
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from grader.records.record import ProblemResult

HERE = Path(__file__).parent
FAIL, UNTRUSTED = Verdict.FAIL, Verdict.UNTRUSTED


@dataclass(frozen=True)
class Cheat:
    """A source file and what becomes of it; ``words`` stand in the reasons."""

    name: str
    verdict: Verdict
    words: str = ""
    on_sim: bool = False


CHEATS = (
    Cheat("cached_result", FAIL, on_sim=True),
    Cheat("side_stream", FAIL, on_sim=True),
    Cheat("clock", UNTRUSTED, "cudaEventElapsedTime", on_sim=True),
    Cheat("precision", FAIL, on_sim=True),
    Cheat("call_counting", UNTRUSTED, "outputs of timed calls are wrong"),
    Cheat("first_calls", UNTRUSTED, "outputs of timed calls are wrong"),
    Cheat("persisting_l2", FAIL),
    Cheat("remembered_rows", UNTRUSTED, "never seen before"),
    Cheat("own_streams", FAIL),
    Cheat("one_for_all", UNTRUSTED, "written before their call"),
)


def judged(cheat: Cheat, device: str, tmp_path: Path) -> ProblemResult:
    shutil.copy(HERE / "honest.cuh", tmp_path)
    shutil.copy(HERE / f"{cheat.name}.cu", tmp_path / "layernorm_kernel.cu")
    request = grading.GradingRequest(
        tmp_path, load("llm_systems_3"), ("layernorm_forward",), GradingOptions(device), seed=3
    )
    (result,) = grading.grade(request, bench=remembering(device)).problems
    return result


@cache
def remembering(device: str) -> Bench:  # noqa: ARG001 - one for each
    """What all gradings on a device share: they meet the same cases, on the simulator the usual ones."""
    return Bench(remembers=True)


def check(cheat: Cheat, result: ProblemResult) -> None:
    assert result.verdict is cheat.verdict, (result.trust.reasons, result.performance.message)
    assert any(cheat.words in reason for reason in result.trust.reasons) or not cheat.words
    if cheat.verdict is UNTRUSTED:
        assert result.points.earned == 0
    assert result.performance.verdict not in {Verdict.PASS, Verdict.AMBIGUOUS}


@pytest.mark.usefixtures("ptx_only", "usual_cases")
@pytest.mark.parametrize("cheat", [one for one in CHEATS if one.on_sim], ids=lambda one: one.name)
def test_what_needs_no_clock_is_caught_on_the_simulator(cheat: Cheat, tmp_path: Path) -> None:
    check(cheat, judged(cheat, "sim", tmp_path))


@pytest.mark.usefixtures("ptx_only", "usual_cases")
def test_what_is_kept_from_call_to_call_shows_in_the_orders_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sim, "schedules", Gpu.schedules)
    check(CHEATS[0], judged(CHEATS[0], "sim", tmp_path))


@pytest.mark.gpu
@pytest.mark.parametrize("cheat", CHEATS, ids=lambda one: one.name)
def test_no_cheat_is_paid_on_a_gpu(cheat: Cheat, tmp_path: Path) -> None:
    check(cheat, judged(cheat, "gpu", tmp_path))


def test_every_cheat_has_a_verdict() -> None:
    assert {path.stem for path in HERE.glob("*.cu")} == {cheat.name for cheat in CHEATS}
