"""Functions on tensors whose kernels are compiled at run time, by CuPy or NVRTC, graded on the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from graded_module import ASSIGNMENT, FILLS, RETURNS, edited, graded

from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import ProblemResult

LANGUAGES = ("cupy", "nvrtc")
CUPY, NVRTC = LANGUAGES
UNGUARDED = ("  if (at < n) out[at]", "  out[at]")


def line_of(text: str, part: str) -> int:
    """The number of the first line with ``part``."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def told(result: ProblemResult) -> str:
    """What is said of the first case that is wrong."""
    return next(case.message for case in result.correctness.cases if case.verdict is not Verdict.PASS)


@pytest.mark.parametrize("problem", [FILLS, RETURNS])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_references_pass(
    language: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = graded(tmp_path, problem, edited(problem, language=language), monkeypatch)
    assert result.verdict is Verdict.PASS, (result.message, result.build, result.correctness.cases)
    assert (result.language, result.notes) == (language, [])
    assert [check for check in result.checks if check.findings] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_has_the_line_of_the_python_file(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(FILLS, UNGUARDED, language=language)
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    finding = next(finding for check in result.checks for finding in check.findings)
    assert result.verdict is Verdict.FAIL
    assert finding.kind == "global_oob"
    assert (finding.file, finding.line) == (f"{FILLS}.py", line_of(text, "out[at] ="))


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_does_not_compile_is_told_with_the_line_of_the_python_file(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(FILLS, ("y[at] + shift;", "y[at] + shift_by;"), language=language)
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert (result.verdict, result.message) == (Verdict.FAIL, f"the C++ in {FILLS}.py did not compile")
    assert result.build is not None
    assert result.build.log.startswith(f"{FILLS}.py({line_of(text, 'shift_by')}): error")


WRONG_CALLS = {
    "a double for a float": (CUPY, "cp.float32(shift), n)", "shift, n)", "a Python float, which is a double"),
    "one argument less": (
        CUPY,
        "cp.float32(shift), n)",
        "cp.float32(shift))",
        "takes 5 arguments and gets 4",
    ),
    "four bytes for eight": (CUPY, "shift), n)", "shift), cp.int32(n))", "has 8 bytes and gets a int32"),
    "a tensor": (CUPY, "cp.asarray(tensor) for", "tensor for", "write cupy.asarray(tensor)"),
    "another kernel": (CUPY, '"ker_shifted_sum")', '"ker_sum")', "there is no kernel ker_sum"),
    "no C": (CUPY, 'extern "C" ', "", 'Write extern "C" before __global__'),
    "a double in cuda.core": (
        NVRTC,
        "np.float32(shift)",
        "shift",
        "which is a double, of 8 bytes: write numpy.float32(...)",
    ),
    "a tensor in cuda.core": (NVRTC, "tensor.data_ptr() for", "tensor for", "write its data_ptr()"),
    "no stream": (NVRTC, "launch(device.default_stream", "launch(None", "a NoneType is no stream"),
    "no instance": (NVRTC, 'get_kernel("ker_shifted_sum")', 'get_kernel("sum<1>")', "no kernel sum<1>"),
}


@pytest.mark.parametrize("wrong", WRONG_CALLS)
def test_a_wrong_call_is_told_with_its_line(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    language, old, new, words = WRONG_CALLS[wrong]
    text = edited(FILLS, (old, new), language=language)
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert result.verdict is Verdict.FAIL
    assert told(result).startswith(f"{FILLS}.py:")
    assert words in told(result)


OF_CUPY = {
    "a current stream": (
        "    kernel((",
        "    with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):\n      kernel((",
    ),
    "addresses": ("cp.asarray(tensor) for", "tensor.data_ptr() for"),
    "options": ('"ker_shifted_sum")', '"ker_shifted_sum", options=("-std=c++17", "-DN=1"))'),
    "imported by name": ("import cupy as cp", "import cupy as cp\nfrom cupy import RawKernel, cuda"),
}  # fmt: skip


@pytest.mark.parametrize("way", OF_CUPY)
def test_ways_to_write_it_by_cupy(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = edited(FILLS, ("import cupy as cp", "import torch\nimport cupy as cp"), language=CUPY)
    assert text.count(OF_CUPY[way][0]) == 1
    result = graded(tmp_path, FILLS, text.replace(*OF_CUPY[way]), monkeypatch, one_case=True)
    assert result.verdict is Verdict.PASS, (result.message, result.build, result.correctness.cases)


def test_arrays_of_cupy_become_tensors_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = edited(
        RETURNS,
        ("y = torch.empty_like(x)", "y = cp.empty_like(cp.asarray(x))"),
        ("cp.asarray(y), cp", "y, cp"),
        ("return y", "return torch.from_dlpack(y)"),
        language=CUPY,
    )
    result = graded(tmp_path, RETURNS, text, monkeypatch, one_case=True)
    assert result.verdict is Verdict.PASS, (result.message, result.build, result.correctness.cases)


ALLOWED = """
BYTES = 64 << 10
for each in short, middle, long:
    each.compile()
    each.max_dynamic_shared_size_bytes = BYTES
"""
DYNAMIC = (
    ("__shared__ float of_warps[threads / warp_size];", "extern __shared__ float of_warps[];"),
    ("cp.int32(columns)))", "columns), shared_mem=BYTES)"),
    ("def row_softmax", f"{ALLOWED}\n\ndef row_softmax"),
)


def test_shared_memory_of_a_size_that_the_launch_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = graded(tmp_path, RETURNS, edited(RETURNS, *DYNAMIC, language=CUPY), monkeypatch, one_case=True)
    assert result.verdict is Verdict.PASS, (result.message, result.build, result.correctness.cases)


STREAM = """
class Current:
    def __cuda_stream__(self):
        return 0, torch.cuda.current_stream().cuda_stream


stream = device.create_stream(Current())


def custom_kernel"""


def test_a_stream_of_pytorch_and_a_macro_in_cuda_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(
        FILLS,
        ("import numpy as np", "import numpy as np\nimport torch"),
        ("from cuda.core import", "from cuda.core.experimental import"),
        ("\ndef custom_kernel", STREAM),
        ("launch(device.default_stream", "launch(stream"),
        ('std="c++17"', 'define_macro=[("KERNEL", "ker_shifted_sum"), "EXACT"], std="c++17"'),
        ("void ker_shifted_sum(", "void KERNEL("),
        language=NVRTC,
    )
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert result.verdict is Verdict.PASS, (result.message, result.build, result.correctness.cases)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_template_is_still_to_be_written(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ASSIGNMENT.template_in(language) / f"{FILLS}.py").read_text()
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert (result.verdict, result.language) == (Verdict.FAIL, language)
    assert "still to be written" in str(result), result.message


@pytest.mark.parametrize("language", LANGUAGES)
def test_host_code_in_a_text_is_held_against_the_policy(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(FILLS, ('extern "C"', 'static int cheated = system("ls");\nextern "C"'), language=language)
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert result.verdict is Verdict.UNTRUSTED
    assert any("system" in reason for reason in result.trust.reasons)


def test_a_text_that_is_changed_while_the_file_runs_is_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = ("kernel = cp.RawKernel(CUDA", "make = cp.RawKernel\ncp.RawKernel(CUDA")
    again = ("def custom_kernel", 'kernel = make(CUDA + " ", "ker_shifted_sum")\n\n\ndef custom_kernel')
    result = graded(tmp_path, FILLS, edited(FILLS, changed, again, language=CUPY), monkeypatch, one_case=True)
    assert result.verdict is Verdict.FAIL
    assert "the file compiles other texts than stand in the call" in str(result)
