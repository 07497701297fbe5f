"""What students type first, from the docs, in a fresh environment that has the wheel.

The wheel is that which the tests run from (``nox -s tests`` installs one); a tree has none, and nothing is
tested. What the package depends on comes from the environment of the tests, so nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAST = re.compile(r"Score: [\d.]+/[\d.]+ \([\d.]+ possible\)")


def wheel() -> str:
    """The address of the wheel that the package was installed from."""
    try:
        told = distribution("kernel-grader").read_text("direct_url.json") or "{}"
    except PackageNotFoundError:
        told = "{}"
    address = str(json.loads(told).get("url", ""))
    if not address.endswith(".whl") or not Path(address.removeprefix("file://")).exists():
        pytest.skip("the package is not installed from a wheel here, as nox -s tests does it")
    return address


def block(page: str, first: str) -> list[str]:
    """The lines of the block of commands whose first line begins so."""
    found = re.search(
        rf"^```\n({re.escape(first)}.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1].splitlines()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own, without the package."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    needed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "needs.pth").write_text("".join(f"{path}\n" for path in needed))
    for compilers in (Path(path, "nvidia") for path in needed):  # nvcc's wheels are looked for in one place
        if compilers.is_dir():
            (packages / "nvidia").symlink_to(compilers)
    return place


def run(script: list[str], fresh: Path, folder: Path) -> str:
    """What a shell prints that runs the lines one after the other, lost points or not."""
    environment = {
        **os.environ,
        "PATH": f"{fresh / 'bin'}:{os.environ['PATH']}",
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_IGNORE_INSTALLED": "1",  # that of the tests
        "GITHUB_ACTIONS": "",
    }
    one = " --problem softmax_forward"  # the language model takes most of a grading
    commands = [line.partition(" #")[0].strip() for line in script]
    graded = [line + one if line.startswith("grader grade") else line for line in commands]
    checked = "\n".join(f"{line} || [ $? -eq 1 ] || exit 9" for line in graded)
    done = subprocess.run(
        ["sh", "-c", checked], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_cell_for_a_notebook_and_the_students_commands_work(fresh: Path, tmp_path: Path) -> None:
    address = wheel()
    cell = [line.removeprefix("!").replace("WHEEL", address) for line in block("docs/notebook.md", "!pip ")]
    assert LAST.fullmatch(run(cell, fresh, tmp_path).splitlines()[-1])
    assert (fresh / "bin" / "grader").exists()
    _, *commands = block("README.md", "pipx install ")
    student = [line for line in commands if "--watch" not in line]  # which stays
    (tmp_path / "other").mkdir()
    said = run(student, fresh, tmp_path / "other").splitlines()
    assert LAST.fullmatch(said[-1])
    assert len(student) == 4
    assert "fix first" in " ".join(said)
    assert "Softmax forward" in (tmp_path / "other" / "hw" / "page.html").read_text()
