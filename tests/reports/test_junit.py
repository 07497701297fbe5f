"""JUnit XML as Jenkins' schema has it, whatever a student wrote."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import report_samples as samples

from grader.reports.junit import junit
from grader.reports.views import view

ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "time", "classname", "group"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase", "system-out"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def suites(*problems: dict[str, object]) -> ET.Element:
    root = ET.fromstring(junit([view(samples.record("doe", *problems), staff=False)]))
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    for suite in root:
        assert {"name", "tests", "failures", "errors"} <= set(suite.attrib)
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(key, "")) == len(suite.findall(f"testcase/{tag}"))
    return root


def outcomes(root: ET.Element) -> dict[str, str]:
    return {
        test.get("name", ""): next((child.tag for child in test), "passed") for test in root.iter("testcase")
    }


def test_each_stage_of_a_problem_is_a_test() -> None:
    root = suites(samples.raced())
    assert outcomes(root) == {
        "fix first": "failure",
        "build": "passed",
        "37 x 1000": "failure",
        "38 x 1000": "failure",
        "39 x 1000": "failure",
        "2 x 4": "passed",
        "racecheck": "failure",
        "performance": "skipped",
    }
    first, failure = root.findall("testsuite/testcase/failure")[:2]
    assert "barrier" in first.get("message", "")
    assert (first.text or "").count("\n") == 2
    assert failure.get("type") == "FAIL"
    assert "1037 of 37000 wrong" in (failure.text or "")


def test_each_demand_is_a_test() -> None:
    found = outcomes(suites(samples.demanding()))
    assert (found["demand: code"], found["demand: spread"]) == ("failure", "skipped")


def test_a_file_that_does_not_compile_fails_its_build_and_runs_nothing() -> None:
    root = suites(samples.unbuilt())
    assert outcomes(root) == {"fix first": "failure", "build": "failure", "performance": "skipped"}
    assert 'identifier "flaot"' in ET.tostring(root, encoding="unicode").replace("&quot;", '"')


def test_a_fault_of_the_machine_is_an_error_and_no_failure() -> None:
    root = suites(samples.problem(correctness={"verdict": "INFRA_ERROR", "cases": [
        {"name": "c", "group": "g", "verdict": "INFRA_ERROR", "message": "the GPU is lost"}
    ]}))  # fmt: skip
    assert outcomes(root)["c"] == "error"


def test_a_measured_speed_has_its_interval_and_ambiguous_passes() -> None:
    measured = samples.timed(speedup=6.5)
    measured["performance"]["verdict"] = "AMBIGUOUS"
    root = suites(measured)
    assert outcomes(root)["performance"] == "system-out"
    assert "AMBIGUOUS: 6.500x (6.435 to 6.565), target 6.5x" in ET.tostring(root, encoding="unicode")


def test_what_does_not_count_is_skipped_with_the_reason() -> None:
    content = samples.raced()
    content["correctness"]["cases"][0]["waived"] = "the starter does this"
    root = suites(content)
    assert outcomes(root)["37 x 1000"] == "skipped"
    assert "does not count: the starter does this" in ET.tostring(root, encoding="unicode")


def test_untrusted_is_a_failure() -> None:
    assert outcomes(suites(samples.untrusted()))["performance"] == "failure"


def test_suites_of_several_submissions_are_told_apart() -> None:
    root = ET.fromstring(junit([view(samples.record(name), staff=True) for name in ("a", "b")]))
    assert [suite.get("name") for suite in root][::2] == ["a/softmax_forward", "b/softmax_forward"]


def test_whatever_a_student_wrote_the_document_is_well_formed_and_says_it() -> None:
    text = junit([view(samples.hostile(), staff=True)])
    root = ET.fromstring(text)
    assert "<script>" not in text
    assert not {"\x1b", "\x00", "\u202e"} & set(text)
    assert any("<script>alert(1)</script>" in (element.text or "") for element in root.iter())
