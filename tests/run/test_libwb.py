"""Solutions of labs that are written with libwb, in their usual form: right ones pass, wrong ones fail."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.assignments.assignment import read
from grader.problems.folder import FolderError
from grader.problems.formats import FORMATS, write_pnm, write_wb
from grader.problems.program import Numbers
from grader.problems.wb import datasets
from grader.records.verdict import Verdict
from grader.run import grading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from grader.records.record import ProblemResult

    Array = NDArray[np.generic]
    Dataset = Callable[[np.random.Generator, int], tuple[Sequence[Array], Array]]

pytestmark = pytest.mark.usefixtures("ptx_only")
LABS = Path(__file__).parent / "labs"
SIZES = (1, 70, 1500)

RULES = """
id = "labs"
title = "Labs"

[[problems]]
id = "lab"
title = "A lab"
correctness = 10.0

[problems.program]
files = ["{file}"]
libwb = "{type}"
rtol = {rtol}
atol = {atol}
"""


def real(random: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    """Reals as the datasets of the labs have them, with two digits behind the point."""
    return np.round(random.uniform(0, 10, shape), 2).astype(np.float32)


def vector_add(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    a, b = real(random, size), real(random, size)
    return (a, b), a.astype(float) + b


def matrix_multiply(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    rows, inner, columns = 1 + size // 30, 1 + size // 50, 1 + size // 20
    a, b = real(random, rows, inner), real(random, inner, columns)
    return (a, b), a.astype(float) @ b


def reduction(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    x = real(random, size)
    return (x,), np.array([x.astype(float).sum()])


def scan(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    x = real(random, size)
    return (x,), np.cumsum(x.astype(float))


def histogram(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    x = random.integers(0, 9, size)
    return (x,), np.minimum(np.bincount(x, minlength=4096), 127)


def spmv(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    size = 2 + size // 10
    matrix = real(random, size, size) * (random.random((size, size)) < 0.2)
    matrix[0, 1] = 1.0
    rows = np.concatenate([[0], np.cumsum((matrix != 0).sum(axis=1))])
    vector = real(random, size)
    return (np.nonzero(matrix)[1], rows, matrix[matrix != 0], vector), matrix.astype(float) @ vector


def grayscale(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    image = random.integers(0, 256, (1 + size // 40, 1 + size // 30, 3)).astype(np.uint8)
    return (image,), np.rint(image @ [0.21, 0.71, 0.07]).astype(np.uint8)


def convolution(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    image = random.integers(0, 256, (1 + size // 60, 2 + size // 50, 3)).astype(np.uint8)
    mask = np.round(random.uniform(0, 0.06, (5, 5)), 3).astype(np.float32)
    padded = np.pad(image / 255.0, ((2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), axis=(0, 1))
    return (image, mask), np.rint(np.clip((windows * mask).sum(axis=(-2, -1)), 0, 1) * 255).astype(np.uint8)


@dataclass(frozen=True)
class Lab:
    """A lab: its datasets, and a mistake in the right solution with what is found of it."""

    dataset: Dataset
    old: str
    new: str
    found: str
    type: str = "vector"
    rtol: float = 1e-5
    atol: float = 1e-4


LAB = {
    "vector_add": Lab(vector_add, "if (i < len)", "if (i < len - 1)", "of result.raw is"),
    "matrix_multiply": Lab(
        matrix_multiply,
        "k < TILE_WIDTH; ++k",
        "k < TILE_WIDTH - 1; ++k",
        "of result.raw is",
        "matrix",
    ),
    "reduction": Lab(
        reduction, "stride = BLOCK_SIZE;", "stride = BLOCK_SIZE / 2;", "of result.raw is"
    ),
    "scan": Lab(
        scan, "if (blockIdx.x)", "if (blockIdx.x > 1)", "of result.raw is"
    ),
    "histogram": Lab(
        histogram, "atomicAdd(&bins_s[input[i]], 1)", "bins_s[input[i]]++", "histogram.cu:19",
        "integral_vector", 0, 0
    ),
    "spmv_jds": Lab(spmv, "out[matRowPerm[row]] = sum", "out[row] = sum", "of result.raw is"),
    "streams": Lab(
        vector_add,
        "wbCheck(cudaDeviceSynchronize());",
        "wbCheck(cudaStreamSynchronize(stream[0]));",
        "of result.raw is",
    ),
    "grayscale": Lab(
        grayscale, "0.71f * g", "0.71f * r", "of result.ppm is", "image", 0, 1
    ),
    "convolution": Lab(
        convolution, "N_ds[threadIdx.y][threadIdx.x] = 0", "N_ds[threadIdx.y][threadIdx.x] = 1",
        "of result.ppm is", "image", 0, 1
    ),
}  # fmt: skip


def assignment(folder: Path, name: str) -> Path:
    """Write an assignment with the datasets of a lab, as libwb lays them out."""
    lab = LAB[name]
    for number, size in enumerate(SIZES):
        inputs, output = lab.dataset(np.random.default_rng(size), size)
        place = folder / "cases" / str(number)
        place.mkdir(parents=True)
        for index, array in enumerate(inputs):
            suffix, write = ("ppm", write_pnm) if array.dtype == np.uint8 else ("raw", write_wb)
            (place / f"input{index}.{suffix}").write_bytes(write(array))
        suffix, write = ("ppm", write_pnm) if lab.type == "image" else ("raw", write_wb)
        (place / f"output.{suffix}").write_bytes(write(output))
    rules = RULES.format(file=f"{name}.cu", type=lab.type, rtol=float(lab.rtol), atol=float(lab.atol))
    (folder / "assignment.toml").write_text(rules)
    return folder


def graded(folder: Path, submission: Path) -> ProblemResult:
    request = grading.GradingRequest(submission, read(folder), ("lab",), "sim", "auto", "auto", seed=1)
    (result,) = grading.grade(request).problems
    return result


@pytest.mark.parametrize("name", LAB)
def test_a_solution_grades_unaltered_and_a_wrong_one_fails_with_its_cause(name: str, tmp_path: Path) -> None:
    lab, folder = LAB[name], assignment(tmp_path / "a", name)
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for place in (right, wrong):
        place.mkdir()
        shutil.copy(LABS / f"{name}.cu", place)
    result = graded(folder, right)
    assert result.verdict is Verdict.PASS, result
    assert "Importing" not in "".join(case.diagnosis for case in result.correctness.cases)
    text = (wrong / f"{name}.cu").read_text()
    assert text.count(lab.old) == 1
    (wrong / f"{name}.cu").write_text(text.replace(lab.old, lab.new))
    result = graded(folder, wrong)
    assert result.verdict is Verdict.FAIL
    said = [case.message or case.diagnosis for case in result.correctness.cases]
    places = [f"{one.file}:{one.line}" for check in result.checks for one in check.findings]
    assert lab.found in "; ".join([*said, *places])


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
