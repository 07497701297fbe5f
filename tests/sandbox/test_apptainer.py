"""The command line of Apptainer, as text: nothing here runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.sandbox.apptainer import command
from grader.sandbox.sandbox import Job, Limits

IMAGE, SCRATCH = Path("/images/grader.sif"), Path("/scratch/job")


def test_the_whole_command_line() -> None:
    limits = Limits(wall_seconds=60, address_space_bytes=1 << 30, processes=8)
    job = Job(("/bin/prog", "-x"), limits, inputs=(Path("/data/in"),), environment={"LINK": "/data/in"})
    expected = (
        "apptainer exec --containall --cleanenv --no-home --no-privs --net --network none --hostname sandbox "
        "--pids-limit 8 --memory 1073741824 --memory-swap 1073741824 --bind /scratch/job:/tmp:rw --pwd /tmp "
        "--bind /data/in:/data/in:ro --env PATH=/usr/bin:/bin --env LANG=C.UTF-8 --env USER=nobody "
        "--env OMP_NUM_THREADS=1 --env OPENBLAS_NUM_THREADS=1 --env HOME=/tmp --env TMPDIR=/tmp "
        "--env LINK=/data/in /images/grader.sif /bin/prog -x"
    )
    assert " ".join(command(job, IMAGE, SCRATCH)) == expected


def test_a_gpu_is_lent_and_named_only_to_jobs_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    line = command(Job(("/bin/prog",), Limits(wall_seconds=60), gpu=True), IMAGE, SCRATCH)
    assert {"--nv", "CUDA_VISIBLE_DEVICES=3"} <= set(line)
    line = command(Job(("/bin/prog",), Limits(wall_seconds=60)), IMAGE, SCRATCH)
    assert not {"--nv", "CUDA_VISIBLE_DEVICES=3", "--memory"} & set(line)


@pytest.mark.parametrize(("lent", "named"), [(None, "0"), ("3,1", "3"), ("-1", "-1")])
def test_no_job_sees_a_second_gpu(monkeypatch: pytest.MonkeyPatch, lent: str | None, named: str) -> None:
    if lent is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", lent)
    line = command(Job(("/bin/prog",), Limits(wall_seconds=60), gpu=True), IMAGE, SCRATCH)
    assert f"CUDA_VISIBLE_DEVICES={named}" in line
