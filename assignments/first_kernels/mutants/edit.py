"""How the wrong kernels of this folder are made: each is the reference with one small edit and one reason."""

from dataclasses import replace

from grader.assignments.mutants import Mutant


def edit(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    """The reference of ``problem`` with ``new`` in place of ``old``."""
    file = f"{problem}.cu"
    return Mutant(id=f"{problem}-{name}", problem=problem, file=file, old=old, new=new, why=why, group=group)


def edit_in_triton(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    """The reference of ``problem`` in Triton with ``new`` in place of ``old``."""
    mutant = edit(problem, name, old, new, why, group)
    return replace(mutant, id=f"triton-{mutant.id}", file=f"{problem}.py", language="triton")
