// The baseline's device code for what generic.cu does not have: arrays of any type, views at any offset and with any
// strides, and more functions. Each operation is one kernel, as in unfused code. Elements are converted to what a
// kernel computes in: float for float32 and the half types, double for float64, a 64-bit integer for the others.
//
// Functions are numbered as in operations.py, and types as in dtypes.py. Shapes, strides and offsets count elements.
// Each entry point enqueues one kernel on the stream; the caller has to check for errors.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int MOST_DIMS = 8;
constexpr int THREADS = 256;
constexpr int TILE = 16;
constexpr int MOST_OPERANDS = 3;

enum Dtype {
  FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT8, BOOL, INT8, INT16, UINT16, UINT32, UINT64,
  FLOAT8_E4M3FN, FLOAT8_E5M2
};
enum Compute { IN_FLOAT, IN_DOUBLE, IN_INTEGER };

using Integer = long long;

struct Shape {
  int dims;
  int of[MOST_DIMS];
};

// A view of an array, or a number if `data` is null: then `offset` holds its bits.
struct View {
  void* data;
  int dtype;
  int strides[MOST_DIMS];
  Integer offset;
};

template <typename Number>
__device__ Number as_number(Integer bits) {
  return static_cast<Number>(__longlong_as_double(bits));
}

template <>
__device__ Integer as_number<Integer>(Integer bits) {
  return bits;
}

template <typename Number>
__device__ Number loaded(const View& view, Integer at) {
  switch (view.dtype) {
    case FLOAT16: return static_cast<Number>(__half2float(static_cast<const __half*>(view.data)[at]));
    case BFLOAT16: return static_cast<Number>(__bfloat162float(static_cast<const __nv_bfloat16*>(view.data)[at]));
    case FLOAT32: return static_cast<Number>(static_cast<const float*>(view.data)[at]);
    case FLOAT64: return static_cast<Number>(static_cast<const double*>(view.data)[at]);
    case INT32: return static_cast<Number>(static_cast<const int*>(view.data)[at]);
    case INT64: return static_cast<Number>(static_cast<const Integer*>(view.data)[at]);
    case INT8: return static_cast<Number>(static_cast<const signed char*>(view.data)[at]);
    case INT16: return static_cast<Number>(static_cast<const short*>(view.data)[at]);
    case UINT16: return static_cast<Number>(static_cast<const unsigned short*>(view.data)[at]);
    case UINT32: return static_cast<Number>(static_cast<const unsigned*>(view.data)[at]);
    case UINT64: return static_cast<Number>(static_cast<const unsigned long long*>(view.data)[at]);
    case FLOAT8_E4M3FN:
      return static_cast<Number>(static_cast<float>(static_cast<const __nv_fp8_e4m3*>(view.data)[at]));
    case FLOAT8_E5M2:
      return static_cast<Number>(static_cast<float>(static_cast<const __nv_fp8_e5m2*>(view.data)[at]));
    default: return static_cast<Number>(static_cast<const unsigned char*>(view.data)[at]);
  }
}

template <typename Number>
__device__ void store(const View& view, Integer at, Number value) {
  switch (view.dtype) {
    case FLOAT16: static_cast<__half*>(view.data)[at] = __double2half(static_cast<double>(value)); break;
    case BFLOAT16: static_cast<__nv_bfloat16*>(view.data)[at] = __double2bfloat16(static_cast<double>(value)); break;
    case FLOAT32: static_cast<float*>(view.data)[at] = static_cast<float>(value); break;
    case FLOAT64: static_cast<double*>(view.data)[at] = static_cast<double>(value); break;
    case INT32: static_cast<int*>(view.data)[at] = static_cast<int>(static_cast<Integer>(value)); break;
    case INT64: static_cast<Integer*>(view.data)[at] = static_cast<Integer>(value); break;
    case UINT8: static_cast<unsigned char*>(view.data)[at] = static_cast<Integer>(value); break;
    case INT8: static_cast<signed char*>(view.data)[at] = static_cast<Integer>(value); break;
    case INT16: static_cast<short*>(view.data)[at] = static_cast<Integer>(value); break;
    case UINT16: static_cast<unsigned short*>(view.data)[at] = static_cast<Integer>(value); break;
    case UINT32: static_cast<unsigned*>(view.data)[at] = static_cast<Integer>(value); break;
    case UINT64: static_cast<unsigned long long*>(view.data)[at] = static_cast<Integer>(value); break;
    case FLOAT8_E4M3FN:
      static_cast<__nv_fp8_e4m3*>(view.data)[at] = __nv_fp8_e4m3(static_cast<double>(value));
      break;
    case FLOAT8_E5M2:
      static_cast<__nv_fp8_e5m2*>(view.data)[at] = __nv_fp8_e5m2(static_cast<double>(value));
      break;
    default: static_cast<unsigned char*>(view.data)[at] = value != 0; break;
  }
}

