"""How the wrong kernels of this folder are made: each is the reference with one small edit and one reason."""

from grader.assignments.mutants import Mutant


def edit(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    """The reference of ``problem`` with ``new`` in place of ``old``."""
    file = f"{problem}.cu"
    return Mutant(id=f"{problem}-{name}", problem=problem, file=file, old=old, new=new, why=why, group=group)
