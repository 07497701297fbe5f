"""Versions of a kernel that are built together, and what their PTX tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from first_assignment import KERNELS

from grader.assignments.rules import WorkLimits
from grader.languages.cache import Cache
from grader.problems.problem import several_types
from grader.run.bench import find_machine
from grader.soundness.builds import Builder, Version, together
from grader.soundness.ptx import code

HEADER = "#ifndef SIZE_H\n#define SIZE_H\n#include <cstdint>\nconstexpr int SIZE = 4;\n#endif\n"
KERNEL = """#include "size.h"

__global__ void one(float* x) { if (x[0] < SIZE) x[1] = 2; }
__global__ void other(float* x) {
  x[2] = 3;
}
extern "C" void launch(float* x) { one<<<1, 1>>>(x), other<<<1, 1>>>(x); }
"""


PROBLEM = replace(KERNELS["softmax_forward"], file="kernel.cu", entry_point="launch")


@pytest.fixture(scope="module")
def builder() -> Builder:
    return Builder(find_machine("sim", "process", WorkLimits()), Cache())


def files(kernel: str = KERNEL, header: str = HEADER) -> dict[str, str]:
    return {"kernel.cu": kernel, "size.h": header}


def test_a_version_that_does_not_compile_costs_the_others_nothing(builder: Builder) -> None:
    wrong = files(KERNEL.replace("x[1] = 2", "x[1] = two"))
    changed = files(KERNEL.replace("x[1] = 2", "x[1] = 7"))
    moved = files(
        "// A line more.\n" + KERNEL.replace("float* x) {\n", "float* value) {\n").replace("x[2]", "value[2]")
    )
    first, failed, second, third = builder.versions(PROBLEM, [files(), wrong, changed, moved])
    assert failed.library is None
    assert "two" in failed.log
    codes = [code(one.library, one.number) for one in (first, second, third) if one.library is not None]
    original, edited, renamed = codes
    assert original.differing(renamed) == frozenset()
    (differing,) = original.differing(edited)
    assert "one" in differing
    assert {line for file, line in original.lines if file == "kernel.cu"} >= {3, 5}


def test_an_error_that_names_no_version_is_found_by_trying_each(builder: Builder) -> None:
    undefined = files(
        KERNEL.replace("extern", "void nowhere();\nextern").replace("one<<<", "nowhere(), one<<<")
    )
    good, bad = builder.versions(PROBLEM, [files(), undefined])
    assert good.library is not None
    assert bad.library is None
    assert "nowhere" in bad.log


def test_launchers_for_several_types_each_get_the_number_of_their_version() -> None:
    typed = several_types(PROBLEM, ("float32", "float16"))
    assert typed.entry_points == ("launch_float32", "launch_float16")
    answering = Version(None, 3).answering(typed)
    assert answering.entry_points == ("launch_float32_3", "launch_float16_3")
    main = dict(together({3: files()}, "kernel.cu", typed.entry_points))["versions.cu"]
    assert "#define launch_float16 launch_float16_3\n" in main


def test_each_version_has_its_own_headers_and_those_of_the_system_come_first() -> None:
    texts = dict(together({0: files(), 1: files()}, "kernel.cu", ("launch",)))
    main = texts["versions.cu"].splitlines()
    assert main.index("#include <cstdint>") < main.index("namespace version_0 {")
    assert "#define SIZE_H_1\n" in texts["version_1/size.h"]
