"""``grader reproduce``: what its program shows is what the grader reports, and what it refuses."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from forked import run

import grader
from grader.assignments.assignment import load, read
from grader.assignments.rules import Hidden
from grader.cli.arguments import FaultError
from grader.records import record as results
from grader.reports.fix_first import telling_case
from grader.run.reproduction import ReproductionError, reproduce

FIRST = load("first_kernels")
CALLS = Path(__file__).parents[1] / "assignments" / "call_sequences"
WRONG = "fmaf(a, add.y, sum.y)", "fmaf(a, add.y, sum.x)"


def saxpy(folder: Path, wrong: tuple[str, str] = WRONG) -> Path:
    """A submission of that problem, wrong in one place."""
    folder.mkdir()
    (folder / "grader.toml").write_text('assignment = "first_kernels"\n')
    right = (FIRST.reference / "saxpy.cu").read_text()
    assert wrong[0] in right
    (folder / "saxpy.cu").write_text(right.replace(*wrong))
    return folder


def simulated(folder: Path) -> str:
    """What the program in ``folder`` prints on the simulator."""
    make = ("make", "-s", "-C", folder, "simulate", f"GRADER={sys.executable} -P -m grader")
    done = subprocess.run(make, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_program_shows_the_elements_that_the_report_shows(tmp_path: Path) -> None:
    homework, record, out = saxpy(tmp_path / "hw"), tmp_path / "record.json", tmp_path / "case"
    small = next(case.name for case in FIRST.problems["saxpy"].cases(5) if 16 <= case.sizes["n"] < 100)
    chosen = ("--problem", "saxpy", "--case", small, "--seed", 5, "--device", "sim")
    told = run("grade", homework, *chosen, "--json", record)
    (command,) = re.findall(r"^As a program: grader (.*)$", told.stdout, re.MULTILINE)
    words = shlex.split(command)
    done = run(*words, "--device", "sim", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    case = telling_case(results.read(record).problems[0])
    assert case is not None
    (output,) = (output for output in case.outputs if output.bad)
    counts = f"{output.name}: {output.bad} of {output.total} wrong"
    assert done.stdout.startswith(f"{case.name}: {output.name}: {output.bad:,} of {output.total:,} wrong\n")

    printed = simulated(out)
    assert printed.splitlines()[-1] == counts
    shown = re.findall(r"\[(\d+)\]: expected (\S+), got (\S+)", printed)
    for (index, *numbers), bad in zip(shown, output.first_bad, strict=True):
        assert [int(index)] == bad.index
        assert [float(text) for text in numbers] == pytest.approx([bad.expected, bad.got], rel=1e-5)

    expected, actual, allowed = (
        np.load(out / f"{output.name}_{kind}.npy") for kind in ("expected", "actual", "allowed")
    )
    assert np.count_nonzero(~(np.abs(actual - expected) <= allowed)) == output.bad
    program = (out / "main.cu").read_text().splitlines()
    assert len(program) <= 60
    assert max(map(len, program)) < 130

    (homework / "saxpy.cu").write_text((FIRST.reference / "saxpy.cu").read_text())
    again = run("reproduce", record, "--submission", homework, "--device", "sim", "--out", out)
    assert again.returncode == 0, again.stderr
    assert "are no longer those that the record is of" in again.stderr
    assert again.stdout.startswith(f"{case.name}: {output.name}: 0 of")


def test_a_launcher_that_does_not_return_leaves_a_program_that_ends_likewise(tmp_path: Path) -> None:
    homework = saxpy(tmp_path / "hw", (WRONG[0], "(*(volatile int *)0 = 1, 0.f)"))
    case = FIRST.problems["saxpy"].cases(5)[-1].name
    found = grader.reproduce(homework, "saxpy", case, seed=5, device="sim")
    assert not found.actual
    assert f"{case}: cudaErrorIllegalAddress: ker_saxpy, saxpy.cu:20" in found.verdict
    found.write(tmp_path / "case")
    assert not list((tmp_path / "case").glob("*_actual.npy"))
    make = ("make", "-s", "-C", tmp_path / "case", "simulate", f"GRADER={sys.executable} -P -m grader")
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert "CUDA says: an illegal memory access was encountered" in done.stdout
    assert "memcheck" in done.stderr


def test_a_function_in_triton_gets_a_program_in_python(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    homework, assignment = tmp_path / "hw", load("rmsnorm")
    homework.mkdir()
    text = (assignment.folder / "reference_triton" / "rmsnorm_kernel.py").read_text()
    wrong = text.replace("tl.rsqrt(", "0.5 * tl.rsqrt(", 1)
    assert wrong != text
    (homework / "rmsnorm_kernel.py").write_text(wrong)
    problem = assignment.problems["rmsnorm_forward"]
    cases = (case for case in problem.cases(5) if case.dtype == "bfloat16")
    case = min(cases, key=problem.minimal_bytes)
    found = grader.reproduce(
        homework, "rmsnorm_forward", case.name, seed=5, assignment="rmsnorm", device="sim"
    )
    found.write(tmp_path / "case")
    printed = simulated(tmp_path / "case")
    for name, elements in found.wrong.items():
        assert f"{name}: {np.count_nonzero(elements)} of {elements.size} wrong\n" in printed
    assert any(elements.any() for elements in found.wrong.values())
    assert len((tmp_path / "case" / "main.py").read_text().splitlines()) <= 60


def test_several_calls_are_made_one_after_the_other(tmp_path: Path) -> None:
    homework, own = tmp_path / "hw", read(CALLS)
    homework.mkdir()
    right = (own.reference / "queue.cu").read_text()
    (homework / "queue.cu").write_text(
        right.replace("taken, queue->numbers + queue->popped", "taken, queue->numbers")
    )
    case = next(each for each in own.problems["queue"].cases(5) if each.sizes == {"batches": 3, "n": 7})
    found = grader.reproduce(homework, "queue", case.name, seed=5, assignment=str(CALLS), device="sim")
    assert found.verdict == f"{case.name}: taken: 14 of 21 wrong"
    found.write(tmp_path / "case")
    program = (tmp_path / "case" / "main.cu").read_text()
    assert "auto *returned_0 = make_queue(/*batches=*/3, /*n=*/7, stream);" in program
    assert "pop(returned_0, taken_1, /*n=*/7, stream);" in program
    printed = simulated(tmp_path / "case").splitlines()
    assert [line for line in printed if line.endswith("wrong")] == [
        f"taken_{row}: {wrong} of 7 wrong" for row, wrong in enumerate((0, 7, 7))
    ]


def test_hidden_cases_stay_hidden_until_their_date(tmp_path: Path) -> None:
    case = FIRST.problems["saxpy"].cases(5)[0]
    hidden = Hidden(groups=(case.group,), until=datetime(9999, 1, 1, tzinfo=UTC))
    secret = replace(FIRST, rules=FIRST.rules.model_copy(update={"hidden": hidden}))
    with pytest.raises(ReproductionError, match="hidden until 9999-01-01"):
        reproduce(tmp_path, secret, "saxpy", case.name, 5)


def test_what_cannot_be_reproduced_says_what_to_do_instead(tmp_path: Path) -> None:
    homework = saxpy(tmp_path / "hw")
    with pytest.raises(FaultError, match="Name a record of grade --json, or all of --problem"):
        grader.reproduce(homework, "saxpy")
    with pytest.raises(FaultError, match="has no case 'none such' with the seed 5"):
        grader.reproduce(homework, "saxpy", "none such", seed=5)
    with pytest.raises(FaultError, match="transformer asks for no calls of launchers"):
        grader.reproduce(homework, "transformer", "x", seed=5, assignment="llm_systems_3")
    case = FIRST.problems["saxpy"].cases(5)[0].name
    (homework / "saxpy.cu").write_text("nothing\n")
    with pytest.raises(FaultError, match=r"saxpy\.cu did not compile|saxpy\.cu"):
        grader.reproduce(homework, "saxpy", case, seed=5, device="sim")
    (homework / "notes.txt").write_text("mine")
    (homework / "saxpy.cu").write_text((FIRST.reference / "saxpy.cu").read_text())
    found = grader.reproduce(homework, "saxpy", case, seed=5, device="sim")
    with pytest.raises(ReproductionError, match="holds other files"):
        found.write(homework)
    assert (homework / "notes.txt").read_text() == "mine"
