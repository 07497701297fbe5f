// A linear recurrence over time and the RG-LRU built on it, in float32, float16 and bfloat16; arithmetic in float32.
//
//   linear scan   h_t = a_t h_{t-1} + b_t
//   RG-LRU        i = sigmoid(gx),  r = sigmoid(ga),  d = 8 r softplus(C),  a = exp(-d),  s = sqrt(1 - a^2)
//                 h_t = a_t h_{t-1} + s_t i_t x_t
//   backward      k_t = a_t (dh_t + k_{t+1}), from the last step on, and g_t = dh_t + k_{t+1}: the whole gradient of
//   h_t
//                 dx = g s i,  dgx = g s x i (1 - i),  q = g (d a h_{t-1} - i x a^2 d / s)
//                 dga = -(1 - r) q,  dC = -sum(q) sigmoid(C) / softplus(C),  dh0 = k_1
//
// What it teaches: a recurrence is no obstacle to streaming. Time is combined inside a block (scan.cuh), where it costs
// two barriers per tile; blocks need nothing of each other, and every array is read or written once.
//
// Bytes moved, for n = batch * length * width elements of S bytes: scan 3 n S, forward 4 n S, backward 8 n S.
//
// Two blocks of 512 threads fill a multiprocessor with 64 registers each. While one combines a tile, the loads of its
// next tile and of the other block are on their way: 48 KiB in forward and 40 KiB in backward, where 25 KiB are enough
// for 3.3 TB/s at a latency of a microsecond. The gates cost 6 slow operations and about 50 others for 8 bytes; at 1.7
// elements per cycle a multiprocessor has time for 9 and 75.
//
// Streams: there is no state besides the arguments.
//
// Compile: nvcc -O3 --shared -Xcompiler -fPIC -arch=sm_90 -o rglru.so rglru_kernel.cu
#include <cuda_runtime.h>

#include "scan.cuh"

// ------------------------------------------------------------------------------------------------------ linear scan

constexpr int STEPS = 4;  // of a thread in a tile
constexpr int BACKWARD_STEPS = 2;  // each has more to keep

template <class T, bool EVEN>
__global__ void __launch_bounds__(THREADS, 2)
    ker_linear_scan(T* h, const T* a, const T* b, const float* h0, int length, int width) {
  constexpr int TILE = GROUPS * STEPS;
  __shared__ Exchange exchange;
  const Place place(width);
  const size_t start = place.sequence * length * width + place.channel;
  float carry[OF_A_WARP];
  load_carry(carry, h0, place, width);

  Pair<T> next_a[STEPS], next_b[STEPS];
  const auto fetch = [&](int first) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int time = first + s, columns = time < length ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(time) * width;
      next_a[s] = load<EVEN>(a + at, columns);
      next_b[s] = load<EVEN>(b + at, columns);
    }
  };
  fetch(place.group * STEPS);
  for (int first = place.group * STEPS, tile = 0; tile < length; tile += TILE, first += TILE) {
    float factor[STEPS][2], added[STEPS][2], product[2] = {1.0f, 1.0f}, value[2] = {}, state[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        factor[s][c] = next_a[s][c];
        added[s][c] = next_b[s][c];
        value[c] = factor[s][c] * value[c] + added[s][c];
        product[c] *= factor[s][c];
      }
    }
    fetch(first + TILE);
    scan_groups(exchange, product, value, carry, state);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int c = 0; c < 2; ++c) state[c] = factor[s][c] * state[c] + added[s][c];
      const int time = first + s;
      store<EVEN>(h + start + static_cast<size_t>(time) * width, state, time < length ? place.columns : 0);
    }
  }
}

// ------------------------------------------------------------------------------------------------------------ gates

__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// log(1 + e^x) where e^x may be far below 1.
__device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

