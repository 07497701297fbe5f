"""Launchers that copy in whatever way get host pointers, others device pointers; the record says why."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from first_assignment import VARIANTS

from grader.assignments.assignment import load
from grader.judge.correctness.diagnosis import NOTHING_WRITTEN
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.assignments.assignment import Assignment
    from grader.problems.problem import Case, Problem
    from grader.records.record import ProblemResult

pytestmark = pytest.mark.usefixtures("ptx_only", "usual_cases")
PROBLEM, MODEL = "softmax_forward", "transformer"
REFERENCE = Path(__file__).parents[2] / "reference"
KERNEL = (VARIANTS / "softmax_forward" / "host.cu").read_text().partition('extern "C"')[0]
LAUNCHER = """
#define RUN(x, mask) \\
  softmax<<<rows, 128, 0, stream>>>(x, mask, nhead * from_len, from_len, to_len, mask_future)
extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead,
                                    int from_len, int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  const size_t n = (size_t)rows * to_len, bytes = n * sizeof(float), m = (size_t)batch_size * to_len;
"""
COPIES = """  float *x, *mask = nullptr;
  cudaMalloc(&x, bytes);
  TO(x, inp, bytes);
  if (attn_mask) {
    cudaMalloc(&mask, m * sizeof(float));
    TO(mask, attn_mask, m * sizeof(float));
  }
  RUN(x, mask);
  cudaStreamSynchronize(stream);
  BACK(inp, x, bytes);
  cudaFree(x);
  cudaFree(mask);
}
"""
KINDS = "#define TO(to, from, size) cudaMemcpy(to, from, size, {})\n"
KINDS += "#define BACK(to, from, size) cudaMemcpy(to, from, size, {})\n"
CLASS = """
struct Buffer {
  float* data = nullptr;
  Buffer(const float* from, size_t count) : bytes(count * sizeof(float)) {
    if (!from) return;
    cudaMalloc(&data, bytes);
    cudaMemcpy(data, from, bytes, cudaMemcpyHostToDevice);
  }
  void into(float* to) const { cudaMemcpy(to, data, bytes, cudaMemcpyDeviceToHost); }
  ~Buffer() { cudaFree(data); }

 private:
  size_t bytes;
};
"""
TEMPLATE = """
template <cudaMemcpyKind KIND, class T>
void copied(T* to, const T* from, size_t bytes) {
  cudaMemcpy(to, from, bytes, KIND);
}
#define TO copied<cudaMemcpyHostToDevice>
#define BACK copied<cudaMemcpyDeviceToHost>
"""
ROWS = """
#define ROWS(to, from, size, kind) \\
  cudaMemcpy2D(to, 4 * to_len, from, 4 * to_len, 4 * to_len, size / (4 * to_len), kind)
#define TO(to, from, size) ROWS(to, from, size, cudaMemcpyHostToDevice)
#define BACK(to, from, size) ROWS(to, from, size, cudaMemcpyDeviceToHost)
"""
THRUST = """  thrust::device_vector<float> x(inp, inp + n), mask;
  if (attn_mask) mask.assign(attn_mask, attn_mask + m);
  RUN(thrust::raw_pointer_cast(x.data()), attn_mask ? thrust::raw_pointer_cast(mask.data()) : nullptr);
  cudaStreamSynchronize(stream);
  thrust::copy(x.begin(), x.end(), inp);
}
"""
MANAGED = """  float *x, *mask = nullptr;
  cudaMallocManaged(&x, bytes);
  std::memcpy(x, inp, bytes);
  if (attn_mask) {
    cudaMallocManaged(&mask, m * sizeof(float));
    std::copy(attn_mask, attn_mask + m, mask);
  }
  RUN(x, mask);
  cudaStreamSynchronize(stream);
  std::memcpy(inp, x, bytes);
  cudaFree(x);
  cudaFree(mask);
}
"""
OWN_STREAM = """
#define TO(to, from, size) cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream)
#define BACK(to, from, size) \\
  cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream); \\
  cudaStreamSynchronize(stream); \\
  cudaStreamDestroy(stream)
