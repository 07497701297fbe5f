"""Functions are found in whatever a student writes around them, and never half."""

from __future__ import annotations

import subprocess
import sys
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
        Parameter("float*", "y", const=True),
        Parameter("int", "n"),
    )
    assert found["launch"].parameters == (
        Parameter("float*", "inp", const=True),
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


@pytest.mark.parametrize(
    ("code", "name", "parameters"),
    [
        ("void f(unsigned int, const float *) {}", "f", [("unsigned int", ""), ("float*", "")]),
        ("void f(bool b = 1 < 2, int n = 3) {}", "f", [("bool", "b"), ("int", "n")]),
        ("void f(int n /* rows, ( */, // and ) {\n float *x) {}", "f", [("int", "n"), ("float*", "x")]),
        ("void f(float* __restrict__ const x, size_t) {}", "f", [("float*", "x"), ("size_t", "")]),
        ("void f(const float x[4][8], int (*g)(int), ...) {}", "f", [
            ("float**", "x"), ("int(*)(int)", "g"), ("...", "")
        ]),
        ("void f(std::array<float const, (2 > 1)> &a, long long n) {}", "f", [
            ("std::array<float,(2>1)>&", "a"), ("long long", "n")
        ]),
        ("void f(float* RESTRICT x, float* RESTRICT y) {}", "f", [("float*", "x"), ("float*", "y")]),
        ("template <class... T> void f([[maybe_unused]] float (&x)[4], T&&... all) {}", "f", [
            ("float(&)*", "x"), ("T&&...", "all")
        ]),
        ("void f(struct Pair p) __attribute__((noinline)) {}", "f", [("Pair", "p")]),
        ("void f(int n) noexcept(true) {}", "f", [("int", "n")]),
        ("auto f(int n) -> decltype(n + 1) { return n; }", "f", [("int", "n")]),
        ("std::enable_if_t<(4 >= 3), float> *f(int n) { return 0; }", "f", [("int", "n")]),
        ("void f(int n) try {} catch (...) {}", "f", [("int", "n")]),
        ("void (*f(int n))(float) { return 0; }", "f", [("int", "n")]),
        ("__launch_bounds__(256, 2) __global__ void f(int n) {}", "f", [("int", "n")]),
        ("[[nodiscard]] EXPORT void f(int n) {}", "f", [("int", "n")]),
        ("KERNEL(f)(int n) {}", "f", [("int", "n")]),
        ("void a::b::f<int>(int n) {}", "f", [("int", "n")]),
        ("void größe(int größer) {}", "größe", [("int", "größer")]),
    ],
)  # fmt: skip
def test_the_head_of_a_function(code: str, name: str, parameters: list[tuple[str, str]]) -> None:
    (found,) = functions(code)
    assert (found.name, [(one.type, one.name) for one in found.parameters]) == (name, parameters)
    assert (found.begin, found.end) == (0, len(code))


@pytest.mark.parametrize(
    ("parameter", "const"),
    [
        ("const float* x", True),
        ("float const* __restrict__ x", True),
        ("const float* RESTRICT x", True),
        ("const float x[4]", True),
        ("const float* const", True),
        ("float* x", False),
        ("float* const x", False),
        ("volatile float* x", False),
    ],
)
def test_what_a_pointer_points_to_is_const_or_not(parameter: str, const: bool) -> None:
    (found,) = functions(f"void f({parameter}) {{}}")
    assert found.parameters[0].const is const


@pytest.mark.parametrize(
    "code",
    [
        "void f() { int n = 1'000; char c = '}'; }",
        'void f() { puts(u8R"x(} )" {)x"); }',
        'void f() { /* } " */ puts("{ /*"); }  // it\'s }',
        "#if 0\nthis isn't } code\n#endif\nvoid f() {}",
        "#if (0)\nvoid never() {\n#else\nvoid f() {\n#endif\n}",
        "#if A\nvoid f() {\n#elif B\nvoid never() {\n#else\nvoid never() {\n#endif\n}",
        "#if 0\nvoid never() {\n#elif B\nvoid f() {\n#else\nvoid never() {\n#endif\n}",
        "#define BEGIN { \\\n  {\n#endif /* of\n  { */\nvoid f() {}",
        "void f() {\n#pragma unroll\nfor (;;)\n#ifdef A\n{ a(); }\n#else\n{ b(); }\n#endif\n}",
        "void f(int n,\n#if A\n  int m) {\n#else\n  float m) {\n#endif\n}",
        "struct S { void never(); S() {} }; void f() { S s{}; }",
        "void never(); void f() {} void never(int) = delete;",
        "auto never = [] __device__ (int n) { return n; }; void f() {}",
    ],
)
def test_what_looks_like_a_brace_or_a_function_is_none(code: str) -> None:
    assert [one.name for one in functions(code)] == ["f"]


def test_what_makes_cuda_of_cpp_is_read() -> None:
    code = """\
    template <int N> requires(N > 0) __global__ void __launch_bounds__(256, 2) __cluster_dims__(2, 1, 1)
    ker(const __grid_constant__ Sizes sizes, float* x) {
      extern __shared__ __align__(16) float s[];
      auto block = cg::this_thread_block();
      auto tile = cg::tiled_partition<32>(block);
      auto f = [=] __device__(int i) mutable { return s[i] + tile.shfl_xor(x[i], 1); };
      asm volatile("{ mov.u32 %0, %%laneid; }" : "=r"(lane) :: "memory");
    }
    extern "C" { __host__ __device__ __forceinline__ int half(int n) { return n >> 1; } }
    extern "C" void launch(float* x, cudaStream_t stream) {
      ker<half(64)><<<dim3(1, 2), (n + 31) / 32, sizeof(float) * 32, stream>>>({1, 2}, x);
      for (int i = 0; i < 4; ++i) ker<1><<<1, 1>>>({}, x);
    }
    """
    found = by_name(code)
    assert list(found) == ["ker", "half", "launch"]
    assert found["ker"].parameters == (Parameter("Sizes", "sizes", const=True), Parameter("float*", "x"))
    assert {"ker", "half", "stream", "x"} <= found["launch"].words
    assert code[found["launch"].begin :].startswith('extern "C" void launch')


@pytest.mark.parametrize(
    "wrong",
    [
        "int n = ;",
        "foo(1, ;",
        "x[0 = 1;",
        "return n n;",
        "if (n { }",
        "ker<<<1, 2>>(x);",
        "$ @ int;",
        "else {}",
        'puts("a);',
        "c = 'ab;",
    ],
)
def test_an_error_costs_no_function(wrong: str) -> None:
    code = f"void one(int n) {{}}\nvoid two(int n) {{\n  {wrong}\n}}\nvoid three(int n) {{}}\n"
    assert [(one.name, one.first, one.last) for one in functions(code)] == [
        ("one", 1, 1),
        ("two", 2, 4),
        ("three", 5, 5),
    ]


MANY = 1 << 20
HOSTILE = {
    "parentheses": "(" * MANY,
    "braces": "void f() " + "{" * (MANY // 2) + "}" * (MANY // 2),
    "all brackets": "({[" * (MANY // 3),
    "namespaces": "namespace a {" * (MANY // 14) + "}" * (MANY // 14),
    "templates": "template <" * (MANY // 10),
    "declarators": "void " + "(" * (MANY // 2) + "f" + ")" * (MANY // 2) + "() {}",
    "parameters": "void f(int " + "(" * (MANY // 2) + "n" + ")" * (MANY // 2) + ") {}",
    "comparisons": "a<" * (MANY // 2),
    "conditions": "#if 1\n" * (MANY // 14) + "#endif\n" * (MANY // 14),
    "functions": "void f(){}\n" * (MANY // 11),
    "launches": "co_await >>> <<< else " * (MANY // 22),
    "comments": "\n /* void " * (MANY // 10),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_source_holds_the_reader_up(kind: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HOSTILE[kind])
    program = (
        "import resource, sys; from pathlib import Path; from grader.languages.cuda.source import functions;"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); functions(Path(sys.argv[1]).read_text())"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "k.cu"], check=True, timeout=120, cwd=ROOT)
