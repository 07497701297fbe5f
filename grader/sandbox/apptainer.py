"""The command line that runs a job with Apptainer, for clusters without a container engine.

This is not a back-end: nothing here starts the command. Memory and processes are limited only where the
cluster delegates cgroups; the keeper that starts such a command enforces the other limits.
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
        job: the job to run; its files must already be in ``scratch``.
        image: an image file made from the image of ``docker/Dockerfile``.
        scratch: the folder on this machine that is the job's working folder, ``/tmp`` inside the image.
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
    line += ["--bind", f"{scratch}:/tmp:rw", "--pwd", "/tmp"]  # noqa: S108 - private to the job
    for path in job.inputs:
        line += ["--bind", f"{path}:{path}:ro"]
    folders = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108
    for name, value in (clean_environment(job) | folders | dict(job.environment)).items():
        line += ["--env", f"{name}={value}"]
    return (*line, str(image), *job.argv)
