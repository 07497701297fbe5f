"""Sentences about what no case has reached, for staff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records.coverage import Way
from grader.records.mangled import own_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.records.record import UnreachedRecord

MOST = 20


def sentences(records: Sequence[UnreachedRecord]) -> Iterator[str]:
    """A sentence for each of the first ``MOST`` records, and one about how many more there are."""
    for record in records[:MOST]:
        yield f"{record.file}:{record.line}  {_sentence(record)}: not judged"
    if len(records) > MOST:
        yield f"and {len(records) - MOST} more in the record"


def _sentence(record: UnreachedRecord) -> str:
    kernel = f" of {own_name(record.kernel)}" if record.kernel else ""
    if record.constant is not None:
        where = "equal to" if record.side == "equal" else record.side.value
        return f"no case{kernel} had a number {where} {record.constant}"
    if not record.kernel:
        return "no case ran this line of host code"
    return (
        f"a branch{kernel} was never taken"
        if record.side is Way.TAKEN
        else f"a branch{kernel} was always taken"
    )
