"""``grader judge``: many candidates for one problem, a line of text or of JSON for each."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli import options
from grader.cli.arguments import FaultError, checked_assignment
from grader.processes.imports import importing
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from grader.batch.candidates import Judgement
    from grader.run.options import GradingOptions


@click.command()
@click.argument("problem")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="FILE..."
)
@options.assignment
@options.grading
@options.seed
@click.option("--jobs", type=click.IntRange(min=1), help="Judge so many candidates side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each candidate.")
def judge(
    problem: str,
    files: tuple[Path, ...],
    assignment: str | None,
    how: GradingOptions,
    seed: int | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Judge many answers to one PROBLEM, as a model writes them: each FILE is one, whatever its name.

    All get the same inputs. A candidate is judged until something is wrong.
    """
    with importing():
        from grader.batch.candidates import CandidateError, Judge  # noqa: PLC0415 - this takes a second

        chosen = checked_assignment(assignment, (problem,))
    began, worst = time.monotonic(), ExitCode.OK
    try:
        with Judge(problem, chosen, how, seed=seed, jobs=jobs) as judging:
            for path in files:
                if path.is_file():
                    judging.file_of(path)
            for judgement in judging.judged(files):
                click.echo(json.dumps(asdict(judgement)) if as_json else _line(judgement))
                worst = max(worst, _code(judgement))
    except CandidateError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except MachineError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error
    seconds = time.monotonic() - began
    click.echo(f"{len(files)} in {seconds:.1f} s: {60 * len(files) / seconds:.1f} a minute", err=True)
    return worst


def _line(judgement: Judgement) -> str:
    """The judgement for a terminal."""
    speed = "" if judgement.speedup is None else f"{judgement.speedup:.2f} of {judgement.target:g}"
    at = f" at {judgement.file}:{judgement.line}" if judgement.line else ""
    why = "; ".join(judgement.distrust) or (judgement.cause and f"{judgement.cause}{at}")
    return "  ".join(text for text in (judgement.verdict, judgement.candidate, speed, why) if text)


def _code(judgement: Judgement) -> ExitCode:
    if judgement.verdict is Verdict.INFRA_ERROR:
        return ExitCode.MACHINE_FAULT
    return ExitCode.OK if judgement.verdict is Verdict.PASS else ExitCode.POINTS_LOST