__device__ void to_index(Integer position, const Shape& shape, int* index) {
  for (int d = shape.dims - 1; d >= 0; --d) {
    index[d] = position % shape.of[d];
    position /= shape.of[d];
  }
}

__device__ Integer to_offset(const int* index, const View& view, int dims) {
  Integer offset = view.offset;
  for (int d = 0; d < dims; ++d) offset += static_cast<Integer>(index[d]) * view.strides[d];
  return offset;
}

// What float, double and integers have in common: every function of a map.

enum MapFunction {
  COPY, ARANGE, HIDE_FUTURE, WHERE,
  ADD, SUBTRACT, MULTIPLY, DIVIDE, TRUNC_DIVIDE, FLOOR_DIVIDE, REMAINDER, FMOD, MAXIMUM, MINIMUM,
  EQ, NE, LT, LE, GT, GE, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, LOGICAL_NOT, ABS, NEG, SIGN,
  POW, ATAN2, EXP, EXP2, EXPM1, LOG, LOG2, LOG10, LOG1P, SQRT, RSQRT, RECIPROCAL, SIN, COS, TAN, ASIN, ACOS, ATAN,
  SINH, COSH, TANH, ERF, ERFC, SIGMOID, FLOOR, CEIL, ROUND, TRUNC, ISNAN, ISINF,
  BITWISE_AND, BITWISE_OR, BITWISE_XOR, BITWISE_NOT, BITWISE_LEFT_SHIFT, BITWISE_RIGHT_SHIFT
};

template <typename Real>
__device__ Real special(int function, Real a, Real b) {
  switch (function) {
    case DIVIDE: return a / b;
    case TRUNC_DIVIDE: return trunc(a / b);
    case FLOOR_DIVIDE: return floor(a / b);
    case REMAINDER: return a - b * floor(a / b);
    case FMOD: return fmod(a, b);
    case POW: return pow(a, b);
    case ATAN2: return atan2(a, b);
    case EXP: return exp(a);
    case EXP2: return exp2(a);
    case EXPM1: return expm1(a);
    case LOG: return log(a);
    case LOG2: return log2(a);
    case LOG10: return log10(a);
    case LOG1P: return log1p(a);
    case SQRT: return sqrt(a);
    case RSQRT: return rsqrt(a);
    case RECIPROCAL: return 1 / a;
    case SIN: return sin(a);
    case COS: return cos(a);
    case TAN: return tan(a);
    case ASIN: return asin(a);
    case ACOS: return acos(a);
    case ATAN: return atan(a);
    case SINH: return sinh(a);
    case COSH: return cosh(a);
    case TANH: return tanh(a);
    case ERF: return erf(a);
    case ERFC: return erfc(a);
    case SIGMOID: return 1 / (1 + exp(-a));
    case FLOOR: return floor(a);
    case CEIL: return ceil(a);
    case ROUND: return rint(a);
    case TRUNC: return trunc(a);
    case ISNAN: return isnan(a);
    case ISINF: return isinf(a);
  }
  return a;
}

template <>
__device__ Integer special(int function, Integer a, Integer b) {
  switch (function) {
    case TRUNC_DIVIDE: return b == 0 ? 0 : a / b;
    case FLOOR_DIVIDE: return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
    case REMAINDER: return b == 0 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case FMOD: return b == 0 ? 0 : a % b;
    case BITWISE_AND: return a & b;
    case BITWISE_OR: return a | b;
    case BITWISE_XOR: return a ^ b;
    case BITWISE_NOT: return ~a;
    case BITWISE_LEFT_SHIFT: return a << b;
    case BITWISE_RIGHT_SHIFT: return a >> b;
    case POW: {
      Integer power = 1;
      for (; b > 0; --b) power *= a;
      return power;
    }
  }
  return a;
}

