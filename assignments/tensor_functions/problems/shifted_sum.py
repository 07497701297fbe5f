"""out = x + y + shift, element by element: the arguments come as one tuple, and the last is filled."""

from grader.problems.contents import Number, real
from grader.problems.formula import Range
from grader.problems.formula_module import module

PROBLEM = module(
    id="shifted_sum",
    file="shifted_sum.py",
    function="custom_kernel",
    arguments={"x": "float32", "y": "float32", "shift": float, "out": "float32"},
    results={"out": "float32"},
    formula=lambda x, y, shift: x + y + shift,
    inputs=lambda n: {"x": real(n), "y": real(n), "shift": Number(0.5, -4, 4)},
    sizes={"n": Range(1, 1 << 24)},
    timing=({"n": 1 << 20}, {"n": 1 << 24}),
    packed=True,
    torch_operators="none",
)
