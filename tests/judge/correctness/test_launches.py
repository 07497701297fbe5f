"""The judge's look at the launches of a model: are they right, those of the model, and used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from first_assignment import PROBLEMS

from grader.devices.device import ArrayArgument, ScalarArgument, StreamArgument
from grader.judge.correctness.launches import Launches
from grader.problems import written
from grader.problems.problem import ModelProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.devices.device import Argument
    from grader.problems.problem import Case, Expectation, Inputs

NAME = "launch_attn_softmax"
WRITTEN = f"{NAME}.inp"


class Model:
    """A case of the model on the simulator's side: the softmax of its attention, and who looks at it."""

    def __init__(self, *, marked: bool) -> None:
        problem = PROBLEMS["transformer"]
        assert isinstance(problem, ModelProblem)
        self.case: Case = next(
            case
            for case in problem.cases(3)
            if case.function == "block" and bool(case.sizes.get("marked")) == marked
        )
        self.inputs: Inputs = problem.inputs(self.case)
        self.expected: dict[str, Expectation] = dict(problem.oracle(self.case, self.inputs))
        (candidate,) = self.expected[written.key(WRITTEN, 0)].candidates
        self.right = candidate.expected.astype(np.float32)
        self.launches = Launches(problem, self.case, self.inputs.scalars, self.expected)

    def launch(
        self, before: NDArray[np.float32], after: NDArray[np.float32], *, future: bool = False
    ) -> NDArray[np.float32]:
        """What the model gets of a launch, without a mask, on logits that may hold what hides a key."""
        batch, heads, queries, keys = before.shape
        sizes = {"batch_size": batch, "nhead": heads, "from_len": queries, "to_len": keys}
        arguments: tuple[Argument, ...] = (
            ArrayArgument("inp", "float32", before.shape, before),
            ArrayArgument("attn_mask", "float32", (), None, null=True),
            *(ScalarArgument(name, "int", size) for name, size in sizes.items()),
            ScalarArgument("mask_future", "bool", future),
            StreamArgument("stream", 0),
        )
        return self.launches.take(NAME, arguments, {"inp": after})["inp"].astype(np.float32)

    @property
    def logits(self) -> NDArray[np.float32]:
        """Numbers whose softmax the right weights are."""
        with np.errstate(divide="ignore"):
            return np.log(self.right)

    def said(self) -> str:
        """All that is held against the forward launches."""
        said = (*self.launches.faults, *self.launches.elsewhere)
        return "; ".join(one for one in said if f"{NAME} " in one)


def test_a_launch_that_writes_what_the_model_has_is_right_and_marked_by_element() -> None:
    model = Model(marked=True)
    got = model.launch(model.logits, model.right)
    field = written.factors(
        int(model.inputs.scalars[written.SEED]), written.key(WRITTEN, 0), model.right.astype(np.float64)
    )
    shown = model.right > 0
    assert len(np.unique((got[shown] / model.right[shown]).round(4))) > 5
    assert np.allclose(got, model.right * field, rtol=1e-6)
    assert model.said() == ""


def test_an_unmarked_launch_is_left_as_it_is() -> None:
    model = Model(marked=False)
    assert np.array_equal(model.launch(model.logits, model.right), model.right)
    assert model.said() == ""


@pytest.mark.parametrize("kind", ["reshaped", "split", "padded", "turned around"])
def test_launches_on_other_tensors_are_found_by_their_rows(kind: str) -> None:
    """Each is marked as the row of the model that it is."""
    model, whole = Model(marked=True), Model(marked=True)
    logits, right, keys = model.logits, model.right, model.right.shape[-1]
    expected = whole.launch(logits, right)
    if kind == "reshaped":
        flat = (-1, 1, *right.shape[2:])
        got = model.launch(logits.reshape(flat), right.reshape(flat)).reshape(right.shape)
    elif kind == "split":
        parts = [slice(head, head + 1) for head in range(right.shape[1])]
        got = np.concatenate(
            [model.launch(logits[:, part].copy(), right[:, part].copy()) for part in parts], axis=1
        )
    elif kind == "padded":
        wide = np.pad(logits, [(0, 0)] * 3 + [(0, 3)], constant_values=-np.inf)
        got = model.launch(wide, np.pad(right, [(0, 0)] * 3 + [(0, 3)]))[..., :keys]
    else:
        got = model.launch(logits[::-1].copy(), right[::-1].copy())[::-1]
    assert np.array_equal(got, expected)
    assert model.said() == ""


def test_launches_on_few_numbers_are_not_the_models() -> None:
    model = Model(marked=True)
    one = np.ones((1, 1, 1, 1), np.float32)
    model.launch(np.zeros_like(one), one)
    assert "worked on 1 elements, but the model has" in model.said()
    assert "no launch of launch_attn_softmax wrote" in model.said()


def test_launches_on_other_numbers_are_neither_the_models_nor_marked() -> None:
    model = Model(marked=True)
    equal = np.full_like(model.right, 1 / model.right.shape[-1])
    assert np.array_equal(model.launch(np.zeros_like(equal), equal), equal)
    assert "no launch of launch_attn_softmax wrote" in model.said()


def test_a_kernel_that_copies_what_pytorch_has_computed_is_wrong() -> None:
    model = Model(marked=False)
    model.launch(model.right, model.right)
    assert "launch_attn_softmax writes a wrong inp for what the model gives it" in model.said()


def test_a_model_that_never_launches_is_told_how_often_it_has_to() -> None:
    model = Model(marked=False)
    assert f"{NAME} was called 0 times, but 1 are needed" in model.said()


def test_sizes_that_tensors_do_not_have_are_a_fault_and_nothing_is_made_of_them() -> None:
    model = Model(marked=False)
    arguments: tuple[Argument, ...] = (
        ArrayArgument("inp", "float32", model.right.shape, model.right),
        ArrayArgument("attn_mask", "float32", (), None, null=True),
        *(ScalarArgument(name, "int", 1 << 30) for name in ("batch_size", "nhead", "from_len", "to_len")),
        ScalarArgument("mask_future", "bool", value=False),
        StreamArgument("stream", 0),
    )
    model.launches.take(NAME, arguments, {"inp": model.right})
    assert "is told of sizes that its tensors do not have" in model.said()
