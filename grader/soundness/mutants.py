"""The automatic mutants of an assignment: every edit of its right kernels, or a sample of them.

Layer: imports kernels, edits, operators and tiers.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from grader.languages.cuda.source import functions
from grader.soundness.edits import Source, runs_on_device_alone
from grader.soundness.operators import edits
from grader.soundness.tiers import Tier, tiers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grader.problems.problem import Space
    from grader.soundness.edits import Edit
    from grader.soundness.kernels import RightKernel


@dataclass(frozen=True)
class AutomaticMutant:
    """One edit of one file of right kernels.

    Attributes:
        key: a name that stays while the rest of the file changes.
        label: the file, as a person finds it.
        file: its name among the files of its kernels.
        edit: what changes.
        lines: the first and the last line that the edit is in.
        on_device: whether no host code changes.
        kernels: the right kernels that the edit may make wrong; none where nothing calls it.
    """

    key: str
    label: str
    file: str
    edit: Edit
    lines: tuple[int, int]
    on_device: bool
    kernels: tuple[RightKernel, ...]

    def of(self, kernel: RightKernel) -> Mapping[str, str]:
        """The files of one of its kernels with the edit."""
        return {**kernel.files, self.file: self.edit.applied(kernel.files[self.file])}

    @property
    def text_sha256(self) -> str:
        """The hash of the file with the edit."""
        return hashlib.sha256(self.edit.applied(self.kernels[0].files[self.file]).encode()).hexdigest()

    @property
    def tier(self) -> Tier | None:
        """The edit, if it is a tier: one that takes effect in an interval of sizes alone; else None."""
        return self.edit if isinstance(self.edit, Tier) else None

    @property
    def origin(self) -> str:
        """The group that a sample is taken from: the mutants of a file, or the tiers of a right kernel."""
        return self.label if self.tier is None else self.kernels[0].id

    @property
    def title(self) -> str:
        """Place and change, for a person."""
        return f"{self.label}:{self.lines[0]} {self.edit.reason}"


def mutants(kernels: Sequence[RightKernel]) -> tuple[AutomaticMutant, ...]:
    """All mutants of these kernels, file by file."""
    holders: dict[tuple[str, str], list[RightKernel]] = defaultdict(list)
    for kernel in kernels:
        for file in kernel.files:
            holders[kernel.label(file), file].append(kernel)
    return tuple(
        mutant for (label, file), users in holders.items() for mutant in _of_file(label, file, tuple(users))
    )


def tier_mutants(kernels: Sequence[RightKernel], seed: int) -> tuple[AutomaticMutant, ...]:
    """The tiers of these kernels, which ``seed`` draws, kernel by kernel.

    Each belongs to one kernel, as files that several share have other sizes in each. There are none of a
    problem that does not say which inputs it may have.
    """
    return tuple(
        mutant
        for kernel in kernels
        if kernel.problem.space is not None
        for mutant in _tiers_of(kernel, kernel.problem.space, seed)
    )


def sample(candidates: Sequence[AutomaticMutant], per_origin: int, seed: int) -> tuple[AutomaticMutant, ...]:
    """At most ``per_origin`` mutants of each origin, of as many operators as there are, in their order."""

    def drawn(mutant: AutomaticMutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).hexdigest()

    ranked: list[tuple[int, AutomaticMutant]] = []
    before: Counter[tuple[str, str]] = Counter()  # of the same origin and operator
    for mutant in sorted(candidates, key=drawn):
        ranked.append((before[mutant.origin, mutant.edit.operator], mutant))
        before[mutant.origin, mutant.edit.operator] += 1
    taken: Counter[str] = Counter()
    chosen = set()
    for _, mutant in sorted(ranked, key=itemgetter(0)):
        if taken[mutant.origin] < per_origin:
            chosen.add(mutant.key)
        taken[mutant.origin] += 1
    return tuple(mutant for mutant in candidates if mutant.key in chosen)


def _tiers_of(kernel: RightKernel, space: Space, seed: int) -> Iterator[AutomaticMutant]:
    sources = {file: Source(text) for file, text in kernel.files.items()}
    pairs = tiers(kernel, space, seed)
    for file, source in sources.items():
        edits_of_file = [tier for name, tier in pairs if name == file]
        keys = source.keys(f"{kernel.id} {file}", edits_of_file)
        for edit, key in zip(edits_of_file, keys, strict=True):
            lines = source.line(edit.begin), source.line(edit.end)
            on_device = runs_on_device_alone(source, edit)
            yield AutomaticMutant(key, kernel.label(file), file, edit, lines, on_device, (kernel,))


def _of_file(label: str, file: str, users: tuple[RightKernel, ...]) -> Iterator[AutomaticMutant]:
    source = Source(users[0].files[file])
    definitions, changes = functions(source.text), edits(source)
    reached: dict[str, tuple[RightKernel, ...]] = {"": users}
    for edit, key in zip(changes, source.keys(label, changes), strict=True):
        name = next(
            (function.name for function in definitions if function.begin <= edit.begin < function.end), ""
        )  # "": of a class
        if name not in reached:
            reached[name] = tuple(user for user in users if name in user.used)
        lines = source.line(edit.begin), source.line(edit.end)
        yield AutomaticMutant(
            key, label, file, edit, lines, runs_on_device_alone(source, edit), reached[name]
        )
