"""Judges an entry of the matrix, a mutant, a variant or the reference, as a submission is judged."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import handout
import torch
from by_hand import by_hand
from first_assignment import ASSIGNMENT, KERNELS, MUTANTS, PROBLEMS, VARIANTS

from grader.devices.device import Memory
from grader.devices.select import select as select_device
from grader.judge.correctness.cases import beside, judge
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.cuda.toolchain import find as find_toolchain
from grader.languages.jobs import compile_limits
from grader.problems.problem import MEMORY_GROUP
from grader.records.diagnosis import UNKNOWN
from grader.records.findings import KINDS
from grader.records.verdict import Verdict
from grader.sandbox.backends import select as select_sandbox
from grader.soundness import builds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from grader.assignments.mutants import Mutant
    from grader.devices.device import Answer, Call, Device, Session
    from grader.judge.correctness.cases import Judged
    from grader.languages.cuda.toolchain import Toolchain
    from grader.problems.problem import Case, Expectation, Inputs, Problem
    from grader.records.findings import Finding
    from grader.sandbox.sandbox import Sandbox

REFERENCE = Path(__file__).parents[1] / "reference"
SEED = 20_240_607
T = TypeVar("T")
KEPT = 800  # inputs of a problem: all cases of one seed, under every schedule
_HOST_COPY = ("cudaMemcpy", "HostToDevice", "DeviceToHost")


@dataclass(frozen=True)
class Entry:
    """A kernel to judge. ``mutant`` is None of a variant and of the reference."""

    id: str
    kind: str  # mutant, variant or reference
    problem: str
    files: Mapping[str, str]
    mutant: Mutant | None = None
    seed: int = SEED

    @property
    def key(self) -> str:
        """What a stored result belongs to: the same sources and the same seed."""
        return hashlib.sha256(repr((self.id, self.seed, sorted(self.files.items()))).encode()).hexdigest()[
            :16
        ]

    @property
    def memory(self) -> Memory:
        """Which pointers the entry point takes: those of the host where it copies both ways."""
        text = self.files[KERNELS[self.problem].file]
        return Memory.HOST if all(word in text for word in _HOST_COPY) else Memory.DEVICE


@dataclass(frozen=True)
class CaseOutcome:
    """What one case showed on one device."""

    name: str
    group: str
    verdict: str
    schedule: str
    message: str
    diagnosis: str
    findings: tuple[str, ...]  # tool, kind and line
    ran: bool  # False after a case that ended the runner

    @property
    def text(self) -> str:
        """All that is said of it."""
        return "; ".join(filter(None, (self.message, self.diagnosis)))

    @property
    def cause(self) -> str:
        """The part of that which names a cause."""
        return (self.diagnosis or self.message).partition("; ")[0]


@dataclass(frozen=True)
class Result:
    """What the judge said of one entry."""

    id: str
    key: str
    kind: str
    problem: str
    device: str
    seconds: float
    handout: int  # cases passed of the handout's five
    error: str = ""  # not built, or a fault of the machine
    cases: tuple[CaseOutcome, ...] = ()
    checked: tuple[CaseOutcome, ...] = ()  # the same cases on the sim, where the device is another
    theme: str = ""
    group: str = ""  # that must fail
    diagnosis: str = ""  # words that name the cause
    why: str = ""

    @property
    def findings(self) -> tuple[str, ...]:
        """What the checkers saw, each once."""
        return tuple(dict.fromkeys(text for case in self.checked or self.cases for text in case.findings))

    @property
    def wrong(self) -> tuple[CaseOutcome, ...]:
        """The cases that ran and failed."""
        return tuple(case for case in self.cases if case.ran and case.verdict == Verdict.FAIL)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that failed."""
        memory = (MEMORY_GROUP,) if self.findings else ()
        return (*dict.fromkeys(case.group for case in self.wrong), *memory)

    @property
    def verdict(self) -> str:
        """PASS, FAIL or ERROR."""
        broken = self.error or any(case.verdict not in {Verdict.PASS, Verdict.FAIL} for case in self.cases)
        return "ERROR" if broken else "FAIL" if self.groups else "PASS"

    @property
    def as_it_must(self) -> bool:
        """Whether a mutant failed and anything else passed."""
        return self.verdict == ("FAIL" if self.kind == "mutant" else "PASS")

    @property
    def themed(self) -> bool:
        """Whether the group of the mutant's theme is among those that failed."""
        return self.group in self.groups

    @property
    def numbers(self) -> bool:
        """Whether the mutant's numbers, and not only a finding, must be wrong."""
        return self.kind == "mutant" and self.group != MEMORY_GROUP

    @property
    def said(self) -> str:
        """What most of the wrong cases name as the cause, wherever they see it, that say anything."""
        said = [case for case in self.wrong if case.cause and UNKNOWN not in case.cause] or self.wrong
        common = Counter(without_numbers(case.cause) for case in said).most_common(1)
        return next((case.text for case in said if without_numbers(case.cause) == common[0][0]), "")

    @property
    def named(self) -> bool:
        """Whether that diagnosis names the cause."""
        return bool(self.diagnosis) and self.diagnosis in self.said

    @property
    def misled(self) -> bool:
        """Whether that diagnosis names another cause, or describes what is no sign of this one."""
        return not self.named and bool(self.said) and UNKNOWN not in self.said

    def cases_that(self, named: bool) -> int:
        """How many wrong cases name the cause, or another one."""
        causes = [case.text for case in self.wrong if case.cause and UNKNOWN not in case.cause]
        return sum((bool(self.diagnosis) and self.diagnosis in text) == named for text in causes)

    @property
    def fooled_handout(self) -> bool:
        """Whether the handout's own checks pass the mutant."""
        return self.handout == handout.CASES

    @property
    def differing(self) -> tuple[str, ...]:
        """The cases on which the device and the sim disagree."""
        theirs = {case.name: case for case in self.checked}
        return tuple(
            case.name
            for case in self.cases
            if case.name in theirs and case.ran and theirs[case.name].ran
            if case.verdict != theirs[case.name].verdict
        )


