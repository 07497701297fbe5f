"""What a worker of a batch answers where it cannot grade."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.batch.worker import BUILT, UNWALLED, answer
from grader.run.bench import Bench
from grader.sandbox import backends
from grader.sandbox.process import ProcessSandbox

REFERENCE = Path(__file__).parents[2] / "reference"


@pytest.fixture
def nothing_but_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "BACKENDS", {"process": ProcessSandbox})


@pytest.mark.usefixtures("nothing_but_processes")
def test_a_class_is_graded_without_walls_only_by_explicit_choice() -> None:
    asked = {"operation": "look", "assignment": "llm_systems_3"}
    assert answer({**asked, "options": {"device": "sim", "sandbox": "auto"}}, Bench())["error"] == UNWALLED
    assert answer({**asked, "options": {"device": "sim", "sandbox": "process"}}, Bench())["kind"] == "sim"


def test_a_link_that_leads_nowhere_is_a_fault_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "doe.zip").symlink_to("nowhere")
    asked = {"operation": "grade", "assignment": "llm_systems_3", "options": {"device": "sim"}}
    path = str(tmp_path / "doe.zip")
    record = answer({**asked, "seed": 1, "path": path, "built": None}, Bench())["record"]
    assert record["error"] == f"{path} does not exist. Give a folder or an archive."
    assert (record["exit_code"], record["score"]["decided"]) == (3, 0)


def test_what_one_worker_built_is_taken_by_another_that_grades() -> None:
    asked = {"assignment": "llm_systems_3", "options": {"device": "sim"}}
    asked |= {"seed": 1, "path": str(REFERENCE)}
    told = json.loads(json.dumps(answer({**asked, "operation": "build"}, Bench())))
    built = BUILT.validate_python(told["built"])
    assert built.builds.keys() == {"softmax_kernel.cu", "layernorm_kernel.cu"}
    assert all(build.full.ok for build in built.builds.values())
