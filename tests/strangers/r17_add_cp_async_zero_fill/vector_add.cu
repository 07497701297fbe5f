#include <cuda_runtime.h>

#include <cuda_pipeline.h>
// Copies of size 0 from behind the end: PTX reads nothing then, and fills with zeros.
__global__ void __launch_bounds__(128) ker(float* z, const float* x, const float* y, int n) {
  __shared__ alignas(16) float xs[128 * 4], ys[128 * 4];
  long long at = ((long long)blockIdx.x * 128 + threadIdx.x) * 4;
  int have = at >= n ? 0 : n - at < 4 ? int(n - at) : 4;
  __pipeline_memcpy_async(xs + threadIdx.x * 4, x + at, 16, 16 - 4 * have);
  __pipeline_memcpy_async(ys + threadIdx.x * 4, y + at, 16, 16 - 4 * have);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  float4 a = *(float4*)(xs + threadIdx.x * 4), b = *(float4*)(ys + threadIdx.x * 4);
  float r[4] = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  for (int k = 0; k < have; ++k) z[at + k] = r[k];
}
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  ker<<<(n + 511) / 512, 128, 0, stream>>>(z, x, y, n);
}
