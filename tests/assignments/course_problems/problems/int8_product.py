"""The product of two matrices of int8, added up in int32: c = a b^T, whose rows are both of length k."""

from grader.problems.contents import integers
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="int8_product",
    file="int8_product.cu",
    launcher="launch_int8_product(int* c, const signed char* a, const signed char* b, int m, int n, int k, "
    "cudaStream_t stream)",
    formula=lambda a, b: a.int() @ b.int().T,
    inputs=lambda m, n, k: {"a": integers(-128, 127, m, k), "b": integers(-128, 127, n, k)},
    sizes={"m": Range(1, 2000), "n": Range(1, 2000), "k": Range(4, 4096, multiple_of=4)},
)
