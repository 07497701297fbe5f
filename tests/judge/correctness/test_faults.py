"""Kernels of each kind of fault, computed here thread by thread, are told apart by what they give."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pytest
from test_diagnosis import PROBLEMS, a_case, told

from grader.judge.correctness.diagnosis.evidence import Match
from grader.judge.correctness.diagnosis.faults import LEAST_COLUMNS, ONES, SURE, usual, variations
from grader.judge.correctness.diagnosis.programs import steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.problems.problem import Case

    Totals = Callable[[np.ndarray], np.ndarray]

THREADS = 96  # of a block that owns a row
HAND_ON = "only the first warp gets the result of a reduction, the others keep that of their own"


def held(row: np.ndarray) -> list[float]:
    """What each thread has added up of its columns."""
    return [float(row[thread::THREADS].sum()) for thread in range(THREADS)]


def without_w(row: np.ndarray) -> np.ndarray:
    return np.full(row.size, float(np.delete(row, np.s_[3::4]).sum()))


def to_columns(values: list[float], columns: int) -> np.ndarray:
    return np.array([values[column % THREADS] for column in range(columns)])


def first_warp_for_all(row: np.ndarray) -> np.ndarray:
    return to_columns([sum(held(row)[:32])] * THREADS, row.size)


def first_warp_alone(row: np.ndarray) -> np.ndarray:
    sums = held(row)
    own = [sum(sums[thread // 32 * 32 : thread // 32 * 32 + 32]) for thread in range(THREADS)]
    return to_columns([sum(sums)] * 32 + own[32:], row.size)


def own_warp(row: np.ndarray) -> np.ndarray:
    sums = held(row)
    return to_columns(
        [sum(sums[thread // 32 * 32 : thread // 32 * 32 + 32]) for thread in range(THREADS)], row.size
    )


def own_warp_twice(row: np.ndarray) -> np.ndarray:
    return own_warp(row) + float(row.sum())


def own_part_twice(row: np.ndarray) -> np.ndarray:
    return to_columns(held(row), row.size) + float(row.sum())


def first_thread_alone(row: np.ndarray) -> np.ndarray:
    return to_columns([float(row.sum()), *held(row)[1:]], row.size)


def odd_tree(row: np.ndarray) -> np.ndarray:
    slots, half = held(row), THREADS // 2
    while half:
        for thread in range(half):
            slots[thread] += slots[thread + half]
        half //= 2
    return to_columns([slots[0]] * THREADS, row.size)


def last_turn(row: np.ndarray) -> np.ndarray:
    return to_columns([sum(float(row[thread::THREADS][-1]) for thread in range(THREADS))] * THREADS, row.size)


def shuffled_down(row: np.ndarray) -> np.ndarray:
    lanes = [float(row[lane::32].sum()) for lane in range(32)]
    for offset in (16, 8, 4, 2, 1):
        lanes = [lanes[lane] + lanes[lane + offset if lane + offset < 32 else lane] for lane in range(32)]
    return np.array([lanes[column % 32] for column in range(row.size)])


FAULTS = [
    (first_warp_for_all, "one warp's result is used for the whole block"),
    (first_warp_alone, HAND_ON),
    (own_warp, "each warp uses a result of its own"),
    (own_warp_twice, "each warp counts its own part of a sum twice"),
    (own_part_twice, "each thread counts its own part of a sum twice"),
    (first_thread_alone, "or its result stays with the first thread"),
    (odd_tree, "halves a number of threads that is no power of two"),
    (last_turn, "only the last column of each thread counts"),
    (shuffled_down, "only the first lane of a warp gets the result of __shfl_down_sync"),
]


def layernorm(got: dict[str, np.ndarray], given: dict[str, np.ndarray], totals: Totals) -> None:
    """Forward as E[x^2] - E[x]^2 with faulty sums; the first thread writes the statistics."""
    x = given["inp"].astype(np.float64)
    mean = totals(x) / x.shape[1]
    variance = totals(x * x) / x.shape[1] - mean**2
    got["means"][:], got["vars"][:] = mean[:, 0], variance[:, 0]
    root = np.sqrt(np.maximum(variance, 0) + 1e-8)
    got["ln_res"][:] = (x - mean) / root * given["scale"] + given["bias"]


def softmax_backward(got: dict[str, np.ndarray], given: dict[str, np.ndarray], totals: Totals) -> None:
    grad, soft = given["out_grad"].astype(np.float64), given["soft_inp"]
    got["out_grad"][:] = soft * (grad - totals(grad * soft))


def layernorm_backward(got: dict[str, np.ndarray], given: dict[str, np.ndarray], totals: Totals) -> None:
    root = 1 / np.sqrt(given["vars"].astype(np.float64)[:, None])
    h, d = (given["inp"] - given["means"][:, None]) * root, given["out_grad"] * given["gamma"]
    got["inp_grad"][:] = root * (d - (totals(d) + h * totals(d * h)) / d.shape[1])


@pytest.mark.parametrize(("fault", "words"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
@pytest.mark.parametrize(
    ("problem_id", "sizes", "kernel"),
    [
        ("layernorm_forward", "5 x 256", layernorm),
        ("softmax_backward", "8 x 257", softmax_backward),
        ("layernorm_backward", "32 x 256", layernorm_backward),
    ],
)
def test_a_faulty_reduction_is_named_in_every_problem(
    problem_id: str, sizes: str, kernel: Callable, fault: Totals, words: str
) -> None:
    case = a_case(problem_id, sizes)
    given = PROBLEMS[problem_id].inputs(case).arrays

    def change(got: dict[str, np.ndarray]) -> None:
        kernel(got, given, lambda values: np.array([fault(row) for row in values]))

    assert words in told(problem_id, case, change)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_program_without_a_fault_is_right(problem: object) -> None:
    case = next(case for case in problem.cases(3) if 40 < prod(filter(None, case.sizes.values())) < 4000)
    given = problem.inputs(case)
    right = problem.oracle(case, given)
    for way in (problem.unfused, *problem.other_ways):
        made = steps_of(way(case), given.arrays).outputs()
        for name, one in right.items():
            expected = one.candidates[0].expected
            assert np.allclose(made[name].reshape(expected.shape), expected, rtol=1e-5, atol=1e-6), name


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_fault_can_be_computed_for_rows_of_any_length(problem: object) -> None:
    seen: set[int] = set()
    small = [case for case in problem.cases(3) if prod(filter(None, case.sizes.values())) < 3000]
    for case in small[::5]:
        given = problem.inputs(case)
        steps = steps_of(problem.unfused(case), given.arrays)
        if steps.shape[-1] >= LEAST_COLUMNS and steps.shape[-1] not in seen:
            seen.add(steps.shape[-1])
            sizes = {name: one.size for name, one in steps.outputs().items()}
            for text, faulty in variations(steps, case.sizes):
                made = {name: one.size for name, one in faulty.outputs().items()}
                assert made == sizes, (case.name, text)


def test_an_input_that_is_read_in_the_wrong_place() -> None:
    case = a_case("softmax_backward", "8 x 129")
    given = PROBLEMS["softmax_backward"].inputs(case).arrays
    soft = given["soft_inp"]
    pairs = soft[np.arange(8) // 2 * 2]
    grad = given["out_grad"].astype(np.float64)
    wrong = pairs * (grad - (grad * pairs).sum(axis=1, keepdims=True))
    text = told("softmax_backward", case, lambda got: got.update(out_grad=wrong.astype(np.float32)))
    assert text.startswith("soft_inp is read from the first of 2 rows for all of them")


@pytest.mark.parametrize("double", [False, True])
def test_a_tile_that_is_not_transposed(double: bool) -> None:
    """Thread (x, y) adds up rows y, y + 32 ... of column x, and warp y then writes its sum as column y's."""
    case = a_case("layernorm_backward", "70 x 64")
    terms = PROBLEMS["layernorm_backward"].terms(PROBLEMS["layernorm_backward"].inputs(case))

    def change(got: dict[str, np.ndarray]) -> None:
        for name in ("gamma_grad", "betta_grad") if double else ("gamma_grad",):
            for column in range(64):
                tile = terms[name][:, column // 32 * 32 : column // 32 * 32 + 32]
                got[name][column] = tile[column % 32 :: 32].sum()

    names = "gamma_grad and betta_grad" if double else "gamma_grad"
    said = f"{names}: the sums run along the rows of a 32 x 32 tile, not down its columns"
    assert told("layernorm_backward", case, change).startswith(said)


def softmax(x: np.ndarray, mask: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    scores = np.where(hidden, -np.inf, x.astype(np.float64) + mask)
    exponential = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponential / exponential.sum(axis=-1, keepdims=True)


def a_masked_case(future: int) -> tuple[Case, np.ndarray, np.ndarray, np.ndarray]:
    """A case of several batches, heads and queries, with its scores, mask and the number of each row."""
    for case in PROBLEMS["softmax_forward"].cases(21):
        batch, heads, queries, keys = (
            case.sizes[name] for name in ("batch_size", "nhead", "from_len", "to_len")
        )
        if min(batch, heads) > 1 and heads < queries < keys < 200 and case.sizes["mask_future"] == future:
            given = PROBLEMS["softmax_forward"].inputs(case).arrays
            mask = given["attn_mask"]
            if mask is not None and (mask[0] != mask[1]).any() and (mask > -1).any(axis=1).all():
                rows = np.arange(batch * heads * queries).reshape(batch, heads, queries)
                return case, given["inp"], mask.astype(np.float64), rows
    raise AssertionError("no such case")


def test_a_mask_whose_rows_are_taken_for_shorter_ones() -> None:
    case, x, mask, rows = a_masked_case(future=0)
    batch, keys, queries = x.shape[0], x.shape[-1], case.sizes["from_len"]
    read = mask.ravel()[np.arange(batch)[:, None] * queries + np.arange(keys)][:, None, None]
    wrong = softmax(x, read, np.zeros(x.shape, np.bool_))
    text = told("softmax_forward", case, lambda got: got.update(inp=wrong.astype(np.float32)))
    assert text.startswith(f"attn_mask is read at row * from_len + column, but its rows have {keys} columns")
    by_remainder = softmax(x, mask[rows % batch], np.zeros(x.shape, np.bool_))
    text = told("softmax_forward", case, lambda got: got.update(inp=by_remainder.astype(np.float32)))
    assert text.startswith("attn_mask is read in row r % ")
    assert "batch_size" in text.partition(",")[0]


def test_the_future_behind_another_key_than_the_query() -> None:
    case, x, mask, rows = a_masked_case(future=1)
    hidden = np.arange(x.shape[-1]) > (rows % case.sizes["nhead"])[..., None]
    wrong = softmax(x, mask[:, None, None], hidden)
    text = told("softmax_forward", case, lambda got: got.update(inp=wrong.astype(np.float32)))
    assert text.startswith("the future is hidden behind key r % ")
    assert "nhead" in text.partition(",")[0]


def test_the_last_columns_that_a_loop_leaves_out() -> None:
    case = a_case("softmax_forward", "1 x 1 x 3 x 2047")
    given = PROBLEMS["softmax_forward"].inputs(case).arrays
    x = given["inp"].astype(np.float64)
    if given["attn_mask"] is not None:
        x += given["attn_mask"][:, None, None]
    wrong = np.exp(x - x.max(axis=-1, keepdims=True))
    wrong[..., 1920:] = x[..., 1920:]
    wrong /= wrong[..., :1920].sum(axis=-1, keepdims=True)
    text = told("softmax_forward", case, lambda got: got.update(inp=wrong.astype(np.float32)))
    assert text.startswith("columns from 1920 on are left out of a loop over the row (subtract, exp, sum)")


def test_a_sum_of_deviations_that_nobody_has_squared() -> None:
    case = a_case("layernorm_forward", "5 x 256")

    def change(got: dict[str, np.ndarray]) -> None:
        got["vars"][:] = 1e-8 * np.arange(1, 6)

    assert told("layernorm_forward", case, change).startswith("vars: the numbers are nearly zero")


def test_a_sum_without_the_last_number_of_each_float4() -> None:
    case = a_case("layernorm_forward", "5 x 256")
    given = PROBLEMS["layernorm_forward"].inputs(case).arrays

    def change(got: dict[str, np.ndarray]) -> None:
        layernorm(got, given, lambda values: np.array([without_w(row) for row in values]))

    assert "the last of the four numbers of each float4 does not count" in told(
        "layernorm_forward", case, change
    )


@pytest.mark.parametrize(("value", "word"), [(0, "zeros"), (1, "ones")])
def test_columns_past_the_end_that_count_are_named_by_their_value(value: int, word: str) -> None:
    case = a_case("layernorm_forward", "5 x 36")
    given = PROBLEMS["layernorm_forward"].inputs(case).arrays

    def change(got: dict[str, np.ndarray]) -> None:
        x = np.pad(given["inp"].astype(np.float64), ((0, 0), (0, 28)), constant_values=value)
        mean = x.sum(axis=1, keepdims=True) / 36
        variance = ((x - mean) ** 2).sum(axis=1, keepdims=True) / 36
        got["means"][:], got["vars"][:] = mean[:, 0], variance[:, 0]
        root = np.sqrt(variance + 1e-8)
        got["ln_res"][:] = (x - mean)[:, :36] / root * given["scale"] + given["bias"]

    assert f"columns past the end of a row count as {word}" in told("layernorm_forward", case, change)


def test_padding_of_ones_is_named_only_where_nothing_else_explains_the_same() -> None:
    other, one = (Match(0, 0, SURE, rank, text, ("y",)) for rank, text in enumerate(("another fault", ONES)))
    assert usual([one]) == [one]
    assert usual([one, other]) == [other]
    worse = replace(other, spoilt=1)
    assert usual([one, worse]) == [one, worse]


def test_a_number_of_each_float4_that_counts_in_place_of_another() -> None:
    case = a_case("layernorm_forward", "5 x 256")
    given = PROBLEMS["layernorm_forward"].inputs(case).arrays

    def change(got: dict[str, np.ndarray]) -> None:
        x = given["inp"].astype(np.float64)
        mean = x.reshape(5, 64, 4)[:, :, [0, 1, 3, 3]].sum(axis=(1, 2))[:, None] / 256
        variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        got["means"][:], got["vars"][:] = mean[:, 0], variance[:, 0]
        got["ln_res"][:] = (x - mean) / np.sqrt(variance + 1e-8) * given["scale"] + given["bias"]

    assert "the third of the four numbers of each float4 does not count, and the last counts twice" in told(
        "layernorm_forward", case, change
    )
