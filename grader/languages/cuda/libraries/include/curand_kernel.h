// The functions of cuRAND for kernels, with states and names of NVIDIA's; its header comes before this one where it is
// installed. All states are Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) with
// the sequence in the upper half of the counter, so their numbers are other ones than those of NVIDIA's generators.
#pragma once

#include <cuda_runtime.h>
#include <curand.h>

struct curandStatePhilox4_32_10 {  // without gaps, as kernels copy it whole
  uint4 numbers;
  unsigned long long seed, sequence, block;  // of four numbers
  unsigned used;                             // of them
  unsigned has_normal, has_normal_double;    // the second one of a pair
  float normal;
  double normal_double;
};
struct curandStateXORWOW : curandStatePhilox4_32_10 {};
struct curandStateMRG32k3a : curandStatePhilox4_32_10 {};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandState;

namespace curand_on_the_simulator {

typedef curandStatePhilox4_32_10 State;

__device__ inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const unsigned high = __umulhi(0xD2511F53u, counter.x), low = 0xD2511F53u * counter.x;
    const unsigned high2 = __umulhi(0xCD9E8D57u, counter.z), low2 = 0xCD9E8D57u * counter.z;
    counter = make_uint4(high2 ^ counter.y ^ key.x, low2, high ^ counter.w ^ key.y, low);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

__device__ inline void fill(State* state) {
  const unsigned long long block = state->block, sequence = state->sequence;
  state->numbers =
      philox(make_uint4(unsigned(block), unsigned(block >> 32), unsigned(sequence), unsigned(sequence >> 32)),
             make_uint2(unsigned(state->seed), unsigned(state->seed >> 32)));
}

__device__ inline void go_to(State* state, unsigned long long number) {
  state->block = number / 4;
  state->used = number % 4;
  state->has_normal = state->has_normal_double = 0;
  state->normal = 0;
  state->normal_double = 0;
  fill(state);
}

// From 2^-33 to 1.
__device__ inline float uniform(unsigned bits) { return bits * 0x1p-32f + 0x1p-33f; }
__device__ inline double uniform_double(unsigned low, unsigned high) {
  const unsigned long long bits = (static_cast<unsigned long long>(high) << 21) ^ low >> 11;
  return (bits & 0x1FFFFFFFFFFFFFull) * 0x1p-53 + 0x1p-54;
}

// Two normal numbers of two uniform ones (Box and Muller, 1958).
__device__ inline float2 normal2(float u, float v) {
  float sine, cosine;
  sincospif(2 * v, &sine, &cosine);
  const float radius = sqrtf(-2 * logf(u));
  return make_float2(radius * sine, radius * cosine);
}
__device__ inline double2 normal2(double u, double v) {
  double sine, cosine;
  sincospi(2 * v, &sine, &cosine);
  const double radius = sqrt(-2 * log(u));
  return make_double2(radius * sine, radius * cosine);
}

}  // namespace curand_on_the_simulator

__device__ inline void skipahead(unsigned long long count, curandStatePhilox4_32_10* state) {
  curand_on_the_simulator::go_to(state, state->block * 4 + state->used + count);
}
__device__ inline void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10* state) {
  state->sequence += count;
  curand_on_the_simulator::go_to(state, state->block * 4 + state->used);
}

__device__ inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                   curandStatePhilox4_32_10* state) {
  state->seed = seed;
  state->sequence = sequence;
  curand_on_the_simulator::go_to(state, offset);
}

__device__ inline unsigned curand(curandStatePhilox4_32_10* state) {
  if (state->used == 4) {
    ++state->block;
    state->used = 0;
    curand_on_the_simulator::fill(state);
  }
  const uint4 n = state->numbers;
  const unsigned number = state->used;
  ++state->used;
  return number == 0 ? n.x : number == 1 ? n.y : number == 2 ? n.z : n.w;
}
__device__ inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned x = curand(state), y = curand(state), z = curand(state);
  return make_uint4(x, y, z, curand(state));
}

__device__ inline float curand_uniform(curandStatePhilox4_32_10* state) {
  return curand_on_the_simulator::uniform(curand(state));
}
__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 n = curand4(state);
  using curand_on_the_simulator::uniform;
  return make_float4(uniform(n.x), uniform(n.y), uniform(n.z), uniform(n.w));
}
__device__ inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
  const unsigned low = curand(state);
  return curand_on_the_simulator::uniform_double(low, curand(state));
}
__device__ inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const double first = curand_uniform_double(state);
  return make_double2(first, curand_uniform_double(state));
}

__device__ inline float2 curand_normal2(curandStatePhilox4_32_10* state) {
  const float u = curand_uniform(state);
  return curand_on_the_simulator::normal2(u, curand_uniform(state));
}
__device__ inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const float2 first = curand_normal2(state), second = curand_normal2(state);
  return make_float4(first.x, first.y, second.x, second.y);
}
__device__ inline float curand_normal(curandStatePhilox4_32_10* state) {
  if (state->has_normal) {
    state->has_normal = 0;
    return state->normal;
  }
  const float2 pair = curand_normal2(state);
  state->normal = pair.y;
  state->has_normal = 1;
  return pair.x;
}
__device__ inline double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  const double u = curand_uniform_double(state);
  return curand_on_the_simulator::normal2(u, curand_uniform_double(state));
}
__device__ inline double curand_normal_double(curandStatePhilox4_32_10* state) {
  if (state->has_normal_double) {
    state->has_normal_double = 0;
    return state->normal_double;
  }
  const double2 pair = curand_normal2_double(state);
  state->normal_double = pair.y;
  state->has_normal_double = 1;
  return pair.x;
}
__device__ inline float curand_log_normal(curandStatePhilox4_32_10* state, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(state));
}
__device__ inline double curand_log_normal_double(curandStatePhilox4_32_10* state, double mean, double deviation) {
  return exp(mean + deviation * curand_normal_double(state));
}

// Arrivals in a time of ``mean``, whose distances are exponential; of large means in parts, whose sum is a Poisson
// number again.
__device__ inline unsigned curand_poisson(curandStatePhilox4_32_10* state, double mean) {
  unsigned arrivals = 0;
  for (double left = mean; left > 0; left -= 16) {
    double product = curand_uniform_double(state);
    for (const double end = exp(-fmin(left, 16.0)); product > end; product *= curand_uniform_double(state)) ++arrivals;
  }
  return arrivals;
}
