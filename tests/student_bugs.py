"""Grades typical bugs of students and looks at how their reports begin: ``nox -s student_bugs``.

    nox -s student_bugs [-- --only TEXT ...] [--records FOLDER] [--seconds S] [--jobs N] [--said]

``tests/student_bugs/bugs.toml`` holds them: right kernels with edits, and words of the true cause. A bug is
explained if the first three lines of its report hold such words and a line of the source, the bug's own or
that of the store of a wrong element, and no word that would be false there.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import difflib
import re
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from first_assignment import ASSIGNMENT
from first_assignment import FOLDER as FIRST
from resumed import add_options, results

from grader.assignments.assignment import load
from grader.problems.problem import KernelProblem
from grader.records.record import RecordError
from grader.records.record import read as read_record
from grader.records.record import write as write_record
from grader.reports.fix_first import fix_first
from grader.run.bench import Bench
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grader.assignments.assignment import Assignment
    from grader.records.record import ProblemResult

FOLDER = Path(__file__).parent / "student_bugs"
KERNELS = FOLDER / "kernels"
SEED = 5
FALSE_IN = {
    ".cu": ("tl.", "a program", "mask=", "torch."),
    ".py": ("__sync", "__threadfence", "cudaM", "size_t", "threadIdx", "blockIdx", "float4", "nullptr"),
}
"""Words of the other language, by the suffix of the file."""
_SHOWN_LINE = re.compile(r"(?:\.(?:cu|py):|\bline )(\d+)")

_worker: tuple[Path, Bench] | None = None  # of a worker process


@dataclass(frozen=True)
class Bug:
    """A right kernel in which the first place of each pair's first text became the second.

    Attributes:
        id: its name.
        kind: of the mistake.
        problem: that the kernel answers.
        kernel: the file that it was made from, in a folder with the name of its assignment if it is not
            the first one.
        edits: old and new text.
        lines: further lines of the cause, beside those of the edits.
        causes: texts of which the report holds one, where it names the true cause.
        false: texts that would be false advice.
    """

    id: str
    kind: str
    problem: str
    kernel: str
    edits: tuple[tuple[str, str], ...]
    lines: tuple[int, ...]
    causes: tuple[str, ...]
    false: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name that the assignment asks for, with the suffix of the language."""
        problem = self.assignment.problems[self.problem]
        assert isinstance(problem, KernelProblem)
        return str(Path(problem.file).with_suffix(Path(self.kernel).suffix))

    @property
    def assignment(self) -> Assignment:
        """The assignment that the problem is of."""
        return assignment(Path(self.kernel).parent.name)

    @property
    def right(self) -> str:
        """The kernel before the edits."""
        return (KERNELS / self.kernel).read_text()

    @property
    def text(self) -> str:
        """The source of the bug."""
        text = self.right
        for old, new in self.edits:
            assert old in text, f"{self.id}: {old!r} does not occur"
            text = text.replace(old, new, 1)
        return text

    @property
    def own_lines(self) -> frozenset[int]:
        """The lines that the edits changed, those around what they removed, and ``lines``."""
        matcher = difflib.SequenceMatcher(
            None, self.right.splitlines(), self.text.splitlines(), autojunk=False
        )
        numbers = set(self.lines)
        for change, _, _, begin, end in matcher.get_opcodes():
            if change == "delete":
                numbers |= {begin, begin + 1}
            elif change != "equal":
                numbers |= set(range(begin + 1, end + 1))
        return frozenset(numbers)


@dataclass(frozen=True)
class Result:
    """How the report of a bug begins, and what that is worth."""

    id: str
    kind: str
    first_lines: tuple[str, ...]
    named: bool
    own_line: bool  # whether it shows a line of the bug itself
    any_line: bool  # whether it shows that or the store of a wrong element
    false: tuple[str, ...]  # false advice
    seconds: float = 0.0

    @property
    def as_it_must(self) -> bool:
        """Whether the bug is explained."""
        return self.named and self.any_line and not self.false

    @property
    def verdict(self) -> str:
        """In words."""
        if self.false:
            return f"false advice: {', '.join(self.false)}"
        return "another cause" if not self.named else "explained" if self.any_line else "no line"


@cache
def assignment(name: str) -> Assignment:
    """The assignment of this name beside the first one, which has none."""
    return load(str(FIRST.parent / name)) if name else ASSIGNMENT


