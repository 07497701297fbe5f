// The baseline's device code: generic map, zip and reduce kernels on strided tensors, as a small teaching framework
// has them. Each operation is one kernel, each thread computes its offsets from the output index, and broadcasting is
// a stride of 0. It is as slow as unfused code is, and it must not change, because targets are calibrated on it.
//
// Functions are numbered as in operations.py. Shapes and strides count elements. Each entry point enqueues one kernel
// on the stream; the caller has to check for errors, as after a submission's launcher.
#include <cuda_runtime.h>

constexpr int MOST_DIMS = 4;
constexpr int THREADS = 256;

struct Layout {
  int dims;
  int shape[MOST_DIMS];
};

struct Strides {
  int of[MOST_DIMS];
};

enum MapFunction { EXP, SQRT, ADD_CONSTANT, MULTIPLY_CONSTANT, HIDE_FUTURE };
enum ZipFunction { ADD, SUBTRACT, MULTIPLY, DIVIDE };
enum ReduceFunction { SUM, MAX };

__device__ void to_index(long long position, const Layout& layout, int* index) {
  for (int d = layout.dims - 1; d >= 0; --d) {
    index[d] = position % layout.shape[d];
    position /= layout.shape[d];
  }
}

__device__ long long to_offset(const int* index, const Strides& strides, int dims) {
  long long offset = 0;
  for (int d = 0; d < dims; ++d) offset += static_cast<long long>(index[d]) * strides.of[d];
  return offset;
}

__global__ void ker_generic_map(int function, Layout layout, float* out, Strides out_strides, const float* in,
                                Strides in_strides, float constant, long long count) {
  const long long position = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS];
  to_index(position, layout, index);
  const float x = in[to_offset(index, in_strides, layout.dims)];
  float y = 0.0f;
  switch (function) {
    case EXP: y = expf(x); break;
    case SQRT: y = sqrtf(x); break;
    case ADD_CONSTANT: y = x + constant; break;
    case MULTIPLY_CONSTANT: y = x * constant; break;
    case HIDE_FUTURE: y = index[layout.dims - 1] > index[layout.dims - 2] ? -INFINITY : x; break;
  }
  out[to_offset(index, out_strides, layout.dims)] = y;
}

__global__ void ker_generic_zip(int function, Layout layout, float* out, Strides out_strides, const float* left,
                                Strides left_strides, const float* right, Strides right_strides, long long count) {
  const long long position = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS];
  to_index(position, layout, index);
  const float a = left[to_offset(index, left_strides, layout.dims)];
  const float b = right[to_offset(index, right_strides, layout.dims)];
  float y = 0.0f;
  switch (function) {
    case ADD: y = a + b; break;
    case SUBTRACT: y = a - b; break;
    case MULTIPLY: y = a * b; break;
    case DIVIDE: y = a / b; break;
  }
  out[to_offset(index, out_strides, layout.dims)] = y;
}

// One block per output element reduces `length` input elements, which are `step` elements apart in memory.
__global__ void ker_generic_reduce(int function, Layout layout, float* out, Strides out_strides, const float* in,
                                   Strides in_strides, int length, int step) {
  __shared__ float cache[THREADS];
  int index[MOST_DIMS];
  to_index(blockIdx.x, layout, index);
  const float* first = in + to_offset(index, in_strides, layout.dims);
  float value = function == MAX ? -INFINITY : 0.0f;
  for (int i = threadIdx.x; i < length; i += THREADS) {
    const float x = first[static_cast<long long>(i) * step];
    value = function == MAX ? fmaxf(value, x) : value + x;
  }
  cache[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = cache[threadIdx.x + half];
      cache[threadIdx.x] = function == MAX ? fmaxf(cache[threadIdx.x], other) : cache[threadIdx.x] + other;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[to_offset(index, out_strides, layout.dims)] = cache[0];
}

static Layout layout_of(const int* shape, int dims) {
  Layout layout = {dims, {}};
  for (int d = 0; d < dims; ++d) layout.shape[d] = shape[d];
  return layout;
}

static Strides strides_of(const int* strides, int dims) {
  Strides copy = {};
  for (int d = 0; d < dims; ++d) copy.of[d] = strides[d];
  return copy;
}

static long long count_of(const int* shape, int dims) {
  long long count = 1;
  for (int d = 0; d < dims; ++d) count *= shape[d];
  return count;
}

static unsigned blocks_for(long long count) { return static_cast<unsigned>((count + THREADS - 1) / THREADS); }

extern "C" void baseline_map(int function, int dims, const int* shape, float* out, const int* out_strides,
                            const float* in, const int* in_strides, float constant, cudaStream_t stream) {
  const long long count = count_of(shape, dims);
  ker_generic_map<<<blocks_for(count), THREADS, 0, stream>>>(function, layout_of(shape, dims), out,
                                                             strides_of(out_strides, dims), in,
                                                             strides_of(in_strides, dims), constant, count);
}

extern "C" void baseline_zip(int function, int dims, const int* shape, float* out, const int* out_strides,
                            const float* left, const int* left_strides, const float* right, const int* right_strides,
                            cudaStream_t stream) {
  const long long count = count_of(shape, dims);
  ker_generic_zip<<<blocks_for(count), THREADS, 0, stream>>>(
      function, layout_of(shape, dims), out, strides_of(out_strides, dims), left, strides_of(left_strides, dims), right,
      strides_of(right_strides, dims), count);
}

// `shape` is that of the output, with 1 at the axis; each output element reduces `length` elements along the axis.
extern "C" void baseline_reduce(int function, int dims, const int* shape, float* out, const int* out_strides,
                               const float* in, const int* in_strides, int axis, int length, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(count_of(shape, dims));
  ker_generic_reduce<<<blocks, THREADS, 0, stream>>>(function, layout_of(shape, dims), out,
                                                     strides_of(out_strides, dims), in, strides_of(in_strides, dims),
                                                     length, in_strides[axis]);
}
