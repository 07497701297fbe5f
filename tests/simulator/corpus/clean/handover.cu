// Right: data handed over without a barrier of the block, as the memory model allows.
#include "../corpus.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

static std::vector<int> reversed(std::vector<int> list, int part) {
  auto result = list;
  for (std::size_t i = 0; i < list.size(); ++i) result[i] = list[i / part * part + part - 1 - i % part];
  return result;
}

// --- flag_in_shared_memory: one warp waits for another by a fence and an atomic flag
__global__ void hand_over(const int* in, int* out) {
  __shared__ int data[32];
  __shared__ int flag;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    data[lane] = in[lane];
    __threadfence_block();
    __syncwarp();
    if (lane == 0) atomicExch(&flag, 1);
  } else {
    while (atomicAdd(&flag, 0) == 0) {
    }
    __syncwarp();
    __threadfence_block();
    out[lane] = data[31 - lane];
  }
}
PROGRAM(flag_in_shared_memory) {
  const auto in = numbers<int>(32);
  Array<int> din(in), out(32);
  hand_over<<<1, 64>>>(din, out);
  return close(out.host(), reversed(in, 32));
}

// --- volatile_flag_in_shared_memory: a chain of warps, each waiting for the one before
__global__ void chain(const int* in, int* out) {
  __shared__ int data[4][32];
  __shared__ volatile int turn;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  while (turn != warp) {
  }
  __threadfence_block();
  __syncwarp();
  data[warp][lane] = in[threadIdx.x] + (warp ? data[warp - 1][31 - lane] : 0);
  __threadfence_block();
  __syncwarp();
  if (lane == 0) turn = warp + 1;
  out[threadIdx.x] = data[warp][lane];
}
PROGRAM(volatile_flag_in_shared_memory) {
  const auto in = numbers<int>(128);
  Array<int> din(in), out(128);
  chain<<<1, 128>>>(din, out);
  auto expected = in;
  for (int i = 32; i < 128; ++i) expected[i] += expected[i / 32 * 32 - 1 - i % 32];
  return close(out.host(), expected);
}

// --- double_buffered_copies: the next tile is copied while this one is used
__global__ void sums(int stages, const float* in, float* out) {
  __shared__ float s[2][128];
  const int t = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&s[0][t], &in[t], sizeof(float));
  __pipeline_commit();
  for (int stage = 0; stage < stages; ++stage) {
    if (stage + 1 < stages) __pipeline_memcpy_async(&s[(stage + 1) % 2][t], &in[(stage + 1) * 128 + t], sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += s[stage % 2][127 - t];
    __syncthreads();
  }
  out[t] = sum;
}
PROGRAM(double_buffered_copies) {
  const int stages = 5;
  const auto in = numbers(stages * 128);
  Array<float> din(in), out(128);
  sums<<<1, 128>>>(stages, din, out);
  std::vector<float> expected(128, 0);
  for (int i = 0; i < stages * 128; ++i) expected[127 - i % 128] += in[i];
  return close(out.host(), expected);
}

// --- barrier_in_two_halves: arrive, do something else, wait; again and again
__global__ void phases(int rounds, const int* in, int* out) {
  __shared__ int s[2][96];
  __shared__ alignas(Barrier) char storage[sizeof(Barrier)];
  Barrier& barrier = *reinterpret_cast<Barrier*>(storage);
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 96);
  __syncthreads();
  int x = in[t];
  for (int round = 0; round < rounds; ++round) {
    s[round % 2][t] = x;
    auto token = barrier.arrive();
    const int own = x * 3;
    barrier.wait(std::move(token));
    x = own - s[round % 2][95 - t] * 2;
  }
  barrier.arrive_and_wait();
  out[t] = x;
}
PROGRAM(barrier_in_two_halves) {
  const auto in = numbers<int>(96);
  Array<int> din(in), out(96);
  phases<<<1, 96>>>(3, din, out);
  auto expected = in;
  for (int round = 0; round < 3; ++round) {
    const auto last = expected;
    for (int t = 0; t < 96; ++t) expected[t] = last[t] * 3 - last[95 - t] * 2;
  }
  return close(out.host(), expected);
}

// --- copies_counted_by_a_barrier: memcpy_async completes a phase of the barrier
__global__ void copy_and_reverse(int parts, const int* in, int* out) {
  __shared__ int s[128];
  __shared__ alignas(Barrier) char storage[sizeof(Barrier)];
  Barrier& barrier = *reinterpret_cast<Barrier*>(storage);
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 128);
  __syncthreads();
  for (int part = 0; part < parts; ++part) {
    cuda::memcpy_async(&s[t], &in[part * 128 + t], cuda::aligned_size_t<4>(4), barrier);
    barrier.arrive_and_wait();
    out[part * 128 + t] = s[127 - t];
    barrier.arrive_and_wait();
  }
}
PROGRAM(copies_counted_by_a_barrier) {
  const auto in = numbers<int>(3 * 128);
  Array<int> din(in), out(3 * 128);
  copy_and_reverse<<<1, 128>>>(3, din, out);
  return close(out.host(), reversed(in, 128));
}

// --- pipeline_of_the_block: cuda::pipeline with its state in shared memory
__global__ void piped(int parts, const int* in, int* out) {
  __shared__ int s[2][128];
  __shared__ alignas(16) char storage[sizeof(cuda::pipeline_shared_state<cuda::thread_scope_block, 2>)];
  auto* const state = reinterpret_cast<cuda::pipeline_shared_state<cuda::thread_scope_block, 2>*>(storage);
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, state);
  for (int part = 0; part <= parts; ++part) {
    if (part < parts) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[part % 2], in + part * 128, cuda::aligned_size_t<16>(512), pipe);
      pipe.producer_commit();
    }
    if (part == 0) continue;
    pipe.consumer_wait();
    out[(part - 1) * 128 + threadIdx.x] = s[(part - 1) % 2][127 - threadIdx.x];
    pipe.consumer_release();
  }
}
PROGRAM(pipeline_of_the_block) {
  const auto in = numbers<int>(4 * 128);
  Array<int> din(in), out(4 * 128);
  piped<<<1, 128>>>(4, din, out);
  return close(out.host(), reversed(in, 128));
}

// --- group_copy: cooperative groups copy a tile and wait for it
__global__ void group_copy_and_reverse(const int* in, int* out) {
  __shared__ alignas(16) int s[256];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof s);
  cg::wait(block);
  out[threadIdx.x] = s[255 - threadIdx.x];
}
PROGRAM(group_copy) {
  const auto in = numbers<int>(256);
  Array<int> din(in), out(256);
  group_copy_and_reverse<<<1, 256>>>(din, out);
  return close(out.host(), reversed(in, 256));
}
