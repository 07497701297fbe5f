"""results.json as Gradescope documents its fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import report_samples as samples

from grader.reports.gradescope import results
from grader.reports.views import MACHINE, view

if TYPE_CHECKING:
    from grader.records.record import Record

VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
DOCUMENTED: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "anyOf": [{"required": ["score"]}, {"required": ["tests"]}],
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "output_format": FORMAT,
        "test_output_format": FORMAT,
        "test_name_format": FORMAT,
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": {"type": "string"},
                    "name_format": FORMAT,
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "output_format": FORMAT,
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
        "leaderboard": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "value"],
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": ["number", "string"]},
                    "order": {"enum": ["asc", "desc"]},
                },
            },
        },
    },
}


def made(record: Record, *, staff: bool = False) -> dict[str, Any]:
    content = json.loads(results(view(record, staff=staff)))
    jsonschema.validate(content, DOCUMENTED)
    return dict(content)


def test_the_tests_sum_to_the_score_and_to_what_was_decided() -> None:
    for record in (samples.record(), samples.record("x", samples.timed(speedup=3.0), samples.raced())):
        content = made(record)
        tests = content["tests"]
        assert content["score"] == record.score.earned
        assert round(sum(test.get("score", 0) for test in tests), 2) == record.score.earned
        assert round(sum(test.get("max_score", 0) for test in tests), 2) == record.score.decided
        assert len({test["number"] for test in tests}) == len(tests)


def test_what_rounding_took_from_the_groups_is_given_back() -> None:
    shares = [{"name": f"g{n}", "verdict": "PASS", "earned": 1.12, "possible": 1.12} for n in range(8)]
    shares += [{"name": "memory and concurrency", "verdict": "PASS", "earned": 3, "possible": 3}]
    correctness = {"verdict": "PASS", "groups": shares}
    for result, names in (
        (samples.problem(correctness=correctness), []),
        (samples.timed(correctness=correctness), ["Softmax forward: speed"]),
    ):
        tests = made(samples.record("x", result))["tests"]
        assert round(sum(test.get("score", 0) for test in tests), 2) == result["points"]["earned"]
        assert round(sum(test.get("max_score", 0) for test in tests), 2) == result["points"]["decided"]
        assert [test["name"] for test in tests if "speed" in test["name"]] == names
        assert not [test for test in tests if test.get("status") == "failed"]


def test_points_of_demands_are_in_the_test_of_the_speed() -> None:
    tests = {test["name"]: test for test in made(samples.record("x", samples.demanding()))["tests"]}
    last = tests["Softmax forward: speed and further demands"]
    assert (last["score"], last["max_score"]) == (0, 2)
    assert "bytes of machine code over the reference's: 1.72, of at most 1.5" in last["output"]


def test_a_problem_that_nobody_began_is_one_line() -> None:
    untouched = samples.raced()
    untouched["correctness"]["summary"] = "nothing was written"
    tests = {test["name"]: test for test in made(samples.record("x", untouched))["tests"]}
    assert tests["LayerNorm forward: short rows"]["output"] == "nothing was written"


def test_what_was_not_measured_has_no_test_and_is_said() -> None:
    content = made(samples.record("x", samples.problem()))
    assert not [test for test in content["tests"] if "speed" in test["name"]]
    assert "12 of 20 points are decided here" in content["output"]


def test_a_wrong_group_says_its_cases_and_the_checkers_their_findings() -> None:
    tests = {test["name"]: test for test in made(samples.record("x", samples.raced()))["tests"]}
    assert "37 x 1000: the last elements of a row" in tests["LayerNorm forward: short rows"]["output"]
    assert "layernorm_kernel.cu:17" in tests["LayerNorm forward: what the checkers found"]["output"]


def test_the_results_begin_with_what_to_mend() -> None:
    output = made(samples.record("x", samples.raced(), samples.timed()))["output"]
    assert "LayerNorm forward, fix first:\nTwo threads use the same shared memory" in output
    assert output.count("fix first") == 1


def test_a_compile_error_is_in_the_words_of_the_compiler() -> None:
    build, *groups = made(samples.record("x", samples.unbuilt()))["tests"]
    assert [group["max_score"] for group in groups] == [9, 3]
    assert build["status"] == "failed"
    assert 'identifier "flaot" is undefined' in build["output"]


def test_a_fault_of_the_machine_takes_no_points() -> None:
    content = made(samples.record("x", samples.problem(), samples.failed_machine("layernorm_forward")))
    assert "score" not in content
    assert sum(test["max_score"] for test in content["tests"]) == 0
    assert content["tests"][0]["output"] == MACHINE


def test_a_speed_is_on_the_leaderboard_unless_nobody_believes_it() -> None:
    assert made(samples.record("x", samples.timed()))["leaderboard"] == [
        {"name": "Softmax forward (speedup)", "value": 8.0, "order": "desc"}
    ]
    assert made(samples.record("x", samples.untrusted()))["leaderboard"] == []


def test_students_see_no_seed_and_no_escape_sequences() -> None:
    text = json.dumps(made(samples.hostile()))
    assert "424242" not in text
    assert "\\u001b" not in text
    assert "\\u202e" not in text
