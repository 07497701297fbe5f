// Prefix sums, what is made of them, and sorting.
#include "../corpus.h"

#include <algorithm>

static std::vector<int> prefix(const std::vector<int>& in) {
  auto out = in;
  for (std::size_t i = 1; i < out.size(); ++i) out[i] += out[i - 1];
  return out;
}

// --- scan_hillis_steele: in one buffer, with two barriers a step
__global__ void hillis_steele(const int* in, int* out) {
  __shared__ int s[512];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int step = 1; step < 512; step *= 2) {
    const int left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
    __syncthreads();
  }
  out[t] = s[t];
}
PROGRAM(scan_hillis_steele) {
  const auto in = numbers<int>(512);
  Array<int> din(in), out(512);
  hillis_steele<<<1, 512>>>(din, out);
  return close(out.host(), prefix(in));
}

// --- scan_blelloch: up and down the tree, with padding against bank conflicts
__device__ int padded(int i) { return i + i / 32; }
__global__ void blelloch(const int* in, int* out) {
  __shared__ int s[512 + 16];
  const int t = threadIdx.x;
  s[padded(2 * t)] = in[2 * t];
  s[padded(2 * t + 1)] = in[2 * t + 1];
  int step = 1;
  for (int d = 256; d > 0; d /= 2, step *= 2) {
    __syncthreads();
    if (t < d) s[padded(step * (2 * t + 2) - 1)] += s[padded(step * (2 * t + 1) - 1)];
  }
  if (t == 0) s[padded(511)] = 0;
  for (int d = 1; d < 512; d *= 2) {
    step /= 2;
    __syncthreads();
    if (t < d) {
      const int a = padded(step * (2 * t + 1) - 1), b = padded(step * (2 * t + 2) - 1);
      const int left = s[a];
      s[a] = s[b];
      s[b] += left;
    }
  }
  __syncthreads();
  out[2 * t] = s[padded(2 * t)];
  out[2 * t + 1] = s[padded(2 * t + 1)];
}
PROGRAM(scan_blelloch) {
  const auto in = numbers<int>(512);
  Array<int> din(in), out(512);
  blelloch<<<1, 256>>>(din, out);
  auto expected = prefix(in);
  for (int i = 0; i < 512; ++i) expected[i] -= in[i];
  return close(out.host(), expected);
}

// --- scan_by_warps: shuffles up, then the warps' sums
__device__ int scan_warp(int x) {
  for (int step = 1; step < 32; step *= 2) {
    const int left = __shfl_up_sync(~0u, x, step);
    if (threadIdx.x % 32 >= step) x += left;
  }
  return x;
}
__global__ void by_warps(const int* in, int* out, int* sums) {
  __shared__ int warps[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int x = scan_warp(in[i]);
  if (lane == 31) warps[warp] = x;
  __syncthreads();
  if (warp == 0) {
    const int sum = scan_warp(lane < blockDim.x / 32 ? warps[lane] : 0);
    __syncwarp();
    warps[lane] = sum;
  }
  __syncthreads();
  if (warp > 0) x += warps[warp - 1];
  out[i] = x;
  if (sums && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = x;
}
PROGRAM(scan_by_warps) {
  const auto in = numbers<int>(1024);
  Array<int> din(in), out(1024);
  by_warps<<<1, 1024>>>(din, out, nullptr);
  return close(out.host(), prefix(in));
}

// --- scan_in_three_launches: blocks, their sums, and the sums added back
__global__ void add_sums(int* out, const int* sums) {
  if (blockIdx.x > 0) out[blockIdx.x * blockDim.x + threadIdx.x] += sums[blockIdx.x - 1];
}
PROGRAM(scan_in_three_launches) {
  const int n = 8192;
  const auto in = numbers<int>(n);
  Array<int> din(in), out(n), sums(32), scanned(32);
  by_warps<<<32, 256>>>(din, out, sums);
  by_warps<<<1, 32>>>(sums, scanned, nullptr);
  add_sums<<<32, 256>>>(out, scanned);
  return close(out.host(), prefix(in));
}

// --- compaction: what is kept goes where the scan of its flags says
__global__ void compact(const int* in, int* out, int* count) {
  __shared__ int s[256];
  const int t = threadIdx.x;
  const int keep = in[t] >= 8;
  s[t] = keep;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const int left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
    __syncthreads();
  }
  if (keep) out[s[t] - 1] = in[t];
  if (t == 255) *count = s[255];
}
PROGRAM(compaction) {
  const auto in = numbers<int>(256);
  std::vector<int> expected;
  for (const int x : in) {
    if (x >= 8) expected.push_back(x);
  }
  Array<int> din(in), out(expected.size()), count(1);
  compact<<<1, 256>>>(din, out, count);
  return count.host()[0] == static_cast<int>(expected.size()) && close(out.host(), expected);
}

// --- bitonic_sort: in shared memory, with a barrier a step
__global__ void bitonic(int* data) {
  __shared__ int s[512];
  const int t = threadIdx.x;
  s[t] = data[t];
  for (int k = 2; k <= 512; k *= 2) {
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      const int other = t ^ j;
      if (other > t && (s[t] > s[other]) == ((t & k) == 0)) {
        const int keep = s[t];
        s[t] = s[other];
        s[other] = keep;
      }
    }
  }
  __syncthreads();
  data[t] = s[t];
}
PROGRAM(bitonic_sort) {
  auto expected = numbers<int>(512, 100000);
  Array<int> data(expected);
  bitonic<<<1, 512>>>(data);
  std::sort(expected.begin(), expected.end());
  return close(data.host(), expected);
}