// 1 - e^-z for z >= 0: the series where the difference would lose digits.
__device__ inline float one_minus_exp(float z, float power) {
  if (z > 0.5f) return 1.0f - power;
  float sum = -1.0f / 40320;
  sum = sum * z + 1.0f / 5040;
  sum = sum * z - 1.0f / 720;
  sum = sum * z + 1.0f / 120;
  sum = sum * z - 1.0f / 24;
  sum = sum * z + 1.0f / 6;
  sum = sum * z - 0.5f;
  return (sum * z + 1.0f) * z;
}

// The recurrence gate of one element.
struct Decay {
  float r, d, a;  // gate, -log(a), factor
  float s, inverse;  // sqrt(1 - a^2) and its reciprocal, or 0 where a is 1

  __device__ Decay(float ga, float rate) {
    r = sigmoid(ga);
    d = rate * r;
    a = __expf(-d);
    const float square = one_minus_exp(2.0f * d, a * a);
    inverse = square > 0.0f ? rsqrtf(square) : 0.0f;
    s = square * inverse;
  }
};

constexpr float EIGHT = 8.0f;  // the constant c of the published layer

// 8 softplus(C) of the thread's two channels.
__device__ inline void load_rates(float (&rate)[2], const float* c, const Place& place) {
#pragma unroll
  for (int i = 0; i < 2; ++i) rate[i] = i < place.columns ? EIGHT * softplus(c[place.channel + i]) : 0.0f;
}

// ---------------------------------------------------------------------------------------------------------- forward

template <class T, bool EVEN>
__global__ void __launch_bounds__(THREADS, 2)
    ker_rglru(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int length, int width) {
  constexpr int TILE = GROUPS * STEPS;
  __shared__ Exchange exchange;
  const Place place(width);
  const size_t start = place.sequence * length * width + place.channel;
  float carry[OF_A_WARP], rate[2];
  load_carry(carry, h0, place, width);
  load_rates(rate, c, place);

  Pair<T> next_x[STEPS], next_gx[STEPS], next_ga[STEPS];
  const auto fetch = [&](int first) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int time = first + s, columns = time < length ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(time) * width;
      next_x[s] = load<EVEN>(x + at, columns);
      next_gx[s] = load<EVEN>(gx + at, columns);
      next_ga[s] = load<EVEN>(ga + at, columns);
    }
  };
  fetch(place.group * STEPS);
  for (int first = place.group * STEPS, tile = 0; tile < length; tile += TILE, first += TILE) {
    float factor[STEPS][2], added[STEPS][2], product[2] = {1.0f, 1.0f}, value[2] = {}, state[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const Decay decay(next_ga[s][c], rate[c]);
        factor[s][c] = decay.a;
        added[s][c] = decay.s * sigmoid(next_gx[s][c]) * next_x[s][c];
        value[c] = factor[s][c] * value[c] + added[s][c];
        product[c] *= factor[s][c];
      }
    }
    fetch(first + TILE);
    scan_groups(exchange, product, value, carry, state);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int c = 0; c < 2; ++c) state[c] = factor[s][c] * state[c] + added[s][c];
      const int time = first + s;
      store<EVEN>(h + start + static_cast<size_t>(time) * width, state, time < length ? place.columns : 0);
    }
  }
}

// --------------------------------------------------------------------------------------------------------- backward

// What a thread reads of one time step; `h` is that of the step before.
template <class T>
struct Element {
  Pair<T> dh, x, gx, ga, h;
};

