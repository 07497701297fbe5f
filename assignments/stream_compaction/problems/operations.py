"""What the three problems share: the course's project, arrays that are drawn anew, and runs on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.program import Numbers, ProgramProblem, Run, program

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from grader.problems.problem import Case

    Array = NDArray[np.int32]

PROJECT = Path(__file__).parents[1] / "project"
COURSE = {path.relative_to(PROJECT).as_posix(): path.read_bytes() for path in PROJECT.rglob("*.[cht]*")}
TIMED = 1 << 24
SIZES = {
    "small": [{"n": 1}, {"n": 2}, {"n": 31}],
    "around a block": [{"n": 256}, {"n": 257}, {"n": 511}],
    "many blocks": [{"n": 3000}, {"n": 4096}],
}


def operation(
    name: str, drawn: Callable[[np.random.Generator, int], Array], right: Callable[[Array], Array]
) -> ProgramProblem:
    """The problem of one operation.

    Args:
        name: of the function, its file and its program.
        drawn: an input of a size.
        right: the output for it.
    """

    def run(case: Case) -> Run:
        array = drawn(np.random.default_rng(case.seed), case.sizes["n"]).astype(np.int32)
        return Run(
            arguments=("in.raw", "out.raw"),
            files={"in.raw": array.tobytes()},
            expected={"out.raw": Numbers(right(array).astype(np.int32), "int32")},
        )

    return program(
        id=name,
        file=f"gpu/{name}.cu",
        run=run,
        sizes=SIZES,
        given={path: text for path, text in COURSE.items() if path != f"gpu/{name}.cu"},
        cmake=name,
        timed=[{"n": TIMED}],
        region=r"in (?P<ms>[0-9.]+) ms",
    )
