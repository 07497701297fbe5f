"""A model's file is read before anything of it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from first_assignment import ASSIGNMENT, PROBLEMS

from grader.records.verdict import Verdict
from grader.run.model import prepare
from grader.run.preparation import NotJudgedError

if TYPE_CHECKING:
    from pathlib import Path


def refused(folder: Path, text: str) -> NotJudgedError:
    problem = PROBLEMS["transformer"]
    files = dict.fromkeys(problem.files, folder / "launchers.cu")
    files[problem.file] = folder / problem.file
    files[problem.file].write_text(text)
    material = SimpleNamespace(
        assignment=ASSIGNMENT,
        seed=1,
        builds={},
        submission=SimpleNamespace(files=files, problems={}),
    )
    with pytest.raises(NotJudgedError) as caught:
        prepare(SimpleNamespace(material=material), ASSIGNMENT.rules.problem(problem.id), problem)  # type: ignore[arg-type]
    return caught.value


def test_a_model_that_uses_what_it_may_not_is_untrusted_with_its_line(tmp_path: Path) -> None:
    error = refused(tmp_path, "import torch\nfrom kernels import launch\nimport gc\n")
    assert error.verdict is Verdict.UNTRUSTED
    assert error.reasons == ("transformer.py:3 imports gc, which no launcher needs",)


def test_what_the_given_modules_import_is_not_given(tmp_path: Path) -> None:
    error = refused(tmp_path, "import kernels\nkernels.ctypes.CDLL\nkernels.launch\n")
    assert error.reasons == ("transformer.py:2 uses .ctypes of kernels, which no launcher needs",)
