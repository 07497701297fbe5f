// Kernels that never end. They are not run on a GPU: no tool there stops them.
#include "../corpus.h"
#include <cooperative_groups.h>

// --- step_never_reaches_zero: a rounded-up half of one is one
__global__ void tree(float* data) {
  __shared__ float s[64];
  s[threadIdx.x] = data[threadIdx.x];
  for (int step = 32; step > 0; step = (step + 1) / 2) {  // BUG hang budget
    __syncthreads();  // BUG hang budget
    if (threadIdx.x < step && threadIdx.x + step < 64) s[threadIdx.x] += s[threadIdx.x + step];  // BUG hang budget
    __syncthreads();  // BUG hang budget
  }
  data[threadIdx.x] = s[threadIdx.x];
}
PROGRAM(step_never_reaches_zero) {
  Array<float> data(numbers(64));
  tree<<<1, 64>>>(data);
  finish();
  return true;
}

// --- flag_that_nobody_sets: block 0 waits for a flag that is only set if there are more than eight blocks
__global__ void wait_for_flag(volatile int* flag, int* out) {
  if (blockIdx.x == 8 && threadIdx.x == 0) *flag = 1;
  if (blockIdx.x == 0) {
    while (*flag == 0) {}  // BUG hang budget
  }
  out[blockIdx.x] = 1;
}
PROGRAM(flag_that_nobody_sets) {
  Array<int> flag(1), out(8);
  flag.zero();
  wait_for_flag<<<8, 32>>>(flag, out);
  finish();
  return true;
}

// --- consumer_waits_once_more: named barriers between two warps, and one round too many on one side
__device__ void named_barrier(int number, int threads) { asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory"); }  // BUG hang deadlock
__global__ void hand_over(int rounds, const float* in, float* out) {
  __shared__ float box[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int r = 0; r < rounds; ++r) {
      box[lane] = in[r * 32 + lane];
      named_barrier(1, 64);
      named_barrier(2, 64);
    }
  } else {
    float sum = 0;
    for (int r = 0; r <= rounds; ++r) {
      named_barrier(1, 64);  // BUG hang deadlock
      sum += box[lane];
      named_barrier(2, 64);
    }
    out[lane] = sum;
  }
}
PROGRAM(consumer_waits_once_more) {
  Array<float> in(numbers(128)), out(32);
  hand_over<<<1, 64>>>(4, in, out);
  finish();
  return true;
}

// --- barrier_counts_too_many: a barrier of 96 threads in a block of three warps, of which one has nothing to do
__global__ void three_warps(float* data) {
  __shared__ float s[64];
  if (threadIdx.x < 64) {
    s[threadIdx.x] = data[threadIdx.x];
    asm volatile("barrier.sync 3, 96;" ::: "memory");  // BUG hang deadlock
    data[threadIdx.x] = s[63 - threadIdx.x];
  }
}
PROGRAM(barrier_counts_too_many) {
  Array<float> data(numbers(64));
  three_warps<<<1, 96>>>(data);
  finish();
  return true;
}

// --- lock_taken_twice: a function that locks is called under the lock
__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {}  // BUG hang budget
  __threadfence();
}
__device__ void unlock(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}
__global__ void add_twice(int* mutex, volatile float* total) {
  if (threadIdx.x > 0) return;
  lock(mutex);
  *total = *total + 1;
  lock(mutex);
  *total = *total + 1;
  unlock(mutex);
  unlock(mutex);
}
PROGRAM(lock_taken_twice) {
  Array<int> mutex(1);
  Array<float> total(1);
  mutex.zero();
  total.zero();
  add_twice<<<2, 32>>>(mutex, total);
  finish();
  return true;
}

// --- one_block_skips_the_grid_barrier: a block without work returns, and the others wait for it
__global__ void sum_of_neighbours(int n, float* parts, float* sums) {
  if (blockIdx.x >= n) return;
  parts[blockIdx.x * 32 + threadIdx.x] = 1;
  cooperative_groups::this_grid().sync();  // BUG hang budget
  sums[blockIdx.x * 32 + threadIdx.x] = parts[(blockIdx.x + 1) % n * 32 + threadIdx.x];
}
PROGRAM(one_block_skips_the_grid_barrier) {
  int n = 3;
  Array<float> parts(4 * 32), sums(4 * 32);
  float *p = parts, *s = sums;
  void* arguments[] = {&n, &p, &s};
  CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(sum_of_neighbours), dim3(4), dim3(32), arguments, 0, nullptr));
  finish();
  return true;
}
