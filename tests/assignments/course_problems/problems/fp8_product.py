"""C = scale A B of numbers of eight bits, added up in float32 and stored in eight bits again."""

from grader.problems.contents import Number, real
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="fp8_product",
    file="fp8_product.cu",
    launcher="launch_fp8_product(__nv_fp8_e5m2* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, "
    "float scale, int m, int n, int k, cudaStream_t stream)",
    formula=lambda a, b, scale: a @ b * scale,
    inputs=lambda m, n, k: {"a": real(m, k), "b": real(k, n), "scale": Number(0.125, 0.01, 4)},
    sizes={"m": Range(1, 200), "n": Range(1, 200), "k": Range(1, 700)},
    most=1 << 14,
)
