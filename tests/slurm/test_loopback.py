"""A batch on a real Slurm, of which one node is lost in the middle."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster import NODES, Loopback, NoClusterError, install
from first_assignment import few_rows

from grader.batch.records import finished
from grader.records import record as results

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).parents[2] / "reference"
SUBMISSIONS = 6
SECONDS = 400.0
RUNNING = [f"1 {node}" for node in NODES]  # as squeue tells of the second task


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    running = Loopback(tmp_path_factory.mktemp("slurm"))
    try:
        install()
        running.start()
        yield running
    except NoClusterError as error:
        pytest.skip(f"no Slurm here: {error}")
    finally:
        running.stop()


def seen(out: Path) -> dict[str, tuple[int, int]]:
    """Which file each record is: a record that is written again is another one."""
    found = {}
    for path in out.glob("*/result.json"):
        status = path.stat()
        found[path.parent.name] = (status.st_ino, status.st_mtime_ns)
    return found


@pytest.mark.long
def test_one_submission_as_a_job_shows_what_it_shows_here(cluster: Loopback, tmp_path: Path) -> None:
    (tmp_path / "hw").mkdir()
    (tmp_path / "hw" / "softmax_kernels.cu").write_text("")
    command = [sys.executable, "-P", "-m", "grader", "grade", "hw", "--device", "sim", "--seed", "3"]
    here, there = (
        subprocess.run(
            [*command, *options],
            cwd=tmp_path,
            env=os.environ | cluster.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for options in ((), ("--slurm", "--slurm-option", "cpus-per-task=1"))
    )
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout), there.stderr
    assert here.returncode == 1


@pytest.mark.long
def test_a_lost_node_costs_no_record_and_grades_nothing_twice(cluster: Loopback, tmp_path: Path) -> None:
    for number in range(SUBMISSIONS):
        folder = tmp_path / "in" / f"student{number}"
        folder.mkdir(parents=True)
        for name in ("softmax_kernel.cu", "row.cuh"):  # two problems are enough
            shutil.copy(REFERENCE / name, folder)
    out = tmp_path / "out"
    options = ["--slurm", "2", "--device", "sim", "--slurm-option", "cpus-per-task=1", "--time", "30"]
    command = [sys.executable, "-P", "-m", "grader", "batch", str(tmp_path / "in"), "--out", str(out)]
    command += ["--assignment", str(few_rows(tmp_path / "few_rows"))]
    second = {f"student{number}" for number in range(1, SUBMISSIONS, 2)}
    files: dict[str, set[tuple[int, int]]] = {}
    node, lost = "", False  # where the second task runs, and whether that is gone
    begun = time.monotonic()
    environment = os.environ | cluster.environment
    with subprocess.Popen(
        [*command, *options], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as batch:
        try:
            while batch.poll() is None:
                assert time.monotonic() < begun + SECONDS, cluster.ask("squeue") + cluster.ask("sinfo")
                for name, file in seen(out).items():
                    files.setdefault(name, set()).add(file)
                done = second & files.keys()
                if node and not lost and done and done != second:
                    cluster.kill(node)
                    lost = True
                tasks = cluster.ask("squeue", "--noheader", "--format=%K %N", "--array").splitlines()
                node = node or next((task.split()[1] for task in tasks if task in RUNNING), "")
                time.sleep(0.1)
        finally:
            batch.kill()
        said = batch.communicate()[0]
    assert lost, said
    assert batch.returncode == 0, said
    for name, file in seen(out).items():
        files.setdefault(name, set()).add(file)
    assert files.keys() == {f"student{number}" for number in range(SUBMISSIONS)}
    assert {len(written) for written in files.values()} == {1}
    records = [results.read(path) for path in out.glob("*/result.json")]
    assert all(finished(record) and record.score.earned == 24 for record in records)
    assert len({record.seed for record in records}) == 1
    arrays = {path.name.partition("_")[0] for path in out.glob(".slurm/*/*_log.out")}
    assert len(arrays) == 2