def without_numbers(diagnosis: str) -> str:
    """A diagnosis as it reads in any case."""
    return re.sub(r"\d[\d,.e+-]*", "#", diagnosis)


def only(entry_points: Iterable[str], keep: str, text: str) -> str:
    """``text`` without the other problems' entry points, so that their kernels cost no compile time."""
    for name in set(entry_points) - {keep}:
        start = text.find(f'extern "C" void {name}(')
        if start >= 0:
            text = text[:start] + text[text.index("\n}\n", start) + 3 :]
    return text


def entries() -> Iterator[Entry]:
    """The reference, the variants and the mutants."""
    problems = KERNELS
    kernels = {problem.entry_point: problem for problem in problems.values()}
    sources = {path.name: path.read_text() for path in REFERENCE.iterdir() if path.suffix in {".cu", ".cuh"}}

    def files(problem: Problem, edited: Mapping[str, str]) -> Mapping[str, str]:
        texts = {**sources, **edited}
        kept = only(kernels, problem.entry_point, texts[problem.file])
        return {problem.file: kept, **{name: text for name, text in texts.items() if name.endswith(".cuh")}}

    for problem in problems.values():
        if problem.file in sources:
            yield Entry(f"reference-{problem.id}", "reference", problem.id, files(problem, {}))
    for path in sorted(VARIANTS.glob("*/*.cu")):
        name = path.parent.name
        yield Entry(f"{name}-{path.stem}", "variant", name, {problems[name].file: path.read_text()})
    for mutant in MUTANTS:
        edited = {mutant.file: mutant.text(ASSIGNMENT)}
        yield Entry(mutant.id, "mutant", mutant.problem, files(problems[mutant.problem], edited), mutant)


@dataclass(frozen=True)
class Source:
    """What is built: the main file, everything that it may include, and the entry point's name there."""

    file: str
    files: Mapping[str, str]
    entry_point: str


