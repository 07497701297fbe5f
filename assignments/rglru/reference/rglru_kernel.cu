// A linear recurrence over time and the RG-LRU built on it, in float32, float16 and bfloat16; arithmetic in float32.
//
//   linear scan   h_t = a_t h_{t-1} + b_t
//   RG-LRU        i = sigmoid(gx),  r = sigmoid(ga),  d = 8 r softplus(C),  a = exp(-d),  s = sqrt(1 - a^2)
//                 h_t = a_t h_{t-1} + s_t i_t x_t
//   backward      k_t = a_t (dh_t + k_{t+1}), from the last step on; g_t = dh_t + k_{t+1} is the whole gradient of h_t
//                 dx = g s i,  dgx = g s x i (1 - i),  q = g (d a h_{t-1} - i x a^2 d / s)
//                 dga = -(1 - r) q,  dC = -sum(q) sigmoid(C) / softplus(C),  dh0 = k_1
//
// What it teaches: a recurrence is no obstacle to streaming. A block walks along time in tiles, which asynchronous
// copies bring to shared memory while earlier ones are computed with, so that memory does not wait for arithmetic. Time
// is combined inside the block, which costs two barriers per tile; blocks need nothing of each other (scan.cuh).
//
// Bytes moved, for n = batch * length * width elements of S bytes: scan 3 n S, forward 4 n S, backward 8 n S. Every
// array is read or written once.
//
// Launch: a block of 512 threads for each 64 channels of each sequence. A tile has 16 KiB of each array, 8 KiB in
// backward, so that three stages take 96, 144 and 120 KiB of shared memory: a multiprocessor of sm_80 or sm_90 has room
// for one block. Where a block may have no more than 99 KiB (sm_86, sm_89) there are two stages.
//
// Streams: there is no state besides the arguments.
//
// Compile, for sm_80 or newer: nvcc -O3 --shared -Xcompiler -fPIC -arch=sm_90 -o rglru.so rglru_kernel.cu
#include <cuda_runtime.h>

#include <cstdint>

#include "gates.cuh"
#include "scan.cuh"

constexpr float EIGHT = 8.0f;  // the constant c of the published layer

// 8 softplus(C) of the lane's two channels.
__device__ inline void load_rates(float (&rate)[2], const float* c, const Place& place) {
#pragma unroll
  for (int i = 0; i < 2; ++i) rate[i] = i < place.columns ? EIGHT * softplus(c[place.channel + i]) : 0.0f;
}

// ------------------------------------------------------------------------------------- linear scan and forward pass

// A step of the linear scan: what it is made of is read.
struct Given {
  static constexpr int ARRAYS = 2;  // a, b

  __device__ Given(const float*, const Place&) {}
  __device__ void operator()(const float (&in)[ARRAYS], int, float& factor, float& added) const {
    factor = in[0];
    added = in[1];
  }
};

// A step of the RG-LRU.
struct Gated {
  static constexpr int ARRAYS = 3;  // x, gx, ga
  float rate[2];

  __device__ Gated(const float* c, const Place& place) { load_rates(rate, c, place); }
  __device__ void operator()(const float (&in)[ARRAYS], int channel, float& factor, float& added) const {
    const Decay decay(in[2], rate[channel]);
    factor = decay.a;
    added = decay.s * sigmoid(in[1]) * in[0];
  }
};

template <class T, class Step, bool WHOLE>
using ForwardPipeline = Pipeline<T, Step::ARRAYS, 16 / sizeof(T), WHOLE, false>;

template <class T, class Step, bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    ker_scan(T* h, Arrays<T, Step::ARRAYS> from, const float* c, const float* h0, int length, int width, int stages) {
  using Tiles = ForwardPipeline<T, Step, WHOLE>;
  constexpr int STEPS = Tiles::LENGTH / WARPS;
  const Place place(width);
  const Step step(c, place);
  float carry = load_carry(h0, place, width);
  Tiles tiles(from, place, length, width, stages);
  int time = threadIdx.x / 32 * STEPS;  // of the warp's first step
  T* out = h + (place.sequence * length + time) * width + place.channel;
  for (int first = 0; first < length; first += Tiles::LENGTH, time += Tiles::LENGTH) {
    tiles.advance(first);
    float factor[STEPS][2], added[STEPS][2], product[2] = {1.0f, 1.0f}, value[2] = {}, state[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      Pair<T> in[Step::ARRAYS];
#pragma unroll
      for (int k = 0; k < Step::ARRAYS; ++k) in[k] = tiles.read(k, s);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float wide[Step::ARRAYS];
#pragma unroll
        for (int k = 0; k < Step::ARRAYS; ++k) wide[k] = static_cast<float>(in[k].of[i]);
        step(wide, i, factor[s][i], added[s][i]);
        value[i] = factor[s][i] * value[i] + added[s][i];
        product[i] *= factor[s][i];
      }
    }
    scan_warps(tiles, product, value, carry, state);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int i = 0; i < 2; ++i) state[i] = factor[s][i] * state[i] + added[s][i];
      store<WHOLE>(out + static_cast<size_t>(s) * width, state, time + s < length ? place.columns : 0);
    }
    out += static_cast<size_t>(Tiles::LENGTH) * width;
  }
}

