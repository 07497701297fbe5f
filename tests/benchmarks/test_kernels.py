"""The kernels at every shape of interest under pytest-benchmark, with a clock that the GPU keeps.

    python -m pytest tests/benchmarks/test_kernels.py --benchmark-only --benchmark-json=FILE

The table with percentages of a streaming kernel comes from ``kernels.py``, which measures in the same way.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kernels
import pytest
import torch
from candidates import CANDIDATES
from first_assignment import KERNELS

from grader.assignments.assignment import load
from grader.problems.problem import Inputs, KernelProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = [
    pytest.param(problem, sizes, id=f"{problem} {kernels.case_of(sizes).name}")
    for problem, all_sizes in kernels.SHAPES.items()
    for sizes in all_sizes
]


class Clock:
    """Seconds by events of the current stream: what lies between two readings is the GPU's own work."""

    def __init__(self) -> None:
        self._first: Any = None

    def __call__(self) -> float:
        event = kernels.cuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        self._first = self._first or event
        return float(self._first.elapsed_time(event)) / 1000


@cache
def lab() -> kernels.Lab:
    return kernels.Lab()


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    """Give back what PyTorch keeps: the largest shapes need most of the memory."""
    yield
    kernels.cuda.empty_cache()


@pytest.mark.gpu
@pytest.mark.benchmark(timer=Clock())
@pytest.mark.parametrize("version", [kernels.STREAM, kernels.REFERENCE_NAME, "torch", "torch.compile"])
@pytest.mark.parametrize(("problem_id", "sizes"), CASES)
def test_kernel(benchmark: Any, problem_id: str, sizes: kernels.Sizes, version: str) -> None:  # noqa: ANN401
    problem = KERNELS[problem_id]
    shape = kernels.shape(problem, kernels.case_of(sizes))
    if version == kernels.STREAM:
        moved = kernels.traffic(problem, shape.case, shape.given)
        launches = [kernels.streaming(lab().stream, *moved) for _ in shape.sets]
    else:
        ways = kernels.versions(lab(), problem, compile_too=version == "torch.compile", candidates=False)
        launches = shape.launches(ways[version])
    replay = kernels.Replay(launches)
    benchmark.group = f"{problem_id} {shape.case.name}"
    benchmark.extra_info |= {"calls": len(launches), "minimal_bytes": problem.minimal_bytes(shape.case)}
    benchmark.pedantic(replay.run, setup=shape.restore, rounds=kernels.ROUNDS, warmup_rounds=3)


def test_every_candidate_is_an_edit_of_the_reference_as_it_stands() -> None:
    for candidate in CANDIDATES:
        assert candidate.text() != (kernels.REFERENCE / candidate.file).read_text()
        assert candidate.prediction
    assert len({candidate.id for candidate in CANDIDATES}) == len(CANDIDATES)


def test_a_formula_in_place_leaves_its_result_where_its_first_argument_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    problem = KERNELS["softmax_backward"]
    arrays = {"out_grad": torch.tensor([[1.0, 3.0]]), "soft_inp": torch.tensor([[0.25, 0.75]])}
    given = Inputs({}, {}, {})
    kernels._compiled.cache_clear()
    found = {}
    for replacing in (False, True):
        kernels.compiled(problem, replacing=replacing)(arrays, given)()
        found[replacing] = arrays["out_grad"].tolist()
    kernels._compiled.cache_clear()
    assert found == {False: [[1.0, 3.0]], True: [[-0.375, 0.375]]}


def test_the_table_gives_every_version_its_share_of_the_stream() -> None:
    rows = [
        kernels.Measurement("p", "64 x 64", name, us, 0.01, 128)
        for name, us in (("stream", 2.0), ("reference", 2.5), ("torch", 4.0))
    ]
    head, line = kernels.table(rows)
    assert head.split()[-2:] == ["reference", "torch"]
    assert line.split()[-5:] == ["2.00", "2.50", "80.0%", "4.00", "50.0%"]


def test_arrays_of_every_type_keep_their_values_and_the_stream_moves_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "DEVICE", "cpu")
    pointwise = load(str(Path(__file__).parents[2] / "assignments" / "pointwise")).problems["where"]
    assert isinstance(pointwise, KernelProblem)
    cases = {
        case.dtype: case
        for case in pointwise.cases(1)
        if case.sizes == {"n0": 1024} and "number" not in case.distribution
    }
    for dtype, case in cases.items():
        problem = pointwise.launcher(case)
        given = problem.inputs(case)
        arrays = kernels.tensors(problem, given)
        assert [array.dtype for array in arrays.values()] == [
            getattr(torch, name) for name in (dtype, "bool", dtype, dtype)
        ]
        held = given.arrays["a"]
        assert held is not None
        assert (arrays["a"].double().numpy() == held.astype(float)).all()
        reads, writes = kernels.traffic(problem, case, given)
        assert abs(reads + writes - problem.minimal_bytes(case)) <= 32
        assert reads > writes
    assert len(cases) == 6
