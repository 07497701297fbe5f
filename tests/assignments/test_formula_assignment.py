"""An assignment whose problem is a formula is graded: a right kernel passes, a wrong one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from forked import run

from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

RULES = """
id = "vectors"
title = "Vectors"

[[problems]]
id = "add_scaled"
title = "Scale and add"
correctness = 12.0
performance = 8.0
target = 1.0
"""
PROBLEM = '''"""z = a x + y in half precision, rounded once."""

from grader.problems.contents import real
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="add_scaled",
    file="add_scaled.cu",
    launcher="launch_add_scaled(__half* z, const __half* x, const __half* y, float a, int n, "
    "cudaStream_t stream)",
    formula=lambda x, y, a: a * x + y,
    inputs=lambda n: {"x": real(n), "y": real(n), "a": 2.5},
    sizes={"n": Range(1, 600)},
    timing=({"n": 600},),
)
'''
KERNEL = """#include <cuda_fp16.h>
__global__ void ker_add_scaled(__half* z, const __half* x, const __half* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = __float2half(a * __half2float(x[i]) + __half2float(y[i]));
}
extern "C" void launch_add_scaled(__half* z, const __half* x, const __half* y, float a, int n,
                                 cudaStream_t stream) {
  ker_add_scaled<<<(n + 127) / 128, 128, 0, stream>>>(z, x, y, a, n);
}
"""


@pytest.mark.parametrize(
    ("kernel", "last"),
    [
        (KERNEL, "Score: 12.0/12.0 (20.0 possible)"),
        (KERNEL.replace("if (i < n)", "if (i < n - 1)"), "Score: 0.0/12.0 (20.0 possible)"),
    ],
)
def test_a_formula_is_graded(kernel: str, last: str, tmp_path: Path) -> None:
    files = {
        "own/assignment.toml": RULES,
        "own/problems/add_scaled.py": PROBLEM,
        "own/student_template/HANDOUT.md": "Write a kernel.\n",
        "work/add_scaled.cu": kernel,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    options = ("--assignment", tmp_path / "own", "--device", "sim", "--sandbox", "process")
    done = run("grade", tmp_path / "work", *options)
    assert done.stdout.splitlines()[-1] == last, done.stdout + done.stderr
