"""Every command of the project: ``nox -s NAME``, each in an environment of its own that it sets up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["grade"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent


def has_nvcc() -> bool:
    """Whether this machine brings a compiler that the grader takes: 12.4 or newer, or 13.x."""
    folder = os.environ.get("CUDA_HOME")
    nvcc = shutil.which("nvcc", path=str(Path(folder) / "bin") if folder else None)
    if nvcc is None:
        return False
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+)\.(\d+)", said)
    return found is not None and (12, 4) <= (int(found[1]), int(found[2])) < (14, 0)


def install(session: nox.Session, *extras: str) -> None:
    """The package, with nvcc's wheels where the machine has no compiler and CuPy where it has a GPU."""
    wanted = list(extras)
    if not has_nvcc():
        wanted.append("cuda")
    if shutil.which("nvidia-smi"):
        wanted.append("gpu")
    session.install(f".[{','.join(wanted)}]" if wanted else ".")


def run_grader(session: nox.Session, *arguments: str) -> None:
    """Run the grader; lost points are no failed session, as the last line and the record tell them."""
    session.run("grader", *arguments, success_codes=[0, 1])


@nox.session
def grade(session: nox.Session) -> None:
    """Grade a submission: nox -s grade -- PATH [options]; without PATH, the reference."""
    install(session)
    arguments = list(session.posargs)
    if not arguments or arguments[0].startswith("-"):
        arguments.insert(0, "reference")
    run_grader(session, "grade", *arguments)


@nox.session
def batch(session: nox.Session) -> None:
    """Grade a folder of submissions: nox -s batch -- FOLDER --out DIR."""
    install(session)
    run_grader(session, "batch", *session.posargs)


@nox.session
def verify_reference(session: nox.Session) -> None:
    """Fail unless the reference gets full marks of what this machine can measure."""
    install(session)
    session.run("grader", "grade", "reference", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; those that need a GPU are skipped, visibly, without one."""
    install(session, "tests")
    session.run("pytest", "-n", "2", "--benchmark-disable", *session.posargs)


@nox.session
def gpu_tests(session: nox.Session) -> None:
    """Run only the tests that need a GPU."""
    install(session, "tests")
    session.run("pytest", "-m", "gpu", "--benchmark-disable", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks: the simulator anywhere, the kernels on a GPU."""
    install(session, "tests")
    session.run("pytest", "tests/benchmarks", "--benchmark-only", *session.posargs)


@nox.session
def matrix(session: nox.Session) -> None:
    """Judge every mutant and every variant and print the table: nox -s matrix -- [--device sim|gpu]."""
    install(session)
    session.run("python", "tests/matrix.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install("ruff==0.17.5")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types."""
    session.install("mypy==2.1.0")
    install(session)
    session.run("mypy")


if __name__ == "__main__":
    sys.exit("Run this file with nox: python -m nox -s grade")
