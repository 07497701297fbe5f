"""The command line that runs a job by Apptainer, for clusters without an engine of containers.

No backend: nothing here starts it. Memory and processes are bounded only where the cluster delegates cgroups;
the keeper that starts such a command bounds the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.sandbox.live import memory_bytes
from grader.sandbox.process import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from grader.sandbox.sandbox import Job


def command(job: Job, image: Path, scratch: Path) -> tuple[str, ...]:
    """The command line for ``job`` in the image file ``image``.

    Args:
        job: what to run; its files must already be in ``scratch``.
        image: made from the image of ``docker/Dockerfile``.
        scratch: the folder of this machine that is the job's working folder, ``/tmp`` inside.
    """
    line = ["apptainer", "exec", "--containall", "--cleanenv", "--no-home", "--no-privs"]
    line += ["--net", "--network", "none", "--hostname", "sandbox"]
    limits = job.limits
    memory = memory_bytes(limits)
    line += ["--pids-limit", str(limits.processes)]
    if memory is not None:
        line += ["--memory", str(memory), "--memory-swap", str(memory)]
    if job.gpu:
        line.append("--nv")
    line += ["--bind", f"{scratch}:/tmp:rw", "--pwd", "/tmp"]  # noqa: S108 - the job's own
    for path in job.inputs:
        line += ["--bind", f"{path}:{path}:ro"]
    places = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108
    for name, value in (clean_environment(job) | places | dict(job.environment)).items():
        line += ["--env", f"{name}={value}"]
    return (*line, str(image), *job.argv)
