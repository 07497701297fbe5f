// out = a b. The half precision unit multiplies halves; numbers and all other types use the type of the arithmetic.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Plan {
  int dims;
  long long count, size[5], stride[2][5], offset[2];
};

template <class T> struct Arithmetic { using type = float; };
template <> struct Arithmetic<double> { using type = double; };
template <> struct Arithmetic<int> { using type = unsigned; };
template <> struct Arithmetic<long long> { using type = unsigned long long; };

template <class T>
__device__ T product(T x, T y) {
  using A = typename Arithmetic<T>::type;
  return static_cast<T>(static_cast<A>(x) * static_cast<A>(y));
}
__device__ inline __half product(__half x, __half y) { return __hmul(x, y); }

template <class T, class A>
__global__ void ker_mul(T* out, const T* a, const T* b, A a_number, A b_number, Plan p) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step) {
    long long rest = i, a_at = p.offset[0], b_at = p.offset[1];
    for (int d = p.dims - 1; d >= 0; --d) {
      const long long here = rest % p.size[d];
      rest /= p.size[d];
      a_at += here * p.stride[0][d];
      b_at += here * p.stride[1][d];
    }
    if (a && b)
      out[i] = product(a[a_at], b[b_at]);
    else
      out[i] = static_cast<T>((a ? static_cast<A>(a[a_at]) : a_number) * (b ? static_cast<A>(b[b_at]) : b_number));
  }
}

template <class T, class N>
static void mul(T* out, const T* a, const T* b, N a_number, N b_number, int dimensions, const long long* sizes,
                const long long* strides, const long long* offsets, cudaStream_t stream) {
  using A = typename Arithmetic<T>::type;
  Plan p{};
  p.dims = dimensions;
  p.count = 1;
  for (int d = 0; d < dimensions; ++d) p.count *= p.size[d] = sizes[d];
  for (int k = 0; k < 2; ++k) {
    p.offset[k] = offsets[k];
    for (int d = 0; d < dimensions; ++d) p.stride[k][d] = strides[k * dimensions + d];
  }
  if (p.count == 0) return;
  const long long blocks = (p.count + 255) / 256;
  ker_mul<T, A><<<blocks < 65536 ? static_cast<int>(blocks) : 65536, 256, 0, stream>>>(
      out, a, b, static_cast<A>(a_number), static_cast<A>(b_number), p);
}

#define LAUNCHER(NAME, T, N) \
  extern "C" void launch_mul_##NAME(T* out, const T* a, const T* b, N a_number, N b_number, int dimensions, \
      const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) { \
    mul<T, N>(out, a, b, a_number, b_number, dimensions, sizes, strides, offsets, stream); \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
