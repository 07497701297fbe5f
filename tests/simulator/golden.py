"""The golden set: what an H100 answers, which the sim must answer too.

    python tests/simulator/golden.py --device gpu --write      # on an H100: makes golden.npz
    python tests/simulator/golden.py --device sim              # compares the sim with it

It holds the results of single instructions (``golden_cases.py``) and what the corpus's self-checking kernels
copy to the host. On a GPU machine this needs Python, numpy, CuPy and the CUDA toolkit, nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import struct
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from corpus import Program, Run, build, programs, run_on_gpu, run_on_sim
from golden_cases import EXACT, FORMATS, THREADS, TUPLES, Bound, Case, cases
from instructions import STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Array = np.ndarray
    Results = Mapping[str, Array]

HERE = Path(__file__).parent
STORE = HERE / "golden.npz"
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
SAMPLE = 512  # elements kept of one output of a kernel, evenly chosen
# Of the greatest magnitude in an output of a kernel. Most contractions are in the PTX, but ptxas may make
# more, and functions are approximate: the sim and an H100 lay 2.4e-7 apart on whole kernels.
KERNEL_ERROR = {4: 2e-6, 8: 1e-14}


class Device(Protocol):
    """What executes probes."""

    name: str

    def run(self, ptx: str, kernel: str, columns: tuple[Array, ...], result: np.dtype) -> Array:
        """The kernel's results for operand arrays of ``TUPLES`` elements.

        Raises:
            RuntimeError: the device refuses the PTX or the launch fails.
        """


class Gpu:
    """A GPU through CuPy: the driver compiles the PTX."""

    def __init__(self) -> None:
        import cupy  # noqa: PLC0415 (only where there is a GPU)

        self._cupy = cupy
        self.name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def run(self, ptx: str, kernel: str, columns: tuple[Array, ...], result: np.dtype) -> Array:
        cupy = self._cupy
        module = cupy.cuda.function.Module()
        module.load(ptx.encode())
        out = cupy.zeros(TUPLES, result)
        arguments = (out, *(cupy.asarray(column) for column in columns), np.uint32(TUPLES))
        module.get_function(kernel)((TUPLES // THREADS,), (THREADS,), arguments)
        return np.asarray(out.get())


class Sim:
    """The built-in simulator."""

    name = "sim"

    def run(self, ptx: str, kernel: str, columns: tuple[Array, ...], result: np.dtype) -> Array:
        from grader.simulator.driver import Options, Simulator  # noqa: PLC0415 (a GPU machine needs no grader)

        with Simulator(Options(threads=1), device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
            simulator.load_ptx(ptx)
            out = simulator.allocate(TUPLES * result.itemsize)
            places = []
            for column in columns:
                places.append(simulator.allocate(column.nbytes))
                simulator.write(places[-1], column.tobytes())
            arguments = [struct.pack("<Q", at) for at in (out, *places)] + [struct.pack("<I", TUPLES)]
            outcome = simulator.launch(kernel, (TUPLES // THREADS, 1, 1), (THREADS, 1, 1), arguments)
            if not outcome:
                raise RuntimeError(outcome.message)
            return np.frombuffer(simulator.read(out, TUPLES * result.itemsize), result)


def instruction(device: Device, case: Case) -> Array:
    """The results of one case, as stored; predicates as bytes."""
    predicate = case.probe.result == "pred"
    dtype = np.dtype(STORED["u32" if predicate else case.probe.result])
    found = device.run(HEADER + case.probe.kernel("k"), "k", case.operands(), dtype)
    return found.astype(np.uint8) if predicate else found


def outputs_of(program: Program, run: Callable[[Program, Path, Path], Run], device: str) -> list[Array]:
    """What a program copied to the host, each array cut to ``SAMPLE`` elements.

    Raises:
        RuntimeError: its result is wrong, or it does not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "outputs"
        ended = run(program, build(program.source, device), dump)
        if not ended.right:
            raise RuntimeError(f"not right: {ended.ending}")
        data = dump.read_bytes()
    found, at = [], 0
    while at < len(data):
        kind, size, count = struct.unpack_from("<3Q", data, at)
        at += 24
        dtype = np.dtype({4: np.float32, 8: np.float64}[size] if kind == ord("r") else f"V{size}")
        values = np.frombuffer(data, dtype, count, at)
        at += count * size
        chosen = values[np.linspace(0, count - 1, min(count, SAMPLE)).astype(int)]
        found.append(chosen if kind == ord("r") else chosen.view(np.uint8))
    return found


@dataclass
class Taken:
    """Results by name, and what could not be had, with the reason."""

    results: dict[str, Array] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def checked_kernels() -> list[Program]:
    """The programs whose outputs are in the set: none depends on the order of blocks or warps."""
    return [program for program in programs() if program.group == "kernels"]


def take(
    device: str, words: Iterable[str] = (), *, instructions: bool = True, kernels: bool = True
) -> tuple[str, Taken]:
    """Run everything (or only names that contain one of the words) on a device; its name and the results."""
    words = tuple(words)
    executor: Device = Gpu() if device == "gpu" else Sim()
    taken = Taken()
    if instructions:
        take_instructions(executor, [c for c in cases() if matches(c.name, words)], taken)
    if kernels:
        take_kernels(device, [p for p in checked_kernels() if matches(p.name, words)], taken)
    return executor.name, taken


def matches(name: str, words: tuple[str, ...]) -> bool:
    return not words or any(word in name for word in words)


