// The arithmetic limit for a kernel: as many multiplications with an addition as a problem's matrix products and
// convolutions have, on numbers that are in registers. Float32 runs on the CUDA cores, 16 bits on the tensor cores with
// sums in float32. The tensor cores are used through wmma, which every GPU since sm_70 has; Hopper's own instructions
// reach more.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

constexpr int ARITHMETIC_THREADS = 256;
constexpr int BLOCKS_PER_MULTIPROCESSOR = 4;
constexpr int CHAINS = 8;  // that do not wait for each other, of each thread or warp
constexpr int ROUND = 16;  // steps of a chain between two looks at the count
constexpr int TILE = 16;   // the matrices of the tensor cores are TILE x TILE

// Nobody writes: the compiler cannot know that no sum becomes larger than this.
constexpr float NEVER = 1e30f;

__global__ void __launch_bounds__(ARITHMETIC_THREADS) ker_multiply_adds(float* target, long long rounds, float factor) {
  float chain[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) chain[c] = threadIdx.x + c;
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < ROUND; ++step) {
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) chain[c] = chain[c] * factor + factor;
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += chain[c];
  if (sum > NEVER) *target = sum;
}

__global__ void __launch_bounds__(ARITHMETIC_THREADS) ker_half_multiply_adds(float* target, long long rounds, float factor) {
  namespace w = nvcuda::wmma;
  w::fragment<w::matrix_a, TILE, TILE, TILE, __half, w::row_major> left;
  w::fragment<w::matrix_b, TILE, TILE, TILE, __half, w::col_major> right;
  w::fragment<w::accumulator, TILE, TILE, TILE, float> chain[CHAINS];
  w::fill_fragment(left, __float2half(factor));
  w::fill_fragment(right, __float2half(factor));
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) w::fill_fragment(chain[c], static_cast<float>(c));
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) w::mma_sync(chain[c], left, right, chain[c]);
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) {
    for (int i = 0; i < chain[c].num_elements; ++i) sum += chain[c].x[i];
  }
  if (sum > NEVER) *target = sum;
}

static long long rounded_up(long long count, long long step) { return (count + step - 1) / step; }

// Makes `count` multiplications with an addition, rounded up to what all threads do in a round. `target` is one number,
// which stays as it is.
extern "C" void launch_multiply_adds(float* target, long long count, int halves, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const long long in_a_round = halves ? ARITHMETIC_THREADS / 32 * CHAINS * TILE * TILE * TILE  // of a block
                                      : ARITHMETIC_THREADS * CHAINS * ROUND;
  const long long most = static_cast<long long>(multiprocessors) * BLOCKS_PER_MULTIPROCESSOR;
  const long long needed = rounded_up(count, in_a_round);
  const unsigned blocks = static_cast<unsigned>(needed < most ? needed : most);
  if (blocks == 0) return;
  const auto kernel = halves ? ker_half_multiply_adds : ker_multiply_adds;
  kernel<<<blocks, ARITHMETIC_THREADS, 0, stream>>>(target, rounded_up(needed, blocks), 0.5f);
}
