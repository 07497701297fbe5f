"""The grid of magnitudes: every pair of octaves has a case, drawn from the seed, behind those by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, product

import pytest
from spaces import PROBLEMS, space_of

from grader.problems.contents import EQUAL, REPEATED
from grader.problems.distributions import build_case
from grader.problems.grid import (
    MAGNITUDES,
    OTHERS,
    PAIRS_ON_GPU,
    REORDERED,
    beyond_simulator,
    factors,
    grid,
    in_octave,
    met,
    missing,
    octave,
    required,
    with_grid,
)
from grader.problems.problem import Budget, Case, Range, Space

TWO = Space(
    ranges={"rows": Range(1, 5000), "columns": Range(4, 4096, 4)},
    distributions=("normal", "zeros", "squares"),
    elements=lambda sizes: sizes["rows"] * sizes["columns"],
    case=build_case,
    allows=lambda sizes, distribution: distribution != "squares" or sizes["rows"].bit_count() == 1,
    budget=Budget(pairs=1 << 13, largest=1 << 15, alone=1 << 16, contents=1 << 12),
)
WIDE = Space(
    ranges={"rows": Range(1, 1 << 26), "columns": Range(1, 1 << 26)},
    distributions=("normal", "zeros"),
    elements=lambda sizes: sizes["rows"] * sizes["columns"],
    case=build_case,
)
ONE = Space(
    ranges={"n": Range(1, 1 << 26)},
    distributions=("normal",),
    elements=lambda sizes: 3 * sizes["n"],
    case=build_case,
    budget=Budget(pairs=1 << 17, alone=1 << 20),
)
HEADS = Space(
    ranges={"batch": Range(1, 1000), "heads": Range(1, 64), "keys": Range(1, 256)},
    distributions=("normal",),
    elements=lambda sizes: sizes["batch"] * sizes["heads"] * sizes["keys"],
    case=build_case,
    products={"rows": ("batch", "heads")},
    budget=Budget(pairs=1 << 17),
)


def test_an_octave_lies_between_two_powers_of_two() -> None:
    assert [octave(value) for value in (1, 2, 3, 4, 7, 8, 1023, 1024)] == [1, 2, 2, 3, 3, 4, 10, 11]
    assert [*in_octave(Range(3, 100, 5), 5)] == [20, 25, 30]
    assert [*in_octave(Range(3, 100, 5), 7)] == [65, 70, 75, 80, 85, 90, 95, 100]
    assert not in_octave(Range(4, 100, 4), 2)


def test_every_pair_that_the_budget_allows_is_required_and_met() -> None:
    wanted = {
        (("rows", i), ("columns", j))
        for i, j in product(range(1, 14), range(3, 14))
        if 2 ** (i - 1) * 2 ** (j - 1) <= TWO.budget.pairs
    }
    diagonal = {(("rows", i), ("columns", j)) for i, j in product(range(1, 14), range(3, 14)) if i + j == 17}
    assert set(required(TWO)) == wanted | diagonal
    for seed in range(3):
        assert set(required(TWO)) <= set().union(*(met(TWO, case.sizes) for case in grid(TWO, seed)))


def test_a_product_of_sizes_meets_the_sizes_that_are_no_part_of_it() -> None:
    names = {tuple(name for name, _ in pair) for pair in required(HEADS)}
    assert names == {("batch", "heads"), ("batch", "keys"), ("heads", "keys"), ("keys", "rows")}
    assert (("keys", 8), ("rows", 11)) in required(HEADS)
    seen = set().union(*(met(HEADS, case.sizes) for case in grid(HEADS, 1)))
    assert set(required(HEADS)) <= seen


def test_of_one_size_every_octave_has_odd_and_even_values_and_borders() -> None:
    cases = grid(ONE, 4)
    for number in range(6, 16):
        values = [case.sizes["n"] for case in cases if octave(case.sizes["n"]) == number]
        low, high = 1 << (number - 1), (1 << number) - 1
        assert {value % 2 for value in values} == {0, 1}
        assert any(value in {low, low + 1, high} for value in values)
        assert any(value not in {low, low + 1, high} for value in values)
    assert max(case.sizes["n"] for case in cases) * 3 >= ONE.budget.alone / 2


def test_sizes_of_the_largest_pairs_are_odd() -> None:
    large = [case.sizes for case in grid(TWO, 2) if TWO.elements(case.sizes) > 2 * TWO.budget.pairs]
    assert large
    assert any(sizes["rows"] % 2 for sizes in large)
    assert all(TWO.elements(sizes) <= 2.5 * TWO.budget.alone for sizes in large)


def test_each_distribution_comes_with_few_some_and_many_elements_where_it_may() -> None:
    cases = grid(TWO, 3)
    for name in TWO.distributions:
        elements = sorted(TWO.elements(case.sizes) for case in cases if case.distribution == name)
        assert elements[0] <= 128
        assert elements[-1] >= TWO.budget.contents / 2
        assert any(256 <= count <= 4096 for count in elements)
    assert all(TWO.legal(case.sizes, case.distribution) for case in cases)


def test_each_distribution_comes_with_multiples_and_with_each_value_of_a_small_range() -> None:
    filters = replace(TWO, ranges={**TWO.ranges, "radius": Range(1, 3)}, distributions=("normal", "zeros"))
    for distribution in filters.distributions:
        sizes = [case.sizes for case in grid(filters, 3) if case.distribution == distribution]
        in_step = [
            each["radius"]
            for each in sizes
            if min(each["rows"], each["columns"]) > 4
            and max(each["rows"], each["columns"]) % min(each["rows"], each["columns"]) == 0
        ]
        assert {1, 2, 3} <= set(in_step)


def test_the_grid_follows_from_the_seed() -> None:
    first, again, other = grid(TWO, 5), grid(TWO, 5), grid(TWO, 6)
    assert first == again
    assert {tuple(case.sizes.values()) for case in first} != {tuple(case.sizes.values()) for case in other}
    assert {case.group for case in first} == {MAGNITUDES}


def test_a_case_of_each_octave_of_many_elements_runs_in_every_order() -> None:
    cases = grid(TWO, 5)
    octaves = [octave(TWO.elements(case.sizes)) for case in cases if case.orders is None]
    assert sorted(octaves) == [13, 14, 15]
    assert set(octaves) == {octave(TWO.elements(case.sizes)) for case in cases} & set(REORDERED)
    assert {case.orders for case in cases} == {None, 1}


def test_the_cases_of_before_stay_and_a_grid_has_no_second_one_of_their_names() -> None:
    mine: Case = grid(TWO, 1)[3]
    before = (build_case("small", {"rows": 3, "columns": 4}, "normal", 1), mine)
    cases = with_grid(lambda _: before, TWO)(1)
    assert cases[:2] == before
    assert len({case.name for case in cases}) == len(cases)


def test_a_pair_that_no_case_is_in_is_missing() -> None:
    cases = [
        case for case in grid(TWO, 1) if (octave(case.sizes["rows"]), octave(case.sizes["columns"])) != (5, 6)
    ]
    assert missing(TWO, cases) == [(("rows", 5), ("columns", 6))]
    assert not missing(TWO, [*cases, build_case("by hand", {"rows": 17, "columns": 40}, "normal", 1)])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", [0, 11])
def test_every_problem_meets_every_pair(name: str, seed: int) -> None:
    problem = PROBLEMS[name]
    space = space_of(problem)
    cases = problem.cases(seed)
    drawn = [case for case in cases if case.group == MAGNITUDES]
    before = {case.name for case in cases if case.group != MAGNITUDES}
    assert len({case.name for case in drawn} - before) == len(drawn)
    assert cases[-len(drawn) :] == tuple(drawn)
    assert not missing(space, cases)
    assert all(space.legal({**space.least, **case.sizes}, named(case, space)) for case in drawn)


def named(case: Case, space: Space) -> str:
    """The distribution as the space has it, with the element type."""
    typed = f"{case.dtype}, {case.distribution}"
    return typed if typed in space.distributions else case.distribution


ENDS = Space(
    ranges={"n": Range(1, 1 << 26), "batch": Range(8, 1 << 22, 8), "width": Range(1, 100)},
    distributions=("normal", "zeros", "ones", "twos", "threes", "fours"),
    elements=lambda sizes: 3 * sizes["n"] * sizes["batch"] * sizes["width"],
    case=build_case,
    products={"rows": ("n", "batch")},
)


def test_a_gpu_meets_the_end_of_each_range_that_its_budget_allows() -> None:
    cases = beyond_simulator(ENDS, 7)
    assert cases == beyond_simulator(ENDS, 7) != beyond_simulator(ENDS, 8)
    assert {(case.group, case.orders) for case in cases} == {(MAGNITUDES, 1)}
    assert all(case.at_places == (ENDS.elements(case.sizes) > ENDS.budget.compared) for case in cases)
    most, alone = ENDS.budget.on_gpu, ENDS.budget.alone
    at_end = cases[: (len(factors(ENDS)) - 1) * (1 + OTHERS)]  # the grid gets to the end of the width
    single = [case for case in at_end if case.sizes["n"] == 1 or case.sizes["batch"] == 8]
    assert all(alone < ENDS.elements(case.sizes) <= most for case in single)
    assert all(case.sizes["batch"] == 8 or case.sizes["batch"] >= 3 << 20 for case in single)
    assert any(case.sizes["n"] > 1 and case.sizes["batch"] > 8 for case in at_end), "a product"
    assert {case.sizes["width"] for case in single} == {1}
    assert {case.sizes["batch"] % 8 for case in cases} == {0}
    of_n = [case.distribution for case in single if case.sizes["batch"] == 8]
    assert of_n[0] == "normal"
    assert len(set(of_n)) == 1 + OTHERS


def test_a_gpu_meets_every_octave_between_the_grid_and_the_end() -> None:
    cases = beyond_simulator(WIDE, 7)
    for name in WIDE.ranges:
        octaves = {octave(case.sizes[name]) for case in cases if min(case.sizes.values()) == 1}
        assert octaves >= {*range(octave(WIDE.budget.alone) + 1, octave(WIDE.budget.on_gpu))}


def test_a_gpu_meets_a_few_pairs_of_octaves_that_are_both_large() -> None:
    runs = [beyond_simulator(WIDE, seed) for seed in range(20)]
    pairs = [[case.sizes for case in cases if min(case.sizes.values()) > 1] for cases in runs]
    assert max(map(len, pairs)) <= PAIRS_ON_GPU
    both = [sizes for sizes in chain(*pairs) if min(sizes.values()) >= 1 << 10]
    assert len(both) > 20
    assert len({(octave(sizes["rows"]), octave(sizes["columns"])) for sizes in both}) > 10
    assert all(WIDE.elements(sizes) <= 2 * WIDE.budget.on_gpu for sizes in chain(*pairs))


def test_contents_that_are_all_alike_come_at_the_end_itself() -> None:
    counted = Space(
        ranges={"n": Range(1, 1 << 26)},
        distributions=("normal", "zeros", EQUAL, REPEATED, "squares"),
        elements=lambda sizes: sizes["n"],
        case=build_case,
        budget=Budget(alone=1 << 20),
    )
    sizes = {case.distribution: case.sizes["n"] for case in beyond_simulator(counted, 7)[: 1 + OTHERS]}
    assert len(sizes) == 1 + OTHERS
    assert {name for name, size in sizes.items() if size == counted.budget.on_gpu} == {EQUAL, REPEATED}


def test_contents_in_which_a_wrong_element_shows_take_turns_and_the_last_ones_come_at_the_end() -> None:
    space = replace(ONE, distributions=("normal", "zeros", "largest number last"))
    assert {case.distribution for case in grid(ONE, 5)} == {"normal"}
    space = replace(space, alike=("normal", "largest number last"))
    counts = Counter(case.distribution for case in grid(space, 5))
    assert abs(counts["normal"] - counts["largest number last"]) <= len(space.distributions)
    ends = {case.sizes["n"]: case.distribution for case in beyond_simulator(space, 5)}
    assert ends[max(ends)] == "largest number last"


def test_a_problem_with_more_elements_than_a_gpu_gets_has_no_case_at_an_end() -> None:
    assert beyond_simulator(replace(ENDS, elements=lambda _: ENDS.budget.on_gpu + 1), 7) == ()


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_case_at_the_end_of_a_range_is_legal(name: str) -> None:
    space = space_of(PROBLEMS[name])
    for case in beyond_simulator(space, 1):
        sizes = {**space.least, **{size: case.sizes[size] for size in space.ranges if size in case.sizes}}
        assert all(limits.low <= sizes[size] <= limits.last for size, limits in space.ranges.items())
        assert all(sizes[size] % limits.multiple_of == 0 for size, limits in space.ranges.items())
        assert space.elements(sizes) <= 2 * space.budget.on_gpu
