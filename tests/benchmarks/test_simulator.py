"""How fast the sim executes kernels, plain, with every check, and on two threads.

The kernels are the reference's, and some on bytes and halves, as students write them.

Warp instructions come from the sim's counters. On one thread the sim's processor time counts, which other
load hardly changes; what a second thread gains is wall time, told by the sim itself, and means nothing unless
both cores are free. The variants take turns, and of each the fastest round counts, as other load only adds.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from first_assignment import PROBLEMS

from grader.devices.device import ArrayArgument, ScalarArgument, StreamArgument
from grader.devices.layout import content, data_bytes
from grader.judge.correctness.calls import arguments
from grader.languages.cache import Cache
from grader.languages.cuda.compile import build
from grader.languages.cuda.toolchain import find as find_toolchain
from grader.languages.jobs import compile_limits
from grader.problems.problem import Case
from grader.sandbox.process import ProcessSandbox
from grader.simulator.driver import LIBRARIES, SOCKET_VARIABLE, Options, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_benchmark.fixture import BenchmarkFixture

    from grader.devices.device import Argument

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "reference"
PTX_ONLY = "compute_80"  # as architecture: ptxas takes half of a build
ROUNDS = 9
UNCHECKED = {"memcheck": False, "initcheck": False, "racecheck": False, "synccheck": False, "counters": False}
VARIANTS = {
    "plain": Options(**UNCHECKED),
    "checked": Options(counters=False),
    "counted": Options(),
    "covered": Options(coverage=True),
    "two threads": Options(**UNCHECKED, threads=2),
    "counted, two threads": Options(threads=2),
}
# Calls a function of the library for each line of stdin.
PROGRAM = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
for line in sys.stdin:
    name, given = json.loads(line)
    getattr(library, name)(*(getattr(ctypes, kind)(value) for kind, value in given))
    print(flush=True)
"""
SOFTMAX = {"batch_size": 8, "nhead": 8, "from_len": 128, "to_len": 128, "mask_future": 1}
KERNELS = {  # of the reference: each has sizes for which it is chosen
    "softmax": ("softmax_forward", SOFTMAX),
    "softmax, short rows": ("softmax_forward", {**SOFTMAX, "to_len": 24, "mask_future": 0}),
    "softmax, long rows": ("softmax_forward", {**SOFTMAX, "batch_size": 1, "from_len": 64, "to_len": 2000}),
    "softmax backward": ("softmax_backward", {"rows": 8192, "softmax_len": 128}),
    "softmax backward, long rows": ("softmax_backward", {"rows": 160, "softmax_len": 2000}),
    "layer norm": ("layernorm_forward", {"batch_size": 1024, "hidden_dim": 1024}),
    "layer norm, short rows": ("layernorm_forward", {"batch_size": 16384, "hidden_dim": 64}),
    "layer norm backward, split": ("layernorm_backward", {"batch_size": 256, "hidden_dim": 1024}),
    "layer norm backward, fused": ("layernorm_backward", {"batch_size": 8320, "hidden_dim": 64}),
}

NARROW = {  # kernels of narrow.cu
    "bytes, stream": "stream",
    "halves, stream": "stream_halves",
    "halves, softmax of rows": "softmax_rows",
    "bytes, reduction in shared memory": "reduction",
    "bytes, stencil": "stencil",
    "bytes, blur in blocks of 16 x 16": "blur",
    "bytes, pixels of three": "grey",
    "bytes, look-up in a table": "lookup",
    "bytes, tiled product": "product",
    "bytes, transposition": "transposition",
}
HALVES = {"stream_halves", "softmax_rows"}
MEBIBYTE = 1 << 20


def arrays(given: Iterable[Argument]) -> list[ArrayArgument]:
    return [argument for argument in given if isinstance(argument, ArrayArgument)]


def word(argument: Argument, places: Mapping[str, int]) -> tuple[str, object]:
    """An argument as ctypes takes it: kind and value. Streams are the default one."""
    match argument:
        case ArrayArgument():
            return "c_void_p", places[argument.name]
        case ScalarArgument():
            return f"c_{argument.ctype}", argument.value
        case StreamArgument():
            return "c_void_p", None


