"""What is counted of a program of generic operations."""

from __future__ import annotations

import pytest

from grader.problems.operations import Kind, Operation, Window, dense, multiply_adds, reduced

PRODUCT = Operation(Kind.MATMUL, "matmul", dense("c", 2, 3, 5), (dense("a", 2, 3, 7), dense("b", 2, 7, 5)))
IMAGES = Operation(
    Kind.CONVOLUTION,
    "convolution",
    dense("t", 4, 6, 10, 10, dtype="float16"),
    (dense("x", 4, 8, 12, 12, dtype="float16"), dense("w", 6, 4, 3, 3, dtype="float16")),
    window=Window((1, 1), (0, 0), (1, 1), groups=2),
)
DOUBLE = Operation(
    Kind.MATMUL,
    "matmul",
    *((dense("c", 1, 2, 2, dtype="float64"), (dense("a", 1, 2, 2, dtype="float64"),) * 2)),
)


def test_products_and_convolutions_are_counted_by_type() -> None:
    program = (PRODUCT, reduced("s", "sum", dense("c", 2, 3, 5), 0), IMAGES, PRODUCT)
    assert multiply_adds(program) == {"float32": 2 * 2 * 3 * 5 * 7, "float16": 4 * 6 * 10 * 10 * 4 * 9}


@pytest.mark.parametrize(
    ("program", "words"),
    [((reduced("s", "sum", dense("c", 2, 3, 5), 0),), "here are none"), ((DOUBLE,), "those of float64")],
)
def test_what_has_no_known_limit_is_refused(program: tuple[Operation, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        multiply_adds(program)
