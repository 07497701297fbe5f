// Sorting of 32-bit keys: four passes over 8 bits each, from the lowest (radix sort), each of which reads and
// writes once.
//
// Idea: a pass keeps the order of keys with the same digit, so after the last one all are in order. A key goes to
// the place: keys with a smaller digit + keys with this digit in tiles before + those before it in its own tile.
// The first number comes from histograms of all four digits, which one kernel makes. For the second, each tile
// publishes how many it has of each digit, and looks back over the tiles before it until one knows the whole sum
// (decoupled look-back, Merrill and Garland 2016; for sorting: Adinets and Merrill 2022). It counts before it does
// anything else, so that the tiles behind it wait for less, and it reads several tiles at a time. For the third
// number each lane sets its bit in a mask of its digit. Before it writes, a tile puts its keys in order in shared
// memory, so that keys of a digit are written side by side.
//
// Bytes: 4 per key for the histograms, 8 for each pass: 36 in all.
//
// Launch: 256 threads, one for each digit, for a tile of 6144 keys; three such blocks fit a multiprocessor. Tiles
// are numbered as they begin: one never waits for one behind it.
#include <cuda_runtime.h>

constexpr int BITS = 8, DIGITS = 1 << BITS, PASSES = 32 / BITS;
constexpr int THREADS = DIGITS, WARPS = THREADS / 32, EACH = 24, TILE = THREADS * EACH;
constexpr int COUNTING = 512, MOST_COUNTING = 512;  // threads and blocks of the histograms
constexpr int AT_ONCE = 4;                          // loads of a thread that are on their way together
constexpr int LAST = 0x7fffffff;                    // fills the last tile: no digit of another key is larger
constexpr unsigned COUNTED = 1u << 30, SUMMED = 2u << 30, NUMBER = COUNTED - 1;  // what a published number is

// A negative key has the highest bit set, and comes first.
__device__ unsigned digit_of(int key, int pass) {
  const unsigned digit = static_cast<unsigned>(key) >> (BITS * pass) & (DIGITS - 1);
  return pass == PASSES - 1 ? digit ^ (DIGITS / 2) : digit;
}

// How many keys have each digit: totals[pass][digit].
__global__ void __launch_bounds__(COUNTING) ker_totals(unsigned* totals, const int* keys, int n) {
  __shared__ unsigned counts[PASSES][DIGITS];
  for (int i = threadIdx.x; i < PASSES * DIGITS; i += COUNTING) counts[i / DIGITS][i % DIGITS] = 0;
  __syncthreads();
  const int all = gridDim.x * COUNTING;
  for (long long first = blockIdx.x * COUNTING + threadIdx.x; first < n; first += AT_ONCE * all) {
    int key[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) key[k] = first + k * all < n ? keys[first + k * all] : 0;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      if (first + k * all >= n) break;
      for (int pass = 0; pass < PASSES; ++pass) atomicAdd(&counts[pass][digit_of(key[k], pass)], 1u);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < PASSES * DIGITS; i += COUNTING) atomicAdd(totals + i, counts[i / DIGITS][i % DIGITS]);
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

// How many keys with a digit, or with a smaller one, go before those of `tile`, which is not the first.
__device__ unsigned look_back(const volatile unsigned* published, int tile, unsigned digit) {
  unsigned sum = 0;
  for (int nearest = tile - 1;;) {
    unsigned number[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) number[i] = published[max(nearest - i, 0) * DIGITS + digit];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      if (number[i] == 0) break;  // not yet: it is read again
      sum += number[i] & NUMBER;
      if (number[i] & SUMMED) return sum;  // as that of the first tile always is
      --nearest;
    }
  }
}

// One pass. `published` has a number for each tile and digit, and is zero before; so is `tickets`.
__global__ void __launch_bounds__(THREADS, 3)
    ker_pass(int* sorted, const int* keys, const unsigned* totals, unsigned* tickets, volatile unsigned* published,
             int n, int pass) {
  __shared__ unsigned next[WARPS][DIGITS];  // at first, how many keys of a warp have a digit; then the next one's place
  __shared__ unsigned masks[WARPS][DIGITS];  // lanes with a digit
  __shared__ unsigned moves[DIGITS], sums[WARPS], ticket;
  __shared__ int in_order[TILE];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
  for (int i = 0; i < WARPS; ++i) next[i][threadIdx.x] = masks[i][threadIdx.x] = 0;
  __syncthreads();
  const int tile = ticket;

  // A warp has 768 keys in a row, of which it takes 32 at a time.
  const int begin = tile * TILE + warp * 32 * EACH + lane;
  int key[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) key[i] = begin + 32 * i < n ? keys[begin + 32 * i] : LAST;
#pragma unroll
  for (int i = 0; i < EACH; ++i) atomicAdd(&next[warp][digit_of(key[i], pass)], 1u);
  __syncthreads();

  // The first tile knows its sum at once. Were it to publish its count before, the next tile could take that for all
  // there is, and miss the keys with smaller digits.
  const unsigned digit = threadIdx.x;
  unsigned before_warp[WARPS], count = 0;
#pragma unroll
  for (int i = 0; i < WARPS; ++i) {
    before_warp[i] = count;
    count += next[i][digit];
  }
  if (tile > 0) published[tile * DIGITS + digit] = COUNTED | count;
  const unsigned start = sum_before(count, sums);
  unsigned before = tile == 0 ? sum_before(totals[digit], sums) : 0;
#pragma unroll
  for (int i = 0; i < WARPS; ++i) next[i][digit] = start + before_warp[i];
  __syncthreads();

#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const unsigned own = digit_of(key[i], pass);
    atomicOr(&masks[warp][own], 1u << lane);
    __syncwarp();
    const unsigned lanes = masks[warp][own], lower = lanes & ((1u << lane) - 1);
    const unsigned place = next[warp][own] + __popc(lower);
    __syncwarp();
    if (lower == 0) {
      next[warp][own] = place + __popc(lanes);
      masks[warp][own] = 0;
    }
    __syncwarp();
    in_order[place] = key[i];
  }

  if (tile > 0) before = look_back(published, tile, digit);
  published[tile * DIGITS + digit] = SUMMED | (before + count);
  moves[digit] = before - start;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = i * THREADS + threadIdx.x;
    if (at < n - tile * TILE) sorted[at + moves[digit_of(in_order[at], pass)]] = in_order[at];
  }
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE, counting = (n + COUNTING * AT_ONCE - 1) / (COUNTING * AT_ONCE);
  const size_t numbers = PASSES * (DIGITS + 1 + static_cast<size_t>(tiles) * DIGITS);
  unsigned* zeroed;
  int* other;
  cudaMallocAsync(&zeroed, sizeof(unsigned) * numbers, stream);
  cudaMallocAsync(&other, sizeof(int) * n, stream);
  cudaMemsetAsync(zeroed, 0, sizeof(unsigned) * numbers, stream);
  unsigned *totals = zeroed, *tickets = totals + PASSES * DIGITS, *published = tickets + PASSES;
  ker_totals<<<min(counting, MOST_COUNTING), COUNTING, 0, stream>>>(totals, keys, n);
  for (int pass = 0; pass < PASSES; ++pass) {
    int* to = pass % 2 == 0 ? other : sorted;
    ker_pass<<<tiles, THREADS, 0, stream>>>(to, keys, totals + pass * DIGITS, tickets + pass,
                                            published + static_cast<size_t>(pass) * tiles * DIGITS, n, pass);
    keys = to;
  }
  cudaFreeAsync(other, stream);
  cudaFreeAsync(zeroed, stream);
}
