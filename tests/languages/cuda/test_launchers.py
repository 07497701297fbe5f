"""Launchers of every kind are called as they are, or told what they should take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from first_assignment import KERNELS

from grader.devices.device import Memory
from grader.languages.cuda.launchers import launcher
from grader.languages.language import LauncherError
from grader.problems.contents import integers, real
from grader.problems.formula import Range, problem
from grader.problems.problem import ANY_TYPE, ScalarParameter, several_types

if TYPE_CHECKING:
    from grader.languages.cuda.launchers import Launcher
    from grader.problems.problem import Problem

BACKWARD = KERNELS["layernorm_backward"]
FORWARD = KERNELS["layernorm_forward"]
SOFTMAX = KERNELS["softmax_forward"]
NAMES = [parameter.name for parameter in BACKWARD.parameters]
FLOATS = "float* gg, float* bg, float* ig, const float* og, const float* x, const float* g"


def of(problem: Problem, code: str, memory: Memory = Memory.DEVICE) -> Launcher:
    return launcher(problem, {problem.file: code.encode(), "h.h": b"void other() {}"}, memory)


def names(problem: Problem, code: str) -> list[str]:
    return [parameter.name for parameter in of(problem, code).problem.parameters]


def test_the_assignment_s_own_signature_needs_no_word() -> None:
    code = (
        f'extern "C" void launch_layernorm_bw({FLOATS}, const float*, const float* v, const '
        f"float* m, int b, int h, cudaStream_t s, cudaStream_t) {{}}"
    )
    found = of(BACKWARD, code)
    assert found.problem == BACKWARD
    assert found.notes == ()
    assert found.memory is Memory.DEVICE


def test_without_betta() -> None:
    code = (
        f"void launch_layernorm_bw({FLOATS}, const float* v, const float* m, int b, int h, "
        f"cudaStream_t s, cudaStream_t t) {{}}"
    )
    assert names(BACKWARD, code) == [name for name in NAMES if name != "betta"]
    assert of(BACKWARD, code).notes == ("launch_layernorm_bw takes no betta: it is called without",)


def test_without_streams_where_it_is_given_host_pointers() -> None:
    code = f"void launch_layernorm_bw({FLOATS}, const float* v, const float* m, int b, int h) {{}}"
    found = of(BACKWARD, code, Memory.HOST)
    assert found.memory is Memory.HOST
    assert [parameter.name for parameter in found.problem.parameters][-2:] == ["batch_size", "hidden_dim"]
    assert found.notes == (
        "launch_layernorm_bw takes no betta and no stream_1 and no stream_2: it is called without",
    )
    with pytest.raises(LauncherError, match="takes 10 arguments"):
        of(BACKWARD, code)


@pytest.mark.parametrize(
    "names_of_types",
    [
        "typedef float real;\ntypedef const real *input;\n",
        "using real = float;\nusing input = real const*;\n",
        "#define real float\n#define input const real*\n",
        "namespace mine { typedef float real; }\nusing mine::real;\ntypedef real const* input;",
    ],
)
def test_other_names_of_types_are_those_that_the_compiler_sees(names_of_types: str) -> None:
    head = "void launch_attn_softmax(real* inp, input attn_mask, int batch_size, int nhead, int from_len,"
    code = f"{names_of_types}{head} int to_len, bool mask_future, cudaStream_t stream) {{}}"
    assert of(SOFTMAX, code).problem == SOFTMAX


def test_a_name_of_another_type_is_told_as_that_type() -> None:
    code = "typedef double real; void launch_attn_softmax(real* x, const real* m, int b, int n, int f) {}"
    with pytest.raises(LauncherError, match=r"\(double\* x, const double\* m"):
        of(SOFTMAX, code)


def test_another_order_is_passed_by_name() -> None:
    code = (
        "void launch_layernorm(const float* inp, const float* scale, const float* bias, float* ln_res, "
        "float* means, float* vars, int hidden_dim, int batch_size, cudaStream_t stream) {}"
    )
    assert names(FORWARD, code) == [
        *("inp", "scale", "bias", "ln_res", "means", "vars", "hidden_dim", "batch_size", "stream")
    ]
    assert "in another order (const float* inp, const float* scale" in of(FORWARD, code).notes[0]


def test_sizes_of_other_types() -> None:
    code = (
        "void launch_attn_softmax(float* x, const float* m, size_t b, int n, unsigned f, int "
        "t, int future, cudaStream_t s) {}"
    )
    types = [getattr(parameter, "ctype", "") for parameter in of(SOFTMAX, code).problem.parameters]
    assert types == ["", "", "long", "int", "int", "int", "int", ""]


@pytest.mark.parametrize(
    "parameters",
    [
        "double* x, const float* m, int b, int n, int f, int t, bool future, cudaStream_t s",
        "float* out, float* x, const float* m, int b, int n, int f, int t, bool future, cudaStream_t s",
        "float* x, const float* m, int rows, int t",
        "Tensor x, Tensor m",
    ],
)
def test_what_cannot_be_called_is_told_both_signatures(parameters: str) -> None:
    with pytest.raises(LauncherError) as told:
        of(SOFTMAX, f"\n\nvoid launch_attn_softmax({parameters}) {{}}")
    message = str(told.value)
    assert "launch_attn_softmax (softmax_kernel.cu:3) takes" in message
    assert "the assignment's 8 (float* inp, const float* attn_mask, int batch_size" in message


TAIL = "int batch_size, int hidden_dim, cudaStream_t stream_1, cudaStream_t stream_2"
READ = "const float* dy, const float* x, const float* w, const float* v, const float* m"
CONTRADICTORY = {
    "names": (
        f"const float* out_grad, {READ[17:]}, float* dx, float* dw, float* db, {TAIL}",
        "const float* out_grad stands where the assignment has float* gamma_grad. Give it those.",
    ),
    "const": (
        f"{READ}, float* dx, float* dw, float* db, {TAIL}",
        "const float* dy stands where the assignment has float* gamma_grad, to which results are written.",
    ),
    "one name": (
        f"float* dx, float* gamma_grad, float* db, {READ}, {TAIL}",
        "float* gamma_grad stands where the assignment has float* betta_grad. Give it those.",
    ),
    "a size": (
        f"float* dw, float* db, float* dx, {READ}, int hidden_dim, int rows, cudaStream_t s, cudaStream_t t",
        "int hidden_dim stands where the assignment has int batch_size. Give it those.",
    ),
    "const result": (
        f"const float* gamma_grad, float* db, float* dx, {READ}, {TAIL}",
        "const float* gamma_grad stands where the assignment has float* gamma_grad, to which results are",
    ),
}


@pytest.mark.parametrize("contradictory", CONTRADICTORY)
def test_an_order_that_names_or_const_contradict_is_refused(contradictory: str) -> None:
    parameters, contradiction = CONTRADICTORY[contradictory]
    with pytest.raises(LauncherError) as told:
        of(BACKWARD, f"void launch_layernorm_bw({parameters}) {{}}")
    message = str(told.value)
    assert contradiction in message
    assert parameters.split(", ")[1] in message
    assert (
        "the assignment's 13 (float* gamma_grad, float* betta_grad, float* inp_grad, const float* out"
        in message
    )


def test_inputs_need_no_const_and_pointers_themselves_may_be_const() -> None:
    code = (
        f"void launch_layernorm_bw({FLOATS}, const float* v, const float* m, int b, int h, cudaStream_t s, "
    )
    code = code.replace("const ", "").replace("float* ", "float* const ") + "cudaStream_t t) {}"
    assert names(BACKWARD, code) == [name for name in NAMES if name != "betta"]


def test_no_stream_on_device_memory_is_said() -> None:
    code = (
        "void launch_attn_softmax(float* inp, float* attn_mask, int batch_size, int nhead, int "
        "from_len, int to_len, bool mask_future) {}"
    )
    with pytest.raises(LauncherError, match=r"takes no stream: work must go to the stream"):
        of(SOFTMAX, code)


def test_a_launcher_that_is_not_in_the_text_is_called_as_asked() -> None:
    assert of(SOFTMAX, "DEFINE_LAUNCHER(launch_attn_softmax)").problem == SOFTMAX


@pytest.mark.parametrize("taken", ["const long long*", "const int64_t*", "long*"])
def test_sizes_in_an_array_of_the_host(taken: str) -> None:
    problem = replace(FORWARD, parameters=(*FORWARD.parameters, ScalarParameter("sizes", "longs")))
    head = (
        "void launch_layernorm(float* y, float* v, float* m, const float* x, const float* s, const float* b"
    )
    found = of(problem, f"{head}, int rows, int n, cudaStream_t t, {taken} sizes) {{}}")
    assert found.problem.parameters[-1] == ScalarParameter("sizes", "longs")
    with pytest.raises(LauncherError, match=r"const long long\* sizes\)"):
        of(problem, f"{head}, int rows, int n, cudaStream_t t, const int* sizes) {{}}")


def test_a_scalar_has_the_type_that_arithmetic_is_done_in() -> None:
    types = {"bfloat16": "float", "float64": "double", "int64": "long"}
    problem = several_types(replace(FORWARD, parameters=(ScalarParameter("alpha", ANY_TYPE),)), types)
    assert {
        dtype: [one.ctype for one in typed.parameters if isinstance(one, ScalarParameter)]
        for dtype, typed in problem.launchers.items()
    } == {dtype: [ctype] for dtype, ctype in types.items()}


BYTES = problem(
    id="gray",
    file="gray.cu",
    launcher="launch_gray(unsigned int* bins, const uchar4* pixels, size_t n, unsigned char most)",
    formula=lambda pixels: pixels[:, :3].long().sum(1),
    inputs=lambda n: {"pixels": integers(0, 255, n, 4), "most": 255},
    sizes={"n": Range(1, 100)},
)


@pytest.mark.parametrize(
    "parameters",
    [
        "unsigned int* bins, const uchar4* pixels, size_t n, unsigned char most",
        "uint32_t* bins, const unsigned char* pixels, unsigned long long n, uint8_t most",
        "unsigned* bins, uchar4 const* pixels, int n, int most",
    ],
)
def test_vectors_and_unsigned_types_in_each_spelling(parameters: str) -> None:
    assert of(BYTES, f"void launch_gray({parameters}) {{}}", Memory.HOST).notes == ()


@pytest.mark.parametrize("pointer", ["cuComplex*", "cuFloatComplex*", "float2*", "float*"])
def test_a_complex_number_is_two_floats_whatever_it_is_called(pointer: str) -> None:
    turned = problem(
        id="turned",
        file="turned.cu",
        launcher="launch_turned(cuComplex* x, int n)",
        formula=lambda x: x.flip(-1),
        inputs=lambda n: {"x": real(n, 2)},
        sizes={"n": Range(1, 100)},
    )
    assert of(turned, f"void launch_turned({pointer} x, int n) {{}}", Memory.HOST).notes == ()


@pytest.mark.parametrize("pointer", ["uchar3*", "float4*", "int*"])
def test_another_vector_is_refused(pointer: str) -> None:
    code = f"void launch_gray(unsigned* bins, const {pointer} pixels, int n, int most) {{}}"
    with pytest.raises(LauncherError, match=r"the assignment's 4 \(unsigned int\* bins, const uchar4\* "):
        of(BYTES, code, Memory.HOST)