template <typename Number>
__device__ Number mapped(int function, Number a, Number b, Number c) {
  switch (function) {
    case COPY: return a;
    case WHERE: return a != 0 ? b : c;
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case MAXIMUM: return a > b || a != a ? a : b;
    case MINIMUM: return a < b || a != a ? a : b;
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    case LOGICAL_AND: return a != 0 && b != 0;
    case LOGICAL_OR: return a != 0 || b != 0;
    case LOGICAL_XOR: return (a != 0) != (b != 0);
    case LOGICAL_NOT: return a == 0;
    case ABS: return a < 0 ? -a : a;
    case NEG: return -a;
    case SIGN: return (a > 0) - (a < 0);
  }
  return special(function, a, b);
}

struct Operands {
  View of[MOST_OPERANDS];
};

template <typename Number>
__global__ void ker_map(int function, Shape shape, View out, Operands in, Integer count) {
  const Integer position = static_cast<Integer>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS];
  to_index(position, shape, index);
  Number x[MOST_OPERANDS];
  for (int k = 0; k < MOST_OPERANDS; ++k) {
    const View& view = in.of[k];
    x[k] = view.data == nullptr ? as_number<Number>(view.offset)
                                : loaded<Number>(view, to_offset(index, view, shape.dims));
  }
  Number y;
  if (function == ARANGE) {
    y = x[0] + static_cast<Number>(position) * x[1];
  } else if (function == HIDE_FUTURE) {
    y = index[shape.dims - 1] > index[shape.dims - 2] ? static_cast<Number>(-INFINITY) : x[0];
  } else {
    y = mapped(function, x[0], x[1], x[2]);
  }
  store(out, to_offset(index, out, shape.dims), y);
}

enum ReduceFunction { SUM, MEAN, PROD, AMAX, AMIN, ANY, ALL, ARGMAX, ARGMIN };

template <typename Number>
struct Partial {
  Number value;
  Integer place;  // of the first element that has this value; -1 if there is none
};

template <typename Number>
__device__ Partial<Number> combined(int function, Partial<Number> a, Partial<Number> b) {
  if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
  switch (function) {
    case PROD: return {a.value * b.value, a.place};
    case ANY: return {static_cast<Number>(a.value != 0 || b.value != 0), a.place};
    case ALL: return {static_cast<Number>(a.value != 0 && b.value != 0), a.place};
    case AMAX:
    case ARGMAX:
    case AMIN:
    case ARGMIN: {
      const bool largest = function == AMAX || function == ARGMAX;
      if (a.value == b.value) return a.place < b.place ? a : b;
      return a.value != a.value || (b.value == b.value && (a.value > b.value) == largest) ? a : b;
    }
    default: return {a.value + b.value, a.place};
  }
}

// One block per output element; `along` is the shape of what it reduces, in which `in_along` are the strides.
template <typename Number>
__global__ void ker_reduce(int function, Shape shape, View out, View in, Shape along, View in_along, Integer length) {
  __shared__ Partial<Number> cache[THREADS];
  int index[MOST_DIMS];
  to_index(blockIdx.x, shape, index);
  const Integer first = to_offset(index, in, shape.dims);
  const Integer result = to_offset(index, out, shape.dims);
  Partial<Number> value = {0, -1};
  for (Integer i = threadIdx.x; i < length; i += THREADS) {
    to_index(i, along, index);
    value = combined(function, value, {loaded<Number>(in, first + to_offset(index, in_along, along.dims)), i});
  }
  cache[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      cache[threadIdx.x] = combined(function, cache[threadIdx.x], cache[threadIdx.x + half]);
    }
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  if (function == ARGMAX || function == ARGMIN) {
    store(out, result, cache[0].place);
  } else {
    const bool truth = function == ANY || function == ALL;
    const Number whole = cache[0].value;
    store(out, result, function == MEAN ? whole / static_cast<Number>(length) : truth ? whole != 0 : whole);
  }
}

enum ScanFunction { CUMSUM, CUMPROD };

template <typename Number>
__device__ Number joined(int function, Number a, Number b) {
  return function == CUMSUM ? a + b : a * b;
}