def bugs() -> tuple[Bug, ...]:
    """All that the table holds."""
    table = tomllib.loads((FOLDER / "bugs.toml").read_text())
    return tuple(
        Bug(
            id=bug["id"],
            kind=kind["name"],
            problem=bug["problem"],
            kernel=bug["kernel"],
            edits=tuple((old, new) for old, new in bug["edits"]),
            lines=tuple(bug.get("lines", ())),
            causes=tuple(bug.get("causes", kind.get("causes", ()))),
            false=(*kind.get("false", ()), *bug.get("false", ())),
        )
        for kind in table["kind"]
        for bug in kind["bug"]
    )


def judge(bug: Bug, problem: ProblemResult, seconds: float = 0.0) -> Result:
    """What the report about ``bug`` is worth."""
    fix = fix_first(problem)
    lines = fix.lines if fix else ()
    told = "\n".join(lines)
    own = any(int(number) in bug.own_lines for number in _SHOWN_LINE.findall(told))
    return Result(
        id=bug.id,
        kind=bug.kind,
        first_lines=lines,
        named=any(cause in told for cause in bug.causes),
        own_line=own,
        any_line=own or bool(fix and fix.stored),
        false=tuple(
            words
            for words in (*bug.false, *FALSE_IN[Path(bug.file).suffix])
            if words in "\n".join(line for line in lines if fix is None or line != fix.where)
        ),
        seconds=seconds,
    )


def graded(bug: Bug, folder: Path, bench: Bench) -> Result:
    """Grade ``bug`` in ``folder``, unless that holds its record already."""
    source, kept = folder / bug.id / bug.file, folder / f"{bug.id}.json"
    if not (source.exists() and source.read_text() == bug.text and kept.exists()):
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(bug.text)
        options = GradingOptions("sim", memory="device")
        request = GradingRequest(source.parent, bug.assignment, (bug.problem,), options, seed=SEED, fast=True)
        write_record(grade(request, bench=bench), kept)
    record = read_record(kept)
    if record.error:
        kept.unlink()
        raise RecordError(f"{bug.id}: {record.error}")
    return judge(bug, record.problems[0], record.seconds)


def table(seen: Sequence[Result]) -> str:
    """A row for each kind in Markdown, and one for all."""
    rows = ["| kind | bugs | explained | with the bug's own line | false advice |", "|---|--:|--:|--:|--:|"]
    kinds = dict.fromkeys(result.kind for result in seen)
    rows += [_row(kind, [result for result in seen if result.kind == kind]) for kind in kinds]
    rows.append(_row("all", seen))
    share = sum(result.as_it_must for result in seen) / max(1, len(seen))
    return "\n".join([*rows, "", f"explained: {share:.1%}"])


def _row(name: str, some: Sequence[Result]) -> str:
    counts = Counter[str]()
    for result in some:
        counts["explained"] += result.as_it_must
        counts["own"] += result.as_it_must and result.own_line
        counts["false"] += bool(result.false)
    return f"| {name} | {len(some)} | {counts['explained']} | {counts['own']} | {counts['false']} |"


def said(some: Iterable[Result]) -> str:
    """How the reports begin, with what that is worth."""
    return "\n".join(
        "\n    ".join((f"{result.id}: {result.verdict}", *result.first_lines)) for result in some
    )


def _start(_turn: object, folder: Path) -> None:
    global _worker  # noqa: PLW0603 - a worker's state, set once
    _worker = folder, Bench(remembers=True)


def _work(bug: Bug) -> Result:
    assert _worker is not None
    return graded(bug, *_worker)


def main() -> int:
    parser = argparse.ArgumentParser(description="Grade typical bugs of students.")
    add_options(parser)
    parser.add_argument("--records", type=Path, metavar="FOLDER", help="keep records here, and use them")
    parser.add_argument("--said", action="store_true", help="show how each report begins")
    options = parser.parse_args()
    wanted = [bug for bug in bugs() if not options.only or any(part in bug.id for part in options.only)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.records or Path(temporary)
        of = {
            result.id: result
            for result in results(
                wanted, _work, _start, folder, jobs=options.jobs, turns=options.jobs, seconds=options.seconds
            )
        }
    seen = [of[bug.id] for bug in wanted if bug.id in of]
    print(said(seen if options.said else [result for result in seen if not result.as_it_must]))
    print(table(seen))
    return 0 if len(seen) == len(wanted) and all(result.as_it_must for result in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
