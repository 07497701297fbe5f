"""``grader judge``: many candidates for one problem, in processes that stay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import forked
import pytest

from grader import Judge
from grader.assignments.assignment import load
from grader.batch.candidates import CandidateError
from grader.records.verdict import Verdict
from grader.run.options import GradingOptions

FIRST = load("first_kernels")
SAXPY = (FIRST.reference / "saxpy.cu").read_text()
ON_SIM = GradingOptions("sim", "process")
DIES = """
import json, sys

print(json.dumps({"kind": "sim", "files": []}), flush=True)
sys.stdin.readline(), sys.stdin.readline()
sys.exit("out of order")
"""


@pytest.mark.long
def test_each_candidate_gets_a_line_with_verdict_cause_and_distrust(tmp_path: Path) -> None:
    texts = {
        "right.cu": SAXPY,
        "wrong.cu": SAXPY.replace("fmaf(a, add.y, sum.y)", "fmaf(a, add.y, sum.x)"),
        "cheats.cu": SAXPY + '\n#include <cstdlib>\nint cheated = system("ls");\n',
    }
    assert texts["wrong.cu"] != SAXPY
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    done = forked.run(
        *("judge", "saxpy", *(tmp_path / name for name in texts), "--assignment", "first_kernels"),
        *("--json", "--device", "sim", "--sandbox", "process", "--seed", "5"),
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stderr
    assert [Path(line["candidate"]).name for line in lines] == list(texts)
    right, wrong, cheats = lines
    assert (right["verdict"], right["cause"], right["distrust"]) == ("PASS", "", [])
    assert right["earned"] == right["decided"] > 0
    assert wrong["verdict"] == "FAIL"
    assert wrong["cause"]
    assert wrong["earned"] < right["earned"]
    assert cheats["verdict"] == "UNTRUSTED"
    assert any("system" in reason for reason in cheats["distrust"])
    assert "3 in " in done.stderr
    assert "a minute" in done.stderr


def test_a_file_of_a_language_that_no_answer_has_is_refused_before_anything_is_judged(tmp_path: Path) -> None:
    (odd := tmp_path / "candidate.rs").write_text("")
    done = forked.run("judge", "saxpy", odd, "--assignment", "first_kernels", "--device", "sim")
    assert done.returncode == 2
    assert f"{odd}: saxpy asks for saxpy.cu and saxpy.py." in done.stderr
    assert not done.stdout


def test_a_process_that_dies_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    (program := tmp_path / "dies.py").write_text(DIES)
    (candidate := tmp_path / "candidate.cu").write_text(SAXPY)
    with Judge("saxpy", FIRST, ON_SIM, jobs=1, command=(sys.executable, str(program))) as judge:
        (judgement,) = judge.judged([candidate])
        with pytest.raises(CandidateError, match="asks for"):
            judge.judge(tmp_path / "candidate.txt")
    assert judgement.verdict is Verdict.INFRA_ERROR
    assert judgement.cause.endswith("out of order")


def test_candidates_to_measure_by_are_right_and_wrong_in_turn_and_none_twice(tmp_path: Path) -> None:
    program = Path(__file__).with_name("make_candidates.py")
    subprocess.run([sys.executable, program, "row_softmax", tmp_path, "--count", "16"], check=True)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert len(set(texts.values())) == 16
    assert sum("right" in name for name in texts) == 8
    assert sum("load_inline" in text for text in texts.values()) == 8
