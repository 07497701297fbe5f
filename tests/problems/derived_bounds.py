"""The bounds that follow from formulas beside those derived by hand, for the first assignment's four kernels.

PYTHONPATH=tests python -m problems.derived_bounds        prints the table of docs/assignments.md
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from first_assignment import KERNELS
from problems.test_bounds import RIGHT, RUNNING, SUMS, rounded

from grader.judge.correctness.comparison import compare
from grader.problems.contents import mask, real, uniform
from grader.problems.formula import Range, problem
from grader.problems.problem import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.problem import Case, Expectation, Inputs

EPSILON = 1e-8


def hidden(inp: Tensor, attn_mask: Tensor, *, mask_future: bool) -> Tensor:
    """The logits."""
    logits = inp + attn_mask[:, None, None, :]
    future = torch.ones(inp.shape[-2:], dtype=torch.bool).triu(1)
    return logits.masked_fill(future, -math.inf) if mask_future else logits


def softmax(inp: Tensor, attn_mask: Tensor, mask_future: bool) -> Tensor:
    return torch.softmax(hidden(inp, attn_mask, mask_future=mask_future), -1)


def by_logarithm(inp: Tensor, attn_mask: Tensor, mask_future: bool) -> Tensor:
    logits = hidden(inp, attn_mask, mask_future=mask_future)
    top = logits.amax(-1, keepdim=True)
    return torch.exp(logits - (top + torch.log(torch.exp(logits - top).sum(-1, keepdim=True))))


def by_powers_of_two(inp: Tensor, attn_mask: Tensor, mask_future: bool) -> Tensor:
    logits = hidden(inp, attn_mask, mask_future=mask_future) * 1.4426950408889634
    powers = torch.exp2(logits - logits.amax(-1, keepdim=True))
    return powers / (powers.sum(-1, keepdim=True) + EPSILON)


def softmax_gradient(out_grad: Tensor, soft_inp: Tensor) -> Tensor:
    return soft_inp * (out_grad - (out_grad * soft_inp).sum(-1, keepdim=True))


def products_first(out_grad: Tensor, soft_inp: Tensor) -> Tensor:
    return out_grad * soft_inp - soft_inp * (out_grad * soft_inp).sum(-1, keepdim=True)


def norm(inp: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mean = inp.mean(-1, keepdim=True)
    variance = ((inp - mean) ** 2).mean(-1, keepdim=True)
    return (inp - mean) * torch.rsqrt(variance + EPSILON) * scale + bias, variance[:, 0], mean[:, 0]


def by_squares(inp: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The variance as the handout teaches it, and one slope and shift per row and column."""
    mean = inp.mean(-1, keepdim=True)
    variance = (inp * inp).mean(-1, keepdim=True) - mean * mean
    slope = scale * torch.rsqrt(variance + EPSILON)
    return inp * slope + (bias - mean * slope), variance[:, 0], mean[:, 0]