@contextmanager
def program(simulator: Simulator, library: Path) -> Iterator[Callable[..., None]]:
    """A process with ``library`` loaded; what is yielded calls a function of it and waits for its kernels."""
    simulator.load(library)
    with simulator.client_socket() as channel:
        environment = {"LD_LIBRARY_PATH": str(LIBRARIES), SOCKET_VARIABLE: str(channel.fileno())}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(library)],
            env={**os.environ, **environment},
            pass_fds=[channel.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(name: str, given: Sequence[tuple[str, object]]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([name, given]) + "\n")
        process.stdin.flush()
        assert process.stdout.readline()
        outcome = simulator.synchronize()
        assert outcome, outcome.message

    with process:
        try:
            yield call
        finally:
            process.kill()


def processor_seconds(simulator: Simulator) -> float:
    """What all threads of the sim have used; clock_getcpuclockid(3), which Python lacks, gives this clock."""
    return time.clock_gettime(~simulator._process.pid << 3 | 2)


def compiled(folder: Path, file: str) -> Path:
    contents = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".cu", ".cuh")}
    built = build(file, contents, find_toolchain(), ProcessSandbox(), compile_limits(), Cache(), PTX_ONLY)
    assert built.artefact is not None, built.log
    return built.artefact


@contextmanager
def simulated(library: Path) -> Iterator[tuple[Simulator, Callable[..., None]]]:
    """A simulator, and a process that calls functions of ``library`` on it."""
    with (
        Simulator(device_bytes=1 << 30, shared_bytes=1 << 20) as simulator,
        program(simulator, library) as call,
    ):
        yield simulator, call


def measured(
    simulator: Simulator, prepare: Callable[[], None], call: Callable[[], None], benchmark: BenchmarkFixture
) -> dict[str, float]:
    """What a call costs, one way beside the others; ``prepare`` comes before each and does not count."""
    wall, used = dict.fromkeys(VARIANTS, math.inf), dict.fromkeys(VARIANTS, math.inf)  # seconds

    def run(variant: str) -> None:
        prepare()
        simulator.configure(VARIANTS[variant])
        before, used_before = simulator.statistics().kernel_seconds, processor_seconds(simulator)
        call()
        used[variant] = min(used[variant], processor_seconds(simulator) - used_before)
        wall[variant] = min(wall[variant], simulator.statistics().kernel_seconds - before)

    def turn() -> None:
        for variant in VARIANTS:
            run(variant)

    run("counted")
    instructions = sum(count.instructions for count in simulator.take_counts())
    assert simulator.take_findings() == ()
    assert instructions > 0
    benchmark.pedantic(turn, rounds=ROUNDS)
    row = {
        "thousand warp instructions": instructions / 1e3,
        "ns each": used["plain"] / instructions * 1e9,
        "checked / plain": used["checked"] / used["plain"],
        "counted too / plain": used["counted"] / used["plain"],
        "covered / counted": used["covered"] / used["counted"],
        "one / two threads": wall["plain"] / wall["two threads"],
        "counted, one / two": wall["counted"] / wall["counted, two threads"],
    }
    benchmark.extra_info.update(row)
    return row


@pytest.mark.parametrize("kernel", KERNELS)
def test_speed_on_the_reference(
    kernel: str, benchmark: BenchmarkFixture, show: Callable[[str, dict[str, float]], None]
) -> None:
    name, sizes = KERNELS[kernel]
    problem = PROBLEMS[name]
    case = Case(kernel, "benchmark", sizes, "normal", seed=1)
    given = arguments(problem, case, problem.inputs(case))
    with simulated(compiled(REFERENCE, problem.file)) as (simulator, call):
        places = {array.name: simulator.allocate(data_bytes(array)) for array in arrays(given)}
        words = [word(argument, places) for argument in given]

        def write() -> None:
            for array in arrays(given):
                if array.data is not None:
                    simulator.write(places[array.name], content(array).data)

        show(kernel, measured(simulator, write, lambda: call(problem.entry_point, words), benchmark))


@pytest.mark.parametrize("kernel", NARROW)
def test_speed_on_bytes_and_halves(
    kernel: str, benchmark: BenchmarkFixture, show: Callable[[str, dict[str, float]], None]
) -> None:
    numbers = np.random.default_rng(1)
    values = numbers.integers(0, 256, MEBIBYTE, np.uint8).tobytes()
    if NARROW[kernel] in HALVES:
        values = numbers.standard_normal(MEBIBYTE // 2).astype(np.float16).tobytes()
    with simulated(compiled(HERE, "narrow.cu")) as (simulator, call):
        places = [simulator.allocate(MEBIBYTE) for _ in range(2)]
        words = [("c_void_p", place) for place in places]
        entry_point = f"launch_{NARROW[kernel]}"
        row = measured(
            simulator, lambda: simulator.write(places[0], values), lambda: call(entry_point, words), benchmark
        )
        show(kernel, row)
