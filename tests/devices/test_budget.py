"""The budget of warp instructions follows the sizes of a call, and nothing else."""

from __future__ import annotations

from grader.devices.budget import Budget
from grader.devices.device import ArrayArgument, Call

BUDGET = Budget(base=1000, per_element=10, per_row=100)


def call(*shapes: tuple[int, ...], needs: tuple[tuple[Call, int], ...] = ()) -> Call:
    arrays = tuple(ArrayArgument(f"a{number}", "float32", shape, None) for number, shape in enumerate(shapes))
    return Call("launch", arrays, 60.0, needs=needs)


def test_elements_count_for_progress_and_rows_for_the_total() -> None:
    one = call((4, 6, 8), (8,))
    assert BUDGET.progress(one) == 1000 + 10 * 192
    assert BUDGET.total(one) == 4 * (1000 + 10 * 192) + 100 * 24


def test_the_last_axis_counts_as_rows_where_it_is_longer() -> None:
    assert BUDGET.total(call((3, 50))) == 4 * (1000 + 10 * 150) + 100 * 50


def test_a_call_without_arrays_has_the_base() -> None:
    assert BUDGET.progress(call()) == 1000
    assert BUDGET.total(call(())) == 4 * (1000 + 10) + 100


def test_a_null_array_counts_for_nothing() -> None:
    null = Call("launch", (ArrayArgument("mask", "float32", (9, 9), None, null=True),), 60.0)
    assert BUDGET.progress(null) == 1000


def test_a_model_gets_what_the_calls_that_it_needs_may_run() -> None:
    needed = call((100, 100))
    model = call((2, 2), needs=((needed, 3),))
    assert BUDGET.progress(model) == BUDGET.progress(needed)
    assert BUDGET.total(model) == 4 * BUDGET.progress(needed) + 100 * 2 + 3 * BUDGET.total(needed)
