"""What the README and the docs name must exist: files, nox sessions, commands and options of the grader."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from grader.cli.main import commands

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "student_template" / "ASSIGNMENT.md")


@pytest.fixture(params=PAGES, ids=lambda path: path.name)
def page(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    gone = [link for link in targets if "://" not in link and not (page.parent / link).exists()]
    assert not gone


def test_named_sessions_of_nox_exist(page: Path) -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    named = re.findall(r"nox -s ((?:\w+ ?)+)", page.read_text())
    assert {name for names in named for name in names.split()} <= sessions


def test_named_commands_and_options_exist(page: Path) -> None:
    for name, said in re.findall(r"`grader ((?:assignment )?\w+)([^`]*)`", page.read_text()):
        command: click.Command | None = commands
        for part in name.split():
            command = command.commands.get(part) if isinstance(command, click.Group) else None
        assert command is not None, f"grader {name}"
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        ours = said.split(" -- ")[0]  # the rest is for another program
        assert set(re.findall(r"(?<!\S)--[\w-]+", ours)) <= known, f"grader {name}{ours}"
