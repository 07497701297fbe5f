"""Which pointers a launcher takes, device or host: it is tried with each, in a small call on the simulator.

No reading of sources can tell: what copies may be a class, a macro, a template or a library. The numbers and
the checkers can: a copy from the host that gets a device pointer fails, and so does a kernel that gets a
host pointer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.devices.device import Memory, Schedule
from grader.judge.correctness.cases import judge
from grader.languages.language import LauncherError
from grader.records.findings import KINDS
from grader.records.verdict import Verdict
from grader.run.preparation import NotJudgedError, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from grader.languages.language import Launcher
    from grader.problems.problem import Case, KernelProblem
    from grader.run.preparation import Material
    from grader.run.prepared import Conduct


_SAID = {
    Outcome.RIGHT: "right numbers",
    Outcome.WRONG: "wrong numbers",
    Outcome.ENDED: "no numbers",
    Outcome.MISTAKEN: "which it took for the other kind",
}


@dataclass(frozen=True)
class Candidate:
    """A launcher of which it is to be known which pointers it takes.

    Attributes:
        problem: what the assignment asks for.
        contents: its file and what that includes.
        artefact: that was built of them.
        symbol: its name in there.
    """

    problem: KernelProblem
    contents: Mapping[str, bytes]
    artefact: Path
    symbol: str


def called(conduct: Conduct, candidate: Candidate, memory: Memory | None = None) -> Launcher:
    """How the launcher is to be called: with the pointers that the user asks for, or else those that work.

    With device pointers where both work, or where they tell nothing apart. A launcher whose arguments fit
    host pointers alone gets these unless it takes them for device pointers. Where ``memory`` is known, of its
    language or from another launcher of the same problem, it gets such pointers untried.

    Raises:
        LauncherError: its parameters fit no reading of the problem's.
        NotJudgedError: the machine failed in a trial, which so tells nothing.
    """
    material = conduct.material
    language, problem = material.language, candidate.problem
    if material.memory != "auto" or memory is not None:
        chosen = memory or Memory(material.memory)
        return _under_its_symbol(language.launcher(problem, candidate.contents, chosen), candidate)
    launchers: dict[Memory, Launcher] = {}
    refused: dict[Memory, LauncherError] = {}
    for kind in Memory:
        try:
            launcher = language.launcher(problem, candidate.contents, kind)
            launchers[kind] = _under_its_symbol(launcher, candidate)
        except LauncherError as error:
            refused[kind] = error
    if not launchers:
        raise refused[Memory.DEVICE]
    key = problem.id, candidate.artefact, candidate.symbol  # which a model problem may ask for, too
    tried = material.trials.of(key, lambda: _tried(conduct, candidate, launchers))
    best = min(tried, key=lambda kind: tried[kind])
    if Memory.DEVICE in refused and tried[best] is Outcome.MISTAKEN:
        raise refused[Memory.DEVICE]
    launcher = launchers[best]
    # Device pointers are what the assignment asks for: who takes no others needs no word on them.
    usual = best is Memory.DEVICE and (tried[best] is Outcome.RIGHT or len(set(tried.values())) > 1)
    notes = () if usual else (_note(problem, tried, best),)
    return replace(launcher, notes=(*notes, *launcher.notes))


def _under_its_symbol(launcher: Launcher, candidate: Candidate) -> Launcher:
    return replace(launcher, problem=replace(launcher.problem, entry_point=candidate.symbol))


def _tried(
    conduct: Conduct, candidate: Candidate, launchers: Mapping[Memory, Launcher]
) -> Mapping[Memory, Outcome]:
    """What came of each way, device pointers first: of these alone where they work.

    A second case is tried where the first one tells nothing apart: a launcher may refuse small sizes.
    """
    tried = dict.fromkeys(launchers, Outcome.ENDED)
    for case in _small(conduct.material, candidate.problem):
        tried = {}
        for memory, launcher in launchers.items():
            conduct.begin(f"{candidate.problem.id} on the sim, with {memory} pointers: {case.name}")
            tried[memory] = _outcome(conduct, candidate, launcher, case)
            if tried[memory] is Outcome.RIGHT:
                return tried
        if len(set(tried.values())) > 1:
            return tried
    return tried


def _small(material: Material, problem: KernelProblem) -> Sequence[Case]:
    """The smallest case and one of medium size, of those that come through streams if there are such.

    Cases that the assignment excludes do not count.

    In these a launcher that copies device pointers on the default stream shows that it is none for them.
    """
    rules = material.assignment.rules
    waivers = (
        (case, rules.waiver(problem.id, case.sizes, case.distribution))
        for case in problem.cases(material.seed)
    )
    cases = [case for case, waiver in waivers if waiver is None or not waiver.excludes]
    staged = [case for case in cases if case.staged]
    ordered = sorted(staged or cases, key=problem.minimal_bytes)
    return ordered[:: max(1, len(ordered) // 2)][:2]


def _outcome(conduct: Conduct, candidate: Candidate, launcher: Launcher, case: Case) -> Outcome:
    material = conduct.material
    sim = material.machine.checker
    judged = judge(
        launcher.problem,
        (case,),
        lambda: conduct.watch(material.language.open(sim, candidate.artefact, (candidate.symbol,))),
        (Schedule.LATE_STREAMS,),
        memory=launcher.memory,
        seconds=material.assignment.rules.limits.run_seconds_sim,
    )
    (result,) = judged.cases
    if judged.machine_failed:
        raise NotJudgedError(result.message, verdict=Verdict.INFRA_ERROR)
    if any(KINDS[finding.kind].by_pointers for finding in judged.findings):
        return Outcome.MISTAKEN
    if result.verdict is Verdict.PASS:
        return Outcome.RIGHT
    return Outcome.WRONG if result.outputs else Outcome.ENDED


def _note(problem: KernelProblem, tried: Mapping[Memory, Outcome], taken: Memory) -> str:
    ways = " and with ".join(f"{memory} pointers ({_SAID[outcome]})" for memory, outcome in tried.items())
    other = "".join(f" (--memory {memory} for {memory} pointers)" for memory in tried if memory is not taken)
    return f"{problem.entry_point} was tried with {ways}: it is given {taken} pointers{other}"
