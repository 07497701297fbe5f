"""Wrong kernels: each has to fail."""

from grader.assignments.mutants import Mutant


def mutant(name, problem, old, new, why, group="small sizes"):
    return Mutant(id=name, problem=problem, file=f"{problem}.cu", old=old, new=new, why=why, group=group)


MUTANTS = (
    mutant("alike", "colouring", "edge = begin[v] - 1;", "", "neighbours are not looked at again"),
    mutant("many", "colouring", "int own = 0;", "int own = v;", "each vertex has a colour of its own"),
    mutant("edge", "colouring", "edge < begin[v + 1]", "edge < begin[v + 1] - 1", "an edge is left out"),
    mutant("steps", "eigenvector", "STEPS = 20", "STEPS = 3", "there are too few steps"),
    mutant(
        "length",
        "eigenvector",
        "* scale;",
        "* scale * scale;",
        "the length is not 1",
        "sizes around a border",
    ),
    mutant("narrow", "eigenvector", "j < n;", "j < n - 1;", "a column is left out"),
    mutant("square", "hits", "x * x + y * y", "x * x + y", "it is a parabola", "large sizes"),
    mutant("same", "hits", "other = mixed(first + 1)", "other = first", "both are the same", "large sizes"),
    mutant("clear", "hits", "cudaMemsetAsync(hits, 0, sizeof *hits, stream);", "", "hits begin anywhere"),
    mutant("conjugate", "signals", "cuCmulf(x[place],", "cuCmulf(cuConjf(x[place]),", "another product"),
    mutant("padding", "signals", "mask[place] ?", "true ?", "what is behind the end counts"),
    mutant("last", "signals", "lengths[row] - 1", "lengths[row]", "the place behind the last one"),
    mutant(
        "order", "compacted", "(1u << threadIdx.x) - 1", "~((2u << threadIdx.x) - 1)", "it turns a warp round"
    ),
    mutant(
        "warp",
        "compacted",
        "before += __popc(lanes);",
        "before += 32;",
        "there are gaps",
        "sizes around a border",
    ),
)
