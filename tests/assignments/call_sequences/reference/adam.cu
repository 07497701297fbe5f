#include <cuda_runtime.h>

__global__ void step_of_adam(float *weights, float *moment, float *square, const float *gradients, float rate,
                             float keep, float keep_squares, float first, float second, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float m = moment[i] = keep * moment[i] + (1 - keep) * gradients[i];
  float s = square[i] = keep_squares * square[i] + (1 - keep_squares) * gradients[i] * gradients[i];
  weights[i] -= rate * (m / first) / (sqrtf(s / second) + 1e-8f);
}

extern "C" void adam(float *weights, float *moment, float *square, const float *gradients, float rate, float keep,
                     float keep_squares, int step, int n, cudaStream_t stream) {
  float first = 1 - powf(keep, step), second = 1 - powf(keep_squares, step);
  step_of_adam<<<(n + 255) / 256, 256, 0, stream>>>(weights, moment, square, gradients, rate, keep, keep_squares, first,
                                                    second, n);
}
