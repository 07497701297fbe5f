"""C = A B of half precision in tiles of 16 x 16, added up in float32: every size is a multiple of 16."""

from grader.problems.contents import real
from grader.problems.formula import Range, problem

SIZE = Range(16, 4096, multiple_of=16)
PROBLEM = problem(
    id="tensor_cores",
    file="tensor_cores.cu",
    launcher="launch_tensor_cores(float* c, const __half* a, const __half* b, int m, int n, int k, "
    "cudaStream_t stream)",
    formula=lambda a, b: a @ b,
    inputs=lambda m, n, k: {"a": real(m, k), "b": real(k, n)},
    sizes={"m": SIZE, "n": SIZE, "k": SIZE},
)
