// Welford per thread, the threads' states merged pair by pair through shared memory, a block per row,
// of half a warp where rows are short.
#include <cuda_runtime.h>

struct State {
  float count, mean, squares;
};

__device__ State merged(State a, State b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float difference = b.mean - a.mean;
  return {count, a.mean + difference * b.count / count,
          a.squares + b.squares + difference * difference * a.count * b.count / count};
}

__global__ void normalise(float* y, float* vars, float* means, const float* inp, const float* scale, const float* bias,
                          int n) {
  __shared__ State states[64];
  const float* x = inp + (size_t)blockIdx.x * n;
  State state = {0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    state.count += 1.0f;
    const float difference = x[i] - state.mean;
    state.mean += difference / state.count;
    state.squares += difference * (x[i] - state.mean);
  }
  states[threadIdx.x] = state;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) states[threadIdx.x] = merged(states[threadIdx.x], states[threadIdx.x + half]);
  }
  __syncthreads();
  const float mean = states[0].mean, variance = states[0].squares / n;
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mean;
    vars[blockIdx.x] = variance;
  }
  const float inverse = 1.0f / sqrtf(variance + 1e-8f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = (x[i] - mean) * inverse * scale[i] + bias[i];
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  normalise<<<batch_size, hidden_dim <= 16 ? 16 : 64, 0, stream>>>(ln_res, vars, means, inp, scale, bias, hidden_dim);
}
