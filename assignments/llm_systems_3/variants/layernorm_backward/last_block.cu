// The last block of a strip of columns, by a libcu++ atomic, adds up what the others left; scratch grows on demand.
// Short rows get blocks of a warp.
#include <cuda/atomic>
#include <cuda_runtime.h>

constexpr int CHUNK = 64;

__device__ int arrived[4096];

__global__ void rows_kernel(float* dx, const float* __restrict__ dy, const float* __restrict__ x,
                            const float* __restrict__ gamma, const float* __restrict__ vars,
                            const float* __restrict__ means, int n) {
  __shared__ float as[4], bs[4];
  const size_t start = (size_t)blockIdx.x * n;
  const float mean = means[blockIdx.x], inverse = rsqrtf(vars[blockIdx.x]);
  float a = 0.0f, b = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = dy[start + i] * gamma[i];
    dx[start + i] = g;
    a += g;
    b += g * (x[start + i] - mean) * inverse;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_xor_sync(0xffffffff, a, offset);
    b += __shfl_xor_sync(0xffffffff, b, offset);
  }
  if (threadIdx.x % 32 == 0) as[threadIdx.x / 32] = a;
  if (threadIdx.x % 32 == 0) bs[threadIdx.x / 32] = b;
  __syncthreads();
  a = b = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) {
    a += as[warp] / n;
    b += bs[warp] / n;
  }
  const auto of = [=](float g, float value) { return (g - a - (value - mean) * inverse * b) * inverse; };
  for (int i = threadIdx.x; i < n / 4; i += blockDim.x) {  // read by other threads than have written: behind the barrier
    float4& four = reinterpret_cast<float4*>(dx + start)[i];
    const float4 g = four, v = reinterpret_cast<const float4*>(x + start)[i];
    four = make_float4(of(g.x, v.x), of(g.y, v.y), of(g.z, v.z), of(g.w, v.w));
  }
}

__global__ void columns_kernel(float* dgamma, float* dbeta, float2* partials, const float* dy, const float* x,
                               const float* vars, const float* means, int rows, int n) {
  __shared__ bool last;
  const int i = blockIdx.x * 64 + threadIdx.x, end = min(rows, (int)(blockIdx.y + 1) * CHUNK);
  float a = 0.0f, b = 0.0f;
  if (i < n) {
    for (int row = blockIdx.y * CHUNK; row < end; ++row) {
      const size_t at = (size_t)row * n + i;
      a += dy[at] * (x[at] - means[row]) * rsqrtf(vars[row]);
      b += dy[at];
    }
    partials[(size_t)blockIdx.y * n + i] = make_float2(a, b);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> count(arrived[blockIdx.x]);
    last = count.fetch_add(1, cuda::memory_order_acq_rel) == (int)gridDim.y - 1;
    if (last) count.store(0, cuda::memory_order_relaxed);
  }
  __syncthreads();
  if (!last || i >= n) return;
  a = b = 0.0f;
  for (int chunk = 0; chunk < gridDim.y; ++chunk) {
    const float2 part = partials[(size_t)chunk * n + i];
    a += part.x;
    b += part.y;
  }
  dgamma[i] = a;
  dbeta[i] = b;
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  static float2* partials = nullptr;
  static size_t held = 0;
  const int chunks = (batch_size + CHUNK - 1) / CHUNK;
  const size_t wanted = (size_t)chunks * hidden_dim;
  if (wanted > held) {
    cudaFree(partials);
    cudaMalloc(&partials, sizeof(float2) * wanted);
    held = wanted;
  }
  columns_kernel<<<dim3((hidden_dim + 63) / 64, chunks), 64, 0, stream_1>>>(gamma_grad, betta_grad, partials, out_grad,
                                                                            inp, vars, means, batch_size, hidden_dim);
  const int threads = hidden_dim <= 32 ? 32 : 128;
  rows_kernel<<<batch_size, threads, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, hidden_dim);
}
