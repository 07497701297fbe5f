"""Which language a problem is answered in, by the files of a submission; nothing of them runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from grader.assignments.assignment import load
from grader.languages.cuda.language import Cuda
from grader.languages.triton.language import Triton
from grader.run.answers import Answered, answered
from grader.submissions.submission import collect

LABS = load(str(Path(__file__).parents[2] / "assignments" / "first_kernels"))
NOT_NEEDED: Any = None
CUDA = Cuda(*[NOT_NEEDED] * 5)
TRITON = Triton(NOT_NEEDED, NOT_NEEDED, NOT_NEEDED, ())
PROBLEM = "saxpy"
UNBEGUN = (LABS.template_in("triton") / "saxpy.py").read_text()
BEGUN = UNBEGUN.replace("raise NotImplementedError", "ker_saxpy[(1,)](y, x, a, x.shape[0], 1024)")
IN_CUDA = (LABS.reference / "saxpy.cu").read_text()


def answer(folder: Path) -> Answered:
    entry, problem = LABS.rules.problem(PROBLEM), LABS.problems[PROBLEM]
    with collect(folder, ["saxpy.cu", "saxpy.py", "scan.cu"]) as submission:
        return answered(entry, problem, submission, (CUDA, TRITON), LABS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a student begins with who has asked for Triton: templates in both languages."""
    for language in ("cuda", "triton"):
        shutil.copytree(LABS.template_in(language), tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_of_two_templates_the_later_language_counts(folder: Path) -> None:
    assert (answer(folder).language.name, answer(folder).note) == ("triton", "")


@pytest.mark.parametrize(
    ("file", "text", "language"),
    [
        ("saxpy.cu", IN_CUDA, "cuda"),
        ("saxpy.py", BEGUN, "triton"),
        ("saxpy.py", BEGUN + "    half a line (", "triton"),
    ],
    ids=["in CUDA", "in Triton", "no Python yet"],
)
def test_the_file_that_was_begun_counts(folder: Path, file: str, text: str, language: str) -> None:
    (folder / file).write_text(text)
    assert (answer(folder).language.name, answer(folder).note) == (language, "")


def test_a_function_that_only_raises_is_not_begun_in_a_file_that_is(folder: Path) -> None:
    (folder / "saxpy.cu").write_text(IN_CUDA)
    (folder / "saxpy.py").write_text(f"{UNBEGUN}\n\ndef another(y):\n    return y\n")
    assert answer(folder).language.name == "cuda"


def test_of_two_that_were_begun_the_other_one_is_named(folder: Path) -> None:
    (folder / "saxpy.cu").write_text(IN_CUDA)
    (folder / "saxpy.py").write_text(BEGUN)
    assert answer(folder).language.name == "triton"
    assert answer(folder).note == "saxpy.py was graded, not saxpy.cu: remove saxpy.py if saxpy.cu is to count"


@pytest.mark.parametrize(("other", "language"), [(None, "triton"), (IN_CUDA, "cuda")])
def test_a_file_without_the_function_counts_where_nothing_else_was_begun(
    folder: Path, other: str | None, language: str
) -> None:
    (folder / "saxpy.py").write_text(UNBEGUN.replace("def saxpy(", "def axpy("))
    if other is not None:
        (folder / "saxpy.cu").write_text(other)
    assert answer(folder).language.name == language


def test_without_any_file_it_is_the_first_language(tmp_path: Path) -> None:
    (tmp_path / "scan.cu").touch()
    assert answer(tmp_path).language.name == "cuda"
