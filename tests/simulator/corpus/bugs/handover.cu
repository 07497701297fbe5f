// Data handed over without a barrier of the block: asynchronous copies, flags, mbarriers.
#include "../corpus.h"
#include <cuda/barrier>
#include <cuda_pipeline.h>

// --- copy_that_nobody_waits_for: __syncthreads() does not wait for asynchronous copies
__global__ void reverse(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &in[t], sizeof(int));
  __pipeline_commit();
  __syncthreads();
  out[t] = s[63 - t];  // BUG racecheck race_shared
}
PROGRAM(copy_that_nobody_waits_for) {
  Array<int> in(numbers<int>(64)), out(64);
  reverse<<<1, 64>>>(in, out);
  finish();
  return true;
}

// --- copy_waited_for_without_barrier: each thread waits for its own copies, and reads those of others
__global__ void reverse_without_barrier(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &in[t], sizeof(int));  // BUG racecheck race_shared
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = s[63 - t];  // BUG racecheck race_shared // ALSO initcheck uninit_shared
}
PROGRAM(copy_waited_for_without_barrier) {
  Array<int> in(numbers<int>(64)), out(64);
  reverse_without_barrier<<<1, 64>>>(in, out);
  finish();
  return true;
}

// --- pipeline_one_stage_early: two copies are under way, and the wait leaves the one that is needed
__global__ void sums(int stages, const float* in, float* out) {
  __shared__ float s[2][128];
  const int t = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&s[0][t], &in[t], sizeof(float));
  __pipeline_commit();
  for (int stage = 0; stage < stages; ++stage) {
    if (stage + 1 < stages) __pipeline_memcpy_async(&s[(stage + 1) % 2][t], &in[(stage + 1) * 128 + t], sizeof(float));  // BUG racecheck race_shared
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    sum += s[stage % 2][127 - t];  // BUG racecheck race_shared
    __syncthreads();
  }
  out[t] = sum;
}
PROGRAM(pipeline_one_stage_early) {
  Array<float> in(numbers(4 * 128)), out(128);
  sums<<<1, 128>>>(4, in, out);
  finish();
  return true;
}

// --- flag_without_fence: the flag may be seen before the data
__global__ void hand_over(const int* in, int* out) {
  __shared__ int data[32];
  __shared__ int flag;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    data[lane] = in[lane];  // BUG racecheck race_shared
    __syncwarp();
    if (lane == 0) atomicExch(&flag, 1);
  } else {
    while (atomicAdd(&flag, 0) == 0) {
    }
    out[lane] = data[31 - lane];  // BUG racecheck race_shared
  }
}
PROGRAM(flag_without_fence) {
  Array<int> in(numbers<int>(32)), out(32);
  hand_over<<<1, 64>>>(in, out);
  finish();
  return true;
}

// --- arrival_without_wait: who only arrives at a barrier is not ordered after the others
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void arrive_only(const int* in, int* out) {
  __shared__ int s[64];
  __shared__ alignas(Barrier) char storage[sizeof(Barrier)];
  Barrier* const barrier = reinterpret_cast<Barrier*>(storage);
  const int t = threadIdx.x;
  if (t == 0) init(barrier, 64);
  __syncthreads();
  s[t] = in[t];  // BUG racecheck race_shared
  (void)barrier->arrive();
  out[t] = s[63 - t];  // BUG racecheck race_shared // ALSO initcheck uninit_shared
}
PROGRAM(arrival_without_wait) {
  Array<int> in(numbers<int>(64)), out(64);
  arrive_only<<<1, 64>>>(in, out);
  finish();
  return true;
}

// --- counter_reset_by_the_first_block: the other blocks may have counted before
__global__ void count_all(unsigned* counter) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *counter = 0;  // BUG racecheck race_global
  __syncthreads();
  atomicAdd(counter, 1);  // BUG racecheck race_global
}
PROGRAM(counter_reset_by_the_first_block) {
  Array<unsigned> counter(1);
  counter.zero();
  count_all<<<4, 64>>>(counter);
  finish();
  return true;
}
