"""Padding of a structure is read when a copy moves it with a member, and is nobody's to write."""

from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, call

from grader.simulator.driver import Simulator

SOURCE = """
// As the pairs of libcu++ are copied.
using Word = long long;
__global__ void number_in_front(Word* words) { reinterpret_cast<int*>(words + threadIdx.x)[0] = 1; }
__global__ void number_behind(Word* words) { reinterpret_cast<int*>(words + threadIdx.x)[1] = 1; }
__global__ void copy(const Word* words, Word* copied) { copied[threadIdx.x] = words[31 - threadIdx.x]; }

__global__ void one_of_two(int2* pairs) { pairs[threadIdx.x].x = threadIdx.x; }
__global__ void swap_two(const int2* pairs, int2* copied) {
  const int2 pair = pairs[threadIdx.x];
  copied[threadIdx.x] = make_int2(pair.y, pair.x);
}

template <class T>
int launched(void (*write)(T*), void (*read)(const T*, T*)) {
  T *from, *to;
  cudaMalloc(&from, 32 * sizeof(T));
  cudaMalloc(&to, 32 * sizeof(T));
  write<<<1, 32>>>(from);
  read<<<1, 32>>>(from, to);
  return cudaDeviceSynchronize();
}
extern "C" int padding() { return launched(number_in_front, copy); }
extern "C" int missing() { return launched(number_behind, copy); }
extern "C" int half_a_pair() { return launched(one_of_two, swap_two); }
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "uninitialised.so", *LIBRARY)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [("padding", []), ("missing", ["uninit_global"]), ("half_a_pair", ["uninit_global"])],
)
def test_padding_is_told_from_what_is_missing(function: str, kinds: list[str], library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        assert [finding.kind for finding in simulator.take_findings()] == kinds
