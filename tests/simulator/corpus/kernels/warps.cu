// Warp-wide operations and atomics of each kind.
#include "../corpus.h"
#include <cuda_fp16.h>

// --- votes: any, all, ballot, and the masks of lanes
__global__ void vote(const int* in, unsigned* out) {
  const int t = threadIdx.x, lane = t % 32;
  const bool p = in[t] > 7;
  unsigned below, at_least;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(at_least));
  const unsigned votes = __ballot_sync(~0u, p);
  out[t] = votes;
  out[64 + t] = __popc(votes & below) + 100 * __popc(votes & at_least) + 10000 * __any_sync(~0u, in[t] == 15) + 20000 * __all_sync(~0u, in[t] < 15);
  if (lane < 20) out[128 + t] = __ballot_sync(0xfffffu, p) + __activemask();
}
PROGRAM(votes) {
  const auto in = numbers<int>(64);
  Array<int> din(in);
  Array<unsigned> out(192);
  out.zero();
  vote<<<1, 64>>>(din, out);
  std::vector<unsigned> expected(192);
  for (int t = 0; t < 64; ++t) {
    const int first = t / 32 * 32;
    unsigned below = 0, rest = 0, any = 0;
    for (int l = 0; l < 32; ++l) {
      expected[t] |= (in[first + l] > 7 ? 1u : 0u) << l;
      (l < t % 32 ? below : rest) += in[first + l] > 7;
      any |= in[first + l] == 15;
    }
    expected[64 + t] = below + 100 * rest + 10000 * any + 20000 * !any;
    if (t % 32 < 20) expected[128 + t] = (expected[t] & 0xfffffu) + 0xfffffu;
  }
  return close(out.host(), expected);
}

// --- matches: match_any and match_all
__global__ void match(const int* in, unsigned* out) {
  const int t = threadIdx.x;
  int same;
  out[t] = __match_any_sync(~0u, in[t] % 5);
  const unsigned all = __match_all_sync(~0u, in[t] / 16, &same);
  out[32 + t] = same ? all : 0;
  const unsigned none = __match_all_sync(~0u, static_cast<long long>(in[t]) << 33, &same);
  out[64 + t] = same ? ~0u : none + 5;
}
PROGRAM(matches) {
  const auto in = numbers<int>(32);
  Array<int> din(in);
  Array<unsigned> out(96);
  match<<<1, 32>>>(din, out);
  std::vector<unsigned> expected(96, 5);
  for (int t = 0; t < 32; ++t) {
    expected[t] = 0;
    for (int l = 0; l < 32; ++l) expected[t] |= (in[l] % 5 == in[t] % 5 ? 1u : 0u) << l;
    expected[32 + t] = ~0u;
  }
  return close(out.host(), expected);
}

// --- warp_reductions: redux.sync of each kind, over all lanes and over some
__global__ void redux(const int* in, int* out) {
  const int t = threadIdx.x, x = in[t] - 8;
  int* o = out + t * 7;
  o[0] = __reduce_add_sync(~0u, x);
  o[1] = __reduce_min_sync(~0u, x);
  o[2] = __reduce_max_sync(~0u, x);
  o[3] = static_cast<int>(__reduce_and_sync(~0u, static_cast<unsigned>(x) | 1u));
  o[4] = static_cast<int>(__reduce_or_sync(~0u, static_cast<unsigned>(in[t])));
  o[5] = static_cast<int>(__reduce_xor_sync(~0u, static_cast<unsigned>(x)));
  o[6] = 0;
  if (t % 2) o[6] = static_cast<int>(__reduce_max_sync(0xaaaaaaaau, static_cast<unsigned>(x)));
}
PROGRAM(warp_reductions) {
  const auto in = numbers<int>(32);
  Array<int> din(in), out(32 * 7);
  redux<<<1, 32>>>(din, out);
  int values[6] = {0, 100, -100, -1, 0, 0};
  unsigned odd = 0;
  for (int t = 0; t < 32; ++t) {
    const int x = in[t] - 8;
    values[0] += x;
    values[1] = x < values[1] ? x : values[1];
    values[2] = x > values[2] ? x : values[2];
    values[3] &= x | 1;
    values[4] |= in[t];
    values[5] ^= x;
    if (t % 2 && static_cast<unsigned>(x) > odd) odd = static_cast<unsigned>(x);
  }
  std::vector<int> expected;
  for (int t = 0; t < 32; ++t) {
    expected.insert(expected.end(), values, values + 6);
    expected.push_back(t % 2 ? static_cast<int>(odd) : 0);
  }
  return close(out.host(), expected);
}

