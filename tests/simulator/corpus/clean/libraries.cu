// Right: primitives of CUB and groups of threads, whose insides no finding may name.
#include "../corpus.h"
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

namespace cg = cooperative_groups;

// --- scratch_of_two_primitives: CUB's reduce and scan share their scratch, with the barrier that CUB asks for
__global__ void sum_and_scan(const int* in, int* sums, int* scans) {
  using Reduce = cub::BlockReduce<int, 128>;
  using Scan = cub::BlockScan<int, 128>;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
  } scratch;
  const int i = blockIdx.x * 128 + threadIdx.x;
  const int sum = Reduce(scratch.reduce).Sum(in[i]);
  __syncthreads();
  int before;
  Scan(scratch.scan).ExclusiveSum(in[i], before);
  scans[i] = before;
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
PROGRAM(scratch_of_two_primitives) {
  const int n = 512;
  const auto in = numbers<int>(n);
  Array<int> din(in), sums(4), scans(n);
  sum_and_scan<<<4, 128>>>(din, sums, scans);
  std::vector<int> expected_sums(4), expected_scans(n);
  for (int i = 0; i < n; ++i) {
    expected_scans[i] = expected_sums[i / 128];
    expected_sums[i / 128] += in[i];
  }
  return close(sums.host(), expected_sums) && close(scans.host(), expected_scans);
}

// --- tiles_of_eight: tiled partitions that reduce on their own, with their own part of shared memory
__global__ void sums_of_eight(const int* in, int* out) {
  __shared__ int s[64];
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int t = threadIdx.x;
  s[t] = in[t];
  tile.sync();
  int x = s[t ^ 7];
  for (int step = 4; step > 0; step /= 2) x += tile.shfl_down(x, step);
  tile.sync();
  if (tile.thread_rank() == 0) s[t] = x;
  tile.sync();
  out[t] = s[t / 8 * 8];
}
PROGRAM(tiles_of_eight) {
  const auto in = numbers<int>(64);
  Array<int> din(in), out(64);
  sums_of_eight<<<1, 64>>>(din, out);
  std::vector<int> expected(64);
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 8; ++j) expected[i] += in[i / 8 * 8 + j];
  }
  return close(out.host(), expected);
}

// --- coalesced_threads: the threads of a branch form a group and count themselves
__global__ void count_odd(int n, const int* in, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2) {
    const auto group = cg::coalesced_threads();
    if (group.thread_rank() == 0) atomicAdd(count, static_cast<int>(group.size()));
  }
}
PROGRAM(coalesced_threads) {
  const int n = 700;
  const auto in = numbers<int>(n);
  Array<int> din(in), count(1);
  count.zero();
  count_odd<<<3, 256>>>(n, din, count);
  int expected = 0;
  for (const int x : in) expected += x % 2;
  return count.host()[0] == expected;
}
