"""Work on many entries in several processes, each result kept, so that a stopped run can go on."""

# ruff: noqa: T201 - progress is printed

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterable, Iterator, Sequence

GPU_SESSIONS = 3  # at a time: starting a context takes longer than a case
_SECONDS = 3600.0


class _Result(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def as_it_must(self) -> bool: ...
    @property
    def seconds(self) -> float: ...


Entry = TypeVar("Entry")
Result = TypeVar("Result", bound=_Result)


def add_options(parser: ArgumentParser) -> None:
    """Add what a run of many entries can be told."""
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="entries whose id holds one of these"
    )
    parser.add_argument(
        "--seconds", type=float, default=_SECONDS, help="begin no further entry after this time"
    )
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 12), help="processes")


def add_file(parser: ArgumentParser) -> None:
    """Add where the results of such a run are kept."""
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep results here, and go on from what it holds"
    )


def results(
    todo: Sequence[Entry],
    work: Callable[[Entry], Result],
    start: Callable[..., None],
    *arguments: object,
    jobs: int,
    turns: int,
    seconds: float,
) -> Iterator[Result]:
    """The results of ``work`` on each of ``todo`` as they come, as far as ``seconds`` reach.

    Args:
        todo: the entries.
        work: a function of a module, called in a worker process. What it raises is said, and has no result.
        start: called in each worker process, with a semaphore of ``turns`` and ``arguments``.
        arguments: for ``start``.
        jobs: the number of processes.
        turns: how many of them may use a device at a time.
        seconds: after which no further entry is begun.
    """
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    turn = context.BoundedSemaphore(turns)
    with ProcessPoolExecutor(jobs, context, start, (turn, *arguments)) as pool:
        for count, future in enumerate(as_completed([pool.submit(work, entry) for entry in todo]), 1):
            if future.cancelled():
                continue
            if error := future.exception():
                print(f"[{count}/{len(todo)}] {error}", file=sys.stderr)
            else:
                result = future.result()
                mark = "" if result.as_it_must else "   <--"
                print(
                    f"[{count}/{len(todo)}] {result.id}: {result.verdict} {result.seconds:.1f} s{mark}",
                    file=sys.stderr,
                )
                yield result
            if time.monotonic() - began > seconds:
                pool.shutdown(wait=False, cancel_futures=True)


def write(file: Path, rows: Iterable[Any]) -> None:
    """Write ``rows`` as JSON, in one step."""
    new = file.with_name(file.name + ".new")
    new.write_text(json.dumps(list(rows), indent=1))
    new.replace(file)
