"""Running sums of each row: a plan that is made once, and used for two inputs."""

from grader.problems.contents import integers
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="running_sums",
    file="running_sums.cu",
    launcher=[
        "Plan* plan_sums(int rows, int n, cudaStream_t stream)",
        "void run_sums(Plan* plan, int* sums, const int* x, cudaStream_t stream)",
        "void free_sums(Plan* plan)",
    ],
    calls=lambda: [
        "plan_sums",
        ("run_sums", {"sums": 0, "x": 0}),
        ("run_sums", {"sums": 1, "x": 1}),
        "free_sums",
    ],
    formula=lambda x: x.cumsum(-1),
    inputs=lambda rows, n: {"x": integers(-100, 100, 2, rows, n)},
    sizes={"rows": Range(1, 1 << 8), "n": Range(1, 1 << 12)},
)
