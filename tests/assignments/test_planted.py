"""A submission that plants modules, rules, mutants or a marker makes the judge load none of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from assignments.own_assignment import write

from grader.simulator.driver import RUNTIME

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

MODULES = (
    *("problems/int_add.py", "problems/sizes.py", "problems/__init__.py", "mutants/table.py"),
    *("grader/__init__.py", "grader/problems/problem.py", "numpy.py", "torch/__init__.py", "click.py"),
    *("sitecustomize.py", "usercustomize.py", "conftest.py", "int_add.py", "sizes.py"),
)
"""What the judge imports under one of these names somewhere, or Python by itself."""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A right submission that holds an assignment of its own: all of it code that leaves a trace."""
    own = write(tmp_path)
    submission = tmp_path / "class" / "right"
    trace = f"open({str(tmp_path / 'loaded')!r}, 'a').write(__file__ + '\\n')\n"
    for name in MODULES:
        (submission / name).parent.mkdir(parents=True, exist_ok=True)
        (submission / name).write_text(trace)
    rules = (own / "assignment.toml").read_text()
    (submission / "assignment.toml").write_text(rules.replace("correctness = 6.0", "correctness = 600.0"))
    (submission / "mutants" / "survivors.toml").write_text("[[survivor]]\n")
    (submission / "grader.toml").write_text('assignment = "handout"\n')
    return submission


def graded(submission: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """From within the submission's folder, where Python looks first for what it imports."""
    command = [sys.executable, "-P", "-m", "grader", "grade", ".", "--device", "sim", "--sandbox", "process"]
    return subprocess.run(
        [*command, *map(str, options)],
        capture_output=True,
        text=True,
        check=False,
        cwd=submission,
        env=os.environ,
    )


def test_the_assignment_that_was_named_judges(planted: Path, tmp_path: Path) -> None:
    done = graded(planted, "--assignment", tmp_path / "own", "--problem", "int_add")
    assert done.stdout.splitlines()[-1] == "Score: 6.0/6.0 (10.0 possible)", done.stdout + done.stderr
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize("name", [".", "llm_systems_3/../../own"])
def test_a_marker_loads_no_code(planted: Path, tmp_path: Path, name: str) -> None:
    (planted / "grader.toml").write_text(f'assignment = "{name}"\n')
    done = graded(planted)
    assert done.returncode == 2
    assert f"grader.toml: {name!r} is no installed assignment" in done.stderr
    assert not (tmp_path / "loaded").exists()


def test_the_page_of_attacks_names_what_is_planted(planted: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text()
    table = page[page.index("| planted |") : page.index("## What a killed grader leaves")]
    named = re.findall(r"`([\w./*]+)`", " ".join(re.findall(r"^\|(.*?)\|", table, re.MULTILINE)))
    files = [path.relative_to(planted) for path in planted.rglob("*.*") if path.suffix in {".py", ".toml"}]
    own = {"int_add.py", "sizes.py"}  # named like modules of this assignment
    assert not [
        str(path)
        for path in files
        if str(path) not in own and not any(path.match(name) or str(path).startswith(name) for name in named)
    ]


def test_the_trace_works(planted: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "problems/sizes.py"], check=True, cwd=planted)
    assert "sizes.py" in (tmp_path / "loaded").read_text()
