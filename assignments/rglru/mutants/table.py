"""Wrong kernels: each is the reference with one small edit and one reason. All of them must fail.

``group`` is a case group that must fail; ``diagnosis`` a piece of what the judge should say, empty where no
rule is expected to know.
"""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

KERNEL, SCAN = "rglru_kernel.cu", "scan.cuh"


def _mutant(
    name: str, problem: str, old: str, new: str, why: str, group: str, diagnosis: str = "", file: str = KERNEL
) -> Mutant:
    return Mutant(
        id=name, problem=problem, file=file, old=old, new=new, why=why, group=group, diagnosis=diagnosis
    )


def _scan(name: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return _mutant(f"scan-{name}", "linear_scan", old, new, why, group, diagnosis)


def _inside(name: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return _mutant(f"scan-{name}", "linear_scan", old, new, why, group, diagnosis, SCAN)


def _forward(name: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return _mutant(f"fw-{name}", "rglru_forward", old, new, why, group, diagnosis)


def _backward(name: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return _mutant(f"bw-{name}", "rglru_backward", old, new, why, group, diagnosis)


SHORT, BORDER, LONG = "short sequences", "lengths around a border", "long sequences"
WIDTHS, STATE, VALUES = "widths", "initial state", "slow and fast decay"

MUTANTS = (
    _inside(
        "no-carry",
        "    if (lane == 0) v += f * carry[c];\n",
        "",
        "every tile begins from zero",
        LONG,
    ),
    _inside(
        "no-h0",
        "? start[place.sequence * width + lowest + c] : 0.0f",
        "? 0.0f : 0.0f",
        "the initial state is left out",
        STATE,
        "h0 is left out",
    ),
    _inside(
        "null-h0",
        "start != nullptr && lowest + c < width",
        "lowest + c < width",
        "an initial state is read where none is given",
        MEMORY_GROUP,
    ),
    _inside(
        "missing-barrier",
        "  __syncthreads();\n  const int lane",
        "  const int lane",
        "a warp combines steps of others before they are there",
        MEMORY_GROUP,
    ),
    _inside(
        "half-a-warp",
        "offset < 32; offset *= 2",
        "offset < 16; offset *= 2",
        "the second half of a tile knows nothing of the first",
        BORDER,
    ),
    _inside(
        "product-first",
        "        v += f * earlier_v;\n        f *= earlier_f;\n",
        "        f *= earlier_f;\n        v += f * earlier_v;\n",
        "earlier steps are multiplied by their own factors again",
        BORDER,
    ),
    _inside(
        "state-in-half",
        "= lane == 0 ? carry[c] : earlier;",
        "= __half2float(__float2half(lane == 0 ? carry[c] : earlier));",
        "states travel between threads in half precision",
        BORDER,
    ),
    _scan(
        "b-times-a",
        "added[s][c] = next_b[s][c];",
        "added[s][c] = next_a[s][c] * next_b[s][c];",
        "the new term is multiplied by the factor, too",
        SHORT,
        "b is multiplied by a as well",
    ),
    _scan(
        "whole-slabs",
        "((static_cast<unsigned>(width) + CHANNELS - 1) / CHANNELS)",
        "(static_cast<unsigned>(width) < CHANNELS ? 1 : static_cast<unsigned>(width) / CHANNELS)",
        "channels behind the last whole slab are left out",
        WIDTHS,
    ),
    _scan(
        "odd-widths",
        "width % 2 == 0 ? ker_linear_scan<T, true>",
        "width % 2 >= 0 ? ker_linear_scan<T, true>",
        "two channels are read at once where rows begin at odd places",
        WIDTHS,
    ),
    _scan(
        "past-the-end",
        "columns = time < length ? place.columns : 0;\n"
        "      const size_t at = start + static_cast<size_t>(time) * width;\n"
        "      next_a[s]",
        "columns = place.columns;\n"
        "      const size_t at = start + static_cast<size_t>(time) * width;\n"
        "      next_a[s]",
        "steps behind the last one are read",
        MEMORY_GROUP,
    ),
    _scan(
        "default-stream",
        "THREADS, 0, stream>>>(h, a, b",
        "THREADS, 0, nullptr>>>(h, a, b",
        "the kernel runs on the default stream",
        "streams",
    ),
    _forward(
        "literal-root",
        "if (z > 0.5f) return 1.0f - power;",
        "if (z >= 0.0f) return 1.0f - power;",
        "1 - a^2 loses its digits where a is near 1",
        VALUES,
    ),
    _forward(
        "short-series",
        "float sum = -1.0f / 40320;\n  sum = sum * z + 1.0f / 5040;\n  sum = sum * z - 1.0f / 720;\n",
        "float sum = 0.0f;\n",
        "the series ends too early",
        VALUES,
    ),
    _forward(
        "literal-softplus",
        "log1pf(expf(x))",
        "logf(1.0f + expf(x))",
        "softplus loses its digits where C is far below 0",
        VALUES,
    ),
    _forward(
        "no-eight",
        "? EIGHT * softplus",
        "? softplus",
        "the constant of the decay is missing",
        SHORT,
        "the factor 8",
    ),
    _forward(
        "no-root",
        "s = square * inverse;",
        "s = square;",
        "the input is multiplied by 1 - a^2",
        SHORT,
        "the root is missing",
    ),
    _forward(
        "nan-at-one",
        "inverse = square > 0.0f ? rsqrtf(square) : 0.0f;",
        "inverse = rsqrtf(square);",
        "a factor of exactly 1 gives 0 times infinity",
        VALUES,
    ),
    _forward(
        "no-input-gate",
        "decay.s * sigmoid(next_gx[s][c]) * next_x[s][c]",
        "decay.s * next_x[s][c]",
        "the input gate is not applied",
        SHORT,
        "x is not multiplied by the input gate",
    ),
    _backward(
        "h-of-this-step",
        "load<EVEN>(h + at - (time > 0 ? width : 0), time > 0 ? columns : 0)",
        "load<EVEN>(h + at, columns)",
        "the state behind a step is taken for the one before it",
        BORDER,
    ),
    _backward(
        "sign-of-the-root",
        "(before - i * element",
        "(before + i * element",
        "the gradient through sqrt(1 - a^2) has the wrong sign",
        SHORT,
        "the gradient through sqrt(1 - a^2) has the wrong sign",
    ),
    _backward(
        "no-ratio",
        "-sum * ratio",
        "-sum",
        "dC lacks the derivative of softplus",
        SHORT,
        "dC lacks sigmoid(C) / softplus(C)",
    ),
    _backward(
        "dc-added-to",
        "  cudaMemsetAsync(dc, 0, sizeof(float) * width, stream);\n",
        "",
        "dC is added to what was there",
        SHORT,
    ),
    _backward(
        "dc-without-atomics",
        "atomicAdd(dc + lowest + own, -sum * ratio);",
        "dc[lowest + own] -= sum * ratio;",
        "sequences add to dC at the same time",
        MEMORY_GROUP,
    ),
    _backward(
        "no-one-minus-r",
        "to_ga[s][c] = decay.r - 1.0f;",
        "to_ga[s][c] = -1.0f;",
        "dga lacks a factor of the derivative of sigmoid",
        SHORT,
        "dga lacks 1 - r",
    ),
    _backward(
        "no-first-state",
        "begins ? first_state[c]",
        "begins ? 0.0f",
        "the first step takes its state before for zero",
        STATE,
    ),
    _backward(
        "missing-barrier",
        "  __syncthreads();\n  const int lowest",
        "  const int lowest",
        "sums of other threads are read before they are there",
        MEMORY_GROUP,
    ),
)
