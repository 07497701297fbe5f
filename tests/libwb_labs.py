"""Twenty solutions of labs that are written with libwb, in their usual form, each with a typical mistake.

``nox -s labs`` grades all of them, right and wrong; the tests take a sample.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grader.assignments.assignment import read
from grader.problems.formats import write_pnm, write_wb
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from grader.records.record import ProblemResult

    Array = NDArray[np.generic]
    Dataset = Callable[[np.random.Generator, int], tuple[Sequence[Array], Array]]

LABS = Path(__file__).parent / "run" / "labs"
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


def blur(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    image = random.integers(0, 256, (1 + size // 60, 2 + size // 50, 3)).astype(np.uint8)
    around = ((3, 3), (3, 3), (0, 0))
    windows = np.lib.stride_tricks.sliding_window_view
    total, pixels = (
        windows(np.pad(values, around), (7, 7), axis=(0, 1)).sum(axis=(-2, -1))
        for values in (image.astype(float), np.ones(image.shape))
    )
    return (image,), np.rint(total / pixels).astype(np.uint8)


def equalization(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    image = random.integers(20, 200, (1 + size // 40, 1 + size // 30, 3)).astype(np.uint8)
    shares = np.cumsum(np.bincount(image.ravel(), minlength=256)) / image.size
    least = shares[image.min()]
    return (image,), np.clip(255 * (shares[image] - least) / (1 - least), 0, 255).astype(np.uint8)


def with_shape(volume: NDArray[np.float64]) -> Array:
    """A volume as the labs have it: three numbers for its shape, and then its elements."""
    return np.concatenate([np.array(volume.shape, float), volume.ravel()])


def convolution_3d(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    volume = real(random, 1 + size // 300, 2 + size // 250, 1 + size // 400).astype(float)
    mask = np.round(random.uniform(0, 1, (3, 3, 3)), 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(volume, 1), (3, 3, 3))
    return (with_shape(volume), mask.ravel()), with_shape((windows * mask).sum(axis=(-3, -2, -1)))


def stencil(random: np.random.Generator, size: int) -> tuple[Sequence[Array], Array]:
    volume = real(random, 1 + size // 500, 2 + size // 100, 1 + size // 70).astype(float)
    around = np.pad(volume, 1)
    result = around[:-2, 1:-1, 1:-1] + around[2:, 1:-1, 1:-1] - 6 * volume
    result += around[1:-1, :-2, 1:-1] + around[1:-1, 2:, 1:-1]
    result += around[1:-1, 1:-1, :-2] + around[1:-1, 1:-1, 2:]
    return (with_shape(volume),), with_shape(result)


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
    "spmv_csr": Lab(spmv, "elem = matRowPtr[row];", "elem = matRowPtr[row] + 1;", "of result.raw is"),
    "basic_matrix_multiply": Lab(
        matrix_multiply, "row < numARows &&", "row <= numARows &&", "basic_matrix_multiply.cu:", "matrix"
    ),
    "thrust_vector_add": Lab(vector_add, "thrust::plus", "thrust::minus", "of result.raw is"),
    "unified_memory": Lab(vector_add, "  cudaDeviceSynchronize();\n", "", "of result.raw is"),
    "pinned_streams": Lab(
        vector_add,
        "for (int s = 0; s < STREAMS; ++s) cudaStreamSynchronize",
        "for (int s = 1; s < STREAMS; ++s) cudaStreamSynchronize",
        "of result.raw is",
    ),
    "scan_kogge_stone": Lab(
        scan, "    __syncthreads();\n    XY[threadIdx.x] +=", "    XY[threadIdx.x] +=", "scan_kogge_stone.cu:"
    ),
    "reduction_shuffle": Lab(reduction, "offset = 16;", "offset = 8;", "of result.raw is"),
    "image_blur": Lab(blur, "curRow > -1", "curRow >= -1", "image_blur.cu:", "image", 0, 1),
    "equalization": Lab(
        equalization, "atomicAdd(&local[gray[i]], 1)", "local[gray[i]]++", "equalization.cu:", "image", 0, 1
    ),
    "convolution_3d": Lab(
        convolution_3d, "  __syncthreads();\n  bool center", "  bool center", "convolution_3d.cu:"
    ),
    "stencil": Lab(stencil, "depth > 1 ? In(1, y, x) : 0", "In(1, y, x)", "stencil.cu:"),
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
    request = grading.GradingRequest(submission, read(folder), ("lab",), GradingOptions("sim"), seed=1)
    (result,) = grading.grade(request).problems
    return result


def tried(name: str, folder: Path) -> Iterator[str]:
    """What is not as it has to be of a lab: its solution passes, and fails with the mistake."""
    lab = LAB[name]
    made, solution, mistaken = assignment(folder / "a", name), folder / "right", folder / "wrong"
    text = (LABS / f"{name}.cu").read_text()
    if text.count(lab.old) != 1:
        yield f"{name} has {lab.old!r} {text.count(lab.old)} times"
    for place, content in ((solution, text), (mistaken, text.replace(lab.old, lab.new))):
        place.mkdir()
        (place / f"{name}.cu").write_text(content)
    result = graded(made, solution)
    if result.verdict is not Verdict.PASS or result.points.earned < result.points.possible:
        yield f"{name} does not pass: {result}"
    result = graded(made, mistaken)
    said = [case.message or case.diagnosis for case in result.correctness.cases]
    said += [f"{one.file}:{one.line}" for check in result.checks for one in check.findings]
    if result.verdict is not Verdict.FAIL or lab.found not in "; ".join(said):
        yield f"{name} with its mistake is {result.verdict}: {'; '.join(filter(None, said))}"


def main() -> None:
    """Try those that are named, or all."""
    wrong = []
    for name in sys.argv[1:] or LAB:
        with tempfile.TemporaryDirectory() as folder:
            told = list(tried(name, Path(folder)))
        print("\n".join(told) or f"{name}: right, and wrong with its cause", flush=True)  # noqa: T201
        wrong += told
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
