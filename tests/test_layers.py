"""The layering rule of the package: who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

import grader

ROOT = Path(grader.__file__).parent
FORBIDDEN = {
    "problems": ("devices", "sandbox", "build", "judge", "runner", "simulator"),
    "runner": ("judge", "devices", "problems", "build", "sandbox", "simulator", "results"),
    "sandbox": ("judge", "devices", "problems", "build"),
    "build": ("judge", "devices", "problems"),
    "devices": ("judge", "problems"),
    "simulator": ("judge", "problems", "build"),
    "reports": ("judge", "devices", "problems", "build", "sandbox", "runner", "simulator", "grading"),
}


def imported(path: Path) -> set[str]:
    """The parts of the grader that a module imports, types included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("grader.")}


def test_no_room_imports_one_that_it_must_not_know() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for room, rooms in FORBIDDEN.items()
        for path in (ROOT / room).rglob("*.py")
        for name in imported(path) & set(rooms)
    ]
    assert not wrong


def test_nobody_imports_the_command_line() -> None:
    others = (path for path in ROOT.rglob("*.py") if path.name != "__main__.py" and "cli" not in path.parts)
    assert not [path for path in others if "cli" in imported(path)]


def test_the_runner_and_the_record_load_without_pytorch() -> None:
    for part in ("runner", "reports", "sandbox", "build", "devices"):
        for path in {*(ROOT / part).rglob("*.py")} - {ROOT / "runner" / "model.py"}:  # for PyTorch files only
            assert "import torch" not in path.read_text(), path
