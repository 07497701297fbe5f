#include <cuda_fp8.h>
#include <cuda_runtime.h>

extern "C" void launch_fp8_product(__nv_fp8_e5m2* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, float scale,
                                   int m, int n, int k, cudaStream_t stream) {
  // Write a kernel above, and launch it here.
}
