"""Formulas that explain a number of the code, and sizes that make it what it should be."""

from __future__ import annotations

import math
from itertools import product

import pytest

from grader.judge.coverage.quantities import Form, Quantity, fitting
from grader.problems.problem import Case, Range, Space

SIZES = [
    {"rows": rows, "columns": columns, "k": k}
    for rows, columns, k in [(1, 5, 9), (31, 7, 5), (300, 2, 17), (64, 129, 1), (5, 1024, 33), (999, 37, 2)]
]
SPACE = Space(
    ranges={"rows": Range(1, 1 << 20), "columns": Range(4, 8192, 4), "k": Range(1, 1 << 20)},
    distributions=("normal",),
    elements=lambda sizes: math.prod(sizes.values()),
    case=lambda group, sizes, distribution, seed: Case("case", group, sizes, distribution, seed),
)
DIVISORS = (2, 4, 7, 32, 256)


@pytest.mark.parametrize(
    "quantity",
    [
        Quantity(("rows",)),
        Quantity(("columns", "rows")),
        Quantity(("rows", "columns", "k")),
        Quantity(("rows",), Form.CEILING, 256),
        Quantity(("columns",), Form.FLOOR, 4),
        Quantity(("rows",), Form.REST, 7),
        Quantity(("k",), Form.FILLED, 32, -1),
        Quantity(("rows", "k"), Form.CEILING, 256),
    ],
    ids=str,
)
def test_a_formula_is_found_by_what_it_gives(quantity: Quantity) -> None:
    found = fitting([(sizes, quantity.of(sizes)) for sizes in SIZES], DIVISORS)
    assert found
    assert all(one.of(sizes) == quantity.of(sizes) for one in found for sizes in SIZES)


def test_what_no_formula_gives_has_none() -> None:
    assert not fitting([(sizes, 3 * number * number + 11) for number, sizes in enumerate(SIZES)], DIVISORS)


def test_what_never_changes_has_none() -> None:
    assert not fitting([(sizes, 5) for sizes in SIZES], DIVISORS)


@pytest.mark.parametrize("number", [(1 << 64) - 1, -(1 << 63)])
def test_bits_of_another_type_come_from_no_size(number: int) -> None:
    assert not fitting([(SIZES[0], number), (SIZES[1], 5)], DIVISORS)


def test_what_is_equal_in_all_cases_may_be_a_size_that_is() -> None:
    seen = [({**sizes, "k": 12}, 12) for sizes in SIZES]
    assert fitting(seen, DIVISORS) == (Quantity(("k",)),)


def test_one_case_alone_tells_sizes_and_products() -> None:
    assert Quantity(("rows",)) in fitting([(SIZES[0], 1)], DIVISORS)
    assert fitting([(SIZES[4], 5 * 1024)], DIVISORS) == (Quantity(("rows", "columns")),)


@pytest.mark.parametrize(
    ("quantity", "target"),
    [
        *product(
            [Quantity(("rows",)), Quantity(("rows", "k")), Quantity(("rows", "k"), Form.CEILING, 256)], [4097]
        ),
        (Quantity(("rows", "columns")), 4096),
        (Quantity(("rows",), Form.REST, 7), 3),
        (Quantity(("rows",), Form.FLOOR, 4), 70_000),
        (Quantity(("k",), Form.FILLED, 32, -1), 95),
        (Quantity(("k",), Form.CUT, 32), 96),
        (Quantity(("rows",), offset=1), 65_536),
    ],
    ids=str,
)
def test_sizes_make_it_what_it_should_be(quantity: Quantity, target: int) -> None:
    found = list(quantity.solutions(target, SIZES[0] | {"columns": 8}, SPACE))
    assert found
    assert all(quantity.of(sizes) == target and SPACE.legal(sizes, "normal") for sizes in found)


def test_the_other_sizes_stay_as_they_are_where_they_can() -> None:
    first = next(Quantity(("rows",)).solutions(77, SIZES[4], SPACE))
    assert first == {**SIZES[4], "rows": 77}


def test_no_sizes_make_it_what_it_cannot_be() -> None:
    assert not list(Quantity(("columns",)).solutions(4095, SIZES[4], SPACE))
    assert not list(Quantity(("rows",), Form.REST, 7).solutions(7, SIZES[0], SPACE))
