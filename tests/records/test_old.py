"""Records before schema 1.2 are read as the data that records hold today."""

from __future__ import annotations

from typing import Any

import pytest

from grader.records.diagnosis import Certainty
from grader.records.record import BuildResult, CaseResult, FindingRecord
from grader.records.sentences import advice
from grader.records.verdict import Ending

RACE = (
    "thread (5,0,0) of block (1,0,0) writes shared memory at byte 8 (line 9) that thread (3,0,0) of block "
    "(1,0,0) has read (line 7), and nothing orders the two: a __syncthreads() between them is missing"
)


def finding(kind: str, message: str, file: str = "k.cu", **more: Any) -> FindingRecord:  # noqa: ANN401
    content = {"kind": kind, "message": message, "kernel": "k", "file": file, "line": 9, **more}
    return FindingRecord.model_validate(content)


def case(**content: object) -> CaseResult:
    return CaseResult.model_validate({"name": "c", "group": "g", "verdict": "FAIL", **content})


def test_a_case_knows_the_place_that_its_message_begins_with() -> None:
    old = case(message="a.py:2: ValueError: no")
    assert (old.file, old.line, old.message) == ("a.py", 2, "a.py:2: ValueError: no")
    new = case(message="a.py:2: ValueError: no", file="b.py", line=5)
    assert (new.file, new.line) == ("b.py", 5)
    assert CaseResult.model_validate_json(old.model_dump_json()) == old


def test_a_race_knows_its_accesses_and_keeps_its_sentence() -> None:
    old = finding("race_shared", RACE, places=[{"file": "k.cu", "line": 9}, {"file": "k.cu", "line": 7}])
    assert [(place.thread, place.block, place.does) for place in old.places] == [
        ((5, 0, 0), (1, 0, 0), "writes"),
        ((3, 0, 0), (1, 0, 0), "reads"),
    ]
    assert old.message == RACE
    assert old.sentence.observation.endswith("(line 7)")
    again = FindingRecord.model_validate_json(old.model_dump_json())
    assert again == old


@pytest.mark.parametrize(
    ("kind", "message", "file", "what"),
    [
        ("invalid_launch", "the kernel did not start: the grid is empty", "k.cu", "its grid has no blocks"),
        ("global_oob", "thread (0,0,0) of block (0,0,0) reads 4 bytes", "k.cu", "A thread reads outside"),
        ("global_oob", "which lies 4 bytes behind the end of an allocation", "k.cu", "past the end of an"),
        ("global_oob", "memory before x was written", "", "before the start of an array"),
        (
            "global_oob",
            "program (0,0,0) writes; the mask of this access",
            "k.py",
            "A program reads or writes",
        ),
        ("race_global", "programs run in any order", "k.py", "Two programs use the same memory"),
        ("race_global", "a __syncwarp() between them is missing", "k.cu", "Two threads of a warp"),
        ("race_global", "blocks run in any order", "k.cu", "Two blocks use the same global memory"),
        ("race_stream", "k in the default stream reads", "k.cu", "Work is on the default stream"),
        ("leak", "never freed", "k.cu", "Each call leaves device memory"),
    ],
)
def test_the_advice_is_that_of_the_sentence(kind: str, message: str, file: str, what: str) -> None:
    assert what in advice(finding(kind, message, file))[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the maximum is not subtracted; only column 3", [("", Certainty.STATED)]),
        ("is a sum incomplete?", [("", Certainty.ASKED)]),
        ("a: no known cause; only row 1. b: off: is it?", [("a", Certainty.UNKNOWN), ("b", Certainty.ASKED)]),
        ("a and b: only columns up to 7", [("a b", Certainty.PLACED)]),
        (
            "right alone, wrong behind another: is it kept?; a: no known cause. b: is zero",
            [("", Certainty.ASKED), ("", Certainty.UNKNOWN), ("b", Certainty.STATED)],
        ),
    ],
)
def test_a_diagnosis_is_as_certain_as_its_sentence(text: str, told: list[tuple[str, Certainty]]) -> None:
    old = case(diagnosis=text)
    assert [(" ".join(one.outputs), one.certainty) for one in old.diagnoses] == told
    assert old.diagnosis == text
    assert CaseResult.model_validate_json(old.model_dump_json()) == old


def test_endings_are_known() -> None:
    assert case(message="not run: a ended the runner").ending is Ending.NOT_RUN
    assert case(message="k.py:2: f is still to be written").ending is Ending.UNBEGUN
    assert case(message="the code died").ending is Ending.USUAL
    build = {"ok": False, "seconds": 1, "cached": False, "command": "nvcc", "resources": []}
    stopped = BuildResult.model_validate({**build, "log": "Compiling was stopped: more than 180 s."})
    assert stopped.ending is Ending.LIMIT
    assert BuildResult.model_validate({**build, "log": "k.cu(1): error"}).ending is Ending.USUAL
