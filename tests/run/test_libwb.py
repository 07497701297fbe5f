"""Solutions of labs that are written with libwb, in their usual form: right ones pass, wrong ones fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from libwb_labs import LAB, LABS, assignment, tried

from grader.problems.folder import FolderError
from grader.problems.formats import FORMATS, write_wb
from grader.problems.program import Numbers
from grader.problems.wb import datasets

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("ptx_only")


@pytest.mark.parametrize("name", ["histogram", "streams", "convolution"])
def test_a_solution_grades_unaltered_and_a_wrong_one_fails_with_its_cause(name: str, tmp_path: Path) -> None:
    assert not list(tried(name, tmp_path))


def test_every_lab_is_tried() -> None:
    assert {path.stem for path in LABS.glob("*.cu")} == LAB.keys()


def test_a_vector_and_a_matrix_have_their_sizes_in_the_first_line() -> None:
    vector, matrix = np.array([1.5, 2.0]), np.array([[1, 2, 3], [4, 5, 6]])
    assert write_wb(vector) == b"2\n1.5\n2.0\n"
    assert write_wb(matrix) == b"2 3\n1 2 3\n4 5 6\n"
    for array in (vector, matrix):
        assert np.array_equal(FORMATS["wb"].read(write_wb(array)), array)
    assert FORMATS["wb"].read(b"1 3\n1 2 3\n").shape == (3,)


def test_the_program_does_not_see_what_is_expected(tmp_path: Path) -> None:
    assignment(tmp_path, "vector_add")
    runs = datasets(tmp_path / "cases", "vector", 0.0, 0.0)["datasets"]
    assert [*runs] == ["0", "1", "2"]
    run = runs["2"]
    assert run.arguments == (
        *("-e", "expected.raw", "-i", "input0.raw,input1.raw"),
        *("-o", "result.raw", "-t", "vector"),
    )
    assert run.files.keys() == {"input0.raw", "input1.raw"}
    (expected,) = run.expected.values()
    assert isinstance(expected, Numbers)
    assert expected.values.shape == (1500,)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no datasets"),
        ({"0/input0.raw": "1\n1\n"}, "has 0 files output"),
        ({"0/output.raw": "1\n1\n", "0/output.ppm": ""}, "has 2 files output"),
        ({"0/output.raw": "3\n1\n2\n"}, "holds 2 of its 3 numbers"),
        ({"0/output.raw": "1 2 3\n"}, "holds '1 2 3' where its length should be"),
        ({"0/output.ppm": "P7"}, "holds no PGM or PPM file"),
    ],
)
def test_what_is_wrong_with_a_dataset_is_told(tmp_path: Path, files: dict[str, str], message: str) -> None:
    cases = tmp_path / "cases"
    cases.mkdir()
    for name, text in files.items():
        (cases / name).parent.mkdir(exist_ok=True)
        (cases / name).write_text(text)
    with pytest.raises(FolderError) as caught:
        datasets(cases, "vector", 0.0, 0.0)
    assert message in str(caught.value)
