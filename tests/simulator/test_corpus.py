"""The checkers on the corpus: every planted bug is named with its line, and nothing else is."""

import re
from collections import Counter

import pytest
from corpus import (
    HERE,
    NOT_A_BUG,
    RECORDS,
    Found,
    Program,
    Record,
    build,
    fault_of,
    programs,
    reports,
    run_on_sim,
    table,
)

PROGRAMS = programs()
ELSEWHERE = {
    ("memcheck", "index_overflow"),  # test_overflow.py: only looked for where it is asked for
    ("memcheck", "const_input"),  # test_const_inputs.py: only where the judge says what is an input
    ("racecheck", "stale_read"),  # test_global_races.py: none of compute-sanitizer's tools looks for it
    ("racecheck", "early_launch"),  # test_early_launches.py: the corpus has no code for compute_90
    ("racecheck", "race_stream"),  # test_stream_races.py
    ("racecheck", "race_host"),  # test_host_races.py
    ("racecheck", "unfenced_lock"),  # test_locks.py
    ("apicheck", "failed_allocation"),  # test_sim.py: what the judge makes of a failed call
}
KINDS = {
    "memcheck": "global_oob shared_oob local_oob misaligned use_after_free double_free host_pointer "
    "device_pointer_on_host const_input leak index_overflow",
    "initcheck": "uninit_global uninit_shared",
    "racecheck": "race_shared race_warp race_global stale_read early_launch race_stream race_host "
    "unfenced_lock",
    "synccheck": "divergent_barrier missing_lanes exited_lanes",
    "hang": "budget deadlock",
    "apicheck": "unchecked_error invalid_launch memcpy_overflow failed_allocation",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.group}-{program.name}")
def test_sim_sees_what_is_there_and_nothing_else(program: Program) -> None:
    run = run_on_sim(program, build(program.source, "sim"), overflow=not program.bugs)
    assert fault_of(program, run) == ""


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reversed"])
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.group == "clean"], ids=lambda program: program.name
)
def test_right_programs_stay_right_on_several_threads(program: Program, reverse: bool) -> None:
    run = run_on_sim(program, build(program.source, "sim"), reverse=reverse, threads=4)
    assert fault_of(program, run) == ""


def test_corpus_has_every_kind_twice() -> None:
    planted = Counter((bug.tool, bug.kind) for program in PROGRAMS for bug in set(program.bugs[:1]))
    expected = {(tool, kind) for tool, kinds in KINDS.items() for kind in kinds.split()}
    assert set(planted) == expected - ELSEWHERE
    assert min(planted.values()) >= 2
    groups = Counter(program.group for program in PROGRAMS)
    assert groups["bugs"] >= 40
    assert groups["clean"] >= 20
    assert groups["kernels"] >= 45


def test_names_are_unique_and_programs_have_one_bug() -> None:
    assert max(Counter(program.name for program in PROGRAMS).values()) == 1
    for program in PROGRAMS:
        kinds = {(bug.tool, bug.kind) for bug in program.bugs}
        assert len(kinds) == (1 if program.group == "bugs" else 0), program.name


def test_reports_of_compute_sanitizer_are_read() -> None:
    output = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 16 bytes
=========     at row_sums(int, const float *, float *)+0x150 in /a/b/global_memory.cu:74
=========     by thread (1,0,0) in block (1,0,0)
=========     Address 0x7f2e0 is misaligned
=========
========= Invalid __global__ read of size 16 bytes
=========     at row_sums(int, const float *, float *)+0x150 in /a/b/global_memory.cu:74
=========     by thread (2,0,0) in block (1,0,0)
=========     Address 0x7f2f0 is misaligned
=========
========= Error: Race reported between Read access at scan(int *)+0x60 in /a/b/global_memory.cu:12
=========     and Write access at scan(int *)+0x90 in /a/b/global_memory.cu:15 [508 hazards]
=========
========= ERROR SUMMARY: 2 errors
"""
    misaligned, race = reports("memcheck", output, "global_memory.cu")
    assert misaligned == Found("memcheck", "Invalid __global__ read of size 16 bytes, misaligned", [74])
    assert race.lines == [12, 15]
    assert race.what.startswith("Race reported between Read access at scan")


def test_table_in_the_documentation_is_made_from_the_records() -> None:
    printed = table(Record.read(RECORDS["sim"]), Record.read(RECORDS["gpu"]))
    assert (HERE.parents[1] / "docs" / "corpus.md").read_text() == printed, (
        "run: python tests/simulator/corpus.py --table > docs/corpus.md"
    )


def test_every_report_on_a_right_program_is_explained() -> None:
    runs = Record.read(RECORDS["gpu"])
    right = {program.name for program in PROGRAMS if program.group == "clean"}
    reported = {name for name in right for run in runs.get(name, {}).values() if run.found}
    assert reported == set(NOT_A_BUG)


def test_every_kind_is_explained() -> None:
    headings = re.findall(
        r"^### (\w+)$", (HERE.parents[1] / "docs" / "findings.md").read_text(), re.MULTILINE
    )
    assert headings == [kind for kinds in KINDS.values() for kind in kinds.split()]
