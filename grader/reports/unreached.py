"""Sentences about what no case has reached, for staff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records.coverage import Way
from grader.records.mangled import demangled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.records.record import UnreachedRecord

MOST = 20


def sentences(records: Sequence[UnreachedRecord]) -> Iterator[str]:
    """One for each, the first ``MOST`` and how many more there are."""
    for one in records[:MOST]:
        yield f"{one.file}:{one.line}  {_seen(one)}: not judged"
    if len(records) > MOST:
        yield f"and {len(records) - MOST} more in the record"


def _seen(one: UnreachedRecord) -> str:
    kernel = f" of {demangled(one.kernel).partition('(')[0]}" if one.kernel else ""
    if one.constant is not None:
        where = "equal to" if one.side == "equal" else one.side.value
        return f"no case{kernel} had a number {where} {one.constant}"
    if not one.kernel:
        return "no case ran this line of host code"
    return (
        f"a branch{kernel} was never taken" if one.side is Way.TAKEN else f"a branch{kernel} was always taken"
    )
