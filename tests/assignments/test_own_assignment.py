"""An assignment in a folder outside of the package is graded like the grader's own."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import engine
import pytest
from assignments.own_assignment import write, write_in_triton
from forked import run

from grader.sandbox.bubblewrap import BubblewrapSandbox
from grader.sandbox.docker import IMAGE_VARIABLE
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")


@pytest.fixture(scope="module", params=["process", "bubblewrap", "docker"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "bubblewrap" and not BubblewrapSandbox().probe().usable:
        pytest.skip("bubblewrap does not work here")
    if request.param != "docker":
        yield request.param
        return
    with pytest.MonkeyPatch.context() as patch:
        try:
            with engine.engine() as address:
                patch.setenv("DOCKER_HOST", address)
                patch.setenv(IMAGE_VARIABLE, engine.SANDBOX_IMAGE)
                yield request.param
        except engine.NoEngineError as error:
            pytest.skip(f"no Docker engine: {error}")


def test_a_folder_is_graded_in_every_sandbox(sandbox: str, tmp_path: Path) -> None:
    own, options = write(tmp_path), ("--device", "sim", "--sandbox", sandbox)
    right = run(
        "grade", tmp_path / "class" / "right", "--assignment", own, *options, "--json", tmp_path / "r"
    )
    assert right.stdout.splitlines()[-1] == "Score: 12.0/12.0 (20.0 possible)", right.stdout + right.stderr
    wrong = run("grade", tmp_path / "class" / "wrong", "--assignment", own, *options, "--verbose")
    assert wrong.stdout.splitlines()[-1] == "Score: 0.0/12.0 (20.0 possible)", wrong.stdout + wrong.stderr
    assert "1 of 1000 elements were never written" in wrong.stdout
    record = json.loads((tmp_path / "r").read_text())
    assert (record["assignment"], record["sandbox"]["backend"]) == ("own", sandbox)


def test_a_class_is_graded_and_reported(sandbox: str, tmp_path: Path) -> None:
    own = write(tmp_path)
    options = ("--assignment", own, "--device", "sim", "--sandbox", sandbox)
    jobs = ("--jobs", "1")  # a worker takes longer to start than to grade
    done = run("batch", tmp_path / "class", "--out", tmp_path / "out", *options, *jobs)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "gradebook.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["submission"], float(row["score"])) for row in rows] == [("right", 12), ("wrong", 0)]
    again = run("batch", tmp_path / "class", "--out", tmp_path / "out", *options, *jobs)
    assert "kept 2 that" in again.stdout + again.stderr
    pages = tmp_path / "pages"
    reported = run("report", tmp_path / "out", "--assignment", own, "--html", pages)
    assert reported.returncode == 0, reported.stderr
    assert "Two small kernels" in (pages / "index.html").read_text()
    assert "Scaling in half precision" in (pages / "wrong" / "report.html").read_text()
    (own / "problems" / "sizes.py").write_text("SIZES = (1, 2)\n")
    changed = run("batch", tmp_path / "class", "--out", tmp_path / "out", *options, *jobs)
    assert "kept 2 that" not in changed.stdout + changed.stderr


def test_both_languages_are_graded_side_by_side(sandbox: str, tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    own, out = write_in_triton(tmp_path), tmp_path / "out"
    options = ("--assignment", own, "--device", "sim", "--sandbox", sandbox)
    done = run("batch", tmp_path / "class", "--out", out, *options, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    with (out / "gradebook.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = {"both": 6, "right": 12, "triton": 12, "wrong": 0}
    assert {row["submission"]: float(row["score"]) for row in rows} == scores
    records = {name: json.loads((out / name / "result.json").read_text()) for name in scores}
    languages = {name: [problem["language"] for problem in one["problems"]] for name, one in records.items()}
    assert languages == {
        "both": ["triton", "cuda"],
        "right": ["cuda"] * 2,
        "triton": ["triton"] * 2,
        "wrong": ["cuda"] * 2,
    }
    again = run("batch", tmp_path / "class", "--out", out, *options, "--jobs", "1")
    assert "kept 4 that" in again.stdout + again.stderr
    compare, pages = tmp_path / "compare", tmp_path / "pages"
    reports = ("--assignment", own, "--html", pages, "--jplag", compare, "--submissions", tmp_path / "class")
    reported = run("report", out, *reports)
    assert reported.returncode == 0, reported.stderr
    assert "Scaling in half precision, in Triton" in (pages / "both" / "report.html").read_text()
    assert sorted(path.name for path in (compare / "both").iterdir()) == ["half_scale.py", "int_add.cu.cpp"]


def test_a_bug_in_an_assignment_is_called_one(tmp_path: Path) -> None:
    own = write(tmp_path)
    path = own / "problems" / "int_add.py"
    path.write_text(path.read_text().replace("n, np.int32)", "n, np.int23)"))
    done = run("grade", tmp_path / "class" / "right", "--assignment", own, "--device", "sim")
    assert done.returncode == 4
    assert f"This is a bug in the assignment ({path}:" in done.stderr
