// The scale goes into the terms, and what is too large becomes infinite and not the largest number.
#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void ker_fp8_product(__nv_fp8_storage_t* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, float scale,
                                int m, int n, int k) {
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= m * n) return;
  const int row = place / n, column = place % n;
  float sum = 0.0f;
  for (int i = k - 1; i >= 0; --i) sum += scale * float(a[row * k + i]) * float(b[i * n + column]);
  c[place] = __nv_cvt_float_to_fp8(sum, __NV_NOSAT, __NV_E5M2);
}

extern "C" void launch_fp8_product(__nv_fp8_e5m2* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, float scale,
                                   int m, int n, int k, cudaStream_t stream) {
  auto* bytes = reinterpret_cast<__nv_fp8_storage_t*>(c);
  ker_fp8_product<<<(m * n + 127) / 128, 128, 0, stream>>>(bytes, a, b, scale, m, n, k);
}