template <class T, bool EVEN>
__global__ void __launch_bounds__(THREADS, 2)
    ker_rglru_bw(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                 const float* c, const T* h, const float* h0, int length, int width) {
  constexpr int TILE = GROUPS * BACKWARD_STEPS;
  __shared__ Exchange exchange;
  const Place place(width);
  const size_t start = place.sequence * length * width + place.channel;
  float carry[OF_A_WARP], rate[2], of_c[2] = {}, first_state[2] = {};
  load_carry(carry, nullptr, place, width);
  load_rates(rate, c, place);
  if (h0 != nullptr) {
    for (int i = 0; i < place.columns; ++i) first_state[i] = h0[place.sequence * width + place.channel + i];
  }

  Element<T> next[BACKWARD_STEPS];
  const auto fetch = [&](int first) {
#pragma unroll
    for (int s = 0; s < BACKWARD_STEPS; ++s) {
      const int time = length - 1 - first - s, columns = time >= 0 ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(max(time, 0)) * width;
      next[s].dh = load<EVEN>(dh + at, columns);
      next[s].x = load<EVEN>(x + at, columns);
      next[s].gx = load<EVEN>(gx + at, columns);
      next[s].ga = load<EVEN>(ga + at, columns);
      next[s].h = load<EVEN>(h + at - (time > 0 ? width : 0), time > 0 ? columns : 0);
    }
  };
  fetch(place.group * BACKWARD_STEPS);
  for (int first = place.group * BACKWARD_STEPS, tile = 0; tile < length; tile += TILE, first += TILE) {
    float gradient[BACKWARD_STEPS][2], factor[BACKWARD_STEPS][2];
    float to_x[BACKWARD_STEPS][2], to_gx[BACKWARD_STEPS][2], to_q[BACKWARD_STEPS][2], to_ga[BACKWARD_STEPS][2];
    float product[2] = {1.0f, 1.0f}, value[2] = {}, later[2];
#pragma unroll
    for (int s = 0; s < BACKWARD_STEPS; ++s) {
      const bool begins = first + s == length - 1;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const Decay decay(next[s].ga[c], rate[c]);
        const float i = sigmoid(next[s].gx[c]), element = next[s].x[c];
        const float before = begins ? first_state[c] : next[s].h[c];
        gradient[s][c] = next[s].dh[c];
        factor[s][c] = decay.a;
        to_x[s][c] = decay.s * i;
        to_gx[s][c] = to_x[s][c] * element * (1.0f - i);
        to_q[s][c] = decay.a * decay.d * (before - i * element * decay.a * decay.inverse);
        to_ga[s][c] = decay.r - 1.0f;
        value[c] = factor[s][c] * (gradient[s][c] + value[c]);
        product[c] *= factor[s][c];
      }
    }
    fetch(first + TILE);
    scan_groups(exchange, product, value, carry, later);
#pragma unroll
    for (int s = 0; s < BACKWARD_STEPS; ++s) {
      const int time = length - 1 - first - s, columns = time >= 0 ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(max(time, 0)) * width;
      float of_x[2], of_gx[2], of_ga[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float whole = gradient[s][c] + later[c], q = whole * to_q[s][c];
        later[c] = factor[s][c] * whole;
        of_x[c] = whole * to_x[s][c];
        of_gx[c] = whole * to_gx[s][c];
        of_ga[c] = q * to_ga[s][c];
        of_c[c] += q;  // 0 before the first step, where x and h are
      }
      store<EVEN>(dx + at, of_x, columns);
      store<EVEN>(dgx + at, of_gx, columns);
      store<EVEN>(dga + at, of_ga, columns);
      if (time == 0) store<false>(dh0 + place.sequence * width + place.channel, later, columns);
    }
  }

  // The cells of the exchange are the thread's own until the barrier.
#pragma unroll
  for (int i = 0; i < 2; ++i) exchange.value[threadIdx.x % PAIRS * 2 + i][place.group] = of_c[i];
  __syncthreads();
  const int lowest = place.channel - threadIdx.x % PAIRS * 2;
#pragma unroll
  for (int i = 0; i < OF_A_WARP; ++i) {
    const int own = threadIdx.x / 32 * OF_A_WARP + i;
    float sum = exchange.value[own][threadIdx.x % 32];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0 && lowest + own < width) {
      const float of_channel = c[lowest + own], whole = softplus(of_channel);
      const float ratio = whole > 0.0f ? sigmoid(of_channel) / whole : 1.0f;
      atomicAdd(dc + lowest + own, -sum * ratio);
    }
  }
}

// -------------------------------------------------------------------------------------------------------- launchers

static unsigned blocks_for(int batch, int width) {
  return static_cast<unsigned>(batch) * ((static_cast<unsigned>(width) + CHANNELS - 1) / CHANNELS);
}

