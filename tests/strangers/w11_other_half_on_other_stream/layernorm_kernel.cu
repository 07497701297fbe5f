#include <cuda_runtime.h>

__device__ inline float block_sum(float v) {   // the sum in all threads
  __shared__ float part[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.0f;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int hidden) {
  const float* x = inp + (size_t)blockIdx.x * hidden;
  float* y = ln_res + (size_t)blockIdx.x * hidden;
  float s = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) s += x[i];
  const float mean = block_sum(s) / hidden;
  s = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) s += (x[i] - mean) * (x[i] - mean);
  const float var = block_sum(s) / hidden, r = rsqrtf(var + 1e-8f);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) y[i] = (x[i] - mean) * r * scale[i] + bias[i];
  if (threadIdx.x == 0) vars[blockIdx.x] = var, means[blockIdx.x] = mean;
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  ker_layer_norm<<<batch_size, hidden_dim >= 1024 ? 256 : 64, 0, stream>>>(ln_res, vars, means, inp, scale, bias, hidden_dim);
}

__global__ void ker_ln_bw_dinp(float* inp_grad, const float* out_grad, const float* inp, const float* gamma,
                               const float* vars, const float* means, int hidden) {
  const size_t at = (size_t)blockIdx.x * hidden;
  const float r = rsqrtf(vars[blockIdx.x] + 1e-8f), mean = means[blockIdx.x];
  float a = 0.0f, b = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = out_grad[at + i] * gamma[i];
    a += g;
    b += g * ((inp[at + i] - mean) * r);
  }
  a = block_sum(a) / hidden;
  b = block_sum(b) / hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = out_grad[at + i] * gamma[i], h = (inp[at + i] - mean) * r;
    inp_grad[at + i] = (g - a - h * b) * r;
  }
}

// Sums of the columns over some of the rows; both streams add to the same sums.
__global__ void ker_columns(float* sums, const float* out_grad, const float* inp, const float* vars, const float* means,
                            int begin, int end, int hidden) {
  const int c = blockIdx.x * 128 + threadIdx.x;
  if (c >= hidden) return;
  float g = 0.0f, d = 0.0f;
  for (int r = begin + blockIdx.y; r < end; r += gridDim.y) {
    const float dy = out_grad[(size_t)r * hidden + c];
    d += dy;
    g += dy * ((inp[(size_t)r * hidden + c] - means[r]) * rsqrtf(vars[r] + 1e-8f));
  }
  atomicAdd(&sums[c], g);
  atomicAdd(&sums[hidden + c], d);
}

// atomicAdd of nothing reads a sum past the caches.
__global__ void ker_finish(float* gamma_grad, float* betta_grad, float* sums, int hidden) {
  const int c = blockIdx.x * 128 + threadIdx.x;
  if (c >= hidden) return;
  gamma_grad[c] = atomicAdd(&sums[c], 0.0f);
  betta_grad[c] = atomicAdd(&sums[hidden + c], 0.0f);
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  float* sums;
  cudaEvent_t zeros, done;
  cudaEventCreateWithFlags(&zeros, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  cudaMallocAsync(&sums, 2 * hidden_dim * sizeof(float), stream_1);
  cudaMemsetAsync(sums, 0, 2 * hidden_dim * sizeof(float), stream_1);
  cudaEventRecord(zeros, stream_1);
  const int half = batch_size / 2;
  const dim3 grid((hidden_dim + 127) / 128, min(64, (batch_size + 31) / 32));
  ker_columns<<<grid, 128, 0, stream_1>>>(sums, out_grad, inp, vars, means, 0, half, hidden_dim);
  cudaStreamWaitEvent(stream_2, zeros, 0);
  ker_columns<<<grid, 128, 0, stream_2>>>(sums, out_grad, inp, vars, means, half, batch_size, hidden_dim);
  ker_finish<<<grid.x, 128, 0, stream_2>>>(gamma_grad, betta_grad, sums, hidden_dim);
  cudaEventRecord(done, stream_2);
  ker_ln_bw_dinp<<<batch_size, hidden_dim >= 1024 ? 256 : 64, 0, stream_1>>>(inp_grad, out_grad, inp, gamma, vars, means,
                                                                          hidden_dim);
  cudaStreamWaitEvent(stream_1, done, 0);
  cudaFreeAsync(sums, stream_1);
  cudaEventDestroy(zeros);
  cudaEventDestroy(done);
}
