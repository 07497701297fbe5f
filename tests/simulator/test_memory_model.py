"""The PTX ISA's memory model, rule by rule: a program that keeps the rule, and its twin that breaks it.

Sections are those of the chapter "Memory Consistency Model" of the PTX ISA, where nothing else is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call, marked_lines

from grader.records.sentences import sentence
from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
#define T threadIdx.x
#define B blockIdx.x
#define RULE template <bool Broken> __global__ void
using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
using NarrowFlag = cuda::atomic_ref<int, cuda::thread_scope_block>;

// "Scope": operations of block scope are morally strong within a block alone.
RULE counter_of_the_grid(int* n, int*, const int*) { Broken ? atomicAdd_block(n, 1) : atomicAdd(n, 1); }
RULE counter_behind_fences(int* n, int* q, const int* p) {
  if (T) return;
  q[B] = p[B];
  __threadfence();
  const bool last = (Broken ? atomicAdd_block(n, 1) : atomicAdd(n, 1)) == gridDim.x - 1;
  __threadfence();
  if (last) q[16] = q[0] + q[1];
}
RULE counter_of_each_block(int* n, int*, const int*) { atomicAdd_block(n + (Broken ? B / 2 : B), 1); }
RULE flag_and_scope(int* n, int* q, const int* p) {
  if (T) return;
  if (B == 0) {
    n[8] = p[0];
    if (Broken) NarrowFlag(*n).store(1, cuda::memory_order_release);
    else Flag(*n).store(1, cuda::memory_order_release);
  } else {
    if (Broken) while (NarrowFlag(*n).load(cuda::memory_order_acquire) == 0) {}
    else while (Flag(*n).load(cuda::memory_order_acquire) == 0) {}
    q[B] = n[8];
  }
}
RULE fence_and_scope(int* n, int* q, const int* p) {
  if (T) return;
  if (B == 0) {
    n[8] = p[0];
    if (Broken) __threadfence_block(); else __threadfence();  // narrow
    atomicExch(n, 1);
  } else {
    while (atomicAdd(n, 0) == 0) {}
    __threadfence();
    q[B] = n[8];
  }
}
// "Morally strong operations": they overlap completely.
RULE words_and_halves(int* n, int*, const int*) {
  auto* const word = reinterpret_cast<unsigned long long*>(n);
  if (Broken && B % 2) atomicAdd(n + 1, 1); else atomicAdd(word, 1ull);
}
// "Release and Acquire Patterns": a fence stands before the write, and one behind the read.
RULE release_side(int* n, int* q, const int* p) {
  if (T) return;
  q[B] = p[B];
  if (!Broken) __threadfence();
  const bool last = atomicAdd(n, 1) == gridDim.x - 1;  // counted
  __threadfence();  // late
  if (last) q[16] = q[0] + q[1];
}
RULE acquire_side(int* n, int* q, const int* p) {
  if (T) return;
  q[B] = p[B];
  __threadfence();  // early
  const bool last = atomicAdd(n, 1) == gridDim.x - 1;  // seen
  if (!Broken) __threadfence();
  if (last) q[16] = q[0] + q[1];
}
// "Observation Order": atomics between a write and a read hand on what it has released; other writes do not.
RULE through_an_atomic(int* n, int* q, const int* p) {
  if (T) return;
  if (B == 0) {
    n[8] = p[0];
    __threadfence();
    atomicExch(n, 1);
  } else if (B == 1) {
    while (atomicAdd(n, 0) != 1) {}
    if (Broken) *static_cast<volatile int*>(n) = 2; else atomicAdd(n, 1);
  } else if (B == 2) {
    while (atomicAdd(n, 0) != 2) {}
    __threadfence();
    q[B] = n[8];
  }
}
// "Causality Order" is transitive, and begins with what the releasing thread knows.
RULE from_hand_to_hand(int* n, int* q, const int* p) {
  if (T) return;
  if (B == 0) {
    n[8] = p[0];
    __threadfence();
    atomicExch(n, 1);
  } else if (B == 1) {
    while (atomicAdd(n, 0) == 0) {}
    if (!Broken) __threadfence();
    atomicExch(n + 1, 1);
  } else if (B == 2) {
    while (atomicAdd(n + 1, 0) == 0) {}
    __threadfence();
    q[B] = n[8];
  }
}
RULE one_for_its_block(int* n, int* q, const int* p) {
  if (B == 0) {
    n[8 + T] = p[T];
    if (!Broken) __syncthreads();
    if (T == 0) Flag(*n).store(1, cuda::memory_order_release);
  } else {
    if (T == 0) while (Flag(*n).load(cuda::memory_order_acquire) == 0) {}
    __syncthreads();
    q[B * blockDim.x + T] = n[8 + (T ^ 40)];
  }
}
// "Fence-SC": all fences are in one order, so those of threads that met at a barrier before the flag count.
RULE fences_of_others(int* n, int* q, const int* p) {
  if (B == 0) {
    n[8 + T] = p[T];
    if (!Broken || T == 0) __threadfence();
    __syncthreads();
    if (T == 0) *static_cast<volatile int*>(n) = 1;
  } else {
    if (T == 0) while (*static_cast<volatile int*>(n) == 0) {}
    __syncthreads();
    __threadfence();
    q[B * blockDim.x + T] = n[8 + (T ^ 40)];
  }
}
// "bar.warp.sync" orders the lanes that its mask names, cooperative groups' sync() those of the group.
RULE lanes_of_a_mask(int*, int* q, const int* p) {
  __shared__ int s[64];
  s[T] = p[T];
  if (T % 32 < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);
  q[B * blockDim.x + T] = s[T ^ (Broken ? 16 : 15)];
}
RULE threads_of_a_tile(int*, int* q, const int* p) {
  __shared__ int s[64];
  const auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
  s[T] = p[T];
  tile.sync();
  q[B * blockDim.x + T] = s[T ^ (Broken ? 8 : 7)];
}
// "shfl.sync", "vote.sync" and "match.sync" do not.
RULE shuffle(int*, int* q, const int* p) {
  __shared__ int s[64];
  s[T] = p[T];
  const int x = __shfl_xor_sync(~0u, p[T], 1);
  if (!Broken) __syncwarp();
  q[B * blockDim.x + T] = s[T ^ 1] + x;
}
RULE vote(int*, int* q, const int* p) {
  __shared__ int s[64];
  s[T] = p[T];
  const bool x = __any_sync(~0u, p[T] == 3);
  if (!Broken) __syncwarp();
  q[B * blockDim.x + T] = s[T ^ 1] + x;
}
RULE match(int*, int* q, const int* p) {
  __shared__ int s[64];
  s[T] = p[T];
  const unsigned x = __match_any_sync(~0u, p[T]);
  if (!Broken) __syncwarp();
  q[B * blockDim.x + T] = s[T ^ 1] + x;
}
// "mbarrier": an arrival releases what its own thread has done before it.
RULE arrival_of_one_lane(int*, int* q, const int* p) {
  __shared__ int s[32];
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  if (T == 0) init(&b, 33);
  __syncthreads();
  if (T < 32) {
    s[T] = p[T];
    if (!Broken) __syncwarp();
    if (T == 0) (void)b.arrive();
  } else {
    b.arrive_and_wait();
    q[B * 32 + T - 32] = s[63 - T];
  }
}
RULE arrival_before_the_write(int*, int* q, const int* p) {
  __shared__ int s[32];
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  if (T == 0) init(&b, 64);
  __syncthreads();
  if (T < 32) {
    if (!Broken) s[T] = p[T];
    auto phase = b.arrive();
    if (Broken) s[T] = p[T];
    b.wait(std::move(phase));
  } else {
    s[T - 32];
    b.arrive_and_wait();
    q[B * 32 + T - 32] = s[63 - T];
  }
}
// "bar.sync", "bar.arrive": who only arrives learns nothing.
RULE arrives_and_reads(int*, int* q, const int* p) {
  __shared__ int s[64];
  s[T] = 0;
  __syncthreads();
  if (T < 32) {
    s[T] = p[T];
    asm volatile("barrier.sync 1, 64;" ::: "memory");
  } else {
    if (Broken) asm volatile("barrier.arrive 1, 64;" ::: "memory");
    else asm volatile("barrier.sync 1, 64;" ::: "memory");
    q[B * 32 + T - 32] = s[63 - T];
  }
}
// A barrier orders the lanes that come to it.
RULE halves_at_barriers(int*, int* q, const int* p) {
  __shared__ int s[64];
  s[T] = p[T];
  if (T % 32 < 16) asm volatile("barrier.sync 1, 32;" ::: "memory");
  else asm volatile("barrier.sync 2, 32;" ::: "memory");
  q[B * 64 + T] = s[T ^ (Broken ? 48 : 32)];
}
// Flags in shared memory: volatile is relaxed, and atomics are, too.
RULE volatile_flag(int*, int* q, const int* p) {
  __shared__ int s;
  __shared__ volatile int flag;
  if (T == 0) flag = 0;
  __syncthreads();
  if (T == 0) {
    s = p[0];
    __threadfence_block();
    flag = 1;
  } else if (T == 32) {
    while (!flag) {}
    if (!Broken) __threadfence_block();
    q[B] = s;
  }
}
RULE head_of_a_ring(int*, int* q, const int* p) {
  __shared__ int ring[4], head;
  if (T == 0) head = 0;
  __syncthreads();
  if (T == 0) {
    ring[0] = p[0];
    if (!Broken) __threadfence_block();
    atomicAdd(&head, 1);
  } else if (T == 32) {
    while (atomicAdd(&head, 0) == 0) {}
    __threadfence_block();
    q[B] = ring[0];
  }
}
// What a strong read has observed precedes what its thread does next there; another write does not.
RULE counter_taken_back(int* n, int*, const int*) {
  if (T) return;
  __threadfence();
  const bool last = atomicAdd(n, 1) == gridDim.x - 1;
  if (Broken ? B == 1 : last) *n = 0;
}
// On purpose: a plain look decides whether an atomic maximum is worth it. What it misses the atomic sees.
RULE look_before_a_maximum(int* n, int* q, const int* p) {
  const int x = p[T] + B * T;
  if (Broken) q[B * 64 + T] = *n;
  if (*n < x) atomicMax(n, x);
}
// Milder on purpose: who has given a value to another lane has read what it was made of.
RULE write_behind_a_shuffle(int*, int* q, const int* p) {
  __shared__ int row[64];
  row[T] = p[T] + T;
  __syncwarp();
  int sum = row[T] + 1;
  if (!Broken) sum += __shfl_xor_sync(~0u, sum, 1);
  row[T ^ 1] = sum;
  __syncwarp();
  q[B * 64 + T] = row[T];
}
RULE sum_by_compare_and_swap(int* n, int*, const int* p) {
  __threadfence();
  int old = *n, seen;
  do {
    seen = old;
    old = Broken && T == 0 ? (*n = seen + 1, seen) : atomicCAS(n, seen, seen + p[T]);
  } while (old != seen);
}

template <class Kernel> int launched(Kernel kernel) {
  int *n, *p, *q;
  cudaMalloc(&n, 1024);
  cudaMalloc(&p, 1024);
  cudaMalloc(&q, 4096);
  cudaMemset(n, 0, 1024);
  cudaMemset(p, 1, 1024);
  cudaMemset(q, 0, 4096);
  kernel<<<4, 64>>>(n, q, p);
  return cudaDeviceSynchronize();
}
"""
KINDS = {
    "counter_of_the_grid": "race_global",
    "counter_behind_fences": "race_global",
    "counter_of_each_block": "race_global",
    "flag_and_scope": "race_global",
    "fence_and_scope": "race_global",
    "words_and_halves": "race_global",
    "release_side": "race_global",
    "acquire_side": "race_global",
    "through_an_atomic": "race_global",
    "from_hand_to_hand": "race_global",
    "one_for_its_block": "race_global",
    "fences_of_others": "race_global",
    "lanes_of_a_mask": "race_warp",
    "threads_of_a_tile": "race_warp",
    "shuffle": "race_warp",
    "vote": "race_warp",
    "match": "race_warp",
    "arrival_of_one_lane": "race_shared",
    "arrival_before_the_write": "race_shared",
    "arrives_and_reads": "race_shared",
    "halves_at_barriers": "race_shared",
    "volatile_flag": "race_shared",
    "head_of_a_ring": "race_shared",
    "counter_taken_back": "race_global",
    "look_before_a_maximum": "race_global",
    "write_behind_a_shuffle": "race_warp",
    "sum_by_compare_and_swap": "race_global",
}
# What the message of a broken one says, where that follows from what the block has done.
REMEDIES = {
    "flag_and_scope": "is of block scope and orders nothing for other blocks",
    "fence_and_scope": "the __threadfence_block() (line {narrow}) orders nothing for other blocks",
    "release_side": "fence (line {late}) stands behind the flag or counter (line {counted}); put it before",
    "acquire_side": "fence (line {early}) stands before the look at the flag or counter (line {seen}); put",
    "lanes_of_a_mask": "a __syncwarp() of both between them is missing",
    "arrival_of_one_lane": "speaks for another lane of that warp alone",
    "volatile_flag": "a __threadfence_block() behind the look at the flag is missing",
}


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    functions = [
        f'extern "C" int {kernel}_{word}() {{ return launched({kernel}<{word}>); }}'
        for kernel in KINDS
        for word in ("false", "true")
    ]
    return nvcc(SOURCE + "\n".join(functions), "memory_model.so", *LIBRARY)


