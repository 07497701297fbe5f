"""The kernels at every shape of interest, side by side on a GPU: stream, reference, PyTorch, Liger, QuACK.

    python tests/benchmarks/kernels.py [--json FILE] [--only TEXT ...] [--candidates] [--no-compile]
                                       [--rounds N]

What is timed is one CUDA graph over input sets that together exceed the L2 several times, the versions in
turn, so that what the GPU's clocks do happens to all of them. Between two replays every set gets its first
content back, and each launch has outputs of its own, so that no version works on what another one left in a
cache. Percentages are the time of a streaming kernel with the same minimal bytes over a version's.
``test_kernels.py`` runs the same through pytest-benchmark.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import math
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from candidates import CANDIDATES, REFERENCE
from first_assignment import KERNELS

from grader.assignments.assignment import load
from grader.judge.timing.measure import slots
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.jobs import compile_limits
from grader.problems.distributions import build_cases
from grader.problems.dtypes import DTYPES
from grader.problems.problem import ArrayParameter, ScalarParameter
from grader.run.bench import find_machine
from grader.runner.library import argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.problems.problem import Case, Inputs, KernelProblem, Problem

    Launch = Callable[[], object]
    Way = Callable[[dict[str, torch.Tensor], Inputs], Launch]
    Sizes = tuple[Mapping[str, int], str]
    """The sizes of a case, and how its content is distributed."""

cuda: Any = torch.cuda
DEVICE = "cuda"
ROUNDS, HEAT_SECONDS = 31, 0.5
AHEAD_CYCLES = 100_000  # by which the host is ahead of the GPU, so that no replay waits for its launch
STREAM, REFERENCE_NAME = "stream", "reference"


def _softmax(*sizes: int, mask: str = "padded with -inf", future: bool = False) -> Sizes:
    names = ("batch_size", "nhead", "from_len", "to_len")
    return {**dict(zip(names, sizes, strict=True)), "mask_future": future}, mask


def _rows(*sizes: int) -> Sizes:
    return dict(zip(("rows", "softmax_len"), sizes, strict=True)), "normal"


def _norm(*sizes: int) -> Sizes:
    return dict(zip(("batch_size", "hidden_dim"), sizes, strict=True)), "normal"


_ATTENTION = ((8, 8, 512, 512), (16, 8, 1024, 1024), (8, 8, 2048, 2048), (2, 8, 64, 64), (32, 8, 40, 40))
_NORMS = ((1024, 256), (5120, 256), (8192, 1024), (16_384, 4096), (32_768, 1024))
SHAPES: Mapping[str, tuple[Sizes, ...]] = {
    "softmax_forward": (
        *(_softmax(*sizes) for sizes in _ATTENTION),
        _softmax(8, 8, 2048, 2048, future=True),
        *(_softmax(*sizes, mask="null mask") for sizes in _ATTENTION),
    ),
    "softmax_backward": tuple(_rows(b * h * f, t) for b, h, f, t in _ATTENTION),
    "layernorm_forward": tuple(_norm(*sizes) for sizes in _NORMS),
    "layernorm_backward": tuple(_norm(*sizes) for sizes in _NORMS),
}


@dataclass(frozen=True)
class Measurement:
    """One version at one shape."""

    problem: str
    shape: str
    version: str
    us: float  # median of the rounds
    spread: float  # between the quartiles, relative
    sets: int


class Lab:
    """Libraries built for this GPU."""

    def __init__(self) -> None:
        self._machine = find_machine("gpu", "auto", load("llm_systems_3").rules.limits)

    def function(self, source: str, texts: Mapping[str, str], name: str) -> Any:  # noqa: ANN401 - a foreign function
        """``name`` of the library built from ``source`` and the files that it includes, by their names."""
        built = build(
            source,
            {file: text.encode() for file, text in texts.items()},
            self._machine.toolchain,
            self._machine.sandbox,
            compile_limits(),
            Cache(),
            self._machine.device.architecture,
        )
        if built.artefact is None:
            raise SystemExit(f"{source} does not compile: {built.log}")
        return getattr(ctypes.CDLL(str(built.artefact)), name)

    def baseline(self, name: str) -> Any:  # noqa: ANN401
        """``name`` of the baseline's libraries."""
        library = next(path for path, names in self._machine.baseline.items() if name in names)
        return getattr(ctypes.CDLL(str(library)), name)

    @property
    def stream(self) -> Any:  # noqa: ANN401
        """The streaming kernel."""
        return self.baseline("launch_stream")


