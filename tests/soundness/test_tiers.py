"""Each operator of tiers makes the edits that it promises, which take effect in a drawn interval alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from soundness.examples import example

from grader.problems.problem import Range
from grader.soundness import tiers as module
from grader.soundness.kernels import RightKernel, kernel_problems
from grader.soundness.tiers import FAMILY, OPERATORS, tiers

if TYPE_CHECKING:
    from grader.problems.problem import KernelProblem, Space
    from grader.soundness.tiers import Tier

HEAD = "float* z, const float* x, const float* y"
LAUNCHER = f'extern "C" void vector_add({HEAD}, float a, int n, cudaStream_t s)'
KERNEL = f"__global__ void ker({HEAD}, int n) {{{{ {{}} }}}}"
LAUNCH = "ker<<<(n + 127) / 128, 128, 0, s>>>(z, x, y, n);"
SECOND = r"ker_tier<<<.*>>>\(z, x, y, n\); else ker<<<.*>>>\(z, x, y, n\);"
LIMITS = r"n >= \d+( && n < \d+)?"

# What is written in a kernel or in the launcher's body, and what each of its edits must match.
EDITS = {
    "grids": {
        ("", "ker<<<(n + 127) / 128, 128, 0, s>>>(z, x, y, 3);"): [
            rf"<<<\(\(\(n \+ 127\) / 128\) > (\d+) && {LIMITS} \? (\d+) : \(\(n \+ 127\) / 128\)\), 128,",
            rf"<<<\(\(n \+ 127\) / 128\) - \(\(\(n \+ 127\) / 128\) > 1 && {LIMITS}\), 128,",
        ],
        ("", "const dim3 grid(n, 1); ker<<<grid, 128, 0, s>>>(z, x, y, 3);"): [
            rf"grid\(\(\(n\) > (\d+) && {LIMITS} \? (\d+) : \(n\)\), 1\);",
            rf"grid\(\(n\) - \(\(n\) > 1 && {LIMITS}\), 1\);",
        ],
        ("", "ker<<<1, 128, 0, s>>>(z, x, y, 3);"): [],
    },
    "tails": {("", LAUNCH): [rf"\(z, x, y, \({LIMITS} \? n - n % (\d+) : n\)\);"]},
    "second_kernels": {
        ("z[0] = 1;", f"if (n) {LAUNCH}"): [
            rf"void ker_tier\(.*\n\n{re.escape(LAUNCHER)} {{ if \(n\) {{ if \({LIMITS}\) {SECOND} }} }}"
        ]
        * 3,
    },
    "bounds": {
        ("if (i < n) z[i] = 0;", LAUNCH): [rf"if \(i < \(n\) - \({LIMITS}\)\)"],
        ("if (i >= n) return;", LAUNCH): [rf"if \(i >= \(n\) \+ \({LIMITS}\)\)"],
        ("if (x[0] > 0.5f) return;", LAUNCH): [],
        ("if (i < n) z[i] = 0;", "ker<<<1, 128, 0, s>>>(z, x, y, 3);"): [],
    },
    "early_returns": {
        ("z[0] = 1;", LAUNCH): [rf"{{ if \(blockIdx.x >= \d+ && {LIMITS}\) return;  z\[0\] = 1; }}"]
    },
    "scratch": {
        ("", "cudaMallocAsync(&t, 4 * n, s); " + LAUNCH.replace(" 0,", " n,")): [
            rf"\(&t, \({LIMITS} \? \(4 \* n\) / 2 : \(4 \* n\)\), s\)",
            rf"128, \({LIMITS} \? \(n\) / 2 : \(n\)\), s>>>",
        ],
        ("__shared__ float part[64]; part[i] = z[i];", LAUNCH): [
            rf"part\[\({LIMITS} \? \(i\) % \d+ : \(i\)\)\] = z\[i\]"
        ],
    },
    "statics": {
        ("", f"cudaMallocAsync(&t, 4 * n, s); {LAUNCH}"): [
            r"\(&t, \[&\] { static const size_t bytes = 4 \* n; return bytes; }\(\), s\)"
        ],
    },
    "narrow": {
        ("const int i = blockIdx.x * 128, j = 3; float f = n;", LAUNCH): [
            r"int i = static_cast<unsigned short>\(blockIdx.x \* 128\), j = 3; float f = n;"
        ],
        ("__shared__ int own[8]; atomicAdd(c + 1, own[2]); atomicAdd(c, 1);", LAUNCH): [
            r"atomicAdd\(c \+ 1, static_cast<unsigned short>\(own\[2\]\)\)"
        ],
    },
    "products": {
        ("z[blockIdx.x * n] = 2 * 1.5f;", LAUNCH): [r"z\[\(\(blockIdx.x \* n\) & \d+\)\]"],
    },
    "counts": {
        ("const int at = atomicAdd(c, 1); atomicAdd(c, 1);", LAUNCH): [
            r"at = \[&\] { const auto count = atomicAdd\(c, 1\); return count < (\d+) \? count : \1; }\(\);"
        ],
        ("for (int k = starts[3]; k < end; ++k) z[k] = 0;", LAUNCH): [
            r"; \(k < end\) && k - \(starts\[3\]\) < \d+; \+\+k\)"
        ],
        ("for (float f = n; f < 1.5f; ++f) z[0] = f;", LAUNCH): [],
    },
}


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> KernelProblem:
    (known,) = kernel_problems(example(tmp_path_factory.mktemp("tiers") / "own")).values()
    return replace(known, entry_point="vector_add")


@pytest.fixture(scope="module")
def space(problem: KernelProblem) -> Space:
    assert problem.space is not None
    return problem.space


def kernel_of(problem: KernelProblem, kernel: str, body: str) -> RightKernel:
    text = f"{KERNEL.format(kernel)}\n\n{LAUNCHER} {{ {body} }}"
    return RightKernel("reference", problem, {problem.file: text})


def made(space: Space, kernel: RightKernel, operator: str, seed: int = 0) -> list[Tier]:
    """The tiers of one operator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "OPERATORS", (getattr(module, operator),))
        return [tier for _, tier in tiers(kernel, space, seed)]