// --------------------------------------------------------------------------------------------------- backward pass

// Of dh, x, gx, ga and h. Half as many steps as in forward: each has more to keep.
template <class T, bool WHOLE>
using BackwardPipeline = Pipeline<T, 5, 8 / sizeof(T), WHOLE, true>;

template <class T, bool WHOLE>
__global__ void __launch_bounds__(THREADS)
    ker_rglru_bw(T* dx, T* dgx, T* dga, float* dc, float* dh0, Arrays<T, 5> from, const float* c, const float* h0,
                 int length, int width, int stages) {
  using Tiles = BackwardPipeline<T, WHOLE>;
  constexpr int STEPS = Tiles::LENGTH / WARPS;
  const Place place(width);
  const size_t start = place.sequence * length * width + place.channel;
  float carry = 0.0f, rate[2], of_c[2] = {}, first_state[2] = {};
  load_rates(rate, c, place);
  if (h0 != nullptr) {
    for (int i = 0; i < place.columns; ++i) first_state[i] = h0[place.sequence * width + place.channel + i];
  }
  Tiles tiles(from, place, length, width, stages);
  int last = length - 1 - static_cast<int>(threadIdx.x) / 32 * STEPS;  // time of the warp's first step
  for (int first = 0; first < length; first += Tiles::LENGTH, last -= Tiles::LENGTH) {
    tiles.advance(first);
    float gradient[STEPS][2], factor[STEPS][2], to_x[STEPS][2], to_gx[STEPS][2], to_q[STEPS][2], to_ga[STEPS][2];
    float product[2] = {1.0f, 1.0f}, value[2] = {}, later[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const Pair<T> dh = tiles.read(0, s), x = tiles.read(1, s), gx = tiles.read(2, s), ga = tiles.read(3, s),
                    h = tiles.read(4, s);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Decay decay(static_cast<float>(ga.of[i]), rate[i]);
        const float open = sigmoid(static_cast<float>(gx.of[i])), element = static_cast<float>(x.of[i]);
        const float before = last - s == 0 ? first_state[i] : static_cast<float>(h.of[i]);
        gradient[s][i] = static_cast<float>(dh.of[i]);
        factor[s][i] = decay.a;
        to_x[s][i] = decay.s * open;
        to_gx[s][i] = to_x[s][i] * element * (1.0f - open);
        to_q[s][i] = decay.a * decay.d * (before - open * element * decay.a * decay.inverse);
        to_ga[s][i] = decay.r - 1.0f;
        value[i] = factor[s][i] * (gradient[s][i] + value[i]);
        product[i] *= factor[s][i];
      }
    }
    scan_warps(tiles, product, value, carry, later);
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
        of_c[i] += q;  // 0 before the first step, where x and h are
      }
      store<WHOLE>(dx + at, of_x, columns);
      store<WHOLE>(dgx + at, of_gx, columns);
      store<WHOLE>(dga + at, of_ga, columns);
      if (time == 0) store<false>(dh0 + place.sequence * width + place.channel, later, columns);
    }
  }

  // The cells of the last tile are the thread's own until the barrier.
  Cells& own = tiles.cells(threadIdx.x / 32);
#pragma unroll
  for (int i = 0; i < 2; ++i) own.value[threadIdx.x % 32 * 2 + i] = of_c[i];
  __syncthreads();
  const int channel = place.lowest + threadIdx.x;
  if (threadIdx.x < CHANNELS && channel < width) {
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) sum += tiles.cells(warp).value[threadIdx.x];
    const float of_channel = c[channel], whole = softplus(of_channel);
    const float ratio = whole > 0.0f ? sigmoid(of_channel) / whole : 1.0f;
    atomicAdd(dc + channel, -sum * ratio);
  }
}

