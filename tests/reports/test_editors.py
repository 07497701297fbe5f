"""What is to be mended as a compiler says it."""

from __future__ import annotations

from pathlib import Path

import report_samples as samples

from grader.reports.editors import messages


def test_each_thing_to_mend_is_a_line_as_gcc_writes_it() -> None:
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [samples.two_accesses()]}]
    record = samples.record("doejane", samples.raced(checks=checks))
    (said,) = messages(record, Path("hw"))
    place, kind, text = said.split(": ", 2)
    assert place.startswith("hw/")
    assert place.rpartition(":")[2] == "17"
    assert kind == "error"
    assert text.startswith("Two threads use the same shared memory")
    assert text.endswith("[layernorm_forward]")


def test_what_has_no_line_is_left_out() -> None:
    assert list(messages(samples.record("doejane", samples.untrusted()), Path("hw"))) == []
