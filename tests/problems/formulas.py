"""Problems from a formula, one for each thing that a formula may do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from grader.problems.contents import indices, integers, mask, offsets, positive, real, scores, truths
from grader.problems.formula import Range, backward_of, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from grader.problems.problem import KernelProblem

N = {"n": Range(1, 1 << 22)}
ROWS = {"rows": Range(1, 1 << 21), "n": Range(1, 4096)}


def _problem(
    name: str,
    launcher: str,
    formula: Callable[..., Any],
    inputs: Callable[..., Mapping[str, Any]],
    sizes: Mapping[str, Range] = N,
    **rest: Any,  # noqa: ANN401 - of ``problem``
) -> KernelProblem:
    return problem(
        id=name,
        file=f"{name}.cu",
        launcher=f"launch_{name}({launcher}, cudaStream_t stream)",
        formula=formula,
        inputs=inputs,
        sizes=sizes,
        **rest,
    )


def mean_square(x: Tensor, scale: Tensor) -> Tensor:
    """Each row divided by its root mean square, times a scale per column."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * scale


def rope(x: Tensor, n: int) -> Tensor:
    """Rotates pairs of columns by an angle that grows with the row."""
    places = torch.arange(x.shape[0]).float()[:, None]
    angles = places * 10000.0 ** (-2 * torch.arange(n // 2).float() / n)
    left, right = x[:, : n // 2], x[:, n // 2 :]
    return torch.cat(
        [
            left * angles.cos() - right * angles.sin(),
            left * angles.sin() + right * angles.cos(),
        ],
        -1,
    )


def stencil(x: Tensor) -> Tensor:
    """Three steps of a 5-point stencil whose border stays."""
    for _ in range(3):
        inside = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[1:-1, 1:-1]) * 0.2
        x = x.clone()
        x[1:-1, 1:-1] = inside
    return x


def blurred(image: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Two channels from four in two groups, with every second pixel of the image."""
    return functional.conv2d(image, weights, bias, stride=(1, 2), padding=1, dilation=(2, 1), groups=2)


def sums_of_segments(rows: Tensor, order: Tensor, starts: Tensor) -> Tensor:
    return torch.segment_reduce(rows[order], "sum", offsets=starts, unsafe=True)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ v


FORMULAS = {
    one.id: one
    for one in (
        _problem(
            "saxpy",
            "float* y, const float* x, float a, int n",
            lambda x, y, a: a * x + y,
            lambda n: {"x": real(n), "y": real(n), "a": 2.3},
        ),
        _problem(
            "half_add",
            "__half* z, const __half* x, const __half* y, int n",
            lambda x, y: x + y,
            lambda n: {"x": real(n), "y": real(n)},
        ),
        _problem(
            "bfloat_gelu",
            "__nv_bfloat16* y, const __nv_bfloat16* x, int n",
            lambda x: functional.gelu(x),  # noqa: PLW0108 - its own first parameter has another name
            lambda n: {"x": real(n)},
        ),
        _problem(
            "double_norm",
            "double* y, const double* x, int rows, int n",
            lambda x: functional.layer_norm(x, x.shape[-1:]),
            lambda rows, n: {"x": real(rows, n)},
            ROWS,
        ),
        _problem(
            "int_clip",
            "int* y, const int* x, const bool* keep, int n",
            lambda x, keep: torch.where(keep, x.clamp(-50, 50) * 2 - (x % 7), 0),
            lambda n: {"x": integers(-1000, 1000, n), "keep": truths(n)},
        ),
        _problem(
            "sum_rows",
            "float* total, long long* first, const float* x, int rows, int n",
            lambda x: (x.sum(-1), x.argmax(-1)),
            lambda rows, n: {"x": real(rows, n)},
            ROWS,
        ),
        _problem(
            "mean_square",
            "float* y, const float* x, const float* scale, int rows, int n",
            mean_square,
            lambda rows, n: {"x": real(rows, n), "scale": real(n)},
            ROWS,
        ),
        _problem(
            "mean_square_backward",
            "float* x_grad, float* scale_grad, const float* y_grad, const float* x, const float* scale, "
            "int rows, int n",
            backward_of(mean_square, "y_grad", {"x_grad": "x", "scale_grad": "scale"}),
            lambda rows, n: {"y_grad": real(rows, n), "x": real(rows, n), "scale": real(n)},
            ROWS,
        ),
        _problem(
            "embedding_backward",
            "float* table_grad, const float* y_grad, const float* table, const int* words, int count, int n",
            backward_of(lambda table, words: table[words], "y_grad", {"table_grad": "table"}),
            lambda count, n: {
                "y_grad": real(count, n),
                "table": real(50, n),
                "words": indices(50, count),
            },
            {"count": Range(1, 1 << 21), "n": Range(1, 1024)},
        ),
        _problem(
            "scan",
            "float* y, const float* x, int rows, int n",
            lambda x: x.cumsum(-1),
            lambda rows, n: {"x": real(rows, n)},
            ROWS,
        ),
        _problem(
            "histogram",
            "int* counts, const unsigned char* keys, int n",
            lambda keys: torch.zeros(256, dtype=torch.int32).scatter_add(
                0, keys.long(), torch.ones_like(keys, dtype=torch.int32)
            ),
            lambda n: {"keys": integers(0, 255, n)},
        ),
        _problem(
            "transpose",
            "float* y, const float* x, int rows, int n",
            lambda x: x.t(),
            lambda rows, n: {"x": real(rows, n)},
            ROWS,
        ),
        _problem(
            "matmul",
            "__half* c, const __half* a, const __half* b, int m, int n, int k",
            lambda a, b: a @ b,
            lambda m, n, k: {"a": real(m, k), "b": real(k, n)},
            {"m": Range(1, 2048), "n": Range(1, 2048), "k": Range(1, 2048)},
            without=("one huge element", "large offset"),
        ),
        _problem(
            "embedding",
            "float* y, const float* table, const int* words, int count, int n",
            lambda table, words: table[words],
            lambda count, n: {"table": real(50, n), "words": indices(50, count)},
            {"count": Range(1, 1 << 21), "n": Range(1, 1024)},
        ),
        _problem(
            "masked_softmax",
            "float* y, const float* x, const float* hide, int rows, int n",
            lambda x, hide: torch.softmax(x + hide, -1),
            lambda rows, n: {"x": real(rows, n), "hide": mask(n)},
            ROWS,
        ),
        _problem(
            "log_power",
            "float* y, const float* x, int n",
            lambda x: x**1.5 + torch.log(x) - x**2 / torch.sqrt(x),
            lambda n: {"x": positive(n)},
        ),
        _problem(
            "rope",
            "float* y, const float* x, int rows, int n",
            rope,
            lambda rows, n: {"x": real(rows, n)},
            {"rows": Range(1, 4096), "n": Range(2, 512, multiple_of=2)},
        ),
        _problem(
            "stencil",
            "float* x, int rows, int n",
            stencil,
            lambda rows, n: {"x": real(rows, n)},
            {"rows": Range(3, 4096), "n": Range(3, 4096)},
        ),
        _problem(
            "sort",
            "float* values, long long* places, const float* x, int rows, int n",
            lambda x: x.sort(dim=-1, descending=True, stable=True),
            lambda rows, n: {"x": integers(-50, 50, rows, n)},
            ROWS,
        ),
        _problem(
            "convolution",
            "float* y, const float* image, const float* weights, const float* bias, int rows, int n",
            blurred,
            lambda rows, n: {"image": real(3, 4, rows, n), "weights": real(2, 2, 3, 3), "bias": real(2)},
            {"rows": Range(3, 512), "n": Range(1, 512)},
        ),
        _problem(
            "segments",
            "float* sums, const float* rows, const int* order, const int* starts, int count, int n",
            sums_of_segments,
            lambda count, n: {
                "rows": real(n, 3),
                "order": indices(n, n),
                "starts": offsets(n, count),
            },
            {"count": Range(1, 4096), "n": Range(1, 1 << 20)},
        ),
        _problem(
            "counts_of_bytes",
            "unsigned int* bins, const unsigned char* x, size_t n",
            lambda x: torch.zeros(256, dtype=torch.int64).index_add(0, x.long(), torch.ones(len(x)).long()),
            lambda n: {"x": integers(0, 255, n)},
        ),
        _problem(
            "small_integers",
            "unsigned long long* y, unsigned short* z, const unsigned int* x, const short* s, "
            "const signed char* b, unsigned int n",
            lambda x, s, b: (x * 3 + s.long(), x ^ b.long()),
            lambda n: {
                "x": integers(0, (1 << 32) - 1, n),
                "s": integers(-(1 << 15), (1 << 15) - 1, n),
                "b": integers(-128, 127, n),
            },
        ),
        _problem(
            "complex_product",
            "cuComplex* z, const cuComplex* x, const cuComplex* y, int n",
            lambda x, y: torch.stack(
                [x[:, 0] * y[:, 0] - x[:, 1] * y[:, 1], x[:, 0] * y[:, 1] + x[:, 1] * y[:, 0]], 1
            ),
            lambda n: {"x": real(n, 2), "y": real(n, 2)},
        ),
        _problem(
            "directions",
            "float3* y, const float4* x, int n",
            lambda x: x[:, :3] * torch.rsqrt((x * x).sum(1, keepdim=True) + 1.0),
            lambda n: {"x": real(n, 4)},
        ),
        _problem(
            "attention",
            "float* y, const float* q, const float* k, const float* v, int rows, int n",
            attention,
            lambda rows, n: {"q": scores(rows, n, large=30.0), "k": real(rows, n), "v": real(rows, n)},
            {"rows": Range(1, 1024), "n": Range(1, 128)},
            without=("large offset", "one huge element"),
        ),
    )
}
