"""The assignment ``pointwise`` on a GPU: are PyTorch and the reference exact, how fast is each combination.

    python tests/benchmarks/pointwise_gpu.py [--json FILE] [--seconds N] [--problem ID ...] [--compile ID ...]

For each operator, element type and kind of operands it times the reference, PyTorch's own operator and, for
the problems named by ``--compile``, torch.compile of it. One CUDA graph calls a version on input sets that
together exceed the L2 several times. A share is the time of a streaming kernel with the same minimal bytes
over a version's. Nothing is begun after so many seconds; what was measured until then is kept.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import ctypes
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grader.assignments.assignment import load
from grader.assignments.modules import load_module
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build_all
from grader.languages.jobs import compile_limits
from grader.problems.problem import ArrayParameter, KernelProblem, ScalarParameter
from grader.run.bench import find_machine
from grader.runner.library import argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.languages.language import Build
    from grader.problems.problem import Case, Inputs
    from grader.run.bench import Machine

    Launch = Callable[[], object]

FOLDER = Path(__file__).parents[2] / "assignments" / "pointwise"
LAYOUTS = {
    "contiguous": ((1 << 23,), "contiguous and contiguous"),
    "number": ((1 << 23,), "contiguous and number"),
    "offset 1": ((1 << 23,), "contiguous and offset 1"),
    "row for all": ((2048, 4096), "contiguous and broadcast 0"),
    "column for all": ((2048, 4096), "contiguous and broadcast 1"),
    "gaps": ((2048, 4096), "gaps and contiguous"),
    "transposed": ((2048, 4096), "contiguous and transposed"),
}
ROUNDS, SETS = 15, 6
cuda: Any = torch.cuda


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


def on_gpu(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """An array of any element type."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def on_host(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Its elements, floats as float64."""
    host = tensor.cpu()
    found: np.ndarray[Any, Any] = (host.double() if host.is_floating_point() else host).numpy()
    return found


def launcher(
    library: Path,
    problem: KernelProblem,
    out: torch.Tensor,
    arrays: Mapping[str, torch.Tensor],
    given: Inputs,
) -> Launch:
    """A call of the reference on PyTorch's current stream."""
    function = getattr(ctypes.CDLL(str(library)), problem.entry_point)
    passed: list[Any] = []
    for parameter in problem.parameters:
        if isinstance(parameter, ArrayParameter):
            tensor = out if parameter.name == "out" else arrays.get(parameter.name)
            passed.append(ctypes.c_void_p(None if tensor is None else tensor.data_ptr()))
        elif isinstance(parameter, ScalarParameter):
            passed.append(argument(parameter.ctype, given.scalars[parameter.name], [], []))
    return lambda: function(*passed, ctypes.c_void_p(cuda.current_stream().cuda_stream))


