"""Which sandbox a run uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.sandbox.bubblewrap import BubblewrapSandbox
from grader.sandbox.process import ProcessSandbox
from grader.sandbox.sandbox import SandboxError

if TYPE_CHECKING:
    from grader.sandbox.sandbox import Sandbox

BACKENDS = ("bubblewrap", "process")


def select(name: str = "auto") -> Sandbox:
    """The backend called ``name``; ``auto`` is bubblewrap where it works, else process.

    Process confines little: callers show its ``probe().not_enforced`` in the header and the record.

    Raises:
        SandboxError: there is no such backend, or it does not work here; the message says what to do.
    """
    if name not in ("auto", *BACKENDS):
        raise SandboxError(
            f"This version has no {name} sandbox. Use --sandbox {' or '.join(BACKENDS)}, or leave it out."
        )
    for sandbox in (BubblewrapSandbox(), ProcessSandbox()):
        if name in ("auto", sandbox.name):
            probe = sandbox.probe()
            if probe.usable:
                return sandbox
            if name == sandbox.name:
                raise SandboxError(f"The {name} sandbox does not work on this machine.\n{probe.remedy}")
    raise SandboxError(f"No sandbox works on this machine.\n{ProcessSandbox().probe().remedy}")
