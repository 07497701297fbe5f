"""The matrix: every mutant must fail and every variant must pass, judged as a submission is.

    nox -s matrix [-- --device sim|gpu] [--only ID ...] [--json FILE] [--seconds S] [--seeds N] [--cases]

Each entry is built with the entry point of its problem alone, runs through the judge under every schedule,
and then through the handout's own checks (``handout.py``). With ``--json`` what is done is kept after each
entry, and a run that was stopped goes on where it ended.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING

import judged
from handout import CASES as HANDOUT_CASES
from judged import SEED, CaseOutcome, Entry, Result
from resumed import GPU_SESSIONS, add_file, add_options, results, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_bench: judged.Bench | None = None  # of a worker process


def _start(turn: object, device: str) -> None:
    global _bench  # noqa: PLW0603 - a worker's state, set once
    _bench = judged.bench(device, turn)


def _work(entry: Entry) -> Result:
    assert _bench is not None
    return _bench.result(entry)


def run(
    wanted: Sequence[Entry],
    device: str,
    jobs: int,
    seconds: float,
    done: dict[str, Result],
    file: Path | None,
) -> None:
    """Judge the entries that are not done yet, as far as ``seconds`` reach, and keep each result."""
    todo = [entry for entry in wanted if entry.key not in done]
    turns = GPU_SESSIONS if device == "gpu" else jobs
    for result in results(todo, _work, _start, device, jobs=jobs, turns=turns, seconds=seconds):
        done[result.key] = result
        if file is not None:
            save(file, done.values())


def save(file: Path, results: Iterable[Result]) -> None:
    """Write all results, with what follows from them, in one step."""
    derived = (
        "verdict",
        "groups",
        "findings",
        "themed",
        "named",
        "misled",
        "said",
        "fooled_handout",
        "differing",
    )
    rows = [{**asdict(result), **{name: getattr(result, name) for name in derived}} for result in results]
    write(file, rows)


def read(file: Path | None, device: str) -> dict[str, Result]:
    """The results that ``file`` holds of ``device``, by key."""
    if file is None or not file.exists():
        return {}
    names = {one.name for one in fields(Result)}
    results = {}
    for row in json.loads(file.read_text()):
        kept = {name: value for name, value in row.items() if name in names}
        for name in ("cases", "checked"):
            kept[name] = tuple(
                CaseOutcome(**{**case, "findings": tuple(case["findings"])}) for case in row[name]
            )
        if row["device"] == device and not row["error"]:
            results[row["key"]] = Result(**kept)
    return results


def table(results: Sequence[Result]) -> str:
    """A line per entry and the totals."""
    lines = []
    for result in results:
        theme = (
            "" if result.kind != "mutant" else "theme ok" if result.themed else f"theme NOT ({result.group})"
        )
        named = "" if not result.numbers else _naming(result)
        marks = ", ".join(part for part in (theme, named) if part)
        lines += [
            " ".join(
                (
                    f"{'ok ' if result.as_it_must else 'BAD'} {result.id:36} {result.theme:16}",
                    f"{result.verdict:5} handout {result.handout}/{HANDOUT_CASES}  {marks}",
                )
            ),
            *(f"      {text}" for text in _details(result)),
        ]
    return "\n".join([*lines, "", *totals(results)])


def _naming(result: Result) -> str:
    return "cause named" if result.named else "ANOTHER cause named" if result.misled else "no cause named"


def _details(result: Result) -> Iterable[str]:
    if result.error:
        yield result.error
    if result.groups:
        yield "groups: " + ", ".join(result.groups)
    if result.findings:
        more = f" and {len(result.findings) - 2} more" if len(result.findings) > 2 else ""
        yield "findings: " + ", ".join(result.findings[:2]) + more
    if result.said:
        yield f"says: {result.said[:200]}"
    if result.kind == "mutant":
        yield f"is: {result.why}" + (f" (looked for: {result.diagnosis})" if result.diagnosis else "")
    if result.differing:
        yield "differs between the device and the sim: " + ", ".join(result.differing)


def totals(results: Sequence[Result]) -> list[str]:
    """The claims in numbers."""
    mutants = [result for result in results if result.kind == "mutant"]
    others = [result for result in results if result.kind != "mutant"]
    numbers = [result for result in mutants if result.numbers]
    killed = sum(result.as_it_must for result in mutants)
    named = sum(result.named for result in numbers)
    misled = sum(result.misled for result in numbers)
    wordless = sum(not result.diagnosis for result in numbers)
    right, others_named = (sum(result.cases_that(named=one) for result in numbers) for one in (True, False))
    wrong = sum(len(result.wrong) for result in numbers)
    unnamed = wrong - right - others_named
    fooled = sum(result.fooled_handout for result in mutants)
    differing = sum(len(result.differing) for result in results)
    return [
        f"mutants killed               {killed} of {len(mutants)}",
        f"variants, reference passed   {sum(result.as_it_must for result in others)} of {len(others)}",
        f"wrong numbers, theme named   {sum(result.themed for result in numbers)} of {len(numbers)}",
        f"wrong numbers, cause named   {named} of {len(numbers)} ({named / max(1, len(numbers)):.1%})",
        f"wrong numbers, another named {misled} of {len(numbers)} ({misled / max(1, len(numbers)):.1%})",
        f"of them with no words to find {wordless}, which count as not named",
        f"their wrong cases            {right} name the cause, {others_named} another one, {unnamed} none",
        f"pass the handout's checks    {fooled} of {len(mutants)} mutants",
        f"cases that differ on the sim {differing}",
        f"seconds of work              {sum(result.seconds for result in results):.0f}",
    ]


def needed_cases(results: Sequence[Result]) -> str:
    """For each case, how many mutants it kills and which ones no other case kills."""
    lines = []
    for problem in dict.fromkeys(result.problem for result in results):
        mine = [result for result in results if result.problem == problem and result.kind == "mutant"]
        killers = {
            result.id: {
                case.name for case in result.cases if (case.ran and case.verdict == "FAIL") or case.findings
            }
            for result in mine
        }
        lines.append(f"\n{problem}: {len(mine)} mutants")
        names = dict.fromkeys((case.group, case.name) for result in mine for case in result.cases)
        for group, name in names:
            alone = [one for one, cases in killers.items() if cases == {name}]
            kills = sum(name in cases for cases in killers.values())
            lines.append(f"  {group:32} {name:40} kills {kills:3}  alone: {', '.join(alone)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge every mutant and every variant.")
    parser.add_argument("--device", choices=("sim", "gpu"), default="sim")
    add_options(parser)
    add_file(parser)
    parser.add_argument(
        "--seeds", type=int, default=0, metavar="N", help="judge the reference alone, with N seeds"
    )
    parser.add_argument("--cases", action="store_true", help="show which mutants only one case kills")
    options = parser.parse_args()
    wanted = list(judged.entries())
    if options.seeds:
        references = [entry for entry in wanted if entry.kind == "reference"]
        wanted = [
            replace(entry, seed=SEED + 1 + number) for number in range(options.seeds) for entry in references
        ]
    if options.only:
        wanted = [entry for entry in wanted if any(part in entry.id for part in options.only)]
    done = read(options.json, options.device)
    run(wanted, options.device, options.jobs, options.seconds, done, options.json)
    seen = [done[entry.key] for entry in wanted if entry.key in done]
    print(table(seen))
    if options.cases:
        print(needed_cases(seen))
    if len(seen) < len(wanted):
        print(f"{len(wanted) - len(seen)} entries are left: run again with the same --json")
    return 0 if len(seen) == len(wanted) and all(result.as_it_must for result in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
