// Causal attention, one head: tiles of keys go by, and an online softmax keeps up with them.
//
// Idea: the n x n logits are never stored. A block has 32 queries. For each tile of 64 keys it computes 32 x 64
// logits, and with a larger maximum than before it scales down what it has: `scale = 2^(old maximum - new one)` on
// the sum of powers and on the output. At the end the output is divided by the sum. Tiles behind the last query are
// left out.
//
// Work: 4 DEPTH n^2 / 2 operations on 16 DEPTH n bytes, so arithmetic is the limit. A thread has 4 queries and 4
// keys (or 4 numbers of the output): 8 loads of 4 floats from shared memory for 64 products.
//
// Launch: a block of 16 x 8 threads for each 32 queries, the last ones first, as they have the most keys. The 16
// threads of a query are half of a warp, so that shuffles join them.
#include <cuda_runtime.h>

constexpr int DEPTH = 64, QUERIES = 32, KEYS = 64;
constexpr int EACH = 4;  // queries of a thread; also keys, and numbers of the output
constexpr int ACROSS = KEYS / EACH, DOWN = QUERIES / EACH;  // threads
constexpr int PITCH = DEPTH + 4;  // so that rows begin in different banks

struct Rows {
  float4* at;
  __device__ float4& operator()(int row, int part) const { return at[row * (PITCH / 4) + part]; }
};

// `count` rows from row `first` on, zeros behind row n.
__device__ void load(Rows to, const float* from, int first, int count, int n) {
  for (int i = threadIdx.y * ACROSS + threadIdx.x; i < count * (DEPTH / 4); i += ACROSS * DOWN) {
    const int row = i / (DEPTH / 4), part = i % (DEPTH / 4);
    const float4* source =
        reinterpret_cast<const float4*>(from) + static_cast<size_t>(first + row) * (DEPTH / 4) + part;
    to(row, part) = first + row < n ? *source : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
}

// Over the threads of a query.
__device__ float largest(float x) {
  for (int distance = ACROSS / 2; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}

__device__ float total(float x) {
  for (int distance = ACROSS / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffff, x, distance);
  return x;
}

__global__ void __launch_bounds__(ACROSS* DOWN)
    ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float4 of_queries[QUERIES * PITCH / 4], of_keys[KEYS * PITCH / 4], of_powers[QUERIES * PITCH / 4];
  const Rows queries{of_queries}, tile{of_keys}, powers{of_powers};  // the tile holds keys, then their values
  const int x = threadIdx.x, top = threadIdx.y * EACH;
  const int first = (gridDim.x - 1 - blockIdx.x) * QUERIES;
  const float factor = 1.4426950408889634f / 8.0f;  // log2(e) / sqrt(DEPTH), as powers are of 2

  float maximum[EACH], sum[EACH] = {};
  float4 result[EACH] = {};
  for (float& one : maximum) one = -INFINITY;
  load(queries, q, first, QUERIES, n);
  for (int begin = 0; begin < min(first + QUERIES, n); begin += KEYS) {
    __syncthreads();  // nobody reads the last tile any more
    load(tile, k, begin, KEYS, n);
    __syncthreads();

    // This thread's keys are x, x + 16, ...: then threads side by side read different banks.
    float logit[EACH][EACH] = {};
#pragma unroll 4
    for (int part = 0; part < DEPTH / 4; ++part) {
      float4 key[EACH];
      for (int j = 0; j < EACH; ++j) key[j] = tile(x + j * ACROSS, part);
      for (int i = 0; i < EACH; ++i) {
        const float4 query = queries(top + i, part);
        for (int j = 0; j < EACH; ++j) {
          logit[i][j] = fmaf(query.x, key[j].x, logit[i][j]);
          logit[i][j] = fmaf(query.y, key[j].y, logit[i][j]);
          logit[i][j] = fmaf(query.z, key[j].z, logit[i][j]);
          logit[i][j] = fmaf(query.w, key[j].w, logit[i][j]);
        }
      }
    }

    for (int i = 0; i < EACH; ++i) {
      float high = maximum[i];
      for (int j = 0; j < EACH; ++j) {
        const bool hidden = begin + x + j * ACROSS > first + top + i;
        logit[i][j] = hidden ? -INFINITY : logit[i][j] * factor;
        high = fmaxf(high, logit[i][j]);
      }
      high = largest(high);
      const float scale = exp2f(maximum[i] - high);
      float added = 0.0f;
      float* row = reinterpret_cast<float*>(&powers(top + i, 0));
      for (int j = 0; j < EACH; ++j) {
        const float power = exp2f(logit[i][j] - high);
        row[x + j * ACROSS] = power;
        added += power;
      }
      sum[i] = sum[i] * scale + total(added);
      result[i].x *= scale;
      result[i].y *= scale;
      result[i].z *= scale;
      result[i].w *= scale;
      maximum[i] = high;
    }
    __syncthreads();  // powers are there, and nobody reads keys any more
    load(tile, v, begin, KEYS, n);
    __syncthreads();

    // This thread's part of the output is numbers 4 x to 4 x + 3.
#pragma unroll 4
    for (int part = 0; part < KEYS / 4; ++part) {
      float4 value[EACH];
      for (int j = 0; j < EACH; ++j) value[j] = tile(part * 4 + j, x);
      for (int i = 0; i < EACH; ++i) {
        const float4 four = powers(top + i, part);
        const float power[EACH] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < EACH; ++j) {
          result[i].x = fmaf(power[j], value[j].x, result[i].x);
          result[i].y = fmaf(power[j], value[j].y, result[i].y);
          result[i].z = fmaf(power[j], value[j].z, result[i].z);
          result[i].w = fmaf(power[j], value[j].w, result[i].w);
        }
      }
    }
  }

  for (int i = 0; i < EACH && first + top + i < n; ++i) {
    const float share = 1.0f / sum[i];
    reinterpret_cast<float4*>(out)[static_cast<size_t>(first + top + i) * (DEPTH / 4) + x] =
        make_float4(result[i].x * share, result[i].y * share, result[i].z * share, result[i].w * share);
  }
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker_attention<<<(n + QUERIES - 1) / QUERIES, dim3(ACROSS, DOWN), 0, stream>>>(out, q, k, v, n);
}
