from __future__ import annotations

import numpy as np
import pytest

from grader.judge.correctness import comparison
from grader.judge.correctness.comparison import SHOWN, changed_elements, compare, picture
from grader.problems.problem import Candidate, Expectation

ROWS, COLUMNS = 4, 10


def expectation(*values: np.ndarray, allowed: float = 1e-6) -> Expectation:
    return Expectation(tuple(Candidate(value, np.full(value.shape, allowed)) for value in values))


ONES = np.ones((ROWS, COLUMNS))
RIGHT = ONES.astype(np.float32)


def changed(index: tuple[int, ...], value: float) -> np.ndarray:
    got = RIGHT.copy()
    got[index] = value
    return got


def test_an_exact_output_is_right() -> None:
    result = compare("out", expectation(ONES), RIGHT)
    assert result.right
    assert (result.bad, result.total, result.max_error, result.allowed) == (0, 40, 0.0, 1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 1.0001])
def test_one_wrong_element_is_enough(value: float) -> None:
    result = compare("out", expectation(ONES), changed((2, 9), value))
    assert result.bad == 1
    assert result.first_bad[0].index == (2, 9)
    assert result.first_bad[0].expected == 1.0
    assert (result.nan, result.infinite) == (int(np.isnan(value)), int(np.isinf(value)))


def test_the_error_shown_is_that_of_the_worst_finite_element() -> None:
    got = changed((0, 0), np.nan)
    got[1, 1] = 1.5
    got[3, 3] = 1.25
    assert compare("out", expectation(ONES), got).max_error == 0.5


def test_nan_everywhere_is_all_wrong_and_the_error_still_a_number() -> None:
    result = compare("out", expectation(ONES), np.full_like(RIGHT, np.nan))
    assert (result.bad, result.nan, result.max_error) == (40, 40, 0.0)


def test_only_the_first_wrong_elements_are_listed() -> None:
    result = compare("out", expectation(ONES), np.zeros_like(RIGHT))
    assert [element.index for element in result.first_bad] == [(0, column) for column in range(SHOWN)]


def test_poison_that_is_still_there_was_never_written() -> None:
    got = RIGHT.copy()
    got.view(np.uint32)[3, 5:] = 0xFFF12345
    got[0, 0] = np.nan
    result = compare("out", expectation(ONES), got)
    assert (result.bad, result.nan, result.unwritten) == (6, 6, 5)


def test_each_row_may_follow_another_candidate_but_only_as_a_whole() -> None:
    nan = np.full_like(ONES, np.nan)
    right = expectation(ONES, 0 * ONES, nan)
    got = RIGHT.copy()
    got[1] = 0
    got[2] = np.nan
    assert compare("out", right, got).right
    got[1, :3] = 1
    result = compare("out", right, got)
    assert result.bad == 3
    assert {element.index[0] for element in result.first_bad} == {1}


def test_of_two_candidates_that_a_row_meets_the_nearer_one_is_shown_where_another_row_is_wrong() -> None:
    right = expectation(ONES + 5e-7, ONES)
    shown = compare("out", right, changed((0, 0), 2.0)).expected
    assert (shown == 1.0).all()


def test_what_is_right_by_the_first_candidate_is_compared_with_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[Candidate] = []

    def counted(candidate: Candidate, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        compared.append(candidate)
        return judged(candidate, *arrays)

    judged = comparison._judged
    monkeypatch.setattr(comparison, "_judged", counted)
    right = expectation(ONES, 0 * ONES)
    assert compare("out", right, RIGHT).right
    assert compared == [right.candidates[0]]
    got = changed((1, 0), 7.0)
    loose = Expectation(right.candidates, np.array([False, True, False, False]))
    assert compare("out", loose, got).right
    assert compared == [right.candidates[0]] * 2
    assert not compare("out", right, got).right
    assert compared[2:] == list(right.candidates)


def test_what_is_right_by_the_first_candidate_makes_no_others() -> None:
    made: list[Candidate] = []

    def others() -> tuple[Candidate, ...]:
        made.append(Candidate(0 * ONES, np.full(ONES.shape, 1e-6)))
        return tuple(made)

    right = Expectation(expectation(ONES).candidates, further=others)
    assert compare("out", right, RIGHT).right
    assert not made
    got = RIGHT.copy()
    got[1] = 0
    assert compare("out", right, got).right
    assert len(made) == 1


def test_rows_of_which_only_finiteness_is_asked_may_hold_any_number() -> None:
    loose = Expectation(expectation(ONES).candidates, np.array([False, True, False, False]))
    got = RIGHT.copy()
    got[1] = 1e30
    assert compare("out", loose, got).right
    got[1, 4] = np.inf
    got[2, 0] = 2
    assert compare("out", loose, got).bad == 2


def test_a_vector_is_one_row_and_may_be_asked_for_finiteness_as_a_whole() -> None:
    loose = Expectation(expectation(ONES[0]).candidates, np.array(True))
    assert compare("out", loose, np.zeros(COLUMNS, np.float32)).right
    assert compare("out", loose, np.full(COLUMNS, np.nan, np.float32)).bad == COLUMNS


def test_infinity_is_not_within_an_error_of_infinity() -> None:
    assert compare("out", expectation(ONES, allowed=1e300), changed((0, 0), np.inf)).bad == 1


def test_inputs_are_compared_bit_by_bit() -> None:
    before = np.array([0.0, np.nan, 1.0], np.float32)
    assert changed_elements(before, before.copy()) == 0
    assert changed_elements(before, np.array([-0.0, np.nan, 1.0], np.float32)) == 1


def test_an_output_without_elements_is_right() -> None:
    nothing = np.zeros((3, 0))
    compared = compare("out", Expectation((Candidate(nothing, nothing),)), nothing.astype(np.float32))
    assert (compared.right, compared.total, compared.max_error) == (True, 0, 0.0)


def test_a_number_without_dimensions_is_a_row_of_one() -> None:
    total = Expectation((Candidate(np.array(3.0), np.array(0.5)),))
    assert compare("out", total, np.array([3.25], np.float32)).right
    wrong = compare("out", total, np.array([4.0], np.float32))
    assert [(element.index, element.actual) for element in wrong.first_bad] == [((0,), 4.0)]


def test_a_picture_shows_which_parts_are_wrong_and_how_much_of_them() -> None:
    wrong = np.zeros((64, 320), bool)
    wrong[:8, 310:] = True  # the parts are 4 x 10
    wrong[63, 0] = True
    wrong[32, 20:30] = True
    rows = picture(wrong)
    assert (len(rows), {len(row) for row in rows}) == (16, {32})
    assert rows[:2] == ["." * 31 + "#"] * 2
    assert rows[15] == "1" + "." * 31
    assert rows[8] == "..3" + "." * 29
    assert set("".join(rows[2:8] + rows[9:15])) == {"."}


def test_a_picture_of_a_vector_is_a_row_and_one_of_an_image_has_no_colours() -> None:
    assert picture(np.array([True, False, False])) == ["#.."]
    image = np.zeros((2, 3, 3), bool)
    image[1, 2, 0] = True
    assert picture(image) == ["...", "..#"]


def test_right_outputs_have_no_picture() -> None:
    assert compare("out", expectation(ONES), RIGHT).picture == []
    assert compare("out", expectation(ONES), changed((2, 9), 7.0)).picture == [
        *("." * COLUMNS, "." * COLUMNS, "." * 9 + "#", "." * COLUMNS)
    ]
