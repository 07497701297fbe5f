// Any function of one element each of some tensors, on tensors with strides, by one kernel template.
//
// What an operand holds in memory is the type of its parameter, and what the function computes with is
// Arithmetic of it: which conversion to make is known when the kernel is compiled. The host drops dimensions of
// size 1, merges neighbours that are one run in all operands, and cuts what 32-bit indices cannot reach into
// parts. A thread makes one pack of 16 bytes of the output where rows hold whole packs, else one element.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int DIMENSIONS = 5, THREADS = 256, PACK_BYTES = 16;
constexpr long long MOST = 1LL << 31;  // indices and offsets of a part are below this

// What is computed with; unsigned integers, because these may overflow.
template <class T> struct Arithmetic {
  using type = T;
};
template <> struct Arithmetic<__half> {
  using type = float;
};
template <> struct Arithmetic<__nv_bfloat16> {
  using type = float;
};
template <> struct Arithmetic<int> {
  using type = unsigned;
};
template <> struct Arithmetic<long long> {
  using type = unsigned long long;
};
template <class T> using arithmetic = typename Arithmetic<T>::type;

template <class T, int COUNT> struct alignas(sizeof(T) * COUNT) Pack {
  T values[COUNT];
};

// An array, or a number where data is null. `whole`: packs of the output meet packs of it.
template <class T> struct Operand {
  const T* data;
  arithmetic<T> number;
  long long strides[DIMENSIONS];
  bool whole;
};

// Sizes from `first` on; the last dimension is the innermost.
struct Shape {
  int first;
  long long sizes[DIMENSIONS], count;
};

template <int WIDTH, class T>
__device__ void load(Pack<arithmetic<T>, WIDTH>& to, const Operand<T>& from, unsigned offset, int count) {
  if (from.data == nullptr) {
    for (auto& value : to.values) value = from.number;
  } else if (WIDTH > 1 && from.whole && count == WIDTH) {
    const auto pack = *reinterpret_cast<const Pack<T, WIDTH>*>(from.data + offset);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to.values[i] = static_cast<arithmetic<T>>(pack.values[i]);
  } else {
    const unsigned step = static_cast<unsigned>(from.strides[DIMENSIONS - 1]);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i)
      to.values[i] = i < count ? static_cast<arithmetic<T>>(from.data[offset + i * step]) : arithmetic<T>();
  }
}

template <int WIDTH, class F, class Out, class... In>
__device__ void store(Out* out, int count, F f, const Pack<In, WIDTH>&... in) {
  Pack<Out, WIDTH> result;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) result.values[i] = static_cast<Out>(f(in.values[i]...));
  if (count == WIDTH)
    *reinterpret_cast<Pack<Out, WIDTH>*>(out) = result;
  else
    for (int i = 0; i < count; ++i) out[i] = result.values[i];
}

// Calls `then` with a pack of each operand.
template <int WIDTH, class Then>
__device__ void with_packs(const unsigned*, int, Then then) {
  then();
}
template <int WIDTH, class Then, class T, class... In>
__device__ void with_packs(const unsigned* offsets, int count, Then then, const Operand<T>& first,
                           const Operand<In>&... others) {
  Pack<arithmetic<T>, WIDTH> pack;
  load<WIDTH>(pack, first, *offsets, count);
  with_packs<WIDTH>(offsets + 1, count, [&](const auto&... packs) { then(pack, packs...); }, others...);
}

template <int WIDTH, class F, class Out, class... In>
__global__ void __launch_bounds__(THREADS) ker_pointwise(Out* out, F f, Shape shape, Operand<In>... in) {
  const unsigned begin = (blockIdx.x * THREADS + threadIdx.x) * WIDTH;
  const unsigned total = static_cast<unsigned>(shape.count);
  if (begin >= total) return;
  unsigned offsets[sizeof...(In)] = {}, rest = begin;
#pragma unroll
  for (int d = DIMENSIONS - 1; d >= 0; --d) {
    if (d < shape.first) break;
    const unsigned size = static_cast<unsigned>(shape.sizes[d]), outer = d > shape.first ? rest / size : 0;
    const unsigned place = rest - outer * size;
    int k = 0;
    ((offsets[k++] += place * static_cast<unsigned>(in.strides[d])), ...);
    rest = outer;
  }
  const int count = min(WIDTH, static_cast<int>(total - begin));
  with_packs<WIDTH>(
      offsets, count, [&](const auto&... packs) { store<WIDTH>(out + begin, count, f, packs...); }, in...);
}

// ------------------------------------------------------------------------------------------------ the host's part

