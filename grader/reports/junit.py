"""Writes records as JUnit XML: a suite for each problem, with tests for build, speed, cases and checkers.

The suite of a problem that lost points begins with a test called "fix first", which says what to mend.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from grader.records.verdict import Verdict
from grader.reports.causes import case_cause
from grader.reports.escaping import line, plain, readable
from grader.reports.fix_first import fix_first, largest_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.records.record import CaseResult, CheckResult, DemandResult, ProblemResult
    from grader.reports.fix_first import Fix
    from grader.reports.views import View

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_BUILT = "not run: the file was not built"


def junit(views: Iterable[View]) -> str:
    """All records as one document; a suite is ``problem``, or ``submission/problem`` for several records."""
    listed = list(views)
    root = ET.Element("testsuites")
    for shown in listed:
        prefix = f"{shown.record.submission.name}/" if len(listed) > 1 else ""
        for problem in shown.record.problems:
            root.append(_suite(prefix + problem.id, problem, shown.record.submission.error or ""))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(name: str, problem: ProblemResult, error: str) -> ET.Element:
    suite = ET.Element("testsuite", name=_legal(name))
    first = fix_first(problem)
    tests = [_fix_first(first, problem.verdict)] if first else []
    tests.append(_build(problem, error))
    tests += [_case(case) for case in problem.correctness.cases]
    tests += [_check(check) for check in problem.checks]
    tests += [_performance(problem), *(_demand(demand) for demand in problem.demands)]
    for test in tests:
        test.set("classname", _legal(name))
        suite.append(test)
    suite.set("tests", str(len(tests)))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(test.find(tag) is not None for test in tests)))
    if problem.printed:
        ET.SubElement(suite, "system-out").text = _legal(problem.printed)
    return suite


def _fix_first(first: Fix, verdict: Verdict) -> ET.Element:
    test = ET.Element("testcase", name="fix first")
    _outcome(test, verdict, first.cause, "\n".join(first.lines))
    return test


def _build(problem: ProblemResult, error: str) -> ET.Element:
    build = problem.build
    test = ET.Element("testcase", name="build")
    if build:
        test.set("time", f"{build.seconds:.3f}")
    if build is None or not build.ok:
        _outcome(test, problem.verdict, problem.message or error, build.log if build else "")
    elif not problem.correctness.cases:
        _outcome(test, problem.verdict, problem.message, "\n".join(problem.trust.reasons))
    return test


def _case(case: CaseResult) -> ET.Element:
    test = ET.Element("testcase", name=_legal(case.name))
    lines = [f"case group: {case.group}"]
    lines += [f"order of execution: {case.schedule}"] if case.schedule else []
    lines += [readable(text) for text in (case.message, case.diagnosis) if text]
    lines += [
        f"{output.name}: {output.bad} of {output.total} wrong{largest_error(output)}"
        for output in case.outputs
        if output.bad
    ]
    if case.waived:
        _outcome(test, Verdict.NOT_MEASURED, f"does not count: {case.waived}", "\n".join(lines))
    else:
        _outcome(test, case.verdict, case_cause(case), "\n".join(lines))
    return test


def _check(check: CheckResult) -> ET.Element:
    test = ET.Element("testcase", name=check.tool)
    lines = [
        f"{finding.file}:{finding.line}: {finding.kind}: {readable(finding.message)}"
        for finding in check.findings
    ]
    _outcome(test, check.verdict, lines[0] if lines else "", "\n".join(lines))
    if lines and check.verdict is Verdict.PASS:
        ET.SubElement(test, "system-out").text = _legal("\n".join(lines))
    return test


def _performance(problem: ProblemResult) -> ET.Element:
    test, performance = ET.Element("testcase", name="performance"), problem.performance
    speed = ""
    if performance.speedup is not None and performance.interval is not None:
        low, high = performance.interval
        speed = f"{performance.speedup:.3f}x ({low:.3f} to {high:.3f}), target {performance.target:g}x"
    not_run = performance.verdict is Verdict.NOT_MEASURED and not performance.message
    message = speed or performance.message or (_NOT_BUILT if not_run else "")
    _outcome(test, performance.verdict, message, performance.message)
    if speed and performance.verdict in {Verdict.PASS, Verdict.AMBIGUOUS}:
        ET.SubElement(test, "system-out").text = _legal(f"{performance.verdict}: {speed}")
    return test


def _demand(demand: DemandResult) -> ET.Element:
    test = ET.Element("testcase", name=f"demand: {demand.measure}")
    _outcome(test, demand.verdict, demand.said, demand.message)
    return test


def _outcome(test: ET.Element, verdict: Verdict, message: str, text: str) -> None:
    """Add JUnit's element for a verdict; PASS and AMBIGUOUS have none, because the test passed."""
    if verdict in {Verdict.PASS, Verdict.AMBIGUOUS}:
        return
    tag = {Verdict.INFRA_ERROR: "error", Verdict.NOT_MEASURED: "skipped"}.get(verdict, "failure")
    outcome = ET.SubElement(test, tag, message=_legal(line(message)))
    if tag != "skipped":
        outcome.set("type", verdict)
    outcome.text = _legal(text)


def _legal(text: str) -> str:
    """The text without characters that XML 1.0 forbids."""
    return _ILLEGAL.sub("", plain(text))