// -------------------------------------------------------------------------------------------------------- launchers

// Three stages, or two where a block of this device cannot have as much shared memory.
static int stages_of(int bytes) {
  int device = 0, most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return 3 * bytes <= most ? 3 : 2;
}

// Whether rows begin at multiples of 16 bytes in all arrays.
template <class T, class... Same>
static bool aligned(int width, const T* array, const Same*... others) {
  const uintptr_t bits = (reinterpret_cast<uintptr_t>(array) | ... | reinterpret_cast<uintptr_t>(others));
  return (bits | width * sizeof(T)) % 16 == 0;
}

template <class Tiles, class Kernel, class... Arguments>
static void launch(Kernel kernel, int batch, int length, int width, cudaStream_t stream, Arguments... arguments) {
  const unsigned blocks = static_cast<unsigned>(batch) * ((static_cast<unsigned>(width) + CHANNELS - 1) / CHANNELS);
  const int stages = stages_of(Tiles::BYTES), bytes = stages * Tiles::BYTES;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<blocks, THREADS, bytes, stream>>>(arguments..., length, width, stages);
}

template <class Step, class T, class... Read>
static void scan(T* h, const float* c, const float* h0, int batch, int length, int width, cudaStream_t stream,
                 const Read*... read) {
  const Arrays<T, Step::ARRAYS> from{{read...}};
  if (aligned(width, h, read...))
    launch<ForwardPipeline<T, Step, true>>(ker_scan<T, Step, true>, batch, length, width, stream, h, from, c, h0);
  else
    launch<ForwardPipeline<T, Step, false>>(ker_scan<T, Step, false>, batch, length, width, stream, h, from, c, h0);
}

// Each sequence adds its share to dc: a handful of additions per channel, in the order in which blocks end.
template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                     const float* c, const T* h, const float* h0, int batch, int length, int width,
                     cudaStream_t stream) {
  cudaMemsetAsync(dc, 0, sizeof(float) * width, stream);
  const Arrays<T, 5> from{{dh, x, gx, ga, h}};
  if (aligned(width, dx, dgx, dga, dh, x, gx, ga, h))
    launch<BackwardPipeline<T, true>>(ker_rglru_bw<T, true>, batch, length, width, stream, dx, dgx, dga, dc, dh0, from,
                                      c, h0);
  else
    launch<BackwardPipeline<T, false>>(ker_rglru_bw<T, false>, batch, length, width, stream, dx, dgx, dga, dc, dh0,
                                       from, c, h0);
}

// h, a, b: [batch, length, width]; h0: [batch, width] or null for zeros.
extern "C" void launch_linear_scan_float32(float* h, const float* a, const float* b, const float* h0, int batch,
                                           int length, int width, cudaStream_t stream) {
  scan<Given>(h, nullptr, h0, batch, length, width, stream, a, b);
}

extern "C" void launch_linear_scan_float16(__half* h, const __half* a, const __half* b, const float* h0, int batch,
                                           int length, int width, cudaStream_t stream) {
  scan<Given>(h, nullptr, h0, batch, length, width, stream, a, b);
}

extern "C" void launch_linear_scan_bfloat16(__nv_bfloat16* h, const __nv_bfloat16* a, const __nv_bfloat16* b,
                                            const float* h0, int batch, int length, int width, cudaStream_t stream) {
  scan<Given>(h, nullptr, h0, batch, length, width, stream, a, b);
}

// h, x, gx, ga: [batch, length, width]; c: [width]; h0: [batch, width] or null for zeros.
extern "C" void launch_rglru_forward_float32(float* h, const float* x, const float* gx, const float* ga, const float* c,
                                             const float* h0, int batch, int length, int width, cudaStream_t stream) {
  scan<Gated>(h, c, h0, batch, length, width, stream, x, gx, ga);
}

extern "C" void launch_rglru_forward_float16(__half* h, const __half* x, const __half* gx, const __half* ga,
                                             const float* c, const float* h0, int batch, int length, int width,
                                             cudaStream_t stream) {
  scan<Gated>(h, c, h0, batch, length, width, stream, x, gx, ga);
}

extern "C" void launch_rglru_forward_bfloat16(__nv_bfloat16* h, const __nv_bfloat16* x, const __nv_bfloat16* gx,
                                              const __nv_bfloat16* ga, const float* c, const float* h0, int batch,
                                              int length, int width, cudaStream_t stream) {
  scan<Gated>(h, c, h0, batch, length, width, stream, x, gx, ga);
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
