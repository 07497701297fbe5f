// A block for each query: every warp takes a part of the keys with its own maximum, and the parts are joined at the
// end.
#include <cuda_runtime.h>

constexpr int DEPTH = 64, WARPS = 4;

__global__ void ker(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float maxima[WARPS], sums[WARPS], results[WARPS][DEPTH];
  const int query = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int part = (query + WARPS) / WARPS;  // keys for each warp
  const int begin = warp * part, end = min(begin + part, query + 1);
  float largest = -1e30f, sum = 0.0f, low = 0.0f, high = 0.0f;
  for (int first = begin; first < end; first += 32) {
    // A lane for each of 32 keys ...
    const int key = first + lane;
    float logit = -INFINITY;
    if (key < end) {
      logit = 0.0f;
      for (int d = 0; d < DEPTH; ++d) logit = fmaf(q[query * DEPTH + d], k[key * DEPTH + d], logit);
      logit /= 8.0f;
    }
    float top = fmaxf(largest, logit);
    for (int distance = 16; distance > 0; distance /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, distance));
    const float scale = expf(largest - top), power = expf(logit - top);
    sum = sum * scale + power;  // of this lane's keys alone
    low *= scale;
    high *= scale;
    // ... then a lane for each two numbers of their values.
    for (int i = 0; i < min(32, end - first); ++i) {
      const float weight = __shfl_sync(0xffffffff, power, i);
      low = fmaf(weight, v[(first + i) * DEPTH + lane], low);
      high = fmaf(weight, v[(first + i) * DEPTH + 32 + lane], high);
    }
    largest = top;
  }
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
  if (lane == 0) {
    maxima[warp] = largest;
    sums[warp] = sum;
  }
  results[warp][lane] = low;
  results[warp][32 + lane] = high;
  __syncthreads();
  if (threadIdx.x >= DEPTH) return;
  float top = maxima[0], whole = 0.0f, result = 0.0f;
  for (int i = 1; i < WARPS; ++i) top = fmaxf(top, maxima[i]);
  for (int i = 0; i < WARPS; ++i) {
    const float scale = expf(maxima[i] - top);
    whole += sums[i] * scale;
    result += results[i][threadIdx.x] * scale;
  }
  out[query * DEPTH + threadIdx.x] = result / whole;
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker<<<n, 32 * WARPS, 0, stream>>>(out, q, k, v, n);
}
