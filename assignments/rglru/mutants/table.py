"""Wrong kernels: each is the reference with one small edit and one reason. All of them must fail.

``group`` is a case group that must fail; ``diagnosis`` a piece of what the judge should say, empty where no
rule is expected to know.
"""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

KERNEL, SCAN, GATES = "rglru_kernel.cu", "scan.cuh", "gates.cuh"


def _mutant(
    name: str, problem: str, old: str, new: str, why: str, group: str, diagnosis: str, file: str
) -> Mutant:
    return Mutant(
        id=name, problem=problem, file=file, old=old, new=new, why=why, group=group, diagnosis=diagnosis
    )


def _scan(
    name: str, old: str, new: str, why: str, group: str, diagnosis: str = "", file: str = KERNEL
) -> Mutant:
    return _mutant(f"scan-{name}", "linear_scan", old, new, why, group, diagnosis, file)


def _forward(
    name: str, old: str, new: str, why: str, group: str, diagnosis: str = "", file: str = KERNEL
) -> Mutant:
    return _mutant(f"fw-{name}", "rglru_forward", old, new, why, group, diagnosis, file)


def _backward(
    name: str, old: str, new: str, why: str, group: str, diagnosis: str = "", file: str = KERNEL
) -> Mutant:
    return _mutant(f"bw-{name}", "rglru_backward", old, new, why, group, diagnosis, file)


SHORT, BORDER, LONG = "short sequences", "lengths around a border", "long sequences"
WIDTHS, STATE, VALUES = "widths", "initial state", "slow and fast decay"