def headers(folder: Path) -> dict[str, str]:
    """The texts of a folder's headers by name."""
    return {path.name: path.read_text() for path in folder.glob("*.cuh")}


def in_place(problem: Problem) -> list[str]:
    """The arrays that a result replaces."""
    return [p.name for p in problem.parameters if isinstance(p, ArrayParameter) and p.role == "inout"]


def launcher(function: Any, problem: Problem, arrays: Mapping[str, torch.Tensor], given: Inputs) -> Launch:  # noqa: ANN401
    """A call of a C launcher on PyTorch's current stream."""
    arguments: list[Any] = []
    streams = []
    for parameter in problem.parameters:
        if isinstance(parameter, ArrayParameter):
            array = arrays.get(parameter.name)
            arguments.append(ctypes.c_void_p(None if array is None else array.data_ptr()))
        elif isinstance(parameter, ScalarParameter):
            arguments.append(argument(parameter.ctype, given.scalars[parameter.name], [], []))
        else:
            streams.append(len(arguments))
            arguments.append(None)

    def launch() -> None:
        for place in streams:
            arguments[place] = ctypes.c_void_p(cuda.current_stream().cuda_stream)
        function(*arguments)

    return launch


def traffic(problem: KernelProblem, case: Case, given: Inputs) -> tuple[int, int]:
    """The bytes that the case must read and write, in whole pieces of 16."""
    sizes = {name: array.nbytes for name, array in given.arrays.items() if array is not None}
    written = sum(
        DTYPES[array.dtype].itemsize * math.prod(given.outputs[array.name])
        for array in problem.arrays
        if array.name in given.outputs
    )
    written += sum(sizes[name] for name in in_place(problem))
    scale = problem.minimal_bytes(case) / (sum(sizes.values()) + written)
    reads, writes = (max(16, round(size * scale / 16) * 16) for size in (sum(sizes.values()), written))
    return reads, writes