// One block per line of `length` elements: each thread goes over a part of it, before and after the parts are joined.
template <typename Number>
__global__ void ker_scan(int function, Shape shape, View out, View in, int length, int out_step, int in_step) {
  __shared__ Number parts[THREADS];
  int index[MOST_DIMS];
  to_index(blockIdx.x, shape, index);
  const Integer from = to_offset(index, in, shape.dims), to = to_offset(index, out, shape.dims);
  const int part = (length + THREADS - 1) / THREADS;
  const int begin = min(length, part * static_cast<int>(threadIdx.x)), end = min(length, begin + part);
  const Number neutral = function == CUMSUM ? 0 : 1;
  Number value = neutral;
  for (int i = begin; i < end; ++i) {
    value = joined(function, value, loaded<Number>(in, from + static_cast<Integer>(i) * in_step));
  }
  parts[threadIdx.x] = value;
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    const Number before = threadIdx.x >= step ? parts[threadIdx.x - step] : neutral;
    __syncthreads();
    parts[threadIdx.x] = joined(function, before, parts[threadIdx.x]);
    __syncthreads();
  }
  value = threadIdx.x == 0 ? neutral : parts[threadIdx.x - 1];
  for (int i = begin; i < end; ++i) {
    value = joined(function, value, loaded<Number>(in, from + static_cast<Integer>(i) * in_step));
    store(out, to + static_cast<Integer>(i) * out_step, value);
  }
}

// A block computes a tile of a product of matrices; the first dimension of all three counts products.
template <typename Number>
__global__ void ker_matmul(int rows, int columns, int inner, View out, View left, View right) {
  __shared__ Number a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const int across = (columns + TILE - 1) / TILE;  // tiles lie along x alone, as a grid has 65,535 blocks along y
  const int row = blockIdx.x / across * TILE + y, column = blockIdx.x % across * TILE + x;
  const int product = blockIdx.z;
  Number sum = 0;
  for (int first = 0; first < inner; first += TILE) {
    const int of_a[] = {product, row, first + x}, of_b[] = {product, first + y, column};
    a[y][x] = row < rows && of_a[2] < inner ? loaded<Number>(left, to_offset(of_a, left, 3)) : 0;
    b[y][x] = column < columns && of_b[1] < inner ? loaded<Number>(right, to_offset(of_b, right, 3)) : 0;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  const int of_out[] = {product, row, column};
  if (row < rows && column < columns) store(out, to_offset(of_out, out, 3), sum);
}

enum IndexedFunction { GATHER, SCATTER, SCATTER_ADD };

template <typename Number>
__device__ void add(const View& view, Integer at, Number value) {
  switch (view.dtype) {
    case FLOAT32: atomicAdd(static_cast<float*>(view.data) + at, static_cast<float>(value)); break;
    case FLOAT64: atomicAdd(static_cast<double*>(view.data) + at, static_cast<double>(value)); break;
    case INT32: atomicAdd(static_cast<int*>(view.data) + at, static_cast<int>(value)); break;
    default:
      atomicAdd(static_cast<unsigned long long*>(view.data) + at,
                static_cast<unsigned long long>(static_cast<Integer>(value)));
  }
}

// Element by element of `shape`: the place along `axis` in the source (or target, for a scatter) comes from `chosen`.
template <typename Number>
__global__ void ker_indexed(int function, Shape shape, View out, View in, View chosen, int axis, int size,
                            Integer count) {
  const Integer position = static_cast<Integer>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS], other[MOST_DIMS];
  to_index(position, shape, index);
  for (int d = 0; d < shape.dims; ++d) other[d] = index[d];
  const int place = static_cast<int>(loaded<Integer>(chosen, to_offset(index, chosen, shape.dims)));
  other[axis] = place < 0 ? place + size : place;
  const bool gathers = function == GATHER;
  const Number value = loaded<Number>(in, to_offset(gathers ? other : index, in, shape.dims));
  const Integer to = to_offset(gathers ? index : other, out, shape.dims);
  if (function == SCATTER_ADD) {
    add(out, to, value);
  } else {
    store(out, to, value);
  }
}

// The sum of each segment of the first dimension of `in`, from one place to the next; a thread for each element.
template <typename Number>
__global__ void ker_segment(Shape shape, View out, View in, View places, Integer count) {
  const Integer position = static_cast<Integer>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS];
  to_index(position, shape, index);
  const Integer to = to_offset(index, out, shape.dims);
  const Integer place = places.offset + static_cast<Integer>(index[0]) * places.strides[0];
  const Integer begin = loaded<Integer>(places, place), end = loaded<Integer>(places, place + places.strides[0]);
  index[0] = 0;
  const Integer from = to_offset(index, in, shape.dims);
  Number sum = 0;
  for (Integer i = begin; i < end; ++i) sum += loaded<Number>(in, from + i * in.strides[0]);
  store(out, to, sum);
}

