"""C = A B in single precision; on a GPU it is timed beside cuBLAS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.program import Numbers, Run, program

if TYPE_CHECKING:
    from grader.problems.problem import Case

FOLDER = Path(__file__).parents[1]
GIVEN = {name: (FOLDER / "student_template" / name).read_bytes() for name in ("main.cu", "sgemm.h")}


def run(case: Case) -> Run:
    """The program computes a product for each of ``calls`` calls, with A changed between them.

    A sum of k products in any order errs by at most (k + 1) u sum |a| |b|, with u = 2^-24 (Higham, Accuracy
    and Stability of Numerical Algorithms, section 3.1, to first order).
    """
    m, n, k, calls = (case.sizes[name] for name in ("m", "n", "k", "calls"))
    random = np.random.default_rng(case.seed)
    a = random.standard_normal((m, k), dtype=np.float32)
    b = random.standard_normal((k, n), dtype=np.float32)
    last = (-1.0) ** (calls - 1) * a.astype(float)
    return Run(
        arguments=("a.raw", "b.raw", "c.raw", *map(str, (m, n, k, calls))),
        files={"a.raw": a.tobytes(), "b.raw": b.tobytes()},
        expected={
            "c.raw": Numbers(
                (last @ b).ravel(),
                "float32",
                allowed=((k + 2) * 2.0**-24 * (abs(last) @ abs(b).astype(float))).ravel(),
            )
        },
    )


PROBLEM = program(
    id="sgemm",
    file="sgemm.cu",
    run=run,
    given=GIVEN,
    libraries=(),
    rival={"sgemm.cu": (FOLDER / "rival" / "sgemm.cu").read_bytes()},
    sizes={
        "small": [
            {"m": 1, "n": 1, "k": 1, "calls": 1},
            {"m": 5, "n": 3, "k": 7, "calls": 2},
            {"m": 32, "n": 32, "k": 32, "calls": 1},
        ],
        "any shape": [
            {"m": 1, "n": 100, "k": 33, "calls": 1},
            {"m": 100, "n": 1, "k": 65, "calls": 1},
            {"m": 67, "n": 45, "k": 1, "calls": 1},
            {"m": 65, "n": 66, "k": 31, "calls": 2},
        ],
        "several tiles": [
            {"m": 128, "n": 192, "k": 64, "calls": 1},
            {"m": 129, "n": 131, "k": 50, "calls": 1},
        ],
    },
    timed=[{"m": 2048, "n": 2048, "k": 2048, "calls": 500}],
    region=r"in (?P<ms>[0-9.]+) ms",
)
