"""Which cases are right and which are wrong, in a sentence: what the wrong ones have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.records.record import CaseResult

_WHOLE = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # elements that a thread or a block takes at once
_FEWEST_RESTS = 3  # cases of different sizes: of fewer, a rest may be one by chance
_MOST = 3  # names of groups that a sentence holds


def told_apart(cases: Sequence[CaseResult]) -> str:
    """What tells the wrong cases from the right ones: a size, a distribution, or the groups."""
    ran = [case for case in cases if not case.waived and case.verdict in {Verdict.PASS, Verdict.FAIL}]
    wrong = [case for case in ran if case.verdict is Verdict.FAIL]
    right = [case for case in ran if case.verdict is Verdict.PASS]
    if not right:
        return f"All {len(wrong)} cases that ran are wrong." if len(wrong) > 1 else "No other case ran."
    by_size = next(_by_size(wrong, right), "")
    if by_size:
        return f"Wrong in each case with {by_size}, right in all others."
    sized = next(_all_beyond(wrong, right), "")
    if sized:
        return f"Wrong only with {sized}."
    groups = list(dict.fromkeys(case.group for case in wrong))
    clean = [name for name in dict.fromkeys(case.group for case in right) if name not in groups]
    counts = f"Wrong in {len(wrong)} of {len(ran)} cases"
    if not clean:
        return f"{counts}, of all groups."
    return f"{counts}: {_listed(groups)}; right: {_listed(clean)}."


def sizes_of(some: Sequence[CaseResult], others: Sequence[CaseResult]) -> str:
    """The size that tells ``some`` cases from the ``others``, such as ``n <= 1``; empty if there is none."""
    return next(_by_size(some, others), "")


def rest_behind(cases: Sequence[tuple[int, int]]) -> int:
    """The number of which each case lacks the rest, of pairs of missing elements and all; 0 if there is none.

    So a kernel leaves out what is behind the last whole vector, or behind the last whole block.
    """
    if len(set(cases)) < _FEWEST_RESTS:
        return 0
    return next((size for size in _WHOLE if all(total % size == lack for lack, total in cases)), 0)


def _by_size(wrong: Sequence[CaseResult], right: Sequence[CaseResult]) -> Iterator[str]:
    """The sizes that alone tell the two apart."""
    for name in _sizes(wrong, right):
        low, high = _ends(wrong, name)
        others = _ends(right, name)
        if low > others[1]:
            yield f"{name} >= {low}"
        elif high < others[0]:
            yield f"{name} <= {high}"


def _all_beyond(wrong: Sequence[CaseResult], right: Sequence[CaseResult]) -> Iterator[str]:
    """The sizes at one side of which every wrong case is, and some right ones are not."""
    for name in _sizes(wrong, right):
        low, high = _ends(wrong, name)
        least, most = _ends(right, name)
        if low > least:
            yield f"{name} >= {low}"
        elif high < most and high <= 1:
            yield f"{name} <= {high}"


def _sizes(wrong: Sequence[CaseResult], right: Sequence[CaseResult]) -> list[str]:
    """The sizes that every case has."""
    cases = (*wrong, *right)
    return [name for name in wrong[0].sizes if all(name in case.sizes for case in cases)]


def _ends(cases: Sequence[CaseResult], name: str) -> tuple[int, int]:
    values = [case.sizes[name] for case in cases]
    return min(values), max(values)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
