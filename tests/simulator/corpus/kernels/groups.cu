// Cooperative groups and the block and warp primitives of CUB.
#include "../corpus.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

#include <algorithm>

namespace cg = cooperative_groups;

// --- tiles: tiled partitions of 4, 16 and 32 with shuffles, votes and a reduction
template <int size>
__device__ int tile_sum(const cg::thread_block& block, int x) {
  const auto tile = cg::tiled_partition<size>(block);
  const int sum = cg::reduce(tile, x, cg::plus<int>());
  return sum + 1000 * tile.any(x == 15) + 2000 * tile.all(x < 15) + 4000 * static_cast<int>(tile.meta_group_rank()) + tile.shfl(x, size - 1);
}
__global__ void tile_sums(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  const int x = in[block.thread_rank()];
  out[threadIdx.x] = tile_sum<4>(block, x);
  out[128 + threadIdx.x] = tile_sum<16>(block, x);
  out[256 + threadIdx.x] = tile_sum<32>(block, x);
}
PROGRAM(tiles) {
  const auto in = numbers<int>(128);
  Array<int> din(in), out(3 * 128);
  tile_sums<<<1, 128>>>(din, out);
  std::vector<int> expected;
  for (const int size : {4, 16, 32}) {
    for (int i = 0; i < 128; ++i) {
      const int first = i / size * size;
      int sum = 0, any = 0;
      for (int j = first; j < first + size; ++j) {
        sum += in[j];
        any |= in[j] == 15;
      }
      expected.push_back(sum + 1000 * any + 2000 * !any + 4000 * (i / size) + in[first + size - 1]);
    }
  }
  return close(out.host(), expected);
}

// --- coalesced_group: ranks and shuffles among the threads of a branch
__global__ void coalesced(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t] = -1;
  if (in[t] % 3 == 0) {
    const auto group = cg::coalesced_threads();
    const int first = group.shfl(t, 0);
    out[t] = first * 10000 + static_cast<int>(group.thread_rank()) * 100 + static_cast<int>(group.size());
  }
}
PROGRAM(coalesced_group) {
  const auto in = numbers<int>(64);
  Array<int> din(in), out(64);
  coalesced<<<1, 64>>>(din, out);
  std::vector<int> expected(64, -1);
  for (int warp = 0; warp < 64; warp += 32) {
    std::vector<int> members;
    for (int t = warp; t < warp + 32; ++t) {
      if (in[t] % 3 == 0) members.push_back(t);
    }
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      expected[members[rank]] = members[0] * 10000 + static_cast<int>(rank) * 100 + static_cast<int>(members.size());
    }
  }
  return close(out.host(), expected);
}

// --- labelled_groups: labeled_partition and binary_partition
__global__ void labelled(const int* in, int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int label = in[threadIdx.x] % 4;
  const auto same = cg::labeled_partition(warp, label);
  const auto parity = cg::binary_partition(warp, in[threadIdx.x] % 2 == 0);
  out[threadIdx.x] = static_cast<int>(same.size()) * 100 + static_cast<int>(parity.thread_rank());
}
PROGRAM(labelled_groups) {
  const auto in = numbers<int>(32);
  Array<int> din(in), out(32);
  labelled<<<1, 32>>>(din, out);
  std::vector<int> expected(32);
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 32; ++j) expected[i] += (in[j] % 4 == in[i] % 4) * 100 + (j < i && in[j] % 2 == in[i] % 2);
  }
  return close(out.host(), expected);
}

// --- grid_reduction: a cooperative launch of as many blocks as fit, two grid barriers
__global__ void grid_sum(int n, const float* in, float* parts, float* out) {
  const auto grid = cg::this_grid();
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  if (grid.thread_rank() == 0) *out = 0;
  float x = 0;
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) x += in[i];
  x = cg::reduce(tile, x, cg::plus<float>());
  if (tile.thread_rank() == 0) parts[blockIdx.x * (block.size() / 32) + tile.meta_group_rank()] = x;
  grid.sync();
  const unsigned count = gridDim.x * block.size() / 32;
  for (unsigned i = static_cast<unsigned>(grid.thread_rank()); i < count; i += grid.size()) atomicAdd(out, parts[i]);
  grid.sync();
  if (grid.thread_rank() == grid.size() - 1) *out = *out * 2;
}
PROGRAM(grid_reduction) {
  int n = 5000, blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid_sum, 128, 0));
  blocks = blocks > 4 ? 4 : blocks;
  const auto in = numbers(n);
  Array<float> din(in), parts(blocks * 4), out(1);
  const float* pin = din;
  float *pparts = parts, *pout = out;
  void* arguments[] = {&n, &pin, &pparts, &pout};
  CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(grid_sum), dim3(blocks), dim3(128), arguments, 0, nullptr));
  float expected = 0;
  for (const float x : in) expected += 2 * x;
  return out.host()[0] == expected;
}