// Per dimension behind batch and channels.
struct Window {
  int stride[MOST_DIMS], padding[MOST_DIMS], dilation[MOST_DIMS];
};

// `taps` is the shape of the filter of one output channel, with 1 in front.
template <typename Number>
__global__ void ker_convolution(Shape shape, View out, View in, View weight, Shape extent, Shape taps, Window window,
                                int channels_of_group, Integer length, Integer count) {
  const Integer position = static_cast<Integer>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS], tap[MOST_DIMS], from[MOST_DIMS];
  to_index(position, shape, index);
  Number sum = 0;
  for (Integer k = 0; k < length; ++k) {
    to_index(k, taps, tap);
    tap[0] = index[1];
    from[0] = index[0];
    from[1] = index[1] / channels_of_group * taps.of[1] + tap[1];
    bool inside = true;
    for (int d = 2; d < shape.dims; ++d) {
      from[d] = index[d] * window.stride[d - 2] - window.padding[d - 2] + tap[d] * window.dilation[d - 2];
      inside = inside && from[d] >= 0 && from[d] < extent.of[d];
    }
    if (inside)
      sum += loaded<Number>(in, to_offset(from, in, shape.dims)) *
             loaded<Number>(weight, to_offset(tap, weight, shape.dims));
  }
  store(out, to_offset(index, out, shape.dims), sum);
}

enum SortFunction { SORT, ARGSORT, SORT_DESCENDING, ARGSORT_DESCENDING };

// NaN counts as the largest number.
template <typename Number>
__device__ bool before(bool descending, Number a, Number b) {
  return descending ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
}

// What a sort begins with: the elements of each line, or their places in it.
template <typename Number>
__global__ void ker_unsorted(bool places, Shape shape, View out, View in, int length, int out_step, int in_step,
                             Integer count) {
  const Integer position = static_cast<Integer>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS];
  to_index(position / length, shape, index);
  const Integer i = position % length, to = to_offset(index, out, shape.dims) + i * out_step;
  if (places) {
    store(out, to, i);
  } else {
    store(out, to, loaded<Number>(in, to_offset(index, in, shape.dims) + i * in_step));
  }
}

// A step of a bitonic network: pairs of each line, `half` apart or mirrored in blocks of twice as many, get in order.
template <typename Number>
__global__ void ker_exchange(int function, Shape shape, View out, View in, int length, int out_step, int in_step,
                             int half, bool mirrored, Integer pairs, Integer count) {
  const Integer position = static_cast<Integer>(blockIdx.x) * THREADS + threadIdx.x;
  if (position >= count) return;
  int index[MOST_DIMS];
  to_index(position / pairs, shape, index);
  const Integer pair = position % pairs, offset = pair % half, low = pair / half * 2 * half + offset;
  const Integer high = mirrored ? low + 2 * (half - offset) - 1 : low + half;
  if (high >= length) return;
  const Integer from = to_offset(index, in, shape.dims), to = to_offset(index, out, shape.dims);
  const Integer at_low = to + low * out_step, at_high = to + high * out_step;
  const bool descending = function == SORT_DESCENDING || function == ARGSORT_DESCENDING;
  if (function == SORT || function == SORT_DESCENDING) {
    const Number x = loaded<Number>(out, at_low), y = loaded<Number>(out, at_high);
    if (!before(descending, y, x)) return;
    store(out, at_low, y);
    store(out, at_high, x);
  } else {
    const Integer a = loaded<Integer>(out, at_low), b = loaded<Integer>(out, at_high);
    const Number x = loaded<Number>(in, from + a * in_step), y = loaded<Number>(in, from + b * in_step);
    if (!before(descending, y, x) && (before(descending, x, y) || a < b)) return;
    store(out, at_low, b);
    store(out, at_high, a);
  }
}

static Shape shape_of(const int* shape, int dims) {
  Shape copy = {dims, {}};
  for (int d = 0; d < dims; ++d) copy.of[d] = shape[d];
  return copy;
}

