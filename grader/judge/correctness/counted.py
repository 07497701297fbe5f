"""What the simulator counts in the calls of a problem's cases, for what an assignment demands of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.devices.device import Answer
    from grader.problems.problem import Case


@dataclass(frozen=True)
class Counted:
    """The counts of calls in program order.

    Attributes:
        calls: how many were counted.
        most_launches: of one call.
        fewest_launches: of one call.
        kernels: the names of those that were launched, without the arguments of templates.
        shared: accesses of warps to shared memory.
        atomics: atomic operations of threads.
        sectors: of 32 bytes that accesses to global memory took, in the cases that are like the timed ones.
        minimal_sectors: the fewest that would have done.
    """

    calls: int = 0
    most_launches: int = 0
    fewest_launches: int = 0
    kernels: frozenset[str] = frozenset()
    shared: int = 0
    atomics: int = 0
    sectors: int = 0
    minimal_sectors: int = 0

    def joined(self, other: Counted) -> Counted:
        """The counts of both."""
        if not self.calls or not other.calls:
            return self if self.calls else other
        return Counted(
            self.calls + other.calls,
            max(self.most_launches, other.most_launches),
            min(self.fewest_launches, other.fewest_launches),
            self.kernels | other.kernels,
            self.shared + other.shared,
            self.atomics + other.atomics,
            self.sectors + other.sectors,
            self.minimal_sectors + other.minimal_sectors,
        )


def counted(case: Case, answer: Answer, *, typical: bool) -> Counted:
    """The counts of the first call of a case; none where a second call is queued, or nobody counts.

    Args:
        case: that was called.
        answer: of the call in program order.
        typical: whether the case is like those that are timed.
    """
    if case.queued or answer.kernels is None or not answer.usable:
        return Counted()
    counts = answer.counts
    return Counted(
        calls=1,
        most_launches=answer.kernels,
        fewest_launches=answer.kernels,
        kernels=frozenset(count.kernel.partition("<")[0] for count in counts),
        shared=sum(count.shared_requests for count in counts),
        atomics=sum(count.atomics for count in counts),
        sectors=sum(count.global_sectors for count in counts) if typical else 0,
        minimal_sectors=sum(count.minimal_sectors for count in counts) if typical else 0,
    )
