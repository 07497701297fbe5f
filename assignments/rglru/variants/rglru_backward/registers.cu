// Tiles wait in registers: a thread asks for its next steps before it combines these. A block has 32 channels, and one
// warp scans over the groups of steps, a lane for each channel; the same warp sums up dC.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 512, PAIRS = 16, CHANNELS = 2 * PAIRS, GROUPS = THREADS / PAIRS;
constexpr int STEPS = 2, TILE = GROUPS * STEPS;  // of a thread, of a block

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

template <class T>
struct Element {
  Pair<T> dh, x, gx, ga, h;  // h of the step before
};

template <class T, bool EVEN>
__global__ void __launch_bounds__(THREADS, 2)
    ker_rglru_bw(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                 const float* c, const T* h, const float* h0, int length, int width) {
  __shared__ Exchange exchange;
  const Place place(width);
  const size_t start = place.sequence * length * width + place.channel, of_h0 = place.sequence * width + place.channel;
  float carry = 0.0f, rate[2], of_c[2] = {}, first_state[2] = {};
  for (int i = 0; i < 2; ++i) rate[i] = i < place.columns ? 8.0f * softplus(c[place.channel + i]) : 0.0f;
  if (h0 != nullptr) {
    for (int i = 0; i < place.columns; ++i) first_state[i] = h0[of_h0 + i];
  }

  Element<T> next[STEPS];
  const auto fetch = [&](int last) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int time = last - s, columns = time >= 0 ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(max(time, 0)) * width;
      next[s].dh = load<EVEN>(dh + at, columns);
      next[s].x = load<EVEN>(x + at, columns);
      next[s].gx = load<EVEN>(gx + at, columns);
      next[s].ga = load<EVEN>(ga + at, columns);
      next[s].h = load<EVEN>(h + at - (time > 0 ? width : 0), time > 0 ? columns : 0);
    }
  };
  int last = length - 1 - static_cast<int>(threadIdx.x) / PAIRS * STEPS;
  fetch(last);
  for (int tile = 0; tile < length; tile += TILE, last -= TILE) {
    float gradient[STEPS][2], factor[STEPS][2], to_x[STEPS][2], to_gx[STEPS][2], to_q[STEPS][2], to_ga[STEPS][2];
    float product[2] = {1.0f, 1.0f}, value[2] = {}, later[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Gate gate(static_cast<float>(next[s].ga.of[i]), rate[i]);
        const float open = sigmoid(static_cast<float>(next[s].gx.of[i]));
        const float element = static_cast<float>(next[s].x.of[i]);
        const float before = last - s == 0 ? first_state[i] : static_cast<float>(next[s].h.of[i]);
        gradient[s][i] = static_cast<float>(next[s].dh.of[i]);
        factor[s][i] = gate.a;
        to_x[s][i] = gate.s * open;
        to_gx[s][i] = to_x[s][i] * element * (1.0f - open);
        to_q[s][i] = gate.a * gate.d * (before - open * element * gate.a * gate.inverse);
        to_ga[s][i] = gate.r - 1.0f;
        value[i] = factor[s][i] * (gradient[s][i] + value[i]);
        product[i] *= factor[s][i];
      }
    }
    fetch(last - TILE);
    scan_groups(exchange, product, value, carry, later);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int time = last - s, columns = time >= 0 ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(max(time, 0)) * width;
      float of_x[2], of_gx[2], of_ga[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float whole = gradient[s][i] + later[i], q = whole * to_q[s][i];
        later[i] = factor[s][i] * whole;
        of_x[i] = whole * to_x[s][i];
        of_gx[i] = whole * to_gx[s][i];
        of_ga[i] = q * to_ga[s][i];
        of_c[i] += q;
      }
      store<EVEN>(dx + at, of_x, columns);
      store<EVEN>(dgx + at, of_gx, columns);
      store<EVEN>(dga + at, of_ga, columns);
      if (time == 0) store<false>(dh0 + of_h0, later, columns);
    }
  }

  for (int i = 0; i < 2; ++i) exchange.value[threadIdx.x % PAIRS * 2 + i][threadIdx.x / PAIRS] = of_c[i];
  __syncthreads();
  const int own = place.lowest + threadIdx.x;
  if (threadIdx.x < CHANNELS && own < width) {
    float sum = 0.0f;
    for (int g = 0; g < GROUPS; ++g) sum += exchange.value[threadIdx.x][g];
    atomicAdd(dc + own, -sum * sigmoid(c[own]) / softplus(c[own]));
  }
}

template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                     const float* c, const T* h, const float* h0, int batch, int length, int width,
                     cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(batch) * ((static_cast<unsigned>(width) + CHANNELS - 1) / CHANNELS);
  const auto kernel = width % 2 == 0 ? ker_rglru_bw<T, true> : ker_rglru_bw<T, false>;
  cudaMemsetAsync(dc, 0, sizeof(float) * width, stream);
  kernel<<<blocks, THREADS, 0, stream>>>(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, length, width);
}

#define BACKWARD(T, NAME)                                                                                             \
  extern "C" void launch_rglru_backward_##NAME(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, \
                                               const T* gx, const T* ga, const float* c, const T* h, const float* h0, \
                                               int batch, int length, int width, cudaStream_t stream) {               \
    backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);                           \
  }
BACKWARD(float, float32)
BACKWARD(__half, float16)
BACKWARD(__nv_bfloat16, bfloat16)
