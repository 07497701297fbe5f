"""What counts as a difference between two batches, what the class holds, and that nothing stays busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import under_load
from batch import fake_worker
from first_assignment import ASSIGNMENT, VARIANTS

from grader.assignments.assignment import load
from grader.records import record as results
from grader.records.record import CheckResult, FindingRecord, Record
from grader.records.verdict import Verdict

TESTS = Path(under_load.__file__).parent


def a_record(code: int = 1) -> Record:
    asked = {"assignment": "llm_systems_3", "seed": 7, "options": {"device": "sim"}}
    return fake_worker.record(asked, "", None, code, answered=True)


def changed(record: Record, **of_a_problem: object) -> Record:
    first, *others = record.problems
    return record.model_copy(update={"problems": [first.model_copy(update=of_a_problem), *others]})


def with_verdict(record: Record, verdict: Verdict) -> Record:
    """``record`` with another verdict of one case, and of nothing else."""
    correctness = record.problems[0].correctness
    cases = [correctness.cases[0].model_copy(update={"verdict": verdict}), *correctness.cases[1:]]
    return changed(record, correctness=correctness.model_copy(update={"cases": cases}))


def with_findings(record: Record, *lines: int) -> Record:
    findings = [
        FindingRecord(kind="race_global", kernel="k", file="a.cu", line=line, message="") for line in lines
    ]
    return changed(record, checks=[CheckResult(tool="racecheck", verdict=Verdict.FAIL, findings=findings)])


def test_times_and_messages_may_differ() -> None:
    one = a_record()
    other = changed(one, message="said otherwise").model_copy(update={"seconds": 99.0, "started": "later"})
    assert under_load.differences(one, other) == []


def test_one_case_with_another_verdict_is_one_difference() -> None:
    one = a_record()
    assert under_load.differences(one, with_verdict(one, Verdict.INFRA_ERROR)) == [
        "softmax_forward: 0. c: FAIL idle, INFRA_ERROR loaded"
    ]


def test_points_and_exit_codes_count() -> None:
    said = under_load.differences(a_record(1), a_record(3))
    assert "exit code: 1 idle, 3 loaded" in said
    assert any(line.startswith("score: ") for line in said)
    assert any(line.startswith("softmax_forward: FAIL 3.0 of") for line in said)


def test_findings_count_with_their_places_and_their_order() -> None:
    one = with_findings(a_record(), 3, 5)
    assert under_load.differences(one, with_findings(a_record(), 3, 5)) == []
    for other in (with_findings(a_record(), 5, 3), with_findings(a_record(), 3)):
        (said,) = under_load.differences(one, other)
        assert said.startswith("softmax_forward: racecheck: FAIL race_global a.cu:3, race_global a.cu:5 idle")


def test_a_case_that_one_batch_lacks_is_a_difference() -> None:
    one = a_record()
    without = one.problems[0].correctness.model_copy(update={"cases": []})
    assert under_load.differences(changed(one, correctness=without), one) == [
        "softmax_forward: 0. c: nothing idle, FAIL loaded"
    ]


def test_batches_are_compared_by_submission_and_a_missing_record_is_named() -> None:
    one = a_record()
    idle = {"a": one, "b": one}
    got = under_load.compared(idle, {"a": with_verdict(one, Verdict.PASS), "c": one})
    assert (got.submissions, got.cases) == (1, len(one.problems))
    assert got.differing == (
        "b: no record of both",
        "c: no record of both",
        "a: softmax_forward: 0. c: FAIL idle, PASS loaded",
    )
    row = under_load.table([(got, 10.0, 100.0)]).splitlines()[1]
    assert row.split() == ["1", str(len(one.problems)), "3", "10", "100"]


def test_right_ones_must_pass_and_others_must_not_even_if_both_batches_agree() -> None:
    right, wrong = a_record(0), a_record(1)
    assert under_load.unexpected({"reference": right, "hangs-sleep": wrong}) == []
    said = under_load.unexpected({"reference": with_verdict(right, Verdict.FAIL), "hangs-sleep": right})
    assert said == ["reference: softmax_forward: c is FAIL", "hangs-sleep: nothing of it fails"]


def test_the_class_holds_the_reference_every_variant_and_24_of_all_kinds() -> None:
    made = under_load.submissions()
    variants = {f"{path.parent.name}-{path.stem}" for path in VARIANTS.glob("*/*.cu")}
    kinds = [name.partition("-")[0] for name in made.keys() - variants - {"reference"}]
    assert variants < made.keys()
    assert len(kinds) == 24
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "right": 4,
        "wrong": 6,
        "hangs": 7,
        "crashes": 7,
    }
    assert len({tuple(sorted(files.items())) for files in made.values()}) == len(made)


def test_the_class_is_graded_by_the_first_assignment_s_rules_but_for_one_limit(tmp_path: Path) -> None:
    under_load.write_rules(tmp_path / "rules")
    rules, usual = load(str(tmp_path / "rules")).rules, ASSIGNMENT.rules
    assert rules.problems == usual.problems
    assert rules.limits == usual.limits.model_copy(update={"run_seconds_sim": 15.0})


FAKE = """
import pathlib, shutil, sys
record, out, exit_code, shard, *names = sys.argv[1:]
number, _, count = shard.partition("/")
for name in sorted(names)[int(number) - 1 :: int(count)]:
    (pathlib.Path(out) / name).mkdir(exist_ok=True)
    part = pathlib.Path(shutil.copy(record, pathlib.Path(out) / name / "part"))
    part.rename(part.with_name("result.json"))