def alone(entry: Entry) -> Source:
    """``entry`` by itself, as it would be handed in."""
    problem = KERNELS[entry.problem]
    return Source(problem.file, entry.files, problem.entry_point)


def together(entry: Entry, among: Iterable[Entry]) -> Source:
    """``entry`` in one file with its neighbours ``among`` the mutants of its problem, each in a namespace."""
    problem = KERNELS[entry.problem]
    alike = [one for one in among if one.mutant is not None and one.problem == entry.problem]
    place = alike.index(entry)
    begin = place - place % builds.TOGETHER
    texts = {number: one.files for number, one in enumerate(alike[begin : begin + builds.TOGETHER])}
    files = dict(builds.together(texts, problem.file, problem.entry_points))
    return Source(builds.MAIN, files, f"{problem.entry_point}_{place - begin}")


def telling(mutant: Mutant, cases: Sequence[Case]) -> list[Case]:
    """The cases of the group of the mutant's theme, and the first one of every other group."""
    first = {case.group: case for case in reversed(cases)}
    return [case for case in cases if case.group == mutant.group or case is first[case.group]]


@dataclass(frozen=True)
class Bench:
    """What is needed to judge entries; one per process, so that oracles are computed once."""

    device: Device
    checker: Device
    turn: AbstractContextManager[object]  # a context manager that keeps a GPU from being crowded
    problems: Mapping[str, Problem]

    def result(self, entry: Entry, *, handouts: bool = True) -> Result:
        """Build and judge one entry on all cases, and with the handout's own checks unless told otherwise.

        A mutant has to fail in the cases by hand.
        """
        problem = self.problems[entry.problem]
        cases = problem.cases(entry.seed)
        return self._result(entry, alone(entry), by_hand(cases) if entry.mutant else cases, handouts=handouts)

    def brief(self, entry: Entry, among: Iterable[Entry]) -> Result:
        """The same of a mutant, built with its neighbours ``among`` all, and on the ``telling`` cases.

        On all cases where the group of its theme is right in those: what a checker sees belongs to no case.
        """
        assert entry.mutant is not None
        source, cases = together(entry, among), by_hand(self.problems[entry.problem].cases(entry.seed))
        result = self._result(entry, source, telling(entry.mutant, cases), handouts=False)
        return result if result.themed else self._result(entry, source, cases, handouts=False)

    def _result(self, entry: Entry, source: Source, cases: Sequence[Case], *, handouts: bool) -> Result:
        began = time.monotonic()
        problem = replace(self.problems[entry.problem], entry_point=source.entry_point)
        mutant = entry.mutant
        result = Result(
            entry.id, entry.key, entry.kind, entry.problem, self.device.kind, 0.0, 0,
            theme=mutant.theme if mutant else "",
            group=mutant.group if mutant else "",
            diagnosis=mutant.diagnosis if mutant else "",
            why=mutant.why if mutant else "",
        )  # fmt: skip
        limits = ASSIGNMENT.rules.limits
        built = build(
            source.file,
            {name: text.encode() for name, text in source.files.items()},
            _toolchain(),
            _sandbox(),
            compile_limits(limits.compile_seconds, int(limits.compile_memory_gib * 2**30)),
            Cache(),
            builds.PTX_ONLY if self.device.kind == "sim" else self.device.architecture,
        )
        if built.artefact is None:
            return replace(result, error=f"does not compile: {built.log}")
        library = built.artefact
        passed = 0
        with self.turn:
            judged, seen = self._judged(problem, entry, cases, self.device, library)
            if handouts:
                with self.device.open(library, (problem.entry_point,)) as session:
                    kernel = KERNELS[entry.problem]
                    passed = handout.passed(kernel, session, entry.memory, limits.run_seconds_sim, SEED)
        checked: tuple[CaseOutcome, ...] = ()
        if self.checker is not self.device:
            sim, found = self._judged(problem, entry, cases, self.checker, library)
            judged = replace(judged, cases=tuple(beside(judged.cases, sim.cases, self.device.name)))
            checked = tuple(_outcomes(sim, found))
        outcomes = tuple(_outcomes(judged, seen))
        seconds = round(time.monotonic() - began, 2)
        return replace(result, cases=outcomes, checked=checked, handout=passed, seconds=seconds)

    def _judged(
        self, problem: Problem, entry: Entry, cases: Sequence[Case], device: Device, library: Path
    ) -> tuple[Judged, Mapping[str, list[Finding]]]:
        seen: dict[str, list[Finding]] = {}
        running: list[str] = []

        def begin(case: Case) -> None:
            running.append(case.name)

        limits = ASSIGNMENT.rules.limits
        judged = judge(
            problem,
            cases,
            lambda: _Recorder(
                device.open(library, (problem.entry_point,)),
                lambda answer: seen.setdefault(running[-1], []).extend(answer.findings),
            ),
            device.schedules,
            memory=entry.memory,
            seconds=limits.run_seconds_gpu if device.kind == "gpu" else limits.run_seconds_sim,
            begin=begin,
        )
        return judged, seen


