"""Experiments on a GPU whose truth is known: is the judge of speed as good as it says?

    python tests/benchmarks/experiments.py same|slower|border|calibrate [--times N] [--size small|large]
                                           [--problem P ...] [--target X] [--precise]
                                           [--seconds S] [--json F]

    same       a kernel against itself, 200 times: no single look may find anything but "equal"
    slower     against itself on 3 % fewer rows, 30 times: always FAIL, in as many looks as grading takes
    border     graded again at its own speed as target, 30 times: never both PASS and FAIL
    calibrate  what a target means to the reference, to naive kernels and to a homework with host pointers

Processes end when their verdict is clear, as in a grading; with --precise they measure all blocks, as
``grade --precise`` does. What is measured is written to F as it comes, so that an experiment that was stopped
leaves what it has; ``border`` goes on from there with the target that it had found.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import astuple, dataclass, replace
from itertools import repeat
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

from first_assignment import KERNELS

from grader.assignments.assignment import load
from grader.devices.calls import request
from grader.devices.device import Memory
from grader.devices.timed import Step
from grader.judge.timing import measure as measuring
from grader.judge.timing import speed
from grader.judge.timing.measure import PRECISE, UNTIL_CLEAR, Effort, Timing, measure
from grader.judge.timing.statistics import (
    PROCESSES,
    Goal,
    Interval,
    clear,
    combined,
    conclude,
    decide,
    from_samples,
    interval,
    pooled,
    verdict_of_process,
)
from grader.judge.timing.verification import Threads
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.jobs import compile_limits
from grader.problems.distributions import build_cases
from grader.records.verdict import Verdict
from grader.run.bench import Machine, find_machine
from grader.submissions.submission import collect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.devices.device import Call
    from grader.judge.timing.statistics import CaseTimes
    from grader.problems.problem import Problem

ROOT = Path(__file__).parents[2]
REFERENCE, NAIVE = ROOT / "reference", Path(__file__).parent / "naive"
HOMEWORK = ROOT / "tests" / "handout" / "homework" / "src"
ASSIGNMENT = "llm_systems_3"
PER_PROCESS = 20  # gradings that share a process: starting one takes longer than they do
DRAWS = 2000  # gradings at each target
SEED = 20_240_607
LEAST_TARGET = 1e-9  # which everything reaches at the first look
SHAPES: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "layernorm_forward": {
        "small": {"batch_size": 1024, "hidden_dim": 256},
        "large": {"batch_size": 16_384, "hidden_dim": 4096},
    },
    "softmax_backward": {
        "small": {"rows": 1024, "softmax_len": 64},
        "large": {"rows": 32_768, "softmax_len": 2048},
    },
}
VERSIONS = {"reference": (REFERENCE, "graph"), "naive": (NAIVE, "graph"), "homework": (HOMEWORK, "host")}
ROWS = ("batch_size", "rows")  # scalars that say how many rows a call works on


@dataclass(frozen=True)
class Bench:
    """What an experiment needs of the machine."""

    machine: Machine
    effort: Effort = UNTIL_CLEAR

    def library(self, folder: Path, problem: Problem) -> Path:
        """The built library of ``folder`` for a problem."""
        gpu = self.machine.gpu
        assert gpu is not None
        with collect(folder, [problem.file]) as submission:
            built = build(
                problem.file,
                submission.contents(problem.file),
                self.machine.toolchain,
                self.machine.sandbox,
                compile_limits(),
                Cache(),
                gpu.architecture,
            )
        if built.artefact is None:
            raise SystemExit(f"{folder}: {built.log}")
        return built.artefact

    def timing(self, problem: Problem, library: Path) -> Timing:
        """How ``problem`` is timed with ``library``."""
        gpu, machine = self.machine.gpu, self.machine
        assert gpu is not None
        entry_points = (problem.entry_point,)
        return Timing(
            problem=problem,
            l2_bytes=gpu.l2_bytes,
            open=lambda: gpu.open_timed(library, entry_points, list(machine.baseline)),
            baseline=machine.baseline,
            seed=SEED,
            seconds=load(ASSIGNMENT).rules.limits.run_seconds_gpu,
            progress=lambda _: None,
            look=lambda _: None,
            effort=self.effort,
            alone=gpu.sharing.alone,
            shared=gpu.sharing.shared,
        )

    def against_itself(self, problem: Problem, share: float) -> Timing:
        """The reference against itself working on ``share`` of the rows."""
        gpu, machine = self.machine.gpu, self.machine
        assert gpu is not None
        library = self.library(REFERENCE, problem)
        libraries = {**machine.baseline, library: (problem.entry_point,)}
        return replace(
            self.timing(problem, library),
            open=lambda: gpu.open_timed(library, (problem.entry_point,), list(libraries)),
            baseline=libraries,
            rival=lambda call: rival(call, share),
        )


def rival(call: Call, share: float) -> Step:
    """``call`` itself as an operation of the baseline, on ``share`` of its rows."""
    names = [argument.name for argument in call.arguments]
    arguments = []
    for name, (kind, value) in zip(names, request(call)["calls"][0]["arguments"], strict=True):
        if kind == "stream":
            arguments.append((kind, 0))
        elif name in ROWS:
            arguments.append((kind, math.floor(value * share)))
        else:
            arguments.append((kind, value))
    return Step(call.entry_point, tuple(arguments))


def one_shape(problem_id: str, size: str) -> Problem:
    """The problem with one timing case."""
    sizes = SHAPES[problem_id][size]
    table = [(size, sizes, "normal")]
    return replace(KERNELS[problem_id], timing_cases=lambda seed: build_cases(seed, table))


class Unverified:
    """Stands where outputs are verified, which takes the judge seconds for each large case."""

    verified = wrong = early = 0

    def compare(self) -> None:
        """Look at nothing."""

    def fetch(self, *_: object) -> None:
        """Look at nothing."""

    def sample(self, *_: object, **__: object) -> None:
        """Look at nothing."""

    def settle(self) -> None:
        """Wait for nothing."""


def gradings(timing: Timing, times: int, looks: int) -> Iterator[list[CaseTimes]]:
    """The one case of ``timing`` graded again and again, ``PER_PROCESS`` times in each process.

    Each grading takes as many looks as the judge wants, at most ``looks``. What is asked is whether times can
    be told apart, so the reference's outputs are not compared, and the same contents stand for new ones.
    """
    (case,) = timing.problem.timing_cases(timing.seed)
    goal = Goal(1.0, share=0.0)
    for process in range(-(-times // PER_PROCESS)):
        with ExitStack() as stack:
            pool, session = stack.enter_context(Threads()), stack.enter_context(timing.open())
            prepared = measuring._prepared(timing, case, "graph", Random(f"{SEED}/{process}"), share=1)
            sweeps = measuring._Sweeps(timing, session, prepared, pool)
            sweeps._verifier, sweeps._novel_bases = Unverified(), repeat(next(prepared.novel))
            warm_up = 1.0
            stack.enter_context(sweeps.timed(warm_up))
            for _ in range(min(PER_PROCESS, times - process * PER_PROCESS)):
                seen: list[CaseTimes] = []
                while len(seen) < looks and speed.verdict([[one] for one in seen], 1.0) is None:
                    sweeps.heat(warm_up)
                    sweeps._seen = measuring._Seen()
                    first, *later = timing.effort.looks[len(seen)]
                    sweeps.measure(first)
                    for blocks in later:
                        if clear(*combined([sweeps.times()]), goal):
                            break
                        sweeps.add(blocks)
                    seen.append(sweeps.times())
                    warm_up = 0.1
                yield seen


def _verdicts(bench: Bench, options: argparse.Namespace, share: float, looks: int) -> dict[str, Any]:
    """Gradings of the reference against itself on ``share`` of the rows, at the target 1."""
    found: dict[str, Any] = {}
    for problem_id in options.problem:
        for size in SHAPES[problem_id] if options.size is None else [options.size]:
            problem = one_shape(problem_id, size)
            timing = bench.against_itself(problem, share)
            ratios, verdicts, taken, blocks = [], Counter[str](), Counter[int](), Counter[int]()
            undecided: list[dict[str, Any]] = []
            for seen in gradings(timing, options.times, looks):
                reasons = speed.doubts(seen)
                together = pooled(seen)
                own = interval(together.values)
                told = speed.verdict([[one] for one in seen], 1.0)
                if told is None:  # a single look: the judge would take more
                    told = Verdict.UNTRUSTED if reasons else verdict_of_process(seen, 1.0)
                verdicts["equal" if told is Verdict.AMBIGUOUS else told.value] += 1
                taken[len(seen)] += 1
                blocks[sum(len(one.blocks) for one in seen)] += 1
                ratios.append(math.exp(own.estimate))
                if told is Verdict.INFRA_ERROR:
                    undecided += [unsound(one) for one in seen if not one.floor.sound]
                found[f"{problem_id} {size}"] = {
                    "verdicts": dict(verdicts),
                    "looks": dict(taken),
                    "blocks": dict(blocks),
                    "ratios": ratios,
                    "cv": stdev(ratios) / fmean(ratios) if len(ratios) > 1 else None,
                    "undecided": undecided,
                    "reasons": [*found.get(f"{problem_id} {size}", {}).get("reasons", []), *reasons],
                }
                options.save(found)
                if options.late():
                    return found
    return found


def unsound(case: CaseTimes) -> dict[str, Any]:
    """The baseline against itself in a process where 0 lies outside its interval, as log ratios."""
    values = [block.value for block in case.same]
    own = interval(values, at_look=bool(case.looks))
    return {
        "blocks": len(values),
        "estimate": own.estimate,
        "interval": [own.low, own.high],
        "values": values,
    }


def same(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    return _verdicts(bench, options, 1.0, looks=1)


def slower(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    return _verdicts(bench, options, 1 / 1.03, looks=PROCESSES)


def border(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Whole gradings, fresh processes and all, with the kernel's own speedup as target."""
    found: dict[str, Any] = {}
    for problem_id in options.problem:
        if options.late():
            break
        problem = one_shape(problem_id, options.size or "large")
        timing = bench.timing(problem, bench.library(REFERENCE, problem))
        target = options.target or measure(timing, Goal(1.0), Memory.DEVICE).performance.speedup
        found[problem_id] = {"target": target, "verdicts": Counter(), "speedups": [], "processes": []}
        for _ in range(options.times):
            result = measure(timing, Goal(target), Memory.DEVICE).performance
            found[problem_id]["verdicts"][result.verdict.value] += 1
            found[problem_id]["speedups"].append(result.speedup)
            (case,) = result.cases
            processes = from_samples(case.name, case.method, case.samples)
            found[problem_id]["processes"].append(
                [(*astuple(combined([one])[0]), one.floor.size) for one in processes]
            )
            options.save(found)
            if options.late():
                break
        if len(found[problem_id]["processes"]) > 1:
            found[problem_id]["both"] = both(found[problem_id]["processes"], options.times)
    return found


