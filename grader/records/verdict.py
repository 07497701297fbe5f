"""The verdicts of the grader: of a case, a check, a measurement and a problem; and how a case ended.

Layer: imports the standard library and nothing of the grader; judge, scoring, records and reports share it.
"""

from __future__ import annotations

from enum import StrEnum


class Ending(StrEnum):
    """How a case or a build came to its end, where its result alone does not say so."""

    USUAL = "usual"
    NOT_RUN = "not run"  # a case: one before it ended the runner, or was wrong where that is enough
    UNBEGUN = "not begun"  # a case: its function is still to be written
    LIMIT = "limit"  # a case or a build: stopped by a limit


class Verdict(StrEnum):
    """What became of a case, a check, a measurement or a problem."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"  # the submission's fault: wrong, too slow, a limit hit
    AMBIGUOUS = "AMBIGUOUS"  # too close to call after measuring again; counts for the student
    UNTRUSTED = "UNTRUSTED"  # facts contradict each other; no points, and a person should look at it
    NOT_MEASURED = "NOT_MEASURED"  # this machine cannot tell, so the points stay undecided
    INFRA_ERROR = "INFRA_ERROR"  # the machine or the grader failed, so the points stay undecided

    @property
    def decided(self) -> bool:
        """Whether this verdict decides points, instead of leaving them open."""
        return self not in {Verdict.NOT_MEASURED, Verdict.INFRA_ERROR}
