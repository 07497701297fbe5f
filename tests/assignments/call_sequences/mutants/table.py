"""Wrong kernels: each has to fail."""

from grader.assignments.mutants import Mutant


def mutant(name, problem, old, new, why, group="small sizes"):
    return Mutant(id=name, problem=problem, file=f"{problem}.cu", old=old, new=new, why=why, group=group)


MUTANTS = (
    mutant("plan", "running_sums", "plan->n)", "plan->rows)", "another number of the plan"),
    mutant("stale", "running_sums", "before += part", "before = part", "sums of earlier parts are lost"),
    mutant(
        "moment", "adam", "float m = moment[i] =", "float m =", "the moment is not kept for the next step"
    ),
    mutant("first", "adam", "powf(keep, step)", "powf(keep, 1)", "each step is corrected like the first one"),
    mutant("pushed", "queue", "queue->pushed += n;", "", "each batch is put over the one before it"),
    mutant(
        "last",
        "queue",
        "queue->popped += n;",
        "queue->popped = queue->pushed - n;",
        "the last one comes first",
    ),
    mutant(
        "freed",
        "queue",
        "pop(Queue *queue, int *taken, int n, cudaStream_t stream) {",
        "pop(Queue *queue, int *taken, int n, cudaStream_t stream) {\n  cudaFree(queue->numbers);",
        "memory is freed before it is read",
    ),
)
