"""What has stored the wrong elements of a case last: one more call, in which the simulator watches them.

It costs a call only where numbers are wrong, and only on a device that can tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.judge.correctness.calls import by_field, watched
from grader.judge.correctness.diagnosis import NOTHING_WRITTEN, ROW_ENDS, UNCHANGED
from grader.records.record import StoreRecord
from grader.records.stores import By

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grader.devices.device import Answer, Call, Session, Status
    from grader.problems.problem import Case, Problem
    from grader.records.diagnosis import Diagnosis
    from grader.records.record import CaseResult
    from grader.records.stores import LastStore

    Stores = Mapping[tuple[str, tuple[int, ...]], StoreRecord | None]
    """By output and index of an element."""


def watched_again(
    problem: Problem, case: Case, result: CaseResult, call: Call, answer: Answer, session: Session
) -> tuple[CaseResult, Status]:
    """The ``result`` of a call with what has stored its wrong elements, and how the call ended that tells it.

    Arrays stay in place in that call. Nothing is said of an element that it makes otherwise.

    Args:
        problem: that the call answers.
        case: of the call.
        result: of ``answer``, with wrong elements.
        call: that was answered.
        answer: of a device that can watch elements.
        session: that answered, and takes further calls.
    """
    indices = [
        (output.name, tuple(element.index)) for output in result.outputs for element in output.first_bad
    ]
    ends = dict(_before_ends(result))
    elements = tuple(
        watched(problem, case, name, index, answer.arrays[name]) for name, index in (*indices, *ends.items())
    )
    again = session.run(replace(call, staged=False, queued={}, watched=elements))
    if not again.usable:
        return result, answer.status if again.goes_on else again.status
    made = by_field(problem, case, again.arrays)
    stores = {
        (name, index): StoreRecord.of(store)
        for (name, index), store in zip(indices, again.last_stores, strict=False)
        if made[name][index].tobytes() == answer.arrays[name][index].tobytes()
    }
    told = _with(result, stores)
    told = _with_ends(told, dict(zip(ends, again.last_stores[len(indices) :], strict=True)))
    if told.diagnoses == [NOTHING_WRITTEN] and any(store.by is By.KERNEL for store in stores.values()):
        told = told.model_copy(update={"diagnoses": [UNCHANGED]})
    return told, answer.status


def _before_ends(result: CaseResult) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Of each output whose rows lack their ends, the last element that was written in a row."""
    named = [diagnosis.outputs for diagnosis in result.diagnoses if diagnosis.kind == ROW_ENDS]
    for output in result.outputs:
        if not output.first_bad or not any(output.name in names or not names for names in named):
            continue
        *row, column = min(tuple(element.index) for element in output.first_bad)
        if column > 0:
            yield output.name, (*row, column - 1)


def _with_ends(result: CaseResult, stores: Mapping[str, LastStore]) -> CaseResult:
    """The result, in which what ends too early is where the last element of a row was stored."""

    def placed(diagnosis: Diagnosis) -> Diagnosis:
        mine = (store for name, store in stores.items() if name in diagnosis.outputs or not diagnosis.outputs)
        store = next(mine, None)
        if diagnosis.kind != ROW_ENDS or store is None or not store.place.line:
            return diagnosis
        return replace(diagnosis, file=store.place.file, line=store.place.line)

    return result.model_copy(update={"diagnoses": list(map(placed, result.diagnoses))})


def taken_over(result: CaseResult, other: CaseResult) -> CaseResult:
    """The ``result`` of a GPU with what has stored those elements that are wrong on the simulator, too."""
    return _with(
        result,
        {
            (output.name, tuple(element.index)): element.last_store
            for output in other.outputs
            for element in output.first_bad
        },
    )


def _with(result: CaseResult, stores: Stores) -> CaseResult:
    outputs = [
        output.model_copy(
            update={
                "first_bad": [
                    element.model_copy(update={"last_store": stores.get((output.name, tuple(element.index)))})
                    for element in output.first_bad
                ]
            }
        )
        for output in result.outputs
    ]
    return result.model_copy(update={"outputs": outputs})
