// Partial sums per 128 rows in cudaMallocAsync memory, added up by a second kernel on the other stream after an event.
#include <cuda_runtime.h>

constexpr int CHUNK = 128;

__global__ void rows_and_partials(float* dx, float* partials, const float* dy, const float* x, const float* gamma,
                                  const float* vars, const float* means, int rows, int n) {
  const int first = blockIdx.x * CHUNK, last = min(rows, first + CHUNK), lane = threadIdx.x % 32;
  for (int row = first + threadIdx.x / 32; row < last; row += blockDim.x / 32) {
    const size_t start = (size_t)row * n;
    const float mean = means[row], inverse = rsqrtf(vars[row]);
    float a = 0.0f, b = 0.0f;
    for (int i = lane; i < n; i += 32) {
      const float g = dy[start + i] * gamma[i];
      a += g;
      b += g * (x[start + i] - mean) * inverse;
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      a += __shfl_xor_sync(0xffffffff, a, offset);
      b += __shfl_xor_sync(0xffffffff, b, offset);
    }
    for (int i = lane; i < n; i += 32) {
      const float xhat = (x[start + i] - mean) * inverse;
      dx[start + i] = (dy[start + i] * gamma[i] - a / n - xhat * (b / n)) * inverse;
    }
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float a = 0.0f, b = 0.0f;
    for (int row = first; row < last; ++row) {
      const size_t at = (size_t)row * n + i;
      a += dy[at] * (x[at] - means[row]) * rsqrtf(vars[row]);
      b += dy[at];
    }
    partials[(size_t)blockIdx.x * 2 * n + i] = a;
    partials[(size_t)blockIdx.x * 2 * n + n + i] = b;
  }
}

__global__ void add_up(float* dgamma, float* dbeta, const float* partials, int count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 2 * n) return;
  float sum = 0.0f;
  for (int block = 0; block < count; ++block) sum += partials[(size_t)block * 2 * n + i];
  (i < n ? dgamma : dbeta)[i % n] = sum;
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  const int count = (batch_size + CHUNK - 1) / CHUNK;
  float* partials = nullptr;
  cudaEvent_t there;
  cudaEventCreateWithFlags(&there, cudaEventDisableTiming);
  cudaMallocAsync(&partials, sizeof(float) * 2 * count * hidden_dim, stream_1);
  rows_and_partials<<<count, 128, 0, stream_1>>>(inp_grad, partials, out_grad, inp, gamma, vars, means, batch_size,
                                                 hidden_dim);
  cudaEventRecord(there, stream_1);
  cudaStreamWaitEvent(stream_2, there, 0);
  add_up<<<(2 * hidden_dim + 127) / 128, 128, 0, stream_2>>>(gamma_grad, betta_grad, partials, count, hidden_dim);
  cudaFreeAsync(partials, stream_2);
  cudaEventDestroy(there);
}
