"""Protocols: what a submission has for a problem, and what the judge offers to trials and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from pathlib import Path

    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Device, Memory, Session
    from grader.devices.gpu import Gpu
    from grader.devices.timed import TimedSession
    from grader.judge.correctness.cases import Judged
    from grader.judge.timing.measure import Measured
    from grader.problems.problem import Case, Problem
    from grader.records.record import BuildResult, CaseResult
    from grader.run.preparation import Material

AnySession = TypeVar("AnySession", "Session", "TimedSession")


class Prepared(Protocol):
    """What a submission has for a problem, ready to be called: each kind of problem has its own."""

    @property
    def problem(self) -> Problem:
        """What is answered, as this submission's code takes it."""

    @property
    def entry(self) -> ProblemPoints:
        """Its points and its target."""

    @property
    def memory(self) -> Memory:
        """Which pointers the launchers take."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the student should know of how it is called."""

    @property
    def build(self) -> BuildResult | None:
        """How it was built, where this problem shows that."""

    def lacks(self, case: Case) -> str:
        """Why ``case`` cannot be called, where the submission has no launcher for it; else empty."""

    def open(self, device: Device) -> Session:
        """Start a runner that takes the calls of cases."""

    def combined(self, judged: Judged, checked: Judged, device: str) -> tuple[CaseResult, ...]:
        """One result per case from what the GPU called ``device`` and the simulator say."""

    def code_bytes(self, conduct: Conduct) -> tuple[int | None, int | None]:
        """Bytes of machine code, and those of the reference's; None where that is not known, or not asked."""

    def foresee(self, gpu: Gpu, conduct: Conduct) -> None:
        """Begin what takes long to begin, while cases run that may show that nothing is measured."""

    def forget(self) -> None:
        """End what was begun, as nothing will be measured."""

    def measured(self, gpu: Gpu, baseline: Mapping[Path, tuple[str, ...]], conduct: Conduct) -> Measured:
        """Measure the speed."""


class Conduct(Protocol):
    """What the judge of a problem offers to trials and measurements."""

    material: Material
    stopped: threading.Event
    """Set once the run was interrupted."""

    def begin(self, what: str) -> None:
        """Say what comes next; raises where the run was interrupted."""

    def waiting(self) -> None:
        """Say that the GPU is waited for; raises where the run was interrupted."""

    def watch(self, session: AnySession) -> AnySession:
        """``session``, which an interrupt will close."""
