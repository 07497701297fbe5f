"""What launchers write in a model is recorded use by use, and marked alike for oracle and judge."""

from __future__ import annotations

import numpy as np
import torch

from grader.problems import written
from grader.problems.written import Written, factors, in_turn

ROWS = torch.tensor([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0], [0.25, 0.75]], dtype=torch.float64)


def test_an_unmarked_model_gets_what_is_written_and_each_use_is_recorded() -> None:
    marks = Written({}, {})
    assert marks("launch.out", ROWS) is ROWS
    marks("launch.out", 2 * ROWS)
    marks("launch.other", ROWS)
    names = list(marks.outputs)
    assert [(written.output(name), written.use(name)) for name in names] == [
        ("launch.out", 0),
        ("launch.out", 1),
        ("launch.other", 0),
    ]
    assert torch.equal(marks.outputs[names[1]], 2 * ROWS)
    assert all(map(written.is_written, names))
    assert not written.is_written("output, fused")


def test_a_mark_differs_by_element_use_and_seed_and_equal_rows_have_the_same() -> None:
    name = written.key("launch.out", 0)
    field = factors(7, name, ROWS.numpy())
    assert np.array_equal(field, factors(7, name, ROWS.numpy()))
    assert np.array_equal(field[0], field[2])
    assert not np.array_equal(field[0], field[1])
    assert not np.array_equal(field, factors(8, name, ROWS.numpy()))
    assert not np.array_equal(field, factors(7, written.key("launch.out", 1), ROWS.numpy()))
    wide = factors(7, name, np.random.default_rng(1).normal(size=(50, 40)))
    assert len(np.unique(wide)) > 10
    assert 1.0 not in wide
    assert (wide.min(), wide.max()) == (0.5, 1.5)


def test_runs_with_rounding_errors_have_the_marks_of_the_exact_one() -> None:
    fields: dict[str, torch.Tensor] = {}
    exact = Written({written.SEED: 7}, fields)("launch.out", ROWS)
    rough = Written({written.SEED: 7}, fields)("launch.out", ROWS + 1e-3 * torch.rand(4, 2))
    assert torch.allclose(exact, rough, atol=2e-3)
    expected = ROWS.numpy() * factors(7, written.key("launch.out", 0), ROWS.numpy())
    assert np.array_equal(exact.numpy(), expected)


def test_the_uses_of_steps_are_counted_on() -> None:
    step = {written.key("launch.out", 0): "a", written.key("launch.out", 1): "b", "loss": "c"}
    found = in_turn([step, {written.key("launch.out", 0): "d"}])  # type: ignore[list-item, dict-item]
    assert found == {written.key("launch.out", use): what for use, what in enumerate("abd")}
