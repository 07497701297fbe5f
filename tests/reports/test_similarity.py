"""The folder for JPlag: C++ that its front end can parse, with the lines of what was handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.reports.similarity import as_cpp, export
from grader.submissions.discovery import discover

if TYPE_CHECKING:
    from pathlib import Path

CUDA = """#include "row.cuh"
template <int N>
__global__ void __launch_bounds__(
    256) ker(float* __restrict__ x) {
  __shared__ float s[32];
  std::vector<std::vector<std::array<int, 3>>> nested;
}
void launch(float* x, cudaStream_t stream) {
  ker<4><<<dim3(1, 2),
           32, 0, stream>>>(x);
}
"""


def test_launches_are_calls_and_words_of_cuda_are_gone() -> None:
    text = as_cpp(CUDA)
    assert "ker<4>(dim3(1, 2)," in text
    assert "32, 0, stream)(x);" in text
    assert "std::array<int, 3>>> nested" in text
    assert "__" not in text


def test_line_numbers_stay() -> None:
    before, after = CUDA.splitlines(), as_cpp(CUDA).splitlines()
    assert len(before) == len(after)
    assert after.index("void launch(float* x, cudaStream_t stream) {") == 7


def test_each_submission_is_a_folder_of_what_is_graded(tmp_path: Path) -> None:
    handed, out, scratch = (tmp_path / name for name in ("handed", "out", "scratch"))
    scratch.mkdir()
    (handed / "alice").mkdir(parents=True)
    (handed / "alice" / "softmax_kernel.cu").write_text(CUDA)
    (handed / "alice" / "row.cuh").write_text("#pragma once\n")
    (handed / "alice" / "transformer.py").write_text("")
    (handed / "empty").mkdir()
    (handed / "doejane_1001_2_softmax_kernel.cu").write_text("int x;\n")
    wanted = ["softmax_kernel.cu", "transformer.py"]
    assert export(discover(handed, wanted).entries, wanted, out, scratch) == {
        "empty": "empty holds no source file. Expected: softmax_kernel.cu, transformer.py."
    }
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == [
        "alice/row.cuh.hpp",
        "alice/softmax_kernel.cu.cpp",
        "doejane_1001/softmax_kernel.cu.cpp",
    ]


def test_what_cannot_be_read_is_left_out_with_the_reason_and_the_rest_written(tmp_path: Path) -> None:
    handed, out, scratch = (tmp_path / name for name in ("handed", "out", "scratch"))
    scratch.mkdir()
    handed.mkdir()
    (handed / "bad.zip").write_text("no archive")
    (handed / "doe_1_2_softmax_kernel.cu").symlink_to("nowhere")
    (handed / "gone.zip").symlink_to("nowhere")
    (handed / "plain").mkdir()
    (handed / "plain" / "other.cu").touch()
    header = "x" * 250 + ".cuh"  # with the suffix that JPlag wants, no file system takes it
    for name, source in (("long", f'#include "{header}"'), ("zoe", CUDA)):
        (handed / name).mkdir()
        (handed / name / "softmax_kernel.cu").write_text(source)
        (handed / name / header).touch()
    wanted = ["softmax_kernel.cu"]
    left = export(discover(handed, wanted).entries, wanted, out, scratch)
    assert {name: reason.partition(":")[0] for name, reason in left.items()} == {
        "bad": "bad.zip is not an archive or is damaged",
        "doe_1": "softmax_kernel.cu is a link. Hand in the file itself.",
        "gone": f"{handed}/gone.zip does not exist. Give a folder or an archive.",
        "long": f"{header}.hpp is too long a name.",
        "plain": "nothing to compare",
    }
    assert (out / "zoe" / "softmax_kernel.cu.cpp").is_file()
