"""What does not compile costs the functions that need it, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.cuda.exports import functions
from grader.languages.cuda.partial import build_partly
from grader.languages.cuda.toolchain import find
from grader.languages.jobs import compile_limits
from grader.languages.language import Build
from grader.sandbox.backends import select

CODE = """\
#include "mine.h"
__device__ float helper(float);
template <int N> __global__ void ker_fw(float* x) {
  x[0] = l_max * N;
}
namespace a { namespace b {
template <int N> __global__ void ker_large(float* x) { __shared__ float b[N]; b[threadIdx.x] = 1; *x = b[5]; }
template <int N> __global__ void ker_bw(float* x) { x[0] = N; }
float nowhere(int);
float caller() { return nowhere(1); }
extern "C" void launch_fw(float* x) { ker_fw<32><<<1, 1>>>(x); }
extern "C" { void launch_large(float* x) { ker_large<100000><<<1, 1>>>(x); }}
extern "C" { void launch_caller(float* x) { x[0] = caller(); }}
extern "C" void launch_bw(float* x) { ker_bw<32><<<1, 1>>>(x); }
}}
"""


def failed(log: str, source: str = "k.cu") -> Build:
    return Build(source, ok=False, artefact=None, seconds=1, cached=False, command="", log=log, resources=())


def never(_: object) -> Build:
    raise AssertionError("nothing is left to compile")


def test_errors_of_compiler_assembler_and_linker_cost_only_what_needs_them(tmp_path: Path) -> None:
    toolchain, sandbox, cache = find(), select("auto"), Cache(tmp_path)
    seen: list[Build] = []

    def compiled(contents: object) -> Build:
        seen.append(build("k.cu", contents, toolchain, sandbox, compile_limits(), cache))  # type: ignore[arg-type]
        return seen[-1]

    contents = {"k.cu": CODE.encode(), "mine.h": b""}
    partial = build_partly(compiled(contents), contents, ("launch_fw", "launch_bw"), compiled)
    assert partial is not None
    assert [one.name for one in partial.left_out] == [
        *("ker_fw", "ker_large", "caller", "launch_fw", "launch_large", "launch_caller")
    ]
    assert partial.lacks("launch_fw")
    assert not partial.lacks("launch_bw")
    assert "ker_fw (lines 3 to 5)" in partial.note
    assert partial.build.artefact is not None
    assert {name for name in functions(partial.build.artefact) if name.startswith("launch")} == {"launch_bw"}
    assert len(seen) == 4


@pytest.mark.parametrize(
    "log",
    [
        'mine.h(3): error: identifier "x" is undefined',
        'k.cu(2): error: identifier "float_t" is undefined',
        'k.cu(4): error: identifier "l_max" is undefined\nmine.h(3): error: expected a ";"',
        "Compiling was stopped: more than 180 s of processor time.",
        "k.cu(14): error: x\nk.cu(11): error: y",
    ],
)
def test_nothing_is_left_where_an_error_is_in_no_function_or_in_all(log: str) -> None:
    contents = {"k.cu": CODE.encode(), "mine.h": b""}
    assert build_partly(failed(log), contents, ("launch_fw", "launch_bw"), never) is None


def test_nothing_is_left_where_braces_do_not_match() -> None:
    contents = {"k.cu": CODE.encode() + b"void open() {\n"}
    assert build_partly(failed("k.cu(4): error: x"), contents, ("launch_bw",), never) is None


def test_an_error_in_a_header_is_that_of_the_function_that_instantiates_it() -> None:
    log = (
        "/usr/include/cub/block.cuh(70): error: static assertion failed\n"
        "          detected during:\n"
        '            instantiation of class "cub::BlockLoad<T, N>" at line 12\n'
        '            instantiation of "void ker_fw<N>(float *) [with N=32]" at line 4 of k.cu\n'
    )
    contents = {"k.cu": CODE.encode(), "mine.h": b""}
    sent: list[bytes] = []

    def compiled(changed: dict[str, bytes]) -> Build:
        sent.append(changed["k.cu"])
        return Build("k.cu", True, Path("l.so"), 1, False, "", "", ())

    partial = build_partly(failed(log), contents, ("launch_bw",), compiled)  # type: ignore[arg-type]
    assert partial is not None
    assert [one.name for one in partial.left_out] == ["ker_fw", "launch_fw"]
    assert [line.rstrip() for line in sent[0].decode().splitlines()[2:6]] == [
        "",
        "",
        "",
        CODE.splitlines()[5],
    ]
