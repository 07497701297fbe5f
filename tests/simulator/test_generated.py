"""A sample of the generated programs: races are found in the wrong ones, and nothing in the right ones.

``nox -s corpus`` runs all of them. Within a block, the checker of global memory forgets an access when others
take its place: a race may be seen in one order of the warps and not in the other. Grading runs both, and so
do these tests.
"""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile
from generated import RECORD, generate, read, run, source

from grader.simulator.driver import Options, Order

SAMPLE = generate()[::37]  # which has no factor in common with the ten of a pattern


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(source(SAMPLE), "generated.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
def test_right_programs_have_no_finding(options: Options, library: Path) -> None:
    seen = run(library, [program for program in SAMPLE if not program.kind], options)
    assert {name: one.kinds for name, one in seen.items() if one.kinds} == {}


@pytest.mark.parametrize("threads", [1, 2])
def test_wrong_programs_race(threads: int, library: Path) -> None:
    wrong = [program for program in SAMPLE if program.kind]
    runs = [
        run(library, wrong, Options(order=order, threads=threads))
        for order in (Order.PROGRAM, Order.REVERSED)
    ]
    for program in wrong:
        kinds = {kind for seen in runs for kind in seen[program.name].kinds}
        assert kinds - program.beside == {program.kind}, program.name


def test_the_record_is_of_all_programs_and_has_no_miss() -> None:
    rows = read(RECORD).values()
    racy = sum(bool(program.kind) for program in generate())
    assert sum(row.racy for row in rows) == sum(row.found for row in rows) == racy >= 600
    assert sum(row.clean for row in rows) == len(generate()) - racy >= 600
    assert not any(row.missed or row.reported for row in rows)
