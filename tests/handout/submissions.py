"""Submissions in the form of the original course: what each changes in ``homework``, and what comes of it.

The texts are ours. Each entry is one peculiarity or one defect that was met in real submissions.
"""

# ruff: noqa: E501 - texts of kernels, as they stand in files

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HOMEWORK = Path(__file__).with_name("homework")
SOFTMAX, LAYERNORM = "src/softmax_kernel.cu", "src/layernorm_kernel.cu"
FORWARD, BACKWARD = "softmax_forward", "softmax_backward"
LN_FORWARD, LN_BACKWARD = "layernorm_forward", "layernorm_backward"
FOUR = (FORWARD, BACKWARD, LN_FORWARD, LN_BACKWARD)


@dataclass(frozen=True)
class Expected:
    """What must come of one problem: its points of 12, and words that must stand in what is said of it."""

    earned: float | None = 12.0  # None: less than 12
    says: tuple[str, ...] = ()


PASSES = Expected()


@dataclass(frozen=True)
class Handed:
    """One submission.

    Attributes:
        name: of the submission, and of the test.
        expected: what must come of the problems that are graded.
        edits: old and new text by file; each old one occurs exactly once.
        files: whole files, in place of those of ``homework`` or beside them.
        lacks: the folder of ``homework`` that was not handed in.
    """

    name: str
    expected: Mapping[str, Expected]
    edits: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""

    def tree(self) -> dict[str, bytes]:
        """The files by their path."""
        paths = (path for path in HOMEWORK.rglob("*") if path.is_file())
        tree = {path.relative_to(HOMEWORK).as_posix(): path.read_bytes() for path in paths}
        tree = {
            name: text for name, text in tree.items() if not self.lacks or not name.startswith(self.lacks)
        }
        tree |= {name: text.encode() for name, text in self.files.items()}
        for name, edits in self.edits.items():
            text = tree[name].decode()
            for old, new in edits:
                assert text.count(old) == 1, f"{self.name}: {old!r} is in {name} {text.count(old)} times"
                text = text.replace(old, new)
            tree[name] = text.encode()
        return tree


