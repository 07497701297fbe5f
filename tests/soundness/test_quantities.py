"""Which integers of a kernel's functions hold sizes, as calls, launches and locals tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from soundness.examples import example

from grader.soundness.kernels import RightKernel, kernel_problems
from grader.soundness.quantities import scopes

if TYPE_CHECKING:
    from grader.problems.problem import KernelProblem

LAUNCHER = (
    'extern "C" void vector_add(float* z, const float* x, const float* y, float a, int n, cudaStream_t s)'
)
KERNEL = "__global__ void ker(float* z, int length) { z[0] = length; }"


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> KernelProblem:
    (known,) = kernel_problems(example(tmp_path_factory.mktemp("quantities") / "own")).values()
    return replace(known, entry_point="vector_add")


def held(problem: KernelProblem, text: str, function: str) -> dict[str, tuple[str, ...]]:
    """What the integers of a function hold."""
    kernel = RightKernel("reference", problem, {problem.file: text})
    (scope,) = (scope for scope in scopes(kernel, {"n"}) if scope.function.name == function)
    return dict(scope.quantities)


@pytest.mark.parametrize(
    ("body", "quantities"),
    [
        ("ker<<<1, 32, 0, s>>>(z, n);", {"length": ("n",)}),
        ("ker<<<1, 32, 0, s>>>(z, static_cast<int>(n));", {"length": ("n",)}),
        ("const int all = (long)n * n; ker<<<1, 32, 0, s>>>(z, all);", {"length": ("n", "n")}),
        ("const auto launched = n % 4 ? ker : ker; launched<<<1, 32, 0, s>>>(z, n);", {"length": ("n",)}),
        ("ker<<<1, 32, 0, s>>>(z, n / 4);", {}),
        ("n /= 4; ker<<<1, 32, 0, s>>>(z, n);", {}),
        ("ker<<<1, 32, 0, s>>>(z, n); ker<<<1, 32, 0, s>>>(z, 1);", {}),
        ("auto run = [=](int n) { ker<<<1, 32, 0, s>>>(z, n); }; run(1);", {}),
        ("auto run = [=](auto k) { k<<<1, 32, 0, s>>>(z, 1); }; run(ker); ker<<<1, 32>>>(z, n);", {}),
    ],
)
def test_a_parameter_holds_what_every_launch_passes(
    problem: KernelProblem, body: str, quantities: dict[str, tuple[str, ...]]
) -> None:
    assert held(problem, f"{KERNEL}\n{LAUNCHER} {{ {body} }}", "ker") == quantities


def test_a_function_that_calls_itself_learns_from_the_other_calls(problem: KernelProblem) -> None:
    text = (
        f"{KERNEL}\ntemplate <int W> static void launch(float* z, int rows, cudaStream_t s) {{\n"
        "  if constexpr (W < 4) return launch<2 * W>(z, rows, s);\n  ker<<<W, 32, 0, s>>>(z, rows);\n}\n"
        f"{LAUNCHER} {{ launch<1>(z, n, s); }}"
    )
    assert held(problem, text, "launch") == {"rows": ("n",)}
    assert held(problem, text, "ker") == {"length": ("n",)}


def test_what_nothing_calls_is_left_out(problem: KernelProblem) -> None:
    kernel = RightKernel("reference", problem, {problem.file: f"{KERNEL}\n{LAUNCHER} {{ }}"})
    assert [scope.function.name for scope in scopes(kernel, {"n"})] == ["vector_add"]
