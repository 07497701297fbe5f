"""Selects the sandbox of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.processes import leftovers
from grader.sandbox import cgroup
from grader.sandbox.bubblewrap import BubblewrapSandbox
from grader.sandbox.docker import DockerSandbox
from grader.sandbox.process import ProcessSandbox
from grader.sandbox.sandbox import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.sandbox.sandbox import Sandbox

BACKENDS: dict[str, Callable[[], Sandbox]] = {
    "docker": DockerSandbox,
    "bubblewrap": BubblewrapSandbox,
    "process": ProcessSandbox,
}
"""All back-ends by their names, the strongest first."""


def select(name: str = "auto") -> Sandbox:
    """The back-end called ``name``; ``auto`` is the strongest that works.

    First removes what killed graders have left behind. The back-end ``process`` confines little, so callers
    show its ``probe().not_enforced`` in the header and the record.

    Raises:
        SandboxError: there is no such back-end, or it does not work here; the message says what to do.
    """
    if name not in ("auto", *BACKENDS):
        raise SandboxError(
            f"There is no {name} sandbox. Use --sandbox {', '.join(BACKENDS)}, or leave it out."
        )
    leftovers.sweep()
    cgroup.sweep()
    for backend, opened in BACKENDS.items():
        if name in ("auto", backend):
            sandbox = opened()
            probe = sandbox.probe()
            if probe.usable:
                return sandbox
            if name == backend:
                raise SandboxError(f"The {name} sandbox does not work on this machine.\n{probe.remedy}")
    raise SandboxError(f"No sandbox works on this machine.\n{ProcessSandbox().probe().remedy}")