THE_SCAN = (
    _scan(
        "no-carry",
        "float& carry,",
        "float carry,",
        "every tile begins from the initial state",
        LONG,
        file=SCAN,
    ),
    _scan(
        "no-h0",
        "return there ? from[place.sequence * width + channel] : 0.0f;",
        "return 0.0f;",
        "the initial state is left out",
        STATE,
        "h0 is left out",
        file=SCAN,
    ),
    _scan(
        "null-h0",
        "from != nullptr && threadIdx.x < CHANNELS",
        "threadIdx.x < CHANNELS",
        "an initial state is read where none is given",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _scan(
        "missing-barrier",
        "  __syncthreads();\n  if (threadIdx.x < CHANNELS) {\n",
        "  if (threadIdx.x < CHANNELS) {\n",
        "steps of other warps are combined before they are there",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _scan(
        "half-the-warps",
        "warp < WARPS; ++warp",
        "warp < WARPS / 2; ++warp",
        "the second half of a tile knows nothing of the first",
        BORDER,
        file=SCAN,
    ),
    _scan(
        "behind-not-before",
        "      cells.value[threadIdx.x] = carry;\n      carry = f * carry + v;\n",
        "      carry = f * carry + v;\n      cells.value[threadIdx.x] = carry;\n",
        "a thread gets the state behind its steps",
        SHORT,
        file=SCAN,
    ),
    _scan(
        "state-in-half",
        "cells.value[threadIdx.x] = carry;",
        "cells.value[threadIdx.x] = __half2float(__float2half(carry));",
        "states travel between threads in half precision",
        BORDER,
        file=SCAN,
    ),
    _scan(
        "b-times-a",
        "added = in[1];",
        "added = in[0] * in[1];",
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
        "any-width",
        "(bits | width * sizeof(T)) % 16 == 0",
        "bits % 16 == 0",
        "16 bytes are copied at once where rows begin anywhere",
        WIDTHS,
    ),
    _scan(
        "store-past-the-end",
        "time + s < length ? place.columns : 0",
        "place.columns",
        "the steps of the last tile behind the end are written",
        MEMORY_GROUP,
    ),
    _scan(
        "default-stream",
        "bytes, stream>>>",
        "bytes, nullptr>>>",
        "the kernel runs on the default stream",
        "streams",
    ),
)

THE_PIPELINE = (
    _scan(
        "past-the-end",
        "time >= 0 && time < length && column",
        "time >= 0 && column",
        "the steps of the last tile behind the end are read",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _scan(
        "no-wait",
        'asm volatile("cp.async.wait_group 1;" ::: "memory");',
        ";",
        "a tile is used before its copies are there",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _scan(
        "overwritten-too-early",
        "  __syncwarp();  // all lanes have read their elements\n",
        "",
        "a lane overwrites elements that others may not have read yet",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _scan(
        "no-wrap",
        "here + 1 < count ?",
        "here + 1 <= count ?",
        "there is a stage more than there is memory for",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _forward(
        "past-the-row",
        " && column < channels",
        "",
        "channels behind the end of a row are read",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _forward(
        "waits-for-too-few",
        "wait_group 1",
        "wait_group 2",
        "the copies of the tile that is used may still be on their way",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _forward(
        "wrong-stage",
        "ask(first + (count - 1) * LENGTH, here);",
        "ask(first + (count - 1) * LENGTH, here + 1 < count ? here + 1 : 0);",
        "copies fill the stage that is used next instead of the one that is free",
        LONG,
        file=SCAN,
    ),
    _forward(
        "begins-with-too-few",
        "stage < count - 1; ++stage",
        "stage < count - 2; ++stage",
        "nobody asks for the second tile",
        LONG,
        file=SCAN,
    ),
    _backward(
        "no-commit",
        '    asm volatile("cp.async.commit_group;" ::: "memory");\n',
        "",
        "the copies belong to no group that could be waited for",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _backward(
        "lanes-do-not-wait",
        "    __syncwarp();  // the copies of all lanes are here, and the stage of the tile before is free\n",
        "",
        "a lane waits for its own copies, but reads those of others",
        MEMORY_GROUP,
        file=SCAN,
    ),
    _backward(
        "skips-a-tile",
        "ask(first + (count - 1) * LENGTH, here);",
        "ask(first + count * LENGTH, here);",
        "the third tile is never asked for",
        LONG,
        file=SCAN,
    ),
    _backward(
        "no-zeros",
        "const int read = there ? BYTES : 0;",
        "const int read = BYTES;",
        "steps before the first one add to dC",
        BORDER,
        file=SCAN,
    ),
    _backward(
        "store-before-the-start",
        "const int time = last - s, columns = time >= 0 ? place.columns : 0;",
        "const int time = last - s, columns = place.columns;",
        "steps before the first one are written over it",
        BORDER,
    ),
)

FORWARD = (
    _forward(
        "literal-root",
        "d > 0.25f ? 1.0f - a * a : near_one(d)",
        "1.0f - a * a",
        "1 - a^2 loses its digits where a is near 1",
        VALUES,
        file=GATES,
    ),
    _forward(
        "short-polynomial",
        "float sum = 0.217051602f;\n  sum = sum * d - 0.656211368f;\n  sum = sum * d + 1.33241542f;\n",
        "float sum = 1.33241542f;\n",
        "the polynomial ends too early",
        VALUES,
        file=GATES,
    ),
    _forward(
        "literal-softplus",
        "log1pf(expf(x))",
        "logf(1.0f + expf(x))",
        "softplus loses its digits where C is far below 0",
        VALUES,
        file=GATES,
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
        file=GATES,
    ),
    _forward(
        "nan-at-one",
        "reciprocal_root(fmaxf(square, SMALLEST))",
        "reciprocal_root(square)",
        "a factor of exactly 1 gives 0 times infinity",
        VALUES,
        file=GATES,
    ),
    _forward(
        "no-input-gate",
        "decay.s * sigmoid(in[1]) * in[0]",
        "decay.s * in[0]",
        "the input gate is not applied",
        SHORT,
        "x is not multiplied by the input gate",
    ),
)

BACKWARD = (
    _backward(
        "h-of-this-step",
        "length - 1 - step - (k == ARRAYS - 1)",
        "length - 1 - step",
        "the state behind a step is taken for the one before it",
        BORDER,
        file=SCAN,
    ),
    _backward(
        "sign-of-the-root",
        "(before - open * element",
        "(before + open * element",
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
        "atomicAdd(dc + channel, -sum * ratio);",
        "dc[channel] -= sum * ratio;",
        "sequences add to dC at the same time",
        MEMORY_GROUP,
    ),
    _backward(
        "no-one-minus-r",
        "to_ga[s][i] = decay.r - 1.0f;",
        "to_ga[s][i] = -1.0f;",
        "dga lacks a factor of the derivative of sigmoid",
        SHORT,
        "dga lacks 1 - r",
    ),
    _backward(
        "no-first-state",
        "last - s == 0 ? first_state[i]",
        "last - s == 0 ? 0.0f",
        "the first step takes its state before for zero",
        STATE,
    ),
    _backward(
        "missing-barrier",
        "  __syncthreads();\n  const int channel",
        "  const int channel",
        "sums of other threads are read before they are there",
        MEMORY_GROUP,
    ),
)

MUTANTS = (*THE_SCAN, *THE_PIPELINE, *FORWARD, *BACKWARD)
