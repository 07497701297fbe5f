"""A right and a wrong answer to each problem of each form, in each language of functions on tensors.

An answer launches its kernel over ``n`` elements, by a function ``launched`` that takes the arguments of the
kernel. What that does for the element ``at`` stands in the tables beside this module, in C++ and in Triton.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING

from importers import (
    answered_challenges,
    answered_models,
    answered_originals,
    challenges,
    models,
    originals,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from importers.asked import Asked

IN_CPP = """
LINKAGE__global__ void answer(PARAMETERS) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < n) {
BODY
  }
}
"""
OF_C = 'extern "C" '
LANGUAGES: Mapping[str, str] = {
    "triton": """
import torch
import triton
import triton.language as tl


@triton.jit
def answer(NAMES, size: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < n
BODY


def launched(NAMES):
    answer[(triton.cdiv(n, 256),)](NAMES, size=256)
""",
    "load_inline": f'''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <cuda_fp16.h>
{IN_CPP}
void launch(DECLARED) {{
  answer<<<(n + 255) / 256, 256>>>(PASSED);
}}
"""
kernels = load_inline(
    name="answer", cpp_sources="void launch(DECLARED);", cuda_sources=CUDA, functions=["launch"]
)


def launched(NAMES):
    kernels.launch(NAMES)
''',
    "cupy": f'''
import cupy as cp
import torch

CUDA = r"""
#include <cuda_fp16.h>
{IN_CPP.replace("LINKAGE", OF_C)}
"""
kernel = cp.RawKernel(CUDA, "answer")


def launched(NAMES):
    kernel(((n + 255) // 256,), (256,), (PASSED,))
''',
    "nvrtc": f'''
import numpy as np
import torch
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CUDA = r"""
#include <cuda_fp16.h>
{IN_CPP.replace("LINKAGE", OF_C)}
"""
device = Device()
device.set_current()
program = Program(CUDA, "c++", ProgramOptions(std="c++17", arch=f"sm_{{device.arch}}"))
kernel = program.compile("cubin").get_kernel("answer")


def launched(NAMES):
    config = LaunchConfig(grid=(n + 255) // 256, block=256)
    launch(device.default_stream, config, kernel, PASSED)
''',
}
PASSED: Mapping[str, tuple[str, str, str]] = {
    "load_inline": ("static_cast<TYPE>(NAME.data_ptr())", "NAME", "NAME"),
    "cupy": ("cp.asarray(NAME)", "NAME", "cp.float32(NAME)"),
    "nvrtc": ("NAME.data_ptr()", "np.int64(NAME)", "np.float32(NAME)"),
}
"""How a language passes a tensor, a whole number and a fraction to a kernel."""
DECLARED = ("torch::Tensor NAME", "int64_t NAME", "double NAME")


@dataclass(frozen=True)
class Form:
    """A form of problems.

    Attributes:
        write: writes what a problem is imported from into a folder, by its name.
        problems: what answers to its problems do.
    """

    write: Callable[[Path, str], Path]
    problems: tuple[Asked, ...]


FORMS: Mapping[str, Form] = {
    "GPU MODE": Form(originals.write, answered_originals.PROBLEMS),
    "LeetGPU": Form(challenges.write, answered_challenges.PROBLEMS),
    "KernelBench": Form(models.write, answered_models.PROBLEMS),
}


def right(asked: Asked, language: str) -> str:
    """The text of a right answer."""
    written = LANGUAGES[language] + asked.function
    typed = [parameter.rsplit(" ", 1) for parameter in asked.parameters.split(", ")]
    kinds = [0 if dtype.endswith("*") else 1 if dtype == "long" else 2 for dtype, _ in typed]
    body = asked.in_triton if language == "triton" else asked.in_cpp
    replaced = {
        "LINKAGE": "",
        "PARAMETERS": asked.parameters,
        "NAMES": ", ".join(name for _, name in typed),
        "BODY": indent(body.strip("\n"), "    "),
        "DECLARED": ", ".join(
            DECLARED[kind].replace("NAME", name) for kind, (_, name) in zip(kinds, typed, strict=True)
        ),
    }
    if language in PASSED:
        replaced["PASSED"] = ", ".join(
            PASSED[language][kind].replace("TYPE", dtype).replace("NAME", name)
            for kind, (dtype, name) in zip(kinds, typed, strict=True)
        )
    for word, meaning in replaced.items():
        written = written.replace(word, meaning)
    return written


def wrong(asked: Asked, language: str) -> str:
    """The same with a kernel that leaves the last element out."""
    answer = right(asked, language)
    assert answer.count("at < n") == 1
    return answer.replace("at < n", "at < n - 1")


def text(asked: Asked, language: str, kind: str) -> str:
    """The text of a ``right`` or a ``wrong`` answer."""
    return {"right": right, "wrong": wrong}[kind](asked, language)