def both(gradings: Sequence[Sequence[Sequence[float]]], times: int) -> float:
    """How likely ``times`` gradings give both PASS and FAIL, at the target where that is likeliest.

    Gradings are drawn from the intervals that processes left: a first process from the first ones, and so on.

    Args:
        gradings: estimate, low and high end, and floor of each process of each grading, as log ratios.
        times: of which neither may come out beside the other.
    """
    random, worst = Random(SEED), 0.0
    nth = [[one[place] for one in gradings if len(one) > place] for place in range(PROCESSES)]
    middle = median(one[0][0] for one in gradings)
    for target in (math.exp(middle + offset / 1000) for offset in range(-20, 21)):
        counted = Counter(drawn(nth, target, random) for _ in range(DRAWS))
        passed, failed = (counted[verdict] / DRAWS for verdict in (Verdict.PASS, Verdict.FAIL))
        neither = (1 - passed) ** times + (1 - failed) ** times - (1 - passed - failed) ** times
        worst = max(worst, 1 - neither)
    return worst


def drawn(nth: Sequence[Sequence[Sequence[float]]], target: float, random: Random) -> Verdict:
    """The verdict of one grading whose n-th process is any of ``nth``'s n-th ones."""
    votes: list[Verdict] = []
    while (concluded := conclude(votes)) is None:
        estimate, low, high, floor = random.choice(nth[len(votes)] or nth[0])
        votes.append(decide(Interval(estimate, low, high), floor, target))
    return concluded