// --- cub_block_reduce: sum, maximum and a partly filled block, by two algorithms
struct Larger {
  __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
__global__ void block_reduce(int valid, const int* in, int* out) {
  using Shuffles = cub::BlockReduce<int, 128>;
  using Raking = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING>;
  __shared__ Shuffles::TempStorage shuffles;
  __shared__ Raking::TempStorage raking;
  const int x = in[threadIdx.x];
  const int sum = Shuffles(shuffles).Sum(x);
  const int top = Raking(raking).Reduce(x, Larger());
  __syncthreads();
  const int some = Shuffles(shuffles).Sum(x, valid);
  if (threadIdx.x == 0) {
    out[0] = sum;
    out[1] = top;
    out[2] = some;
  }
}
PROGRAM(cub_block_reduce) {
  const auto in = numbers<int>(128, 1000);
  Array<int> din(in), out(3);
  block_reduce<<<1, 128>>>(75, din, out);
  std::vector<int> expected(3);
  for (int i = 0; i < 128; ++i) {
    expected[0] += in[i];
    expected[1] = std::max(expected[1], in[i]);
    expected[2] += i < 75 ? in[i] : 0;
  }
  return close(out.host(), expected);
}

// --- cub_block_scan: four items a thread, with the block's sum
__global__ void block_scan(const int* in, int* out, int* sum) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ Scan::TempStorage scratch;
  int items[4], all;
  for (int i = 0; i < 4; ++i) items[i] = in[threadIdx.x * 4 + i];
  Scan(scratch).InclusiveSum(items, items, all);
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = items[i];
  if (threadIdx.x == 0) *sum = all;
}
PROGRAM(cub_block_scan) {
  auto expected = numbers<int>(256);
  Array<int> in(expected), out(256), sum(1);
  block_scan<<<1, 64>>>(in, out, sum);
  for (int i = 1; i < 256; ++i) expected[i] += expected[i - 1];
  return close(out.host(), expected) && sum.host()[0] == expected[255];
}

// --- cub_load_sort_store: BlockLoad, BlockRadixSort and BlockStore around floats of both signs
__global__ void load_sort_store(int n, const float* in, float* out) {
  using Load = cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<float, 64, 4>;
  using Store = cub::BlockStore<float, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union {
    Load::TempStorage load;
    Sort::TempStorage sort;
    Store::TempStorage store;
  } scratch;
  float items[4];
  Load(scratch.load).Load(in, items, n, INFINITY);
  __syncthreads();
  Sort(scratch.sort).Sort(items);
  __syncthreads();
  Store(scratch.store).Store(out, items, n);
}
PROGRAM(cub_load_sort_store) {
  const int n = 250;
  auto expected = numbers(n, 1000);
  for (auto& x : expected) x = x / 7 - 60;
  Array<float> in(expected), out(n);
  load_sort_store<<<1, 64>>>(n, in, out);
  std::sort(expected.begin(), expected.end());
  return close(out.host(), expected);
}

// --- cub_warps: WarpReduce and WarpScan, also for warps of eight
__global__ void warp_primitives(const int* in, int* out) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int, 8>;
  __shared__ Reduce::TempStorage reduce[2];
  __shared__ Scan::TempStorage scan[8];
  const int t = threadIdx.x;
  int before;
  Scan(scan[t / 8]).ExclusiveSum(in[t], before);
  const int sum = Reduce(reduce[t / 32]).Sum(in[t]);
  out[t] = before;
  if (t % 32 == 0) out[64 + t / 32] = sum;
}
PROGRAM(cub_warps) {
  const auto in = numbers<int>(64);
  Array<int> din(in), out(66);
  warp_primitives<<<1, 64>>>(din, out);
  std::vector<int> expected(66);
  for (int i = 0; i < 64; ++i) {
    for (int j = i / 8 * 8; j < i; ++j) expected[i] += in[j];
    expected[64 + i / 32] += in[i];
  }
  return close(out.host(), expected);
}
