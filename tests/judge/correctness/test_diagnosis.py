"""Each rule of the diagnosis on an output that has the bug it names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import Mock

import numpy as np
import pytest
from first_assignment import KERNELS

from grader.judge.correctness import diagnosis
from grader.judge.correctness.comparison import compare
from grader.judge.correctness.diagnosis import NOTHING_WRITTEN, diagnose
from grader.judge.correctness.diagnosis.evidence import Evidence
from grader.judge.correctness.diagnosis.numbers import stored_in_half
from grader.problems.problem import Candidate, Expectation
from grader.records.diagnosis import in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.problems.problem import Case, Inputs

PROBLEMS = KERNELS
POISON = np.array([0xFFF12345], np.uint32).view(np.float32)[0]


def a_case(problem_id: str, sizes: str, distribution: str = "normal", *, future: int = 0) -> Case:
    return next(
        case
        for case in PROBLEMS[problem_id].cases(21)
        if case.distribution == distribution
        and case.name.startswith(sizes)
        and case.sizes.get("mask_future", 0) == future
    )


def right_outputs(problem_id: str, case: Case, given: Inputs) -> dict[str, np.ndarray]:
    expected = PROBLEMS[problem_id].oracle(case, given)
    return {name: one.candidates[0].expected.astype(np.float32) for name, one in expected.items()}


def told(
    problem_id: str,
    case: Case,
    change: Callable[[dict[str, np.ndarray]], None],
    *,
    raced: bool = False,
    again: Callable[[], dict[str, np.ndarray]] = dict,
    **previous: np.ndarray,
) -> str:
    problem = PROBLEMS[problem_id]
    given = problem.inputs(case)
    got = right_outputs(problem_id, case, given)
    change(got)
    compared = {name: compare(name, one, got[name]) for name, one in problem.oracle(case, given).items()}
    told = diagnose(problem, case, given, compared, got, previous or None, raced=raced, again=again)
    return in_words(told)


def forward(change: Callable[[np.ndarray], None], sizes: str = "7 x 12") -> str:
    """What is said of a LayerNorm forward whose ``ln_res`` is changed in place."""
    return told("layernorm_forward", a_case("layernorm_forward", sizes), lambda got: change(got["ln_res"]))


def test_right_outputs_have_no_diagnosis() -> None:
    assert not forward(lambda _: None)


def test_no_formula_is_computed_where_an_output_is_large_that_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deviation(got: dict[str, np.ndarray]) -> None:
        np.sqrt(got["vars"], out=got["vars"])

    case = a_case("layernorm_forward", "7 x 12")
    assert "standard deviation" in told("layernorm_forward", case, deviation)
    monkeypatch.setattr(diagnosis, "MOST_ELEMENTS", 7 * 12)
    assert "standard deviation" not in told("layernorm_forward", case, deviation)


def test_nothing_written() -> None:
    def poison(got: dict[str, np.ndarray]) -> None:
        for array in got.values():
            array[:] = POISON

    assert told("layernorm_forward", a_case("layernorm_forward", "7 x 12"), poison) == NOTHING_WRITTEN.cause


def test_nothing_written_in_place_means_the_input_is_still_there() -> None:
    case = a_case("softmax_forward", "3 x 4")
    scores = PROBLEMS["softmax_forward"].inputs(case).arrays["inp"]
    assert told("softmax_forward", case, lambda got: got.update(inp=scores)) == NOTHING_WRITTEN.cause


def test_the_tail_of_a_row_was_never_written() -> None:
    def tail(out: np.ndarray) -> None:
        out[:, 8:] = POISON

    text = forward(tail)
    assert "28 of 84 elements were never written, in each row those from column 8 on" in text
    assert "end before the row does?" in text
    assert "right up to column 7, wrong from column 8 on (4 of 12)" in text


def test_zero_after_a_column() -> None:
    def tail(out: np.ndarray) -> None:
        out[:, 1024:] = 0

    text = forward(tail, "5 x 1028")
    assert "the wrong elements are zero" in text
    assert "right up to column 1023, wrong from column 1024 on" in text


def test_every_32nd_column() -> None:
    def lanes(out: np.ndarray) -> None:
        out[:, ::32] += 1

    assert "only every 32nd of the columns" in forward(lanes, "5 x 1024")


def test_only_the_last_column() -> None:
    def last(out: np.ndarray) -> None:
        out[:, -1] += 1

    assert "only column 11, the last one" in forward(last)


def test_rows_after_the_first() -> None:
    def rows(out: np.ndarray) -> None:
        out[1:] *= 1.5 + np.arange(12)

    assert "right up to row 0, wrong from row 1 on" in forward(rows)


@pytest.mark.parametrize(("axis", "name"), [(0, "batch"), (1, "nhead")])
def test_only_batches_or_heads_after_the_first(axis: int, name: str) -> None:
    def later(got: dict[str, np.ndarray]) -> None:
        part = np.moveaxis(got["inp"], axis, 0)[1:]
        part[:] = part * np.random.default_rng(1).uniform(2, 3, part.shape)

    text = told("softmax_forward", a_case("softmax_forward", "3 x 4"), later)
    assert f"right up to {name} 0, wrong from {name} 1 on" in text


def test_a_constant_factor() -> None:
    def double(out: np.ndarray) -> None:
        out *= 2

    assert "the same factor of 2" in forward(double)


def test_a_factor_of_each_row() -> None:
    def factors(got: dict[str, np.ndarray]) -> None:
        got["inp"] *= np.array([1.1, 1.2, 1.4, 1.5, 1.6], np.float32)[:, None]

    assert "a factor of its own" in told(
        "softmax_forward", a_case("softmax_forward", "1 x 1 x 5 x 129"), factors
    )


def test_an_offset_of_each_row() -> None:
    def offsets(out: np.ndarray) -> None:
        out += np.arange(1, 8, dtype=np.float32)[:, None]

    assert "off by a constant of its own" in forward(offsets)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_values_stored_in_half(name: str) -> None:
    def store(out: np.ndarray) -> None:
        if name == "float16":
            out[:] = out.astype(np.float16)
        else:
            out.view(np.uint32)[:] &= 0xFFFF0000

    assert f"matches {name}" in forward(store, "5 x 256")


@pytest.mark.parametrize(("size", "name"), [(2.0**-11, "float16"), (2.0**-8, "bfloat16")])
def test_errors_of_the_size_of_half(size: float, name: str) -> None:
    def blur(out: np.ndarray) -> None:
        out *= 1 + np.random.default_rng(3).uniform(-size, size, out.shape).astype(np.float32)

    assert f"matches {name}" in forward(blur, "5 x 256")


def test_one_value_everywhere_is_no_sign_of_half() -> None:
    case = a_case("softmax_forward", "1 x 2 x 3 x 65", "denormals")  # all scores weigh the same
    text = told("softmax_forward", case, lambda got: got["inp"].fill(1 / 32))
    assert "matches" not in text


def test_one_wrong_number_among_right_ones_that_half_can_hold_is_no_sign_of_half() -> None:
    right = np.arange(64, dtype=np.float64)
    for share, told_of in ((1, False), (2, False), (64, True)):
        got = right.astype(np.float32)
        got[-share:] += 1
        compared = compare("y", Expectation((Candidate(right, np.full(64, 1e-6)),)), got)
        evidence = Evidence(compared, got.astype(np.float64), got, None, None, ())
        assert bool(stored_in_half(evidence)) == told_of


def test_five_errors_are_too_few_to_be_told_from_rounding() -> None:
    def blur(got: dict[str, np.ndarray]) -> None:
        got["means"] *= np.array([1.001, 0.999, 1.002, 0.998, 1.001], np.float32)

    text = told("layernorm_forward", a_case("layernorm_forward", "5 x 256"), blur)
    assert text.startswith("means: ")
    assert "float16" not in text


def test_a_sum_that_misses_some_elements_is_not_taken_for_half() -> None:
    case = a_case("softmax_backward", "8 x 513")
    given = PROBLEMS["softmax_backward"].inputs(case)
    g, s = given.arrays["out_grad"], given.arrays["soft_inp"]
    wrong = s * (g - np.delete(g * s, [100, 101], axis=1).sum(axis=1, keepdims=True))
    text = told("softmax_backward", case, lambda got: got.update(out_grad=wrong))
    assert "matches" not in text
    assert "does a sum over the row leave some of them out, or is it kept in" in text


def test_errors_that_follow_an_input_are_not_taken_for_half() -> None:
    case = a_case("layernorm_backward", "32 x 256")
    given = PROBLEMS["layernorm_backward"].inputs(case)
    d = given.wide("out_grad") * given.wide("gamma")
    root = 1 / np.sqrt(given.wide("vars")[:, None])
    h = (given.wide("inp") - given.wide("means")[:, None]) * root
    part = np.delete(d * h, 100, axis=1).sum(axis=1, keepdims=True) / 256
    wrong = (root * (d - d.mean(axis=1, keepdims=True) - h * part)).astype(np.float32)
    text = told("layernorm_backward", case, lambda got: got.update(inp_grad=wrong))
    assert "matches" not in text
    assert "does a sum over the row leave some of them out, or is it kept in" in text


def test_nan_in_whole_rows_is_no_proof_of_a_bug_that_would_make_them_too() -> None:
    def spoil(got: dict[str, np.ndarray]) -> None:
        got["inp"][:] = np.nan

    text = told("softmax_forward", a_case("softmax_forward", "2 x 2 x 33 x 70", "padded with -inf"), spoil)
    assert text.startswith("NaN or infinity in 132 of 132 rows")
    assert text.endswith("So it would be if the mask is subtracted instead of added")
    text = told("softmax_forward", a_case("softmax_forward", "1 x 1 x 5 x 129"), spoil)
    assert text.startswith("NaN or infinity in 5 of 5 rows")
    assert "So it would be" not in text


def test_which_elements_of_a_row_are_nan_tells_of_a_bug() -> None:
    case = a_case("softmax_forward", "1 x 2 x 3 x 600", "one huge element")
    bug = "the maximum is not subtracted, so the exponentials overflow or vanish"
    with np.errstate(all="ignore"):
        wrong = PROBLEMS["softmax_forward"].bugs[bug](PROBLEMS["softmax_forward"].inputs(case))["inp"]
    assert told("softmax_forward", case, lambda got: got.update(inp=wrong.astype(np.float32))).startswith(bug)


def test_added_to_an_output_that_was_never_set() -> None:
    case = a_case("layernorm_backward", "33 x 64")

    def add(got: dict[str, np.ndarray]) -> None:
        got["gamma_grad"][:] = np.nan

    text = told("layernorm_backward", case, add)
    assert text.startswith("gamma_grad: every element is NaN")
    assert "filled" not in text, "what the kernel stores may be NaN, too"
    assert "+=" in text


def test_the_result_of_the_call_before() -> None:
    case = a_case("softmax_backward", "33 x 70")
    stale = np.random.default_rng(5).standard_normal((33, 70)).astype(np.float32)
    text = told("softmax_backward", case, lambda got: got.update(out_grad=stale), out_grad=stale)
    assert "the result of the call before" in text


def test_a_number_that_each_call_begins_with_is_no_result_of_the_call_before() -> None:
    case = a_case("layernorm_forward", "7 x 12")

    def change(got: dict[str, np.ndarray]) -> None:
        got["means"][:] = 3.5

    said = told("layernorm_forward", case, change, means=np.full(7, 3.5, np.float32))
    assert "every element is 3.5: does a variable begin with this number" in said
    assert "call before" not in said


def test_nan_rows_of_a_negative_variance() -> None:
    def rows(out: np.ndarray) -> None:
        out[1:3] = np.nan

    text = forward(rows)
    assert "NaN or infinity in 2 of 7 rows" in text
    assert "negative variance" in text


@pytest.mark.parametrize(
    ("problem_id", "sizes", "future"),
    [
        ("softmax_forward", "1 x 2 x 67", 1),
        ("softmax_backward", "8 x 65", 0),
        ("layernorm_forward", "5 x 36", 0),
        ("layernorm_backward", "32 x 36", 0),
    ],
)
def test_the_problem_s_own_bugs_are_named(problem_id: str, sizes: str, future: int) -> None:
    case = a_case(problem_id, sizes, future=future)
    problem = PROBLEMS[problem_id]
    given = problem.inputs(case)
    named = 0
    for bug, formula in problem.bugs.items():
        wrong = {name: value.astype(np.float32) for name, value in formula(given).items()}
        text = told(problem_id, case, lambda got, wrong=wrong: got.update(wrong))
        assert (
            not text or bug.partition(" (")[0] in text
        )  # however many threads, where it makes no difference
        named += bool(text)
    assert named >= 4


def test_formulas_are_not_tried_on_a_million_rows() -> None:
    case, problem = a_case("softmax_backward", "1050011 x 3"), PROBLEMS["softmax_backward"]
    given = problem.inputs(case)
    right = problem.oracle(case, given)
    got = {name: one.candidates[0].expected.astype(np.float32) for name, one in right.items()}
    got["out_grad"][1 << 20 :] = 7
    compared = {name: compare(name, one, got[name]) for name, one in right.items()}
    formula = Mock(return_value={})
    told = diagnose(replace(problem, bugs={"any": formula}), case, given, compared, got)
    said = in_words(told)
    formula.assert_not_called()
    assert "right up to row 1048575" in said


def forward_softmax(change: Callable[[np.ndarray, np.ndarray], np.ndarray], sizes: str) -> str:
    """What is said of softmax weights that ``change`` makes of the scores and the right weights."""
    case = a_case("softmax_forward", sizes)
    scores = PROBLEMS["softmax_forward"].inputs(case).arrays["inp"]
    return told("softmax_forward", case, lambda got: got.update(inp=change(scores, got["inp"])))


def test_columns_without_a_thread_are_missing_in_the_sum() -> None:
    def short(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        weights[..., :64] /= weights[..., :64].sum(axis=-1, keepdims=True)
        return np.concatenate([weights[..., :64], scores[..., 64:]], axis=-1)

    assert "columns from 64 on were never written" in forward_softmax(short, "1 x 1 x 5 x 127")


def test_every_thread_divides_by_its_own_sum() -> None:
    def own(_: np.ndarray, weights: np.ndarray) -> np.ndarray:
        lanes = weights.reshape(1, 1, 5, 32, 32)
        return (lanes / lanes.sum(axis=3, keepdims=True)).reshape(weights.shape)

    text = forward_softmax(own, "1 x 1 x 5 x 1024")
    assert text.startswith(
        "each thread uses a result of its own: a reduction over threads is missing, or its result stays with "
        "the first thread (32 threads"
    )


def test_half_of_a_sum_is_subtracted() -> None:
    case = a_case("softmax_backward", "8 x 127")
    given = PROBLEMS["softmax_backward"].inputs(case)
    g, s = given.arrays["out_grad"], given.arrays["soft_inp"]
    halves = np.random.default_rng(2).uniform(0.2, 0.8, (8, 1)).astype(np.float32)
    wrong = s * (g - halves * (g * s).sum(axis=1, keepdims=True))
    text = told("softmax_backward", case, lambda got: got.update(out_grad=wrong))
    assert 'each row is off by a part of what "the sum of grad * soft is not subtracted" would make' in text


def test_a_result_that_is_stored_column_by_column() -> None:
    def exchange(got: dict[str, np.ndarray]) -> None:
        result = got["ln_res"]
        got["ln_res"] = result.T.reshape(result.shape)

    text = told("layernorm_forward", a_case("layernorm_forward", "7 x 12"), exchange)
    assert text.startswith("ln_res: it is stored with rows and columns exchanged")


def test_columns_that_repeat_the_first_ones() -> None:
    def repeat(got: dict[str, np.ndarray]) -> None:
        got["gamma_grad"][128:] = got["gamma_grad"][:128]

    text = told("layernorm_backward", a_case("layernorm_backward", "32 x 256"), repeat)
    assert "columns from 128 on hold what belongs 128 columns before" in text


def test_a_row_of_zeros_that_a_formula_leaves_open_does_not_hide_the_formula() -> None:
    case = a_case("softmax_forward", "2 x 2 x 31", future=1)
    problem = PROBLEMS["softmax_forward"]
    wrong = problem.bugs["the future mask is shifted by one: key j = i, the query itself, is hidden too"](
        problem.inputs(case)
    )["inp"]
    text = told("softmax_forward", case, lambda got: got.update(inp=np.nan_to_num(wrong).astype(np.float32)))
    assert "key j = i, the query itself, is hidden too" in text


def test_the_first_warp_has_its_columns_in_each_round_of_a_block() -> None:
    case = a_case("layernorm_forward", "3 x 1536")
    random = np.random.default_rng(5)

    def change(got: dict[str, np.ndarray]) -> None:
        columns = np.arange(got["ln_res"].shape[1]) % 128 >= 32
        got["ln_res"][:, columns] = random.normal(1e6, 1e5, (len(got["ln_res"]), columns.sum()))

    said = told("layernorm_forward", case, change)
    assert "the first 32 columns of every 128, those of one warp, are right, the others wrong" in said


def test_only_the_first_warp_gets_the_result_of_a_reduction() -> None:
    def change(outputs: dict[str, np.ndarray]) -> None:
        outputs["ln_res"][:, 128:] += np.random.default_rng(1).normal(size=(5, 872)).astype(np.float32)

    said = told("layernorm_forward", a_case("layernorm_forward", "5 x 1000"), change)
    assert "the first 128 columns, those of one warp, are right" in said


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (lambda rows: np.where(rows < 60, 1, 0), "the sum is over the first 60 of 66 rows only"),
        (lambda rows: np.where(rows < 65, 1, 0), "the sum is over the first 65 of 66 rows only"),
        (lambda rows: np.where(rows < 1, 0, 1), "the sum leaves the first 1 of 66 rows out"),
        (lambda rows: np.where(rows < 64, 1, 2), "the first 64 of 66 rows count once, the others twice"),
        (lambda rows: np.where(rows < 2, 2, 1), "the first 2 of 66 rows count twice"),
        (lambda rows: np.where(rows % 8 < 7, 1, 0), "the sum is over the first 7 of every 8 rows only"),
        (lambda rows: np.where(rows % 4 < 3, 0, 1), "the sum leaves the first 3 of every 4 rows out"),
    ],
)
def test_rows_that_a_sum_over_rows_forgets(counted: Callable[[np.ndarray], np.ndarray], said: str) -> None:
    problem, case = PROBLEMS["layernorm_backward"], a_case("layernorm_backward", "66 x 4096")
    terms = problem.terms(problem.inputs(case))

    def change(got: dict[str, np.ndarray]) -> None:
        for name, each in terms.items():
            got[name][:] = (counted(np.arange(66))[:, None] * each).sum(axis=0)

    assert told("layernorm_backward", case, change) == f"gamma_grad and betta_grad: {said}"


def test_terms_are_what_the_sums_over_rows_add_up() -> None:
    for name, problem in PROBLEMS.items():
        for case in problem.cases(21)[:8]:
            given = problem.inputs(case)
            for output, terms in problem.terms(given).items():
                right = problem.oracle(case, given)[output].candidates[0]
                assert (abs(terms.sum(axis=0) - right.expected) <= right.allowed).all(), (name, case.name)


def test_a_row_number_with_too_few_bits() -> None:
    case = a_case("softmax_backward", "8200 x 40")
    given = PROBLEMS["softmax_backward"].inputs(case)
    weights = given.arrays["soft_inp"]

    def wrap(got: dict[str, np.ndarray]) -> None:
        once = got["out_grad"][:8].astype(np.float64)
        twice = weights[:8] * (once - (once * weights[:8]).sum(axis=1, keepdims=True))
        got["out_grad"][:8], got["out_grad"][8192:] = twice, given.arrays["out_grad"][8192:]

    said = told("softmax_backward", case, wrap)
    assert said.startswith("rows from 8192 on were never written, and the first ones twice")


def test_an_index_in_a_float_loses_odd_numbers() -> None:
    case = a_case("softmax_backward", "1050011 x 3")
    before = PROBLEMS["softmax_backward"].inputs(case).arrays["out_grad"]

    def lose(got: dict[str, np.ndarray]) -> None:
        got["out_grad"][1 << 19 :] *= 1.5
        got["out_grad"][1 << 19 :, 1::2] = before[1 << 19 :, 1::2]

    assert "2^24 = 524288 x 32" in told("softmax_backward", case, lose)


@pytest.mark.parametrize(
    ("changes", "said"),
    [(False, "no known cause"), (True, "two calls with the same input give different numbers")],
)
def test_numbers_that_no_rule_knows_are_asked_for_again(changes: bool, said: str) -> None:
    def noise(got: dict[str, np.ndarray]) -> None:
        got["ln_res"][:] = np.random.default_rng(4).normal(size=(7, 12))

    def again() -> dict[str, np.ndarray]:
        other = np.random.default_rng(5 if changes else 4).normal(size=(7, 12))
        return {"ln_res": other.astype(np.float32)}

    text = told("layernorm_forward", a_case("layernorm_forward", "7 x 12"), noise, again=again)
    assert text.startswith(f"ln_res: {said}")


def test_a_named_cause_needs_no_second_call() -> None:
    again = Mock(return_value={})
    case = a_case("layernorm_forward", "7 x 12")
    told("layernorm_forward", case, lambda got: np.sqrt(got["vars"], out=got["vars"]), again=again)
    again.assert_not_called()


@pytest.mark.parametrize("raced", [False, True])
def test_numbers_of_a_race_are_neither_half_precision_nor_an_overflow(raced: bool) -> None:
    def half(out: dict[str, np.ndarray]) -> None:
        out["ln_res"][:] = out["ln_res"].astype(np.float16)

    def nan(out: dict[str, np.ndarray]) -> None:
        out["ln_res"][::2] = np.nan

    case = a_case("layernorm_forward", "5 x 256")
    assert ("float16" in told("layernorm_forward", case, half, raced=raced)) is not raced
    assert ("overflow" in told("layernorm_forward", case, nan, raced=raced)) is not raced


def test_epsilon_that_counts_twice_is_not_called_missing() -> None:
    case = a_case("layernorm_forward", "5 x 512", "sigma 1e-4")
    given = PROBLEMS["layernorm_forward"].inputs(case)
    x = given.wide("inp")
    normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 2e-8)
    wrong = normal * given.wide("scale") + given.wide("bias")
    said = told("layernorm_forward", case, lambda got: got.update(ln_res=wrong.astype(np.float32)))
    assert said.startswith("ln_res: epsilon is added twice")


@pytest.mark.parametrize(
    ("problem_id", "distribution", "name"),
    [("layernorm_backward", "gradients of 1e-20", "betta_grad"), ("layernorm_forward", "sigma 1e-4", "vars")],
)
def test_small_results_that_are_wrong_do_not_cancel_for_that_alone(
    problem_id: str, distribution: str, name: str
) -> None:
    case = next(case for case in PROBLEMS[problem_id].cases(21) if case.distribution == distribution)

    def change(got: dict[str, np.ndarray]) -> None:
        random = np.random.default_rng(5)
        if name == "vars":
            got[name] *= random.normal(1.4, 0.1, got[name].size)
        else:
            got[name] += random.normal(0, 1e-20, got[name].size)

    assert "cancels near 0" not in told(problem_id, case, change)
