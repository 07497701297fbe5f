"""The unfused baseline as a submission: a launcher per case that runs the case's program of operations.

So the baseline's own kernels are judged against the oracle, on the simulator, as any launcher is.

Layer: imports problems, baseline, judge, and of this folder builds and trial.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import grader.baseline.programs as baseline
from grader.devices.device import Memory, Schedule
from grader.judge.timing.program import step
from grader.languages.cuda.compile import build
from grader.languages.jobs import BuildError, compile_limits
from grader.problems.operations import temporaries
from grader.problems.problem import ArrayParameter, ScalarParameter, StreamParameter, called_once
from grader.soundness.builds import PTX_ONLY
from grader.soundness.trial import trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.devices.timed import Step
    from grader.problems.problem import Case, KernelProblem, Parameter
    from grader.soundness.builds import Builder

_MAIN = "unfused.cu"
_HEADERS = "\n".join(
    f"#include <{name}.h>" for name in ("cuComplex", "cuda_bf16", "cuda_fp16", "cuda_fp8", "cuda_runtime")
)
"""What the sources include, before each of them gets a namespace of its own: they use the same names."""
_ANY = """struct Any {
  void* at;
  template <class T>
  operator T*() const {
    return static_cast<T*>(at);
  }
};
"""


def small_cases(problem: KernelProblem, seed: int) -> list[Case]:
    """The case of each group that moves the fewest bytes."""
    groups: dict[str, Case] = {}
    for case in sorted(problem.cases(seed), key=problem.minimal_bytes):
        groups.setdefault(case.group, case)
    return list(groups.values())


def wrong_programs(
    problem: KernelProblem, cases: Sequence[Case], builder: Builder, seconds: float
) -> Iterator[tuple[Case, str]]:
    """The cases of which the baseline's program is not right, with what is wrong.

    Raises:
        BuildError: the baseline does not compile.
        DeviceError: the machine failed.
    """
    launchers = [launcher(problem.launcher(case), case, number) for number, case in enumerate(cases)]
    folder = Path(baseline.__file__).parent
    sources = {name: (folder / name).read_bytes() for name in baseline.FUNCTIONS}
    used = [
        name
        for name, functions in baseline.FUNCTIONS.items()
        if any(function in "".join(launchers) for function in functions)
    ]
    spaces = {name: f"of_{Path(name).stem}" for name in used}
    included = [
        f'namespace {space} {{\n#include "{name}"\n}}\nusing namespace {space};'
        for name, space in spaces.items()
    ]
    main = "\n".join([_HEADERS, *included, _ANY, *launchers])
    machine = builder.machine
    built = build(
        _MAIN,
        {**sources, _MAIN: main.encode()},
        machine.toolchain,
        machine.sandbox,
        compile_limits(),
        builder.cache,
        PTX_ONLY,
    )
    if built.artefact is None:
        raise BuildError(f"The unfused baseline of {problem.id} does not compile: {built.log}")
    for number, case in enumerate(cases):
        original = problem.launcher(case)
        named = replace(original, entry_point=_name(original, number), launchers={}, calls=called_once)
        opened = partial(machine.checker.open, built.artefact, (named.entry_point,))
        with trial(named, opened, Memory.DEVICE, seconds, {}) as tried:
            shown = tried.run(case, (Schedule.PROGRAM,))
        if shown.wrong:
            yield case, shown.wrong


def launcher(problem: KernelProblem, case: Case, number: int) -> str:
    """A launcher of ``problem`` in C++ that is right in ``case`` alone."""
    inputs, program = problem.inputs(case), problem.unfused(case)
    arrays = [
        parameter.name
        for parameter in problem.arrays
        if parameter.name in inputs.outputs or inputs.arrays.get(parameter.name) is not None
    ]
    scratch = temporaries(program, arrays)
    numbers = {name: index for index, name in enumerate([*arrays, *scratch])}
    streams = [parameter.name for parameter in problem.parameters if isinstance(parameter, StreamParameter)]
    stream = streams[0] if streams else "nullptr"
    lines = [
        f"  Any array_{numbers[name]}{{const_cast<void*>(static_cast<const void*>({name}))}};"
        for name in arrays
    ]
    for name, size in scratch.items():
        lines.append(f"  Any array_{numbers[name]};")
        lines.append(f"  cudaMallocAsync(&array_{numbers[name]}.at, {size}, {stream});")
    names = count()
    for operation in program:
        lines += _call(step(operation, numbers), stream, names)
    lines += [f"  cudaFreeAsync(array_{numbers[name]}.at, {stream});" for name in scratch]
    parameters = ", ".join(map(_parameter, problem.parameters))
    return "\n".join([f'extern "C" void {_name(problem, number)}({parameters}) {{', *lines, "}"])


def _name(problem: KernelProblem, number: int) -> str:
    return f"{problem.entry_point}_{number}"


def _parameter(parameter: Parameter) -> str:
    if isinstance(parameter, ArrayParameter):
        return f"{parameter.spelling}* {parameter.name}"
    if isinstance(parameter, ScalarParameter):
        return f"{parameter.ctype} {parameter.name}"
    return f"cudaStream_t {parameter.name}"


def _call(call: Step, stream: str, names: Iterator[int]) -> Iterator[str]:
    """The C++ lines of a call of a function of the baseline, after the arrays of integers that it takes."""
    arguments = []
    for kind, value in call.arguments:
        if kind == "ints":
            name = f"numbers_{next(names)}"
            yield f"  const int {name}[] = {{{', '.join(map(str, value))}}};"
            arguments.append(name)
        elif kind in {"array", "changed"}:
            arguments.append(f"array_{value}")
        elif kind == "pointer":
            arguments.append("nullptr")
        elif kind == "stream":
            arguments.append(stream)
        else:
            arguments.append(repr(value))
    yield f"  {call.function}({', '.join(arguments)});"
