"""Contents that belong together: drawn by one function, in order, or each number once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from grader.problems.contents import (
    ASCENDING,
    HUB,
    LONG_PATH,
    NORMAL,
    SOME_LONG,
    ascending,
    graph,
    integers,
    offsets,
    permutation,
    real,
    together,
)
from grader.problems.formula import FormulaError, Range, problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.problems.problem import KernelProblem

EVEN = "rows of one length"


def jagged(random: np.random.Generator, rows: int, entries: int, *, even: bool) -> dict[str, Any]:
    """A sparse matrix by jagged diagonals: rows by length, and column after column of what remains."""
    lengths = np.bincount(
        np.arange(entries) % rows if even else random.integers(rows, size=entries), None, rows
    )
    order = np.argsort(-lengths, kind="stable")
    counts = (lengths > np.arange(entries)[:, None]).sum(1)
    return {
        "order": order,
        "begin": np.concatenate([[0], counts.cumsum()]),
        "columns": random.integers(rows, size=entries),
        "longest": lengths.max(),
    }


def multiplied(
    values: torch.Tensor,
    x: torch.Tensor,
    order: torch.Tensor,
    begin: torch.Tensor,
    columns: torch.Tensor,
    rows: int,
    entries: int,
) -> torch.Tensor:
    places = torch.arange(entries)
    diagonals = torch.searchsorted(begin[1:].contiguous(), places, right=True)
    row = order[places - begin[diagonals]]
    return torch.zeros(rows, dtype=values.dtype).index_add(0, row, values * x[columns])


def jds(**more: Any) -> KernelProblem:  # noqa: ANN401 - arguments of ``problem``
    return problem(
        id="jds",
        file="jds.cu",
        launcher="launch_jds(float* y, const float* values, const float* x, const int* order, "
        "const int* begin, const int* columns, int longest, int rows, int entries, cudaStream_t stream)",
        formula=multiplied,
        inputs=lambda rows, entries: {
            **together(
                {
                    NORMAL: lambda random: jagged(random, rows, entries, even=False),
                    EVEN: lambda random: jagged(random, rows, entries, even=True),
                },
                order=(rows,),
                begin=(entries + 1,),
                columns=(entries,),
                longest=(),
            ),
            "values": real(entries),
            "x": real(rows),
        },
        sizes={"rows": Range(1, 300), "entries": Range(1, 1000)},
        **more,
    )


JDS = jds()


def test_without_times_a_formula_needs_no_baseline() -> None:
    case = JDS.cases(1)[0]
    assert JDS.unfused(case) == ()  # for nothing computes searchsorted; the diagnosis asks, too
    with pytest.raises(FormulaError, match="no kernel for searchsorted"):
        jds(timing=({"rows": 300, "entries": 1000},)).unfused(case)


def test_one_function_draws_what_belongs_together_in_every_case() -> None:
    cases = JDS.cases(1)
    assert EVEN in {case.distribution for case in cases}
    for case in cases:
        inputs = JDS.inputs(case)
        rows, entries = case.sizes["rows"], case.sizes["entries"]
        arrays: dict[str, NDArray[Any]] = {
            name: array for name, array in inputs.arrays.items() if array is not None
        }
        lengths = np.bincount(arrays["order"], minlength=rows)
        assert (lengths == 1).all()  # it is a permutation
        assert arrays["begin"][inputs.scalars["longest"]] == entries
        assert arrays["begin"].dtype == np.int32
        if case.distribution == EVEN:
            assert inputs.scalars["longest"] == -(-entries // rows)
        dense = np.zeros((rows, rows))
        for place in range(min(entries, 200)):
            diagonal = np.searchsorted(arrays["begin"][1:], place, "right")
            row = arrays["order"][place - arrays["begin"][diagonal]]
            dense[row, arrays["columns"][place]] += float(arrays["values"][place])
        if entries <= 200:
            (expected,) = JDS.oracle(case, inputs)["y"].candidates
            assert np.allclose(
                expected.expected, dense @ arrays["x"].astype(np.float64), rtol=1e-9, atol=1e-30
            )


def test_what_belongs_together_is_neither_cut_nor_rotated_nor_called_with_other_sizes() -> None:
    assert (JDS.slices, JDS.turning) == ((), ())
    assert not any(case.queued for case in JDS.cases(1))


def test_numbers_are_in_order_in_every_distribution() -> None:
    content = ascending(integers(-5, 5, 3, 40))
    for distribution in content.draws("int32"):
        numbers = content.drawn(np.random.default_rng(1), "int32", distribution)
        assert (np.diff(numbers.astype(np.int64), axis=1) >= 0).all()
    assert content.draws("int32").keys() == integers(-5, 5, 3, 40).draws("int32").keys()


def test_each_number_once() -> None:
    content = permutation(50)
    for distribution in content.draws("int32"):
        numbers = content.drawn(np.random.default_rng(1), "int32", distribution)
        assert sorted(numbers.tolist()) == list(range(50))
    assert (content.drawn(np.random.default_rng(1), "int32", ASCENDING) == np.arange(50)).all()
    assert SOME_LONG in offsets(4, 3).draws("int32")  # which other contents keep


@pytest.mark.parametrize(
    ("draws", "text"),
    [
        ({EVEN: lambda _: {}}, "together needs a function for the distribution 'normal'"),
        ({NORMAL: lambda _: {"x": np.zeros(3)}}, r"draws together \{'x': \(3,\)\}, and says that it draws"),
        ({NORMAL: lambda _: {"x": 1 / 0}}, "inputs fails with n = .*: ZeroDivisionError"),
    ],
)
def test_what_does_not_fit_is_refused(draws: Any, text: str) -> None:  # noqa: ANN401 - wrong ones
    with pytest.raises(FormulaError, match=text):
        problem(
            id="x",
            file="x.cu",
            launcher="launch_x(float* y, const float* x, int n, cudaStream_t stream)",
            formula=lambda x: 2 * x,
            inputs=lambda n: together(draws, x=(n,)),
            sizes={"n": Range(1, 10)},
        )


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ({"x": [1, 2.5], "k": 3}, "together draws 2.5 for x, which int does not hold: draw integers"),
        ({"x": [1, 2**31], "k": 3}, "together draws 2.14748e.09 for x, which int does not hold"),
        ({"x": [np.nan, 1], "k": 3}, "together draws nan for x"),
        ({"x": [1, 2], "k": 2.5}, "together draws 2.5 for k, which is no int: round it"),
    ],
)
def test_numbers_that_a_type_does_not_hold_are_refused(drawn: dict[str, Any], text: str) -> None:
    with pytest.raises(FormulaError, match=text):
        problem(
            id="x",
            file="x.cu",
            launcher="launch_x(int* y, const int* x, int k, int n, cudaStream_t stream)",
            formula=lambda x, k: k * x,
            inputs=lambda: together({NORMAL: lambda _: drawn}, x=(2,), k=()),
            sizes={"n": Range(1, 10)},
        )


@pytest.mark.parametrize(("vertices", "edges"), [(1, 1), (1, 5), (40, 1), (40, 39), (40, 300), (300, 40)])
def test_a_graph_has_a_long_path_that_no_edge_makes_shorter(vertices: int, edges: int) -> None:
    contents = graph(vertices, edges)
    linked = contents["begin"].linked
    assert linked is not None
    assert {content.shape for content in contents.values()} == {(vertices + 1,), (edges,)}
    for distribution in linked.draws:
        drawn = linked.drawn(np.random.default_rng(1), distribution)
        begin, targets = drawn["begin"], drawn["targets"]
        assert (begin[0], begin[-1]) == (0, edges)
        assert (np.diff(begin) >= 0).all()
        assert ((targets >= 0) & (targets < vertices)).all()
        level = {0: 0}
        for vertex in (reached := [0]):
            for target in targets[begin[vertex] : begin[vertex + 1]].tolist():
                if target not in level:
                    level[target] = level[vertex] + 1
                    reached.append(target)
        if distribution == LONG_PATH:
            assert max(level.values()) == min(edges, vertices - 1)
        if distribution == HUB:
            assert np.count_nonzero(np.diff(begin)) == 1
