"""The steps for GitHub and GitLab, run by a shell as these would run them.

What would install packages is replaced by programs that note what they are asked for; what grades is real.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from grader.records import record as results

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
GITHUB = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
NIGHTLY = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())
GITLAB = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
COURSE = yaml.safe_load((ROOT / "autograder" / "gitlab" / "grade.yml").read_text())
SESSIONS = {
    node.name
    for node in ast.parse((ROOT / "noxfile.py").read_text()).body
    if isinstance(node, ast.FunctionDef) and node.decorator_list
}
_STAND_IN = '#!/bin/sh\necho "$(basename "$0") $*" >>"$NOTES"\n'
_VENV = 'if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a job; its programs note what they are asked for, and ``grader`` is ours."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("apt-get", "sudo", "sysctl", "python", "python3"):
        (programs / name).write_text(_STAND_IN + _VENV)
    (programs / "grader").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m grader "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    (tmp_path / "work").mkdir()
    for name in ("notes", "path", "output"):
        (tmp_path / name).touch()
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "NOTES": str(tmp_path / "notes"),
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_PATH": str(tmp_path / "path"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_ACTION_PATH": "/actions/kernel-grader",
    }


def shell(script: str, machine: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A step, with bash's options of GitHub; GitLab's are less strict."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "GITHUB_ACTIONS": "", **machine},
        capture_output=True,
        text=True,
        check=False,
    )


def environment(step: Mapping[str, Any], **inputs: str) -> dict[str, str]:
    """What a step of the action gives its shell, for these inputs and the defaults of the others."""
    given = {name: entry["default"] for name, entry in ACTION["inputs"].items()} | inputs
    found = {}
    for name, value in step["env"].items():
        wanted = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)
        assert wanted, f"{name}: {value}"
        found[name] = given[wanted[1]]
    return found


def noted(machine: Mapping[str, str]) -> list[str]:
    return Path(machine["NOTES"]).read_text().splitlines()


@pytest.mark.parametrize(
    ("wheel", "source"), [("", "file:///actions/kernel-grader"), ("https://x/k.whl", "https://x/k.whl")]
)
def test_the_action_installs_the_wheel_or_its_own_source(
    machine: dict[str, str], tmp_path: Path, wheel: str, source: str
) -> None:
    step = ACTION["runs"]["steps"][0]
    done = shell(step["run"], machine | environment(step, wheel=wheel), tmp_path / "work")
    assert done.returncode == 0, done.stderr
    assert noted(machine)[-1] == f"python -m pip install --quiet kernel-grader[cuda,sandbox] @ {source}"
    assert Path(machine["GITHUB_PATH"]).read_text() == f"{machine['RUNNER_TEMP']}/grader/bin\n"


def test_the_action_grades_keeps_its_reports_and_fails_where_points_are_lost(
    machine: dict[str, str], tmp_path: Path
) -> None:
    step = ACTION["runs"]["steps"][1]
    given = environment(step, assignment="rmsnorm", device="sim", options="--seed 3 --verbose")
    done = shell(step["run"], machine | given, tmp_path / "work")
    assert done.returncode == 1, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Score: 0.0/")
    assert Path(machine["GITHUB_OUTPUT"]).read_text() == f"score={last}\n"
    report = Path(machine["RUNNER_TEMP"], "report")
    record = results.read(report / "result.json")
    assert (record.assignment, record.seed) == ("rmsnorm", 3)
    assert {path.name for path in report.iterdir()} == {
        *("console.txt", "junit.xml", "report.html", "result.json")
    }


def test_the_job_for_a_course_on_gitlab_does_the_same(machine: dict[str, str], tmp_path: Path) -> None:
    given = {**COURSE["variables"], "ASSIGNMENT": "rmsnorm", "DEVICE": "sim", "GRADER": "https://x/k.whl"}
    script = "\n".join(COURSE["grade"]["script"]).replace("/tmp/grader", str(tmp_path / "grader"))
    done = shell(script, machine | given, tmp_path / "work")
    assert done.returncode == 1, done.stderr
    assert noted(machine)[-1] == "python -m pip install --quiet kernel-grader[cuda,sandbox] @ https://x/k.whl"
    assert (tmp_path / "work" / COURSE["grade"]["artifacts"]["reports"]["junit"]).exists()
    assert results.read(tmp_path / "work" / "report" / "result.json").assignment == "rmsnorm"


@pytest.mark.parametrize("job", ["cpu", "gpu"], ids=["without a GPU", "with one"])
def test_this_repositorys_jobs_run_sessions_that_exist_and_the_same_in_both_places(
    machine: dict[str, str], tmp_path: Path, job: str
) -> None:
    ran = []
    for script in (
        "\n".join(step["run"] for step in GITHUB["jobs"][job]["steps"] if "run" in step),
        "\n".join(GITLAB[job]["script"]),
    ):
        Path(machine["NOTES"]).write_text("")
        done = shell(script, machine, tmp_path / "work")
        assert done.returncode == 0, done.stderr
        ran.append({note.partition(" -m nox -s ")[2] for note in noted(machine) if " -m nox -s " in note})
    assert ran[0] == ran[1]
    assert ran[0]
    assert {name for line in ran[0] for name in line.partition(" -- ")[0].split()} <= SESSIONS


@pytest.mark.parametrize("failing", ["nothing", "lint types", "tests"])
def test_what_runs_side_by_side_fails_with_each_of_its_parts(
    machine: dict[str, str], tmp_path: Path, failing: str
) -> None:
    (tmp_path / "work" / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / "work" / ".ci")
    failure = f'if [ "$*" = "-m nox -s {failing}" ]; then exit 3; fi\n'
    (tmp_path / "programs" / "python3").write_text(_STAND_IN + _VENV + failure)
    done = shell(".ci/run", machine, tmp_path / "work")
    assert done.returncode == (0 if failing == "nothing" else 3), done.stderr
    ran = sorted(note.partition(" -m nox -s ")[2] for note in noted(machine) if " -m nox -s " in note)
    assert ran == ["lint types", "tests"]


def test_at_night_sessions_run_that_exist(machine: dict[str, str], tmp_path: Path) -> None:
    steps = NIGHTLY["jobs"]["cpu"]["steps"]
    done = shell("\n".join(step["run"] for step in steps if "run" in step), machine, tmp_path / "work")
    assert done.returncode == 0, done.stderr
    ran = [note.partition(" -m nox -s ")[2] for note in noted(machine) if " -m nox -s " in note]
    assert ran == ["assignments", "triton"]
    assert set(ran) <= SESSIONS


def test_a_course_uses_the_action_in_three_lines_and_names_inputs_that_exist() -> None:
    for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL):
        shown = yaml.safe_load(text)
        if "jobs" not in shown:
            assert shown["variables"].keys() <= COURSE["variables"].keys()
            continue
        (_, use) = shown["jobs"]["grade"]["steps"]
        assert use["with"].keys() <= ACTION["inputs"].keys()
        assert len(text.partition("steps:\n")[2].splitlines()) == 3
