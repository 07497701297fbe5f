"""Functions on tensors whose kernels are CUDA C++ in ``load_inline``, graded on the simulator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from graded_module import ASSIGNMENT, FILLS, RETURNS, edited, graded

from grader.records.sentences import advice
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import ProblemResult

TEXT = '''import torch
from torch.utils.cpp_extension import load_inline

FAULT = 0
THREADS = 128
DECLARED = """
torch::Tensor softmax(torch::Tensor x, int64_t fault);
"""
CUDA = f"constexpr int threads = {THREADS};" + r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

enum Fault { none, behind, tail, no_barrier, twice, own_stream };

template <typename scalar_t>
__global__ void ker_largest(torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x,
                            scalar_t* largest) {
  if (threadIdx.x != 0) return;
  scalar_t most = x[blockIdx.x][0];
  for (int at = 1; at < x.size(1); ++at) most = max(most, x[blockIdx.x][at]);
  largest[blockIdx.x] = most;
}

template <typename scalar_t, int fault>
__global__ void ker_quotients(scalar_t* y, const scalar_t* x, const scalar_t* largest, int columns) {
  __shared__ scalar_t partial[threads];
  const long row = static_cast<long>(blockIdx.x) * columns;
  scalar_t total = 0;
  for (int at = threadIdx.x; at < columns; at += threads) total += exp(x[row + at] - largest[blockIdx.x]);
  partial[threadIdx.x] = total;
  __syncthreads();
  for (int step = threads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];  // added here
    if (fault != no_barrier) __syncthreads();
  }
  const int end = fault == behind ? columns + 1 : fault == tail ? columns - 1 : columns;
  for (int at = threadIdx.x; at < end; at += threads) {
    const scalar_t power = at < columns ? exp(x[row + at] - largest[blockIdx.x]) : 0;
    y[row + at] = power / (fault == twice ? 2 * partial[0] : partial[0]);  // written here
  }
}

template <int fault>
void launch(torch::Tensor& y, const torch::Tensor& x) {
  auto largest = torch::empty({x.size(0)}, x.options());
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax", [&] {
    ker_largest<scalar_t><<<x.size(0), 32>>>(
        x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(), largest.data_ptr<scalar_t>());
    if (fault == own_stream) C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ker_quotients<scalar_t, fault><<<x.size(0), threads, 0, stream>>>(
        y.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), largest.data_ptr<scalar_t>(), x.size(1));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor softmax(torch::Tensor x, int64_t fault) {
  TORCH_CHECK(x.is_cuda(), "x must be on the device");
  TORCH_CHECK(fault >= 0, "the fault is ", fault);
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto y = torch::empty_like(x);
  if (fault == behind) launch<behind>(y, x);
  else if (fault == tail) launch<tail>(y, x);
  else if (fault == no_barrier) launch<no_barrier>(y, x);
  else if (fault == twice) launch<twice>(y, x);
  else if (fault == own_stream) launch<own_stream>(y, x);
  else launch<none>(y, x);
  return y;
}
"""
module = load_inline(
    "softmax", DECLARED, cuda_sources=[CUDA], functions=["softmax"], extra_cuda_cflags=["-O3"]
)


def row_softmax(x):
    return module.softmax(x, FAULT)
