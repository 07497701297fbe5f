"""The bounds that are found by trying: wide enough for float32, too narrow for half precision."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from first_assignment import ASSIGNMENT
from torch.nn import functional

from grader.assignments.modules import load_module
from grader.problems.contents import SUBNORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.rounding import expectations

decoder = load_module(ASSIGNMENT.modules[0], "decoder")
MARGIN = 0.75  # of the allowed error: what a right implementation may use


def tensors(seed: int, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    shapes = {"inp": (3, 7, 12), "upstream": (3, 7, 12), **decoder.layer_shapes(12, 20)}
    made = {name: torch.randn(shape, generator=random) * 0.5 for name, shape in shapes.items()}
    return {name: tensor.to(dtype) for name, tensor in made.items()}


def layer(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in given.items() if name != "upstream"}
    output = decoder.layer(leaves, leaves["inp"], None, 3, iter(()), {})
    gradients = torch.autograd.grad(output, tuple(leaves.values()), given["upstream"])
    return {"output": output.detach(), **dict(zip(leaves, gradients, strict=True))}


def shares(seed: int, rough: dict[str, torch.Tensor]) -> dict[str, float]:
    """The largest share of its allowed error that each result of ``rough`` uses."""
    given = tensors(seed)
    expected = expectations(lambda: layer(given), seed)
    return {
        name: float(np.max(np.abs(value.double().numpy() - one.expected) / one.allowed))
        for name, value in rough.items()
        for one in expected[name].candidates
    }


@pytest.mark.parametrize("seed", range(6))
def test_a_layer_in_float32_stays_within_its_bounds(seed: int) -> None:
    assert max(shares(seed, layer(tensors(seed, torch.float32))).values()) < MARGIN


@pytest.mark.parametrize("name", ["inp", "attention.query.weight", "norm_2.scale", "upstream"])
def test_one_tensor_in_half_precision_does_not(name: str) -> None:
    given = tensors(1, torch.float32)
    given[name] = given[name].half().float()
    assert max(shares(1, layer(given)).values()) > 10


def test_a_bound_does_not_load_pytorchs_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from grader.problems.rounding import expectations\n"
        "expectations(lambda: {'out': torch.ones(4, dtype=torch.float64).exp()}, 1)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_bound_of_a_row_follows_its_size() -> None:
    rows = torch.randn(4, 64, dtype=torch.float64) * torch.tensor([[1.0], [1e-3], [1e3], [1e-6]])
    allowed = expectations(lambda: {"out": rows * rows.sum()}, 1)["out"].candidates[0].allowed
    ratio = allowed[:, 0] / np.abs(rows.numpy()).max(axis=1)
    assert ratio.max() / ratio.min() < 5


def test_the_oracle_agrees_with_pytorch() -> None:
    inp = torch.randn(2, 3, 5, 7, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(2, 3, 5, 7, dtype=torch.float64)
    mask = torch.tensor([[0.0] * 7, [0.0] * 4 + [-torch.inf] * 3], dtype=torch.float64)
    logits = (inp + mask[:, None, None, :]).masked_fill(torch.ones(5, 7).triu(1).bool(), -torch.inf)
    ours, theirs = decoder.softmax(inp, mask, future=True, marks={}), torch.softmax(logits, -1)
    scale, bias = (torch.randn(7, dtype=torch.float64, requires_grad=True) for _ in range(2))
    normalised = decoder.layer_norm(inp, scale, bias, {})
    also = functional.layer_norm(inp, (7,), scale, bias, eps=decoder.EPSILON)
    for mine, other, leaves in ((ours, theirs, (inp,)), (normalised, also, (inp, scale, bias))):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-14)
        gradients = (
            torch.autograd.grad(output, leaves, upstream, retain_graph=True) for output in (mine, other)
        )
        torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


def test_a_sum_by_atomics_that_take_subnormal_numbers_for_zero_is_right() -> None:
    summed = problem(
        id="total",
        file="total.cu",
        launcher="launch_total(float* total, const float* x, int n, cudaStream_t stream)",
        formula=lambda x: x.sum(0, keepdim=True),
        inputs=lambda n: {"x": real(n)},
        sizes={"n": Range(1, 1 << 20)},
    )
    cases = [case for case in summed.cases(1) if case.distribution == SUBNORMAL]
    assert cases
    for case in cases:
        inputs = summed.inputs(case)
        (candidate,) = summed.oracle(case, inputs)["total"].candidates
        parts = inputs.wide("x")
        kept = parts[np.abs(parts) >= 2.0**-126].sum()  # as atomicAdd in global memory adds them
        assert np.abs(kept - candidate.expected) <= candidate.allowed
