// out = a + alpha b. One dimension, a row or column for all, and everything else.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

enum Kind { NUMBER, FLAT, COLUMN, ANY };

struct Operand {
  Kind kind;
  long long stride[5], offset;
};

struct Plan {
  int dims;
  long long count, size[5];
  Operand of[2];
};

template <class T> struct Arithmetic { using type = float; };
template <> struct Arithmetic<double> { using type = double; };
template <> struct Arithmetic<int> { using type = unsigned; };
template <> struct Arithmetic<long long> { using type = unsigned long long; };

template <class T, class A>
__device__ A get(const T* x, A number, const Operand& o, const Plan& p, long long i) {
  if (o.kind == NUMBER) return number;
  if (o.kind == FLAT) return static_cast<A>(x[o.offset + i]);
  if (o.kind == COLUMN) return static_cast<A>(x[o.offset + i / p.size[1]]);
  long long at = o.offset;
  for (int d = p.dims - 1; d >= 0; --d) {
    at += i % p.size[d] * o.stride[d];
    i /= p.size[d];
  }
  return static_cast<A>(x[at]);
}

template <class T, class A>
__global__ void ker_add(T* out, const T* a, const T* b, A a_number, A b_number, A alpha, Plan p) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step)
    out[i] = static_cast<T>(get<T, A>(a, a_number, p.of[0], p, i) + alpha * get<T, A>(b, b_number, p.of[1], p, i));
}

template <class T, class N>
static void add(T* out, const T* a, const T* b, N a_number, N b_number, N alpha, int dimensions,
                const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) {
  using A = typename Arithmetic<T>::type;
  Plan p{};
  p.dims = dimensions;
  p.count = 1;
  for (int d = 0; d < dimensions; ++d) p.count *= p.size[d] = sizes[d];
  if (p.count == 0) return;
  const T* pointers[2] = {a, b};
  for (int k = 0; k < 2; ++k) {
    Operand& o = p.of[k];
    const long long* s = strides + k * dimensions;
    o.offset = offsets[k];
    bool flat = true;
    long long dense = 1;
    for (int d = dimensions - 1; d >= 0; --d) {
      o.stride[d] = s[d];
      flat = flat && (sizes[d] == 1 || s[d] == dense);
      dense *= sizes[d];
    }
    o.kind = !pointers[k] ? NUMBER : flat ? FLAT : dimensions == 2 && s[0] != 0 && s[1] == 0 ? COLUMN : ANY;
  }
  const long long blocks = (p.count + 255) / 256;
  ker_add<T, A><<<blocks < 65536 ? static_cast<int>(blocks) : 65536, 256, 0, stream>>>(
      out, a, b, static_cast<A>(a_number), static_cast<A>(b_number), static_cast<A>(alpha), p);
}

#define LAUNCHER(NAME, T, N) \
  extern "C" void launch_add_##NAME(T* out, const T* a, const T* b, N a_number, N b_number, N alpha, int dimensions, \
      const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) { \
    add<T, N>(out, a, b, a_number, b_number, alpha, dimensions, sizes, strides, offsets, stream); \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
