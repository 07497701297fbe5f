"""The assignment ``pointwise`` on a GPU: are PyTorch and the reference exact, how fast is each combination.

    PYTHONPATH=tests python tests/benchmarks/pointwise_gpu.py [--json FILE] [--seconds N] [--problem ID ...]
                                                              [--compile ID ...]

For each operator, element type and kind of operands it times the reference, PyTorch's own operator and, for
the problems named by ``--compile``, torch.compile of it, in the way of ``kernels.py``. A share is the time of
a streaming kernel with the same minimal bytes over a version's. Nothing is begun after so many seconds; what
was measured until then is kept.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import kernels as bench
import numpy as np
import torch

from grader.assignments.assignment import load
from grader.assignments.modules import load_module
from grader.problems.problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kernels import Launch, Way

    from grader.problems.problem import Inputs

ASSIGNMENT = load(str(Path(__file__).parents[2] / "assignments" / "pointwise"))
LAYOUTS = {
    "contiguous": ((1 << 23,), "contiguous and contiguous"),
    "number": ((1 << 23,), "contiguous and number"),
    "offset 1": ((1 << 23,), "contiguous and offset 1"),
    "row for all": ((2048, 4096), "contiguous and broadcast 0"),
    "column for all": ((2048, 4096), "contiguous and broadcast 1"),
    "gaps": ((2048, 4096), "gaps and contiguous"),
    "transposed": ((2048, 4096), "contiguous and transposed"),
}
ROUNDS, HEAT_SECONDS = 15, 0.05


@dataclass(frozen=True)
class Measurement:
    """One version of one combination."""

    problem: str
    dtype: str
    operands: str
    version: str
    us: float  # of a call, the median of the rounds
    bytes: int  # that any version must move
    share: float  # of the streaming kernel's speed


def reference(lab: bench.Lab, problem: KernelProblem) -> Way:
    """A call of the reference for the element type of ``problem``."""
    texts = bench.headers(ASSIGNMENT.reference)
    texts[problem.file] = (ASSIGNMENT.reference / problem.file).read_text()
    function = lab.function(problem.file, texts, problem.entry_point)
    return lambda arrays, given: bench.launcher(function, problem, arrays, given)


def pytorch(problem: KernelProblem, *, compiled: bool) -> Way:
    """A call of PyTorch's operator."""
    fused = problem.fused
    assert fused is not None

    def way(arrays: Mapping[str, torch.Tensor], given: Inputs) -> Launch:
        theirs = fused(arrays, given.scalars)
        return torch.compile(theirs, dynamic=False) if compiled else theirs

    return way


def on_host(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Its elements, floats as float64."""
    host = tensor.cpu()
    found: np.ndarray[Any, Any] = (host.double() if host.is_floating_point() else host).numpy()
    return found


def exactness(lab: bench.Lab, problem: KernelProblem) -> Iterator[str]:
    """The cases in which PyTorch, or the reference, computes something that the oracle does not accept."""
    ours = {dtype: reference(lab, typed) for dtype, typed in problem.launchers.items()}
    for case in problem.cases(1):
        given = problem.inputs(case)
        (right,) = problem.oracle(case, given).values()
        arrays = bench.tensors(problem.launcher(case), given)
        ours[case.dtype](arrays, given)()
        theirs: Any = pytorch(problem, compiled=False)(arrays, given)()
        for name, found in (("PyTorch", on_host(theirs)), ("the reference", on_host(arrays["out"]))):
            shaped = found.reshape(given.outputs["out"])
            accepted = np.zeros(shaped.shape, bool)
            for one in right.candidates:
                accepted |= (shaped == one.expected) | (np.isnan(shaped) & np.isnan(one.expected))
            if not accepted.all():
                yield f"{problem.id}, {case.name}: {name} differs in {(~accepted).sum()} of {accepted.size}"


def measured(
    lab: bench.Lab, problem: KernelProblem, dtype: str, operands: str, *, compiled: bool
) -> list[Measurement]:
    """Every version of one combination."""
    tensors: Any = load_module(ASSIGNMENT.folder / "problems", "tensors")
    shape, layouts = LAYOUTS[operands]
    (case,) = tensors.made(1, [("timed", dtype, shape, layouts, "usual")], (dtype,))
    typed = problem.launcher(case)
    one = bench.shape(typed, case)
    torch.compiler.reset()  # or it gives up after some combinations
    ways = {bench.REFERENCE_NAME: reference(lab, typed), "PyTorch": pytorch(problem, compiled=False)}
    ways |= {"torch.compile": pytorch(problem, compiled=True)} if compiled else {}
    moved = bench.traffic(typed, case, one.given)
    launches = {bench.STREAM: [bench.streaming(lab.stream, *moved) for _ in one.sets]}
    launches |= {name: one.launches(way) for name, way in ways.items()}
    times = bench.seconds(launches, one.restore, ROUNDS, HEAT_SECONDS)
    us = {name: median(all_) * 1e6 for name, all_ in times.items()}
    return [
        Measurement(
            problem.id,
            dtype,
            operands,
            name,
            round(own, 2),
            problem.minimal_bytes(case),
            round(us[bench.STREAM] / own, 4),
        )
        for name, own in us.items()
    ]


def main() -> None:
    """Print a line for each measurement, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--problem", nargs="*")
    parser.add_argument("--compile", nargs="*", default=["add"])
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    problems = [
        one
        for name, one in ASSIGNMENT.problems.items()
        if isinstance(one, KernelProblem) and (not options.problem or name in options.problem)
    ]
    lab = bench.Lab()
    wrong: list[str] = []
    found: list[Measurement] = []
    for problem in problems:
        wrong += exactness(lab, problem)
        print(f"{problem.id}: {len(wrong)} cases differ", flush=True)
        for dtype in problem.launchers:
            for operands in LAYOUTS:
                if time.monotonic() > end:
                    break
                new = measured(lab, problem, dtype, operands, compiled=problem.id in options.compile)
                shares = {one.version: f"{one.share:.1%}" for one in new}
                print(problem.id, dtype, operands, shares, flush=True)
                found += new
    if options.json:
        figures = {
            "device": bench.cuda.get_device_name(),
            "torch": torch.__version__,
            "differ": wrong,
            "measurements": [asdict(one) for one in found],
        }
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print("\n".join(wrong) or "PyTorch and the reference are exactly what the oracles accept.")


if __name__ == "__main__":
    main()
