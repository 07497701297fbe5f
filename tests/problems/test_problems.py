"""What every problem promises, and what SEMANTICS says of each."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from by_hand import without_grid
from first_assignment import KERNELS

from grader.judge.correctness.comparison import compare
from grader.problems.problem import (
    MEMORY_GROUP,
    ArrayParameter,
    Case,
    Expectation,
    Inputs,
    OnDemand,
    Role,
    ScalarParameter,
)

PROBLEMS = {name: without_grid(problem) for name, problem in KERNELS.items()}
SEED = 31


def usual_cases(problem_id: str) -> list[Case]:
    """Those that run under every order: a million rows differ from fewer in their places alone."""
    return [case for case in PROBLEMS[problem_id].cases(SEED) if case.orders is None]


def only(problem_id: str, distribution: str) -> tuple[object, Inputs]:
    case = next(case for case in PROBLEMS[problem_id].cases(SEED) if case.distribution == distribution)
    return case, PROBLEMS[problem_id].inputs(case)


def test_the_package_finds_the_four_problems() -> None:
    assert set(PROBLEMS) >= {"softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward"}


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_cases_have_names_of_their_own_and_cover_every_group(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    cases = problem.cases(SEED)
    assert len({case.name for case in cases}) == len(cases)
    assert {case.group for case in cases} == set(problem.groups)
    assert MEMORY_GROUP not in problem.groups


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_a_seed_gives_the_same_inputs_again_and_another_seed_others(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    for first, again in zip(problem.cases(SEED), problem.cases(SEED), strict=True):
        assert first == again
    case, other = problem.cases(SEED)[3], problem.cases(SEED + 1)[3]
    name = next(
        p.name for p in problem.parameters if isinstance(p, ArrayParameter) and p.role is not Role.OUTPUT
    )
    one, two, three = (problem.inputs(which).arrays[name] for which in (case, case, other))
    np.testing.assert_array_equal(one, two)
    assert one is not None
    assert three is not None
    assert not np.array_equal(one, three)


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_inputs_and_expectations_name_the_parameters(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    arrays = {p.name: p for p in problem.parameters if isinstance(p, ArrayParameter)}
    scalars = {p.name for p in problem.parameters if isinstance(p, ScalarParameter)}
    for case in problem.cases(SEED):
        given = problem.inputs(case)
        assert set(given.arrays) | set(given.outputs) == set(arrays)
        assert set(given.scalars) == scalars
        shapes = {**given.outputs, **{n: a.shape for n, a in given.arrays.items() if a is not None}}
        expected = problem.oracle(case, given)
        assert set(expected) == {name for name, p in arrays.items() if p.role is not Role.INPUT}
        for name, one in expected.items():
            for candidate in (*one.candidates, *one.further()):
                assert candidate.expected.shape == candidate.allowed.shape == shapes[name]
                assert (candidate.allowed > 0).all()
        for name, array in given.arrays.items():
            assert array is None or array.dtype == np.float32
            assert array is None or name == "attn_mask" or np.isfinite(array).all()


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_a_grading_run_stays_small(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    elements: dict[int | None, int] = {None: 0, 1: 0}
    for case in problem.cases(SEED):
        arrays = problem.inputs(case).arrays.values()
        elements[case.orders] += max(array.size for array in arrays if array is not None)
    assert elements[None] < 2_100_000  # times the orders of execution
    assert elements[1] < 4_500_000


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_one_case_has_more_than_a_million_rows_and_runs_once_and_one_has_enough_for_races(
    problem_id: str,
) -> None:
    orders: dict[int, int | None] = {}
    for case in PROBLEMS[problem_id].cases(SEED):
        sizes = case.sizes
        count = sizes.get("rows") or sizes["batch_size"] * sizes.get("nhead", 1) * sizes.get("from_len", 1)
        orders[count] = case.orders
    assert max(orders) > 1 << 20
    assert orders[max(orders)] == 1
    # Nothing that is a multiple of how many rows a block has, or a grid has blocks, hides a last block.
    assert max(orders) % 4
    assert {orders[count] for count in orders if 1056 <= count < 65_535} == {None}


def test_batches_with_heads_and_queries_are_more_than_a_grid_may_have_blocks_in_y() -> None:
    sizes = [case.sizes for case in PROBLEMS["softmax_forward"].cases(SEED)]
    assert max(one["batch_size"] * one["nhead"] for one in sizes) > 65_535
    assert max(one["from_len"] for one in sizes) > 65_535
    assert max(one["batch_size"] for one in sizes) <= 4096
    assert max(one["nhead"] for one in sizes) <= 64


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_timing_shapes_span_from_launch_bound_to_larger_than_the_l2(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    moved = [problem.minimal_bytes(case) for case in problem.timing_cases(SEED)]
    assert min(moved) < 4_000_000
    assert max(moved) > 4 * 50_000_000


@pytest.mark.parametrize(
    ("problem_id", "name", "sizes"),
    [
        ("softmax_forward", "no mask", 4 * (2 * 2 * 2 * 3 * 20)),
        ("softmax_backward", "short rows", 4 * 3 * 5),
        ("layernorm_forward", "small hidden sizes", 4 * (2 * 5 * 4 + 2 * 4 + 2 * 5)),
        ("layernorm_backward", "small hidden sizes", 4 * (3 * 32 * 4 + 2 * 32 + 3 * 4)),
    ],
)
def test_minimal_bytes_count_every_array_once(problem_id: str, name: str, sizes: int) -> None:
    problem = PROBLEMS[problem_id]
    assert problem.minimal_bytes(next(case for case in problem.cases(SEED) if case.group == name)) == sizes


def test_the_future_mask_needs_only_the_visible_half() -> None:
    problem = PROBLEMS["softmax_forward"]
    case = next(case for case in problem.cases(SEED) if case.name.startswith("2 x 2 x 31 x 31"))
    assert problem.minimal_bytes(case) == 4 * (4 * (31 * 32 // 2 + 31 * 31) + 2 * 31)


def test_a_fully_masked_row_may_be_zeros_uniform_or_nan_and_nothing_else() -> None:
    case, given = only("softmax_forward", "fully masked rows")
    right = PROBLEMS["softmax_forward"].oracle(case, given)["inp"]
    got = right.candidates[0].expected.astype(np.float32)
    row = (1, 0, 0)
    for value in (0.0, 1 / got.shape[-1], np.nan):
        got[row] = value
        assert compare("inp", right, got).right
    got[row] = 0
    got[*row, 0] = 1
    assert compare("inp", right, got).bad > 0
    got[row] = 0
    got[0, 0, 0] = np.nan
    assert compare("inp", right, got).bad == got.shape[-1]


def test_a_finite_mask_on_a_whole_row_leaves_nearly_uniform_weights() -> None:
    case, given = only("softmax_forward", "whole rows at -1e8")
    right = PROBLEMS["softmax_forward"].oracle(case, given)["inp"].candidates[0]
    row = right.expected[1, 0, 0]
    assert np.median(row) == pytest.approx(1 / row.size, rel=0.1)
    assert (right.allowed[1] < 1e-2 * right.expected[1]).all()


def test_no_row_under_the_future_mask_loses_all_its_keys() -> None:
    for seed in range(20):
        for case in PROBLEMS["softmax_forward"].cases(seed):
            if case.sizes["mask_future"]:
                given = PROBLEMS["softmax_forward"].inputs(case)
                assert given.arrays["attn_mask"] is None or not given.arrays["attn_mask"][:, 0].any()


def test_variances_may_hold_epsilon_or_not_but_not_half_of_it() -> None:
    case, given = only("layernorm_forward", "sigma 1e-4")
    right = PROBLEMS["layernorm_forward"].oracle(case, given)["vars"]
    plain = given.wide("inp").var(axis=1)
    for epsilon, good in ((0, True), (1e-8, True), (0.5e-8, False), (1e-7, False)):
        assert compare("vars", right, (plain + epsilon).astype(np.float32)).right is good


def test_far_beyond_the_condition_only_finite_numbers_are_asked_for() -> None:
    case, given = only("layernorm_forward", "mean / sigma 1000")
    expected = PROBLEMS["layernorm_forward"].oracle(case, given)
    for name in ("ln_res", "vars"):
        got = np.full(expected[name].candidates[0].expected.shape, 7, np.float32)
        assert compare(name, expected[name], got).right
        got.flat[0] = np.nan
        assert not compare(name, expected[name], got).right


def test_backward_rows_are_far_from_epsilon() -> None:
    for case in PROBLEMS["layernorm_backward"].cases(SEED):
        assert PROBLEMS["layernorm_backward"].inputs(case).wide("vars").min() >= 0.9999e-4


def test_streams_of_layernorm_backward_are_given_apart_and_together() -> None:
    cases = [case for case in PROBLEMS["layernorm_backward"].cases(SEED) if case.group == "streams"]
    assert {case.same_stream for case in cases} == {True, False}


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_a_call_queued_behind_a_staged_one_has_other_sizes_that_fit_its_arrays(problem_id: str) -> None:
    cases = PROBLEMS[problem_id].cases(SEED)
    assert {case.group == "streams" for case in cases if case.queued} <= {True}
    for case in (case for case in cases if case.staged):
        scalars = PROBLEMS[problem_id].inputs(case).scalars
        assert case.queued.keys() <= scalars.keys()
        assert all(1 <= size <= case.sizes[name] for name, size in case.queued.items())
        assert all(size % 4 == 0 for name, size in case.queued.items() if case.sizes[name] % 4 == 0)
        assert any(size < case.sizes[name] for name, size in case.queued.items())


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_slices_alone_are_expected_to_be_what_they_are_in_the_whole(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    for case in usual_cases(problem_id):
        given = problem.inputs(case)
        whole = problem.oracle(case, given)
        for slices in problem.slices:
            count = slices.count(case)
            index = np.unique(np.random.default_rng(SEED).integers(count, size=5))
            alone = problem.oracle(case, slices.take(given, index))
            for name in slices.outputs:
                candidates = ((*right[name].candidates, *right[name].further()) for right in (alone, whole))
                for one, all_ in zip(*candidates, strict=False):
                    for part in ("expected", "allowed"):
                        got, wanted = getattr(one, part), getattr(all_, part).reshape(count, -1)[index]
                        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_rotated_inputs_have_rotated_outputs(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    for case in (case for case in usual_cases(problem_id) if case.distribution != "exact constants"):
        given = problem.inputs(case)
        arrays = {
            name: np.roll(array, 1, 0) if name in problem.turning and array is not None else array
            for name, array in given.arrays.items()
        }
        right = problem.oracle(case, given)
        turned = problem.oracle(case, Inputs(arrays, given.outputs, given.scalars))
        for name, output in right.items():
            expected = output.candidates[0].expected
            wanted = np.roll(expected, 1, 0) if name in problem.turning else expected
            np.testing.assert_allclose(
                turned[name].candidates[0].expected, wanted, rtol=1e-9, atol=1e-12 * np.nanmax(np.abs(wanted))
            )


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_every_output_belongs_to_one_kind_of_slices(problem_id: str) -> None:
    problem = PROBLEMS[problem_id]
    outputs = [p.name for p in problem.parameters if isinstance(p, ArrayParameter) and p.role != "in"]
    assert sorted(name for slices in problem.slices for name in slices.outputs) == sorted(outputs)


def test_only_the_expectations_that_are_asked_for_are_worked_out() -> None:
    worked_out: list[str] = []

    def expectation(name: str) -> Expectation:
        worked_out.append(name)
        return Expectation(())

    expected = OnDemand({name: partial(expectation, name) for name in ("a", "b")})
    assert (len(expected), list(expected), worked_out) == (2, ["a", "b"], [])
    assert expected["b"] is expected["b"]
    assert worked_out == ["b"]
