"""Races in global memory that whole words in rows do not show.

Stores of one and two bytes, lanes that store to one place at once, reads all over the place, and volatile
accesses that stand where an atomic belongs.
"""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, marked_lines, races

from grader.simulator.driver import Options

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#define T threadIdx.x
#define B blockIdx.x
typedef volatile int* Volatile;

template <class X> __global__ void one_place(X* p) { *p = X(1 + B); }  // one_place
template <class X> __global__ void neighbours(X* p) { p[B * 33 + T] = X(B + T); }
template <class X> __global__ void halo(X* p) {
  const X left = p[B * 33 + T];  // halo
  p[B * 33 + T + 1] = X(float(left) + 1);  // halo
}
template <class X> __global__ void flag_of_all(X* p) { *p = X(1); }
template <class X> __global__ void swapped(X* p) {
  const X other = p[T ^ 33];  // swapped
  p[T] = other;  // swapped
}
template <class X> __global__ void swapped_rightly(X* p) {
  const X other = p[T ^ 33];
  __syncthreads();
  p[T] = other;
}
template <class X> __global__ void in_place(X* p) { p[B * 33 + T] = X(float(p[B * 33 + T]) * 2 + 1); }
__global__ void bytes_of_a_word(uint8_t* p) {
  if (T % 4 == B) p[T] = T;
  p[64 + T * 2 + B] = T;
}
__global__ void read_as_words(uint8_t* p) {
  if (B == 0) p[5] = 3;  // read_as_words
  if (B == 1) reinterpret_cast<unsigned*>(p)[64] = reinterpret_cast<unsigned*>(p)[1];  // read_as_words
}

__global__ void lanes_into_one(int* p) { *p = T + 1; }  // lanes_into_one
__global__ void lanes_in_pairs(int* p) { p[T / 2] = T + 1; }  // lanes_in_pairs
__global__ void lanes_in_turns(int* p) { p[T * 5 % 24] = T + 1; }  // lanes_in_turns
__global__ void lanes_into_bytes(uint8_t* p) { p[T / 4] = T + 1; }  // lanes_into_bytes
__global__ void lanes_by_volatile(int* p) { *Volatile(p) = T + 1; }  // lanes_by_volatile
__global__ void lanes_alike(int* p) {
  p[T / 2] = T / 2;
  p[64] = 5;
}
__global__ void lanes_apart(int* p) { p[T * 37 % 64] = T; }

__global__ void gathered_in_place(int* p) {
  const int v = p[T * 13 % 32];  // gathered_in_place
  p[T] = v + 1;  // gathered_in_place
}
__global__ void gathered_by_warps(int* p) {
  const int v = p[T * 13 % 64];  // gathered_by_warps
  __syncwarp();
  p[T] = v + 1;  // gathered_by_warps
}
__global__ void gathered_and_scattered(int* p) {
  const int v = p[T * 13 % 32];  // gathered_and_scattered
  p[T * 5 % 32] = v + 1;  // gathered_and_scattered
}
__global__ void gathered_rightly(int* p) {
  const int v = p[T * 13 % 32];
  __syncwarp();
  p[T] = v + 1;
}
__global__ void permuted_in_place(int* p) { p[T * 13 % 32] += 1; }
__global__ void gathered_elsewhere(int* p) { p[64 + T] = p[T * 13 % 32]; }

__global__ void scattered_and_read(int* p) {
  p[T * 13 % 32] = T + 1;  // scattered_and_read
  p[64 + T] = p[T];  // scattered_and_read
}
__global__ void scattered_by_warps(int* p) {
  p[T * 13 % 64] = T + 1;  // scattered_by_warps
  __syncwarp();
  p[64 + T] = p[T];  // scattered_by_warps
}
__global__ void scattered_rightly(int* p) {
  p[T * 13 % 32] = T + 1;
  __syncwarp();
  p[64 + T] = p[T];
}
__global__ void marked_alike(int* p) {
  p[T * 13 % 32] = 1;
  p[T * 5 % 24] = 1;
  p[64 + T] = p[T * 13 % 32] + p[T * 5 % 24];
}
__global__ void of_the_warp_after_the_next(int* p) {
  p[T] = T + 1;  // of_the_warp_after_the_next
  __syncwarp();
  p[256 + T] = p[T ^ 64];  // of_the_warp_after_the_next
}

__global__ void counted(int* p) { *Volatile(p) = *Volatile(p) + 1; }  // counted
__global__ void counted_by_lanes(int* p) { *Volatile(p) += 1; }  // counted_by_lanes
__global__ void counted_by_warps(int* p) {
  if (T % 32 == 0) *Volatile(p) = *Volatile(p) + 1;  // counted_by_warps
}
__global__ void blocks_by_volatile(int* p) {
  if (T == 0) *Volatile(p) = B + 1;  // blocks_by_volatile
}
__global__ void slot_read_behind_the_add(int* p) {
  atomicAdd(p, 1);
  p[1 + *Volatile(p)] = T;  // slot_read_behind_the_add
}
__global__ void queue_of_one_writer(int* p) {
  if (B == 0 && T == 0) {
    for (int n = 0; n < 9; ++n) {
      p[1 + n] = n;
      __threadfence();
      *Volatile(p) = *Volatile(p) + 1;
    }
  }
  if (B == 1 && T == 0) {
    for (int n = 0; n < 9; ++n) {
      while (*Volatile(p) <= n) {}
      __threadfence();
      p[32 + n] = p[1 + n];
    }
  }
}
__global__ void ping_pong(int* p) {
  if (T) return;
  for (int n = 0; n < 5; ++n) {
    while (*Volatile(p) % 2 != B) {}
    *Volatile(p) = 2 * n + B + 1;
  }
}
__global__ void counted_under_a_lock(int* p) {
  if (T) return;
  while (atomicCAS(p, 0, 1) != 0) {}
  *Volatile(p + 1) = *Volatile(p + 1) + 1;
  atomicExch(p, 0);
}

