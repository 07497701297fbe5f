"""The files for Gradescope and GitHub Classroom, as far as they run without the service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from test_gradescope import DOCUMENTED

import grader as package
from grader.assignments.assignment import load
from grader.cli.grade import grade

FILES = Path(__file__).parents[2] / "autograder"
ASSIGNMENT = load("llm_systems_3")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folders of Gradescope's machine."""
    for name in ("source", "submission", "results"):
        (tmp_path / name).mkdir()
    metadata = {"assignment": {"total_points": "100.0"}, "users": [], "previous_submissions": []}
    (tmp_path / "submission_metadata.json").write_text(json.dumps(metadata))
    return tmp_path


def run(root: Path, grader: str, **environment: str) -> tuple[dict[str, object], str]:
    """What a submission's results are, and what only staff see; nobody made a user here."""
    imports = str(Path(package.__file__).parents[1])
    done = subprocess.run(
        ["bash", FILES / "gradescope" / "run_autograder"],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "AUTOGRADER": str(root),
            "GRADER": grader,
            "STUDENT": "no such user",
            "PYTHONPATH": imports,
            **environment,
        },
    )
    content = json.loads((root / "results" / "results.json").read_text())
    jsonschema.validate(content, DOCUMENTED)
    return content, done.stdout + done.stderr


def test_a_submission_has_results_and_a_wrong_total_is_said_to_staff(root: Path) -> None:
    content, said = run(root, f"{sys.executable} -P -m grader")
    assert content["score"] == 0
    assert "holds no source file" in str(content["output"])
    assert re.search(r"counts 100 points in Gradescope, and \d+ can be decided here", said)


def script(root: Path, line: str) -> str:
    """A grader that does something else."""
    (root / "script").write_text(f"#!/bin/sh\n{line}\n")
    (root / "script").chmod(0o755)
    return str(root / "script")


@pytest.mark.parametrize("line", ["exit 4", "exec sleep 60", "echo '{' > unfinished"])
def test_a_grader_that_fails_leaves_results_without_a_zero(root: Path, line: str) -> None:
    content, said = run(root, script(root, line), SECONDS_LIMIT="1")
    assert "score" not in content
    (test,) = content["tests"]  # type: ignore[misc]
    assert test["max_score"] == 0
    assert "ended with exit code" in said


def test_results_that_a_submission_put_there_are_not_taken(root: Path) -> None:
    content, _ = run(root, script(root, f"ln -s {root}/submission_metadata.json results.json"))
    assert "score" not in content


def test_the_scripts_parse() -> None:
    for name in ("setup.sh", "run_autograder"):
        path = FILES / "gradescope" / name
        subprocess.run(["bash", "-n", path], check=True)
        assert os.access(path, os.X_OK)


def test_the_workflow_has_a_test_for_each_problem_and_only_options_that_exist() -> None:
    workflow = yaml.safe_load((FILES / "github" / "classroom.yml").read_text())
    steps = workflow["jobs"]["grade"]["steps"]
    graders = {step["id"]: step["with"] for step in steps if "command-grader" in step.get("uses", "")}
    wanted = {problem.id: problem.correctness for problem in ASSIGNMENT.rules.problems if problem.graded}
    assert {name: float(given["max-score"]) for name, given in graders.items()} == wanted
    reporter = steps[-1]
    assert reporter["with"]["runners"].split(",") == list(graders)
    assert set(reporter["env"]) == {f"{name.upper()}_RESULTS" for name in graders}
    options = {name for parameter in grade.params for name in parameter.opts}
    commands = [given["command"] for given in graders.values()]
    commands += [step["run"] for step in steps if "grader grade" in step.get("run", "")]
    for command in commands:
        assert set(re.findall(r"--[a-z]+", command)) <= options
    for name, given in graders.items():
        assert given["command"].endswith(f"--problem {name}")
