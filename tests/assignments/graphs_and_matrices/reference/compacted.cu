#include <cuda_runtime.h>

__global__ void ker_compacted(long long* y, const long long* x, const bool* mask, int n) {
  int before = 0;
  for (int first = 0; first < n; first += 32) {
    const int i = first + threadIdx.x;
    const bool kept = i < n && mask[i];
    const unsigned int lanes = __ballot_sync(0xffffffff, kept);
    if (kept) y[before + __popc(lanes & ((1u << threadIdx.x) - 1))] = x[i];
    before += __popc(lanes);
  }
}

extern "C" void launch_compacted(long long* y, const long long* x, const bool* mask, int n, cudaStream_t stream) {
  ker_compacted<<<1, 32, 0, stream>>>(y, x, mask, n);
}
