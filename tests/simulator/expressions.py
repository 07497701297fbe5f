"""Random expressions of C++, on the simulator or a GPU and on the host: both must compute the same.

    python tests/simulator/expressions.py --count 10000 --seed 1
    python tests/simulator/expressions.py --count 10000 --seed 1 --device gpu

One expression is one function of several statements and operations (``operations.py``), compiled by nvcc for
the device and by the host's compiler, and evaluated on many tuples of operands. Nothing in it is undefined:
operations that C++ leaves open are written out in ``expressions.cuh``, which also has the models of what only
a device has. On a GPU machine this needs Python and the CUDA toolkit, nothing else.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from operations import INTEGERS, TYPES, Operation, WarpOperation, operations, warp_operations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
FUNCTIONS = 500  # of one program
IN_A_KERNEL = 10
TUPLES = 512
HOST = ("-Xcompiler", "-ffp-contract=off,-frounding-math,-fno-strict-aliasing", "-I", str(HERE))
FLAGS = {
    "sim": ("-cudart", "shared", "--no-compress", "-gencode", "arch=compute_80,code=compute_80"),
    "gpu": ("-arch=native",),
}
# The device's code as it is mostly compiled, with less optimisation and with none, which gives other
# instructions. Multiplications and additions must not be contracted: the host has no such instruction.
OPTIMISED = (("-fmad=false",), ("-fmad=false", "-Xcicc", "-O1"), ("-fmad=false", "-G"))
PARTS_OF_A_WARP = 0.15  # share of functions in which the lanes work together
PARAMETERS = "u64 a, u64 b, u64 c, u64 d, u64 e, u64* slots"


@cache
def by_result() -> dict[str, dict[str, list[Operation]]]:
    """Operations by the type of their result and by family: each family is as likely, large or small."""
    table: dict[str, dict[str, list[Operation]]] = defaultdict(lambda: defaultdict(list))
    for operation in operations():
        table[operation.result][operation.family].append(operation)
    return table


@cache
def of_warps() -> list[WarpOperation]:
    return list(warp_operations())


@dataclass(frozen=True)
class Program:
    """A source, and the text of each of its functions."""

    source: str
    functions: list[str]


@dataclass
class Writer:
    """Writes one program; everything follows from the random numbers."""

    random: random.Random
    names: dict[Operation | WarpOperation, str] = field(default_factory=dict)
    variables: list[tuple[str, str]] = field(default_factory=list)  # name and type, of the function at hand

    def name_of(self, operation: Operation | WarpOperation) -> str:
        return self.names.setdefault(operation, f"op{len(self.names)}")

    def constant(self, kind: str) -> str:
        draw = self.random
        if kind == "bool":
            return draw.choice(("true", "false"))
        if kind not in INTEGERS:
            return f"value<{kind}>({draw.getrandbits(64):#x}u, 0)"
        bits = int(kind[1:])
        n = draw.choice(
            (
                draw.randrange(0, 11),
                1 << draw.randrange(bits),
                (1 << draw.randrange(bits)) + draw.choice((-1, 1)),
                draw.getrandbits(bits),
                -draw.randrange(1, 11),
            )
        )
        n &= (1 << bits) - 1
        if bits == 128:
            return f"{kind}(u128({n >> 64:#x}u) << 64 | {n & (1 << 64) - 1:#x}u)"
        return f"{kind}({n:#x}u)"

    def leaf(self, kind: str) -> str:
        alike = [name for name, its in self.variables if its == kind]
        draw = self.random.random()
        if alike and draw < 0.6:
            return self.random.choice(alike)
        if draw < 0.75:
            return self.constant(kind)
        first, second = self.random.choices("abcd", k=2)
        return f"value<{kind}>({first}, {second})"

    def expression(self, kind: str, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf(kind)
        families = by_result()[kind]
        operation = self.random.choice(families[self.random.choice(list(families))])
        return self.call(operation, [self.expression(its, depth - 1) for its in operation.operands])

    def call(self, operation: Operation, operands: list[str]) -> str:
        slots = ["slots"] if operation.has_slots else []
        return f"{self.name_of(operation)}({', '.join([*operands, *slots])})"

    def statement(self, number: int) -> str:
        """One that declares a variable, or changes one in a branch or a loop."""
        changeable = [variable for variable in self.variables if variable[0].startswith("v")]
        form = self.random.choices(("declare", "branch", "loop"), (4, 1, 1))[0] if changeable else "declare"
        if form == "declare":
            kind = self.random.choice(TYPES)
            value = self.expression(kind, self.random.randrange(1, 4))
            self.variables.append((f"v{number}", kind))
            return f"  {kind} v{number} = {value};"
        name, kind = self.random.choice(changeable)
        if form == "branch":
            other = f" else {name} = {self.expression(kind, 1)};" if self.random.random() < 0.5 else ""
            return f"  if ({self.expression('bool', 1)}) {name} = {self.expression(kind, 2)};{other}"
        end = self.expression("u32", 1)
        self.variables.append((f"i{number}", "u32"))
        value = self.expression(kind, 2)
        self.variables.pop()
        return f"  for (u32 i{number} = 0, end = {end} & 7; i{number} < end; ++i{number}) {name} = {value};"

    def function(self, name: str, *, warp: bool) -> str:
        self.variables = [("e", "u64")] if warp else []
        lines = [self.statement(number) for number in range(self.random.randrange(1, 4))]
        kind = self.random.choice(TYPES)
        lines.append(f"  return word({self.expression(kind, self.random.randrange(1, 4))});")
        return "\n".join((f"HD u64 {name}({PARAMETERS}) {{", *lines, "}"))

    def random_program(self, count: int) -> Program:
        functions, warps = [], {}
        for n in range(count):
            if self.random.random() < PARTS_OF_A_WARP:
                warps[n] = self.random.choice(of_warps())
            functions.append(self.function(f"function{n}", warp=n in warps))
        return self.program(functions, warps)

    def plain_program(self, chosen: Sequence[Operation | WarpOperation]) -> Program:
        """A function for each operation, of nothing but that."""
        functions, warps = [], {}
        for n, operation in enumerate(chosen):
            self.variables = []
            result = "e"
            if isinstance(operation, WarpOperation):
                warps[n] = operation
            else:
                operands = [
                    f"value<{kind}>({x}, b)" for kind, x in zip(operation.operands, "acdb", strict=False)
                ]
                result = f"word({self.call(operation, operands)})"
            functions.append(f"HD u64 function{n}({PARAMETERS}) {{ return {result}; }}")
        return self.program(functions, warps)

    def program(self, functions: list[str], of_warp: dict[int, WarpOperation]) -> Program:
        count = len(functions)
        warps = {n: self.name_of(operation) for n, operation in of_warp.items()}
        self.variables = []
        befores = {
            n: f"HD u64 before{n}(u64 a, u64 b, u64 c, u64 d, u64* slots) {{ return {self.mixed()}; }}"
            for n in warps
        }
        parts = ["#include <expressions.cuh>", *(op.definition(name) for op, name in self.names.items())]
        parts += [*befores.values(), *functions]
        kernels = list(range(0, count, IN_A_KERNEL))
        parts += [self.kernel(first, min(first + IN_A_KERNEL, count), warps) for first in kernels]
        launches = "\n".join(f"  k{first}<<<n / 128, 128>>>(in, out, scratch, n);" for first in kernels)
        parts.append(f"void launch(const u64* in, u64* out, u64* scratch, u32 n) {{\n{launches}\n}}")
        rows = (
            f"{{function{n}, {f'before{n}, {warps[n]}_host' if n in warps else 'nullptr, nullptr'}}}"
            for n in range(count)
        )
        table = ",\n".join(rows)
        parts.append(
            f"int main(int argc, char** argv) {{ return compare({{{table}}}, launch, argc, argv); }}"
        )
        texts = [f"{befores[n]}\n{text}" if n in befores else text for n, text in enumerate(functions)]
        return Program(
            "\n".join(parts) + "\n", [self.explained(text, warps.get(n, "")) for n, text in enumerate(texts)]
        )

    def explained(self, text: str, warp: str) -> str:
        """A function's text, with what its operations do on the device before it."""
        used = {*re.findall(r"op\d+", text), warp}
        return "".join(f"// {name}: {o.device}\n" for o, name in self.names.items() if name in used) + text

    def mixed(self) -> str:
        """A word of which some bits are often the same in all lanes."""
        whole = f"word({self.expression(self.random.choice(TYPES), 2)})"
        return self.random.choice(
            (whole, f"{whole} | {self.leaf('u64')} >> 63", f"a & {self.constant('u64')}", "a | 1")
        )

    @staticmethod
    def kernel(first: int, end: int, warps: dict[int, str]) -> str:
        lines = [
            f"__global__ void k{first}(const u64* in, u64* out, u64* scratch, u32 n) {{",
            "  const u32 t = blockIdx.x * blockDim.x + threadIdx.x;",
            "  const u64 a = in[4 * t], b = in[4 * t + 1], c = in[4 * t + 2], d = in[4 * t + 3];",
            "  u64* slots = scratch + 2 * t;",
        ]
        for n in range(first, end):
            of_warp = f"{warps[n]}(before{n}(a, b, c, d, slots))" if n in warps else "0"
            lines.append(f"  out[{n}ull * n + t] = function{n}(a, b, c, d, {of_warp}, slots);")
        return "\n".join([*lines, "}"])


