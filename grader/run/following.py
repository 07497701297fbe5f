"""The cases that follow a submission's own code, judged until nothing new is reached."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError

from grader.judge.coverage.literals import literals, marks
from grader.judge.coverage.search import Search
from grader.languages.language import HostCode
from grader.records.coverage import Site
from grader.records.findings import Line
from grader.records.record import UnreachedRecord
from grader.records.verdict import Verdict
from grader.run.kernel import PreparedKernel
from grader.run.passes import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.devices.device import Answer
    from grader.judge.correctness.cases import Judged
    from grader.problems.problem import Case
    from grader.records.coverage import Coverage
    from grader.run.prepared import Prepared

ROUNDS = 4  # of proposals: what a round reaches shows what else there is
UNREACHED = 100  # of a problem, in the record


class Following:
    """Looks for further cases of one submission and problem.

    Attributes:
        cases: those that were found, in order.
    """

    def __init__(
        self,
        answer: Prepared,
        contents: Mapping[str, bytes],
        seed: int,
        judges: Callable[[Mapping[str, int], str], bool],
    ) -> None:
        """Reach nothing yet.

        Args:
            answer: the submission's launcher.
            contents: the files that it is made of.
            seed: of the run.
            judges: whether inputs of these sizes and that distribution can cost points.
        """
        self.cases: list[Case] = []
        self._files = {PurePath(name).name for name in contents}
        self._host = HostCode()
        self._search: Search | None = None
        if not isinstance(answer, PreparedKernel) or answer.problem.space is None:
            return
        # What cannot be read came from the submission, and it only chooses cases.
        with suppress(ELFError, UnicodeDecodeError, AssertionError, KeyError, ValueError):
            self._host = answer.language.host_code(answer.artefact)
        comment = "#" if answer.language.name == "triton" else "//"
        text = [content.decode(errors="replace") for content in contents.values()]
        numbers = frozenset[int]().union(*(literals(source, comment) for source in text))
        may_mark = frozenset[float]().union(*(marks(source, comment) for source in text))
        space = answer.problem.space
        judged = replace(space, allows=lambda *inputs: space.allows(*inputs) and judges(*inputs))
        self._search = Search(judged, seed, numbers, self._position, marks=may_mark)

    def observe(self, case: Case, answer: Answer) -> None:
        """Keep what a case has reached."""
        if self._search is not None and answer.usable:
            work = sum(count.instructions for count in answer.counts)
            self._search.add(case, answer.coverage, work)

    def follow(self, usual: Judged, judged: Callable[[tuple[Case, ...]], Judged]) -> Judged:
        """What ``judged`` says of the further cases, joined to what it said of the ``usual`` ones.

        Nothing is looked for where one of them is wrong: that is to be mended first.
        """
        result = usual
        for _ in range(ROUNDS):
            if self._search is None or not _right(result):
                break
            cases = self._search.next()
            if not cases:
                break
            self.cases += cases
            result = joined(result, judged(cases))
        return result

    @property
    def unreached(self) -> list[UnreachedRecord]:
        """What no case has reached, for staff."""
        if self._search is None:
            return []
        ran = {self._host.function(address) for address in self._search.blocks}
        lines = {
            address: line
            for address in self._host.blocks
            if self._host.function(address) in ran and (line := self._own_line(address))
        }
        return [
            UnreachedRecord(
                file=branch.line.file,
                line=branch.line.line,
                kernel=branch.kernel,
                side=branch.side,
                constant=branch.constant,
            )
            for branch in self._search.unreached(lines)[:UNREACHED]
        ]

    def _position(self, site: Site, coverage: Coverage) -> tuple[Line, Site] | None:
        if site.kernel:
            line = coverage.lines[site]
            line = Line(PurePath(line.file).name, line.line)
            return (line, site) if line.file in self._files else None
        for depth, address in enumerate(site.code, 1):
            if address and (host_line := self._own_line(address)):
                return host_line, Site("", site.code[:depth], site.number)
        return None

    def _own_line(self, address: int) -> Line | None:
        line = self._host.line(address)
        return line if line is not None and line.line and line.file in self._files else None


def _right(judged: Judged) -> bool:
    return not judged.machine_failed and all(
        case.verdict is Verdict.PASS for case in judged.cases if not case.waived
    )
