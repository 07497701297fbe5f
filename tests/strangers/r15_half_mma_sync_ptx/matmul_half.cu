#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ unsigned two(__half lo, __half hi) {
  return (unsigned)__half_as_ushort(lo) | (unsigned)__half_as_ushort(hi) << 16;
}
__global__ void ker_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k, int across,
                                long long tiles) {
  const long long tile = blockIdx.x * 4ll + threadIdx.x / 32;
  if (tile >= tiles) return;
  const int lane = threadIdx.x % 32, g = lane >> 2, t = lane & 3;
  const int i0 = (int)(tile / across) * 16, j0 = (int)(tile % across) * 8;
  auto of_a = [&](int i, int s) { return i < m && s < k ? a[(size_t)i * k + s] : __ushort_as_half(0); };
  auto of_b = [&](int s, int j) { return s < k && j < n ? b[(size_t)s * n + j] : __ushort_as_half(0); };
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  for (int s = 0; s < k; s += 16) {
    const int p = s + 2 * t, i = i0 + g, j = j0 + g;
    const unsigned a0 = two(of_a(i, p), of_a(i, p + 1)), a1 = two(of_a(i + 8, p), of_a(i + 8, p + 1));
    const unsigned a2 = two(of_a(i, p + 8), of_a(i, p + 9)), a3 = two(of_a(i + 8, p + 8), of_a(i + 8, p + 9));
    const unsigned b0 = two(of_b(p, j), of_b(p + 1, j)), b1 = two(of_b(p + 8, j), of_b(p + 9, j));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  auto put = [&](int i, int j, float v) {
    if (i < m && j < n) c[(size_t)i * n + j] = __float2half_rn(v);
  };
  put(i0 + g, j0 + 2 * t, d0);
  put(i0 + g, j0 + 2 * t + 1, d1);
  put(i0 + g + 8, j0 + 2 * t, d2);
  put(i0 + g + 8, j0 + 2 * t + 1, d3);
}

extern "C" void launch_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k,
                                   cudaStream_t stream) {
  const int across = (n + 7) / 8;
  const long long tiles = (long long)((m + 15) / 16) * across;
  ker_matmul_half<<<(unsigned)((tiles + 3) / 4), 128, 0, stream>>>(c, a, b, m, n, k, across, tiles);
}
