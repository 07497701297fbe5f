// Products of matrices on the tensor cores: wmma, and mma with ldmatrix.
#include "../corpus.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <class T>
static std::vector<float> product(int m, int n, int k, const std::vector<T>& a, const std::vector<T>& b, bool b_by_column) {
  std::vector<float> c(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int x = 0; x < k; ++x) sum += static_cast<float>(a[i * k + x]) * static_cast<float>(b[b_by_column ? j * k + x : x * n + j]);
      c[i * n + j] = sum;
    }
  }
  return c;
}

template <class To>
static std::vector<To> converted(const std::vector<float>& list) {
  std::vector<To> result;
  for (const float x : list) result.push_back(To(x - 4));
  return result;
}

// --- wmma_tiles_in_shared_memory: half, tiles of 64 x 64 by four warps, sums in float
constexpr int K = 96;
__global__ void matmul(int n, const half* a, const half* b, float* c) {
  __shared__ alignas(32) half ta[64][32], tb[32][64];
  const int warp = threadIdx.x / 32, row = blockIdx.y * 64, column = blockIdx.x * 64;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4];
  for (auto& s : sums) wmma::fill_fragment(s, 0.0f);
  for (int k = 0; k < K; k += 32) {
    for (int i = threadIdx.x; i < 64 * 32; i += blockDim.x) {
      ta[i / 32][i % 32] = a[(row + i / 32) * K + k + i % 32];
      tb[i / 64][i % 64] = b[(k + i / 64) * n + column + i % 64];
    }
    __syncthreads();
    for (int x = 0; x < 32; x += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
      wmma::load_matrix_sync(left, &ta[warp * 16][x], 32);
      for (int j = 0; j < 4; ++j) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
        wmma::load_matrix_sync(right, &tb[x][j * 16], 64);
        wmma::mma_sync(sums[j], left, right, sums[j]);
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) {
    for (int e = 0; e < sums[j].num_elements; ++e) sums[j].x[e] *= 2;
    wmma::store_matrix_sync(&c[(row + warp * 16) * n + column + j * 16], sums[j], n, wmma::mem_row_major);
  }
}
PROGRAM(wmma_tiles_in_shared_memory) {
  const int n = 128;
  const auto a = converted<half>(numbers(n * K, 9)), b = converted<half>(numbers(K * n, 8));
  Array<half> da(a), db(b);
  Array<float> c(n * n);
  matmul<<<dim3(2, 2), 128>>>(n, da, db, c);
  auto expected = product(n, n, K, a, b, false);
  for (auto& x : expected) x *= 2;
  return close(c.host(), expected);
}

// --- wmma_of_bytes: signed bytes, sums of 32 bits, the right matrix by columns
__global__ void bytes(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int k = 0; k < 64; k += 16) {
    wmma::load_matrix_sync(left, a + k, 64);
    wmma::load_matrix_sync(right, b + k, 64);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}
PROGRAM(wmma_of_bytes) {
  const auto a = converted<signed char>(numbers(16 * 64, 100)), b = converted<signed char>(numbers(16 * 64, 90));
  Array<signed char> da(a), db(b);
  Array<int> c(256);
  bytes<<<1, 32>>>(da, db, c);
  const auto expected = product(16, 16, 64, a, b, true);
  std::vector<int> by_columns(256);
  for (int i = 0; i < 256; ++i) by_columns[i % 16 * 16 + i / 16] = static_cast<int>(expected[i]);
  return close(c.host(), by_columns);
}

// --- wmma_of_floats: tf32
__global__ void floats(const float* a, const float* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < 32; k += 8) {
    wmma::load_matrix_sync(left, a + k, 32);
    wmma::load_matrix_sync(right, b + k * 16, 16);
    for (auto& x : left.x) x = wmma::__float_to_tf32(x);
    for (auto& x : right.x) x = wmma::__float_to_tf32(x);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
PROGRAM(wmma_of_floats) {
  const auto a = numbers(16 * 32), b = numbers(32 * 16);
  Array<float> da(a), db(b), c(256);
  floats<<<1, 32>>>(da, db, c);
  return close(c.host(), product(16, 16, 32, a, b, false));
}

// --- mma_with_ldmatrix: bfloat16, one 16 x 8 tile per warp
__global__ void with_ldmatrix(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  __shared__ alignas(16) __nv_bfloat16 ta[16][16], tb[16][8];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) ta[i / 16][i % 16] = a[i];
  for (int i = lane; i < 128; i += 32) tb[i / 8][i % 8] = b[i];
  __syncwarp();
  unsigned x[4], y[2];
  const auto left = static_cast<unsigned>(__cvta_generic_to_shared(&ta[lane % 16][lane / 16 * 8]));
  const auto right = static_cast<unsigned>(__cvta_generic_to_shared(&tb[lane % 16][0]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(left));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(right));
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  for (int e = 0; e < 4; ++e) c[(lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = d[e];
}
PROGRAM(mma_with_ldmatrix) {
  const auto a = converted<__nv_bfloat16>(numbers(256)), b = converted<__nv_bfloat16>(numbers(128));
  Array<__nv_bfloat16> da(a), db(b);
  Array<float> c(128);
  with_ldmatrix<<<1, 32>>>(da, db, c);
  return close(c.host(), product(16, 8, 16, a, b, false));
}
