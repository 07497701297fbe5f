"""The results of a whole class: distributions, speed boards, common failures and submissions to check."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from grader.records.diagnosis import theme
from grader.records.verdict import Verdict
from grader.reports.causes import without_place
from grader.reports.charts import distribution, outliers
from grader.reports.fix_first import fixes
from grader.reports.gaps import gaps, lack, remedy
from grader.reports.gradebook import PENDING, earned, totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grader.records.record import ProblemResult, Record
    from grader.reports.charts import Bin

SHOWN_FAILURES = 25


@dataclass(frozen=True)
class Classroom:
    """All records by submission, None for one without a result; aliases; and links to the pages."""

    results: Mapping[str, Record | None]
    aliases: Mapping[str, str]
    links: Mapping[str, str]

    @cached_property
    def records(self) -> dict[str, Record]:
        """The existing records by submission."""
        return {name: record for name, record in sorted(self.results.items()) if record}

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of every problem by its id, in the order of the records."""
        return {problem.id: problem.title for record in self.records.values() for problem in record.problems}

    @cached_property
    def scores(self) -> dict[str, float]:
        """The points of every submission that has a score."""
        scores = {name: totals(record).earned for name, record in self.records.items()}
        return {name: score for name, score in scores.items() if score is not None}

    @property
    def summary(self) -> str:
        """The number of submissions and their median score, in one line."""
        scores = list(self.scores.values())
        noun = "submission" if len(self.results) == 1 else "submissions"
        numbers = f"{len(self.results)} {noun}, {len(scores)} with a score"
        return f"{numbers}; median {median(scores):.2f}" if scores else numbers

    def problem(self, problem_id: str) -> dict[str, ProblemResult]:
        """The results of one problem by submission."""
        return {
            name: problem
            for name, record in self.records.items()
            for problem in record.problems
            if problem.id == problem_id
        }


@dataclass(frozen=True)
class Overview:
    """The results of the class in one problem."""

    title: str
    bins: tuple[Bin, ...]
    verdicts: tuple[tuple[Verdict, int], ...]
    median: str


@dataclass(frozen=True)
class Failure:
    """A mistake in several submissions.

    Attributes:
        problem: the title of the problem.
        text: the cause of the first of the submissions.
        names: the submissions.
        ended: whether it is a limit or a crash that nothing explains, as a faulty machine would cause it.
    """

    problem: str
    text: str
    names: tuple[str, ...]
    ended: bool = False

    @property
    def suspicious(self) -> bool:
        """Whether the machine may be at fault, as several submissions ended in the same way."""
        return self.ended and len(self.names) > 1


@dataclass(frozen=True)
class Ranking:
    """A row of a speed board."""

    name: str
    speedup: float


@dataclass(frozen=True)
class Board:
    """Speedups of one problem, the fastest first, and its targets; host pointers have a separate target."""

    title: str
    targets: tuple[float, ...]
    rows: tuple[Ranking, ...]


@dataclass(frozen=True)
class Item:
    """A submission to check, and the reason."""

    name: str
    text: str
    link: str


@dataclass(frozen=True)
class Attention:
    """Submissions to check for one kind of reason."""

    title: str
    entries: tuple[Item, ...]


def overview(classroom: Classroom) -> tuple[Overview, ...]:
    """Distribution of decided points and verdicts of each problem."""
    overviews = []
    for problem_id, title in classroom.titles.items():
        results = classroom.problem(problem_id).values()
        points = [score for problem in results if (score := earned(problem)) is not None]
        most = max((problem.points.decided for problem in results), default=0.0)
        counts = Counter(problem.verdict for problem in results)
        overviews.append(
            Overview(
                title=title,
                bins=distribution(points, most) if points else (),
                verdicts=tuple((verdict, counts[verdict]) for verdict in Verdict if counts[verdict]),
                median=f"{median(points):.2f} of {most:.2f}" if points else "",
            )
        )
    return tuple(overviews)


def failures(classroom: Classroom, *, fewest: int = 1) -> tuple[Failure, ...]:
    """Causes of failure in at least ``fewest`` submissions, most frequent first; numbers may differ.

    What is suspicious is none of them: it may be no mistake of students.
    """
    frequent = [
        failure for failure in _causes(classroom) if len(failure.names) >= fewest and not failure.suspicious
    ]
    return tuple(frequent[:SHOWN_FAILURES])