@pytest.mark.parametrize(
    ("operator", "texts"), [(operator, texts) for operator, edits in EDITS.items() for texts in edits]
)
def test_an_operator_makes_these_edits_and_no_others(
    problem: KernelProblem, space: Space, operator: str, texts: tuple[str, str]
) -> None:
    kernel = kernel_of(problem, *texts)
    (text,) = kernel.files.values()
    edits = made(space, kernel, operator)
    results = [edit.applied(text) for edit in edits]
    wanted = EDITS[operator][texts]
    assert len(results) == len(wanted), results
    for pattern, result in zip(wanted, results, strict=True):
        assert re.search(pattern, result, re.DOTALL), result


def test_every_operator_is_tested() -> None:
    assert {operator.__name__ for operator in OPERATORS} == EDITS.keys()


def test_the_condition_in_the_text_is_the_interval(problem: KernelProblem, space: Space) -> None:
    kernel = kernel_of(problem, "if (i < n) z[i] = 0;", LAUNCH)
    ends = set()
    for seed in range(40):
        (tier,) = made(space, kernel, "bounds", seed)
        (limit,) = tier.interval.limits
        assert limit.sizes == ("n",)
        for value in (limit.low - 1, limit.low, limit.high or limit.low + 1, (limit.high or 2) - 1):
            condition = tier.new.partition(" - ")[2].replace("&&", "and")
            assert eval(condition, {"n": value}) is tier.interval.holds({"n": value})
        assert f"`i < n` has `(n) - 1` where {tier.interval}" == tier.reason
        assert tier.needs == str(tier.interval)
        assert tier.operator == f"{FAMILY}bound"
        ends.add(limit.high is None)
    assert ends == {True, False}


def test_a_seed_draws_the_same_again(problem: KernelProblem, space: Space) -> None:
    kernel = kernel_of(problem, "if (i < n) z[i] = 0;", LAUNCH)
    assert tiers(kernel, space, 3) == tiers(kernel, space, 3) != tiers(kernel, space, 4)


def test_two_sizes_have_limits_of_their_own_and_of_their_product(
    problem: KernelProblem, space: Space
) -> None:
    two = replace(
        space,
        ranges={"n": Range(1, 1 << 20), "m": Range(1, 1 << 20)},
        elements=lambda sizes: sizes["n"] * sizes["m"],
    )
    parameters = [replace(one, name="m") if one.name == "a" else one for one in problem.parameters]
    known = replace(problem, parameters=tuple(parameters), entry_point="vector_add")
    text = kernel_of(known, "", LAUNCH).files[known.file].replace("float a", "int m")
    kernel = RightKernel("reference", known, {known.file: text})
    drawn = {
        tuple(limit.sizes for limit in tier.interval.limits): tier.new
        for seed in range(40)
        for tier in made(two, kernel, "tails", seed)
    }
    assert drawn.keys() == {(("n",),), (("m",),), (("m",), ("n",)), (("m", "n"),)}
    assert re.search(r"m >= \d+ && n >= \d+ \?", drawn[("m",), ("n",)])
    assert re.search(r"static_cast<long long>\(m\) \* n >= \d+", drawn[(("m", "n"),)])
