"""Who stored a wrong element: asked in one more call, and believed only where that call is wrong alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from test_cases import CASES, PROBLEM, FakeSession, right, run

from grader.devices.device import Answer, Call, Memory, Schedule, Status, Watched
from grader.judge.correctness import cases as correctness
from grader.judge.correctness.cases import beside
from grader.problems.problem import ArrayParameter, Inputs, Role
from grader.records.findings import Place
from grader.records.record import StoreRecord
from grader.records.stores import By, LastStore
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

STORE = LastStore(By.KERNEL, "scale", Place("double.cu", 3, thread=(1, 0, 0), block=(0, 0, 0), does="writes"))


def wrong(call: Call) -> Mapping[str, NDArray[np.generic]]:
    """The second and the last element of y are wrong."""
    arrays = right(call).arrays
    return {**arrays, "y": arrays["y"] + np.float32([0, 1, 0, 1])}


def watching(again: Callable[[Call], Answer]) -> tuple[Callable[[Call], Answer], list[Call]]:
    """A device that can watch: the first call is wrong, and ``again`` answers those that watch."""
    calls: list[Call] = []

    def work(call: Call) -> Answer:
        calls.append(call)
        answer = Answer(Status.RETURNED, arrays=wrong(call), watchable=True)
        return again(call) if call.watched else answer

    return work, calls


def stores(work: Callable[[Call], Answer]) -> list[StoreRecord | None]:
    judged, _ = run(work, cases=CASES[:1])
    (case,) = judged.cases
    assert case.verdict is Verdict.FAIL
    return [element.last_store for output in case.outputs for element in output.first_bad]


def test_each_wrong_element_has_what_stored_it() -> None:
    def again(call: Call) -> Answer:
        return Answer(Status.RETURNED, arrays=wrong(call), last_stores=(STORE, LastStore(By.NOTHING)))

    work, calls = watching(again)
    by_kernel, by_nobody = stores(work)
    assert by_kernel is not None
    assert by_kernel.kernel == "scale"
    assert by_kernel.place is not None
    assert (by_kernel.place.file, by_kernel.place.line) == ("double.cu", 3)
    assert by_nobody == StoreRecord(by=By.NOTHING)
    assert [call.watched for call in calls if call.watched] == [(Watched("y", 4, 4), Watched("y", 12, 4))]


def test_nothing_is_said_of_an_element_that_is_made_otherwise() -> None:
    def again(call: Call) -> Answer:
        arrays = {**wrong(call), "y": wrong(call)["y"] + np.float32([0, 0, 0, 1])}
        return Answer(Status.RETURNED, arrays=arrays, last_stores=(STORE, STORE))

    work, _ = watching(again)
    same, other = stores(work)
    assert same is not None
    assert other is None


@pytest.mark.parametrize(("status", "sessions"), [(Status.RAISED, 1), (Status.TIMEOUT, 2)])
def test_a_second_call_that_fails_tells_nothing_and_may_end_the_session(
    status: Status, sessions: int
) -> None:
    work, _ = watching(lambda _: Answer(status))
    assert stores(work) == [None, None]
    _, opened = run(work, cases=CASES[:2])
    assert len(opened) == sessions


def test_right_numbers_and_devices_that_cannot_watch_cost_no_call() -> None:
    for work in (
        lambda call: replace(right(call), watchable=True),
        lambda call: Answer(Status.RETURNED, arrays=wrong(call)),
    ):
        _, (session,) = run(work, cases=CASES[:1])
        assert not any(call.watched for call in session.calls)


def test_a_result_of_a_gpu_has_what_the_simulator_saw_of_the_same_element() -> None:
    work, _ = watching(lambda call: Answer(Status.RETURNED, arrays=wrong(call), last_stores=(STORE, STORE)))
    (checked,) = run(work, cases=CASES[:1])[0].cases
    (judged,) = run(lambda call: Answer(Status.RETURNED, arrays=wrong(call)), cases=CASES[:1])[0].cases
    (both,) = beside([judged], [checked], "gpu")
    assert both == checked


@pytest.mark.parametrize(
    ("store", "kind"), [(STORE, "unchanged"), (LastStore(By.NOTHING), "nothing_written")]
)
def test_outputs_that_a_kernel_leaves_as_they_were_are_written(store: LastStore, kind: str) -> None:
    in_place = replace(
        PROBLEM,
        parameters=(ArrayParameter("x", Role.INPUT), ArrayParameter("y", Role.INOUT)),
        inputs=lambda _: Inputs({"x": np.ones(4, np.float32), "y": np.ones(4, np.float32)}, {}, {}),
    )

    def work(call: Call) -> Answer:
        arrays = {"x": np.ones(4, np.float32), "y": np.ones(4, np.float32)}
        stores = (store,) * len(call.watched)
        return Answer(Status.RETURNED, arrays=arrays, watchable=True, last_stores=stores)

    judged = correctness.judge(
        in_place, CASES[:1], lambda: FakeSession(work), (Schedule.PROGRAM,), memory=Memory.DEVICE, seconds=1.0
    )
    assert [diagnosis.kind for diagnosis in judged.cases[0].diagnoses] == [kind]
