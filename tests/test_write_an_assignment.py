"""Someone who follows docs/write_an_assignment.md literally has a sound assignment, with little Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.simulator.driver import RUNTIME

PAGE = (Path(__file__).parents[1] / "docs" / "write_an_assignment.md").read_text()
BLOCK = re.compile(
    r"(?:^`(?P<file>[\w./]+)`:\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCKS = list(BLOCK.finditer(PAGE))
FILES = {block["file"]: block["text"] for block in BLOCKS if block["file"]}
FOLDER = "rope"
MOST_LINES = 40  # of Python, without blank ones
LONG = ("grader assignment mutate",)  # what takes minutes: tests/soundness/test_mutate.py


def test_every_block_is_a_file_or_a_command_and_there_is_little_python() -> None:
    assert all(bool(block["file"]) == bool(block["language"]) for block in BLOCKS)
    python = "\n".join(text for file, text in FILES.items() if file.endswith(".py"))
    assert len([line for line in python.splitlines() if line.strip()]) <= MOST_LINES


@pytest.mark.long
@pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")
def test_who_follows_the_page_has_a_sound_assignment(tmp_path: Path) -> None:
    said = [followed(block, tmp_path) for block in BLOCKS]
    present = {path.relative_to(tmp_path / FOLDER).as_posix() for path in (tmp_path / FOLDER).rglob("*.*")}
    assert {name for name in present if "__pycache__" not in name} == FILES.keys()
    assert "Sound, as far as it could be seen here." in said[-3]
    assert said[-1].splitlines()[-1] == "Score: 0.0/12.0 (20.0 possible)", "the template as it is"


def followed(block: re.Match[str], folder: Path) -> str:
    """Write the file of a block, or run its commands as they stand; what they print."""
    if block["file"]:
        path = folder / FOLDER / block["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block["text"])
        return ""
    shell = f'grader() {{ "{sys.executable}" -P -m grader "$@"; }}\n'
    lines = [line for line in block["text"].splitlines() if not line.startswith(LONG)]
    done = subprocess.run(
        ["sh", "-c", shell + "\n".join(lines)],
        cwd=folder,
        env={**os.environ, "GITHUB_ACTIONS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout
