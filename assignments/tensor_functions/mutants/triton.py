"""Wrong answers: edits of ``reference_triton``, with the reason of each. All of them must fail."""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP


def edit(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    """The reference of ``problem`` with ``new`` in place of ``old``."""
    return Mutant(
        id=f"{problem}-{name}",
        problem=problem,
        file=f"{problem}.py",
        old=old,
        new=new,
        why=why,
        group=group,
        language="triton",
    )


MUTANTS = (
    edit("shifted_sum", "no-shift", "total + shift", "total", "the number is not added", "small sizes"),
    edit("shifted_sum", "x-twice", "tl.load(y + at", "tl.load(x + at", "x is added to itself", "small sizes"),
    edit(
        "shifted_sum",
        "one-program-less",
        "triton.cdiv(n, TILE)",
        "max(1, n // TILE)",
        "the rest behind the last full tile stays unwritten",
        "sizes around a border",
    ),
    edit(
        "shifted_sum",
        "store-unmasked",
        "total + shift, mask=inside",
        "total + shift",
        "the last program writes behind the end",
        MEMORY_GROUP,
    ),
    edit(
        "shifted_sum",
        "returns-an-input",
        "return out",
        "return x",
        "an input is returned in place of the sum",
        "small sizes",
    ),
    edit(
        "row_softmax",
        "largest-left",
        "tl.exp(values - tl.max(values, 0))",
        "tl.exp(values)",
        "the exponential of a large number overflows",
        "large offset",
    ),
    edit(
        "row_softmax",
        "zero-behind-the-row",
        'other=float("-inf")',
        "other=0.0",
        "what lies behind the end of a row is counted as zeros",
        "small sizes",
    ),
    edit(
        "row_softmax",
        "rows-overlap",
        "tl.program_id(0).to(tl.int64) * columns",
        "tl.program_id(0).to(tl.int64) * (columns - 1)",
        "a row begins in the row before it",
        "sizes around a border",
    ),
    edit(
        "row_softmax",
        "store-unmasked",
        "tl.sum(powers, 0), mask=inside",
        "tl.sum(powers, 0)",
        "a row is written on into the next one",
        MEMORY_GROUP,
    ),
    edit(
        "row_softmax",
        "returns-the-input",
        "return y",
        "return x",
        "the input is returned",
        "small sizes",
    ),
)