sys.exit(int(exit_code))
"""


@dataclass(frozen=True)
class FakeCourse(under_load.Course):
    """Grades by copying a record; each grading of a shard ends with ``ends``."""

    record: Path = Path()
    ends: int = 0

    def command(self, *options: str) -> list[str]:
        shard = options[options.index("--shard") + 1]
        return [
            sys.executable,
            "-c",
            FAKE,
            str(self.record),
            str(self.out),
            str(self.ends),
            shard,
            *self.names,
        ]


def test_a_batch_in_shards_grades_all_and_goes_on_after_an_interrupt(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    results.write(a_record(), record)
    names = [f"right-{number}" for number in range(7)]
    out = tmp_path / "loaded-1"
    course = FakeCourse(tmp_path, tmp_path, out, names, tmp_path, jobs=2, shards=4, record=record)
    with pytest.raises(SystemExit, match=r"loaded-1 ended with \[130\]"):
        under_load.batch(replace(course, ends=130))
    graded, seconds = under_load.batch(replace(course, ends=3))
    assert graded == dict.fromkeys(names, results.read(record))
    assert under_load.batch(replace(course, record=Path("of no use"))) == (graded, seconds)


def test_shards_that_take_longest_begin_first() -> None:
    names = ["a", "b", "hangs-1", "hangs-2", "right"]
    course = under_load.Course(Path(), Path(), Path(), names, Path(), jobs=2, shards=3)
    assert course.order() == [1, 3, 2]  # a, hangs-2; b, right; hangs-1


def test_batches_side_by_side_end_when_they_are_stopped(tmp_path: Path) -> None:
    lanes = under_load.Lanes(tmp_path / "log")
    with ThreadPoolExecutor() as pool:
        code = pool.submit(lanes.run, ["sleep", "60"], os.environ)
        while not lanes.running:
            time.sleep(0.01)
        lanes.stop()
        assert code.result() == -signal.SIGTERM
        assert lanes.run(["sleep", "60"], os.environ) == -signal.SIGTERM


def ended(pid: int) -> bool:
    """Whether a process is gone, or about to be."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_busy_processes_end_with_the_one_that_started_them(sent: signal.Signals) -> None:
    code = (
        "import under_load, time, subprocess\n"
        "with under_load.busy(2):\n"
        "  children = open(f'/proc/self/task/{__import__(\"os\").getpid()}/children').read()\n"
        "  print(children, flush=True)\n"
        "  time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        children = [int(word) for word in process.stdout.readline().split()]
        process.send_signal(sent)
        process.wait()
    assert len(children) == 2
    until = time.monotonic() + 30
    while not all(map(ended, children)) and time.monotonic() < until:
        time.sleep(0.1)
    assert all(map(ended, children))