def streaming(function: Any, problem: KernelProblem, case: Case) -> Launch:  # noqa: ANN401
    """The streaming kernel with as many bytes read and written as the case must."""
    itemsize = getattr(torch, case.dtype).itemsize
    writes = itemsize * int(np.prod([*case.sizes.values()]))
    reads = -(-(problem.minimal_bytes(case) - writes) // 16) * 16
    source, target = (torch.zeros(size // 4, device="cuda") for size in (reads, writes))

    def launch() -> None:
        function(
            ctypes.c_void_p(source.data_ptr()),
            ctypes.c_longlong(reads),
            ctypes.c_void_p(target.data_ptr()),
            ctypes.c_longlong(writes),
            ctypes.c_void_p(cuda.current_stream().cuda_stream),
        )

    return launch


def microseconds(versions: Mapping[str, Sequence[Launch]]) -> dict[str, float]:
    """Of a call of each version, which has a call for each input set; the versions in turn."""
    graphs = {}
    for name, launches in versions.items():
        for launch in launches:  # what is compiled is compiled now
            launch()
        cuda.synchronize()
        graphs[name] = cuda.CUDAGraph()
        with cuda.graph(graphs[name]):
            for launch in launches:
                launch()
    times: dict[str, list[float]] = {name: [] for name in versions}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(1000 * start.elapsed_time(end) / len(versions[name]))
    return {name: median(each) for name, each in times.items()}


def exactness(problem: KernelProblem, library: Path) -> Iterator[str]:
    """The cases in which PyTorch, or the reference, computes something that the oracle does not accept."""
    assert problem.fused is not None
    for case in problem.cases(1):
        given = problem.inputs(case)
        (right,) = problem.oracle(case, given).values()
        arrays = {name: on_gpu(array) for name, array in given.arrays.items() if array is not None}
        out = torch.zeros(given.outputs["out"], dtype=getattr(torch, case.dtype), device="cuda")
        launcher(library, problem.launcher(case), out, arrays, given)()
        theirs: Any = problem.fused(arrays, given.scalars)()
        for name, found in (("PyTorch", on_host(theirs)), ("the reference", on_host(out))):
            shaped = found.reshape(out.shape)
            accepted = np.zeros(out.shape, bool)
            for one in right.candidates:
                accepted |= (shaped == one.expected) | (np.isnan(shaped) & np.isnan(one.expected))
            if not accepted.all():
                yield f"{problem.id}, {case.name}: {name} differs in {(~accepted).sum()} of {accepted.size}"


def measured(
    problem: KernelProblem,
    dtype: str,
    operands: str,
    library: Path,
    stream: Any,  # noqa: ANN401 - a foreign function
    *,
    compiled: bool,
) -> list[Measurement]:
    """Every version of one combination."""
    tensors: Any = load_module(FOLDER / "problems", "tensors")
    shape, layouts = LAYOUTS[operands]
    (case,) = tensors.made(1, [("timed", dtype, shape, layouts, "usual")], (dtype,))
    versions: dict[str, list[Launch]] = {"stream": [], "reference": [], "PyTorch": []}
    fused = problem.fused
    assert fused is not None
    given = problem.inputs(case)
    torch.compiler.reset()  # or it gives up after some combinations
    for _ in range(SETS):
        arrays = {name: on_gpu(array) for name, array in given.arrays.items() if array is not None}
        out = torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")
        versions["stream"].append(streaming(stream, problem, case))
        versions["reference"].append(launcher(library, problem.launcher(case), out, arrays, given))
        theirs = fused(arrays, given.scalars)
        versions["PyTorch"].append(theirs)
        if compiled:
            versions.setdefault("torch.compile", []).append(torch.compile(theirs, dynamic=False))
    found = microseconds(versions)
    size = problem.minimal_bytes(case)
    return [
        Measurement(problem.id, dtype, operands, name, round(us, 2), size, round(found["stream"] / us, 4))
        for name, us in found.items()
    ]


def libraries(machine: Machine, problems: Sequence[KernelProblem]) -> Mapping[str, Build]:
    """The reference, built for this GPU."""
    headers = {path.name: path.read_bytes() for path in (FOLDER / "reference").glob("*.cuh")}
    sources = {
        one.file: {one.file: (FOLDER / "reference" / one.file).read_bytes(), **headers} for one in problems
    }
    return build_all(
        sources, machine.toolchain, machine.sandbox, compile_limits(), Cache(), machine.device.architecture
    )


def main() -> None:
    """Print a line for each measurement, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--problem", nargs="*")
    parser.add_argument("--compile", nargs="*", default=["add"])
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    assignment = load(str(FOLDER))
    problems = [
        one
        for name, one in assignment.problems.items()
        if isinstance(one, KernelProblem) and (not options.problem or name in options.problem)
    ]
    machine = find_machine("gpu", "auto", assignment.rules.limits)
    builds = libraries(machine, problems)
    path = next(path for path, names in machine.baseline.items() if "launch_stream" in names)
    stream = ctypes.CDLL(str(path)).launch_stream
    wrong: list[str] = []
    found: list[Measurement] = []
    for problem in problems:
        library = builds[problem.file].artefact
        if library is None:
            raise SystemExit(builds[problem.file].log)
        wrong += exactness(problem, library)
        print(f"{problem.id}: {len(wrong)} cases differ", flush=True)
        for dtype in problem.by_type:
            for operands in LAYOUTS:
                if time.monotonic() > end:
                    break
                compiled = problem.id in options.compile
                found += measured(problem, dtype, operands, library, stream, compiled=compiled)
                shares = {one.version: f"{one.share:.1%}" for one in found[-3 - compiled :]}
                print(problem.id, dtype, operands, shares, flush=True)
    if options.json:
        figures = {
            "device": cuda.get_device_name(),
            "torch": torch.__version__,
            "differ": wrong,
            "builds": {
                name: {"seconds": one.seconds, "kernels": len(one.resources)} for name, one in builds.items()
            },
            "measurements": [asdict(one) for one in found],
        }
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print("\n".join(wrong) or "PyTorch and the reference are exactly what the oracles accept.")


if __name__ == "__main__":
    main()
