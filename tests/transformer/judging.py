"""Judges the text of a ``transformer.py`` on the simulator, with the reference's kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from first_assignment import ASSIGNMENT, PROBLEMS, program
from wrong_models import REFERENCE

from grader.devices.device import Memory, Schedule
from grader.devices.sim import Sim
from grader.judge.correctness.cases import Judged, judge
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build_all
from grader.languages.cuda.toolchain import find as find_toolchain
from grader.languages.jobs import compile_limits
from grader.sandbox.backends import select as select_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from grader.problems.problem import Case, Expectation, Inputs, Problem
    from grader.sandbox.sandbox import Sandbox

SEED = 20_240_607


@cache
def sandbox() -> Sandbox:
    """What confines the runner here."""
    return select_sandbox()


@cache
def libraries() -> Mapping[Path, tuple[str, ...]]:
    """The reference's kernels, built as a grading run builds them, with their entry points."""
    files = {path.name: path.read_bytes() for path in REFERENCE.iterdir() if path.is_file()}
    built = build_all(
        dict.fromkeys(PROBLEMS["transformer"].launchers, files),
        find_toolchain(),
        sandbox(),
        compile_limits(ASSIGNMENT.rules.limits.compile_seconds),
        Cache(),
    )
    found = {}
    for name, build in built.items():
        assert build.artefact is not None, build.log
        found[build.artefact] = PROBLEMS["transformer"].launchers[name]
    return found


@cache
def problem() -> Problem:
    """The problem with cases of one seed, whose inputs and expectations are computed once."""
    original = PROBLEMS["transformer"]
    inputs: dict[str, Inputs] = {}
    expected: dict[str, Mapping[str, Expectation]] = {}

    def inputs_of(case: Case) -> Inputs:
        if case.name not in inputs:
            inputs[case.name] = original.inputs(case)
        return inputs[case.name]

    def oracle_of(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        if case.name not in expected:
            expected[case.name] = original.oracle(case, given)
        return expected[case.name]

    return replace(original, inputs=inputs_of, oracle=oracle_of)


def judged(text: str, folder: Path, groups: Iterable[str] = ()) -> Judged:
    """What the judge says of ``text`` as transformer.py, in program order."""
    model = folder / "transformer.py"
    model.write_text(text)
    wanted = set(groups)
    cases = [case for case in problem().cases(SEED) if not wanted or case.group in wanted]
    return judge(
        problem(),
        cases,
        lambda: Sim(sandbox()).open_model(program(model), libraries(), Memory.DEVICE),
        (Schedule.PROGRAM,),
        memory=Memory.DEVICE,
        seconds=ASSIGNMENT.rules.limits.run_seconds_sim,
    )
