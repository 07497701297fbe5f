"""What the README and the docs name must exist: files, nox sessions, commands and options of the grader."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from first_assignment import MUTANTS, VARIANTS

import grader
from grader.assignments.rules import (
    Band,
    Deadline,
    Demand,
    Hidden,
    ProblemPoints,
    ProgramTable,
    Rules,
    Step,
    Waiver,
    WorkLimits,
)
from grader.cli.main import commands
from grader.records.record import Record

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "student_template" / "ASSIGNMENT.md")


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


REFERENCE = ROOT / "docs" / "site" / "reference.py"


def test_the_pages_of_keys_and_operations_are_those_of_the_code() -> None:
    made = runpy.run_path(str(REFERENCE))
    assert made["KEYS"].read_text() == made["keys"](), "run: python docs/site/reference.py"
    assert made["OPERATIONS"].read_text() == made["operations"](), "run: python docs/site/reference.py"


def test_every_command_option_and_key_is_in_the_reference() -> None:
    made = runpy.run_path(str(REFERENCE))
    pages, keys_page = made["pages"](), made["KEYS"].read_text()
    for name, command in commands.commands.items():
        parts = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        for part, one in parts:
            assert f"## grader {name} {part}".rstrip() in pages["command-line"]
            shown = [
                option for option in one.params if isinstance(option, click.Option) and not option.hidden
            ]
            assert not [option for option in shown if option.opts[0] not in pages["command-line"]]
    for model in (
        Rules,
        ProblemPoints,
        ProgramTable,
        Step,
        Band,
        Demand,
        WorkLimits,
        Deadline,
        Hidden,
        Waiver,
    ):
        assert not [name for name in model.model_fields if f"| `{name}` |" not in keys_page]
    kinds = Record.model_json_schema()["$defs"].values()
    named = {f"## {kind['title']}" for kind in kinds if kind["type"] == "object"}
    assert named <= set(pages["record"].splitlines())


def test_the_site_has_no_link_or_anchor_that_leads_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "command-line" / "index.html").exists()
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text())
    assert any("race_shared" in entry["location"] for entry in index["docs"])


def test_the_figures_of_the_readme_are_those_of_the_tables() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    said = re.search(r"None of (\d+) wrong .*? all of (\d+) right .* let (\d+) of the (\d+) pass", text)
    assert said is not None
    wrong, right, let, of_all = map(int, said.groups())
    assert (wrong, of_all) == (len(MUTANTS), len(MUTANTS))
    assert right == len(list(VARIANTS.glob("*/*.cu")))
    matrix = (ROOT / "docs" / "matrix.md").read_text()
    assert f"| mutants that fail | {wrong} of {wrong} |" in matrix
    assert f"| variants and reference that pass | {right} of {right} and " in matrix
    assert f"| mutants that pass the handout's checks, 5 of 5 | {let} of {wrong} |" in matrix


def test_version_and_licence_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == project["version"] == grader.__version__
    assert cited["license"] == project["license"]
    assert (ROOT / "LICENSE").read_text().startswith(f"{project['license']} License")
    assert f"kernel_grader-{project['version']}-" in (ROOT / "README.md").read_text()


def test_each_path_of_the_readme_is_short_and_pictures_come_first() -> None:
    text = (ROOT / "README.md").read_text()
    paths = re.findall(r"^## If you .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert len(paths) == 3
    assert all(path.count("\n") < 25 for path in paths)
    assert text[: text.index("## ")].count("<img ") == 2
