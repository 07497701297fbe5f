"""A session that stays open from one part of the cases to the next, as starting a runner takes a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from grader.devices.device import Answer, Call, Session
    from grader.judge.correctness.cases import Judged

    Open = Callable[[], Session]


class _Lent:
    """A session that ends with the one who lends it, or when a call ends it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.goes_on = True

    def run(self, call: Call) -> Answer:
        answer = self._session.run(call)
        self.goes_on = answer.goes_on
        return answer

    def close(self) -> None:
        if not self.goes_on:
            self.end()

    def end(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Kept:
    """Judges parts of the cases one after the other, in one session as long as all of them are right."""

    def __init__(self, open_session: Open) -> None:
        """Open no session yet."""
        self._open = open_session
        self._session: _Lent | None = None

    def judged(self, judge: Callable[[Open], Judged]) -> Judged:
        """What ``judge`` says, which gets how to open sessions: the first one may have run parts before."""
        asked = False

        def opened() -> Session:
            nonlocal asked
            if asked:
                return self._open()
            asked = True
            self._session = self._session or _Lent(self._open())
            return self._session

        part = judge(opened)
        if self._session is not None and not (self._session.goes_on and _all_right(part)):
            self.close()
        return part

    def close(self) -> None:
        """End the session, if there is one."""
        if self._session is not None:
            self._session.end()
        self._session = None


def _all_right(part: Judged) -> bool:
    return all(case.verdict is Verdict.PASS or case.waived for case in part.cases)
