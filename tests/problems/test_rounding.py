"""The bounds that are found by trying: wide enough for float32, too narrow for half precision."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from first_assignment import ASSIGNMENT
from torch.nn import functional

from grader.assignments.modules import load_module
from grader.problems.contents import SUBNORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.rounding import Rounding, expectations
from grader.problems.scalars import ExactSizes, in_python

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.mark.parametrize("operation", [torch.sum, torch.mean])
def test_equal_terms_may_be_rounded_to_the_same_side(operation: Callable[..., torch.Tensor]) -> None:
    terms = torch.full((4, 3001), 1.0009, dtype=torch.float64)
    terms[:, 0] = 2.0**14
    terms[1::2, 1:] += torch.rand(3000, dtype=torch.float64)  # rows without equal terms
    result = expectations(lambda: {"out": operation(terms, -1, keepdim=True)}, 1)["out"].candidates[0]
    total = np.float32(0)
    for term in terms[0].numpy().astype(np.float32):
        total += term
    off = abs(float(total) / (3001 if operation is torch.mean else 1) - result.expected[0, 0])
    assert off / result.allowed[0, 0] < MARGIN
    assert off > 2 * result.allowed[1, 0]  # elsewhere the bound is no wider than it was


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, **named: torch.cumsum(x, 0, **named),
        lambda x, **named: torch.matmul(x, x, **named),
        lambda x, **named: torch.add(x, x, alpha=3.0, **named),
    ],
)
def test_what_an_operation_fills_has_the_bound_of_its_result(operation: Callable[..., torch.Tensor]) -> None:
    x = torch.randn(40, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def filled() -> dict[str, torch.Tensor]:
        y = torch.empty_like(x)
        operation(x, out=y)
        return {"y": y}

    returned = expectations(lambda: {"y": operation(x)}, 1)["y"].candidates[0]
    in_place = expectations(filled, 1)["y"].candidates[0]
    assert in_place.allowed == pytest.approx(returned.allowed)


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


KEEP = 0.9999


def _left(number: float) -> float:
    return (1 - KEEP) * number


def _power(number: Any, exponent: int) -> Any:  # noqa: ANN401 - of the type of the number
    return number if exponent == 1 else number * _power(number, exponent - 1)


SCALARS = {
    "a literal": (
        0.1,
        lambda x: torch.where(x > 0.1, x - 0.1, 0.0),
        lambda kind, x, *_: np.where(x > kind(0.1), x - kind(0.1), kind(0)),
    ),
    "a quotient": (0.1 / 4099, lambda x, n: x - 0.1 / n, lambda kind, x, _a, _b, n: x - kind(0.1) / kind(n)),
    "a product near one": (
        0.1,
        lambda x, a, b: (1 - a * b) * x,
        lambda kind, x, a, b, _n: (kind(1) - a * b) * x,
    ),
    "a power near one": (
        0.1,
        lambda x, a: x / (1 - a**3),
        lambda kind, x, a, *_: x / (kind(1) - a * a * a),
    ),
    "a root": (
        1 / math.sqrt(4099),
        lambda x, n: x - 1 / math.sqrt(n),
        lambda kind, x, _a, _b, n: x - kind(1) / np.sqrt(kind(n)),
    ),
    "a power of a constant near one": (
        0.1,
        lambda x: x / sum(1 - 0.999**step for step in range(1, 4)),
        lambda kind, x, *_: x / sum(kind(1) - _power(kind(0.999), step) for step in range(1, 4)),
    ),
    "a constant of the module": (
        0.1,
        lambda x, keep=KEEP: x * _left(1000.1 - 999.9) + 0 * keep,
        lambda kind, x, *_: x * (kind(1) - kind(KEEP)) * (kind(1000.1) - kind(999.9)),
    ),
    "a constant of an exact operation": (
        0.1,
        lambda x: x - x.clamp(max=0.1),
        lambda kind, x, *_: x - np.minimum(x, kind(0.1)),
    ),
}
"""What x is near to, formulas that compute with numbers in Python, and the same with numbers of a type."""


def share_of_scalars(name: str, kind: type[np.floating[Any]]) -> float:
    """How much of the allowed error a program uses that computes with numbers of this type."""
    near, formula, right = SCALARS[name]
    asked = problem(
        id="scaled",
        file="scaled.cu",
        launcher="launch_scaled(float* y, const float* x, float a, float b, int n, cudaStream_t stream)",
        formula=formula,
        inputs=lambda n: {"x": real(n), "a": 0.9973, "b": 1.0021},
        sizes={"n": Range(1, 1 << 16)},
    )
    case = asked.space.case("exact", {"n": 4099}, "normal", 5)
    inputs = asked.inputs(case)
    x = inputs.arrays["x"]
    x[:] = near * (1 + np.linspace(-1e-4, 1e-4, 4099))
    (expectation,) = asked.oracle(case, inputs).values()
    (one,) = expectation.candidates
    y = right(kind, x, kind(inputs.scalars["a"]), kind(inputs.scalars["b"]), kind(4099))
    return float(np.max(np.abs(y.astype(np.float64) - one.expected) / one.allowed))


@pytest.mark.parametrize("name", SCALARS)
def test_numbers_of_a_formula_may_be_computed_in_float32(name: str) -> None:
    assert share_of_scalars(name, np.float32) < MARGIN


@pytest.mark.parametrize("name", SCALARS)
def test_numbers_of_a_formula_may_not_be_computed_in_half_precision(name: str) -> None:
    assert share_of_scalars(name, np.float16) > 10


def test_numbers_that_float32_holds_make_no_error() -> None:
    with Rounding(None) as counter:
        torch.ones(4, dtype=torch.float64).clamp(min=2.5)
    assert counter.inexact == 0


def test_numbers_of_a_formula_are_those_of_python() -> None:
    n, a = in_python(12, lambda value, _: value), in_python(1.5, lambda value, _: value)
    assert (n // 5, n % 5, pow(n, 2, 7), 2**n, -n, n * n - 1) == (2, 2, 4, 4096, -12, 143)
    assert (a / n, n / a, 1 - a**2, abs(-a), n**-1, a + True) == (0.125, 8.0, -1.25, 1.5, 1 / 12, 2.5)
    assert torch.zeros(n, 2).shape == (12, 2)
    tenth = in_python(0.1, lambda value, _: value * (1 + 1e-7))
    assert (int(tenth * 30), round(tenth * 5), tenth * 10 == 1, math.ceil(tenth * 10)) == (3, 0, True, 1)
    with ExactSizes():
        assert len(torch.arange(0, 1, tenth * 0.1)) == 100
    assert len(range(n)) == 12
    with pytest.raises(TypeError):
        a + "1"