@dataclass(frozen=True)
class Difference:
    """What a function gave for the first tuple on which device and host differ."""

    function: str
    operands: tuple[int, ...]
    got: int
    expected: int
    tuples: int

    def __str__(self) -> str:
        operands = ", ".join(f"{o:#x}" for o in self.operands)
        results = f"{self.got:#x}, on the host {self.expected:#x}; {self.tuples} tuples differ"
        return f"{self.function}\n  of ({operands}): {results}"


@dataclass(frozen=True)
class Outcome:
    """What one program showed; ``fault`` is empty unless it did not build or run."""

    seed: int
    functions: int
    differences: list[Difference]
    fault: str = ""
    source: str = ""


def random_program(seed: int, count: int) -> Program:
    return Writer(random.Random(seed)).random_program(count)


def plain_programs() -> Iterator[Program]:
    """Programs in which each operation has a function of its own."""
    everything = [*operations(), *of_warps()]
    for first in range(0, len(everything), FUNCTIONS):
        yield Writer(random.Random(first)).plain_program(everything[first : first + FUNCTIONS])


def build(source: Path, device: str, seed: int) -> tuple[Path, str]:
    """The executable, and nvcc's words if there is none."""
    built = source.with_suffix("")
    optimised = OPTIMISED[seed % len(OPTIMISED)]
    command = ["nvcc", "-O1", *HOST, *FLAGS[device], *optimised, "-w", "-o", str(built), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return built, (done.stdout + done.stderr if done.returncode else "")


def execute(program: Path, device: str, *words: str) -> str:
    """What the program prints."""
    if device == "gpu":
        return subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=False).stdout
    from grader.simulator.driver import (  # noqa: PLC0415 (a GPU machine needs no grader)
        LIBRARIES,
        SOCKET_VARIABLE,
        Options,
        Simulator,
    )

    options = Options(
        open=True, prints=True, threads=1, initcheck=False, racecheck=False, synccheck=False, counters=False
    )
    with Simulator(options) as simulator, simulator.client_socket() as channel:
        done = subprocess.run(
            [program, *words],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            pass_fds=[channel.fileno()],
            env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES), SOCKET_VARIABLE: str(channel.fileno())},
        )
        simulator.synchronize()
        gaps = [*map(str, simulator.unsupported()), *map(str, simulator.take_findings())]
    return done.stdout + "".join(f"failed {gap}\n" for gap in gaps)


