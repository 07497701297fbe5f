"""An assignment that is answered in Triton alone needs no folders of CUDA, and is checked as others are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import read
from grader.simulator.driver import RUNTIME
from grader.soundness.check import check

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def scaled_kernel(y, x, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, a * tl.load(x + i, i < n), i < n)


def scaled(y, x, a):
    n = x.numel()
    scaled_kernel[(triton.cdiv(n, 256),)](y, x, a, n, 256)
"""
FILES = {
    "assignment.toml": """
id = "alone"
title = "Triton alone"
languages = ["triton"]

[[problems]]
id = "scaled"
title = "Scaling"
correctness = 10.0
""",
    "problems/scaled.py": """
from grader.problems.contents import real
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="scaled",
    file="scaled.cu",
    launcher="launch_scaled(float* y, const float* x, float a, int n, cudaStream_t stream)",
    formula=lambda x, a: a * x,
    inputs=lambda n: {"x": real(n), "a": 2.5},
    sizes={"n": Range(1, 1 << 12)},
)
""",
    "student_template/HANDOUT.md": "Write the function `scaled` in `scaled.py`.\n",
    "student_template_triton/scaled.py": "def scaled(y, x, a):\n    pass\n",
    "reference_triton/scaled.py": KERNEL,
    "variants/scaled/larger.py": KERNEL.replace("256", "512"),
    "mutants/triton.py": """
from grader.assignments.mutants import Mutant

MUTANTS = (
    Mutant(
        id="factor",
        problem="scaled",
        file="scaled.py",
        old="a * tl.load",
        new="tl.load",
        why="x is not scaled",
        group="small sizes",
        language="triton",
    ),
)
""",
}


@pytest.mark.long
@pytest.mark.usefixtures("ptx_only")
def test_it_is_sound_without_a_file_in_cuda(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    rows = list(check(read(tmp_path), ["scaled"], seeds=1, device="sim"))
    assert [row for row in rows if row.sound is False] == []
    sound = {row.title for row in rows if row.sound}
    asked = ("template: scaled", "reference: scaled", "variants of scaled", "mutants of scaled")
    assert {"handout", *(f"triton {title}" for title in asked)} <= sound