"""
DIRECTIONS = KINDS.format("TO_DEVICE", "TO_HOST")
NUMBERS = "constexpr auto TO_DEVICE = (cudaMemcpyKind)1, TO_HOST = (cudaMemcpyKind)2;\n"
HEADER = KINDS.format("cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost")
COPYING = {
    "a class": CLASS + KERNEL + LAUNCHER + "Buffer x(inp, n), mask(attn_mask, m);\n"
    "  RUN(x.data, mask.data);\n  cudaStreamSynchronize(stream);\n  x.into(inp);\n}\n",
    "a macro": HEADER + KERNEL + LAUNCHER + COPIES,
    "a template": TEMPLATE + KERNEL + LAUNCHER + COPIES,
    "no direction": KINDS.format(*["cudaMemcpyDefault"] * 2) + KERNEL + LAUNCHER + COPIES,
    "no direction, on the default stream": KINDS.format(*["cudaMemcpyDefault"] * 2)
    + KERNEL
    + LAUNCHER
    + "  stream = 0;\n"
    + COPIES,
    "rows": ROWS + KERNEL + LAUNCHER + COPIES,
    "thrust": "#include <thrust/device_vector.h>\n" + KERNEL + LAUNCHER + THRUST,
    "managed memory": "#include <algorithm>\n#include <cstring>\n" + KERNEL + LAUNCHER + MANAGED,
    "numbers for directions": NUMBERS + DIRECTIONS + KERNEL + LAUNCHER + COPIES,
    "a stream of its own": OWN_STREAM + KERNEL + LAUNCHER + "  cudaStreamCreate(&stream);\n" + COPIES,
    "another file": '#include "copies.h"\n' + KERNEL + LAUNCHER + COPIES,
}
"""Right launchers that take host pointers, by what copies."""


DEVICE_TABLE = """
__constant__ float scales[2];
static float* kept = nullptr;
"""
TABLE_TO_SYMBOL = """  const float ones[2] = {1.0f, 1.0f};
  cudaMemcpyToSymbolAsync(scales, ones, sizeof ones, 0, cudaMemcpyHostToDevice, stream);
  RUN(inp, attn_mask);
}
"""
TABLE_TO_MEMORY = """  float ones[2] = {1.0f, 1.0f}, read[2];
  if (!kept) {
    cudaMalloc(&kept, sizeof ones);
    cudaMemcpy(kept, ones, sizeof ones, cudaMemcpyHostToDevice);
    cudaMemcpy(read, kept, sizeof ones, cudaMemcpyDeviceToHost);
  }
  RUN(inp, attn_mask);
}
"""
ON_THE_DEVICE = {
    "no copy": KERNEL + LAUNCHER + "  RUN(inp, attn_mask);\n}\n",
    "a constant table": KERNEL + DEVICE_TABLE + LAUNCHER + TABLE_TO_SYMBOL,
    "a table in memory, and back": KERNEL + DEVICE_TABLE + LAUNCHER + TABLE_TO_MEMORY,
}
"""Right launchers that take device pointers, by what they copy."""
WRONG = ("x[j] = __fdividef(x[j], sum + 1e-8f)", "x[j] = __fdividef(x[j], sum + 2.0f)")
UNENDING = ("sum = reduced(sum", "while (sum < 1e9f) sum = fminf(sum, 1.0f);\n  sum = reduced(sum")
MISTAKEN = "which it took for the other kind"


class FewCases(Bench):
    """What all gradings here share: they meet two cases of each group."""

    def problems(self, assignment: Assignment, seed: int) -> Mapping[str, Problem]:
        known = super().problems(assignment, seed)
        few = {name: _few(known[name].cases(seed)) for name in (PROBLEM, MODEL)}
        return {name: replace(known[name], cases=lambda _, cases=cases: cases) for name, cases in few.items()}


def _few(every: Sequence[Case]) -> tuple[Case, ...]:
    ends = [{case.group: case for case in cases} for cases in (reversed(every), every)]
    return tuple({case.name: case for end in ends for case in end.values()}.values())


@cache
def bench() -> Bench:
    return FewCases(remembers=True)


def graded(folder: Path, code: str, memory: str = "auto", problem: str = PROBLEM) -> ProblemResult:
    (folder / "softmax_kernel.cu").write_text(code)
    (folder / "copies.h").write_text(HEADER)
    request = grading.GradingRequest(
        folder, load("llm_systems_3"), (problem,), GradingOptions("sim", memory=memory), seed=1
    )
    (result,) = grading.grade(request, bench=bench()).problems
    return result


def tried(device: str, host: str, taken: str) -> str:
    other = "host" if taken == "device" else "device"
    return (
        f"launch_attn_softmax was tried with device pointers ({device}) and with host pointers ({host}): "
        f"it is given {taken} pointers (--memory {other} for {other} pointers)"
    )


@pytest.mark.parametrize("copies", COPYING)
def test_a_launcher_that_copies_is_given_host_pointers(copies: str, tmp_path: Path) -> None:
    result = graded(tmp_path, COPYING[copies])
    on_device = "wrong numbers" if copies.startswith("no direction") else MISTAKEN
    assert result.notes == [tried(on_device, "right numbers", "host")]
    assert (result.memory, result.points.earned) == ("host", 12), result.correctness.cases


@pytest.mark.parametrize("copies", ON_THE_DEVICE)
def test_a_launcher_that_copies_other_things_is_given_device_pointers(copies: str, tmp_path: Path) -> None:
    result = graded(tmp_path, ON_THE_DEVICE[copies])
    assert result.notes == []
    assert (result.memory, result.points.earned) == ("device", 12), result.correctness.cases


@pytest.mark.parametrize("edit", [WRONG, UNENDING], ids=["wrong", "unending"])
@pytest.mark.parametrize("taken", ["device", "host"])
def test_a_wrong_launcher_is_given_the_pointers_that_it_uses_as_such(
    edit: tuple[str, str], taken: str, tmp_path: Path
) -> None:
    code = (COPYING["a class"] if taken == "host" else ON_THE_DEVICE["no copy"]).replace(*edit)
    result = graded(tmp_path, code)
    ended = "no numbers" if edit is UNENDING else "wrong numbers"
    assert result.notes == ([tried(MISTAKEN, ended, taken)] if taken == "host" else [])
    assert result.memory == taken
    assert result.verdict is Verdict.FAIL


def test_what_tells_nothing_apart_is_given_device_pointers(tmp_path: Path) -> None:
    result = graded(tmp_path, KERNEL + LAUNCHER + "}\n")
    assert result.notes == [tried("wrong numbers", "wrong numbers", "device")]
    assert result.correctness.summary == NOTHING_WRITTEN.cause


def test_a_launcher_that_refuses_the_smallest_sizes_shows_its_pointers_in_larger_ones(tmp_path: Path) -> None:
    code = COPYING["a class"].replace("  const int rows", "  if (to_len < 100) return;\n  const int rows")
    result = graded(tmp_path, code)
    assert result.notes == [tried(MISTAKEN, "right numbers", "host")]
    assert 0 < result.points.earned < 12


def test_a_launcher_without_a_stream_is_given_host_pointers_or_refused(tmp_path: Path) -> None:
    def streamless(code: str) -> str:
        without = code.replace(", cudaStream_t stream)", ")")
        return without.replace("  const int rows", "  cudaStream_t stream = 0;\n  const int rows")

    result = graded(tmp_path, streamless(COPYING["a class"]))
    assert result.notes == [
        "launch_attn_softmax was tried with host pointers (right numbers): it is given host pointers",
        "launch_attn_softmax takes no stream: it is called without",
    ]
    assert result.points.earned == 12
    result = graded(tmp_path, streamless(ON_THE_DEVICE["no copy"]))
    assert result.points.earned == 0
    assert "takes no stream: work must go to the stream that it is given" in (result.message or "")


def test_pointers_that_the_user_asks_for_are_not_tried(tmp_path: Path) -> None:
    for memory, code in (("device", COPYING["a class"]), ("host", ON_THE_DEVICE["no copy"])):
        result = graded(tmp_path, code, memory)
        assert (result.memory, result.notes, result.points.earned) == (memory, [], 0)


def host_variants(*problems: str) -> str:
    """The variants with host pointers of ``problems`` in one file."""
    texts = [(VARIANTS / problem / "host.cu").read_text() for problem in problems]
    spaces = "".join(f"namespace of_{place} {{\n{text}\n}}\n" for place, text in enumerate(texts))
    return "#include <cuda_runtime.h>\n" + spaces


@pytest.mark.parametrize("memory", ["device", "host"])
def test_a_model_passes_the_pointers_that_its_launchers_take(memory: str, tmp_path: Path) -> None:
    folder = tmp_path / "hw3"
    shutil.copytree(REFERENCE, folder)
    softmax = (REFERENCE / "softmax_kernel.cu").read_text()
    if memory == "host":
        (folder / "layernorm_kernel.cu").write_text(host_variants("layernorm_forward", "layernorm_backward"))
        softmax = host_variants("softmax_forward", "softmax_backward")
    result = graded(folder, softmax, problem=MODEL)
    assert (result.memory, result.points.earned) == (memory, 12), result.correctness.cases
