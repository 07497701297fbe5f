"""A whole homework with its data, logs and environments in one archive is understood in seconds.

    python -m pytest tests/handout/test_large_archive.py --benchmark-only

reads one of 300 MB in 20,000 files; the tests run it once on a small one.
"""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

import pytest
from submissions import HANDED
from test_submissions import graded

from grader.submissions.submission import collect

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.usefixtures("ptx_only", "usual_cases")
FOLDERS = (
    ".git/objects",
    "__MACOSX/minitorch",
    "minitorch/cuda kernels",
    "venv/lib/python3.11/site-packages/numpy",
    "workdir/übersetzung",
)
SUFFIXES = (".py", ".h", ".so", ".json", "")


def write(archive: Path, files: int, size: int) -> None:
    """The complete submission among ``files`` others that hold ``size`` bytes, which cannot be compressed."""
    complete = next(handed for handed in HANDED if handed.name == "complete")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for number in range(files):
            folder, suffix = FOLDERS[number % len(FOLDERS)], SUFFIXES[number // len(FOLDERS) % len(SUFFIXES)]
            packed.writestr(f"hw3/{folder}/{number // 500}/{number}{suffix}", os.urandom(size // files))
        for name, content in complete.tree().items():
            packed.writestr(f"hw3/{name}", content)


def test_two_kernels_are_found_in_a_large_archive(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    archive = tmp_path / "hw3.zip"
    files, size = (1_000, 1 << 20) if benchmark.disabled else (20_000, 300 << 20)
    write(archive, files, size)

    def understand() -> tuple[str, ...]:
        with collect(archive, ["layernorm_kernel.cu", "softmax_kernel.cu"]) as submission:
            return submission.notes

    taken, ignored = benchmark.pedantic(understand, rounds=3)
    assert taken == "layernorm_kernel.cu and softmax_kernel.cu were taken from hw3/src/"
    assert ignored.endswith(f"and {files * 3 // 5 - 3:,} more files")
    record = graded(archive, ("softmax_backward", "layernorm_forward"))  # one of each file
    assert record.score.earned == pytest.approx(24)
