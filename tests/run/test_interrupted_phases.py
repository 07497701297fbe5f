"""SIGTERM ends a grading at once in whatever phase it is, and what was decided before stays in the record.

Each phase here would go on for minutes. ``test_interrupted_timing.py`` has that of timing.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Literal

import pytest

from grader.assignments.assignment import load
from grader.cli import outputs as written
from grader.cli.outputs import Outputs
from grader.processes.signals import held_back
from grader.records.record import Record, read
from grader.records.verdict import Ending, Verdict
from grader.run import grading
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SOON = 20.0  # seconds: a phase goes on for minutes, and tests that run beside this one take processor time
SAXPY = """
__global__ void saxpy(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  for (volatile bool goes_on = n > MOST; goes_on;) {}
  saxpy<<<(n + 255) / 256, 256, 0, stream>>>(y, x, a, n);
}
"""
TRITON = """
import triton
import triton.language as tl


@triton.jit
def long(y, x, a, n):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    value = tl.load(y + at, mask=at < n)
    for step in tl.static_range(100000):
        value += tl.sin(value + step)
    tl.store(y + at, value, mask=at < n)


def saxpy(y, x, a):
    long[(triton.cdiv(x.shape[0], 1024),)](y, x, a, x.shape[0])
"""
_BRANCHES = "".join(
    f"  if (n == {number}) x[{number}] = sinf(x[{number + 1}]) * {number};\n" for number in range(20000)
)
SLOW_TO_COMPILE = f"__global__ void many(float* x, int n) {{\n{_BRANCHES}}}\n"


class Sender:
    """Sends SIGTERM some time after the grading has told that it is in a phase."""

    def __init__(self, phase: str, after: float = 0.0) -> None:
        self.phase, self.after = phase, after
        self.sent_at: float | None = None

    def __call__(self, text: str) -> None:
        if self.phase in text and self.sent_at is None:
            self.sent_at = time.monotonic() + self.after
            threading.Timer(self.after, os.kill, (os.getpid(), signal.SIGTERM)).start()

    @property
    def seconds(self) -> float:
        """Since the signal."""
        assert self.sent_at is not None, f"{self.phase!r} was never told"
        return time.monotonic() - self.sent_at


@pytest.fixture(autouse=True)
def interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SIGTERM as the commands take it, and nothing that was built before."""
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


def interrupted(
    folder: Path,
    files: dict[str, str],
    sender: Sender,
    *problems: str,
    memory: Literal["auto", "device"] = "device",
) -> Record:
    """The record of a grading on the simulator that ``sender`` ends."""
    for name, text in files.items():
        (folder / name).write_text(text)
    request = grading.GradingRequest(
        folder, load("first_kernels"), problems or ("saxpy",), GradingOptions("sim", memory=memory), seed=1
    )
    record = grading.grade(request, sender)
    assert sender.seconds < SOON
    assert (record.exit_code, record.error) == (130, "interrupted")
    assert Record.model_validate_json(record.model_dump_json(by_alias=True)) == record
    return record


def test_while_files_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "collect", lambda *_: time.sleep(300))
    assert interrupted(tmp_path, {}, Sender("collecting", 0.2)).score.decided == 0


def test_while_a_file_compiles(tmp_path: Path) -> None:
    record = interrupted(tmp_path, {"saxpy.cu": SLOW_TO_COMPILE + SAXPY}, Sender("compiling", 1.5))
    assert record.problems[0].verdict is Verdict.INFRA_ERROR


def test_in_the_trial_of_a_launcher(tmp_path: Path) -> None:
    record = interrupted(
        tmp_path, {"saxpy.cu": SAXPY.replace("MOST", "-1")}, Sender("on the sim, with", 0.5), memory="auto"
    )
    assert record.score.decided == 0


def test_in_the_middle_of_the_cases_those_before_stay(tmp_path: Path) -> None:
    record = interrupted(tmp_path, {"saxpy.cu": SAXPY.replace("MOST", "2000")}, Sender("case 9 of", 1.0))
    cases = record.problems[0].correctness.cases
    assert {case.verdict for case in cases} == {Verdict.PASS, Verdict.NOT_MEASURED}
    assert sum(case.verdict is Verdict.PASS for case in cases) >= 3
    assert {case.ending for case in cases if case.verdict is not Verdict.PASS} == {Ending.NOT_RUN}
    points = record.problems[0].points
    assert 0 < points.earned == points.decided < points.possible


def test_problems_that_are_decided_before_stay(tmp_path: Path) -> None:
    files = {"saxpy.cu": SAXPY.replace("MOST", "2000"), "transpose.cu": "does not compile"}
    record = interrupted(tmp_path, files, Sender("saxpy: case 9 of", 1.0), "transpose", "saxpy")
    transposed = record.problems[0]
    assert transposed.verdict is Verdict.FAIL
    assert transposed.points.decided > 0


def test_while_a_kernel_in_triton_is_compiled(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    record = interrupted(tmp_path, {"saxpy.py": TRITON}, Sender("saxpy: case 1 of", 4.0))
    assert {case.ending for case in record.problems[0].correctness.cases} == {Ending.NOT_RUN}


def test_while_reports_are_written_they_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "saxpy.cu").write_text("does not compile")
    request = grading.GradingRequest(
        tmp_path, load("first_kernels"), ("saxpy",), GradingOptions("sim", memory="device"), seed=1
    )
    record = grading.grade(request)
    json, page = tmp_path / "result.json", tmp_path / "result.html"

    def write(result: Record, path: Path, usual: Callable[[Record, Path], None] = written.write) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        usual(result, path)

    monkeypatch.setattr(written, "write", write)
    outputs = Outputs(
        assignment=request.assignment,
        option="",
        path=tmp_path,
        json=json,
        html=page,
        junit=None,
        gradescope=None,
        staff=False,
        verbose=False,
        quiet=True,
    )
    with pytest.raises(KeyboardInterrupt), held_back():
        outputs.write(record)
    assert read(json) == record
    assert page.read_text().rstrip().endswith("</html>")
