"""Runners that train are started while it is not known yet whether anything will be measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from first_assignment import ASSIGNMENT, PROBLEMS, program

from grader.devices.device import Memory
from grader.run import model
from grader.run.model import PreparedModel

if TYPE_CHECKING:
    from collections.abc import Callable


class Begun:
    """Stands for pairs of runners."""

    def __init__(self, _training: object) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> PreparedModel:
    monkeypatch.setattr(model, "Pairs", Begun)
    monkeypatch.setattr(model, "measure_training", lambda _training, _goal, begun: begun)
    entry, problem = ASSIGNMENT.rules.problem("transformer"), PROBLEMS["transformer"]
    files = program(Path("student.py")), program(Path("unfused.py"))
    return PreparedModel(problem, entry, Memory.DEVICE, *files, {}, ())


@pytest.fixture
def conduct() -> Any:  # noqa: ANN401
    return SimpleNamespace(material=SimpleNamespace(seed=1, precise=False), begin=print, waiting=print)


def test_what_was_begun_is_measured_once(answer: PreparedModel, conduct: Any) -> None:  # noqa: ANN401
    gpu: Any = None
    answer.foresee(gpu, conduct)
    begun = answer.ahead.pairs
    measured: Callable[..., object] = answer.measured
    assert measured(gpu, {}, conduct) is begun is not None
    assert measured(gpu, {}, conduct) is None


def test_what_was_begun_in_vain_is_ended(answer: PreparedModel, conduct: Any) -> None:  # noqa: ANN401
    gpu: Any = None
    answer.foresee(gpu, conduct)
    begun: Any = answer.ahead.pairs
    answer.forget()
    assert begun.closed
    answer.forget()
    assert answer.ahead.pairs is None
