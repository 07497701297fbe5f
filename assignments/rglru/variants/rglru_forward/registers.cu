// Tiles wait in registers: a thread asks for its next steps before it combines these. A block has 32 channels, and one
// warp scans over the groups of steps, a lane for each channel.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 512, PAIRS = 16, CHANNELS = 2 * PAIRS, GROUPS = THREADS / PAIRS;
constexpr int STEPS = 4, TILE = GROUPS * STEPS;  // of a thread, of a block

template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};

// `columns` of two neighbouring channels, zeros instead of the others.
template <bool EVEN, class T>
__device__ inline Pair<T> load(const T* from, int columns) {
  Pair<T> pair = {};
  if constexpr (EVEN) {
    if (columns > 0) pair = *reinterpret_cast<const Pair<T>*>(from);
  } else {
    if (columns > 0) pair.of[0] = from[0];
    if (columns > 1) pair.of[1] = from[1];
  }
  return pair;
}

template <bool EVEN, class T>
__device__ inline void store(T* to, const float (&value)[2], int columns) {
  const Pair<T> pair{{static_cast<T>(value[0]), static_cast<T>(value[1])}};
  if constexpr (EVEN) {
    if (columns > 0) *reinterpret_cast<Pair<T>*>(to) = pair;
  } else {
    if (columns > 0) to[0] = pair.of[0];
    if (columns > 1) to[1] = pair.of[1];
  }
}

// Which part of an array [batch, length, width] a thread works on.
struct Place {
  int lowest, channel, columns;  // the block's first channel, the thread's, and how many of its two there are
  size_t sequence;

  __device__ explicit Place(int width) {
    const unsigned slabs = (width + CHANNELS - 1) / CHANNELS;
    sequence = blockIdx.x / slabs;
    lowest = blockIdx.x % slabs * CHANNELS;
    channel = lowest + threadIdx.x % PAIRS * 2;
    columns = min(max(width - channel, 0), 2);
  }
};

// One more than GROUPS: the scanning lanes meet different banks.
struct Exchange {
  float factor[CHANNELS][GROUPS + 1], value[CHANNELS][GROUPS + 1];
};

// A thread brings its steps combined and gets the state before them. `carry` of a lane of the first warp is the state
// before the tile, and becomes that behind it.
__device__ inline void scan_groups(Exchange& exchange, const float (&factor)[2], const float (&value)[2], float& carry,
                                   float (&before)[2]) {
  const int first = threadIdx.x % PAIRS * 2, group = threadIdx.x / PAIRS;
  for (int i = 0; i < 2; ++i) {
    exchange.factor[first + i][group] = factor[i];
    exchange.value[first + i][group] = value[i];
  }
  __syncthreads();
  if (threadIdx.x < CHANNELS) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const float f = exchange.factor[threadIdx.x][g], v = exchange.value[threadIdx.x][g];
      exchange.value[threadIdx.x][g] = carry;
      carry = f * carry + v;
    }
  }
  __syncthreads();
  for (int i = 0; i < 2; ++i) before[i] = exchange.value[first + i][group];
}

__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float reciprocal_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr float LOG2_E = 1.44269504f, SMALLEST = 1.17549435e-38f;

__device__ inline float sigmoid(float x) { return reciprocal(1.0f + power_of_2(-LOG2_E * x)); }

__device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

// 1 - e^-z for small z, by its series.
__device__ inline float near_one(float z) {
  return z * (1 - z * (0.5f - z * (1.0f / 6 - z * (1.0f / 24 - z * (1.0f / 120 - z * (1.0f / 720))))));
}

struct Gate {
  float r, d, a, s, inverse;

  __device__ Gate(float ga, float rate) {
    r = sigmoid(ga);
    d = rate * r;
    a = power_of_2(-LOG2_E * d);
    const float square = d > 0.15f ? 1.0f - a * a : near_one(2.0f * d);
    inverse = reciprocal_root(fmaxf(square, SMALLEST));
    s = square * inverse;
  }
};

template <class T, bool EVEN>
__global__ void __launch_bounds__(THREADS, 2)
    ker_rglru(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int length, int width) {
  __shared__ Exchange exchange;
  const Place place(width);
  const size_t start = place.sequence * length * width + place.channel;
  const int own = place.lowest + threadIdx.x % CHANNELS;
  float carry = h0 != nullptr && own < width ? h0[place.sequence * width + own] : 0.0f, rate[2];
  for (int i = 0; i < 2; ++i) rate[i] = i < place.columns ? 8.0f * softplus(c[place.channel + i]) : 0.0f;

  Pair<T> next_x[STEPS], next_gx[STEPS], next_ga[STEPS];
  const auto fetch = [&](int first) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int columns = first + s < length ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(first + s) * width;
      next_x[s] = load<EVEN>(x + at, columns);
      next_gx[s] = load<EVEN>(gx + at, columns);
      next_ga[s] = load<EVEN>(ga + at, columns);
    }
  };
  int first = threadIdx.x / PAIRS * STEPS;
  fetch(first);
  for (int tile = 0; tile < length; tile += TILE, first += TILE) {
    float factor[STEPS][2], added[STEPS][2], product[2] = {1.0f, 1.0f}, value[2] = {}, state[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Gate gate(static_cast<float>(next_ga[s].of[i]), rate[i]);
        const float input = sigmoid(static_cast<float>(next_gx[s].of[i])) * static_cast<float>(next_x[s].of[i]);
        factor[s][i] = gate.a;
        added[s][i] = gate.s * input;
        value[i] = factor[s][i] * value[i] + added[s][i];
        product[i] *= factor[s][i];
      }
    }
    fetch(first + TILE);
    scan_groups(exchange, product, value, carry, state);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int i = 0; i < 2; ++i) state[i] = factor[s][i] * state[i] + added[s][i];
      const size_t at = start + static_cast<size_t>(first + s) * width;
      store<EVEN>(h + at, state, first + s < length ? place.columns : 0);
    }
  }
}

template <class T>
static void forward(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length,
                    int width, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(batch) * ((static_cast<unsigned>(width) + CHANNELS - 1) / CHANNELS);
  const auto kernel = width % 2 == 0 ? ker_rglru<T, true> : ker_rglru<T, false>;
  kernel<<<blocks, THREADS, 0, stream>>>(h, x, gx, ga, c, h0, length, width);
}

#define FORWARD(T, NAME)                                                                                  \
  extern "C" void launch_rglru_forward_##NAME(T* h, const T* x, const T* gx, const T* ga, const float* c, \
                                              const float* h0, int batch, int length, int width,          \
                                              cudaStream_t stream) {                                      \
    forward(h, x, gx, ga, c, h0, batch, length, width, stream);                                           \
  }
FORWARD(float, float32)
FORWARD(__half, float16)
FORWARD(__nv_bfloat16, bfloat16)