template <class T> Operand<T> operand(const T* data, arithmetic<T> number) { return {data, number, {}, false}; }

// Moves dimension d and those before it one place to the back.
inline void remove(int first, int d, long long* of) {
  for (; d > first; --d) of[d] = of[d - 1];
}

template <class... In> void drop(Shape& shape, int d, Operand<In>&... in) {
  remove(shape.first, d, shape.sizes);
  (remove(shape.first, d, in.strides), ...);
  ++shape.first;
}

// Drops dimensions of size 1 and merges each with the next inner one where all operands go on there.
template <class... In> void simplify(Shape& shape, Operand<In>&... in) {
  for (int d = DIMENSIONS - 1; d >= shape.first; --d)
    if (shape.sizes[d] == 1 && shape.first < DIMENSIONS - 1) drop(shape, d++, in...);
  for (int d = DIMENSIONS - 1; d > shape.first; --d)
    while (d > shape.first && ((in.strides[d - 1] == in.strides[d] * shape.sizes[d]) && ...)) {
      shape.sizes[d - 1] *= shape.sizes[d];
      (static_cast<void>(in.strides[d - 1] = in.strides[d]), ...);
      drop(shape, d, in...);
    }
}

template <class T> long long reach(const Shape& shape, const Operand<T>& in) {
  long long last = 0;
  for (int d = shape.first; d < DIMENSIONS; ++d) last += (shape.sizes[d] - 1) * in.strides[d];
  return last;
}

template <class T> bool whole(const Shape& shape, const Operand<T>& in, int width) {
  bool fits = in.strides[DIMENSIONS - 1] == 1 && reinterpret_cast<uintptr_t>(in.data) % (width * sizeof(T)) == 0;
  for (int d = shape.first; d < DIMENSIONS - 1; ++d) fits = fits && in.strides[d] % width == 0;
  return fits;
}

template <int WIDTH, class F, class Out, class... In>
void launch(Out* out, F f, const Shape& shape, cudaStream_t stream, const Operand<In>&... in) {
  const long long packs = (shape.count + WIDTH - 1) / WIDTH;
  ker_pointwise<WIDTH>
      <<<static_cast<unsigned>((packs + THREADS - 1) / THREADS), THREADS, 0, stream>>>(out, f, shape, in...);
}

template <class F, class Out, class... In>
void run(Out* out, F f, Shape shape, cudaStream_t stream, Operand<In>... in) {
  constexpr int WIDTH = PACK_BYTES / sizeof(Out);
  simplify(shape, in...);
  if (shape.count > MOST - THREADS * WIDTH || ((reach(shape, in) >= MOST) || ...)) {
    const long long size = shape.sizes[shape.first], row = shape.count / size, half = size / 2;
    Shape begin = shape, end = shape;
    begin.sizes[shape.first] = half, begin.count = half * row;
    end.sizes[shape.first] = size - half, end.count = (size - half) * row;
    run(out, f, begin, stream, in...);
    ((in.data = in.data == nullptr ? nullptr : in.data + half * in.strides[shape.first]), ...);
    return run(out + half * row, f, end, stream, in...);
  }
  ((in.whole = whole(shape, in, WIDTH)), ...);
  const bool rows = shape.first == DIMENSIONS - 1 || shape.sizes[DIMENSIONS - 1] % WIDTH == 0;
  if (rows && reinterpret_cast<uintptr_t>(out) % PACK_BYTES == 0)
    launch<WIDTH>(out, f, shape, stream, in...);
  else
    launch<1>(out, f, shape, stream, in...);
}

// Everything, from a launcher's arguments: `strides` [operands, dimensions] and `offsets` [operands].
template <class F, class Out, class... In>
void pointwise(Out* out, F f, int dimensions, const long long* sizes, const long long* strides,
               const long long* offsets, cudaStream_t stream, Operand<In>... in) {
  Shape shape{DIMENSIONS - 1, {1, 1, 1, 1, 1}, 1};
  if (dimensions > 0) shape.first = DIMENSIONS - dimensions;
  int k = 0;
  for (int d = 0; d < dimensions; ++d) {
    shape.sizes[DIMENSIONS - dimensions + d] = sizes[d];
    shape.count *= sizes[d];
  }
  if (shape.count == 0) return;
  const auto place = [&](auto& operand) {
    for (int d = 0; d < dimensions; ++d) operand.strides[DIMENSIONS - dimensions + d] = strides[k * dimensions + d];
    if (operand.data != nullptr) operand.data += offsets[k];
    ++k;
  };
  (place(in), ...);
  run(out, f, shape, stream, in...);
}
