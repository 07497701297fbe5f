"""The optional check for 32-bit arithmetic that wraps and decides an address."""

import subprocess
import sys
from pathlib import Path

import pytest
from built_programs import FLAGS, LIBRARY, Compile, marked_lines, races

from grader.simulator.driver import Options, Order
from grader.simulator.simulate import EXIT_FINDINGS

SOURCE = """
#define T threadIdx.x
#define KERNEL(name) __global__ void name(int* p, int n, int half, int k, unsigned most)
struct Pixel { int r, g, b; };

// Too large: n is 2^16, half 2^30, k 2, most 2^32 - 1. What is left of each index is a place in the buffer.
KERNEL(product) {
  p[n * n] = T;  // product
}
KERNEL(product_and_sum) {
  p[n * n + T] = T;  // product_and_sum
}
KERNEL(sum) {
  const int first = half + half - 1;
  p[first + (first + k) + T] = T;  // sum
}
KERNEL(shift) {
  p[(n << 8 * k) + T] = T;  // shift
}
KERNEL(unsigned_product) {
  const unsigned rows = n;
  p[rows * n + T] = T;  // unsigned_product
}
KERNEL(bytes) {
  reinterpret_cast<char*>(p)[n * n + T] = T;  // bytes
}
KERNEL(members) {
  reinterpret_cast<Pixel*>(p)[n * n + T].b = T;  // members
}
KERNEL(added_atomically) {
  atomicAdd(p + n * n + T, 1);  // added_atomically
}
KERNEL(read) {
  p[T] = p[n * n + 64 + T];  // read
}
KERNEL(in_two_steps) {
  const int row = n * n;  // in_two_steps
  p[row * 3 + T] = 1;
  p[row + T + 64] = 2;
}
KERNEL(kept_in_a_loop) {
  unsigned at = T;
  for (int turn = 0; turn < 8; ++turn) {
    if (turn % 4 == 0) p[at] = turn;
    at += half;  // kept_in_a_loop
  }
}
KERNEL(pointer_kept_in_a_loop) {
  int* row = p + n * n;  // pointer_kept_in_a_loop
  for (int turn = 0; turn < n / 4096; ++turn) row[T + turn] = turn;
}
KERNEL(chosen) {
  const int at = k > 1 ? n * n : k;  // chosen
  p[at + T] = T;
}
KERNEL(of_one_lane) {
  const int row = T == 5 ? n : 0;
  p[row * n + T] = T;  // of_one_lane
}

KERNEL(size_t_index) {
  const size_t all = size_t(n) * n;
  p[all - size_t(4) * half + T] = T;
}
KERNEL(widened_factor) {
  p[static_cast<long long>(n) * n - 4ll * half + T] = T;
}
KERNEL(only_a_value) {
  p[T] = n * n + n * T;
  p[T + 32] = n * n * T == 0 ? 1 : 2;
}
KERNEL(hash) {
  const unsigned h = (T + n) * 2654435761u;
  p[h >> 22] = 1;
  p[h & 1023] = 2;
  p[h % 1000] = 3;
  p[h % 1024] = 4;
  p[h % (half >> 20)] = 5;
  p[__umulhi(h, 1000)] = 6;
  unsigned fnv = 2166136261u;
  for (int byte = 0; byte < 4; ++byte) fnv = (fnv ^ (T >> 8 * byte & 255)) * 16777619u;
  p[fnv % 997] = 7;
  const unsigned random = (fnv * 1664525u + 1013904223u) * 1664525u + 1013904223u;
  p[random % 1021 + random / 4294967u % 3] = 8;
}
KERNEL(remainder_of_a_product) {
  const unsigned product = (T + n) * n;
  p[product % 1000] = 1;
  const unsigned turn = product / (n - 1);
  p[product - turn * (n - 1) & 1023] = turn;
  p[(product - turn * (n - 1)) / 128 + 256] = turn;
}
KERNEL(signed_hash) {
  const int h = (T + n) * 73856093 ^ (T * n) * 19349663;
  p[(h % 500 + 500) % 500] = 1;
  p[abs(h % 512)] = 2;
}
KERNEL(guard) {
  const unsigned offset = T - 16u;
  if (offset < 16) p[offset] = 1;
  const int x = half + half - 4 + T;
  if (x >= 0 && x < 256) p[x + T] = 2;
}
KERNEL(window) {
  for (int shift = -2; shift <= 2; ++shift) {
    const unsigned at = T + shift;
    if (at < 32) p[at + 64] += 1;
  }
}
KERNEL(ring) {
  const unsigned head = most - 7;
  p[(head + T) & 255] = 1;
  p[(head + T) % 256] = 2;
  p[(head + T) % 1000] = 3;
  const int tail = half + half - 4;
  p[(tail + static_cast<int>(T)) & 255] = 4;
}
KERNEL(below_zero) {
  int* const middle = p + 512;
  middle[-static_cast<int>(T)] = 1;
  middle[static_cast<int>(T) * -3 - k] = 2;
  const unsigned last = n - 65280;
  for (unsigned i = last; i-- > 128;) p[i] = 3;
  p[last - 1u - T] = 4;
}
KERNEL(above_two_to_the_31) {
  char* const far = reinterpret_cast<char*>(p) - 2500000000ll;
  const unsigned rows = n - 15536;
  far[rows * rows + T] = 1;
  far[2500000000u + T] = 2;
}
KERNEL(coordinates) {
  const unsigned i = blockIdx.x * blockDim.x + T;
  const int row = i / 5, column = i % 5;
  p[column * 8 + row] = 1;
  p[(i / k) * k + i % k] = 2;
  p[row * 5 + column] = 3;
}
KERNEL(address_in_shared_memory) {
  __shared__ int values[32];
  values[T] = T;
  __syncwarp();
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(values + T));
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(p[T]) : "r"(address));
  p[T + 32] = *static_cast<int*>(__cvta_shared_to_generic(address));
}
KERNEL(difference) {
  const int at = reinterpret_cast<Pixel*>(p) + n * T - (reinterpret_cast<Pixel*>(p) + (n - 1) * T);
  p[at] = 1;
}
"""
LAUNCH = """
#define FUNCTION(kernel) \\
  extern "C" int run_##kernel() { \\
    int* p; \\
    cudaMalloc(&p, 4096); \\
    cudaMemset(p, 0, 4096); \\
    kernel<<<1, 32>>>(p, 1 << 16, 1 << 30, 2, ~0u); \\
    return cudaDeviceSynchronize(); \\
  }
"""
LINES = marked_lines(SOURCE)
RIGHT = (
    *(
        "size_t_index",
        "widened_factor",
        "only_a_value",
        "hash",
        "remainder_of_a_product",
        "signed_hash",
        "guard",
        "window",
        "ring",
    ),
    *("below_zero", "above_two_to_the_31", "coordinates", "address_in_shared_memory", "difference"),
)
NO_RACES = {"racecheck": False}  # lanes that meet at one place are not what this is about


