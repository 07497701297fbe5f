// Causal attention, a block per query; its logits lie in memory of the device's own malloc.
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int DEPTH = 64;

__device__ float over_block(float value, bool largest) {
  __shared__ float parts[4];
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffff, value, offset);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  return largest ? fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3])) : parts[0] + parts[1] + parts[2] + parts[3];
}

__global__ void ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float* logits;
  __shared__ float halves[128];
  const int i = blockIdx.x, t = threadIdx.x;
  if (t == 0) logits = static_cast<float*>(malloc((i + 1) * sizeof(float)));
  __syncthreads();
  if (logits == nullptr) return;
  float largest = -CUDART_INF_F;
  for (int j = t; j <= i; j += 128) {
    float logit = 0;
    for (int d = 0; d < DEPTH; ++d) logit += q[i * DEPTH + d] * k[j * DEPTH + d];
    logits[j] = logit *= 0.125f;
    largest = fmaxf(largest, logit);
  }
  largest = over_block(largest, true);
  float sum = 0;
  for (int j = t; j <= i; j += 128) sum += logits[j] = __expf(logits[j] - largest);
  sum = over_block(sum, false);
  __syncthreads();
  float result = 0;
  for (int j = t / DEPTH; j <= i; j += 2) result += logits[j] * v[j * DEPTH + t % DEPTH];
  halves[t] = result;
  __syncthreads();
  if (t < DEPTH) out[i * DEPTH + t] = (halves[t] + halves[t + DEPTH]) / sum;
  if (t == 0) free(logits);
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker_attention<<<n, 128, 0, stream>>>(out, q, k, v, n);
}
