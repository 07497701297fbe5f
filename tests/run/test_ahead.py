"""Runners that train are started while it is not known yet whether anything will be measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from first_assignment import ASSIGNMENT, PROBLEMS, program

from grader.devices.device import Memory
from grader.run import model
from grader.run.judging import ProblemJudge
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


@pytest.mark.parametrize(("processors", "events"), [(16, ["open", "foresee", "open"]), (2, ["open", "open"])])
def test_runners_that_train_start_behind_the_one_that_runs_the_cases(
    processors: int, events: list[str]
) -> None:
    seen: list[str] = []
    problem = PROBLEMS["transformer"]
    answer: Any = SimpleNamespace(
        problem=problem,
        open=lambda _device: seen.append("open"),
        foresee=lambda _gpu, _conduct: seen.append("foresee"),
    )
    material: Any = SimpleNamespace(
        seed=1,
        machine=SimpleNamespace(device="gpu", gpu="gpu"),
        bench=SimpleNamespace(problems_at_once=processors),
    )
    judge = ProblemJudge(material, ASSIGNMENT.rules.problem("transformer"), problem)
    for _ in range(2):
        judge._open_on_gpu(answer)
    assert seen == events