def compare(seed: int, program: Program, device: str, tuples: int = TUPLES) -> Outcome:
    """Build and run one program."""
    text, functions = program.source, program.functions
    number = len(functions)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "program.cu"
        source.write_text(text)
        built, fault = build(source, device, seed)
        if fault:
            return Outcome(seed, number, [], fault, text)
        output = execute(built, device, str(tuples), str(seed))
    times = {int(n): int(wrong) for n, wrong in re.findall(r"^wrong (\d+) (\d+)$", output, re.MULTILINE)}
    differences = []
    for line in re.findall(r"^differs (.*)$", output, re.MULTILINE):
        at, *words = line.split()
        *operands, got, expected = (int(word, 16) for word in words)
        differences.append(Difference(functions[int(at)], tuple(operands), got, expected, times[int(at)]))
    fault = "\n".join(re.findall(r"^failed (.*)$", output, re.MULTILINE))
    if not fault and "\ncompared " not in f"\n{output}":
        fault = "the program did not come to its end"
    return Outcome(seed, number, differences, fault, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("sim", "gpu"), default="sim")
    parser.add_argument("--count", type=int, default=FUNCTIONS, help="functions (default: %(default)s)")
    parser.add_argument("--each", action="store_true", help="instead, each operation alone")
    parser.add_argument("--seed", type=int, default=0, help="the first program's; each has the next")
    parser.add_argument(
        "--tuples", type=int, default=TUPLES, help="of operands, for each function (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="programs that are built at the same time")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where to leave the source of each program that differs"
    )
    arguments = parser.parse_args()
    programs = plain_programs()
    if not arguments.each:
        last = arguments.seed + -(-arguments.count // FUNCTIONS)
        programs = (random_program(seed, FUNCTIONS) for seed in range(arguments.seed, last))
    began, functions, wrong = time.monotonic(), 0, 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(
            lambda seed, program: compare(seed, program, arguments.device, arguments.tuples),
            count(arguments.seed),
            programs,
        ):
            functions += outcome.functions
            wrong += len(outcome.differences) + bool(outcome.fault)
            for line in [*map(str, outcome.differences), *([outcome.fault] if outcome.fault else [])]:
                sys.stdout.write(f"seed {outcome.seed}: {line}\n")
            if arguments.keep and (outcome.differences or outcome.fault):
                arguments.keep.mkdir(parents=True, exist_ok=True)
                (arguments.keep / f"{outcome.seed}.cu").write_text(outcome.source)
            sys.stdout.flush()
    seconds = time.monotonic() - began
    tried = f"{functions} functions on {arguments.tuples} tuples of operands each, in {seconds:.0f} s"
    sys.stdout.write(f"{tried}: {wrong} differ\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