template <class Kernel, class X>
int launched(Kernel kernel, X*, int blocks, int threads) {
  X* data;
  cudaMalloc(&data, 1024 * sizeof(X));
  for (int launch = 0; launch < 2; ++launch) {
    cudaMemset(data, 0, 1024 * sizeof(X));
    kernel<<<blocks, threads>>>(data);
  }
  return cudaDeviceSynchronize();
}
#define FUNCTION(kernel, type, blocks, threads) \\
  extern "C" int run_##kernel() { return launched(kernel, static_cast<type*>(nullptr), blocks, threads); }
#define OF(kernel, type, name, blocks, threads) \\
  extern "C" int run_##kernel##_##name() { return launched(kernel<type>, (type*)nullptr, blocks, threads); }
#define OF_TYPE(type, name) \\
  OF(one_place, type, name, 2, 1) \\
  OF(neighbours, type, name, 9, 33) \\
  OF(halo, type, name, 9, 33) \\
  OF(flag_of_all, type, name, 9, 64) \\
  OF(swapped, type, name, 1, 64) \\
  OF(swapped_rightly, type, name, 1, 64) \\
  OF(in_place, type, name, 9, 33)
OF_TYPE(float, float)
OF_TYPE(half, half)
OF_TYPE(__nv_bfloat16, bfloat16)
OF_TYPE(uint8_t, uint8)
OF_TYPE(char, char)
FUNCTION(bytes_of_a_word, uint8_t, 2, 32)
FUNCTION(read_as_words, uint8_t, 2, 1)
FUNCTION(lanes_into_one, int, 1, 64)
FUNCTION(lanes_in_pairs, int, 1, 64)
FUNCTION(lanes_in_turns, int, 1, 32)
FUNCTION(lanes_into_bytes, uint8_t, 1, 32)
FUNCTION(lanes_by_volatile, int, 1, 32)
FUNCTION(lanes_alike, int, 1, 64)
FUNCTION(lanes_apart, int, 1, 64)
FUNCTION(gathered_in_place, int, 1, 32)
FUNCTION(gathered_by_warps, int, 1, 64)
FUNCTION(gathered_and_scattered, int, 1, 32)
FUNCTION(gathered_rightly, int, 1, 32)
FUNCTION(permuted_in_place, int, 1, 32)
FUNCTION(gathered_elsewhere, int, 1, 32)
FUNCTION(scattered_and_read, int, 1, 32)
FUNCTION(scattered_by_warps, int, 1, 64)
FUNCTION(scattered_rightly, int, 1, 32)
FUNCTION(marked_alike, int, 1, 64)
FUNCTION(of_the_warp_after_the_next, int, 1, 128)
FUNCTION(counted, int, 4, 1)
FUNCTION(counted_by_lanes, int, 1, 32)
FUNCTION(counted_by_warps, int, 1, 64)
FUNCTION(blocks_by_volatile, int, 4, 32)
FUNCTION(slot_read_behind_the_add, int, 1, 32)
FUNCTION(queue_of_one_writer, int, 2, 32)
FUNCTION(ping_pong, int, 2, 32)
FUNCTION(counted_under_a_lock, int, 4, 32)
"""
LINES = marked_lines(SOURCE)
TYPES = ("float", "half", "bfloat16", "uint8", "char")
OF_TYPES = ("one_place", "halo", "swapped")
RIGHT = (
    *(
        f"{kernel}_{name}"
        for kernel in ("neighbours", "flag_of_all", "swapped_rightly", "in_place")
        for name in TYPES
    ),
    *("bytes_of_a_word", "lanes_alike", "lanes_apart", "gathered_rightly", "permuted_in_place"),
    *("scattered_rightly", "marked_alike"),
    *("gathered_elsewhere", "queue_of_one_writer", "ping_pong", "counted_under_a_lock"),
)
WRONG = {
    **{f"{kernel}_{name}": LINES[kernel] for kernel in OF_TYPES for name in TYPES},
    **{kernel: lines for kernel, lines in LINES.items() if kernel not in OF_TYPES},
}


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "narrow.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_what_meets_nowhere_or_is_ordered_is_no_race(kernel: str, options: Options, library: Path) -> None:
    assert races(library, f"run_{kernel}", options, set()) == []


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", WRONG)
def test_a_race_names_its_lines(kernel: str, options: Options, library: Path) -> None:
    found = races(library, f"run_{kernel}", options, {"race_global"})
    assert found
    assert all(lines <= WRONG[kernel] for lines in found)
