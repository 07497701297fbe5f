"""Writes an assignment of two problems, in half precision and in integers, and two submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
id = "own"
title = "Two small kernels"

[[problems]]
id = "half_scale"
title = "Scaling in half precision"
correctness = 6.0
performance = 4.0
target = 1.0

[[problems]]
id = "int_add"
title = "Adding integers"
correctness = 6.0
performance = 4.0
target = 1.0
"""

HALF_SCALE = '''"""y = factor x in float16, rounded once."""

import numpy as np

from grader.problems.distributions import generator
from grader.problems.problem import (
    ArrayParameter, Candidate, Case, Expectation, Inputs, KernelProblem, Role, ScalarParameter,
    StreamParameter,
)

from .sizes import SIZES


def cases(seed):
    return tuple(Case(f"{n} elements", "sizes", {"n": n}, "normal", seed + n) for n in SIZES)


def inputs(case):
    n = case.sizes["n"]
    x = generator(case.seed).standard_normal(n).astype(np.float16)
    return Inputs({"x": x}, {"y": (n,)}, {"factor": 1.5, "n": n})


def oracle(case, given):
    exact = given.wide("x") * given.scalars["factor"]
    return {"y": Expectation((Candidate(exact, np.abs(exact) * 2.0**-11 + 2.0**-25),))}


PROBLEM = KernelProblem(
    id="half_scale",
    file="half_scale.cu",
    entry_point="launch_half_scale",
    parameters=(
        ArrayParameter("y", Role.OUTPUT, "float16"),
        ArrayParameter("x", Role.INPUT, "float16"),
        ScalarParameter("factor", "float"),
        ScalarParameter("n", "int"),
        StreamParameter("stream"),
    ),
    groups=("sizes",),
    cases=cases,
    timing_cases=lambda seed: (),
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=lambda case: 4 * case.sizes["n"],
)
'''

INT_ADD = '''"""z = x + y in int32, in place on x."""

import numpy as np

from grader.problems.distributions import generator
from grader.problems.problem import (
    ArrayParameter, Candidate, Case, Expectation, Inputs, KernelProblem, Role, ScalarParameter,
    StreamParameter,
)

from .sizes import SIZES


def inputs(case):
    random, n = generator(case.seed), case.sizes["n"]
    x, y = (random.integers(-(1 << 30), 1 << 30, n, np.int32) for _ in range(2))
    return Inputs({"x": x, "y": y}, {}, {"n": n})


PROBLEM = KernelProblem(
    id="int_add",
    file="int_add.cu",
    entry_point="launch_int_add",
    parameters=(
        ArrayParameter("x", Role.INOUT, "int32"),
        ArrayParameter("y", Role.INPUT, "int32"),
        ScalarParameter("n", "int"),
        StreamParameter("stream"),
    ),
    groups=("sizes",),
    cases=lambda seed: tuple(Case(f"{n} elements", "sizes", {"n": n}, "uniform", seed + n) for n in SIZES),
    timing_cases=lambda seed: (),
    inputs=inputs,
    oracle=lambda case, given: {
        "x": Expectation((Candidate(given.arrays["x"] + given.arrays["y"], np.zeros(case.sizes["n"])),))
    },
    minimal_bytes=lambda case: 12 * case.sizes["n"],
)
'''

HALF_KERNEL = """#include <cuda_fp16.h>
__global__ void ker_half_scale(__half* y, const __half* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2half(factor * __half2float(x[i]));
}
extern "C" void launch_half_scale(__half* y, const __half* x, float factor, int n, cudaStream_t stream) {
  ker_half_scale<<<(n + 127) / 128, 128, 0, stream>>>(y, x, factor, n);
}
"""

INT_KERNEL = """__global__ void ker_int_add(int* x, const int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}
extern "C" void launch_int_add(int* x, const int* y, int n, cudaStream_t stream) {
  ker_int_add<<<(n + 127) / 128, 128, 0, stream>>>(x, y, n);
}
"""

HALF_PYTHON = """import triton
import triton.language as tl


@triton.jit
def scale(y, x, factor, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(y + at, factor * tl.load(x + at, mask=at < n).to(tl.float32), mask=at < n)


def half_scale(y, x, factor):
    scale[(triton.cdiv(len(x), 256),)](y, x, factor, len(x), 256)
"""

INT_PYTHON = """import triton
import triton.language as tl


@triton.jit
def add(x, y, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(x + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def int_add(x, y):
    add[(triton.cdiv(len(x), 256),)](x, y, len(x), 256)
"""

RIGHT = {"half_scale.cu": HALF_KERNEL, "int_add.cu": INT_KERNEL}
WRONG = {
    "half_scale.cu": HALF_KERNEL.replace("if (i < n)", "if (i < n - 1)"),
    "int_add.cu": INT_KERNEL.replace("+= y[i]", "-= y[i]"),
}
IN_TRITON = {"half_scale.py": HALF_PYTHON, "int_add.py": INT_PYTHON}
IN_BOTH = {"half_scale.py": HALF_PYTHON.replace("factor * tl", "0.5 * tl"), "int_add.cu": INT_KERNEL}


def write(folder: Path) -> Path:
    """The assignment, in ``folder/own``, with its two submissions in ``folder/class``; its folder."""
    files = {
        "own/assignment.toml": RULES,
        "own/problems/half_scale.py": HALF_SCALE,
        "own/problems/int_add.py": INT_ADD,
        "own/problems/sizes.py": "SIZES = (1, 127, 128, 1000)\n",
        "own/student_template/HANDOUT.md": "Write two kernels.\n",
        **{f"class/right/{name}": text for name, text in RIGHT.items()},
        **{f"class/wrong/{name}": text for name, text in WRONG.items()},
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "own"


def write_in_triton(folder: Path) -> Path:
    """The same, also for Triton, with a submission in that and one in both languages."""
    own = write(folder)
    rules = own / "assignment.toml"
    rules.write_text(rules.read_text().replace('id = "own"', 'id = "own"\nlanguages = ["cuda", "triton"]', 1))
    for name, files in (("triton", IN_TRITON), ("both", IN_BOTH)):
        (folder / "class" / name).mkdir()
        for file, text in files.items():
            (folder / "class" / name / file).write_text(text)
    return own