def take_instructions(device: Device, chosen: list[Case], taken: Taken) -> None:
    for case in chosen:
        try:
            taken.results[f"instruction {case.name}"] = instruction(device, case)
        except Exception as error:  # noqa: BLE001 (CuPy's own classes: the rest of the set is still worth having)
            taken.missing[f"instruction {case.name}"] = str(error)


def take_kernels(device: str, chosen: list[Program], taken: Taken) -> None:
    def run(program: Program, executable: Path, dump: Path) -> Run:
        if device == "gpu":
            return run_on_gpu(program, executable, "plain", dump)
        return run_on_sim(program, executable, outputs=dump)

    def one(program: Program) -> list[Array] | str:
        try:
            return outputs_of(program, run, device)
        except RuntimeError as error:
            return str(error)

    def prepare(source: Path) -> None:
        with contextlib.suppress(RuntimeError):  # each of its programs will say so
            build(source, device)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(prepare, sorted({program.source for program in chosen})))
        for program, found in zip(chosen, pool.map(one, chosen), strict=True):
            if isinstance(found, str):
                taken.missing[f"kernel {program.name}"] = found
            else:
                taken.results |= {f"kernel {program.name} {n}": values for n, values in enumerate(found)}


def write(path: Path, device: str, results: Results) -> None:
    """The set as a compressed file of arrays, named like the results, and the device's name."""
    np.savez_compressed(path, device=np.array(device), **results)


def read(path: Path) -> tuple[str, dict[str, Array]]:
    """The device's name and the results."""
    with np.load(path) as stored:
        content = {name: stored[name] for name in stored.files}
    return str(content.pop("device")), content


def numbers(bits: Array, kind: str) -> Array:
    """Stored results as numbers."""
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(np.float32 if bits.dtype.itemsize == 4 else np.float64).astype(np.float64)


def apart(got: Array, expected: Array, kind: str, bound: Bound = EXACT) -> Array:
    """Where two results of an instruction differ by more than both may err."""
    if kind.endswith("x2") and kind[:-2] in FORMATS:
        return apart(got.view(np.uint16), expected.view(np.uint16), kind[:-2], bound)
    if kind not in FORMATS:
        return got != expected
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    a, b = got.view(unsigned), expected.view(unsigned)
    x, y = numbers(a, kind), numbers(b, kind)
    same = (a == b) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        close = np.abs(x - y) <= 2 * (bound.relative * np.abs(y) + bound.absolute)
    if bound.ulps:
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
        close |= (distance <= 2 * bound.ulps) & (np.signbit(x) == np.signbit(y))
    return ~(same | close if bound != EXACT else same)


def differences(got: Results, expected: Results) -> list[str]:
    """What of the expected results the others do not agree with, one line each."""
    known = {f"instruction {case.name}": case for case in cases()}
    found = []
    for name, values in expected.items():
        other = got.get(name)
        if other is None:
            found.append(f"{name}: no result")
        elif other.shape != values.shape or other.dtype != values.dtype:
            found.append(f"{name}: {other.dtype} {other.shape}, expected {values.dtype} {values.shape}")
        elif case := known.get(name):
            wrong = apart(other, values, case.probe.result, case.bound)
            if wrong.any():
                at = int(np.argmax(wrong)) // (len(wrong) // TUPLES)
                operands = ", ".join(f"{column[at]!r}" for column in case.operands())
                found.append(
                    f"{name}: {wrong.sum()} differ, first of ({operands}): {other[at]!r}, not {values[at]!r}"
                )
        elif name.startswith("kernel "):
            found += kernel_difference(name, other, values)
        else:
            found.append(f"{name}: no such case any more; make the set again")
    return found


def kernel_difference(name: str, got: Array, expected: Array) -> list[str]:
    """One line if an output of a kernel is not the expected one."""
    if expected.dtype.kind != "f":
        wrong = got != expected
    else:
        finite = np.abs(expected[np.isfinite(expected)])
        limit = KERNEL_ERROR[expected.dtype.itemsize] * (finite.max() if len(finite) else 0)
        with np.errstate(invalid="ignore"):
            close = np.abs(got.astype(np.float64) - expected) <= limit
        wrong = ~(close | (got == expected) | (np.isnan(got) & np.isnan(expected)))
    if not wrong.any():
        return []
    at = int(np.argmax(wrong))
    return [f"{name}: {wrong.sum()} of {len(wrong)} differ, first at {at}: {got[at]!r}, not {expected[at]!r}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("sim", "gpu"), required=True)
    parser.add_argument("--write", action="store_true", help="make the set instead of comparing with it")
    parser.add_argument("--set", type=Path, default=STORE, metavar="FILE", help="default: %(default)s")
    parser.add_argument("words", nargs="*", help="only names that contain one of these")
    arguments = parser.parse_args()
    device, taken = take(arguments.device, arguments.words)
    for name, reason in taken.missing.items():
        sys.stdout.write(f"{name}: {reason}\n")
    if arguments.write:
        write(arguments.set, device, taken.results)
        size = arguments.set.stat().st_size
        sys.stdout.write(f"{len(taken.results)} results of {device} in {arguments.set} ({size} bytes)\n")
        return 1 if taken.missing else 0
    origin, expected = read(arguments.set)
    expected = {n: v for n, v in expected.items() if matches(n, tuple(arguments.words))}
    found = differences(taken.results, expected)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(f"{len(found)} of {len(expected)} results of {origin} differ on {device}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
