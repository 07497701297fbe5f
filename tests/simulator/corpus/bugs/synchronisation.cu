// Barriers that not everybody reaches, and warp-wide operations whose mask is a lie.
#include "../corpus.h"

// --- barrier_in_condition: only the threads that load wait
__global__ void load_and_sum(int n, const float* in, float* out) {
  __shared__ float s[128];
  s[threadIdx.x] = 0;
  if (threadIdx.x < 100) {
    s[threadIdx.x] = in[blockIdx.x * 100 + threadIdx.x];
    __syncthreads();  // BUG synccheck divergent_barrier
  }
  float sum = 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 100; ++i) sum += s[i];
    out[blockIdx.x] = sum;
  }
}
PROGRAM(barrier_in_condition) {
  Array<float> in(numbers(400)), out(4);
  load_and_sum<<<4, 128>>>(100, in, out);
  finish();
  return true;
}

// --- return_before_the_barrier: threads behind the end of the row leave, and the rest waits without them
__global__ void reverse(int n, const float* in, float* out) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  if (t >= n) return;
  s[t] = in[t];
  __syncthreads();  // BUG synccheck divergent_barrier
  out[t] = s[n - 1 - t];
}
PROGRAM(return_before_the_barrier) {
  Array<float> in(numbers(200)), out(200);
  reverse<<<1, 256>>>(200, in, out);
  finish();
  return true;
}

// --- barrier_in_uneven_loop: a grid-stride loop with a barrier, and an n that not all threads share alike
__global__ void running_maximum(int n, const float* in, float* out) {
  __shared__ float s[128];
  float top = 0;
  for (int i = threadIdx.x; i < n; i += 128) {
    s[threadIdx.x] = in[i];
    __syncthreads();  // BUG synccheck divergent_barrier
    top = fmaxf(top, s[0]);
    __syncthreads();  // BUG synccheck divergent_barrier
  }
  out[threadIdx.x] = top;
}
PROGRAM(barrier_in_uneven_loop) {
  Array<float> in(numbers(300)), out(128);
  running_maximum<<<1, 128>>>(300, in, out);
  finish();
  return true;
}

// --- two_barriers_for_one: both branches have a barrier of their own
__global__ void even_and_odd(const float* in, float* out) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  if (t < 32) {
    s[t] = in[t];
    __syncthreads();  // BUG synccheck divergent_barrier
    out[t] = s[t + 32];
  } else {
    s[t] = -in[t];
    __syncthreads();  // BUG synccheck divergent_barrier
    out[t] = 2 * s[t - 32];
  }
}
PROGRAM(two_barriers_for_one) {
  Array<float> in(numbers(64)), out(64);
  even_and_odd<<<1, 64>>>(in, out);
  finish();
  return true;
}

// --- shuffle_of_half_a_warp: half of the warp shuffles with a mask of all, the other half waits at the barrier
__global__ void sum_of_16(const float* in, float* out) {
  float x = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    for (int step = 8; step > 0; step /= 2) x += __shfl_down_sync(0xffffffffu, x, step);  // BUG synccheck missing_lanes
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = x;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[0] += out[1];
}
PROGRAM(shuffle_of_half_a_warp) {
  Array<float> in(numbers(64)), out(2);
  sum_of_16<<<1, 64>>>(in, out);
  finish();
  return true;
}

// --- mask_without_the_caller: all lanes shuffle, the mask names the lower half
__global__ void neighbours(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t] = __shfl_down_sync(0x0000ffffu, in[t], 1);  // BUG synccheck missing_lanes
}
PROGRAM(mask_without_the_caller) {
  Array<int> in(numbers<int>(32)), out(32);
  neighbours<<<1, 32>>>(in, out);
  finish();
  return true;
}

// --- return_before_the_shuffle: threads behind the end leave, and the last warp still shuffles with all lanes
__global__ void sum(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffffu, x, step);  // BUG synccheck exited_lanes
  if (threadIdx.x % 32 == 0) atomicAdd(out, x);
}
PROGRAM(return_before_the_shuffle) {
  const int n = 110;
  Array<float> in(numbers(n)), out(1);
  out.zero();
  sum<<<1, 128>>>(n, in, out);
  finish();
  return true;
}

// --- block_of_48: the second warp has 16 threads and shuffles as if it had 32
__global__ void maximum(const float* in, float* out) {
  __shared__ float s[2];
  float x = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));  // BUG synccheck exited_lanes
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) *out = fmaxf(s[0], s[1]);
}
PROGRAM(block_of_48) {
  Array<float> in(numbers(48)), out(1);
  maximum<<<1, 48>>>(in, out);
  finish();
  return true;
}

// --- iterates_until_settled: a loop that each thread leaves when its own value has settled, with a barrier inside
__global__ void settle(float* data) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  float x = data[t];
  while (x > 1) {
    s[t] = x;
    __syncthreads();  // BUG synccheck divergent_barrier
    x = s[t] / 2;
    __syncthreads();  // BUG synccheck divergent_barrier
  }
  data[t] = x;
}
PROGRAM(iterates_until_settled) {
  Array<float> data(numbers(64));
  settle<<<1, 64>>>(data);
  finish();
  return true;
}

// --- ballot_in_both_branches: both branches vote, each for all lanes; two votes are not one
__global__ void vote_apart(const int* in, unsigned* out) {
  const int t = threadIdx.x;
  unsigned votes;
  if (in[t] > 7) {
    votes = __ballot_sync(0xffffffffu, in[t] % 2);  // BUG synccheck missing_lanes
    votes = __brev(votes);
  } else {
    votes = __ballot_sync(0xffffffffu, in[t] % 3 == 0);  // BUG synccheck missing_lanes
    votes = votes * 3 + 1;
  }
  out[t] = votes;
}
PROGRAM(ballot_in_both_branches) {
  Array<int> in(numbers<int>(32));
  Array<unsigned> out(32);
  vote_apart<<<1, 32>>>(in, out);
  finish();
  return true;
}
