"""Reading problems of the GPU MODE form: what shows of a function when the original's own are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from importers import originals

from grader.importers.gpu_mode import ImportFaultError, read

if TYPE_CHECKING:
    from pathlib import Path


def test_a_tensor_that_is_returned_is_filled(tmp_path: Path) -> None:
    task = read(originals.write(tmp_path, "vector_sum"))
    assert [(value.name, value.filled, value.read) for value in task.data] == [
        ("left", False, True),
        ("right", False, True),
        ("total", True, False),
    ]
    assert [value.name for value in task.results] == ["total"]
    assert (task.rtol, task.atol, task.ranking, task.packed) == (1e-3, 1e-3, "geom", True)
    assert task.ranges == {"size": (127, 1024, 1, 65536)}


def test_content_that_counts_is_told_from_content_that_does_not(tmp_path: Path) -> None:
    (matrix, factor, columns) = read(originals.write(tmp_path, "scaled_in_place")).data
    assert (matrix.filled, matrix.read) == (True, True)
    assert list(map(str, matrix.lengths)) == ["rows", "columns"]
    assert (factor.text, columns.text) == ("0.5", "columns")


def test_lengths_follow_from_sizes(tmp_path: Path) -> None:
    folder = originals.write(
        tmp_path,
        "grayscale",
        ("torch.rand(height, width, 3,", "torch.rand(height * width, width // 2, 3 * height + 1,"),
        ("data * weights, dim=-1", "data * weights[0], dim=-1"),
    )
    (data,) = read(folder).data
    assert list(map(str, data.lengths)) == ["height * width", "width // 2", "3 * height + 1"]


def test_sizes_in_no_relation_keep_the_tests(tmp_path: Path) -> None:
    folder = originals.write(
        tmp_path, "grayscale", ("torch.rand(height, width,", "torch.rand(height + width, width,")
    )
    task = read(folder)
    assert task.listed == "the length of axis 0 of data does not follow from the sizes"


def test_offsets_are_not_to_be_replaced_by_other_numbers(tmp_path: Path) -> None:
    folder = originals.write(
        tmp_path,
        "histogram",
        ('device="cuda", generator=gen), bins', 'device="cuda", generator=gen).sort().values, bins'),
    )
    assert not read(folder).data[0].loose
    assert read(originals.write(tmp_path / "other", "histogram")).data[0].loose


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("sort", 'lang: "py"', 'lang: "cu"', "lang is cu: only functions in Python"),
        ("sort", 'lang: "py"', "multi_gpu: true", "needs several GPUs"),
        ("sort", "tests:", "tries:", "has no tests, from which cases are made"),
        ("sort", 'lang: "py"', "lang: [", "is no YAML"),
        ("sort", '"distribution": "normal", ', "", "a test says size, another size, distribution"),
        ("sort", "return ordered", 'return {"ordered": ordered}', "returns a dict: it has to return tensors"),
        ("sort", "else values", 'else {"x": values}', "data is a dict: a function can be given"),
        ("sort", 'device="cuda", generator=gen)', 'device="cuda").cfloat()', "a tensor of complex64"),
        ("sort", "manual_seed(seed)", "manual_seed(torch.seed() % 99)", "other numbers for the same seed"),
        ("grayscale", "rand(height, width, 3,", "rand(9, 9, 9,", "ref_kernel fails on the CPU: RuntimeError"),
        ("grayscale", "generator=gen)", "generator=gen).transpose(0, 1)", "has to be contiguous"),
        ("prefix_sum", "    torch.cumsum", "    values += 1\n    torch.cumsum", "changes values and does"),
        ("histogram", "torch.equal(output, ref_kernel(data))", "output.sum() == 9", "in a way of its own"),
        ("histogram", "import torch\n", "import torch\nimport nothing_there\n", "No module named"),
        ("histogram", "def ref_kernel", "def other", "has no function ref_kernel"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_named(name: str, old: str, new: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFaultError, match=reason.replace("(", r"\(")):
        read(originals.write(tmp_path, name, (old, new)))
