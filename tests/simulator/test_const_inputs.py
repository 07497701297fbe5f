"""Stores into what the judge says may only be read."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from built_programs import LIBRARY, Compile, marked_lines

from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
extern "C" {
__global__ void only_reads(const int* in, int* out) { out[threadIdx.x] = in[31 - threadIdx.x]; }
__global__ void puts_back(int* in, int* out) {
  const int value = in[threadIdx.x];
  if (threadIdx.x == 7) {
    ((volatile int*)in)[threadIdx.x] = 0;  // puts_back
    ((volatile int*)in)[threadIdx.x] = value;  // again
  }
  out[threadIdx.x] = value;
}
__global__ void adds_nothing(int* in, int* out) {
  atomicAdd(in + threadIdx.x, 0);  // adds_nothing
  out[threadIdx.x] = in[threadIdx.x];
}
__global__ void looks(int* in, int* out) {
  out[threadIdx.x] = atomicAdd(in + threadIdx.x, 0);  // looks
}
__global__ void either(int* in, int* out) {
  int* to = threadIdx.x < 4 ? in : out;
  const int value = in[threadIdx.x];
  to[threadIdx.x] = value;  // either
}
}
"""
LINES = marked_lines(SOURCE)
BYTES = 32 * 4


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "const_inputs.so", *LIBRARY)


def found(
    library: Path, kernel: str, *, constant: bool, options: Options | None = None
) -> list[tuple[str, set[int]]]:
    """Kind and line of each finding of a launch on an input and an output."""
    with Simulator(options) as simulator:
        simulator.load(library)
        source, target = simulator.allocate(BYTES), simulator.allocate(BYTES)
        simulator.write(source, bytes(range(BYTES)))
        simulator.write(target, bytes(BYTES))
        simulator.name_allocation(source, "before", constant=constant)
        arguments = [struct.pack("<Q", address) for address in (source, target)]
        assert simulator.launch(kernel, (1, 1, 1), (32, 1, 1), arguments)
        assert simulator.read(source, BYTES) == bytes(range(BYTES))
        findings = simulator.take_findings()
    for finding in findings:
        assert finding.tool == "memcheck"
        assert "of before, an input that the function may only read" in str(sentence(finding))
    return [(finding.kind, {finding.line}) for finding in findings]


@pytest.mark.parametrize("kernel", ["adds_nothing", "looks", "either"])
def test_a_store_into_an_input_is_told_though_its_values_stay(kernel: str, library: Path) -> None:
    assert found(library, kernel, constant=True) == [("const_input", LINES[kernel])]
    assert found(library, kernel, constant=False) == []


def test_each_store_is_told_at_its_line(library: Path) -> None:
    lines = [("const_input", LINES["puts_back"]), ("const_input", LINES["again"])]
    assert found(library, "puts_back", constant=True) == lines
    assert found(library, "puts_back", constant=True, options=Options(memcheck=False)) == []


def test_an_input_may_be_read(library: Path) -> None:
    assert found(library, "only_reads", constant=True) == []


def test_what_is_freed_is_no_input_any_longer(library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        first = simulator.allocate(BYTES)
        simulator.name_allocation(first, "before", constant=True)
        simulator.release(first)
        for _ in range(2):
            source, target = simulator.allocate(BYTES), simulator.allocate(BYTES)
            simulator.write(source, bytes(BYTES))
            arguments = [struct.pack("<Q", address) for address in (source, target)]
            assert simulator.launch("adds_nothing", (1, 1, 1), (32, 1, 1), arguments)
        assert simulator.take_findings() == ()
