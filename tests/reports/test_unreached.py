"""What no case has reached, in words, and for whom."""

from __future__ import annotations

from report_samples import problem, record

from grader.records.coverage import Side, Way
from grader.records.record import UnreachedRecord
from grader.reports.pages import submission_page
from grader.reports.unreached import MOST, sentences
from grader.reports.views import view

BRANCH = UnreachedRecord(file="a.cu", line=12, kernel="_Z3addPfi", side=Way.TAKEN)


def test_each_has_its_sentence() -> None:
    records = [
        BRANCH,
        BRANCH.model_copy(update={"side": Way.PASSED}),
        BRANCH.model_copy(update={"kernel": "_Z7softmaxILi32EEvPf"}),
        UnreachedRecord(file="a.cu", line=20, kernel="", side=Way.TAKEN),
        UnreachedRecord(file="a.cu", line=21, kernel="", side=Side.ABOVE, constant=9000),
        UnreachedRecord(file="a.cu", line=22, kernel="k", side=Side.EQUAL, constant=7),
    ]
    assert list(sentences(records)) == [
        "a.cu:12  a branch of add was never taken: not judged",
        "a.cu:12  a branch of add was always taken: not judged",
        "a.cu:12  a branch of softmax was never taken: not judged",
        "a.cu:20  no case ran this line of host code: not judged",
        "a.cu:21  no case had a number above 9000: not judged",
        "a.cu:22  no case of k had a number equal to 7: not judged",
    ]


def test_a_long_list_is_cut() -> None:
    *_, last = sentences([BRANCH] * (MOST + 3))
    assert last == "and 3 more in the record"


def test_staff_see_it_and_students_do_not() -> None:
    sample = record("doe", problem())
    first = sample.problems[0]
    first.correctness.unreached.append(BRANCH)
    words = "never taken: not judged"
    assert words in submission_page(view(sample, staff=True), "title")
    assert words not in submission_page(view(sample, staff=False), "title")
