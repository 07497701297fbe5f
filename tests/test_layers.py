"""Who may import whom: an allow-list by folder, without circles. The grader names no assignment."""

from __future__ import annotations

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import grader

ROOT = Path(grader.__file__).parent
MODULES = [
    path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py" and "installed" not in path.parts
]
GROUND = {"records", "processes"}
ALLOWED: dict[str, set[str]] = {
    "records": set(),
    "processes": {"records"},
    "problems": set(),
    "runner": set(),
    "simulator": {"records"},
    "sandbox": {*GROUND, "runner"},
    "devices": {*GROUND, "problems", "runner", "sandbox", "simulator"},
    "assignments": {*GROUND, "problems"},
    "submissions": set(GROUND),
    "languages": {*GROUND, "problems", "runner", "sandbox", "devices"},
    "baseline": {*GROUND, "languages", "sandbox"},
    "judge": {*GROUND, "problems", "assignments", "devices"},
    "run": {
        *GROUND,
        *("problems", "assignments", "submissions", "sandbox", "devices", "languages", "baseline", "judge"),
    },
    "importers": {"problems"},
    "soundness": {  # above run: what an assignment is worth shows where its kernels are graded
        *GROUND,
        *("problems", "assignments", "submissions", "devices", "languages", "baseline", "judge", "run"),
    },
    "reports": {*GROUND, "submissions"},
    "batch": {*GROUND, "assignments", "submissions", "sandbox", "run", "reports"},
    "cli": {
        *GROUND,
        "assignments",
        "submissions",
        "simulator",
        "languages",
        "judge",
        "run",
        "importers",
        "soundness",
        "reports",
        "batch",
    },
    "__main__": {"cli", "processes"},
}
"""Folders of the package, from the ground floor up, and what each may import."""


def names(path: Path) -> set[str]:
    """What a module imports, with dots, types included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imported(path: Path) -> set[str]:
    """The folders of the grader that a module imports from."""
    found = {name.split(".")[1] for name in names(path) if name.startswith("grader.")}
    return {name for name in found if (ROOT / name).is_dir()}


def folder(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_a_folder_imports_what_the_list_allows() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in MODULES
        for name in imported(path) - ALLOWED[folder(path)] - {folder(path)}
    ]
    assert not wrong


def test_the_list_has_no_circle() -> None:
    known: set[str] = set()
    for name, allowed in ALLOWED.items():
        assert allowed <= known, f"{name} may import what stands behind it"
        known.add(name)


def test_modules_import_without_circles() -> None:
    paths = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in MODULES}
    graph = {
        module: {
            prefix for name in names(path) for prefix in (name, name.rpartition(".")[0]) if prefix in paths
        }
        for module, path in paths.items()
    }
    list(TopologicalSorter(graph).static_order())  # or a CycleError, which names the circle


def test_the_list_allows_nothing_that_nobody_needs() -> None:
    used: dict[str, set[str]] = {name: set() for name in ALLOWED}
    for path in MODULES:
        used[folder(path)] |= imported(path) - {folder(path)}
    assert {name: allowed - used[name] - GROUND for name, allowed in ALLOWED.items()} == {
        name: set() for name in ALLOWED
    }


def test_the_runner_and_the_record_load_without_pytorch() -> None:
    for part in ("records", "runner", "reports", "sandbox", "languages", "devices"):
        users = {
            ROOT / "runner" / "model.py",
            *(ROOT / "runner" / "triton").iterdir(),
            *(ROOT / "runner" / "pytorch").iterdir(),
        }  # of PyTorch by contract
        for path in {*(ROOT / part).rglob("*.py")} - users:
            assert "import torch" not in path.read_text(), path


NAMES = ("softmax", "layernorm", "layer_norm", "llm_systems", "transformer", "rmsnorm", "rglru")


@pytest.mark.parametrize("name", NAMES)
def test_the_grader_names_no_problem_and_no_file_of_an_assignment(name: str) -> None:
    texts = {".py", ".cu", ".cpp", ".h", ".html", ".css", ".js", ".toml", ".json"}
    assert not [
        path
        for path in ROOT.rglob("*")
        if path.suffix in texts
        and not {"installed", "student_template", "lib"} & set(path.parts)
        and re.search(name, path.read_text(), re.IGNORECASE)
    ]


def test_files_of_tests_have_names_of_their_own() -> None:
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [
        name for name, count in names.items() if count > 1
    ] == []  # pytest imports none of the second ones
