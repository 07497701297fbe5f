// Restores the arrays of a sweep: makes all copies and fills in one launch. One launch for each would keep the host
// busy for longer than the sweep takes, and the variation of that time would be larger than the sweep's time.
#include <cuda_runtime.h>

#include <cstdint>

struct Piece {
  uint64_t to, from, bytes;  // if `from` is null, the memory is filled with 0xFF
};

constexpr int THREADS = 256, WORDS_PER_THREAD = 8, MOST_BLOCKS = 1024;
constexpr long long LEAST_CYCLES = 200'000;  // 100 us: the host launches the sweep before restoring ends

template <typename Word>
__device__ void put(const Piece& piece, Word fill) {
  auto* to = reinterpret_cast<Word*>(piece.to);
  const auto* from = reinterpret_cast<const Word*>(piece.from);
  const uint64_t words = piece.bytes / sizeof(Word);
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * THREADS;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x; i < words; i += step) {
    to[i] = from == nullptr ? fill : from[i];
  }
}

// One row of blocks per piece, which uses the widest accesses that the piece's alignment allows.
__global__ void __launch_bounds__(THREADS) ker_restore(const Piece* pieces) {
  const long long began = clock64();
  const Piece piece = pieces[blockIdx.y];
  const uint64_t together = piece.to | piece.from | piece.bytes;
  if (together % sizeof(uint4) == 0) {
    put(piece, make_uint4(~0u, ~0u, ~0u, ~0u));
  } else if (together % sizeof(uint32_t) == 0) {
    put(piece, ~uint32_t{0});
  } else {
    put(piece, uint8_t{0xFF});
  }
  if (blockIdx.x + blockIdx.y + threadIdx.x == 0) {
    while (clock64() - began < LEAST_CYCLES) {}
  }
}

// Restores `count` pieces, whose table is in device memory; `longest` is the size of the largest one in bytes.
extern "C" void launch_restore(const Piece* pieces, int count, long long longest, cudaStream_t stream) {
  const long long per_block = static_cast<long long>(sizeof(uint4)) * THREADS * WORDS_PER_THREAD;
  const long long blocks = (longest + per_block - 1) / per_block;
  const dim3 grid(static_cast<unsigned>(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), static_cast<unsigned>(count));
  ker_restore<<<grid, THREADS, 0, stream>>>(pieces);
}
