"""Wrong kernels: each has to fail."""

from grader.assignments.mutants import Mutant


def mutant(name, problem, old, new, why, group="small sizes"):
    return Mutant(id=name, problem=problem, file=f"{problem}.cu", old=old, new=new, why=why, group=group)


MUTANTS = (
    mutant("ties", "top_k", " || (row[j] == row[i] && j < i)", "", "equal numbers take the same place"),
    mutant("smallest", "top_k", "row[j] > row[i] ||", "row[j] < row[i] ||", "the smallest ones are taken"),
    mutant("block", "top_k", "i += blockDim.x", "i += n", "only 128 numbers are looked at"),
    mutant("level", "bfs", "!= step) return", "< 0) return", "vertices of the same level are parents"),
    mutant("last-edge", "bfs", "edge < begin[v + 1]", "edge < begin[v + 1] - 1", "an edge is left out"),
    mutant("unreached", "bfs", "parent[v] = v == 0 ? 0 : -1", "parent[v] = 0", "no path has a parent, too"),
    mutant(
        "few-levels",
        "bfs",
        "step = 0; host; ++step",
        "step = 0; step < 64; ++step",
        "paths end after 64 steps",
    ),
    mutant("pivot", "partition", "x[i] < pivot", "x[i] <= pivot", "the pivot itself is in front"),
    mutant("place", "partition", "= x[i];", "= i;", "places are written instead of numbers"),
    mutant(
        "uniform",
        "samples",
        "-logf((bits + 0.5f) * 0x1p-32f) / rate",
        "(bits + 0.5f) * 0x1p-32f / rate",
        "the samples are uniform",
    ),
    mutant("pairs", "samples", "(i + 1) *", "(i / 2 + 1) *", "two neighbours have the same number"),
    mutant("rate", "samples", "/ rate", "* rate", "the mean is the rate", "sizes of every magnitude"),
)