// --- shuffles: each kind, with widths, of words, pairs of words and halves
__global__ void shuffle(const int* in, double* out) {
  const int t = threadIdx.x, x = in[t];
  double* o = out + t * 6;
  o[0] = __shfl_sync(~0u, x, 5) + 100 * __shfl_sync(~0u, x, t + 1, 8);
  o[1] = __shfl_up_sync(~0u, x, 3);
  o[2] = __shfl_down_sync(~0u, x, 2, 16);
  o[3] = __shfl_xor_sync(~0u, x, 9) + 100 * __shfl_xor_sync(~0u, x, 3, 4);
  o[4] = __shfl_down_sync(~0u, x + 0.125, 1);
  o[5] = __half2float(__shfl_xor_sync(~0u, __int2half_rn(x), 1)) + static_cast<double>(__shfl_up_sync(~0u, (1ll << 40) + x, 1));
}
PROGRAM(shuffles) {
  const auto in = numbers<int>(32);
  Array<int> din(in);
  Array<double> out(32 * 6);
  shuffle<<<1, 32>>>(din, out);
  std::vector<double> expected;
  for (int t = 0; t < 32; ++t) {
    expected.push_back(in[5] + 100 * in[t / 8 * 8 + (t + 1) % 8]);
    expected.push_back(in[t < 3 ? t : t - 3]);
    expected.push_back(in[t % 16 < 14 ? t + 2 : t]);
    expected.push_back(in[t ^ 9] + 100 * in[t ^ 3]);
    expected.push_back(in[t < 31 ? t + 1 : t] + 0.125);
    expected.push_back(in[t ^ 1] + static_cast<double>((1ll << 40) + in[t ? t - 1 : 0]));
  }
  return close(out.host(), expected);
}

// --- atomics_of_32_bits: each operation on global memory, 256 threads on one word
__global__ void atomics_32(unsigned* u, int* s) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&u[0], t);
  atomicSub(&u[1], 2u);
  atomicMin(&u[2], 500 - t);
  atomicMax(&u[3], t * 7);
  atomicAnd(&u[4], ~(1u << t % 20));
  atomicOr(&u[5], 1u << t % 11);
  atomicXor(&u[6], t);
  atomicInc(&u[7], 99u);
  atomicDec(&u[8], 77u);
  atomicExch(&u[9], 42u);
  atomicCAS(&u[10], 3u, 5u);
  atomicMin(&s[0], 100 - static_cast<int>(t));
  atomicMax(&s[1], static_cast<int>(t) - 1000);
  atomicAdd(&s[2], -static_cast<int>(t));
}
PROGRAM(atomics_of_32_bits) {
  const std::vector<unsigned> before = {0, 1000, ~0u, 0, ~0u, 0, 0, 0, 0, 0, 3};
  Array<unsigned> u(before);
  Array<int> s(std::vector<int>{0, -5000, 7});
  atomics_32<<<2, 128>>>(u, s);
  std::vector<unsigned> expected = before;
  for (unsigned t = 0; t < 256; ++t) {
    expected[0] += t;
    expected[1] -= 2;
    expected[6] ^= t;
    expected[7] = expected[7] >= 99 ? 0 : expected[7] + 1;
    expected[8] = expected[8] == 0 || expected[8] > 77 ? 77 : expected[8] - 1;
  }
  expected[2] = 245;
  expected[3] = 255 * 7;
  expected[4] = ~0xfffffu;
  expected[5] = 0x7ff;
  expected[9] = 42;
  expected[10] = 5;
  return close(u.host(), expected) && close(s.host(), {-155, -745, 7 - 255 * 128});
}

