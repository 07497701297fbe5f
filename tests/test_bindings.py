"""Bindings say what they hold: at most one in a hundred of a folder has a name that tells nothing."""

from __future__ import annotations

import ast
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]  # not where the package is installed: the assignments are here alone
MOST = 0.01
WORDS = """
    one ones that this these those it its which such others whole left
    thing things stuff something anything somebody mine ours
    found seen known given wanted asked asks told tells said says meant made kept got own place places what
    foo bar tmp temp obj ret retval elem cnt
    util utils helper helpers manager core misc common impl
"""
"""Names that tell a reader nothing, or how a value came to be instead of what it is."""
NO_NAMES = frozenset(WORDS.split())
EXCEPTIONS = (
    ("grader/problems/*.py", "left", "the left operand of an operation, beside the right one"),
    ("grader/reports/charts.py", "left", "the left edge of a column, beside its top"),
    *(
        ("grader/records/*.py", word, "a field of the record, or of what it holds: old records have it")
        for word in ("place", "places", "got", "seen", "others", "found", "said")
    ),
    ("grader/soundness/*.py", "left", "the left side of an expression in C++, beside the right one"),
    ("assignments/pointwise/problems/lerp.py", "one", "the number 1 in the type of the arithmetic"),
)
"""Where such a word is the right one: files, word, reason."""
FOLDERS = """
    grader/batch grader/judge/timing grader/run
"""
"""The folders whose names are still to be looked at."""
TO_DO = frozenset(FOLDERS.split())


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that code binds, with their lines: also of fields, parameters, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def says_nothing(path: str, name: str) -> bool:
    word = name.strip("_")
    return word in NO_NAMES and not any(
        word == exception and fnmatch(path, pattern) for pattern, exception, _ in EXCEPTIONS
    )


def bound() -> dict[str, list[tuple[str, str, int]]]:
    """Path, name and line of each binding, by folder."""
    by_folder: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for path in sorted([*ROOT.glob("grader/**/*.py"), *ROOT.glob("assignments/*/problems/**/*.py")]):
        relative = path.relative_to(ROOT)
        if "installed" in relative.parts:  # copies of the assignments
            continue
        by_folder[relative.parent.as_posix()] += [
            (relative.as_posix(), name, line) for name, line in bindings(ast.parse(path.read_text()))
        ]
    return by_folder


BOUND = bound()


@pytest.mark.parametrize("folder", sorted(BOUND.keys() - TO_DO))
def test_bindings_say_what_they_hold(folder: str) -> None:
    nothing = [f"{path}:{line}: {name}" for path, name, line in BOUND[folder] if says_nothing(path, name)]
    assert len(nothing) <= MOST * len(BOUND[folder]), "\n".join(nothing)


def test_every_exception_and_every_folder_to_do_exists() -> None:
    everything = [(path, name.strip("_")) for rows in BOUND.values() for path, name, _ in rows]
    assert [
        (pattern, word)
        for pattern, word, _ in EXCEPTIONS
        if not any(name == word and fnmatch(path, pattern) for path, name in everything)
    ] == []
    assert BOUND.keys() >= TO_DO
    assert len(NO_NAMES) >= 40


def test_every_kind_of_binding_is_seen() -> None:
    code = """
import a as b
def c(d, *e, f, **g):
    h = [i for i in d]
    if (j := h): ...
    with d as k: ...
    try: ...
    except E as l: ...
    match d:
        case [m, *n]: ...
class O:
    p: int
lambda q: q
"""
    assert {name for name, _ in bindings(ast.parse(code))} == set("bcdefghijklmnpq") | {"O"}
