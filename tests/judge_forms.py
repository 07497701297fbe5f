"""Judges a right and a wrong answer to a problem of each form in each language, and prints their verdicts.

python tests/judge_forms.py [--form NAME] [--device gpu|sim] [--sandbox NAME] [--jobs N] [--json FILE]

The forms are those that can be imported, and the modules of the tensor_functions assignment. It ends with 1
if a right answer does not pass, or a wrong one does not fail.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from click import echo
from importers import forms

from grader import Judge
from grader.assignments.assignment import load
from grader.assignments.mutants import table
from grader.importers.folders import imported
from grader.records.verdict import Verdict
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

ASSIGNMENT = Path(__file__).parents[1] / "assignments" / "tensor_functions"
OWN = "module"


def answers(form: str) -> Iterator[tuple[str, str, str]]:
    """The language, whether it is right, and the text of each answer of a form."""
    if form != OWN:
        for language in forms.LANGUAGES:
            yield language, "right", forms.right(form, language)
            yield language, "wrong", forms.wrong(form, language)
        return
    assignment = load(str(ASSIGNMENT))
    for language in assignment.rules.languages:
        mutants = [mutant for mutant in table(assignment, language) if mutant.problem == "shifted_sum"]
        yield language, "right", (assignment.reference_in(language) / "shifted_sum.py").read_text()
        yield language, "wrong", mutants[0].text(assignment)


def main() -> int:
    """Print a line for each answer, and at last whether all verdicts are as they should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=(OWN, *forms.FORMS), action="append")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    how = GradingOptions(options.device, options.sandbox)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for form in options.form or (OWN, *forms.FORMS):
            began, work = time.monotonic(), Path(folder, form)
            course, problem = str(ASSIGNMENT), "shifted_sum"
            if form != OWN:
                asked = forms.FORMS[form]
                original = asked.write(work / "original", asked.original)
                course, problem = str(work / "course"), asked.id
                imported(original, Path(course))
            work.mkdir(exist_ok=True)
            kinds, paths = [], []
            for language, kind, text in answers(form):
                path = work / f"{language}_{kind}.py"
                path.write_text(text)
                kinds.append((language, kind))
                paths.append(path)
            with Judge(problem, course, how, jobs=options.jobs) as judge:
                for (language, kind), judgement in zip(kinds, judge.judged(paths), strict=True):
                    good = judgement.verdict is (Verdict.PASS if kind == "right" else Verdict.FAIL)
                    row = {"form": form, "language": language, "kind": kind, "good": good}
                    rows.append(row | asdict(judgement))
                    reasons = "; ".join((judgement.cause, *judgement.distrust))
                    echo(
                        f"{'ok ' if good else 'BAD'} {form:12} {language:12} {kind:6} "
                        f"{judgement.verdict.value:12} {judgement.seconds:6.1f} s  {reasons[:160]}",
                    )
            echo(f"    {form}: {time.monotonic() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    bad = sum(not row["good"] for row in rows)
    echo(f"{len(rows)} answers, {bad} of them with another verdict than they should have")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
