"""y = softmax of each row of x: the function makes y, and returns it."""

from grader.problems.contents import real
from grader.problems.formula import Range
from grader.problems.formula_module import module

PROBLEM = module(
    id="row_softmax",
    file="row_softmax.py",
    function="row_softmax",
    arguments={"x": "float32"},
    results={"y": "float32"},
    formula=lambda x: x.softmax(-1),
    inputs=lambda rows, columns: {"x": real(rows, columns)},
    sizes={"rows": Range(1, 1 << 14), "columns": Range(1, 4096)},
    timing=({"rows": 4096, "columns": 1024},),
)