def streaming(function: Any, reads: int, writes: int) -> Launch:  # noqa: ANN401
    """A streaming kernel that reads and writes so many bytes."""
    source, target = (torch.zeros(size // 4, device=DEVICE) for size in (reads, writes))

    def launch() -> None:
        function(
            ctypes.c_void_p(source.data_ptr()),
            ctypes.c_longlong(reads),
            ctypes.c_void_p(target.data_ptr()),
            ctypes.c_longlong(writes),
            ctypes.c_void_p(cuda.current_stream().cuda_stream),
        )

    return launch


def compiled(problem: Problem, *, replacing: bool = False) -> Way:
    """PyTorch's own operator within torch.compile; the formula where an operator would stay what it is.

    With ``replacing`` the result takes the place of the first argument, as the launchers of softmax do it.
    """
    names = {
        "softmax_forward": ("inp", "attn_mask"),
        "softmax_backward": ("out_grad", "soft_inp"),
        "layernorm_forward": ("inp", "scale", "bias"),
        "layernorm_backward": ("out_grad", "inp", "gamma", "vars", "means"),
    }[problem.id]

    def way(arrays: dict[str, torch.Tensor], given: Inputs) -> Launch:
        future = bool(given.scalars.get("mask_future", False))
        function = _compiled(f"{problem.id}, future" if future else problem.id, replacing=replacing)
        arguments = [arrays.get(name) for name in names]
        return lambda: function(*arguments)

    return way


@cache
def _compiled(name: str, *, replacing: bool) -> Any:  # noqa: ANN401
    formula = _FORMULAS[name]

    def replaced(first: Any, *others: Any) -> Any:  # noqa: ANN401
        return first.copy_(formula(first, *others))

    return torch.compile(replaced if replacing else formula, dynamic=False)


def _softmax_formula(x: Any, mask: Any) -> Any:  # noqa: ANN401
    return torch.softmax(x if mask is None else x + mask[:, None, None, :], -1)


def _future_formula(x: Any, mask: Any) -> Any:  # noqa: ANN401
    queries, keys = (torch.arange(size, device=x.device) for size in x.shape[-2:])
    hidden = keys[None, :] > queries[:, None]
    return torch.softmax((x + mask[:, None, None, :]).masked_fill(hidden, -torch.inf), -1)


def _softmax_bw_formula(g: Any, s: Any) -> Any:  # noqa: ANN401
    return s * (g - (g * s).sum(-1, keepdim=True))


def _norm_formula(x: Any, scale: Any, bias: Any) -> Any:  # noqa: ANN401
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-8) * scale + bias, variance, mean


def _norm_bw_formula(g: Any, x: Any, gamma: Any, variance: Any, mean: Any) -> Any:  # noqa: ANN401
    root = torch.rsqrt(variance + 1e-8)[:, None]
    h = (x - mean[:, None]) * root
    d = g * gamma
    inp_grad = root * (d - d.mean(-1, keepdim=True) - h * (d * h).mean(-1, keepdim=True))
    return inp_grad, (g * h).sum(0), g.sum(0)


_FORMULAS: Mapping[str, Callable[..., Any]] = {
    "softmax_forward": _softmax_formula,
    "softmax_forward, future": _future_formula,
    "softmax_backward": _softmax_bw_formula,
    "layernorm_forward": _norm_formula,
    "layernorm_backward": _norm_bw_formula,
}


def installed(*names: str) -> list[Any]:
    """Modules of a package that may be missing; none then."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError:
        return []


def liger(name: str, *, replacing: bool = False) -> Way | None:
    """Liger-Kernel's version, whose softmax takes no mask; None if it is not installed.

    With ``replacing`` the kernels of its softmax write where their first argument is.
    """
    if not (modules := installed("liger_kernel.ops.softmax", "liger_kernel.ops.layer_norm")):
        return None
    softmax, norm = modules

    def replaced(kernel: Any, *matrices: torch.Tensor) -> Launch:  # noqa: ANN401
        rows, keys = matrices[0].flatten(0, -2).shape
        block, warps = softmax.calculate_settings(keys)
        with_strides = [argument for matrix in matrices for argument in (matrix, keys)]
        return lambda: kernel[(rows,)](*with_strides, keys, BLOCK_SIZE=block, num_warps=warps)

    def way(arrays: dict[str, torch.Tensor], _: Inputs) -> Launch:
        if name == "softmax_forward":
            scores = arrays["inp"]
            if replacing:
                return replaced(softmax._softmax_single_block_forward_kernel, scores, scores)
            return lambda: softmax._softmax_forward(scores)
        if name == "softmax_backward":
            gradient, weights = arrays["out_grad"], arrays["soft_inp"]
            if replacing:
                return replaced(softmax._softmax_single_block_backward_kernel, gradient, weights, gradient)
            _, block, warps, several = softmax._softmax_forward(weights)
            return lambda: softmax._softmax_backward(gradient, weights, block, warps, several)
        if name == "layernorm_forward":
            return lambda: norm.layer_norm_forward(arrays["inp"], arrays["scale"], arrays["bias"], 1e-8)
        root = (arrays["vars"] + 1e-8).rsqrt()
        return lambda: norm.layer_norm_backward(
            arrays["out_grad"], arrays["inp"], arrays["gamma"], arrays["betta"], arrays["means"], root
        )

    return way


def quack(name: str, *, replacing: bool = False) -> Way | None:
    """QuACK's version, whose softmax takes no mask; None if it is not installed.

    With ``replacing`` its softmax writes where its first argument is.
    """
    if not (modules := installed("quack.softmax", "quack.rmsnorm")):
        return None
    softmax, norm = modules

    def way(arrays: dict[str, torch.Tensor], _: Inputs) -> Launch:
        rows = {key: tensor.flatten(0, -2) for key, tensor in arrays.items() if tensor.dim() > 1}
        if name == "softmax_forward":
            scores = rows["inp"]
            if replacing:
                return lambda: softmax._softmax_fwd(scores, scores)
            return lambda: softmax.softmax_fwd(scores)
        if name == "softmax_backward":
            gradient, weights = rows["out_grad"], rows["soft_inp"]
            if replacing:
                return lambda: softmax._softmax_backward(gradient, weights, gradient)
            return lambda: softmax.softmax_bwd(gradient, weights)
        if name == "layernorm_forward":
            return lambda: norm.layernorm_fwd(rows["inp"], arrays["scale"], arrays["bias"], 1e-8, True, True)
        root = (arrays["vars"] + 1e-8).rsqrt()
        return lambda: norm.layernorm_bwd(
            rows["inp"], arrays["gamma"], rows["out_grad"], root, arrays["means"]
        )

    return way


def versions(lab: Lab, problem: Problem, *, compile_too: bool, candidates: bool) -> dict[str, Way]:
    """Everything that is timed of a problem, by name."""

    def of(text: str) -> Way:
        texts = {problem.file: text, **headers(REFERENCE)}
        function = lab.function(problem.file, texts, problem.entry_point)
        return lambda arrays, given: launcher(function, problem, arrays, given)

    texts = {REFERENCE_NAME: (REFERENCE / problem.file).read_text()}
    if candidates:
        texts |= {one.id: one.text() for one in CANDIDATES if one.problem == problem.id}
    with ThreadPoolExecutor() as pool:
        ours = dict(zip(texts, pool.map(of, texts.values()), strict=True))
    found = {REFERENCE_NAME: ours[REFERENCE_NAME]}
    if problem.fused is not None:
        fused = problem.fused
        found["torch"] = lambda arrays, given: fused(arrays, given.scalars)
    if compile_too:
        found["torch.compile"] = compiled(problem)
        if in_place(problem):
            found["compile, in place"] = compiled(problem, replacing=True)
    for name, theirs in (("Liger", liger), ("QuACK", quack)):
        if way := theirs(problem.id):
            found[name] = way
        if in_place(problem) and (way := theirs(problem.id, replacing=True)):
            found[f"{name}, in place"] = way
    return found | ours


class Replay:
    """A graph of launches in turn, with what they returned: given back, that memory would be used again."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._count = len(launches)
        side = cuda.Stream()
        with cuda.stream(side):
            for _ in range(3):  # torch.compile and Triton compile and tune here
                launches[0]()
        side.synchronize()
        self._graph = cuda.CUDAGraph()
        with cuda.graph(self._graph):
            self._returned = [launch() for launch in launches]

    def run(self) -> None:
        """All launches once more."""
        self._graph.replay()

    def seconds(self) -> float:
        """The time of one launch in one replay."""
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        cuda._sleep(AHEAD_CYCLES)
        start.record()
        self.run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1000 / self._count


def seconds(
    versions: Mapping[str, Sequence[Launch]],
    restore: Callable[[], None],
    rounds: int,
    heat: float = HEAT_SECONDS,
) -> dict[str, list[float]]:
    """The times of one launch of each version in each round, the order drawn anew.

    Args:
        versions: the launches of each, one for each input set.
        restore: gives the sets their first content.
        rounds: how often each is timed.
        heat: seconds that all run before.
    """
    replays = {name: Replay(launches) for name, launches in versions.items()}
    found: dict[str, list[float]] = {name: [] for name in replays}
    began, order = time.monotonic(), list(replays)
    while time.monotonic() - began < heat:
        for replay in replays.values():
            replay.seconds()
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            restore()
            found[name].append(replays[name].seconds())
    return found


@dataclass(frozen=True)
class Shape:
    """One case with its input sets on the GPU."""

    problem: Problem
    case: Case
    given: Inputs
    sets: list[dict[str, torch.Tensor]]
    first: list[dict[str, torch.Tensor]]

    def restore(self) -> None:
        """Every set as it was."""
        for arrays, before in zip(self.sets, self.first, strict=True):
            for name, tensor in before.items():
                arrays[name].copy_(tensor)

    def launches(self, way: Way) -> list[Launch]:
        """One launch for each set."""
        return [way(arrays, self.given) for arrays in self.sets]


def case_of(sizes: Sizes) -> Case:
    """A case of these sizes."""
    (case,) = build_cases(1, [("any", *sizes)])
    return case


def on_device(array: np.ndarray[Any, Any], dtype: str) -> torch.Tensor:
    """An array of any element type."""
    if dtype == "bfloat16":  # NumPy has it from a package that PyTorch does not know
        return torch.from_numpy(array.view(np.int16)).to(DEVICE).view(torch.bfloat16)
    return torch.from_numpy(array).to(DEVICE, getattr(torch, dtype))


def tensors(problem: KernelProblem, given: Inputs) -> dict[str, torch.Tensor]:
    """The arrays of a call by name; what is only written is zeros."""
    found = {}
    for array in problem.arrays:
        data = given.arrays.get(array.name)
        if data is not None:
            found[array.name] = on_device(data, array.dtype)
        elif array.name in given.outputs:
            dtype = getattr(torch, array.dtype)
            found[array.name] = torch.zeros(given.outputs[array.name], dtype=dtype, device=DEVICE)
    return found


def shape(problem: KernelProblem, case: Case) -> Shape:
    """The case with its content in as many sets as exceed the L2."""
    given = problem.inputs(case)
    first = tensors(problem, given)
    size = sum(tensor.nbytes for tensor in first.values())
    sets = [
        {name: tensor.clone() for name, tensor in first.items()}
        for _ in range(slots(size, cuda.get_device_properties(0).L2_cache_size))
    ]
    changed = {name: first[name] for name in in_place(problem)}
    return Shape(problem, case, given, sets, [changed] * len(sets))


def wrong(shape: Shape, way: Way, right: Way) -> str:
    """Where a version differs from the reference by more than rounding; "" if nowhere."""
    names = [p.name for p in shape.problem.parameters if isinstance(p, ArrayParameter) and p.role != "in"]
    found = []
    for one in (right, way):
        shape.restore()
        one(shape.sets[0], shape.given)()
        cuda.synchronize()
        found.append({name: shape.sets[0][name].clone() for name in names})
    for name in names:
        scale = found[0][name].abs().max().item() or 1.0
        off = (found[0][name] - found[1][name]).abs().max().item()
        if not off <= 1e-4 * scale:
            return f"{name} differs by {off:g}"
    return ""


def measure(
    only: Sequence[str],
    *,
    compile_too: bool,
    candidates: bool,
    rounds: int,
    save: Callable[[list[Measurement]], None],
) -> Iterator[Measurement]:
    """Every version at every shape, the stream first."""
    lab, done = Lab(), []
    for problem_id, all_sizes in SHAPES.items():
        problem = KERNELS[problem_id]
        cases = [case_of(sizes) for sizes in all_sizes]
        if only:
            cases = [case for case in cases if any(text in f"{problem_id} {case.name}" for text in only)]
        if not cases:
            continue
        ways = versions(lab, problem, compile_too=compile_too, candidates=candidates)
        for case in cases:
            one = shape(problem, case)
            torch.compiler.reset()  # it gives up on a function once it has compiled it for eight shapes
            moved = traffic(problem, one.case, one.given)
            launches = {STREAM: [streaming(lab.stream, *moved) for _ in one.sets]}
            for version, way in ways.items():
                if version in {candidate.id for candidate in CANDIDATES} and (
                    fault := wrong(one, way, ways[REFERENCE_NAME])
                ):
                    print(f"{version} at {one.case.name}: {fault}", file=sys.stderr)
                    continue
                launches[version] = one.launches(way)
            for version, unsorted in seconds(launches, one.restore, rounds).items():
                times = sorted(unsorted)
                middle = median(times)
                spread = (times[3 * len(times) // 4] - times[len(times) // 4]) / middle
                done.append(
                    Measurement(problem_id, one.case.name, version, middle * 1e6, spread, len(one.sets))
                )
                save(done)
                yield done[-1]
            del one, launches
            cuda.empty_cache()


def table(found: Sequence[Measurement]) -> Iterator[str]:
    """A line per shape: microseconds, and the percentage of the stream's speed."""
    for problem in dict.fromkeys(one.problem for one in found):
        mine = [one for one in found if one.problem == problem]
        names = [name for name in dict.fromkeys(one.version for one in mine) if name != STREAM]
        yield f"{problem:44} {'stream us':>10} " + " ".join(f"{name:>17}" for name in names)
        for case in dict.fromkeys(one.shape for one in mine):
            here = {one.version: one for one in mine if one.shape == case}
            ceiling = here[STREAM].us
            cells = (
                f"{here[name].us:10.2f} {ceiling / here[name].us:6.1%}" if name in here else " " * 17
                for name in names
            )
            yield f"{case:44} {ceiling:10.2f} " + " ".join(cells)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Time the kernels side by side.")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="shapes with one of these in their name"
    )
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="for calls that are close")
    options = parser.parse_args(arguments)
    began = time.monotonic()

    def save(found: list[Measurement]) -> None:
        if options.json is not None:
            options.json.write_text(json.dumps([vars(one) for one in found], indent=1))

    found = list(
        measure(
            options.only,
            compile_too=not options.no_compile,
            candidates=options.candidates,
            rounds=options.rounds,
            save=save,
        )
    )
    print(f"{cuda.get_device_name(0)}, PyTorch {torch.__version__}, {time.monotonic() - began:.0f} s")
    print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
