// out = a - alpha b. Transposed matrices have a path of their own.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Operand {
  bool turned;
  long long offset, stride[5];
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

__device__ long long place(const Operand& o, const Plan& p, long long i) {
  if (o.turned) {
    const long long row = i / p.size[1], column = i - row * p.size[1];
    return o.offset + column * p.size[0] + row;
  }
  long long at = o.offset;
  for (int d = p.dims - 1; d >= 0; --d) {
    at += i % p.size[d] * o.stride[d];
    i /= p.size[d];
  }
  return at;
}

template <class T, class A>
__global__ void ker_sub(T* out, const T* a, const T* b, A a_number, A b_number, A alpha, Plan p) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += stride) {
    const A x = a ? static_cast<A>(a[place(p.of[0], p, i)]) : a_number;
    const A y = b ? static_cast<A>(b[place(p.of[1], p, i)]) : b_number;
    out[i] = static_cast<T>(x - alpha * y);
  }
}

template <class T, class N>
static void sub(T* out, const T* a, const T* b, N a_number, N b_number, N alpha, int dimensions,
                const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) {
  using A = typename Arithmetic<T>::type;
  Plan p{};
  p.dims = dimensions;
  p.count = 1;
  for (int d = 0; d < dimensions; ++d) p.count *= p.size[d] = sizes[d];
  if (p.count == 0) return;
  for (int k = 0; k < 2; ++k) {
    const long long* s = strides + k * dimensions;
    p.of[k].offset = offsets[k];
    for (int d = 0; d < dimensions; ++d) p.of[k].stride[d] = s[d];
    p.of[k].turned = dimensions == 2 && s[0] == 1 && s[1] > 1;
  }
  const long long blocks = (p.count + 255) / 256;
  ker_sub<T, A><<<blocks < 65536 ? static_cast<int>(blocks) : 65536, 256, 0, stream>>>(
      out, a, b, static_cast<A>(a_number), static_cast<A>(b_number), static_cast<A>(alpha), p);
}

#define LAUNCHER(NAME, T, N) \
  extern "C" void launch_sub_##NAME(T* out, const T* a, const T* b, N a_number, N b_number, N alpha, int dimensions, \
      const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) { \
    sub<T, N>(out, a, b, a_number, b_number, alpha, dimensions, sizes, strides, offsets, stream); \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
