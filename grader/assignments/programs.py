"""Program problems that stand in ``assignment.toml``: a table says what is built, a folder has the cases."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from grader.assignments.modules import load_module
from grader.assignments.rules import AssignmentError, nearest
from grader.problems import wb
from grader.problems.explained import FormulaError, check_positions
from grader.problems.folder import FolderError, Rule, fixed_cases
from grader.problems.program import program
from grader.records.file_names import is_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from grader.assignments.rules import ProgramTable
    from grader.problems.problem import Checker
    from grader.problems.program import ProgramProblem, Run

_WARNINGS_ARE_ERRORS = ("-Werror", "all-warnings")


def declared(problem_id: str, table: ProgramTable, folders: Sequence[Path]) -> ProgramProblem:
    """The problem that a table says.

    Args:
        problem_id: its id.
        table: what it is.
        folders: of the assignment and of those that it extends, in which files are looked for.

    Raises:
        AssignmentError: a file is missing, or a case is not as it must be.
    """
    try:
        cases = _cases(table, table.cases, folders)
        timed = _cases(table, table.timed, folders) if table.timed else {}
    except FolderError as error:
        raise AssignmentError(f"{problem_id}: {error}") from error
    if unknown := [group for group in table.on if group not in cases]:
        near = nearest(unknown[0], list(cases))
        raise AssignmentError(f"{problem_id}: on: there is no group of cases {unknown[0]!r}.{near}")
    file, *others = table.files
    return program(
        id=problem_id,
        file=file,
        fixed=cases,
        further=[name for name in others if not is_pattern(name)],
        patterns=[name for name in others if is_pattern(name)],
        given={path.name: path.read_bytes() for path in _given(problem_id, table, folders)}
        | dict(_project(table, folders))
        | ({wb.HEADER: wb.HEADER_FILE.read_bytes()} if table.libwb else {}),
        flags=(*table.flags, *(_WARNINGS_ARE_ERRORS if table.warnings == "error" else ())),
        make=table.make,
        cmake=table.cmake,
        ignored=table.ignore,
        kernels=table.kernels,
        libraries=table.libraries,
        checker=_checker(problem_id, table, folders),
        on=table.on,
        timed_fixed={name: run for group in timed.values() for name, run in group.items()},
        region=table.region,
    )


def _cases(table: ProgramTable, name: str, folders: Sequence[Path]) -> dict[str, dict[str, Run]]:
    """The runs of a folder of cases, by group and name."""
    folder = _path(name, folders)
    if table.libwb:
        return wb.datasets(folder, table.libwb, table.rtol, table.atol)
    exact, checked = table.compare == "exact", bool(table.checker)
    rule = Rule(table.output, exact, table.rtol, table.atol, table.raw, checked)
    return fixed_cases(folder, rule)


def _checker(problem_id: str, table: ProgramTable, folders: Sequence[Path]) -> Checker | None:
    """The function that the table names; None where it names none."""
    if not table.checker:
        return None
    path = _path(table.checker, folders)
    if not path.is_file():
        raise AssignmentError(f"{problem_id}: {path}, the checker, is missing.")
    checker: Checker | None = getattr(load_module(path.parent, path.stem), "check", None)
    if not callable(checker):
        raise AssignmentError(f"{path}: there is no function check(case, run, outputs)")
    try:
        check_positions("check", checker, "case", "run", "outputs")
    except FormulaError as error:
        raise AssignmentError(f"{path}: {error}") from error
    return checker


def material(table: ProgramTable, folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Every file that a verdict on the problem can depend on, by a name that does not tell where it lies."""
    for name in filter(None, (table.cases, table.timed)):
        cases = _path(name, folders)
        for path in (path for path in sorted(cases.rglob("*")) if path.is_file()):
            yield f"{name}/{path.relative_to(cases).as_posix()}", path.read_bytes()
    for name, content in _project(table, folders):
        yield f"project/{name}", content
    for name in filter(None, (*table.given, table.checker)):
        if (path := _path(name, folders)).is_file():
            yield name, path.read_bytes()


def _project(table: ProgramTable, folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """The files of the assignment's project that are not the student's, by their paths from its folder."""
    folder = _path(table.project, folders)
    for path in sorted(folder.rglob("*")) if table.project else ():
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(fnmatchcase(name, file) for file in table.files):
            yield name, path.read_bytes()


def _given(problem_id: str, table: ProgramTable, folders: Sequence[Path]) -> list[Path]:
    paths = [_path(name, folders) for name in table.given]
    if missing := [path for path in paths if not path.is_file()]:
        raise AssignmentError(f"{problem_id}: {missing[0]}, a file of the assignment, is missing.")
    return paths


def _path(name: str, folders: Sequence[Path]) -> Path:
    """The first of these paths that exists, or the first."""
    paths = [folder / name for folder in folders]
    return next((path for path in paths if path.exists()), paths[0])
