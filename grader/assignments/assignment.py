"""An assignment is a folder: its rules, its problems, the template and the reference.

    assignment.toml     points, targets, limits, waivers; see ``rules.py``
    problems/           a Python module per problem, which defines ``PROBLEM``
    cases/              inputs and expected outputs of a program problem that has no module
    student_template/   what students begin with
    reference/          kernels that earn full marks

Of a further language, such as Triton, ``reference_triton`` and ``student_template_triton`` hold the kernels.

It is loaded by its id, if it is installed or lies in a folder that ``GRADER_ASSIGNMENTS`` names, or by the
path of its folder. Its modules are code that the judge runs: a folder is as trusted as the grader itself, and
a submission never says which one is loaded.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.rules import AssignmentError, Rules, merged, nearest, parse, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grader.problems.problem import Problem

FILE = "assignment.toml"
DEFAULT = "default.txt"
"""The file beside the installed assignments that names the default one."""

EXAMPLE = Path(__file__).parent / "example"
"""A complete small assignment, to begin one's own with."""

EXAMPLE_PROGRAM = EXAMPLE.with_name("example_program")
"""The same with a whole program as its problem."""

_INSTALLED = (
    Path(__file__).parents[1] / "installed" / "assignments",
    Path(__file__).parents[2] / "assignments",
)
"""Where assignments lie that come with the grader: within the package, in a source tree beside it."""

ENVIRONMENT = "GRADER_ASSIGNMENTS"
"""The variable with folders of further assignments that are named by id, separated as in PATH."""

_NOT_INHERITED = {"id", "title", "extends", "template", "reference"}
"""Keys of the rules that an assignment that extends another does not take from there, or not as a path."""

_NO_VERDICT = {"deadline", "attempts"}
"""Keys of the rules that tables of a class follow, and no verdict."""

_IDENTITY = {".py", ".toml", ".cu", ".cuh", ".h", ".hpp", ".json"}


@dataclass(frozen=True)
class Assignment:
    """A set of problems with points and targets.

    Attributes:
        folder: where it lies.
        bases: where the assignments lie that it extends, the nearest first.
        rules: its points, targets and limits.
        template: the folder that students begin with.
        reference: the folder of the reference.
        modules: the folders of its problems; of a problem that is in several, the first counts.
        only: the problems that are looked at, by id; the modules of others may fail. None for all.
    """

    folder: Path
    bases: tuple[Path, ...]
    rules: Rules
    template: Path
    reference: Path
    modules: tuple[Path, ...]
    only: frozenset[str] | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its own and those of the assignments that it extends."""
        return (self.folder, *self.bases)

    @property
    def id(self) -> str:
        """Its stable name."""
        return self.rules.id

    @property
    def title(self) -> str:
        """The name of the assignment in reports."""
        return self.rules.title

    def reference_in(self, language: str) -> Path:
        """The folder of right kernels in a language."""
        return self.reference if language == "cuda" else self._part(f"reference_{language}")

    def template_in(self, language: str) -> Path:
        """The folder of kernels to write in a language; for those in CUDA, of the whole template."""
        return self.template if language == "cuda" else self._part(f"student_template_{language}")

    def _part(self, name: str) -> Path:
        """The folder of this name, of the assignment or of those that it extends; its own if none has one."""
        folders = [folder / name for folder in self.folders]
        return next((folder for folder in folders if folder.is_dir()), folders[0])

    @cached_property
    def problems(self) -> Mapping[str, Problem]:
        """Its problems by id, of those that its rules name and that are there.

        Raises:
            AssignmentError: a module fails or defines no problem of its name, or cases of a program are not
                as they must be.
        """
        from grader.assignments.modules import load_problems  # noqa: PLC0415 - the modules load PyTorch
        from grader.assignments.programs import declared  # noqa: PLC0415 - likewise

        ids = [entry.id for entry in self.rules.problems]
        problems = dict(load_problems(self.modules, ids, self.only))
        for entry in self.rules.problems:
            if entry.program is not None and entry.id in problems:
                raise AssignmentError(
                    f"{entry.id} has both a module and a table program in {self.folder / FILE}: keep one."
                )
            if entry.program is not None:
                problems[entry.id] = declared(entry.id, entry.program, self.folders)
        return problems

    @property
    def absent(self) -> frozenset[str]:
        """The problems that its rules name and that are not there."""
        return frozenset(entry.id for entry in self.rules.problems) - self.problems.keys()

    @cached_property
    def sha256(self) -> str:
        """The hash of all that a verdict can depend on: only records with the same one compare."""
        from grader.assignments.programs import material  # noqa: PLC0415 - it loads NumPy

        digest = hashlib.sha256(self.rules.model_dump_json(exclude=_NO_VERDICT).encode())
        for folder in (*self.modules, self.template):
            for path in sorted(_sources(folder)):
                content = path.read_bytes()
                digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
        for entry in self.rules.problems:
            for name, content in () if entry.program is None else material(entry.program, self.folders):
                digest.update(f"{entry.id} {name} {len(content)}\n".encode() + content)
        return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix in _IDENTITY and path.is_file())


def available() -> tuple[str, ...]:
    """Ids of the assignments that come with the grader, and of those in the folders of ``ENVIRONMENT``."""
    return tuple(sorted(_by_id()))


def has_id(assignment: Assignment) -> bool:
    """Whether it is loaded by its id, too."""
    return _by_id().get(assignment.id) == assignment.folder


def packages() -> Path:
    """Where the packages of assignments are kept that students got; each in a folder of its id."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    data = named if named.is_absolute() else Path.home() / ".local" / "share"
    return data / "kernel-grader" / "assignments"


