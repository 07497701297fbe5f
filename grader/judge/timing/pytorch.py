"""Measures PyTorch on the timing cases. These times are shown beside a speedup and never decide a verdict.

PyTorch is timed in two ways: the unfused program operation by operation, as eager code runs it, and the one
operator that PyTorch has for the whole problem. Each is captured once in a CUDA graph, with rotating buffers
that together exceed the L2, and replayed. This runs in a separate process, so that the judge needs no CUDA
context:

    echo | python -m grader.judge.timing.pytorch ASSIGNMENT SEED PROBLEM...
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from grader.assignments.assignment import load
from grader.judge.timing.measure import slots
from grader.judge.timing.others import FUSED, READY, STEPWISE, Others
from grader.problems.dtypes import DTYPES
from grader.problems.operations import Kind, Tensor, temporaries
from grader.problems.problem import KernelProblem, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.problems.operations import Operation
    from grader.problems.problem import Case, Inputs

    Tensors = dict[str, torch.Tensor]
    Launch = Callable[[], object]

cuda: Any = torch.cuda

REPLAY_SECONDS = 0.005  # of one measurement
REPLAYS = 7


def stepwise(program: Sequence[Operation], arrays: Tensors) -> Launch:
    """``program`` with one PyTorch operator for each of its operations; a launch returns all arrays."""
    device = next(iter(arrays.values())).device
    sizes = temporaries(program, arrays)
    prepared = [(operation, _constants(operation, device)) for operation in program]

    def view(memory: Tensors, tensor: Tensor) -> torch.Tensor:
        return memory[tensor.name].as_strided(tensor.shape, tensor.strides, tensor.offset)

    def run() -> Tensors:
        memory = dict(arrays)
        for operation, constants in prepared:
            out = operation.output
            inputs = [
                view(memory, one) if isinstance(one, Tensor) else constants[index]
                for index, one in enumerate(operation.inputs)
            ]
            if operation.partial:
                if out.name not in memory:
                    size = sizes[out.name] // DTYPES[out.dtype].itemsize
                    memory[out.name] = torch.empty(size, dtype=getattr(torch, out.dtype), device=device)
                _apply(operation, inputs, constants, view(memory, out))
            else:
                result = _applied(operation, inputs, constants)
                memory[out.name] = result.to(getattr(torch, out.dtype)).contiguous()
        return memory

    return run


def _constants(operation: Operation, device: torch.device) -> dict[int | str, torch.Tensor]:
    """The tensors that an operation needs beside its arrays: its numbers, by place, and others by name.

    Numbers that meet arrays stay with the host, as eager code passes them; one that fills an array or its
    chosen elements is copied, which a graph records only within the device.
    """
    place = device if operation.function in {"copy", "where"} else torch.device("cpu")
    constants: dict[int | str, torch.Tensor] = {
        index: torch.tensor(one, dtype=torch.float64 if isinstance(one, float) else torch.int64, device=place)
        for index, one in enumerate(operation.inputs)
        if not isinstance(one, Tensor)
    }
    if operation.function == "hide future":
        constants["hidden"] = torch.ones(operation.output.shape[-2:], dtype=torch.bool, device=device).triu(1)
    if operation.function == "arange":
        constants["places"] = torch.arange(operation.output.shape[0], device=device)
    return constants


def _apply(
    operation: Operation,
    inputs: Sequence[torch.Tensor],
    constants: Mapping[int | str, torch.Tensor],
    output: torch.Tensor,
) -> None:
    """Write to a part of an array, or add to it."""
    match operation.function:
        case "scatter":
            output.scatter_(operation.axis, inputs[1].long(), inputs[0])
        case "scatter add":
            output.scatter_add_(operation.axis, inputs[1].long(), inputs[0])
        case _:
            output.copy_(_applied(operation, inputs, constants))


def _applied(
    operation: Operation, inputs: Sequence[torch.Tensor], constants: Mapping[int | str, torch.Tensor]
) -> torch.Tensor:
    name = "amax" if operation.function == "max" else operation.function.replace(" ", "_")
    result: torch.Tensor
    if operation.kind in _OF_KIND:
        result = _OF_KIND[operation.kind](operation, inputs)
    elif operation.kind is Kind.REDUCE:
        result = _reduced(operation, inputs[0], name)
    elif operation.kind in {Kind.SCAN, Kind.INDEXED}:
        further = (inputs[1].long(),) if operation.kind is Kind.INDEXED else ()
        result = getattr(torch, name)(inputs[0], operation.axis, *further)
    elif name in _UNLIKE:
        result = _UNLIKE[name](operation, inputs, constants)
    else:
        result = getattr(torch, name)(*inputs)
    return result


def _reduced(operation: Operation, whole: torch.Tensor, name: str) -> torch.Tensor:
    reduce, axes = getattr(torch, name), operation.reduced_axes
    result: torch.Tensor
    if name in {"prod", "argmax", "argmin"}:  # these take one axis
        kept = [axis for axis in range(whole.dim()) if axis not in axes]
        result = reduce(whole.permute(*kept, *axes).flatten(len(kept)), -1).reshape(operation.output.shape)
    else:
        result = reduce(whole, axes, keepdim=True)
    return result


def _convolved(operation: Operation, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    window = operation.window
    outside = (0,) * len(window.stride)
    image, weight = inputs
    result: torch.Tensor = torch.ops.aten.convolution(
        image, weight, None, window.stride, window.padding, window.dilation, False, outside, window.groups
    )
    return result


def _summed(operation: Operation, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    terms, places = inputs
    result: torch.Tensor = torch.segment_reduce(terms, "sum", offsets=places.flatten(), unsafe=True)
    return result.reshape(operation.output.shape)


def _sorted(operation: Operation, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    name, _, descending = operation.function.partition(" ")
    values, places = torch.sort(inputs[0], dim=operation.axis, descending=bool(descending), stable=True)
    return values if name == "sort" else places


_OF_KIND: Mapping[Kind, Callable[[Operation, Sequence[torch.Tensor]], torch.Tensor]] = {
    Kind.SEGMENT: _summed,
    Kind.CONVOLUTION: _convolved,
    Kind.SORT: _sorted,
}
"""What takes its inputs in a way of its own."""


_UNLIKE: Mapping[
    str,
    Callable[[Operation, Sequence[torch.Tensor], Mapping[int | str, torch.Tensor]], torch.Tensor],
] = {
    "hide_future": lambda _, inputs, constants: inputs[0].masked_fill(constants["hidden"], -torch.inf),
    "add_constant": lambda operation, inputs, _: inputs[0] + operation.constant,
    "multiply_constant": lambda operation, inputs, _: inputs[0] * operation.constant,
    "trunc_divide": lambda _, inputs, __: torch.div(*inputs, rounding_mode="trunc"),
    "copy": lambda operation, inputs, _: inputs[0].expand(operation.output.shape).clone(),
    "arange": lambda _, inputs, constants: constants["places"] * inputs[1] + inputs[0],
    "where": lambda _, inputs, __: torch.where(inputs[0].bool(), inputs[1], inputs[2]),
}
"""What has no function of its name in PyTorch, or takes its inputs in another way."""


def microseconds(launches: Sequence[Launch], *, keep: bool) -> float:
    """The median time of one launch, measured by replaying one CUDA graph of all launches in turn.

    With ``keep``, each launch returns newly allocated memory. Without it, the next launch reuses that memory,
    which is then in the cache.
    """
    side = cuda.Stream()
    with cuda.stream(side):
        for launch in launches[:2]:
            launch()
    side.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        kept = []
        for launch in launches:
            returned = launch()
            if keep:
                kept.append(returned)
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))

    def replayed(times: int) -> float:
        start.record()
        for _ in range(times):
            graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1000 / times

    replayed(1)
    times = max(1, int(REPLAY_SECONDS / replayed(1)))
    return median(replayed(times) for _ in range(REPLAYS)) / len(launches) * 1e6


def tensors(problem: KernelProblem, inputs: Inputs, seed: int, device: str = "cuda") -> Tensors:
    """Arrays like ``inputs``: numbers from 0.5 to 1.5, but integers, which may be indices, as they are."""
    source = torch.Generator(device).manual_seed(seed)
    made = {}
    for parameter in problem.arrays:
        dtype = getattr(torch, DTYPES[parameter.dtype].tensor)
        given = inputs.arrays.get(parameter.name)
        if parameter.role is Role.OUTPUT:
            made[parameter.name] = torch.zeros(inputs.outputs[parameter.name], dtype=dtype, device=device)
        elif given is not None and DTYPES[parameter.dtype].exact:
            made[parameter.name] = torch.from_numpy(given).to(device, dtype, copy=True)
        elif given is not None:
            drawn = torch.rand(given.shape, generator=source, device=device) + 0.5
            made[parameter.name] = drawn.to(dtype)
    return made


def sets(problem: KernelProblem, case: Case) -> list[tuple[Tensors, Inputs]]:
    """Enough input sets to exceed the L2 together."""
    inputs = problem.inputs(case)
    first = tensors(problem, inputs, 0)
    size = sum(tensor.numel() * tensor.element_size() for tensor in first.values())
    l2 = cuda.get_device_properties(0).L2_cache_size
    others = range(1, slots(size, l2))
    return [(first, inputs), *((tensors(problem, inputs, seed), inputs) for seed in others)]


def _times(problem: KernelProblem, case: Case) -> dict[str, float]:
    rotating = sets(problem.launcher(case), case)
    times = {}
    if program := problem.unfused(case):
        times[STEPWISE] = microseconds([stepwise(program, arrays) for arrays, _ in rotating], keep=False)
    if problem.fused is not None:
        fused = [problem.fused(arrays, inputs.scalars) for arrays, inputs in rotating]
        times[FUSED] = microseconds(fused, keep=True)
    return times


def main(
    assignment: str, seed: int, problems: Sequence[str], begin: Callable[[], object] = lambda: None
) -> Others:
    """The times of the timing cases of these problems of an assignment, once ``begin`` has returned."""
    loaded = load(assignment).problems
    begin()
    if not cuda.is_available():
        return Others(absent=f"PyTorch was not timed: PyTorch {torch.__version__} has no CUDA here")
    kernels = [problem for name in problems if isinstance(problem := loaded[name], KernelProblem)]
    times, faults = {}, {}
    for problem in kernels:
        try:
            times[problem.id] = {case.name: _times(problem, case) for case in problem.timing_cases(seed)}
        except RuntimeError as error:  # of an operation that cannot be captured, say
            first, _, _ = str(error).partition("\n")
            faults[problem.id] = f"PyTorch was not timed: {first}"
    return Others(name=f"PyTorch {torch.__version__}", times=times, faults=faults)


def _wait_for_parent() -> None:
    print(READY, flush=True)  # noqa: T201 - the parent reads it
    sys.stdin.readline()


if __name__ == "__main__":
    measured = main(sys.argv[1], int(sys.argv[2]), sys.argv[3:], _wait_for_parent)
    print(json.dumps(vars(measured)))  # noqa: T201 - the parent reads it