static View view_of(void* data, int dtype, const int* strides, int dims, Integer offset) {
  View view = {data, dtype, {}, offset};
  for (int d = 0; d < dims; ++d) view.strides[d] = strides[d];
  return view;
}

static Integer count_of(const int* shape, int dims) {
  Integer count = 1;
  for (int d = 0; d < dims; ++d) count *= shape[d];
  return count;
}

static unsigned blocks_for(Integer count) { return static_cast<unsigned>((count + THREADS - 1) / THREADS); }

// The instance of `kernel` for what it computes in, launched with the further arguments.
#define LAUNCH(kernel, compute, blocks, threads, stream, ...)                                        \
  (compute) == IN_FLOAT    ? kernel<float><<<blocks, threads, 0, stream>>>(__VA_ARGS__)  \
  : (compute) == IN_DOUBLE ? kernel<double><<<blocks, threads, 0, stream>>>(__VA_ARGS__) \
                           : kernel<Integer><<<blocks, threads, 0, stream>>>(__VA_ARGS__)

extern "C" void typed_map(int function, int compute, int dims, const int* shape,                         //
                          void* out, int out_dtype, const int* out_strides, Integer out_offset,          //
                          void* a, int a_dtype, const int* a_strides, Integer a_offset,                  //
                          void* b, int b_dtype, const int* b_strides, Integer b_offset,                  //
                          void* c, int c_dtype, const int* c_strides, Integer c_offset, cudaStream_t stream) {
  const Integer count = count_of(shape, dims);
  const Operands operands = {view_of(a, a_dtype, a_strides, dims, a_offset),
                             view_of(b, b_dtype, b_strides, dims, b_offset),
                             view_of(c, c_dtype, c_strides, dims, c_offset)};
  const View result = view_of(out, out_dtype, out_strides, dims, out_offset);
  LAUNCH(ker_map, compute, blocks_for(count), THREADS, stream, function, shape_of(shape, dims), result, operands,
         count);
}

// `shape` is that of the output, with 1 where the input is reduced; `along` is 1 where it is not.
extern "C" void typed_reduce(int function, int compute, int dims, const int* shape, const int* along,  //
                             void* out, int out_dtype, const int* out_strides, Integer out_offset,     //
                             void* in, int in_dtype, const int* in_strides, Integer in_offset, cudaStream_t stream) {
  const View from = view_of(in, in_dtype, in_strides, dims, in_offset);
  const View in_along = view_of(in, in_dtype, in_strides, dims, 0);
  const unsigned blocks = static_cast<unsigned>(count_of(shape, dims));
  LAUNCH(ker_reduce, compute, blocks, THREADS, stream, function, shape_of(shape, dims),
         view_of(out, out_dtype, out_strides, dims, out_offset), from, shape_of(along, dims), in_along,
         count_of(along, dims));
}

// `shape` is 1 at the axis, along which `length` elements are `out_step` and `in_step` apart.
extern "C" void typed_scan(int function, int compute, int dims, const int* shape, int length, int axis,  //
                           void* out, int out_dtype, const int* out_strides, Integer out_offset,         //
                           void* in, int in_dtype, const int* in_strides, Integer in_offset, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(count_of(shape, dims));
  LAUNCH(ker_scan, compute, blocks, THREADS, stream, function, shape_of(shape, dims),
         view_of(out, out_dtype, out_strides, dims, out_offset), view_of(in, in_dtype, in_strides, dims, in_offset),
         length, out_strides[axis], in_strides[axis]);
}

// `shape` is [products, rows, columns]; `inner` is the length of the sums.
extern "C" void typed_matmul(int, int compute, int, const int* shape, int inner,                           //
                             void* out, int out_dtype, const int* out_strides, Integer out_offset,         //
                             void* left, int left_dtype, const int* left_strides, Integer left_offset,     //
                             void* right, int right_dtype, const int* right_strides, Integer right_offset,  //
                             cudaStream_t stream) {
  const dim3 blocks((shape[2] + TILE - 1) / TILE * ((shape[1] + TILE - 1) / TILE), 1, shape[0]);
  LAUNCH(ker_matmul, compute, blocks, dim3(TILE, TILE), stream, shape[1], shape[2], inner,
         view_of(out, out_dtype, out_strides, 3, out_offset), view_of(left, left_dtype, left_strides, 3, left_offset),
         view_of(right, right_dtype, right_strides, 3, right_offset));
}