'''


def faulty(fault: int) -> str:
    """The file with a fault: its C++ stays the same, and is built once."""
    return TEXT.replace("FAULT = 0", f"FAULT = {fault}")


def _line(result: ProblemResult) -> str:
    """The line of the first finding."""
    finding = next(finding for check in result.checks for finding in check.findings)
    assert finding.file == f"{RETURNS}.py"
    return TEXT.splitlines()[finding.line - 1]


def test_two_kernels_and_a_template_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = graded(tmp_path, RETURNS, TEXT, monkeypatch)
    assert result.verdict is Verdict.PASS, (result.message, result.build, result.correctness.cases)
    assert (result.language, result.notes) == ("load_inline", [])
    assert [check for check in result.checks if check.findings] == []


@pytest.mark.parametrize(
    ("fault", "kind", "line"),
    [
        (1, "global_oob", "// written here"),
        (2, "", ""),
        (3, "race_warp", "// added here"),
        (4, "", ""),
        (5, "global_oob", "exp(x[row + at] - largest[blockIdx.x])"),
    ],
    ids=["behind the end", "tail forgotten", "no barrier", "wrong numbers", "another stream"],
)
def test_a_wrong_kernel_fails_with_its_line_of_the_file(
    fault: int, kind: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = graded(tmp_path, RETURNS, faulty(fault), monkeypatch, one_case=True)
    assert result.verdict is Verdict.FAIL
    found = [finding.kind for check in result.checks for finding in check.findings]
    assert found[:1] == [kind][: bool(kind)]
    assert not kind or line in _line(result)
    told = [" ".join(advice(finding)) for check in result.checks for finding in check.findings]
    assert not re.search(r"tl\.|program|mask=", " ".join(told))


def test_what_cpp_raises_is_said_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = graded(tmp_path, RETURNS, faulty(-1), monkeypatch, one_case=True)
    number = next(number for number, line in enumerate(TEXT.splitlines(), 1) if '"the fault is "' in line)
    case = result.correctness.cases[0]
    assert f"{RETURNS}.py:{number}: RuntimeError: the fault is -1" in case.message


@pytest.mark.parametrize(
    ("old", "new", "said", "at"),
    [
        ("shift, long n) {", "shift, long m) {", '"n" is undefined', "if (at < n)"),
        ('functions=["launch"]', 'functions=["start"]', "start", "functions="),
        ("const float* x,", "const int* x,", "incompatible", "out.data_ptr"),
    ],
    ids=["in a kernel", "in the functions", "in a launch"],
)
def test_what_does_not_compile_is_told_with_its_line_of_the_file(
    old: str, new: str, said: str, at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(FILLS, (old, new), language="load_inline")
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert (result.verdict, result.message) == (Verdict.FAIL, f"the C++ in {FILLS}.py did not compile")
    assert result.build is not None
    first = result.build.log.splitlines()[0]
    number = next(number for number, line in enumerate(text.splitlines(), 1) if at in line)
    assert re.match(rf"{FILLS}\.py[:(]{number}\b.* error: .*{said}", first), result.build.log


BY_HAND = """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("launch", &launch, "adds", py::arg("out"), py::arg("x"), py::arg("y"), py::arg("shift") = 0.0);
}
"""


def test_default_stream_and_module_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = edited(
        FILLS,
        (", 0, at::cuda::getCurrentCUDAStream()>>>", ">>>"),
        ('functions=["launch"],\n', ""),
        ("from torch.utils.cpp_extension import load_inline", "import torch.utils.cpp_extension"),
        ("kernels = load_inline(", "kernels = torch.utils.cpp_extension.load_inline("),
        ("C10_CUDA_KERNEL_LAUNCH_CHECK();\n}", f"C10_CUDA_KERNEL_LAUNCH_CHECK();\n}}\n{BY_HAND}"),
        ('CUDA = """\n', 'CUDA = """\n#include <torch/extension.h>\n'),
        ("    kernels.launch(out, x, y, shift)", "    kernels.launch(out, x, y=y, shift=shift)"),
        language="load_inline",
    )
    result = graded(tmp_path, FILLS, text, monkeypatch)
    assert result.verdict is Verdict.PASS, (result.message, result.build)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cuda_sources=CUDA", "cuda_sources=CUDA.upper()", "gets cuda_sources from CUDA.upper()"),
        ('extra_cuda_cflags=["-O3"]', 'extra_cuda_cflags=["-ccbin=/tmp/x"]', "flags that are not taken here"),
        ('functions=["launch"],', "", "neither functions nor a PYBIND11_MODULE"),
    ],
)
def test_a_call_that_cannot_be_built_is_told_with_its_line(
    old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(FILLS, (old, new), language="load_inline")
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    number = next(number for number, line in enumerate(text.splitlines(), 1) if "= load_inline(" in line)
    assert result.verdict is Verdict.FAIL
    assert result.build is not None
    assert result.build.log.startswith(f"{FILLS}.py:{number}: load_inline gets ")
    assert said in result.build.log


@pytest.mark.parametrize("language", ["triton", "load_inline"])
def test_a_template_is_of_its_language_and_still_to_be_written(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if language == "triton":
        pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    text = (ASSIGNMENT.template_in(language) / f"{FILLS}.py").read_text()
    result = graded(tmp_path, FILLS, text, monkeypatch, one_case=True)
    assert (result.verdict, result.language) == (Verdict.FAIL, language)
    assert "still to be written" in str(result), result.message
