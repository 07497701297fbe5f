// Sorting of 32-bit keys: four passes over 8 bits each, from the lowest (radix sort), each of which reads and
// writes once.
//
// Idea: a pass keeps the order of keys with the same digit, so after the last one all are in order. A key goes to
// the place: keys with a smaller digit + keys with this digit in tiles before + those before it in its own tile.
// The first number comes from histograms of all four digits, which one kernel makes. For the second, each tile
// publishes how many it has of each digit, and looks back over the tiles before it until one knows the whole sum
// (decoupled look-back, Merrill and Garland 2016; for sorting: Adinets and Merrill 2022). The third comes from
// votes in each warp. Before it writes, a tile puts its keys in order in shared memory, so that keys of a digit are
// written side by side.
//
// Bytes: 4 per key for the histograms, 8 for each pass: 36 in all.
//
// Launch: 512 threads for a tile of 6144 keys. Tiles are numbered as they begin: one never waits for one behind it.
#include <cuda_runtime.h>

constexpr int BITS = 8, DIGITS = 1 << BITS, PASSES = 32 / BITS;
constexpr int THREADS = 512, WARPS = THREADS / 32, EACH = 12, TILE = THREADS * EACH;
constexpr int LAST = 0x7fffffff;  // fills the last tile: no digit of another key is larger
constexpr unsigned COUNTED = 1u << 30, SUMMED = 2u << 30, NUMBER = COUNTED - 1;  // what a published number is

// A negative key has the highest bit set, and comes first.
__device__ unsigned digit_of(int key, int pass) {
  const unsigned digit = static_cast<unsigned>(key) >> (BITS * pass) & (DIGITS - 1);
  return pass == PASSES - 1 ? digit ^ (DIGITS / 2) : digit;
}

// How many keys have each digit: totals[pass][digit].
__global__ void __launch_bounds__(THREADS) ker_totals(unsigned* totals, const int* keys, int n) {
  __shared__ unsigned counts[PASSES][DIGITS];
  for (int i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) counts[i / DIGITS][i % DIGITS] = 0;
  __syncthreads();
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
    const int key = keys[i];
    for (int pass = 0; pass < PASSES; ++pass) atomicAdd(&counts[pass][digit_of(key, pass)], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) atomicAdd(totals + i, counts[i / DIGITS][i % DIGITS]);
}

// The sum of `value` over the threads before this one; all threads of the block take part.
__device__ unsigned sum_before(unsigned value, unsigned (&sums)[WARPS]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned sum = value;
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffff, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  for (int before = 0; before < warp; ++before) sum += sums[before];
  __syncthreads();
  return sum - value;
}

// One pass. `published` has a number for each tile and digit, and is zero before; so is `tickets`.
__global__ void __launch_bounds__(THREADS, 2)
    ker_pass(int* sorted, const int* keys, const unsigned* totals, unsigned* tickets, volatile unsigned* published,
             int n, int pass) {
  __shared__ union {
    unsigned counts[WARPS][DIGITS];  // at first, of each warp's keys
    int keys[TILE];  // then, in order
  } shared;
  __shared__ unsigned starts[DIGITS], moves[DIGITS], sums[WARPS], ticket;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
  for (int i = threadIdx.x; i < WARPS * DIGITS; i += THREADS) shared.counts[i / DIGITS][i % DIGITS] = 0;
  __syncthreads();
  const int tile = ticket;

  // A warp has 384 keys in a row, of which it takes 32 at a time: their places among those of the warp.
  const int begin = tile * TILE + warp * 32 * EACH + lane;
  int key[EACH];
  unsigned place[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) key[i] = begin + 32 * i < n ? keys[begin + 32 * i] : LAST;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const unsigned digit = digit_of(key[i], pass);
    unsigned peers = 0xffffffff;  // lanes with the same digit
#pragma unroll
    for (int bit = 0; bit < BITS; ++bit) {
      const bool set = digit >> bit & 1;
      const unsigned votes = __ballot_sync(0xffffffff, set);
      peers &= set ? votes : ~votes;
    }
    const unsigned before = peers & ((1u << lane) - 1);
    const unsigned counted = shared.counts[warp][digit];
    __syncwarp();
    if (before == 0) shared.counts[warp][digit] = counted + __popc(peers);
    __syncwarp();
    place[i] = counted + __popc(before);
  }
  __syncthreads();

  // A thread for each digit: where each warp's keys with it begin among the tile's, and the tile's among all.
  const unsigned digit = threadIdx.x;
  unsigned count = 0;
  if (digit < DIGITS) {
    for (int i = 0; i < WARPS; ++i) {
      const unsigned own = shared.counts[i][digit];
      shared.counts[i][digit] = count;
      count += own;
    }
    published[tile * DIGITS + digit] = COUNTED | count;
  }
  const unsigned start = sum_before(count, sums);
  unsigned before = tile == 0 ? sum_before(digit < DIGITS ? totals[digit] : 0, sums) : 0;
  if (digit < DIGITS) {
    for (int other = tile - 1; other >= 0;) {
      const unsigned number = published[other * DIGITS + digit];
      if (number == 0) continue;  // not yet
      before += number & NUMBER;
      if (number & SUMMED) break;
      --other;
    }
    published[tile * DIGITS + digit] = SUMMED | (before + count);
    starts[digit] = start;
    moves[digit] = before - start;
  }
  __syncthreads();

#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const unsigned mine = digit_of(key[i], pass);
    place[i] += starts[mine] + shared.counts[warp][mine];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < EACH; ++i) shared.keys[place[i]] = key[i];
  __syncthreads();
  for (int i = threadIdx.x; i < min(TILE, n - tile * TILE); i += THREADS)
    sorted[i + moves[digit_of(shared.keys[i], pass)]] = shared.keys[i];
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE;
  const size_t numbers = PASSES * (DIGITS + 1 + static_cast<size_t>(tiles) * DIGITS);
  unsigned* zeroed;
  int* other;
  cudaMallocAsync(&zeroed, sizeof(unsigned) * numbers, stream);
  cudaMallocAsync(&other, sizeof(int) * n, stream);
  cudaMemsetAsync(zeroed, 0, sizeof(unsigned) * numbers, stream);
  unsigned *totals = zeroed, *tickets = totals + PASSES * DIGITS, *published = tickets + PASSES;
  ker_totals<<<min(tiles, 1024), THREADS, 0, stream>>>(totals, keys, n);
  for (int pass = 0; pass < PASSES; ++pass) {
    int* to = pass % 2 == 0 ? other : sorted;
    ker_pass<<<tiles, THREADS, 0, stream>>>(to, keys, totals + pass * DIGITS, tickets + pass,
                                            published + static_cast<size_t>(pass) * tiles * DIGITS, n, pass);
    keys = to;
  }
  cudaFreeAsync(other, stream);
  cudaFreeAsync(zeroed, stream);
}
