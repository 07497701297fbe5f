"""Calibration of the tolerances: right float32 implementations pass with margin, wrong ones fail.

The implementations are emulations: sums in the orders that kernels use, and fast intrinsics off by as
much as the CUDA C++ Programming Guide allows, in a random direction for each value.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from by_hand import without_grid
from first_assignment import KERNELS

from grader.judge.correctness.comparison import compare
from grader.problems.bounds import PRECISIONS, additions, allowed, partial_sum, sum_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Case, Expectation, Inputs

    Floats = NDArray[np.float32]
    Sum = Callable[[Floats], Floats]  # over the last axis, which stays with length 1
    Outputs = Mapping[str, Floats]
    Styles = Iterator[tuple[str, Outputs]]  # each with its name, computed when it is asked for

PROBLEMS = {name: without_grid(problem) for name, problem in KERNELS.items()}
ULP = 2.0**-23
MARGIN = 0.75  # of the allowed error: what the worst right implementation may use


# How kernels add, divide and take powers.


def serial(terms: Floats) -> Floats:
    return np.add.accumulate(terms, axis=-1, dtype=np.float32)[..., -1:]


def pairwise(terms: Floats) -> Floats:
    return np.ascontiguousarray(terms).sum(axis=-1, keepdims=True, dtype=np.float32)


def tree(terms: Floats, threads: int) -> Floats:
    """Every thread adds its own elements one after another, then halves are added to halves."""
    padding = -terms.shape[-1] % threads
    padded = np.pad(terms, [(0, 0)] * (terms.ndim - 1) + [(0, padding)])
    lanes = serial(np.swapaxes(padded.reshape(*terms.shape[:-1], -1, threads), -1, -2))[..., 0]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes


SUMS: Mapping[str, Sum] = {
    "serial": serial,
    "pairwise": pairwise,
    "warp tree": lambda terms: tree(terms, 32),
    "block tree": lambda terms: tree(terms, 256),
}


def off(values: NDArray[np.float64], ulps: NDArray[np.float64] | float) -> Floats:
    """``values`` moved by ``ulps`` of themselves, up or down, results below 2^-126 flushed to zero."""
    random = np.random.default_rng(zlib.crc32(np.ascontiguousarray(values).tobytes()))
    moved = values * (1 + random.choice([-1.0, 1.0], values.shape) * ulps * ULP)
    return np.where(np.abs(moved) < 2.0**-126, 0, moved).astype(np.float32)


def fast_exp(x: Floats) -> Floats:
    finite = np.where(np.isfinite(x), x, -1000).astype(np.float64)
    return off(np.exp(finite), np.where(finite == 0, 0, 2 + np.floor(np.abs(1.173 * finite))))  # 2^0 is exact


def fast_divide(a: Floats, b: Floats) -> Floats:
    return off(a.astype(np.float64) / b, 2)


def fast_rsqrt(x: Floats) -> Floats:
    return off(1 / np.sqrt(x.astype(np.float64)), 2)


# Right implementations.


def logits(given: Inputs) -> Floats:
    scores, mask = given.arrays["inp"], given.arrays["attn_mask"]
    assert scores is not None
    out = scores.copy() if mask is None else scores + mask[:, None, None, :]
    if given.scalars["mask_future"]:
        out[..., np.triu(np.ones(out.shape[2:], np.bool_), k=1)] = -np.inf
    return np.asarray(out, np.float32)


def softmax_right(given: Inputs, total: Sum) -> Styles:
    row = logits(given)
    top = row.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
        x = np.where(np.isneginf(top), -np.inf, row - top).astype(np.float32)
        plain, epsilon = np.exp(x), np.float32(1e-8)
        yield "plain", {"inp": plain / total(plain)}
        yield "with epsilon", {"inp": plain / (total(plain) + epsilon)}
        fast = fast_exp(x)
        yield "fast intrinsics", {"inp": fast_divide(fast, total(fast) + epsilon)}
        yield "reciprocal", {"inp": fast * fast_divide(np.ones_like(top), total(fast) + epsilon)}
        if np.abs(top[np.isfinite(top)]).max() < 2048:  # a mask of -1e8 swallows the logarithm
            yield "logarithm of the sum", {"inp": np.exp(row - (top + np.log(total(plain))))}
        if np.abs(top[np.isfinite(top)]).max() < 50:  # without an fma the two products round differently
            base = row * np.float32(1.4426950408889634) - top * np.float32(1.4426950408889634)
            yield "powers of two", {"inp": np.exp2(base) / total(np.exp2(base))}


@np.errstate(invalid="ignore")
def online(given: Inputs) -> Outputs:
    """A running maximum and a running sum that is rescaled when the maximum grows."""
    row = logits(given)
    top = np.full((*row.shape[:-1],), -np.inf, np.float32)
    total = np.zeros_like(top)
    for column in range(row.shape[-1]):
        x = row[..., column]
        new = np.maximum(top, x)
        kept = fast_exp(np.where(np.isneginf(new), np.float32(0), top - new))
        total = total * kept + fast_exp(np.where(np.isneginf(new), -np.inf, x - new))
        top = new
    return {"inp": fast_divide(fast_exp(row - top[..., None]), total[..., None])}


def softmax_backward_right(given: Inputs, total: Sum) -> Styles:
    g, s = (np.asarray(given.arrays[name], np.float32) for name in ("out_grad", "soft_inp"))
    dot = total(g * s)
    yield "as written", {"out_grad": s * (g - dot)}
    yield "products first", {"out_grad": g * s - s * dot}


def normalised(
    given: Inputs, mean: Floats, variance: Floats, root: Floats, *, fused: bool = False
) -> Outputs:
    x, scale, bias = (np.asarray(given.arrays[name], np.float32) for name in ("inp", "scale", "bias"))
    slope = scale * root
    result = x * slope + (bias - mean * slope) if fused else (x - mean) * root * scale + bias
    return {"ln_res": result, "vars": variance[:, 0], "means": mean[:, 0]}


def layernorm_right(given: Inputs, total: Sum) -> Styles:
    x = np.asarray(given.arrays["inp"], np.float32)
    n, epsilon = np.float32(x.shape[1]), np.float32(1e-8)
    mean = total(x) / n
    two_pass = total((x - mean) ** 2) / n
    exact, fast = 1 / np.sqrt(two_pass + epsilon), fast_rsqrt(two_pass + epsilon)
    yield "two passes", normalised(given, mean, two_pass, exact)
    yield "two passes, vars with epsilon", normalised(given, mean, two_pass + epsilon, fast)
    yield "two passes, fused", normalised(given, mean, two_pass, fast, fused=True)
    squares = np.maximum(total(x * x) / n - mean * mean, np.float32(0))
    fast = fast_rsqrt(squares + epsilon)
    yield "E[x^2] - E[x]^2", normalised(given, mean, squares, fast)
    yield "E[x^2] - E[x]^2, fused", normalised(given, mean, squares, fast, fused=True)


def welford(given: Inputs) -> Outputs:
    """A running mean and a running sum of squares."""
    x = np.asarray(given.arrays["inp"], np.float32)
    mean, m2 = np.zeros((x.shape[0], 1), np.float32), np.zeros((x.shape[0], 1), np.float32)
    for count in range(x.shape[1]):
        value = x[:, count : count + 1]
        delta = value - mean
        mean = mean + delta / np.float32(count + 1)
        m2 = m2 + delta * (value - mean)
    variance = m2 / np.float32(x.shape[1])
    return normalised(given, mean, variance, fast_rsqrt(variance + np.float32(1e-8)))


def layernorm_backward_right(given: Inputs, total: Sum) -> Styles:
    names = ("out_grad", "inp", "gamma", "vars", "means")
    g, x, gamma, variance, mean = (np.asarray(given.arrays[name], np.float32) for name in names)
    n = np.float32(x.shape[1])

    def outputs(root: Floats, xhat: Floats) -> Outputs:
        d = g * gamma
        return {
            "gamma_grad": total((g * xhat).T)[:, 0],
            "betta_grad": total(g.T)[:, 0],
            "inp_grad": (d - (total(d) + xhat * total(d * xhat)) / n) * root,
        }

    exact = 1 / np.sqrt(variance + np.float32(1e-8))[:, None]
    fast = fast_rsqrt(variance)[:, None]
    yield "epsilon again", outputs(exact, (x - mean[:, None]) * exact)
    yield "fast root", outputs(fast, (x - mean[:, None]) * fast)
    yield "fused", outputs(fast, x * fast - mean[:, None] * fast)


RIGHT: Mapping[str, Callable[[Inputs, Sum], Styles]] = {
    "softmax_forward": softmax_right,
    "softmax_backward": softmax_backward_right,
    "layernorm_forward": layernorm_right,
    "layernorm_backward": layernorm_backward_right,
}
RUNNING: Mapping[str, Callable[[Inputs], Outputs]] = {"softmax_forward": online, "layernorm_forward": welford}
"""Those that go through a row once, in the one order that this leaves."""


def usual_cases(problem_id: str, seed: int) -> list[Case]:
    """Those that run under every order: a million rows differ from fewer in their places alone."""
    return [case for case in PROBLEMS[problem_id].cases(seed) if case.orders is None]


def judged(expected: Mapping[str, Expectation], outputs: Outputs) -> tuple[bool, float]:
    """Whether all outputs are right, and the largest share of the allowed error."""
    compared = [compare(name, expectation, outputs[name]) for name, expectation in expected.items()]
    share = 0.0
    for one in compared:
        normal = (np.abs(one.expected) > 2.0**-125) & np.isfinite(one.bound)  # others may be flushed
        error = np.abs(outputs[one.name] - one.expected)
        share = max(share, float(np.max(error / one.bound, initial=0.0, where=normal)))
    return all(one.right for one in compared), share


@pytest.mark.parametrize("problem_id", RIGHT)
@pytest.mark.parametrize("order", SUMS)
def test_right_float32_implementations_pass_with_margin(problem_id: str, order: str) -> None:
    problem = PROBLEMS[problem_id]
    for case in problem.cases(11) if order == "serial" else usual_cases(problem_id, 11):
        given = problem.inputs(case)
        expected = problem.oracle(case, given)
        for style, outputs in RIGHT[problem_id](given, SUMS[order]):
            assert_right_with_margin(f"{style}: {case.name}", expected, outputs)


@pytest.mark.parametrize("problem_id", RUNNING)
def test_right_float32_implementations_with_running_sums_pass_with_margin(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    for case in problem.cases(11):
        given = problem.inputs(case)
        assert_right_with_margin(case.name, problem.oracle(case, given), RUNNING[problem_id](given))


def assert_right_with_margin(name: str, expected: Mapping[str, Expectation], outputs: Outputs) -> None:
    right, share = judged(expected, outputs)
    assert right, f"{name}: {share:.2f} of the allowed error"
    assert share <= MARGIN, f"{name}: {share:.2f} of the allowed error"


# Wrong precision.


def rounded(values: NDArray[np.generic], dtype: torch.dtype) -> Floats:
    narrow = torch.from_numpy(values.astype(np.float32)).to(dtype).float().numpy()
    return np.asarray(narrow, np.float32)


def with_inputs(given: Inputs, dtype: torch.dtype, *names: str) -> Inputs:
    arrays = {
        name: rounded(array, dtype) if name in names else array
        for name, array in given.arrays.items()
        if array is not None
    }
    return type(given)({**given.arrays, **arrays}, given.outputs, given.scalars)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("where", ["inputs", "outputs"])
@pytest.mark.parametrize("problem_id", RIGHT)
def test_half_precision_inside_fails_at_every_length(problem_id: str, where: str, dtype: torch.dtype) -> None:
    for case in usual_cases(problem_id, 12):
        if case.distribution != "normal" or case.sizes.get("to_len", case.sizes.get("softmax_len")) == 1:
            continue
        given = PROBLEMS[problem_id].inputs(case)
        names = ("inp", "out_grad", "soft_inp") if where == "inputs" else ()
        _, outputs = next(RIGHT[problem_id](with_inputs(given, dtype, *names), pairwise))
        if where == "outputs":
            outputs = {name: rounded(values, dtype) for name, values in outputs.items()}
        right, share = judged(PROBLEMS[problem_id].oracle(case, given), outputs)
        assert not right, f"{case.name}: {share:.2f} of the allowed error"


def test_a_sum_in_half_precision_fails_at_every_length() -> None:
    """Exponentials and sums rounded to half, everything else in float32."""
    for case in usual_cases("softmax_forward", 13):
        if case.distribution != "normal" or case.sizes["to_len"] == 1:
            continue
        given = PROBLEMS["softmax_forward"].inputs(case)
        row = logits(given)
        powers = rounded(np.exp(row - row.max(axis=-1, keepdims=True)), torch.float16)
        expected = PROBLEMS["softmax_forward"].oracle(case, given)
        right, _ = judged(expected, {"inp": powers / pairwise(powers)})
        assert not right, case.name


# Wrong formulas.


@pytest.mark.parametrize("problem_id", RIGHT)
def test_every_typical_bug_fails_somewhere(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    passed = set(problem.bugs)
    for case in usual_cases(problem_id, 14):
        given = problem.inputs(case)
        expected = problem.oracle(case, given)
        best = {name: one.candidates[0].expected for name, one in expected.items()}
        for bug in sorted(passed):
            with np.errstate(all="ignore"):
                outputs = {**best, **problem.bugs[bug](given)}
                right, _ = judged(expected, {n: v.astype(np.float32) for n, v in outputs.items()})
            passed -= set() if right else {bug}
    assert not passed


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("problem_id", RIGHT)
def test_a_constant_output_fails_on_every_case(problem_id: str, value: float) -> None:
    problem = PROBLEMS[problem_id]
    for case in usual_cases(problem_id, 15):
        given = problem.inputs(case)
        if case.distribution == "mean / sigma 1000" or 1 in {
            case.sizes.get("to_len"),
            case.sizes.get("softmax_len"),
        }:
            continue  # only finite numbers are asked for; a row of length 1 is constant
        expected = problem.oracle(case, given)
        outputs = {
            name: np.full(one.candidates[0].expected.shape, value, np.float32)
            for name, one in expected.items()
        }
        assert not any(
            compare(name, one, outputs[name]).right for name, one in expected.items() if name != "vars"
        )


def test_wrong_constants_of_the_course_s_old_checks_fail() -> None:
    """Zeros in a long softmax, and LayerNorm with epsilon 1e-3: both passed a tolerance of 1e-3."""
    softmax = PROBLEMS["softmax_forward"]
    long = next(case for case in softmax.cases(16) if case.sizes["to_len"] == 2048)
    given = softmax.inputs(long)
    expected = softmax.oracle(long, given)["inp"]
    got = expected.candidates[0].expected.astype(np.float32)
    got[..., 1024:] = 0
    assert compare("inp", expected, got).bad == got[..., 1024:].size


# The pieces.


def test_additions_grow_like_the_length_first_and_its_root_later() -> None:
    assert additions(1) == 1
    assert additions(32) == 32
    assert additions(8192) < 600


@pytest.mark.parametrize("count", [100, 8188, 50_000])
def test_equal_terms_that_are_added_one_after_another_stay_within_the_bound(count: int) -> None:
    """Their errors are all to one side, octave by octave: they are not independent."""
    values = np.random.default_rng(1).uniform(1, 16, (200, 1)).astype(np.float32)
    terms = np.repeat(values, count, axis=1)
    wide = terms.astype(np.float64)
    off = np.abs(serial(terms) - wide.sum(1, keepdims=True))
    assert (off <= sum_error(wide, 1, 0, 2.0**-24)).all()


def test_a_partial_sum_never_exceeds_the_sum_of_magnitudes() -> None:
    terms = np.random.default_rng(1).standard_normal((50, 200))
    bound = partial_sum(terms, 1)
    assert (bound <= np.abs(terms).sum(axis=1, keepdims=True)).all()
    assert (bound >= np.abs(np.cumsum(terms, axis=1)).max(axis=1, keepdims=True)).all()


def test_half_problems_get_room_for_storing_their_outputs_and_no_more() -> None:
    value = np.array([1.0])
    for dtype, unit in (("float16", 2.0**-11), ("bfloat16", 2.0**-8)):
        bound = allowed(np.zeros(1), value, PRECISIONS[dtype])
        assert unit <= bound[0] <= 4 * unit