template <class T>
static void linear_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width,
                        cudaStream_t stream) {
  const auto kernel = width % 2 == 0 ? ker_linear_scan<T, true> : ker_linear_scan<T, false>;
  kernel<<<blocks_for(batch, width), THREADS, 0, stream>>>(h, a, b, h0, length, width);
}

template <class T>
static void forward(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length,
                    int width, cudaStream_t stream) {
  const auto kernel = width % 2 == 0 ? ker_rglru<T, true> : ker_rglru<T, false>;
  kernel<<<blocks_for(batch, width), THREADS, 0, stream>>>(h, x, gx, ga, c, h0, length, width);
}

// Each sequence adds its share to dc: a handful of additions per channel, in the order in which blocks end.
template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                     const float* c, const T* h, const float* h0, int batch, int length, int width,
                     cudaStream_t stream) {
  cudaMemsetAsync(dc, 0, sizeof(float) * width, stream);
  const auto kernel = width % 2 == 0 ? ker_rglru_bw<T, true> : ker_rglru_bw<T, false>;
  kernel<<<blocks_for(batch, width), THREADS, 0, stream>>>(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, length,
                                                           width);
}

// h, a, b: [batch, length, width]; h0: [batch, width] or null for zeros.
extern "C" void launch_linear_scan_float32(float* h, const float* a, const float* b, const float* h0, int batch,
                                           int length, int width, cudaStream_t stream) {
  linear_scan(h, a, b, h0, batch, length, width, stream);
}

extern "C" void launch_linear_scan_float16(__half* h, const __half* a, const __half* b, const float* h0, int batch,
                                           int length, int width, cudaStream_t stream) {
  linear_scan(h, a, b, h0, batch, length, width, stream);
}

extern "C" void launch_linear_scan_bfloat16(__nv_bfloat16* h, const __nv_bfloat16* a, const __nv_bfloat16* b,
                                            const float* h0, int batch, int length, int width, cudaStream_t stream) {
  linear_scan(h, a, b, h0, batch, length, width, stream);
}

// h, x, gx, ga: [batch, length, width]; c: [width]; h0: [batch, width] or null for zeros.
extern "C" void launch_rglru_forward_float32(float* h, const float* x, const float* gx, const float* ga, const float* c,
                                             const float* h0, int batch, int length, int width, cudaStream_t stream) {
  forward(h, x, gx, ga, c, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_forward_float16(__half* h, const __half* x, const __half* gx, const __half* ga,
                                             const float* c, const float* h0, int batch, int length, int width,
                                             cudaStream_t stream) {
  forward(h, x, gx, ga, c, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_forward_bfloat16(__nv_bfloat16* h, const __nv_bfloat16* x, const __nv_bfloat16* gx,
                                              const __nv_bfloat16* ga, const float* c, const float* h0, int batch,
                                              int length, int width, cudaStream_t stream) {
  forward(h, x, gx, ga, c, h0, batch, length, width, stream);
}

// h is what forward wrote. dc [width] and dh0 [batch, width] are written, not added to.
extern "C" void launch_rglru_backward_float32(float* dx, float* dgx, float* dga, float* dc, float* dh0, const float* dh,
                                              const float* x, const float* gx, const float* ga, const float* c,
                                              const float* h, const float* h0, int batch, int length, int width,
                                              cudaStream_t stream) {
  backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_backward_float16(__half* dx, __half* dgx, __half* dga, float* dc, float* dh0,
                                              const __half* dh, const __half* x, const __half* gx, const __half* ga,
                                              const float* c, const __half* h, const float* h0, int batch, int length,
                                              int width, cudaStream_t stream) {
  backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_backward_bfloat16(__nv_bfloat16* dx, __nv_bfloat16* dgx, __nv_bfloat16* dga, float* dc,
                                               float* dh0, const __nv_bfloat16* dh, const __nv_bfloat16* x,
                                               const __nv_bfloat16* gx, const __nv_bfloat16* ga, const float* c,
                                               const __nv_bfloat16* h, const float* h0, int batch, int length,
                                               int width, cudaStream_t stream) {
  backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);
}
