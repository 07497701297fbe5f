"""An assignment in a folder outside of the package is graded like the grader's own."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import engine
import pytest
from assignments.own_assignment import write
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


def test_a_bug_in_an_assignment_is_called_one(tmp_path: Path) -> None:
    own = write(tmp_path)
    path = own / "problems" / "int_add.py"
    path.write_text(path.read_text().replace("n, np.int32)", "n, np.int23)"))
    done = run("grade", tmp_path / "class" / "right", "--assignment", own, "--device", "sim")
    assert done.returncode == 4
    assert f"This is a bug in the assignment ({path}:" in done.stderr
