"""Problems of several calls: a plan and its execution, steps with state, a queue behind a handle."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
from sound_assignment import assert_sound

from grader.assignments.assignment import read
from grader.records.verdict import Verdict
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions
from grader.simulator.driver import RUNTIME

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

FOLDER = Path(__file__).with_name("call_sequences")

IN_TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def copied(to, source, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + i, tl.load(source + i, i < n), i < n)


class Queue:
    def __init__(self):
        self.batches = []


def make_queue():
    return Queue()


def push(queue, numbers):
    kept = torch.empty_like(numbers)
    copied[(triton.cdiv(numbers.numel(), 256),)](kept, numbers, numbers.numel(), 256)
    queue.batches.append(kept)


def pop(queue, taken):
    copied[(triton.cdiv(taken.numel(), 256),)](taken, queue.batches.pop(0), taken.numel(), 256)


def free_queue(queue):
    queue.batches.clear()
"""


@pytest.mark.long
def test_right_kernels_pass_and_wrong_ones_fail() -> None:
    assert_sound(FOLDER)


@pytest.mark.usefixtures("ptx_only")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('extern "C" Queue *make_queue', 'extern "C" Queue *new_queue', 'no function extern "C" make_queue'),
        (
            "Queue *make_queue(int batches, int n, cudaStream_t stream) {\n",
            "void make_queue(int batches, int n, cudaStream_t stream) {\n",
            "returns nothing, the assignment's a Queue*",
        ),
        (
            "  return queue;\n",
            "  return nullptr;\n",
            "(Segmentation fault) on the host: push was given the null pointer that make_queue returned",
        ),
    ],
)
def test_what_is_wrong_with_a_launcher_is_said(tmp_path: Path, old: str, new: str, words: str) -> None:
    submission = copytree(FOLDER / "reference", tmp_path / "submission")
    file = submission / "queue.cu"
    assert old in file.read_text()
    file.write_text(
        file.read_text()
        .replace(old, new)
        .replace("  return queue;\n", "" if "void" in new else "  return queue;\n")
    )
    (problem,) = grade(
        GradingRequest(submission, read(FOLDER), ("queue",), GradingOptions("sim", "process"), 1)
    ).problems
    assert problem.verdict is Verdict.FAIL
    assert words in " ".join([problem.message, *(case.message for case in problem.correctness.cases)])


def test_functions_in_python_hand_on_any_object(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    own, submission = copytree(FOLDER, tmp_path / "call_sequences"), tmp_path / "submission"
    rules = own / "assignment.toml"
    rules.write_text(rules.read_text().replace("\n\n", '\nlanguages = ["cuda", "triton"]\n\n', 1))
    submission.mkdir()
    (submission / "queue.py").write_text(IN_TRITON)
    (problem,) = grade(
        GradingRequest(submission, read(own), ("queue",), GradingOptions("sim", "process"), 1)
    ).problems
    assert problem.verdict is Verdict.PASS, problem.message