def seen(library: Path, function: str, options: Options) -> dict[str, list[str]]:
    """The messages of a function's findings, by their kinds."""
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        messages: dict[str, list[str]] = {}
        for finding in simulator.take_findings():
            messages.setdefault(finding.kind, []).append(str(sentence(finding)))
    return messages


@pytest.mark.parametrize("options", EVERY_WAY)
def test_who_keeps_the_rules_has_no_finding(options: Options, library: Path) -> None:
    assert {kernel: seen(library, f"{kernel}_false", options) for kernel in KINDS} == {
        kernel: {} for kernel in KINDS
    }


@pytest.mark.parametrize("order", Order)
def test_who_breaks_a_rule_races(order: Order, library: Path) -> None:
    options = Options(order=order, threads=1)
    kinds = {kernel: set(seen(library, f"{kernel}_true", options)) for kernel in KINDS}
    assert kinds == {kernel: {kind} for kernel, kind in KINDS.items()}


@pytest.mark.parametrize("kernel", REMEDIES)
def test_a_message_says_what_is_missing_and_where(kernel: str, library: Path) -> None:
    (messages,) = seen(library, f"{kernel}_true", Options()).values()
    lines = {word: min(lines) for word, lines in marked_lines(SOURCE).items()}
    remedy = REMEDIES[kernel].format(**lines)
    assert any(remedy in message for message in messages), messages