class _Recorder:
    """A session that tells ``saw`` of every answer."""

    def __init__(self, session: Session, saw: Callable[[Answer], None]) -> None:
        self._session = session
        self._saw = saw

    def run(self, call: Call) -> Answer:
        answer = self._session.run(call)
        self._saw(answer)
        return answer

    def close(self) -> None:
        self._session.close()


def _outcomes(judged: Judged, seen: Mapping[str, list[Finding]]) -> Iterator[CaseOutcome]:
    for case in judged.cases:
        findings = (
            f"{finding.tool}:{finding.kind} {finding.file}:{finding.line}"
            for finding in seen.get(case.name, [])
            if KINDS[finding.kind].costs
        )
        yield CaseOutcome(
            case.name,
            case.group,
            case.verdict,
            case.schedule or "",
            case.message or "",
            case.diagnosis or "",
            tuple(dict.fromkeys(findings)),
            ran=not (case.message or "").startswith("not run:"),
        )


@cache
def _toolchain() -> Toolchain:
    return find_toolchain(_sandbox().image)


@cache
def _sandbox() -> Sandbox:
    return select_sandbox("auto")


def remembered(problem: Problem) -> Problem:
    """``problem`` with inputs, oracle and typical bugs computed once per case: every entry meets the same."""
    bugs = {text: _of_same_inputs(bug) for text, bug in problem.bugs.items()}
    inputs, whole = _kept(problem.inputs), _kept(problem.oracle)

    def oracle(case: Case, arrays: Inputs) -> Mapping[str, Expectation]:
        return (whole if arrays is inputs(case) else problem.oracle)(case, arrays)

    return replace(problem, inputs=inputs, oracle=oracle, bugs=bugs)


def _of_same_inputs(bug: Callable[[Inputs], T]) -> Callable[[Inputs], T]:
    results: dict[int, tuple[Inputs, T]] = {}

    def of(given: Inputs) -> T:
        known = results.get(id(given))
        if known is None or known[0] is not given:
            known = results[id(given)] = given, bug(given)
        return known[1]

    return of


def _kept(compute: Callable[..., T]) -> Callable[..., T]:
    results: dict[object, T] = {}

    def of(case: Case, *given: Inputs) -> T:
        if case.content not in results:
            if len(results) >= KEPT:  # another seed's
                results.clear()
            results[case.content] = compute(case, *given)
        return results[case.content]

    return of


def bench(kind: str, turn: AbstractContextManager[object] | None = None) -> Bench:
    """A bench on the device ``kind``; ``turn`` keeps a GPU that processes share from being crowded."""
    torch.set_num_threads(1)
    device = select_device(kind, _sandbox(), _toolchain().runtime).device
    checker = device if device.kind == "sim" else select_device("sim", _sandbox(), None).device
    problems = {name: remembered(problem) for name, problem in PROBLEMS.items()}
    return Bench(device, checker, turn or nullcontext(), problems)
