#include <cuda_runtime.h>

// Three streams of its own, which fork from and join the given one; the events are destroyed at once, as CUDA allows.
__global__ void add(float* z, const float* x, const float* y, unsigned from, unsigned to) {
  unsigned i = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= to) return;
  z[i] = __fadd_rn(x[i], y[i]);
}
static void after(cudaStream_t later, cudaStream_t earlier) {
  cudaEvent_t e;
  cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
  cudaEventRecord(e, earlier);
  cudaStreamWaitEvent(later, e, 0);
  cudaEventDestroy(e);
}
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  static cudaStream_t lanes[3];
  if (!lanes[0]) for (auto& s : lanes) cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  for (int k = 0; k < 3; ++k) {
    unsigned from = (unsigned long long)n * k / 3, to = (unsigned long long)n * (k + 1) / 3;
    if (from == to) continue;
    after(lanes[k], stream);
    add<<<(to - from + 63) / 64, 64, 0, lanes[k]>>>(z, x, y, from, to);
    after(stream, lanes[k]);
  }
}
