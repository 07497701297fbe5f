"""Parts of the cases share a session as long as nothing is wrong in it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from grader.devices.device import Answer, Status
from grader.judge.correctness.cases import Judged
from grader.records.record import CaseResult
from grader.records.verdict import Verdict
from grader.run.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.devices.device import Session


class Runner:
    """A session that answers as it is told."""

    def __init__(self) -> None:
        self.calls, self.closed = 0, False

    def run(self, call: Any) -> Answer:  # noqa: ANN401
        assert not self.closed
        self.calls += 1
        return Answer(call)

    def close(self) -> None:
        self.closed = True


def part(status: Status, verdict: Verdict, sessions: int = 1) -> Callable[[Callable[[], Session]], Judged]:
    """A part whose one case ends with ``status``, called in so many sessions one after the other."""

    def judge(open_session: Callable[[], Session]) -> Judged:
        for _ in range(sessions):
            session = open_session()
            session.run(status)  # type: ignore[arg-type]
            session.close()
        return Judged((CaseResult(name="case", group="all", verdict=verdict),))

    return judge


@pytest.fixture
def opened() -> list[Runner]:
    return []


@pytest.fixture
def kept(opened: list[Runner]) -> Kept:
    def open_session() -> Any:  # noqa: ANN401
        opened.append(Runner())
        return opened[-1]

    return Kept(open_session)


def test_parts_that_are_right_share_a_session_until_the_end(kept: Kept, opened: list[Runner]) -> None:
    with closing(kept):
        for _ in range(3):
            kept.judged(part(Status.RETURNED, Verdict.PASS))
        assert [(runner.calls, runner.closed) for runner in opened] == [(3, False)]
    assert opened[0].closed


def test_a_part_that_is_wrong_leaves_no_session(kept: Kept, opened: list[Runner]) -> None:
    kept.judged(part(Status.RETURNED, Verdict.FAIL))
    kept.judged(part(Status.RETURNED, Verdict.PASS))
    assert [(runner.calls, runner.closed) for runner in opened] == [(1, True), (1, False)]


def test_a_session_that_a_call_ended_is_closed_at_once(kept: Kept, opened: list[Runner]) -> None:
    kept.judged(part(Status.CRASHED, Verdict.PASS, sessions=2))
    assert [runner.closed for runner in opened] == [True, True]


def test_who_asks_for_a_second_session_gets_a_fresh_one(kept: Kept, opened: list[Runner]) -> None:
    kept.judged(part(Status.RETURNED, Verdict.PASS))
    kept.judged(part(Status.RETURNED, Verdict.PASS, sessions=2))
    assert [(runner.calls, runner.closed) for runner in opened] == [(2, False), (1, True)]
