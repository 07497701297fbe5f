"""Judges right and wrong answers to the problems of each form in each language, and prints their verdicts.

python tests/judge_forms.py [--form NAME] [--problem ID] [--language NAME] [--device gpu|sim] [--sandbox NAME]
    [--jobs N] [--json FILE]

The forms are those that can be imported, and the modules of the tensor_functions assignment. Imported
problems are judged without speed, as answers here are plain. Each problem is judged in one language before
any is in the next, and each judgement is a line of FILE at once: a run that is stopped has seen something of
all. It ends with 1 if a right answer does not pass, or a wrong one does not fail.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from click import echo
from importers import forms

from grader import Judge
from grader.assignments.assignment import load
from grader.assignments.mutants import table
from grader.records.verdict import Verdict
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grader.batch.candidates import Judgement

ASSIGNMENT = Path(__file__).parents[1] / "assignments" / "tensor_functions"
OWN = "module"
KINDS = {"right": Verdict.PASS, "wrong": Verdict.FAIL}


@dataclass
class Subject:
    """A problem with its answers, and the judge of these once it is needed.

    Attributes:
        form: that it has.
        course: the folder of its assignment.
        id: of the problem.
        text: of an answer, by its language and whether it is right.
    """

    form: str
    course: Path
    id: str
    text: Callable[[str, str], str]
    _judge: Judge | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, how: GradingOptions, until: ExitStack) -> Judge:
        """Its judge, which ends with ``until``."""
        with self._lock:
            if self._judge is None:
                self._judge = until.enter_context(Judge(self.id, str(self.course), how, jobs=1))
            return self._judge


def own() -> Iterator[Subject]:
    """The problems of the tensor_functions assignment: references and their mutants."""
    assignment = load(str(ASSIGNMENT))

    def text(problem: str, language: str, kind: str) -> str:
        if kind == "right":
            return (assignment.reference_in(language) / f"{problem}.py").read_text()
        return next(m for m in table(assignment, language) if m.problem == problem).text(assignment)

    for entry in assignment.rules.problems:
        yield Subject(OWN, ASSIGNMENT, entry.id, partial(text, entry.id))


def imported(form: str, folder: Path) -> Iterator[Subject]:
    """The problems of a form, imported into ``folder``, without points for speed."""
    originals, course = folder / "originals", folder / "course"
    for asked in forms.FORMS[form].problems:
        forms.FORMS[form].write(originals, asked.original)
    command = (sys.executable, "-m", "grader", "assignment", "import", originals, "--out", course)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rules = course / "assignment.toml"
    rules.write_text(re.sub(r"(?m)^(performance|target) = .*\n", "", rules.read_text()))
    for asked in forms.FORMS[form].problems:
        yield Subject(form, course, asked.id, partial(forms.text, asked))


def in_turn(subjects: Sequence[Subject], languages: Sequence[str]) -> Iterator[tuple[Subject, str, str]]:
    """Problem, language and kind of each answer, each problem in one language before any is in the next."""
    for turn in range(len(languages)):
        for kind in KINDS:
            for number, subject in enumerate(subjects):
                yield subject, languages[(number + turn) % len(languages)], kind


def main() -> int:
    """Print a line for each answer, and at last whether all verdicts are as they should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=(OWN, *forms.FORMS), action="append")
    parser.add_argument("--problem", action="append")
    parser.add_argument("--language", choices=tuple(forms.LANGUAGES), action="append")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    how = GradingOptions(options.device, options.sandbox)
    began, rows = time.monotonic(), []
    with ExitStack() as until, ThreadPoolExecutor(options.jobs) as pool:
        work = Path(until.enter_context(tempfile.TemporaryDirectory()))
        lines = until.enter_context(options.json.open("w")) if options.json else None

        def judged(subject: Subject, language: str, kind: str) -> Judgement:
            path = work / subject.form / subject.id / language / f"{kind}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(subject.text(language, kind))
            return subject.judge(how, until).judge(path)

        wanted = options.form or (*forms.FORMS, OWN)
        courses = pool.map(lambda form: list(own() if form == OWN else imported(form, work / form)), wanted)
        subjects = [
            subject
            for course in courses
            for subject in course
            if not options.problem or subject.id in options.problem
        ]
        echo(f"{len(subjects)} problems are imported after {time.monotonic() - began:.0f} s")
        waiting = {
            pool.submit(judged, *answer): answer
            for answer in in_turn(subjects, options.language or tuple(forms.LANGUAGES))
        }
        for future in as_completed(waiting):
            (subject, language, kind), judgement = waiting[future], future.result()
            good = judgement.verdict is KINDS[kind]
            row = {"form": subject.form, "problem": subject.id, "language": language, "kind": kind}
            rows.append(row | {"good": good} | asdict(judgement))
            if lines:
                lines.write(json.dumps(rows[-1]) + "\n")
                lines.flush()
            reasons = "; ".join((judgement.cause, *judgement.distrust))
            echo(
                f"{'ok ' if good else 'BAD'} {subject.form:12} {subject.id:18} {language:12} {kind:6} "
                f"{judgement.verdict.value:12} {judgement.seconds:6.1f} s  {reasons[:160]}",
            )
    bad = sum(not row["good"] for row in rows)
    echo(
        f"{len(subjects)} problems, {len(rows)} answers, {bad} of them with another verdict than they should "
        f"have, {time.monotonic() - began:.0f} s"
    )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
