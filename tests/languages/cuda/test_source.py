"""Functions are found in whatever a student writes around them, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest
from first_assignment import VARIANTS

from grader.languages.cuda.source import Function, Parameter, functions, without

ROOT = Path(__file__).parents[3]

CODE = """\
#include <cstdio> // } a brace that is none
#define LAUNCH(name) \\
  void name() {
namespace cg = cooperative_groups;
static const int sizes[] = {1, 2, 3};
struct Pair { float a; float sum() const { return a; } };
enum class Way { UP, DOWN };
auto add = [](float a, float b) { return a + b; };
/* void gone() { */

template <int N = 4, class T = std::vector<int>>
__global__ void __launch_bounds__(128) ker_one(float *__restrict__ x, const float* y = nullptr,
                                               int n) {
  printf("}{ %s", "\\"}");
  if (n > 0) { x[0] = '}'; }
}

#if 0
void never() {
#else
void chosen() {
#endif
}

extern "C" {
namespace inner {
void launch(const float inp[], unsigned int n, bool, cudaStream_t s) { ker_one<2><<<1, n, 0, s>>>(inp, n); }
}
}
template <> __global__ void ker_one<8>(float* x, int n) {}
__device__ inline float4 operator+(float4 a, float4 b) noexcept { return a; }
"""


def by_name(code: str) -> dict[str, Function]:
    return {function.name: function for function in functions(code)}


def test_finds_functions_among_everything_else() -> None:
    found = functions(CODE)
    assert [(one.name, one.first, one.last) for one in found] == [
        ("ker_one", 11, 16),
        ("chosen", 21, 23),
        ("launch", 27, 27),
        ("ker_one", 30, 30),
        ("operator+", 31, 31),
    ]


def test_parameters_without_what_changes_nothing() -> None:
    found = by_name(CODE)
    assert functions(CODE)[0].parameters == (
        Parameter("float*", "x"),
        Parameter("float*", "y"),
        Parameter("int", "n"),
    )
    assert found["launch"].parameters == (
        Parameter("float*", "inp"),
        Parameter("unsigned int", "n"),
        Parameter("bool", ""),
        Parameter("cudaStream_t", "s"),
    )
    assert found["chosen"].parameters == ()
    assert by_name("void f(void) {}")["f"].parameters == ()


def test_words_are_those_of_the_code_alone() -> None:
    assert "ker_one" in by_name(CODE)["launch"].words
    assert "never" not in {word for function in functions(CODE) for word in function.words}


def test_leaving_out_keeps_lines_and_directives() -> None:
    code = "int a;\nvoid f() {\n#if X\n  1;\n}\n#endif\nvoid g() {}\n"
    left = without(code, [by_name(code)["f"]])
    lines = [line.rstrip() for line in left.split("\n")]
    assert lines == ["int a;", "", "#if X", "", "", "#endif", "void g() {}", ""]


def test_leaving_out_takes_no_brace_of_others_on_the_same_lines() -> None:
    code = 'namespace a { extern "C" { void f() {\n  1;\n}} void g() {}}\n'
    left = without(code, [by_name(code)["f"]])
    assert "".join(left.split()) == 'namespacea{extern"C"{}voidg(){}}'
    assert [one.name for one in functions(left)] == ["g"]


@pytest.mark.parametrize("code", ["void f() {", "void f() { } }", "namespace a { void f() {}", "", "int x;"])
def test_braces_that_do_not_match_give_nothing(code: str) -> None:
    assert functions(code) == ()


def test_the_launchers_of_every_kernel_of_ours_are_found() -> None:
    for path in (*(ROOT / "reference").glob("*.cu"), *VARIANTS.rglob("*.cu")):
        assert any(name.startswith("launch_") for name in by_name(path.read_text())), path