// `size` is the length of the source (or target, for a scatter) along the axis.
extern "C" void typed_indexed(int function, int compute, int dims, const int* shape, int axis, int size,  //
                              void* out, int out_dtype, const int* out_strides, Integer out_offset,       //
                              void* in, int in_dtype, const int* in_strides, Integer in_offset,           //
                              void* chosen, int chosen_dtype, const int* chosen_strides, Integer chosen_offset,
                              cudaStream_t stream) {
  const Integer count = count_of(shape, dims);
  LAUNCH(ker_indexed, compute, blocks_for(count), THREADS, stream, function, shape_of(shape, dims),
         view_of(out, out_dtype, out_strides, dims, out_offset), view_of(in, in_dtype, in_strides, dims, in_offset),
         view_of(chosen, chosen_dtype, chosen_strides, dims, chosen_offset), axis, size, count);
}

// `places` has one number more than `shape` in the first dimension.
extern "C" void typed_segment(int, int compute, int dims, const int* shape,                                   //
                              void* out, int out_dtype, const int* out_strides, Integer out_offset,           //
                              void* in, int in_dtype, const int* in_strides, Integer in_offset,               //
                              void* places, int places_dtype, const int* places_strides, Integer places_offset,
                              cudaStream_t stream) {
  const Integer count = count_of(shape, dims);
  LAUNCH(ker_segment, compute, blocks_for(count), THREADS, stream, shape_of(shape, dims),
         view_of(out, out_dtype, out_strides, dims, out_offset), view_of(in, in_dtype, in_strides, dims, in_offset),
         view_of(places, places_dtype, places_strides, dims, places_offset), count);
}

// Shapes of output, input and weight; stride, padding and dilation for each dimension from the third on.
extern "C" void typed_convolution(int, int compute, int dims, const int* shape, const int* extent, const int* taps,
                                  const int* stride, const int* padding, const int* dilation, int groups,         //
                                  void* out, int out_dtype, const int* out_strides, Integer out_offset,           //
                                  void* in, int in_dtype, const int* in_strides, Integer in_offset,               //
                                  void* weight, int weight_dtype, const int* weight_strides, Integer weight_offset,
                                  cudaStream_t stream) {
  const Integer count = count_of(shape, dims);
  Window window = {};
  for (int d = 0; d < dims - 2; ++d) {
    window.stride[d] = stride[d];
    window.padding[d] = padding[d];
    window.dilation[d] = dilation[d];
  }
  Shape filter = shape_of(taps, dims);
  filter.of[0] = 1;
  LAUNCH(ker_convolution, compute, blocks_for(count), THREADS, stream, shape_of(shape, dims),
         view_of(out, out_dtype, out_strides, dims, out_offset), view_of(in, in_dtype, in_strides, dims, in_offset),
         view_of(weight, weight_dtype, weight_strides, dims, weight_offset), shape_of(extent, dims), filter, window,
         shape[1] / groups, count_of(filter.of, dims), count);
}

// `shape` is 1 at the axis, along which `length` elements are `out_step` and `in_step` apart. The network is that for
// the next power of two: what lies behind the end counts as last, so that it stays there.
extern "C" void typed_sort(int function, int compute, int dims, const int* shape, int length, int axis,  //
                           void* out, int out_dtype, const int* out_strides, Integer out_offset,         //
                           void* in, int in_dtype, const int* in_strides, Integer in_offset, cudaStream_t stream) {
  const Integer lines = count_of(shape, dims), count = lines * length;
  const View to = view_of(out, out_dtype, out_strides, dims, out_offset);
  const View from = view_of(in, in_dtype, in_strides, dims, in_offset);
  const bool places = function == ARGSORT || function == ARGSORT_DESCENDING;
  LAUNCH(ker_unsorted, compute, blocks_for(count), THREADS, stream, places, shape_of(shape, dims), to, from, length,
         out_strides[axis], in_strides[axis], count);
  Integer pairs = 1;
  while (2 * pairs < length) pairs *= 2;
  for (int block = 1; block < length; block *= 2) {
    for (int half = block; half > 0; half /= 2) {
      LAUNCH(ker_exchange, compute, blocks_for(lines * pairs), THREADS, stream, function, shape_of(shape, dims), to,
             from, length, out_strides[axis], in_strides[axis], half, half == block, pairs, lines * pairs);
    }
  }
}
