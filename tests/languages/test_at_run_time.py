"""The kernels that a Python file compiles by CuPy or NVRTC, read and not run, and what else it may use."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from grader.languages.at_run_time.language import WAYS
from grader.languages.inline.constants import SourceError
from grader.languages.policy import review
from grader.runner.inlined import flags_of_program, key_of_kernels

if TYPE_CHECKING:
    from grader.languages.at_run_time.kernels import Kernels

CUPY = "import cupy as cp\n"
NVRTC = "from cuda.core import Device, Program, ProgramOptions\n"


def read(language: str, text: str) -> tuple[Kernels, ...]:
    return WAYS[language].kernels(ast.parse(text), text.encode())


def test_a_text_has_its_lines_and_its_options() -> None:
    text = CUPY + "CODE = r'''\na\nb'''\nkernel = cp.RawKernel(CODE, 'a', ('-DN=1', '--use_fast_math'))"
    (kernels,) = read("cupy", text)
    assert (kernels.text.content, kernels.text.lines) == ("\na\nb", (2, 3, 4))
    assert kernels.cuda_flags == ("-DN=1", "--use_fast_math")
    assert kernels.key == key_of_kernels("\na\nb", ["-DN=1", "--use_fast_math"])


def test_a_text_that_is_compiled_twice_is_built_once_with_all_instances() -> None:
    calls = [f"cp.RawModule(code='f', name_expressions=['f<{number}>'])" for number in (1, 2)]
    (kernels,) = read("cupy", CUPY + "\n".join(calls))
    assert kernels.expressions == ("f<1>", "f<2>")


def test_a_program_has_the_instances_of_its_own_templates() -> None:
    programs = "first = Program('f', 'c++')\nsecond = Program(b'g g2', 'c++')\n"
    compiled = "first.compile('ptx', name_expressions=('f<1>',))\nsecond.compile('ptx', ['ns::g<f>'])"
    first, second = read("nvrtc", NVRTC + programs + compiled)
    assert (first.expressions, second.expressions) == (("f<1>",), ("ns::g<f>",))


OPTIONS = {
    "define_macro='N'": {"define_macro": "N"},
    "define_macro=('N', 4)": {"define_macro": ("N", 4)},
    "define_macro=['N', ('M', '4')]": {"define_macro": ["N", ("M", "4")]},
    "use_fast_math=True, fmad=False": {"use_fast_math": True, "fmad": False},
    "arch=f'sm_{Device().arch}', std='c++17'": {},
}


@pytest.mark.parametrize("written", OPTIONS)
def test_options_mean_the_same_read_and_run(written: str) -> None:
    (kernels,) = read("nvrtc", NVRTC + f"options = ProgramOptions({written})\nProgram('a', 'c++', options)")
    assert kernels.key == key_of_kernels("a", flags_of_program(OPTIONS[written]))


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("cupy", "cp.RawKernel(text(), 'a')", "gets code from text(), which is known only"),
        ("cupy", "cp.RawModule(path='a.cubin')", "gets no code"),
        ("cupy", "cp.RawKernel(1, 'a')", "gets 1 as code, which is no text"),
        ("cupy", "cp.RawKernel(*parts)", "gets arguments by * or **"),
        ("nvrtc", "Program('a', 'c++', options())", "write ProgramOptions(...) there"),
        ("nvrtc", "Program('a', 'c++').compile('ptx', names())", "compile gets name_expressions from"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(language: str, text: str, words: str) -> None:
    with pytest.raises(
        SourceError, match=words.replace("(", r"\(").replace(")", r"\)").replace("*", r"\*")
    ) as error:
        read(language, "\n\n" + text)
    assert error.value.line == 3


REACHING = {
    "copy memory by CuPy": ("cupy", "cp.cuda.runtime.memcpy(1, 2, 3, 4)"),
    "make memory of an address": ("cupy", "cp.cuda.UnownedMemory(1, 2, None)"),
    "free memory": ("cupy", "cp.get_default_memory_pool().free_all_blocks()"),
    "compute by CuPy": ("cupy", "cp.matmul(cp.asarray(1), cp.asarray(2))"),
    "compute by CuPy's BLAS": ("cupy", "from cupy import cublas"),
    "read a file by CuPy": ("cupy", "cp.load('a.npy')"),
    "another module of CuPy": ("cupy", "import cupyx.jit"),
    "look into a kernel": ("cupy", "cp.RawKernel('a', 'a')._kernel"),
    "replace CuPy's kernels": ("cupy", "cp.RawKernel = print"),
    "pass CuPy on": ("cupy", "print(cp)"),
    "capture a graph by CuPy": ("cupy", "cp.cuda.Stream().begin_capture()"),
    "call the driver": ("nvrtc", "from cuda.bindings import driver"),
    "call the runtime": ("nvrtc", "from cuda import cudart"),
    "load machine code": ("nvrtc", "from cuda.core import ObjectCode\nObjectCode.from_cubin(b'')"),
    "link machine code": ("nvrtc", "from cuda.core import Linker"),
    "look into a program": ("nvrtc", "Program('a', 'c++')._libraries"),
    "allocate in another pool": ("nvrtc", "from cuda.core import DeviceMemoryResource"),
    "call a function of the host": ("nvrtc", "import ctypes\nctypes.CDLL(None)"),
}


@pytest.mark.parametrize("reach", REACHING)
def test_what_a_file_reaches_for_is_refused(reach: str) -> None:
    language, text = REACHING[reach]
    way = WAYS[language]
    start = CUPY if language == "cupy" else NVRTC
    outcome = review(ast.parse(start + text), "answer.py", way.modules, way.attributes)
    assert outcome.reasons, text
