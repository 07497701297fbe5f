"""What a worker of a batch answers where it cannot grade."""

from __future__ import annotations

import pytest

from grader.batch.worker import UNWALLED, answer
from grader.bench import Bench
from grader.sandbox import backends
from grader.sandbox.process import ProcessSandbox


@pytest.fixture
def nothing_but_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "BACKENDS", {"process": ProcessSandbox})


@pytest.mark.usefixtures("nothing_but_processes")
def test_a_class_is_graded_without_walls_only_by_explicit_choice() -> None:
    asked = {"operation": "look", "assignment": "llm_systems_3", "device": "sim"}
    assert answer({**asked, "sandbox": "auto"}, Bench())["error"] == UNWALLED
    assert answer({**asked, "sandbox": "process"}, Bench())["kind"] == "sim"