// --- odd_even_sort: a launch per round, over global memory
__global__ void odd_even(int n, int first, unsigned* data) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + first;
  if (i + 1 >= n) return;
  const unsigned a = data[i], b = data[i + 1];
  data[i] = min(a, b);
  data[i + 1] = max(a, b);
}
PROGRAM(odd_even_sort) {
  const int n = 101;
  auto expected = numbers<unsigned>(n, 5000);
  Array<unsigned> data(expected);
  for (int round = 0; round < n; ++round) odd_even<<<1, 64>>>(n, round % 2, data);
  std::sort(expected.begin(), expected.end());
  return close(data.host(), expected);
}

// --- radix_sort: a bit at a time, placed by ballots
__global__ void radix(unsigned* data) {
  __shared__ unsigned s[256];
  __shared__ int zeros[8];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  unsigned x = data[t];
  for (int bit = 0; bit < 16; ++bit) {
    const bool zero = (x >> bit & 1) == 0;
    const unsigned votes = __ballot_sync(~0u, zero);
    if (lane == 0) zeros[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < 8; ++w) {
      before += w < warp ? zeros[w] : 0;
      all += zeros[w];
    }
    before += __popc(votes & ((1u << lane) - 1));
    s[zero ? before : all + t - before] = x;
    __syncthreads();
    x = s[t];
  }
  data[t] = x;
}
PROGRAM(radix_sort) {
  auto expected = numbers<unsigned>(256, 65536);
  Array<unsigned> data(expected);
  radix<<<1, 256>>>(data);
  std::sort(expected.begin(), expected.end());
  return close(data.host(), expected);
}

// --- merge_by_rank: two sorted lists, each element finding its place by binary search
__device__ int rank_of(int x, int n, const int* list, bool after_equal) {
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (list[middle] < x || (after_equal && list[middle] == x)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
__global__ void merge(int n, const int* a, const int* b, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i + rank_of(a[i], n, b, false)] = a[i];
  out[i + rank_of(b[i], n, a, true)] = b[i];
}
PROGRAM(merge_by_rank) {
  const int n = 300;
  auto all = numbers<int>(2 * n, 500);
  std::vector<int> a(all.begin(), all.begin() + n), b(all.begin() + n, all.end());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::sort(all.begin(), all.end());
  Array<int> da(a), db(b), out(2 * n);
  merge<<<3, 128>>>(n, da, db, out);
  return close(out.host(), all);
}
