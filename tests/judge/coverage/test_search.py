"""Further cases for code that is given as a function: what it compares, from the sizes of a case."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from grader.judge.coverage.search import TOLD_APART, Search, Unreached
from grader.problems.problem import Case, Range, Space
from grader.records.coverage import Coverage, Launches, Met, Side, Site, Way
from grader.records.findings import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Sizes = Mapping[str, int]
    Compared = Iterator[tuple[int, int, int]]  # the line, and two numbers
    Code = Callable[[Case], Compared]

RESIDENT = 60_000  # more than the usual cases have
RANGES = {"rows": Range(1, 1 << 21), "columns": Range(1, 1 << 13)}
USUAL = [(rows, columns) for rows in (1, 2, 7, 31, 257, 1025, 4099) for columns in (1, 5, 33, 700)]


def case(group: str, sizes: Sizes, distribution: str, seed: int) -> Case:
    name = " x ".join(map(str, sizes.values())) + f", {distribution}"
    return Case(name, group, dict(sizes), distribution, seed)


SPACE = Space(
    ranges=RANGES,
    distributions=("normal", "equal keys"),
    elements=lambda sizes: math.prod(sizes.values()),
    case=case,
    products={"elements": ("rows", "columns")},
)


def silent(_: Case) -> Compared:
    return iter(())


def one_across(_: Sizes) -> int:
    return 1


def coverage(
    code: Code,
    one: Case,
    blocks: int,
    across: Callable[[Sizes], int] = one_across,
    waiting: Callable[[Sizes], int] | None = None,
) -> Coverage:
    comparisons: dict[Site, Met] = {}
    for line, first, second in code(one):
        side = Side.BELOW if first < second else Side.EQUAL if first == second else Side.ABOVE
        site = Site("", (line,))
        before = comparisons.get(site, Met(frozenset(), (first, first), (second, second)))
        comparisons[site] = Met(
            before.sides | {side},
            (min(before.first[0], first), max(before.first[1], first)),
            (min(before.second[0], second), max(before.second[1], second)),
        )
    launches = Launches(1, blocks, across(one.sizes), 0, 256, 0)
    if waiting is not None:
        launches = replace(launches, most_blocks=waiting(one.sizes), resident=RESIDENT)
    return Coverage(comparisons=comparisons, launches={"k": launches})


def place(site: Site, _coverage: Coverage) -> tuple[Line, Site]:
    return Line("kernel.cu", site.code[0]), site


def searched(
    code: Code,
    literals: set[int] | None = None,
    blocks: int = 1 << 20,
    across: Callable[[Sizes], int] = one_across,
    waiting: Callable[[Sizes], int] | None = None,
    usual: list[tuple[int, int]] = USUAL,
) -> tuple[Search, list[Case]]:
    """All cases that a search adds to the usual ones."""
    search = Search(SPACE, 1, frozenset(literals or ()), place)
    found: list[Case] = []
    cases = tuple(case("usual", {"rows": r, "columns": c}, "normal", 0) for r, c in usual)
    for _ in range(8):
        for one in cases:
            search.add(one, coverage(code, one, blocks, across, waiting), 1000)
        cases = search.next()
        found += cases
        if not cases:
            break
    assert not cases
    return search, found


def rows(found: list[Case]) -> set[int]:
    return {one.sizes["rows"] for one in found}


def met(code: Callable[[Sizes], bool]) -> Callable[[list[Case]], bool]:
    """Whether a case takes the wrong way."""
    return lambda found: any(code(one.sizes) for one in found)


def in_interval(one: Case) -> Compared:
    n = one.sizes["rows"]
    yield 1, n, 70_000
    if n >= 70_000:
        yield 2, n, 70_100


def on_remainder(one: Case) -> Compared:
    n = one.sizes["rows"]
    yield 1, n, 1000
    if n > 1000:
        yield 2, n % 97, 41


def on_product(one: Case) -> Compared:
    yield 1, one.sizes["rows"] * one.sizes["columns"], 5_000_000


def on_grid(one: Case) -> Compared:
    yield 1, 4097, -(-one.sizes["rows"] // 256)


def on_switch(one: Case) -> Compared:
    for number in (96, 768, 5000):
        yield number, one.sizes["columns"], number


def on_count(one: Case) -> Compared:
    """Three of four rows are long where columns are many."""
    yield 1, one.sizes["rows"] * 3 // 4 - 1 if one.sizes["columns"] > 512 else 0, 4000


def behind_another(one: Case) -> Compared:
    yield 1, one.sizes["columns"], 2000
    if one.sizes["columns"] > 2000:
        yield 2, one.sizes["rows"], 123


WRONG: list[tuple[Code, Callable[[Sizes], bool]]] = [
    (in_interval, lambda sizes: 70_000 <= sizes["rows"] <= 70_100),
    (on_remainder, lambda sizes: sizes["rows"] > 1000 and sizes["rows"] % 97 == 41),
    (on_product, lambda sizes: sizes["rows"] * sizes["columns"] > 5_000_000),
    (on_grid, lambda sizes: -(-sizes["rows"] // 256) > 4097),
    (on_switch, lambda sizes: sizes["columns"] == 96),
    (on_switch, lambda sizes: sizes["columns"] == 5000),
    (on_count, lambda sizes: sizes["rows"] * 3 // 4 - 1 > 4000 and sizes["columns"] > 512),
    (behind_another, lambda sizes: sizes["columns"] > 2000 and sizes["rows"] == 123),
]


@pytest.mark.parametrize(("code", "wrong"), WRONG, ids=lambda one: getattr(one, "__name__", ""))
def test_both_sides_of_every_number_are_met(code: Code, wrong: Callable[[Sizes], bool]) -> None:
    literals = {97} if code is on_remainder else set()
    assert not any(wrong({"rows": r, "columns": c}) for r, c in USUAL)
    search, found = searched(code, literals)
    assert met(wrong)(found)
    assert {one.group for one in found} == {TOLD_APART}
    assert all(SPACE.legal(one.sizes, one.distribution) for one in found)
    assert not search.next()


def test_the_neighbours_of_a_number_are_met() -> None:
    _, found = searched(lambda one: iter([(1, one.sizes["rows"], 50_000)]))
    assert {49_999, 50_000, 50_001} <= rows(found)


def test_nothing_is_added_where_nothing_is_left() -> None:
    def code(one: Case) -> Compared:
        yield 1, one.sizes["rows"], 257
        yield 2, 0, 0  # an error that never occurs
        yield 3, 1 << 51, 1 << 60  # addresses
        for thread in (0, 31, 255):
            yield 4, thread, 128

    search, found = searched(code, {5, 256})
    assert found == []
    assert search.unreached({}) == ()


def test_what_sizes_do_not_reach_is_told() -> None:
    search, found = searched(lambda one: iter([(12, one.sizes["columns"], 9000)]))
    assert found == []
    limit = Unreached(Line("kernel.cu", 12), "", Side.ABOVE, 9000)
    search, _ = searched(lambda one: iter([(12, one.sizes["columns"] // 3 + one.sizes["rows"] % 2, 9000)]))
    assert limit in search.unreached({})


def test_lengths_of_arrays_are_met_by_sizes() -> None:
    _, found = searched(lambda _one: iter(()), {3000})
    assert {2999, 3000, 3001} <= rows(found)
    assert {2999, 3000, 3001} <= {one.sizes["columns"] for one in found}


def test_a_block_gets_more_elements_than_a_number_of_the_source() -> None:
    _, found = searched(lambda _one: iter(()), {65_535}, blocks=16)
    most = max((one for one in found if one.distribution == "equal keys"), key=lambda one: one.sizes["rows"])
    assert most.sizes["rows"] > 16 * 65_535


@pytest.mark.parametrize("rows_of_a_block", [32, 24])
def test_a_grid_gets_more_blocks_than_it_may_have_along_y(rows_of_a_block: int) -> None:
    def across(sizes: Sizes) -> int:
        return -(-sizes["rows"] // rows_of_a_block)

    literals = {rows_of_a_block}
    assert max(across(one.sizes) for one in searched(silent, literals, across=across)[1]) == 65_536
    assert searched(silent)[1] == []


@pytest.mark.parametrize(("rows_of_a_block", "columns_of_a_block"), [(1, 64), (8, 8)])
def test_a_grid_gets_more_blocks_that_wait_than_are_resident(
    rows_of_a_block: int, columns_of_a_block: int
) -> None:
    def blocks(sizes: Sizes) -> int:
        return -(-sizes["rows"] // rows_of_a_block) * -(-sizes["columns"] // columns_of_a_block)

    assert max(blocks(one.sizes) for one in searched(silent, {64}, waiting=blocks)[1]) > RESIDENT


def test_blocks_that_wait_are_full_where_a_long_thin_grid_has_the_most() -> None:
    def blocks(sizes: Sizes) -> int:
        return -(-sizes["rows"] // 64) * sizes["columns"]

    usual = [*((rows, columns) for rows in (1, 7, 31, 300) for columns in (1, 5, 33, 700)), (3, 8192)]
    assert max(blocks(one.sizes) for one in searched(silent, waiting=blocks, usual=usual)[1]) > RESIDENT


def test_contents_are_the_usual_ones_where_they_can_be() -> None:
    search = Search(SPACE, 1, frozenset(), place)
    for distribution in ("equal keys", "normal"):
        for r, c in USUAL:
            one = case("usual", {"rows": r, "columns": c}, distribution, 0)
            search.add(one, coverage(in_interval, one, 1), 1000)
    assert {one.distribution for one in search.next()} == {"normal"}


def test_the_budget_bounds_what_is_added() -> None:
    search = Search(SPACE, 1, frozenset(range(100, 8000, 100)), place, least=30_000_000)
    for r, c in USUAL:
        one = case("usual", {"rows": r, "columns": c}, "normal", 0)
        search.add(one, coverage(on_product, one, 1), 1000)
    assert 0 < len(search.next()) <= 15


def test_branches_with_one_way_and_blocks_that_never_ran_are_told() -> None:
    search = Search(SPACE, 1, frozenset(), place)
    never, always = Site("k", (3,)), Site("k", (4,))
    for seen in ({Way.PASSED}, {Way.PASSED}):
        ways = {never: frozenset(seen), always: frozenset(Way), Site("k", (5,)): frozenset[Way]()}
        search.add(
            case("usual", {"rows": 1, "columns": 1}, "normal", 0), Coverage(ways, blocks=frozenset({10})), 1
        )
    lines = {10: Line("kernel.cu", 8), 20: Line("kernel.cu", 9), 30: Line("kernel.cu", 8)}
    assert search.unreached(lines) == (
        Unreached(Line("kernel.cu", 9), "", Way.TAKEN),
        Unreached(Line("kernel.cu", 3), "k", Way.TAKEN),
    )


def test_an_added_case_may_leave_out_a_size() -> None:
    def vector(group: str, sizes: Sizes, distribution: str, seed: int) -> Case:
        whole = case(group, sizes, distribution, seed)
        return replace(whole, sizes={"columns": sizes["columns"]}) if sizes["rows"] == 1 else whole

    space = replace(SPACE, case=vector, elements=lambda sizes: sizes["rows"] * sizes["columns"])
    search = Search(space, 1, frozenset(), place, least=30_000_000)

    def one_row(one: Case) -> Compared:
        yield 1, one.sizes.get("rows", 1), 1

    for r, c in USUAL:
        if r > 1:
            one = case("usual", {"rows": r, "columns": c}, "normal", 0)
            search.add(one, coverage(one_row, one, 1 << 20), 1000)
    added = search.next()
    assert any(one.sizes.keys() == {"columns"} for one in added)
    for one in added:
        search.add(one, coverage(one_row, one, 1 << 20), 1000)


def test_nothing_is_added_where_no_case_has_the_sizes_of_the_space() -> None:
    search = Search(SPACE, 1, frozenset({100}), place)
    search.add(Case("5", "usual", {"columns": 5}, "normal", 0), Coverage(), 1000)
    assert search.next() == ()
