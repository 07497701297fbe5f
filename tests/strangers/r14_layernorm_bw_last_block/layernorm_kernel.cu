// LayerNorm backward: the input's gradient on stream 2; on stream 1 blocks leave partial sums, which the last one adds up.
#include <cuda_runtime.h>

#include <cuda/atomic>

__global__ void ker_ln_bw_dinp(float* inp_grad, const float* out_grad, const float* inp, const float* gamma,
                               const float* vars, const float* means, int rows, int hidden) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const long long at = row * hidden;
  const float r = 1 / sqrtf(vars[row]), mean = means[row];
  float a = 0, b = 0;
  for (int i = lane; i < hidden; i += 32) {
    const float g = out_grad[at + i] * gamma[i];
    a += g;
    b += g * ((inp[at + i] - mean) * r);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_xor_sync(0xffffffff, a, offset);
    b += __shfl_xor_sync(0xffffffff, b, offset);
  }
  a /= hidden;
  b /= hidden;
  for (int i = lane; i < hidden; i += 32)
    inp_grad[at + i] = (out_grad[at + i] * gamma[i] - a - (inp[at + i] - mean) * r * b) * r;
}

__global__ void ker_ln_bw_columns(float* gamma_grad, float* betta_grad, float2* parts, unsigned* done,
                                  const float* out_grad, const float* inp, const float* vars, const float* means,
                                  int rows, int hidden) {
  __shared__ bool last;
  for (int column = threadIdx.x; column < hidden; column += 256) {
    float2 sum{0, 0};
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
      const long long at = static_cast<long long>(row) * hidden + column;
      sum.x += out_grad[at] * ((inp[at] - means[row]) * (1 / sqrtf(vars[row])));
      sum.y += out_grad[at];
    }
    parts[static_cast<long long>(blockIdx.x) * hidden + column] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*done);
    last = counter.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  for (int column = threadIdx.x; column < hidden; column += 256) {
    float gamma = 0, betta = 0;
    for (int block = 0; block < gridDim.x; ++block) {
      const float2 part = parts[static_cast<long long>(block) * hidden + column];
      gamma += part.x;
      betta += part.y;
    }
    gamma_grad[column] = gamma;
    betta_grad[column] = betta;
  }
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  const int blocks = (batch_size + 15) / 16 < 216 ? (batch_size + 15) / 16 : 216;
  float2* parts;
  cudaMallocAsync(&parts, (static_cast<size_t>(blocks) * hidden_dim + 1) * sizeof(float2), stream_1);
  unsigned* done = reinterpret_cast<unsigned*>(parts + static_cast<size_t>(blocks) * hidden_dim);
  cudaMemsetAsync(done, 0, sizeof(unsigned), stream_1);
  ker_ln_bw_columns<<<blocks, 256, 0, stream_1>>>(gamma_grad, betta_grad, parts, done, out_grad, inp, vars, means,
                                                 batch_size, hidden_dim);
  cudaFreeAsync(parts, stream_1);
  ker_ln_bw_dinp<<<(batch_size + 3) / 4, 128, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, batch_size,
                                                            hidden_dim);
}