@pytest.fixture(scope="module", params=["-O3", "-O0"], ids=["optimised", "as written"])
def library(request: pytest.FixtureRequest, nvcc: Compile) -> Path:
    functions = "\n".join(f"FUNCTION({kernel})" for kernel in (*RIGHT, *LINES))
    level = str(request.param)
    how = ("-O3",) if level == "-O3" else ("-Xcicc", "-O0")
    return nvcc(SOURCE + LAUNCH + functions, f"overflow{level}.so", *LIBRARY, *how)


@pytest.mark.parametrize("kernel", LINES)
def test_a_wrapped_index_is_named_where_it_is_computed(kernel: str, library: Path) -> None:
    if kernel == "added_atomically" and "-O0" in library.name:
        pytest.skip("atomicAdd is a function there, and its argument is not followed")
    options = Options(**NO_RACES, overflow=True)
    (lines,) = races(library, f"run_{kernel}", options, {"index_overflow"})
    assert lines >= LINES[kernel]


@pytest.mark.parametrize("kernel", RIGHT)
def test_what_is_meant_to_wrap_or_does_not_wrap_has_no_finding(kernel: str, library: Path) -> None:
    assert races(library, f"run_{kernel}", Options(**NO_RACES, overflow=True), set()) == []


def test_nothing_is_said_unless_asked(library: Path) -> None:
    assert races(library, "run_product_and_sum", Options(order=Order.REVERSED), set()) == []


def test_grader_simulate_looks_for_it_where_asked(nvcc: Compile) -> None:
    main = "FUNCTION(product_and_sum)\nint main() { return run_product_and_sum(); }\n"
    program = nvcc(SOURCE + LAUNCH + main, "overflow", *FLAGS)
    command = [sys.executable, "-P", "-m", "grader", "simulate"]
    for checks in ([], ["--check", "overflow"]):
        done = subprocess.run(
            [*command, *checks, "--", program], check=False, stderr=subprocess.PIPE, text=True
        )
        assert done.returncode == (EXIT_FINDINGS if checks else 0), done.stderr
    (line,) = LINES["product_and_sum"]
    assert f"overflow.cu:{line}: memcheck: index_overflow in _Z15product_and_sumPiiiij" in done.stderr
    assert "thread (0,0,0) of block (0,0,0) computes 4294967296 in 32 bits" in done.stderr
