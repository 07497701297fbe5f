// Three kernels, with all logits in memory: products, softmax of each row, products.
#include <cuda_runtime.h>

constexpr int DEPTH = 64;

__global__ void multiply_keys(float* logits, const float* q, const float* k, int n) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y;
  if (key >= n) return;
  float sum = 0.0f;
  for (int d = 0; d < DEPTH; ++d) sum += q[query * DEPTH + d] * k[key * DEPTH + d];
  logits[static_cast<size_t>(query) * n + key] = key > query ? -INFINITY : sum / sqrtf(DEPTH);
}

__global__ void softmax(float* logits, int n) {
  const int query = blockIdx.x * blockDim.x + threadIdx.x;
  if (query >= n) return;
  float* row = logits + static_cast<size_t>(query) * n;
  float largest = -INFINITY, sum = 0.0f;
  for (int key = 0; key <= query; ++key) largest = fmaxf(largest, row[key]);
  for (int key = 0; key <= query; ++key) sum += expf(row[key] - largest);
  for (int key = 0; key <= query; ++key) row[key] = expf(row[key] - largest) / sum;
}

__global__ void multiply_values(float* out, const float* weights, const float* v, int n) {
  const int query = blockIdx.x, d = threadIdx.x;
  float sum = 0.0f;
  for (int key = 0; key <= query; ++key) sum += weights[static_cast<size_t>(query) * n + key] * v[key * DEPTH + d];
  out[query * DEPTH + d] = sum;
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  float* logits;
  cudaMallocAsync(&logits, sizeof(float) * n * n, stream);
  multiply_keys<<<dim3((n + 127) / 128, n), 128, 0, stream>>>(logits, q, k, n);
  softmax<<<(n + 31) / 32, 32, 0, stream>>>(logits, n);
  multiply_values<<<n, DEPTH, 0, stream>>>(out, logits, v, n);
  cudaFreeAsync(logits, stream);
}
