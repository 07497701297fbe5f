// What programs have CUB, thrust and cooperative groups do. Each function returns 0 if the result is right.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <algorithm>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/unique.h>
#include <vector>

static const int n = 20000;  // several blocks of each kernel

static std::vector<int> numbers() {
  std::vector<int> list(n);
  unsigned state = 12345;
  for (int& x : list) x = static_cast<int>((state = state * 1664525u + 1013904223u) >> 30);
  return list;
}
static int* on_device(const std::vector<int>& host) {
  int* device;
  cudaMalloc(&device, host.size() * sizeof(int));
  cudaMemcpy(device, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice);
  return device;
}
static int differs(const int* begin, const int* end, const std::vector<int>& expected) {
  std::vector<int> got(end - begin);
  if (const auto error = cudaMemcpy(got.data(), begin, got.size() * sizeof(int), cudaMemcpyDeviceToHost)) return error;
  return got != expected;
}

struct Moments {
  float count, mean, squares;
};
struct Together {
  __host__ __device__ Moments operator()(const Moments& a, const Moments& b) const {
    const float count = a.count + b.count, apart = b.mean - a.mean;
    return {count, a.mean + apart * (b.count / count), a.squares + b.squares + apart * apart * (a.count * b.count / count)};
  }
};
struct One {
  __host__ __device__ Moments operator()(int) const { return {1, 1.5f, 0}; }
};
struct Row {
  int columns;
  __host__ __device__ int operator()(int i) const { return i / columns; }
};
struct Later {
  __host__ __device__ bool operator()(int a, int b) const { return a > b; }
};

// Tiles of more than a warp meet in shared memory that the device reserves, behind what the kernel asks for.
__global__ void sum_by_two_warps(int* sums) {
  __shared__ int before[128];
  extern __shared__ int behind[];
  const auto tile = cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block());
  const int t = threadIdx.x;
  before[t] = behind[t] = t;
  tile.sync();
  const int other = before[t ^ 63] + behind[t ^ 63];
  sums[t] = cooperative_groups::reduce(tile, other, cooperative_groups::plus<int>());
}

extern "C" {

// Blocks write over what those before them have read, of which they hear without a fence.
int unique_in_place() {
  auto expected = numbers();
  int* data = on_device(expected);
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  return differs(data, thrust::unique(thrust::device, data, data + n), expected);
}

int unique_copied() {
  auto expected = numbers();
  const int* data = on_device(expected);
  int* copied = on_device(expected);
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  return differs(copied, thrust::unique_copy(thrust::device, data, data + n, copied), expected);
}

// A merge sort, whose launches may begin early, and which looks at the key behind its last one.
int sorted_by_a_comparator() {
  auto expected = numbers();
  int* data = on_device(expected);
  std::sort(expected.begin(), expected.end(), Later{});
  thrust::sort(thrust::device, data, data + n, Later{});
  return differs(data, data + n, expected);
}

// It looks at the key behind its last one, too.
int united() {
  auto expected = numbers();
  std::sort(expected.begin(), expected.end());
  const int* data = on_device(expected);
  int* both = on_device(expected);
  return differs(both, thrust::set_union(thrust::device, data, data + n, data, data + n, both), expected);
}

// Its partial results are pairs with bytes between their members.
int largest() {
  const auto host = numbers();
  const int* data = on_device(host);
  return *thrust::max_element(thrust::device, thrust::device_pointer_cast(data), thrust::device_pointer_cast(data) + n) != 3;
}

// More blocks than can wait at a time, each for those before it.
int many_reduced_by_key() {
  const int rows = 1200, columns = 256;
  Moments* sums;
  cudaMalloc(&sums, rows * sizeof(Moments));
  const auto index = thrust::counting_iterator<int>(0);
  const auto row = thrust::make_transform_iterator(index, Row{columns});
  const auto values = thrust::make_transform_iterator(index, One{});
  thrust::reduce_by_key(thrust::device, row, row + rows * columns, values, thrust::make_discard_iterator(), sums,
                        thrust::equal_to<int>(), Together{});
  std::vector<Moments> got(rows);
  if (const auto error = cudaMemcpy(got.data(), sums, rows * sizeof(Moments), cudaMemcpyDeviceToHost)) return error;
  return std::any_of(got.begin(), got.end(), [](const Moments& m) { return m.count != columns || m.mean != 1.5f; });
}

int summed_by_two_warps() {
  std::vector<int> got(128);
  int* sums = on_device(got);
  sum_by_two_warps<<<1, 128, 128 * sizeof(int)>>>(sums);
  if (const auto error = cudaMemcpy(got.data(), sums, 128 * sizeof(int), cudaMemcpyDeviceToHost)) return error;
  for (int t = 0; t < 128; ++t) {
    if (got[t] != (t < 64 ? 63 * 64 : 191 * 64)) return 1;
  }
  return 0;
}

}
