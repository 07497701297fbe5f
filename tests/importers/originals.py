"""Folders of the GPU MODE form, written here: by name, what ``task.yml`` and ``reference.py`` hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
"""
TYPES = """
from typing import TypedDict, TypeVar

import torch

input_t = TypeVar("input_t", bound=tuple[torch.Tensor, torch.Tensor])
output_t = TypeVar("output_t", bound=torch.Tensor)


class TestSpec(TypedDict):
    size: int
    seed: int
"""
HEAD = """
import torch
from task import input_t, output_t
from utils import make_match_reference

"""

ORIGINALS: dict[str, tuple[str, str]] = {
    "vector_sum": (
        """
description: |
  Add two vectors.

  All elements are half precision.
tests:
  - {"size": 127, "seed": 4242}
  - {"size": 129, "seed": 5236}
  - {"size": 1024, "seed": 1001}
benchmarks:
  - {"size": 65536, "seed": 54352}
ranking_by: "geom"
""",
        """
def ref_kernel(data: input_t) -> output_t:
    left, right, total = data
    total[...] = left + right
    return total


def generate_input(size: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    left = torch.randn(size, device="cuda", dtype=torch.float16, generator=gen)
    right = torch.randn(size, device="cuda:0", dtype=torch.float16, generator=gen).contiguous()
    return left, right, torch.empty(size, device="cuda", dtype=torch.float16)


check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=1e-3)
""",
    ),
    "grayscale": (
        """
description: "Weighted sums of the three colours."
tests:
  - {"height": 16, "width": 32, "seed": 1}
  - {"height": 32, "width": 16, "seed": 2}
  - {"height": 64, "width": 64, "seed": 3}
benchmarks:
  - {"height": 512, "width": 256, "seed": 3}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    weights = torch.tensor([0.3, 0.6, 0.1], device=data.device, dtype=data.dtype)
    return torch.sum(data * weights, dim=-1)


def generate_input(height: int, width: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.rand(height, width, 3, device="cuda", generator=gen)


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-4)
""",
    ),
    "prefix_sum": (
        """
tests:
  - {"size": 1023, "seed": 7}
  - {"size": 1025, "seed": 8}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    values, sums = data
    torch.cumsum(values.cuda(), dim=0, out=sums)
    torch.cuda.synchronize()
    return sums


def generate_input(size: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randn((size,), device="cuda", dtype=torch.float32, generator=gen)
    return values, torch.zeros_like(values)


check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=1e-3)
""",
    ),
    "histogram": (
        """
tests:
  - {"size": 512, "bins": 16, "seed": 7}
  - {"size": 2048, "bins": 64, "seed": 8}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    values, bins = data
    return torch.bincount(values, minlength=bins)


def generate_input(size: int, bins: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(0, bins, (size,), device="cuda", generator=gen), bins


def check_implementation(data: input_t, output: output_t) -> str:
    return "" if torch.equal(output, ref_kernel(data)) else "the counts differ"
""",
    ),
    "sort": (
        """
tests:
  - {"size": 64, "distribution": "normal", "seed": 7}
  - {"size": 200, "distribution": "sorted", "seed": 8}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    ordered, _ = torch.sort(data)
    return ordered


def generate_input(size: int, distribution: str, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randn(size, device="cuda", generator=gen)
    return values.sort().values if distribution == "sorted" else values


check_implementation = make_match_reference(ref_kernel)
""",
    ),
    "total": (
        """
tests:
  - {"size": 63, "seed": 7}
  - {"size": 1024, "seed": 8}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    return data.sum()


def generate_input(size: int, seed: int) -> input_t:
    return torch.randn(size, device="cuda", generator=torch.Generator(device="cuda").manual_seed(seed))


check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=1e-3)
""",
    ),
    "windows": (
        """
tests:
  - {"size": 16, "width": 3, "seed": 7}
  - {"size": 32, "width": 5, "seed": 8}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    rows, weights = data
    return torch.nn.functional.conv1d(rows, weights)


def generate_input(size: int, width: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    rows = torch.randn(2, 3, size, device="cuda", generator=gen)
    return rows, torch.randn(4, 3, width, device="cuda", generator=gen)


check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=1e-3)
""",
    ),
    "scaled_in_place": (
        """
tests:
  - {"rows": 4, "columns": 8, "seed": 7}
  - {"rows": 6, "columns": 12, "seed": 8}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    matrix, factor, columns = data
    matrix *= factor
    return matrix


def generate_input(rows: int, columns: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(rows, columns, device="cuda", generator=gen), 0.5, columns


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-6)
""",
    ),
    "softmax": (
        """
description: "The softmax of each row."
tests:
  - {"rows": 3, "columns": 65, "seed": 1}
  - {"rows": 5, "columns": 128, "seed": 2}
  - {"rows": 16, "columns": 33, "seed": 3}
benchmarks:
  - {"rows": 1024, "columns": 1024, "seed": 4}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    return torch.softmax(data, dim=-1)


def generate_input(rows: int, columns: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(rows, columns, device="cuda", generator=gen)


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-4)
""",
    ),
    "matmul": (
        """
tests:
  - {"m": 16, "n": 32, "k": 48, "seed": 1}
  - {"m": 32, "n": 16, "k": 16, "seed": 2}
  - {"m": 48, "n": 48, "k": 64, "seed": 3}
benchmarks:
  - {"m": 256, "n": 256, "k": 512, "seed": 4}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    a, b, c = data
    c[...] = a @ b
    return c


def generate_input(m: int, n: int, k: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16, generator=gen)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16, generator=gen)
    return a, b, torch.empty(m, n, device="cuda", dtype=torch.float16)


check_implementation = make_match_reference(ref_kernel, rtol=1e-2, atol=1e-2)
""",
    ),
    "cross_entropy": (
        """
tests:
  - {"rows": 4, "classes": 10, "seed": 1}
  - {"rows": 33, "classes": 17, "seed": 2}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    scores, labels = data
    return torch.nn.functional.cross_entropy(scores, labels, reduction="none")


def generate_input(rows: int, classes: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    scores = torch.randn(rows, classes, device="cuda", generator=gen)
    labels = torch.randint(0, classes, (rows,), device="cuda", generator=gen)
    return scores, labels


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-4)
""",
    ),
    "quantised_product": (
        """
tests:
  - {"m": 16, "k": 32, "seed": 1}
  - {"m": 24, "k": 64, "seed": 2}
""",
        """
def ref_kernel(data: input_t) -> output_t:
    weights, scales, vector = data
    return (weights.float() * scales[:, None]) @ vector


def generate_input(m: int, k: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda").manual_seed(seed)
    weights = torch.randint(-127, 128, (m, k), device="cuda", dtype=torch.int8, generator=gen)
    scales = torch.rand(m, device="cuda", generator=gen)
    return weights, scales, torch.randn(k, device="cuda", generator=gen)


check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=1e-3)
""",
    ),
}


def write(folder: Path, name: str, *edits: tuple[str, str]) -> Path:
    """The folder of an original, with texts of its files replaced."""
    tests, reference = ORIGINALS[name]
    (folder / name).mkdir(parents=True)
    for file, text in (("task.yml", TASK + tests), ("task.py", TYPES), ("reference.py", HEAD + reference)):
        edited = text
        for old, new in edits:
            edited = edited.replace(old, new)
        (folder / name / file).write_text(edited)
    return folder / name