def is_installed(assignment: Assignment) -> bool:
    """Whether it comes with the grader."""
    return assignment.folder.parent == _installed().resolve()


def _by_id() -> Mapping[str, Path]:
    """The folders of assignments by id; one that comes with the grader counts before another of its id.

    And one in a folder of ``ENVIRONMENT`` counts before one from a package.
    """
    further = [Path(folder) for folder in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if folder]
    unpacked = [path.parent for path in packages().glob(f"*/*/{FILE}")]
    named = [folder for folder in unpacked if folder.name == folder.parent.name]
    paths = [path.parent for folder in (*further, _installed()) for path in folder.glob(f"*/{FILE}")]
    return {path.name: path.resolve() for path in (*named, *paths)}


def default() -> str:
    """The id of the default assignment."""
    return (_installed() / DEFAULT).read_text(encoding="utf-8").strip()


def load(name: str) -> Assignment:
    """The assignment of an id, or that in a folder.

    Raises:
        AssignmentError: there is none, or its file is wrong.
    """
    if folder_of_id := _by_id().get(name):
        return read(folder_of_id)
    folder = Path(name)
    if (folder / FILE).is_file():
        return read(folder)
    if folder.is_dir():
        raise AssignmentError(f"{folder} is no assignment: it has no file {FILE}.")
    raise AssignmentError(
        f"there is no assignment {name!r}.{nearest(name, list(available()))} "
        f"An assignment of your own is named by its folder, which holds {FILE}."
    )


def read(folder: Path) -> Assignment:
    """The assignment in a folder.

    Raises:
        AssignmentError: its file cannot be read, is no TOML, or has a wrong, missing or unknown key.
    """
    folder, path = folder.resolve(), folder / FILE
    entries = tables(path)
    base = None
    if isinstance(extended := entries.get("extends"), str):
        base = read(_extended(extended, path))
        outer = base.rules.model_dump(mode="json", exclude_none=True, exclude=_NOT_INHERITED)
        entries = merged(outer, entries)
    rules = parse(entries, path)
    if folder in _by_id().values() and rules.id != folder.name:
        raise AssignmentError(f"{path}: id is {rules.id!r}; it must be the folder's name, {folder.name!r}")

    def part(name: str, inherited: Path | None) -> Path:
        path = (folder / name).resolve()
        return path if inherited is None or path.is_dir() else inherited

    modules = folder / "problems"
    inherited = () if base is None else base.modules
    return Assignment(
        folder=folder,
        bases=() if base is None else (base.folder, *base.bases),
        rules=rules,
        template=part(rules.template, None if base is None else base.template),
        reference=part(rules.reference, None if base is None else base.reference),
        modules=(modules, *inherited) if modules.is_dir() or base is None else inherited,
    )


def _extended(name: str, path: Path) -> Path:
    """The folder of what the file ``path`` extends: an installed assignment, or a folder from its own."""
    if folder_of_id := _by_id().get(name):
        return folder_of_id
    if (path.parent / name / FILE).is_file():
        return path.parent / name
    raise AssignmentError(
        f"{path}: extends: there is no assignment {name!r}.{nearest(name, list(available()))}"
    )


def _installed() -> Path:
    """The folder of the assignments that come with the grader.

    Raises:
        AssignmentError: this installation lacks it.
    """
    for folder in _INSTALLED:
        if folder.is_dir():
            return folder
    raise AssignmentError(f"{_INSTALLED[0]} is missing: install the grader again.")
