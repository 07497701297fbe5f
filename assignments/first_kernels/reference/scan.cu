// Inclusive scan: each element becomes the sum of all up to its own place.
//
// Idea: one pass with decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
// Look-back", 2016). A block scans its tile in registers, publishes the tile's sum, and looks at the tiles
// before it, 32 at a time: it adds up their sums until it meets one that knows its whole prefix. Then it
// publishes its own. A tile's number is a ticket, taken when the block begins, so every tile that a block waits
// for is already running. Sum and state travel in one word of 64 bits, which is written at once.
//
// Bytes: 8 per element, which is the least there is.
//
// Launch: a block of 256 threads per 4096 elements, 16 per thread.
#include <cuda_runtime.h>

constexpr int THREADS = 256, WARPS = THREADS / 32, STEPS = 4, TILE = THREADS * 4 * STEPS;
constexpr unsigned SUM = 1, PREFIX = 2;  // what a tile has published; 0: nothing

__device__ float sums_of_warp(float value) {
  const int lane = threadIdx.x % 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const float before = __shfl_up_sync(0xffffffff, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

__device__ void publish(volatile unsigned long long* tile, float value, unsigned state) {
  *tile = (unsigned long long)state << 32 | __float_as_uint(value);
}

// The sum of all tiles before `tile`; called by a whole warp.
__device__ float look_back(const volatile unsigned long long* tiles, int tile) {
  float sum = 0.0f;
  for (int at = tile - 1 - int(threadIdx.x % 32);; at -= 32) {
    unsigned long long seen = (unsigned long long)PREFIX << 32;  // before the first tile: 0
    while (at >= 0 && (seen = tiles[at]) == 0) continue;
    const unsigned known = __ballot_sync(0xffffffff, seen >> 32 == PREFIX);
    const int nearest = known ? __ffs(known) - 1 : 31;
    float part = int(threadIdx.x % 32) <= nearest ? __uint_as_float((unsigned)seen) : 0.0f;
    for (int distance = 16; distance > 0; distance /= 2) part += __shfl_xor_sync(0xffffffff, part, distance);
    sum += part;
    if (known) return sum;
  }
}

__device__ float4 load(const float* x, int at, int n) {
  if (at + 4 <= n) return *reinterpret_cast<const float4*>(x + at);
  float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (at < n) four.x = x[at];
  if (at + 1 < n) four.y = x[at + 1];
  if (at + 2 < n) four.z = x[at + 2];
  return four;
}

__device__ void store(float* sums, int at, int n, float4 four) {
  if (at + 4 <= n) {
    *reinterpret_cast<float4*>(sums + at) = four;
    return;
  }
  if (at < n) sums[at] = four.x;
  if (at + 1 < n) sums[at + 1] = four.y;
  if (at + 2 < n) sums[at + 2] = four.z;
}

__global__ void ker_scan(float* sums, unsigned long long* tiles, unsigned* ticket, const float* x, int n) {
  __shared__ float of_warps[WARPS], prefix;
  __shared__ int tile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  const int begin = tile * TILE + warp * (TILE / WARPS) + lane * 4;
  float4 part[STEPS];
  for (int step = 0; step < STEPS; ++step) part[step] = load(x, begin + step * 128, n);
  float sum = 0.0f;  // of the steps before, in this warp
  for (int step = 0; step < STEPS; ++step) {
    float4& four = part[step];
    four.y += four.x;
    four.z += four.y;
    four.w += four.z;
    const float upto = sums_of_warp(four.w);
    const float before = __shfl_up_sync(0xffffffff, upto, 1);
    const float add = sum + (lane > 0 ? before : 0.0f);
    four = make_float4(four.x + add, four.y + add, four.z + add, four.w + add);
    sum += __shfl_sync(0xffffffff, upto, 31);
  }
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  float add = 0.0f;
  for (int before = 0; before < warp; ++before) add += of_warps[before];
  if (warp == WARPS - 1) {
    const float whole = add + sum;
    if (lane == 0) publish(tiles + tile, whole, tile == 0 ? PREFIX : SUM);
    const float before = look_back(tiles, tile);
    if (lane == 0) {
      if (tile > 0) publish(tiles + tile, before + whole, PREFIX);
      prefix = before;
    }
  }
  __syncthreads();
  add += prefix;
  for (int step = 0; step < STEPS; ++step) {
    const float4 four = part[step];
    store(sums, begin + step * 128, n, make_float4(four.x + add, four.y + add, four.z + add, four.w + add));
  }
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  const int blocks = (n + TILE - 1) / TILE;
  unsigned long long* tiles;  // and the ticket after them
  cudaMallocAsync(&tiles, (blocks + 1) * sizeof *tiles, stream);
  cudaMemsetAsync(tiles, 0, (blocks + 1) * sizeof *tiles, stream);
  ker_scan<<<blocks, THREADS, 0, stream>>>(sums, tiles, reinterpret_cast<unsigned*>(tiles + blocks), x, n);
  cudaFreeAsync(tiles, stream);
}
