"""Someone who follows docs/tutorials/programs.md literally has an assignment and a graded class of five."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "tutorials" / "programs.md").read_text()
BLOCK = re.compile(
    r"(?:^`(?P<file>[\w./]+)`:\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
SHELL = f'set -e\ngrader() {{ "{sys.executable}" -P -m grader "$@"; }}\n'


def followed(block: re.Match[str], folder: Path) -> str:
    """Write the file of a block, or run its commands as they stand; what they print."""
    if block["file"]:
        (folder / block["file"]).write_text(block["text"])
        return ""
    done = subprocess.run(
        ["sh", "-c", SHELL + block["text"]],
        cwd=folder,
        env={**os.environ, "GITHUB_ACTIONS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


@pytest.mark.long
def test_who_follows_the_page_grades_a_class(tmp_path: Path) -> None:
    said = [followed(block, tmp_path) for block in BLOCK.finditer(PAGE)]
    assert "Sound, as far as it could be seen here." in said[-2]
    results = tmp_path / "results"
    with (results / "gradebook.csv").open(encoding="utf-8") as file:
        scores = {row["submission"]: row for row in csv.DictReader(file)}
    assert scores.keys() == {"ann", "ben", "cem", "dana", "eli"}
    records = {
        name: json.loads((results / name / "result.json").read_text())["problems"][0] for name in scores
    }
    assert {name: one["points"]["earned"] for name, one in records.items()} == {
        "ann": 10,
        "ben": 0,
        "cem": 0,
        "dana": 0,
        "eli": 5,
    }
    (racecheck,) = [check for check in records["ben"]["checks"] if check["findings"]]
    assert (racecheck["tool"], racecheck["findings"][0]["line"]) == ("racecheck", 8)
    assert records["cem"]["message"] == "no main: sums.cu has no function main, with which a program begins"
    assert "no kernel was launched" in records["dana"]["correctness"]["cases"][0]["message"]
    wrong = records["eli"]["correctness"]["cases"][2]["diagnosis"]
    assert wrong in PAGE.replace("\n", " ")
    assert (results / "index.html").is_file()
    assert "no main" in (results / "cem" / "report.html").read_text()