// --- atomics_of_64_bits: integers, double, and what they return
__global__ void atomics_64(unsigned long long* u, double* d, int* seen) {
  const unsigned t = threadIdx.x;
  const auto before = atomicAdd(&u[0], 1ull << 32 | 1);
  atomicAdd(&seen[before & 0xff], 1);
  atomicMax(&u[1], static_cast<unsigned long long>(t) << 40);
  atomicMin(reinterpret_cast<long long*>(&u[2]), -static_cast<long long>(t) << 33);
  atomicXor(&u[3], 1ull << t % 64);
  atomicExch(&u[4], 1ull << 50);
  atomicCAS(&u[5], 0ull, 1ull << 60);
  atomicAdd(d, 0.25 * t);
}
PROGRAM(atomics_of_64_bits) {
  Array<unsigned long long> u(6);
  Array<double> d(1);
  Array<int> seen(96);
  u.zero();
  d.zero();
  seen.zero();
  atomics_64<<<1, 96>>>(u, d, seen);
  const unsigned long long expected[] = {96ull << 32 | 96, 95ull << 40, static_cast<unsigned long long>(-95ll * (1ll << 33)), ~0ull << 32, 1ull << 50, 1ull << 60};
  const auto got = u.host();
  return std::memcmp(got.data(), expected, sizeof expected) == 0 && d.host()[0] == 0.25 * 95 * 48 && close(seen.host(), std::vector<int>(96, 1));
}

// --- atomics_of_reals: float and half2 in global and shared memory, a maximum by CAS
__device__ void atomic_maximum(float* at, float x) {
  int* bits = reinterpret_cast<int*>(at);
  int seen = *reinterpret_cast<volatile int*>(bits);
  while (__int_as_float(seen) < x) {
    const int found = atomicCAS(bits, seen, __float_as_int(x));
    if (found == seen) break;
    seen = found;
  }
}
__global__ void atomics_real(const float* in, float* out, __half2* pairs) {
  __shared__ float sum, top;
  if (threadIdx.x == 0) {
    sum = 0;
    top = -1;
  }
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x]);
  atomic_maximum(&top, in[threadIdx.x]);
  atomicAdd(pairs, __floats2half2_rn(in[threadIdx.x] / 8, 1));
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&out[0], sum);
    atomicAdd(&out[1], top);
  }
}
PROGRAM(atomics_of_reals) {
  const auto in = numbers(64);
  Array<float> din(in), out(2);
  Array<__half2> pairs(1);
  out.zero();
  CUDA(cudaMemset(pairs, 0, sizeof(__half2)));
  atomics_real<<<1, 64>>>(din, out, pairs);
  float sum = 0;
  for (const float x : in) sum += x;
  const auto pair = pairs.host()[0];
  return close(out.host(), {sum, 15}) && __low2float(pair) == sum / 8 && __high2float(pair) == 64;
}

// --- block_scoped_atomics: _block and _system, inc as a ring buffer in shared memory
__global__ void ring(int* out, int* total) {
  __shared__ unsigned next;
  __shared__ int slots[32];
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  const unsigned mine = atomicInc_block(&next, 31);
  if (threadIdx.x < 32) slots[mine] = threadIdx.x;
  __syncthreads();
  atomicAdd_system(total, slots[threadIdx.x % 32]);
  if (threadIdx.x == 0) *out = static_cast<int>(next);
}
PROGRAM(block_scoped_atomics) {
  Array<int> out(1), total(1);
  total.zero();
  ring<<<1, 32>>>(out, total);
  return out.host()[0] == 0 && total.host()[0] == 31 * 16;
}