NO_BETTA = (("const float *betta, const float *vars", "const float *vars"),)
LAST_TILE_WRONG = (("row < rows && column < width;", "row < rows && column < width / TILE_DIM * TILE_DIM;"),)
HOMEWORK_BACKWARD = (HOMEWORK / LAYERNORM).read_text().partition("void launch_layernorm_bw")[2]
ON_DEVICE_POINTERS = (
    (
        HOMEWORK_BACKWARD[
            HOMEWORK_BACKWARD.index("  const size_t matrix") : HOMEWORK_BACKWARD.index("  dim3 block")
        ],
        "",
    ),
    (HOMEWORK_BACKWARD[HOMEWORK_BACKWARD.index("  cudaDeviceSynchronize") :], "}}\n}}\n"),
    (
        "d_gamma_grad, d_betta_grad, d_out_grad, d_inp, d_vars, d_means, batch_size",
        "gamma_grad, betta_grad, out_grad, inp, vars, means, batch_size",
    ),
    ("(d_inp_grad, d_out_grad, d_inp, d_gamma, d_vars,", "(inp_grad, out_grad, inp, gamma, vars,"),
    ("d_means, hidden_dim);", "means, hidden_dim);"),
)
"""Of the launcher of LayerNorm backward, so that it takes device pointers."""
DEVICE_POINTERS = {
    SOFTMAX: """\
#include <cuda_runtime.h>
__global__ void ker_attn_softmax_bw(float *grad, const float *soft, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int j = 0; j < keys; ++j) sum += grad[(size_t)row * keys + j] * soft[(size_t)row * keys + j];
  for (int j = 0; j < keys; ++j) {
    float *g = grad + (size_t)row * keys + j;
    *g = soft[(size_t)row * keys + j] * (*g - sum);
  }
}
// no cudaMemcpyHostToDevice: PyTorch passes device pointers
extern "C" void launch_attn_softmax_bw(float *out_grad, const float *soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  ker_attn_softmax_bw<<<(rows + 63) / 64, 64, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
"""
}
STARTER_SOFTMAX = """\
#include "includes/block_reduce.h"

const float EPSILON = 1e-8f;

namespace course {
template <int BLOCK, int ITEMS>
__global__ void ker_attn_softmax(float *inp, const float *attn_mask, int from_len, int to_len, bool mask_future) {
  // TODO 1: the maximum of the row
  // TODO 2: the sum of the exponentials
  // TODO 3: the weights
  float value[ITEMS];
  for (int i = 0; i < ITEMS; ++i) value[i] = __expf(inp[i] - l_max);
}

extern "C" {
void launch_attn_softmax(float *inp, const float *attn_mask, int batch_size, int nhead, int from_len, int to_len,
                         bool mask_future, cudaStream_t stream) {
  const size_t bytes = sizeof(float) * batch_size * nhead * from_len * to_len;
  float *d_inp, *d_mask;
  cudaMalloc(&d_inp, bytes);
  cudaMalloc(&d_mask, sizeof(float) * batch_size * to_len);
  cudaMemcpy(d_inp, inp, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_mask, attn_mask, sizeof(float) * batch_size * to_len, cudaMemcpyHostToDevice);
  ker_attn_softmax<32, 1><<<nhead * from_len, 32, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  cudaMemcpy(inp, d_inp, bytes, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  cudaFree(d_inp);
  cudaFree(d_mask);
}}

template <int ITEMS>
__global__ void ker_attn_softmax_bw(float *grad, const float *inp, int softmax_len) {
  // TODO
}

extern "C" {
void launch_attn_softmax_bw(float *out_grad, const float *soft_inp, int rows, int softmax_len, cudaStream_t stream) {
  // TODO: allocate, copy, launch, copy back, free
}}
}
"""
STARTER_LAYERNORM = """\
#include "includes/block_reduce.h"

__global__ void ker_layer_norm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                               const float *bias, int hidden_size) {
  // TODO
  assert(false && "Not Implemented");
}

extern "C" {
void launch_layernorm(float *ln_res, float *vars, float *means, const float *inp, const float *scale, const float *bias,
                      int batch_size, int hidden_dim, cudaStream_t stream) {
  const size_t matrix = sizeof(float) * batch_size * hidden_dim;
  float *d_res, *d_vars, *d_means, *d_inp;
  cudaMalloc(&d_res, matrix);
  cudaMalloc(&d_vars, sizeof(float) * batch_size);
  cudaMalloc(&d_means, sizeof(float) * batch_size);
  cudaMalloc(&d_inp, matrix);
  cudaMemcpy(d_inp, inp, matrix, cudaMemcpyHostToDevice);
  ker_layer_norm<<<batch_size, 32, 0, stream>>>(d_res, d_vars, d_means, d_inp, scale, bias, hidden_dim / 4);
  cudaMemcpy(ln_res, d_res, matrix, cudaMemcpyDeviceToHost);
  cudaMemcpy(vars, d_vars, sizeof(float) * batch_size, cudaMemcpyDeviceToHost);
  cudaMemcpy(means, d_means, sizeof(float) * batch_size, cudaMemcpyDeviceToHost);
  if (cudaDeviceSynchronize() != cudaSuccess) exit(EXIT_FAILURE);
  for (float *one : {d_res, d_vars, d_means, d_inp}) cudaFree(one);
}

void launch_layernorm_bw(float *gamma_grad, float *betta_grad, float *inp_grad, const float *out_grad, const float *inp,
                         const float *gamma, const float *betta, const float *vars, const float *means, int batch_size,
                         int hidden_dim, cudaStream_t stream_1, cudaStream_t stream_2) {
  // TODO
}
}
"""
STARTER = {SOFTMAX: STARTER_SOFTMAX, LAYERNORM: STARTER_LAYERNORM}
ONLY_LAUNCHER = """\
#include <cuda_runtime.h>
extern "C" void launch_layernorm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                                 const float *bias, int batch_size, int hidden_dim, cudaStream_t stream) {}
"""
NOTHING = Expected(0.0, ("nothing was written",))