def _causes(classroom: Classroom) -> list[Failure]:
    """What went wrong in each problem, the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[str, str, bool]]] = defaultdict(list)
    for problem_id, title in classroom.titles.items():
        for name, problem in classroom.problem(problem_id).items():
            if problem.verdict is not Verdict.FAIL:
                continue
            by_theme = {theme(without_place(fix.cause)): fix for fix in fixes(problem)}
            for subject, fix in by_theme.items():
                groups[title, subject].append((name, without_place(fix.cause), fix.ended))
    failures = [
        Failure(title, members[0][1], tuple(name for name, _, _ in members), members[0][2])
        for (title, _), members in groups.items()
    ]
    return sorted(failures, key=lambda failure: -len(failure.names))


def boards(classroom: Classroom, *, everybody: bool) -> tuple[Board, ...]:
    """The speed board of each timed problem; without ``everybody``, it shows only those with an alias."""
    listed = []
    for problem_id, title in classroom.titles.items():
        timed = _timed(classroom, problem_id)
        rows = [
            Ranking(classroom.aliases.get(name, name), speedup)
            for name, speedup in sorted(timed.items(), key=lambda pair: -pair[1])
            if everybody or name in classroom.aliases
        ]
        if rows:
            results = classroom.problem(problem_id)
            targets = {results[name].performance.target for name in timed}
            listed.append(Board(title, tuple(sorted(targets)), tuple(rows)))
    return tuple(listed)


def attention(classroom: Classroom) -> tuple[Attention, ...]:
    """The submissions that staff should check before grades are published."""

    def for_reason(title: str, entries: Iterator[tuple[str, str]]) -> Attention:
        return Attention(
            title, tuple(Item(name, text, classroom.links.get(name, "")) for name, text in entries)
        )

    kinds = (
        for_reason("Not trusted: no points until staff have checked it", _untrusted(classroom)),
        for_reason(
            "The same limit or crash in several submissions: was it the machine?", _suspicious(classroom)
        ),
        for_reason("Machine faults, and submissions that are not graded", _ungraded(classroom)),
        for_reason("Undecided: a case reached what the simulator cannot run", _undecided(classroom)),
        for_reason("Too close to call: counted in the student's favour", _ambiguous(classroom)),
        for_reason("Far from the others", _outliers(classroom)),
        for_reason("The same files under several names", _twins(classroom)),
    )
    return tuple(kind for kind in kinds if kind.entries)


def _timed(classroom: Classroom, problem_id: str) -> dict[str, float]:
    return {
        name: problem.performance.speedup
        for name, problem in classroom.problem(problem_id).items()
        if problem.performance.speedup is not None
        and problem.verdict not in {Verdict.UNTRUSTED, Verdict.INFRA_ERROR}
    }


def _untrusted(classroom: Classroom) -> Iterator[tuple[str, str]]:
    for name, record in classroom.records.items():
        for problem in record.problems:
            if problem.verdict is Verdict.UNTRUSTED:
                yield name, f"{problem.title}: {'; '.join(problem.trust.reasons) or problem.message}"


def _ungraded(classroom: Classroom) -> Iterator[tuple[str, str]]:
    for name, record in sorted(classroom.results.items()):
        if record is None:
            yield name, PENDING
            continue
        failed = [problem.message for problem in record.problems if problem.verdict is Verdict.INFRA_ERROR]
        if reason := record.error or record.not_graded or next(iter(failed), ""):
            yield name, reason.partition("\n")[0]


def _undecided(classroom: Classroom) -> Iterator[tuple[str, str]]:
    for name, record in classroom.records.items():
        for problem in record.problems:
            for gap in gaps(problem):
                position = f" at {gap.file}:{gap.line}" if gap.line else ""
                yield name, f"{problem.title}: {lack(gap)}{position}. {remedy(gap)}"


def _suspicious(classroom: Classroom) -> Iterator[tuple[str, str]]:
    for failure in _causes(classroom):
        if failure.suspicious:
            for name in failure.names:
                yield name, f"{failure.problem}: {failure.text}"


def _ambiguous(classroom: Classroom) -> Iterator[tuple[str, str]]:
    for name, record in classroom.records.items():
        for problem in record.problems:
            measured = problem.performance
            if measured.verdict is Verdict.AMBIGUOUS and measured.interval:
                low, high = measured.interval
                yield name, f"{problem.title}: {low:.2f}x to {high:.2f}x, target {measured.target:g}x"


def _outliers(classroom: Classroom) -> Iterator[tuple[str, str]]:
    for problem_id, title in classroom.titles.items():
        timed = _timed(classroom, problem_id)
        strange = set(outliers(timed.values()))
        for name, speedup in timed.items():
            if speedup in strange:
                yield name, f"{title}: {speedup:.2f}x, where the median is {median(timed.values()):.2f}x"
    strange = set(outliers(classroom.scores.values()))
    for name, points in classroom.scores.items():
        if points in strange:
            middle = median(classroom.scores.values())
            yield name, f"{points:.2f} points, where the median is {middle:.2f}"


def _twins(classroom: Classroom) -> Iterator[tuple[str, str]]:
    same: dict[str, list[str]] = defaultdict(list)
    for name, record in classroom.records.items():
        if record.submission.files:  # submissions without graded files all have the same hash
            same[record.submission.sha256].append(name)
    for names in same.values():
        for name in names[1:]:
            yield name, f"the same as {names[0]}"
