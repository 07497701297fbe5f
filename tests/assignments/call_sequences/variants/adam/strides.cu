// A stride over the grid; the corrections come first.
#include <cuda_runtime.h>

__global__ void all_steps(float *weights, float *moment, float *square, const float *gradients, float slope,
                          float keep, float keep_squares, float root, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float g = gradients[i], m = fmaf(keep, moment[i], (1 - keep) * g);
    float s = fmaf(g * (1 - keep_squares), g, keep_squares * square[i]);
    weights[i] = fmaf(-slope, m / (sqrtf(s) * root + 1e-8f), weights[i]);
    moment[i] = m;
    square[i] = s;
  }
}

extern "C" void adam(float *weights, float *moment, float *square, const float *gradients, float rate, float keep,
                     float keep_squares, int step, int n, cudaStream_t stream) {
  float first = 1 - powf(keep, step), root = 1 / sqrtf(1 - powf(keep_squares, step));
  all_steps<<<64, 128, 0, stream>>>(weights, moment, square, gradients, rate / first, keep, keep_squares, root, n);
}
