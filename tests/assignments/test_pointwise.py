"""The assignment ``pointwise``: some cases of each group; ``nox -s assignments`` runs all of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from grader.assignments.assignment import Assignment, load
from grader.assignments.modules import load_module
from grader.assignments.mutants import table
from grader.problems.problem import KernelProblem
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from grader.problems.problem import Case

FOLDER = Path(__file__).parents[2] / "assignments" / "pointwise"
POINTWISE = load(str(FOLDER))
NAMES = tuple(POINTWISE.problems)
TENSORS: Any = load_module(FOLDER / "problems", "tensors")


def operator(name: str) -> KernelProblem:
    problem = POINTWISE.problems[name]
    assert isinstance(problem, KernelProblem)
    return problem


def firsts(problem: KernelProblem) -> tuple[Case, ...]:
    return tuple({case.group: case for case in reversed(problem.cases(1))}.values())


@pytest.mark.usefixtures("ptx_only")
def test_the_reference_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    # The others' files differ from this one by a line, and each takes long to compile.
    chosen = {name: firsts(operator(name)) for name in NAMES}
    some = {name: replace(operator(name), cases=lambda _, name=name: chosen[name]) for name in NAMES}
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    request = grading.GradingRequest(
        POINTWISE.reference, POINTWISE, ("add",), GradingOptions("sim", "process", "device"), seed=1
    )
    record = grading.grade(request, bench=Bench(remembers=True))
    assert [problem.verdict for problem in record.problems] == [Verdict.PASS]
    assert (record.score.earned, record.score.decided) == (12, 12)


def test_layouts_are_those_of_views_in_pytorch() -> None:
    views = {
        "transposed with gaps": torch.empty(9, 5 + 3)[:, :5].T,
        "every second with odd rows": torch.empty(5, 17)[:, ::2],
        "transposed with every second": torch.empty(9, 10)[:, ::2].T,
        "cut 1": torch.empty(5, 9)[:, :1].expand(5, 9),
        "offset 2 with cut 0": torch.empty(5, 9)[:1].expand(5, 9),
        "broadcast 0 with gaps": torch.empty(12)[:9].expand(5, 9),
    }
    for layout, expected in views.items():
        view = TENSORS.view(layout, (5, 9))
        assert view.strides == expected.stride()
        last = view.offset + 4 * view.strides[0] + 8 * view.strides[1]
        assert last < view.length


def test_each_operand_alone_has_each_layout() -> None:
    layouts = [case.distribution.split(", ")[1].split(" and ") for case in operator("where").cases(1)]
    for layout in ("transposed with gaps", "every second with odd rows", "cut 1"):
        for position in range(3):
            assert TENSORS.alone(layout, position, 3).split(" and ") in layouts


def tensor(array: np.ndarray[Any, Any], dtype: str) -> torch.Tensor:
    """As wide as the arithmetic: what PyTorch on a GPU computes with."""
    if array.dtype == np.uint8:
        return torch.from_numpy(array)
    return torch.from_numpy(array.astype(TENSORS.ARITHMETIC[dtype]))


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_is_what_pytorch_computes(name: str) -> None:
    problem = operator(name)
    for case in problem.cases(1):
        given = problem.inputs(case)
        arrays = {one: tensor(array, case.dtype) for one, array in given.arrays.items() if array is not None}
        assert problem.fused is not None
        computed: Any = problem.fused(arrays, given.scalars)()
        kept = given.arrays["a" if given.arrays["a"] is not None else "b"]
        with np.errstate(over="ignore"):
            stored = computed.numpy().astype(kept.dtype)
        found = stored if stored.dtype.kind == "i" else stored.astype(np.float64)
        (right,) = problem.oracle(case, given).values()
        found = found.reshape(right.candidates[0].expected.shape)
        lost = np.isnan(found)
        known = [(one.expected == found) | (np.isnan(one.expected) & lost) for one in right.candidates]
        assert np.logical_or.reduce(known).all(), case.name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_fused_product_and_sum_is_rounded_once(dtype: str) -> None:
    random = np.random.default_rng(7)
    a, b = (random.standard_normal(500).astype(dtype) for _ in range(2))
    c = -(a * b) * random.choice([1, 1 + 2.0**-20, 2.0**-30, 2.0**30], 500).astype(dtype)
    twice, once = TENSORS.multiply_add(a, b, c)
    np.testing.assert_array_equal(twice, a * b + c)
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)
    ]
    distance = [abs(Fraction(float(value)) - right) for value, right in zip(once, exact, strict=True)]
    for step in (np.inf, -np.inf):
        beside = np.nextafter(once, np.array(step, dtype))
        assert all(
            far <= abs(Fraction(float(value)) - right)
            for far, value, right in zip(distance, beside, exact, strict=True)
        )
    assert (twice != once).sum() > 100


def test_views_agree_with_their_names() -> None:
    assert TENSORS.view("gaps", (2, 3)) == TENSORS.View(12, (6, 1), 0)
    assert TENSORS.view("transposed", (4, 2, 3)) == TENSORS.View(24, (6, 1, 2), 0)
    assert TENSORS.view("broadcast 0 2", (4, 2, 3)) == TENSORS.View(2, (0, 1, 0), 0)
    assert TENSORS.view("offset 3", (5,)) == TENSORS.View(8, (1,), 3)


@pytest.mark.parametrize("name", NAMES)
def test_some_elements_alone_are_judged_alike(name: str) -> None:
    problem = operator(name)
    case = next(one for one in problem.cases(1) if one.distribution.startswith("float16, broadcast 0 and"))
    given = problem.inputs(case)
    index = np.array([3, 500, 17])
    part = problem.slices[0].take(given, index)
    (whole,), (some,) = problem.oracle(case, given).values(), problem.oracle(case, part).values()
    for one, other in zip(whole.candidates, some.candidates, strict=True):
        np.testing.assert_array_equal(one.expected.reshape(-1)[index], other.expected.reshape(-1))


def test_the_generated_variants_are_what_the_generator_writes() -> None:
    module: Any = load_module(FOLDER / "codegen", "generate")
    for one in module.OPERATORS:
        assert (FOLDER / "variants" / one.name / "codegen.cu").read_text() == module.generated(one)


def test_every_mutant_is_an_edit_of_the_reference() -> None:
    mutants = table(POINTWISE)
    assert len(mutants) >= 20
    for mutant in mutants:
        assert mutant.text(POINTWISE)
        assert mutant.group in (*operator(mutant.problem).groups, "memory and concurrency")
