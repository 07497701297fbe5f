// Softmax backward in place: two warps per row, two rows per block; only the warps of a row wait for each other.
#include <cuda_runtime.h>

constexpr int GROUP = 64;

__device__ inline void meet_group() { asm volatile("bar.sync 1, 64;" ::: "memory"); }

__global__ void ker_attn_softmax_bw(float* grad, const float* soft, int rows, int length) {
  __shared__ float parts[2][2];
  const int group = threadIdx.x / GROUP, t = threadIdx.x % GROUP;
  const long long row = static_cast<long long>(blockIdx.x) * 2 + group;
  if (row >= rows) return;  // the whole group
  float* g = grad + row * length;
  const float* s = soft + row * length;
  float sum = 0;
  for (int i = t; i < length; i += GROUP) sum += g[i] * s[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (t % 32 == 0) parts[group][t / 32] = sum;
  meet_group();
  sum = parts[group][0] + parts[group][1];
  for (int i = t; i < length; i += GROUP) g[i] = s[i] * (g[i] - sum);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  ker_attn_softmax_bw<<<(rows + 1) / 2, 2 * GROUP, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
