"""What is to be mended in the form of a compiler's messages, which editors turn into marks at the lines.

``file:line: error: what is wrong`` is what gcc writes, and what problem matchers and error formats read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records.verdict import Verdict
from grader.reports.causes import hints
from grader.reports.escaping import line, readable
from grader.reports.fix_first import fixes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from grader.records.record import Record


def messages(record: Record, folder: Path) -> Iterator[str]:
    """A line for each thing to mend whose place is known, and one for each hint on speed of right kernels.

    Args:
        record: of a student's view.
        folder: of the submission, in which editors look for its files.
    """
    for problem in record.problems:
        for fix in fixes(problem):
            if fix.line:
                said = f"{fix.fault}. {fix.do}" if fix.do else fix.fault
                yield f"{folder / fix.file}:{fix.line}: error: {line(said)} [{problem.id}]"
        if problem.correctness.verdict is Verdict.PASS:
            for hint in hints(problem):
                message = line(readable(hint.message))
                yield f"{folder / line(hint.file)}:{hint.line}: warning: {message} [{problem.id}]"
