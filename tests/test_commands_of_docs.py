"""The commands that the README and the docs show are run here, or named with the test that does or a reason.

They are run as they stand, in a folder that holds what they name: PATH, FOLDER and DIR are folders of these
names. Only a few submissions lie there, which are soon graded.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "reports"))
import report_samples as samples

from grader.cli.main import commands
from grader.records import record as results

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
_FENCE = re.compile(r"^```(?P<language>\S*)$")
_PROGRAMS = ("grader", "nox", "python", "pip", "pipx", "docker", "java", "mkdir", "cd", "cp", "nvcc")

ELSEWHERE = {
    "README.md": {
        "pipx install": "tests/test_notebook.py",
        "grader new hw": "tests/test_notebook.py",
        "cd hw": "tests/test_notebook.py",
        "grader grade .": "tests/test_notebook.py",
    },
    "docs/triton.md": {"grader simulate script.py": "tests/runner/test_triton_scripts.py"},
    "docs/tutorials/programs.md": dict.fromkeys(("grader", "mkdir", "cp"), "tests/test_programs_tutorial.py"),
    "docs/write_an_assignment.md": {"grader": "tests/test_write_an_assignment.py"},
    "": {
        "grader assignment check": "tests/soundness/test_check.py",
        "grader assignment import": "tests/importers/test_import_command.py",
        "grader assignment mutate": "tests/soundness/test_mutate.py",
        "grader assignment pack": "tests/assignments/test_packing.py",
        "grader judge": "tests/batch/test_candidates.py",
        "grader reproduce": "tests/cli/test_reproduce.py",
        "grader grade . --watch": "tests/cli/test_watch.py",
        "grader batch FOLDER --out DIR --slurm": "tests/slurm/test_loopback.py",
        "grader grade PATH --slurm": "tests/slurm/test_loopback.py",
        "nox -s docs": "tests/test_docs.py",
        "nox -s assignments -- --changed": "tests/assignments/test_changed.py",
        "nox -s matrix": "tests/test_matrix.py",
        "nox -s student_bugs": "tests/reports/test_student_bugs.py",
        "nox -s under_load": "tests/test_under_load.py",
        "nox -s throughput": "tests/benchmarks/test_throughput.py",
        "python tests/batch/make_class.py": "tests/batch/test_class.py",
        "grader batch CLASS/submissions": "tests/batch/test_class.py",
        "python tests/batch/make_candidates.py": "tests/batch/test_candidates.py",
        "python tests/batch/kill.py": "tests/batch/test_class.py",
        "python tests/batch/busy.py": "tests/batch/test_busy.py",
    },
}
"""The test that runs commands that begin so, by page; those of all pages under ""."""

NOT_RUN = {
    "python -m pip install nox && python -m nox -s grade": "sets up a machine: .ci/run and the jobs of CI do",
    "python -m nox -s tests": "these tests",
    "nox -s lint": "the jobs of CI do",
    "pip install nox": "sets up an environment: .ci/run does",
    "python -m venv": "sets up an environment: .ci/run does",
    "python -m pip install": "downloads packages",
    "nox -s wheels": "compiles the simulator: the workflow wheels.yml does",
    "python -m pytest": "these tests",
    "python -m nox -s gradescope": "builds an environment; what it packs: tests/reports/test_autograder.py",
    "docker": "needs an engine and gigabytes; tests/sandbox/test_backends.py where there is one",
    "mkdir -p box": "needs the file that the session gradescope packs, and an engine",
    "java": "JPlag, which we do not have; its input: tests/reports/test_similarity.py",
    "grader report DIR --jplag base": "the same as the line before for the template",
    "python train_translation.py": "trains; tests/transformer/test_training.py in small",
    "cd student_template": "for what trains",
    "python tests/triton_matrix.py": "needs a GPU, and minutes of a core for each of 273 kernels",
    "python tests/benchmarks/plot_scan.py": "draws what a GPU has measured",
}
"""Why nothing runs commands that begin so."""


def shown(page: str) -> list[str]:
    """The commands in the blocks of a page, without comments, in order."""
    return [
        command
        for line in blocks(page, "")
        if (command := " ".join(re.sub(r"(?:^|\s)#.*", "", line).split())).split(" ")[0] in _PROGRAMS
    ]


def blocks(page: str, language: str) -> list[str]:
    """The lines of all blocks of a language; those without one may be indented instead."""
    lines, inside = [], None
    for line in PAGES[page].read_text().replace("\\\n", " ").splitlines():
        if fence := _FENCE.match(line):
            inside = fence["language"] if inside is None else None
        elif inside == language or (inside is None and not language and line.startswith("    ")):
            lines.append(line)
    return lines


def elsewhere(page: str, command: str) -> str:
    """The test that runs it, or why none does; empty if it is run here."""
    known = {**ELSEWHERE.get(page, {}), **ELSEWHERE[""], **NOT_RUN}
    return next((where for begin, where in known.items() if command.startswith(begin)), "")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds what the pages name."""
    for name in ("PATH", "FOLDER/doejane_1001", "submissions/ann", "handed_in/ann", "last_year/ann"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "softmax_kernels.cu").write_text("")  # misnamed, so soon graded
    with zipfile.ZipFile(tmp_path / "hw3_doejane.zip", "w") as archive:
        archive.writestr("softmax_kernels.cu", "")
    for name in ("DIR/doejane_1001", "DIR/NAME"):
        (tmp_path / name).mkdir(parents=True)
        results.write(samples.record(Path(name).name), tmp_path / name / "result.json")
    export = '\ufeffStudent,ID,Section,HW3 softmax (7)\r\n"Doe, Jane",1001,A,\r\n'
    for name in ("2026-11-21T1200_Grades-CS.csv", "export.csv"):
        (tmp_path / name).write_bytes(export.encode())
    (tmp_path / "participants.csv").write_text("Username\nNAME\n")
    for name in ("race.cu", "program.cu"):
        (tmp_path / name).write_text("\n".join(blocks("docs/tutorials/race.md", "c++")) + "\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command as a shell would, commands of the grader in this process; return its exit code."""
    words = shlex.split(command)
    if words[0] == "cd":
        monkeypatch.chdir(words[1])
        return 0
    if words[0] == "grader":
        return int(commands.main(words[1:], standalone_mode=False) or 0)
    return subprocess.run(["sh", "-c", command], check=False).returncode


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = [command for command in shown(page) if not elsewhere(page, command)]
    for command in here:
        if "my_course" in command and not (world / "my_course").exists() and " new my_course" not in command:
            run("grader assignment new my_course", monkeypatch)
        if command.startswith("grader report result") and not Path("result.json").exists():
            shutil.copy(world / "DIR" / "NAME" / "result.json", "result.json")
        code = run(command, monkeypatch)
        finds = command.startswith("grader simulate")
        assert code == 86 if finds else code in {0, 1}, command


def test_the_barrier_that_the_tutorial_asks_for_ends_its_race(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = "= threadIdx.x;\n"
    source = (world / "race.cu").read_text()
    assert source.count(written) == 1
    (world / "race.cu").write_text(source.replace(written, f"{written}  __syncthreads();\n"))
    (simulate,) = shown("docs/tutorials/race.md")
    assert run(simulate, monkeypatch) == 0


def test_a_command_that_is_not_run_here_is_named_with_a_test_that_exists_and_still_shown() -> None:
    tests = {test for part in ELSEWHERE.values() for test in part.values()}
    assert all((ROOT / test).exists() for test in tests)
    begins = [begin for part in (*ELSEWHERE.values(), NOT_RUN) for begin in part]
    all_shown = [command for page in PAGES for command in shown(page)]
    assert not [begin for begin in begins if not any(one.startswith(begin) for one in all_shown)]
