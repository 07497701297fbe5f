"""A right and a wrong answer to a problem of each form, in each language of functions on tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from importers import challenges, models, originals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

CUDA = """
LINKAGE__global__ void combine(TYPE* out, const TYPE* a, const TYPE* b, long n) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < n) out[at] = IN_CPP;
}
"""
OF_C = 'extern "C" '
LANGUAGES: Mapping[str, str] = {
    "triton": """
import torch
import triton
import triton.language as tl


@triton.jit
def combine(out, first, second, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < n
    a, b = tl.load(first + at, mask=inside), tl.load(second + at, mask=inside)
    tl.store(out + at, IN_TRITON, mask=inside)


def launched(out, first, second):
    n = out.numel()
    combine[(triton.cdiv(n, 256),)](out, first, second, n, size=256)
""",
    "load_inline": f'''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <cuda_fp16.h>
{CUDA}
void launch(torch::Tensor out, torch::Tensor first, torch::Tensor second) {{
  const long n = out.numel();
  combine<<<(n + 255) / 256, 256>>>(
      static_cast<TYPE*>(out.data_ptr()), static_cast<const TYPE*>(first.data_ptr()),
      static_cast<const TYPE*>(second.data_ptr()), n);
}}
"""
DECLARED = "void launch(torch::Tensor out, torch::Tensor first, torch::Tensor second);"
kernels = load_inline(name="combine", cpp_sources=DECLARED, cuda_sources=CUDA, functions=["launch"])


def launched(out, first, second):
    kernels.launch(out, first, second)
''',
    "cupy": f'''
import cupy as cp
import torch

CUDA = r"""
#include <cuda_fp16.h>
{CUDA.replace("LINKAGE", OF_C)}
"""
kernel = cp.RawKernel(CUDA, "combine")


def launched(out, first, second):
    n = out.numel()
    arrays = [cp.asarray(tensor) for tensor in (out, first, second)]
    kernel(((n + 255) // 256,), (256,), (*arrays, n))
''',
    "nvrtc": f'''
import numpy as np
import torch
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CUDA = r"""
#include <cuda_fp16.h>
{CUDA.replace("LINKAGE", OF_C)}
"""
device = Device()
device.set_current()
program = Program(CUDA, "c++", ProgramOptions(std="c++17", arch=f"sm_{{device.arch}}"))
kernel = program.compile("cubin").get_kernel("combine")


def launched(out, first, second):
    n = out.numel()
    config = LaunchConfig(grid=(n + 255) // 256, block=256)
    addresses = [tensor.data_ptr() for tensor in (out, first, second)]
    launch(device.default_stream, config, kernel, *addresses, np.int64(n))
''',
}
"""A function ``launched(out, first, second)``, which launches a kernel over all elements, by language."""


@dataclass(frozen=True)
class Asked:
    """A problem of a form that asks for something of each pair of elements.

    Attributes:
        id: of the imported problem.
        original: the name of what it is imported from.
        write: writes that into a folder.
        dtype: of C++.
        in_cpp: the element of the result from ``a`` and ``b``, in C++.
        in_triton: likewise.
        function: of the answer, which calls ``launched``.
    """

    id: str
    original: str
    write: Callable[[Path, str], Path]
    dtype: str
    in_cpp: str
    in_triton: str
    function: str


FORMS: Mapping[str, Asked] = {
    "GPU MODE": Asked(
        "vector_sum",
        "vector_sum",
        originals.write,
        "__half",
        "__hadd(a[at], b[at])",
        "a + b",
        """

def custom_kernel(data):
    left, right, total = data
    launched(total, left, right)
    return total
""",
    ),
    "LeetGPU": Asked(
        "scaled_sum",
        "1_scaled_sum",
        challenges.write,
        "float",
        "a[at] + 2.0f * b[at]",
        "a + 2.0 * b",
        """

def solve(left, right, total, N):
    launched(total, left, right)
""",
    ),
    "KernelBench": Asked(
        "gated",
        "1_gated",
        models.write,
        "float",
        "a[at] / (1.0f + expf(-b[at]))",
        "a * tl.sigmoid(b)",
        """

class ModelNew(torch.nn.Module):
    def forward(self, x, gate):
        out = torch.empty_like(x)
        launched(out, x, gate)
        return out
""",
    ),
}


def right(form: str, language: str) -> str:
    """The text of a right answer to the problem of a form."""
    asked = FORMS[form]
    text = LANGUAGES[language] + asked.function
    replaced = {
        "LINKAGE": "",
        "TYPE": asked.dtype,
        "IN_CPP": asked.in_cpp,
        "IN_TRITON": asked.in_triton,
    }
    for word, meaning in replaced.items():
        text = text.replace(word, meaning)
    return text


def wrong(form: str, language: str) -> str:
    """The same with a kernel that leaves the last element out."""
    text = right(form, language)
    assert text.count("at < n") == 1
    return text.replace("at < n", "at < n - 1")
