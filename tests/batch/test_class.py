"""A small class on the sim, by the real compiler: each record as it must be, also if the batch is killed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import fake_worker
import kill
import pytest
from first_assignment import few_rows
from make_class import make, mismatches

from grader.records import record as results
from grader.reports.gradebook import gradebook

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 12
KEPT = 4  # mutants and variants, which the killed batch finds finished: they take longest
KILLS = 3


@pytest.mark.long
def test_each_submission_gets_what_it_must_also_if_the_batch_is_killed(tmp_path: Path) -> None:
    make(tmp_path, SIZE)
    assignment = str(few_rows(tmp_path / "few_rows", short=True))
    assert kill.batch(tmp_path / "submissions", tmp_path / "alone", assignment).wait() == 0
    assert len(kill.written(tmp_path / "alone")) == SIZE
    assert mismatches(tmp_path, tmp_path / "alone") == []
    for name in list(json.loads((tmp_path / "expected.json").read_text()))[:KEPT]:
        shutil.copytree(tmp_path / "alone" / name, tmp_path / "killed-1" / name)
    _, wrong = kill.killed(tmp_path / "submissions", tmp_path, KILLS, 8, 1, assignment)
    assert wrong == []


def test_a_wrong_record_is_seen(tmp_path: Path) -> None:
    asked = {"assignment": "llm_systems_3", "seed": 7, "options": {"device": "sim"}}
    for out, code in (("alone", 0), ("again", 0), ("other", 1)):
        record = fake_worker.record(asked, "", None, code, answered=True)
        (tmp_path / out / "doe").mkdir(parents=True)
        results.write(record, tmp_path / out / "doe" / "result.json")
        (tmp_path / out / "gradebook.csv").write_text(gradebook({"doe": record}))
    expected = {"id": "right", "verdicts": {"softmax_forward": "PASS"}, "late": False, "damaged": False}
    (tmp_path / "expected.json").write_text(json.dumps({"doe": expected}))
    assert mismatches(tmp_path, tmp_path / "again") == []
    assert kill.differences(tmp_path / "alone", tmp_path / "again") == []
    assert mismatches(tmp_path, tmp_path / "other") == ["doe (right): softmax_forward is FAIL, not PASS"]
    assert kill.differences(tmp_path / "alone", tmp_path / "other") == [
        "doe: another record",
        "another gradebook",
    ]
    assert kill.cut_off(tmp_path) == []
    file = tmp_path / "again" / "doe" / "result.json"
    file.write_text(file.read_text()[:-9])
    assert kill.cut_off(tmp_path) == [f"{file}: cut off"]
