"""A sample of the generated programs: races are found in the wrong ones, and nothing in the right ones.

All of them: ``GENERATED=all`` in the environment, as ``nox -s corpus`` has it. Within a block, the checker of
global memory forgets an access when another takes its place: a race may be seen in one order of the warps and
not in the other. Grading runs both, and so do these tests.
"""

import os
from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, races
from generated import Generated, generate, source

from grader.simulator.driver import Options, Order

STEP = (
    1 if os.environ.get("GENERATED") == "all" else 9
)  # without a factor in common with the ten of a pattern
PROGRAMS = generate()[::STEP]


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(source(PROGRAMS), "generated.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.kind], ids=lambda program: program.name)
def test_right_programs_have_no_finding(program: Generated, options: Options, library: Path) -> None:
    assert races(library, program.name, options, set()) == []


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.kind], ids=lambda program: program.name)
def test_wrong_programs_race(program: Generated, threads: int, library: Path) -> None:
    both = (Options(order=order, threads=threads) for order in (Order.PROGRAM, Order.REVERSED))
    assert any(races(library, program.name, options, {program.kind}) for options in both)
