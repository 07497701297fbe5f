"""Each operator makes the edits that it promises, of small kernels and of the first assignment's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from first_assignment import ASSIGNMENT, FOLDER

from grader.soundness import operators
from grader.soundness.edits import Source, runs_on_device_alone

if TYPE_CHECKING:
    from pathlib import Path

    from grader.soundness.edits import Edit

KERNEL = "__global__ void ker(float* to, const float* from, int n) {{ {} }}"
HOST = "void launch(float* to, const float* from, int n, cudaStream_t stream) {{ {} }}"

EDITS = {
    "barriers": {
        KERNEL.format("a(); __syncthreads(); b();"): ["a(); ; b();"],
        KERNEL.format("__threadfence(); __syncwarp(m); tile.sync();"): [
            "; __syncwarp(m); tile.sync();",
            "__threadfence(); ; tile.sync();",
            "__threadfence(); __syncwarp(m); ;",
        ],
    },
    "comparisons": {KERNEL.format("if (i < n) a();"): ["if (i <= n) a();"]},
    "bounds": {
        KERNEL.format("if (i < n) a();"): ["if (i < (n) - 1) a();"],
        KERNEL.format("while (i > 0) a();"): ["while (i > (0) + 1) a();"],
    },
    "guards": {
        KERNEL.format("if (i < n && j) a();"): ["if (true && j) a();", "if (i < n && true) a();"],
        KERNEL.format("if (i >= n) return;"): ["if (false) return;"],
        KERNEL.format("if constexpr (W) a();"): [],
    },
    "operands": {
        KERNEL.format("x = a - b;"): ["x = (b) - (a);"],
        KERNEL.format("to[r * w + c] = 0;"): ["to[c * w + r] = 0;"],
        KERNEL.format("to = from + r * w;"): [],
        KERNEL.format("x = t[i][j];"): ["x = t[j][i];"],
    },
    "shuffles": {
        KERNEL.format("x = __shfl_down_sync(m, x, d);"): [
            "x = __shfl_down_sync((m) & 0xffffu, x, d);",
            "x = __shfl_down_sync(m, x, (d) / 2);",
        ],
    },
    "initials": {
        KERNEL.format("float s = 0.0f, m = -INFINITY, v[4] = {};"): [
            "float s = 1.0f, m = -INFINITY, v[4] = {};",
            "float s = 0.0f, m = 0.0f, v[4] = {};",
            "float s = 0.0f, m = -INFINITY, v[4];",
        ],
        KERNEL.format("float s[2] = {0.f, x};"): ["float s[2] = {1.0f, x};"],
    },
    "reductions": {
        KERNEL.format("m = fmaxf(m, x);"): ["m = fminf(m, x);", "m = ((m) + (x));"],
        KERNEL.format("float s; s += x;"): ["float s; s = fmaxf(s, x);"],
        "float add(float a, float b) { return a + b; }": ["return fmaxf(a, b);"],
    },
    "accumulations": {
        KERNEL.format("s += x;"): ["s = x;"],
        KERNEL.format("for (; i < n; i += w) a();"): [],
    },
    "streams": {
        HOST.format("ker<<<g, b, 0, stream>>>(to);"): ["ker<<<g, b, 0, 0>>>(to);"],
        HOST.format("cudaMemsetAsync(to, 0, n, stream);"): ["cudaMemsetAsync(to, 0, n, nullptr);"],
    },
    "runtime_calls": {HOST.format("cudaMemsetAsync(to, 0, n, stream);"): ["{ ; }"]},
    "launches": {
        HOST.format("ker<<<g, dim3(32, 4), 4 * n, stream>>>(to);"): [
            "ker<<<(g) - 1, dim3(32, 4), 4 * n, stream>>>(to);",
            "ker<<<g, dim3((32) - 1, 4), 4 * n, stream>>>(to);",
            "ker<<<g, dim3(32, 4), (4 * n) / 2, stream>>>(to);",
        ],
        HOST.format("ker<<<g, b>>>(to);"): ["ker<<<(g) - 1, b>>>(to);", "ker<<<g, (b) - 1>>>(to);"],
    },
    "shared_arrays": {
        KERNEL.format("__shared__ float s[2][W]; float own[2];"): [
            "__shared__ float s[2][((W) + 1) / 2]; float own[2];",
            "__shared__ float s[((2) + 1) / 2][W]; float own[2];",
        ],
    },
    "precisions": {
        KERNEL.format("const float y = x; int k = 3;"): [
            "const float y = __half2float(__float2half(x)); int k = 3;"
        ],
        KERNEL.format("float s[2]; s[0] += x; k = 4;"): ["s[0] += __half2float(__float2half(x)); k = 4;"],
        KERNEL.format("double s = x;"): ["float s = x;"],
    },
    "returns": {
        KERNEL.format("a(); b();"): [
            "{ if (threadIdx.x + 1 == blockDim.x) return;  a(); b();",
            "a(); if (true) return; b();",
        ],
        HOST.format("a();"): [],
    },
    "aliases": {KERNEL.format("a();"): ["a();  const_cast<float*>(from)[0] = float(); }"]},
    "constants": {
        KERNEL.format("x = 3u * 1e-8f + 0xff; float s[4];"): [
            "x = 4u * 1e-8f + 0xff; float s[4];",
            "x = 3u * (2 * 1e-8f) + 0xff; float s[4];",
        ],
    },
    "arithmetic": {KERNEL.format("x = a + b * c;"): ["x = a - b * c;", "x = a + b / c;"]},
}


def made(operator: str, text: str) -> tuple[Source, list[Edit]]:
    source = Source(text)
    return source, list(getattr(operators, operator)(source))


@pytest.mark.parametrize(
    ("operator", "text"), [(operator, text) for operator, texts in EDITS.items() for text in texts]
)
def test_an_operator_makes_these_edits_and_no_others(operator: str, text: str) -> None:
    source, edits = made(operator, text)
    results = [edit.applied(source.text) for edit in edits]
    wanted = EDITS[operator][text]
    assert len(results) == len(wanted)
    assert all(part in result for part, result in zip(wanted, results, strict=True)), results


def test_every_operator_is_tested() -> None:
    assert {operator.__name__ for operator in operators.OPERATORS} == EDITS.keys()


FILES = [*ASSIGNMENT.reference.glob("*.cu*"), *FOLDER.glob("variants/*/*.cu")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_edits_of_real_kernels_change_what_they_say_and_have_names_of_their_own(path: Path) -> None:
    source = Source(path.read_text())
    edits = operators.edits(source)
    keys = list(source.keys(path.name, edits))
    assert len(set(keys)) == len(keys) > 20
    for edit in edits:
        assert source.text[edit.begin : edit.end] == edit.old
        assert edit.applied(source.text) != source.text


def test_a_name_stays_while_other_lines_change() -> None:
    text = KERNEL.format("\nif (i < n) a();\nif (i < n) a();\n")
    before, after = Source(text), Source("// A comment.\n" + text.replace("a();\n }", "b();\n }"))
    first, second = (list(one.keys("k.cu", operators.comparisons(one))) for one in (before, after))
    assert first[0] == second[0]
    assert first[1] != second[1]  # its own line did
    assert first[0] != first[1]  # two edits that are alike


def test_characters_of_several_bytes_move_no_edit() -> None:
    source, (edit,) = made("comparisons", "// größer, ≤\n" + KERNEL.format("if (i < n) a();"))
    assert "if (i <= n)" in edit.applied(source.text)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        (KERNEL.format("if (i < n) a();"), True),
        ("__host__ __device__ int f(int i) { return i < 3; }", False),
        (HOST.format("if (n < 3) return;"), False),
        ("constexpr bool SMALL = 3 < 4;", False),
    ],
)
def test_code_of_the_host_is_told_from_code_of_the_device(text: str, *, alone: bool) -> None:
    source, (edit,) = made("comparisons", text)
    assert runs_on_device_alone(source, edit) is alone