HANDED = (
    Handed("complete", dict.fromkeys(FOUR, PASSES)),
    Handed(
        "starter-that-does-not-compile",
        {
            FORWARD: Expected(0.0, ('error: identifier "l_max" is undefined',)),
            BACKWARD: Expected(0.0, ("graded without", "ker_attn_softmax (lines 6", "nothing was written")),
            LN_FORWARD: Expected(0.0, ('assertion `false && "Not Implemented"` failed at layernorm_kernel.cu:6',)),
            LN_BACKWARD: NOTHING,
        },
        files=STARTER,
    ),
    Handed(
        "starter-that-compiles",
        dict.fromkeys((FORWARD, BACKWARD), NOTHING),
        files={
            SOFTMAX: STARTER_SOFTMAX.replace(
                "  for (int i = 0; i < ITEMS; ++i) value[i] = __expf(inp[i] - l_max);\n", ""
            )
        },
    ),
    Handed(
        "last-rows-left-out-by-the-first-starter",
        {BACKWARD: Expected(12.0, ("leave out the last rows",))},
        {SOFTMAX: (("dim3 grid((rows + 3) / 4), block(32, 4);", "dim3 grid(rows / 4), block(32, 4);"),)},
    ),
    Handed(
        "unfinished-forward",
        {FORWARD: Expected(0.0, ("did not compile",)), BACKWARD: Expected(12.0, ("graded without",))},
        {SOFTMAX: (("  float l_max = -INFINITY;\n", ""),)},
    ),
    Handed(
        "no-betta",
        {LN_BACKWARD: Expected(12.0, ("takes no betta",))},
        {LAYERNORM: NO_BETTA},
    ),
    Handed(
        "no-extern-c",
        {BACKWARD: Expected(12.0, ('extern "C" is missing',))},
        {
            SOFTMAX: (
                ('extern "C" {\n\nvoid launch_attn_softmax_bw', "void launch_attn_softmax_bw"),
                ("  cudaFree(d_soft);\n}}\n", "  cudaFree(d_soft);\n}\n"),
            )
        },
    ),
    Handed("device-pointers", {BACKWARD: PASSES, FORWARD: Expected(0.0, ("has no function",))}, files=DEVICE_POINTERS),
    Handed(
        "another-order",
        {LN_FORWARD: Expected(12.0, ("in another order",))},
        {LAYERNORM: (("float *vars, float *means, const float *inp, const float *scale, const float *bias,\n                      int", "float *means, float *vars, const float *inp, const float *scale, const float *bias,\n                      int"),)},
    ),
    Handed(
        "other-arguments",
        {LN_FORWARD: Expected(0.0, ("layernorm_kernel.cu:40) takes 6 arguments", "float* ln_res, float* vars"))},
        {LAYERNORM: (("float *vars, float *means, const float *inp, const float *scale, const float *bias,\n                      int batch_size, int hidden_dim, cudaStream_t stream) {", "const float *inp, const float *scale, const float *bias, int batch_size,\n                      int hidden_dim) {\n  cudaStream_t stream = 0;\n  float *vars = 0, *means = 0;"),)},
    ),
    Handed(
        "vars-with-epsilon",
        {LN_FORWARD: PASSES},
        {LAYERNORM: (("vars[blockIdx.x] = variance;", "vars[blockIdx.x] = variance + LN_EPSILON;"),)},
    ),
    Handed(
        "vars-is-the-deviation",
        {LN_FORWARD: Expected(9.0, ("vars holds the standard deviation",))},
        {LAYERNORM: (("vars[blockIdx.x] = variance;", "vars[blockIdx.x] = sqrtf(variance);"),)},
    ),
    Handed(
        "vars-is-the-inverse-deviation",
        {LN_FORWARD: Expected(9.0, ("vars holds the reciprocal of the standard deviation",))},
        {LAYERNORM: (("vars[blockIdx.x] = variance;", "vars[blockIdx.x] = inverse;"),)},
    ),
    Handed(
        "deviation-expected",
        {LN_BACKWARD: Expected(None, ("vars is taken for the standard deviation",))},
        {
            LAYERNORM: (
                ("* rsqrtf(vars[row] + LN_EPSILON)", "/ vars[row]"),
                ("inverse = rsqrtf(vars[blockIdx.x] + LN_EPSILON)", "inverse = 1.0f / vars[blockIdx.x]"),
            )
        },
    ),
    Handed(
        "output-as-inp",
        {LN_BACKWARD: Expected(None, ("inp is taken for the output of LayerNorm",))},
        {
            LAYERNORM: (
                ("(inp[(size_t)row * width + column] - means[row]) * rsqrtf(vars[row] + LN_EPSILON)",
                 "(inp[(size_t)row * width + column] - betta[column]) / gamma[column]"),
                ("const float *vars, const float *means, int rows, int width) {",
                 "const float *gamma, const float *betta, int rows, int width) {"),
                ("d_gamma_grad, d_betta_grad, d_out_grad, d_inp, d_vars, d_means,",
                 "d_gamma_grad, d_betta_grad, d_out_grad, d_inp, d_gamma, d_betta,"),
                ("*d_gamma, *d_vars, *d_means;\n  cudaMalloc((void **)&d_gamma_grad",
                 ("*d_gamma, *d_vars, *d_means, *d_betta;\n  cudaMalloc((void **)&d_betta, row);\n"
                 "  cudaMemcpy(d_betta, betta, row, cudaMemcpyHostToDevice);\n  cudaMalloc((void **)&d_gamma_grad")),
            )
        },
    ),
    Handed(
        "no-broadcast-after-the-reduction",
        {LN_FORWARD: Expected(None, ("only the first warp gets the result of a reduction",))},
        {
            "src/includes/block_reduce.h": (
                ("  return warp_reduce<Op>(lane < warps ? slots[lane] : Op::start());",
                 "  return warp == 0 ? warp_reduce<Op>(lane < warps ? slots[lane] : Op::start()) : x;"),
            )
        },
    ),
    Handed(
        "two-reductions-on-one-array",
        {LN_FORWARD: Expected(None, ("race_shared", "block_reduce.h"))},
        {"src/includes/block_reduce.h": (("  __syncthreads();  // slots of the reduction before\n", ""),)},
    ),
    Handed(
        "guards-its-last-tile",
        {LN_BACKWARD: Expected(12.0, ("throws above 4096 columns",))},
        {LAYERNORM: (("  if (threadIdx.x == 0) {\n    betta_grad[", "  if (threadIdx.x == 0 && blockIdx.x * TILE_DIM + threadIdx.y < width) {\n    betta_grad["),)},
    ),
    Handed(
        "last-tile-on-device-pointers",
        {LN_BACKWARD: Expected(12.0, ("global_oob", "(waived: the starter's last tile", "small hidden sizes 3/3"))},
        {LAYERNORM: ON_DEVICE_POINTERS},
    ),
    Handed(
        "last-tile-wrong",
        {LN_BACKWARD: Expected(9.0, ("small hidden sizes 0/3", "many rows 1/3"))},
        {LAYERNORM: LAST_TILE_WRONG},
    ),
    Handed(
        "last-tile-wrong-on-device-pointers",
        {LN_BACKWARD: Expected(9.0, ("small hidden sizes 0/3", "many rows 1/3"))},
        {LAYERNORM: (*ON_DEVICE_POINTERS, *LAST_TILE_WRONG)},
    ),
    Handed(
        "atomics-into-memory-never-zeroed",
        {LN_BACKWARD: Expected(None, ("uninit_global", "layernorm_kernel.cu"))},
        {
            LAYERNORM: (
                (("    betta_grad[blockIdx.x * TILE_DIM + threadIdx.y] = dbetta;\n"
                 "    gamma_grad[blockIdx.x * TILE_DIM + threadIdx.y] = dgamma;\n"),
                 ("    if (blockIdx.x * TILE_DIM + threadIdx.y >= width) return;\n"
                 "    atomicAdd(&betta_grad[blockIdx.x * TILE_DIM + threadIdx.y], dbetta);\n"
                 "    atomicAdd(&gamma_grad[blockIdx.x * TILE_DIM + threadIdx.y], dgamma);\n")),
            )
        },
    ),
    Handed(
        "tree-with-a-block-that-is-no-power-of-two",
        {LN_FORWARD: Expected(None, ("halves a number of threads that is no power of two",))},
        {
            "src/includes/block_reduce.h": (
                ("  __shared__ float slots[32];\n", "  __shared__ float slots[1024];\n"),
                ("  x = warp_reduce<Op>(x);\n", ""),
                ("  if (lane == 0) slots[warp] = x;\n", "  slots[threadIdx.x] = x;\n"),
                ("  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;\n", ""),
                ("  return warp_reduce<Op>(lane < warps ? slots[lane] : Op::start());",
                 ("  for (int half = blockDim.x / 2; half > 0; half /= 2) {\n"
                 "    if (threadIdx.x < half) slots[threadIdx.x] = Op::of(slots[threadIdx.x], slots[threadIdx.x + half]);\n"
                 "    __syncthreads();\n  }\n  return slots[0];")),
            )
        },
    ),
    Handed(
        "early-return-before-a-full-shuffle",
        {BACKWARD: Expected(None, ("_lanes", "softmax_kernel.cu"))},
        {
            SOFTMAX: (
                ("  float grads[ITEMS], soft[ITEMS], sum = 0.0f;\n",
                 "  if (threadIdx.x >= softmax_len) return;\n  float grads[ITEMS], soft[ITEMS], sum = 0.0f;\n"),
            )
        },
    ),
    Handed(
        "exits-on-an-error",
        {FORWARD: Expected(None, ("exit code 1 instead of returning", "sequence too long"))},
        {SOFTMAX: (("  dim3 grid(nhead * from_len, batch_size);\n", '  dim3 grid(nhead * from_len, batch_size);\n  if (to_len > 512) {\n    fprintf(stderr, "sequence too long");\n    exit(1);\n  }\n'),)},
    ),
    Handed(
        "throws",
        {LN_FORWARD: Expected(None, ("SIGABRT", "unsupported hidden_dim"))},
        {
            LAYERNORM: (
                ('if (hidden_dim % 4 != 0) throw std::runtime_error("violate hidden_dim % 4 = 0");',
                 'if (hidden_dim > 4096) throw std::runtime_error("unsupported hidden_dim");'),
            )
        },
    ),
    Handed(
        "leaks",
        {BACKWARD: PASSES},
        {SOFTMAX: (("  cudaFree(d_grad);\n  cudaFree(d_soft);\n", ""),)},
    ),
    Handed(
        "only-the-two-files",
        {BACKWARD: PASSES, LN_FORWARD: NOTHING},
        files={"softmax_kernel.cu": DEVICE_POINTERS[SOFTMAX], "layernorm_kernel.cu": ONLY_LAUNCHER},
        lacks="src/",
    ),
    Handed(
        "two-files-without-their-headers",
        {FORWARD: Expected(0.0, ("includes/block_reduce.h was not found beside",))},
        lacks="src/includes/",
    ),
    Handed(
        "missing-brace",
        {
            FORWARD: Expected(0.0, ("nothing of it can be graded", "softmax_kernel.cu(")),
            BACKWARD: Expected(0.0, ("nothing of it can be graded",)),
        },
        {SOFTMAX: (("    l_max = fmaxf(l_max, value[i]);\n  }\n", "    l_max = fmaxf(l_max, value[i]);\n"),)},
    ),
)  # fmt: skip
