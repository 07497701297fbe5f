"""What lateness takes off, and which of several submissions counts; records keep the points of the work."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from reports import report_samples as samples

from grader.assignments.rules import Rules
from grader.batch.handed_in import UNKNOWN, renew, settled
from grader.batch.tables import TableError
from grader.reports.gradebook import gradebook

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import Record

DUE = "2026-12-01T23:59:00+01:00"
DEADLINE = {"due": DUE, "grace_minutes": 10.0, "per_day": 0.2, "most": 0.5}


def rules(**more: object) -> Rules:
    problem = {"id": "p", "title": "P", "correctness": 12.0, "performance": 8.0, "target": 1.0}
    return Rules.model_validate({"id": "a", "title": "A", "problems": [problem], **more})


def right(name: str) -> Record:
    return samples.record(name, samples.problem())


def wrong(name: str) -> Record:
    return samples.record(name, samples.raced())


def table(folder: Path, text: str) -> Path:
    (folder / "times.csv").write_text(text)
    return folder / "times.csv"


def book(
    folder: Path, results: dict[str, Record | None], said: Rules, text: str | None
) -> dict[str, dict[str, str]]:
    shown = settled(results, renew(folder, said, None if text is None else table(folder, text)))
    counting = {name: one for name, one in shown.results.items() if name not in shown.superseded}
    rows = csv.DictReader(io.StringIO(gradebook(counting), newline=""))
    return {row["submission"]: row for row in rows}


@pytest.mark.parametrize(
    ("submitted", "score", "said"),
    [
        ("2026-12-01T23:59:00+01:00", "12.00", ""),
        ("2026-12-01T23:09:00Z", "12.00", ""),
        ("2026-12-01T23:10:00Z", "9.60", "1 day late: 20% of 12.00 points are taken off"),
        ("2026-12-02T23:59:00+01:00", "9.60", "1 day late: 20% of 12.00 points are taken off"),
        ("2026-12-03T00:00:00+01:00", "7.20", "2 days late: 40% of 12.00 points are taken off"),
        ("2027-12-01T00:00:00+01:00", "6.00", "365 days late: 50% of 12.00 points are taken off"),
    ],
)
def test_a_day_begun_after_the_grace_takes_off_its_share(
    tmp_path: Path, submitted: str, score: str, said: str
) -> None:
    results: dict[str, Record | None] = {"doe": right("doe"), "roe": right("roe"), "poe": None}
    found = book(
        tmp_path, results, rules(deadline=DEADLINE), f"submission,submitted\ndoe,{submitted}\npoe,{DUE}\n"
    )
    assert (found["doe"]["score"], found["doe"]["note"]) == (score, said)
    assert (found["roe"]["score"], found["roe"]["note"]) == ("12.00", UNKNOWN)
    assert found["poe"]["score"] == ""
    record = results["doe"]
    assert record is not None
    assert record.score.earned == 12, "the record keeps the points of the work"


SEVERAL = f"""submission,student,submitted
doe-1,doe,2026-12-01T10:00:00Z
doe-2,doe,{DUE}
doe-3,doe,2026-12-05T10:00:00Z
"""


@pytest.mark.parametrize(
    ("attempts", "records", "counts", "score"),
    [
        ("last", [right, right, wrong], "doe-3", "0.00"),
        ("best", [right, right, wrong], "doe-1", "12.00"),
        ("best", [wrong, wrong, right], "doe-3", "6.00"),
        ("best", [wrong, wrong, None], "doe-1", "0.00"),
        ("last", [right, right, None], "doe-3", ""),
    ],
)
def test_one_of_several_submissions_of_a_student_counts(
    tmp_path: Path, attempts: str, records: list[Any], counts: str, score: str
) -> None:
    results = {f"doe-{number}": one and one(f"doe-{number}") for number, one in enumerate(records, 1)}
    said = rules(deadline=DEADLINE, attempts=attempts)
    found = book(tmp_path, {**results, "roe": right("roe")}, said, SEVERAL)
    assert found.keys() == {counts, "roe"}
    assert found[counts]["score"] == score
    shown = settled(results, renew(tmp_path, said, None))
    notes = {name: one.submission.notes for name, one in shown.results.items() if one and name != counts}
    assert all(of[-1] == f"does not count: the {attempts} of several is {counts}" for of in notes.values())


def test_a_table_is_kept_and_meets_the_rules_of_the_day(tmp_path: Path) -> None:
    results: dict[str, Record | None] = {"doe": right("doe")}
    assert book(tmp_path, results, rules(deadline=DEADLINE), None)["doe"]["score"] == "12.00"
    late = "submission,submitted\ndoe,2026-12-02T10:00:00Z\n"
    assert book(tmp_path, results, rules(deadline=DEADLINE), late)["doe"]["score"] == "9.60"
    milder = rules(deadline={**DEADLINE, "per_day": 0.1})
    assert book(tmp_path, results, milder, None)["doe"]["score"] == "10.80"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("submission,submited\n", r"unknown column 'submited'\. Did you mean 'submitted'"),
        ("doe,2026\n", r"unknown column 'doe'\. Valid: submission, submitted, student"),
        ("student,submitted\n", "the first line has to name its columns"),
        ("", "the first line has to name its columns"),
        ("submission,submitted\ndoe,yesterday\n", r"csv:2: 'yesterday' is no time\. Write it as 2026"),
        ("submission,submitted\ndoe,2026-12-01T10:00:00\n", "csv:2: .* has no distance from UTC"),
        (f"submission,submitted\ndoe,{DUE}\ndoe,{DUE}\n", "csv:3: doe stands twice"),
        (f"submission,submitted\ndoe,{DUE},x\n", "csv:2: not a line of submission, submitted"),
        (f"submission,submitted\n,{DUE}\n", "csv:2: not a line of"),
        ("submission,submitted\ndoe,\n", r"doe has no time, and the assignment has a deadline\. Add it\."),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        renew(tmp_path, rules(deadline=DEADLINE), table(tmp_path, text))


def test_the_last_of_several_needs_their_times_and_the_best_does_not(tmp_path: Path) -> None:
    text = "submission,student\na,doe\nb,doe\n"
    with pytest.raises(TableError, match="a has no time, and doe has several submissions, of which the last"):
        renew(tmp_path, rules(), table(tmp_path, text))
    results: dict[str, Record | None] = {"a": wrong("a"), "b": right("b")}
    assert book(tmp_path, results, rules(attempts="best"), text).keys() == {"b"}
