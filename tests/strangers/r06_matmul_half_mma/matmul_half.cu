// Matrix multiplication in half precision by mma.sync; lanes load their fragments themselves.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ unsigned pair(__half low, __half high) {
  return static_cast<unsigned>(__half_as_ushort(high)) << 16 | __half_as_ushort(low);
}

__global__ void ker_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k, long long across,
                                long long tiles) {
  const long long tile = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (tile >= tiles) return;
  const int lane = threadIdx.x % 32, group = lane / 4, in_group = lane % 4;
  const long long row0 = tile / across * 16, column0 = tile % across * 8;
  const auto of_a = [&](long long row, int s) { return row < m && s < k ? a[row * k + s] : __half(0.0f); };
  const auto of_b = [&](int s, long long column) { return column < n && s < k ? b[static_cast<long long>(s) * n + column] : __half(0.0f); };
  float d[4] = {};
  for (int s = 0; s < k; s += 16) {
    unsigned x[4], y[2];
    for (int i = 0; i < 4; ++i) {
      const long long row = row0 + group + i % 2 * 8;
      const int at = s + in_group * 2 + i / 2 * 8;
      x[i] = pair(of_a(row, at), of_a(row, at + 1));
    }
    for (int i = 0; i < 2; ++i) {
      const int at = s + in_group * 2 + i * 8;
      y[i] = pair(of_b(at, column0 + group), of_b(at + 1, column0 + group));
    }
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
  for (int i = 0; i < 4; ++i) {
    const long long row = row0 + group + i / 2 * 8, column = column0 + in_group * 2 + i % 2;
    if (row < m && column < n) c[row * n + column] = __float2half_rn(d[i]);
  }
}

extern "C" void launch_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k,
                                   cudaStream_t stream) {
  const long long across = (n + 7) / 8, tiles = across * ((m + 15) / 16);
  ker_matmul_half<<<static_cast<unsigned>((tiles + 3) / 4), 128, 0, stream>>>(c, a, b, m, n, k, across, tiles);
}
