"""A queue on the device: numbers go in, and come out in the same order."""

from grader.problems.contents import integers
from grader.problems.formula import Range, problem


def calls(batches):
    pushes = [("push", {"numbers": batch}) for batch in range(batches)]
    return ["make_queue", *pushes, *[("pop", {"taken": batch}) for batch in range(batches)], "free_queue"]


PROBLEM = problem(
    id="queue",
    file="queue.cu",
    launcher=[
        "Queue* make_queue(int batches, int n, cudaStream_t stream)",
        "void push(Queue* queue, const int* numbers, int n, cudaStream_t stream)",
        "void pop(Queue* queue, int* taken, int n, cudaStream_t stream)",
        "void free_queue(Queue* queue)",
    ],
    calls=calls,
    formula=lambda numbers: numbers.clone(),
    inputs=lambda batches, n: {"numbers": integers(-1000, 1000, batches, n)},
    sizes={"batches": Range(1, 6), "n": Range(1, 1 << 16)},
)