def calibrate(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """One process each: what the baseline is worth, and what the handout's targets mean against it."""
    found: dict[str, Any] = {}
    for entry in load(ASSIGNMENT).problems:
        problem = KERNELS[entry.id]
        if problem.libraries or not problem.timing_cases(SEED):
            continue
        found[entry.id] = {"handout": entry.target}
        for name, (folder, method) in VERSIONS.items():
            timing = bench.timing(problem, bench.library(folder, problem))
            with Threads() as pool:
                contents, runners = (
                    measuring._Contents(timing, method, pool),
                    measuring._Runners(timing, pool),
                )
                with closing(runners):
                    process = measuring._process(timing, 0, contents, Goal(LEAST_TARGET), pool, runners)
                cases = process.times()
            whole, _ = combined(cases)
            found[entry.id][name] = {
                "speedup": math.exp(whole.estimate),
                "untrusted": list(speed.doubts(cases)),
                "cases": {
                    case.case: {
                        "speedup": math.exp(median(case.values)),
                        "us": median(case.times("B")) / case.slots * 1e6,
                        "baseline_us": median(case.times("A")) / case.slots * 1e6,
                        "of_stream": case.bandwidth_fraction,
                        "floor": case.floor.size,
                    }
                    for case in cases
                },
            }
            options.save(found)
            if options.late():
                return found
    return found


def table(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    for what, row in found.items():
        if name == "calibrate":
            for version in VERSIONS:
                if version in row:
                    yield (
                        f"{what:20} {version:10} {row[version]['speedup']:7.2f}x   handout {row['handout']}x"
                        f"  {'; '.join(row[version]['untrusted'])}"
                    )
                    for case, one in row[version]["cases"].items():
                        yield (
                            f"    {case:44} {one['speedup']:7.2f}x {one['us']:9.2f} us, baseline "
                            f"{one['baseline_us']:9.2f} us, {one['of_stream']:.1%} of the stream"
                        )
        else:
            spread = f"  cv {row['cv']:.3%}" if row.get("cv") is not None else ""
            more = f"  target {row['target']:.3f}" if "target" in row else ""
            ratios = row.get("ratios") or row.get("speedups") or [math.nan]
            more += f"  median ratio {median(ratios):.4f}"
            if "both" in row:
                more += f"  PASS and FAIL in as many at any target: {row['both']:.2%}"
            looks = f"  looks {row['looks']}, blocks {row['blocks']}" if "looks" in row else ""
            yield f"{what:28} {dict(row['verdicts'])}{looks}{spread}{more} {row.get('reasons', '')}"


EXPERIMENTS: Mapping[str, tuple[Callable[[Bench, argparse.Namespace], dict[str, Any]], int]] = {
    "same": (same, 200),
    "slower": (slower, 30),
    "border": (border, 30),
    "calibrate": (calibrate, 1),
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Judge the judge of speed.")
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--times", type=int, help="gradings of each shape")
    parser.add_argument("--size", choices=("small", "large"), help="only shapes of this size")
    parser.add_argument("--problem", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after this time")
    parser.add_argument("--target", type=float, help="of border; without it the speed of a first grading")
    parser.add_argument("--precise", action="store_true", help="all blocks, whatever they show")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    run, usual = EXPERIMENTS[options.experiment]
    options.times = options.times or usual
    began = time.monotonic()
    options.late = lambda: time.monotonic() - began > options.seconds
    options.save = lambda found: options.json and options.json.write_text(json.dumps(found, indent=1))
    effort = PRECISE if options.precise else UNTIL_CLEAR
    found = run(Bench(find_machine("gpu", "auto", load(ASSIGNMENT).rules.limits), effort), options)
    options.save(found)
    print("\n".join(table(options.experiment, found)))
    print(f"{options.experiment}: {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