def norm_gradient(
    out_grad: Tensor,
    inp: Tensor,
    gamma: Tensor,
    vars: Tensor,  # noqa: A002 - the launcher's name
    means: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    root = torch.rsqrt(vars)[:, None]
    return _gradients(out_grad, (inp - means[:, None]) * root, gamma, root)


def scaled_first(
    out_grad: Tensor,
    inp: Tensor,
    gamma: Tensor,
    vars: Tensor,  # noqa: A002 - the launcher's name
    means: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    root = torch.rsqrt(vars)[:, None]
    return _gradients(out_grad, inp * root - means[:, None] * root, gamma, root)


def _gradients(g: Tensor, normal: Tensor, gamma: Tensor, root: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    d = g * gamma
    sums = d.sum(-1, keepdim=True) + normal * (d * normal).sum(-1, keepdim=True)
    return (g * normal).sum(0), g.sum(0), (d - sums / g.shape[1]) * root


ROWS = {"batch_size": Range(1, 1 << 21), "hidden_dim": Range(4, 8192, multiple_of=4)}

DERIVED = {
    one.id: one
    for one in (
        problem(
            id="softmax_forward",
            file="softmax_kernel.cu",
            launcher="launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, "
            "int from_len, int to_len, bool mask_future, cudaStream_t stream)",
            formula=softmax,
            also=(by_logarithm, by_powers_of_two),
            inputs=lambda batch_size, nhead, from_len, to_len: {
                "inp": real(batch_size, nhead, from_len, to_len),
                "attn_mask": mask(batch_size, to_len),
                "mask_future": True,
            },
            sizes={
                "batch_size": Range(1, 4096),
                "nhead": Range(1, 64),
                "from_len": Range(1, 2048),
                "to_len": Range(1, 2048),
            },
        ),
        problem(
            id="softmax_backward",
            file="softmax_kernel.cu",
            launcher="launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, "
            "int softmax_len, cudaStream_t stream)",
            formula=softmax_gradient,
            also=(products_first,),
            inputs=lambda rows, softmax_len: {
                "out_grad": real(rows, softmax_len),
                "soft_inp": uniform(0, 1, rows, softmax_len),
            },
            sizes={"rows": Range(1, 1 << 21), "softmax_len": Range(1, 2048)},
        ),
        problem(
            id="layernorm_forward",
            file="layernorm_kernel.cu",
            launcher="launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, "
            "const float* scale, const float* bias, int batch_size, int hidden_dim, cudaStream_t stream)",
            formula=norm,
            also=(by_squares,),
            inputs=lambda batch_size, hidden_dim: {
                "inp": real(batch_size, hidden_dim),
                "scale": real(hidden_dim),
                "bias": real(hidden_dim),
            },
            sizes=ROWS,
        ),
        problem(
            id="layernorm_backward",
            file="layernorm_kernel.cu",
            launcher="launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, "
            "const float* out_grad, const float* inp, const float* gamma, const float* vars, "
            "const float* means, int batch_size, int hidden_dim, cudaStream_t stream)",
            formula=norm_gradient,
            also=(scaled_first,),
            inputs=lambda batch_size, hidden_dim: {
                "out_grad": real(batch_size, hidden_dim),
                "inp": real(batch_size, hidden_dim),
                "gamma": real(hidden_dim),
                "vars": uniform(0.5, 2, batch_size),
                "means": real(batch_size),
            },
            sizes=ROWS,
        ),
    )
}
"""The four kernels, each as the problem of a formula."""

CONTENTS: Mapping[str, tuple[str, ...]] = {
    "softmax_forward": (
        *("normal", "uniform", "padded with -inf", "any mask", "any mask, padded on the left"),
        *("one huge element", "wide"),
    ),
    "softmax_backward": (
        *("normal", "gradients around 100", "gradients of 1e-20", "future mask", "one huge gradient"),
    ),
    "layernorm_forward": ("normal", "mean / sigma 10", "mean / sigma 29", "one huge element"),
    "layernorm_backward": ("normal", "mean / sigma 29", "gradients around 100", "zeros in gamma"),
}
"""The distributions of the cases by hand that ask of both bounds the same.

The others have rules of their own: a mask of -1e8, which rounds scores away; fully masked rows; deviations so
small that epsilon counts, which may be in the variance or not; means so large that only finite numbers count.
"""


@dataclass
class Compared:
    """What is seen of one output: derived over hand-derived bounds, and shares of the derived one."""

    ratios: list[NDArray[np.float64]]
    right: float = 0.0
    half: float = math.inf

    @property
    def ratio(self) -> NDArray[np.float64]:
        return np.concatenate(self.ratios)


def some_cases(name: str, most: int) -> list[Case]:
    """About ``most`` small cases of each distribution."""
    kept: dict[str, list[Case]] = defaultdict(list)
    for case in KERNELS[name].cases(21):
        small = math.prod(size for size in case.sizes.values() if size) < 40_000
        if case.distribution in CONTENTS[name] and small and case.group != "streams":
            kept[case.distribution].append(case)
    return [case for cases in kept.values() for case in cases[:: max(1, len(cases) // most)]]


def compared(name: str, most: int = 6) -> dict[str, Compared]:
    """The outputs of one kernel over its cases, in every order of summation."""
    by_hand, derived = KERNELS[name], DERIVED[name]
    seen = {one.name: Compared([]) for one in by_hand.arrays if one.role is not Role.INPUT}
    for case in some_cases(name, most):
        given = by_hand.inputs(case)
        if any(array is None for array in given.arrays.values()):
            continue
        hand, ours = by_hand.oracle(case, given), derived.oracle(case, given)
        for output, one in seen.items():
            theirs, mine = hand[output].candidates[0], ours[output].candidates[0]
            counts = np.isfinite(mine.expected) & (np.abs(mine.expected) > 2.0**-120)
            one.ratios.append((mine.allowed / theirs.allowed)[counts])
        for style, outputs in _right(name, given):
            if "epsilon" in style and name.startswith("layernorm"):
                continue  # another value than the formula's, which the problem by hand accepts as well
            for output, share in _shares(ours, outputs).items():
                seen[output].right = max(seen[output].right, share)
        if case.distribution == "normal" and _long(case):
            _, outputs = next(RIGHT[name](given, SUMS["pairwise"]))
            for output, share in _shares(
                ours, {n: rounded(a, torch.float16) for n, a in outputs.items()}
            ).items():
                seen[output].half = min(seen[output].half, share)
    return seen


def _long(case: Case) -> bool:
    return case.sizes.get("to_len", case.sizes.get("softmax_len")) != 1


def _right(name: str, given: Inputs) -> Iterator[tuple[str, Mapping[str, NDArray[Any]]]]:
    """What right kernels make of the inputs, in every style and order of sums."""
    for order in SUMS.values():
        yield from RIGHT[name](given, order)
    if name in RUNNING:
        yield "in one pass", RUNNING[name](given)


def _shares(expected: Mapping[str, Expectation], outputs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """The largest share of the allowed error in each output."""
    shares = {}
    for name, got in outputs.items():
        one = compare(name, expected[name], got)
        normal = (np.abs(one.expected) > 2.0**-120) & (one.bound > 0)
        shares[name] = float(np.max((np.abs(got - one.expected) / one.bound)[normal], initial=0.0))
    return shares


def table() -> list[str]:
    """The comparison in Markdown, a row for each output."""
    lines = [
        "| kernel | output | derived / by hand: median | largest | right kernels use | half precision |",
        "|---|---|---|---|---|---|",
    ]
    for name in DERIVED:
        for output, one in compared(name).items():
            lines.append(
                f"| `{name}` | `{output}` | {np.median(one.ratio):.2f} | {one.ratio.max():.1f} "
                f"| {one.right:.2f} | {one.half:.0f}x |"
            )
    return lines


if __name__ == "__main__":
    print("\n".join(table()))  # noqa: T201 - what the command is for
