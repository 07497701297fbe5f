// A thread for each element, which divides by every size; the product is always rounded before the sum.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Tensors {
  long long sizes[5], a[5], b[5];
};

__device__ float sum(float a, float b, float alpha) { return __fadd_rn(a, __fmul_rn(alpha, b)); }
__device__ double sum(double a, double b, double alpha) { return __dadd_rn(a, __dmul_rn(alpha, b)); }
__device__ unsigned sum(unsigned a, unsigned b, unsigned alpha) { return a + alpha * b; }
__device__ unsigned long long sum(unsigned long long a, unsigned long long b, unsigned long long alpha) {
  return a + alpha * b;
}

template <class T, class A>
__global__ void ker(T* out, const T* a, const T* b, A a_number, A b_number, A alpha, int dimensions, Tensors of,
                    long long count) {
  const long long i = blockIdx.x * 128LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, at_a = 0, at_b = 0;
  for (int d = dimensions - 1; d >= 0; --d) {
    at_a += rest % of.sizes[d] * of.a[d];
    at_b += rest % of.sizes[d] * of.b[d];
    rest /= of.sizes[d];
  }
  const A x = a ? static_cast<A>(a[at_a]) : a_number, y = b ? static_cast<A>(b[at_b]) : b_number;
  out[i] = static_cast<T>(sum(x, y, alpha));
}

template <class A, class T>
void launch(T* out, const T* a, const T* b, A a_number, A b_number, A alpha, int dimensions, const long long* sizes,
            const long long* strides, const long long* offsets, cudaStream_t stream) {
  Tensors of{};
  long long count = 1;
  for (int d = 0; d < dimensions; ++d) {
    of.sizes[d] = sizes[d], of.a[d] = strides[d], of.b[d] = strides[dimensions + d];
    count *= sizes[d];
  }
  if (count == 0) return;
  ker<T, A><<<static_cast<unsigned>((count + 127) / 128), 128, 0, stream>>>(
      out, a ? a + offsets[0] : a, b ? b + offsets[1] : b, a_number, b_number, alpha, dimensions, of, count);
}

#define LAUNCHER(NAME, T, N, A)                                                                                  \
  extern "C" void launch_add_##NAME(T* out, const T* a, const T* b, N a_number, N b_number, N alpha,             \
                                    int dimensions, const long long* sizes, const long long* strides,            \
                                    const long long* offsets, cudaStream_t stream) {                             \
    launch<A>(out, a, b, A(a_number), A(b_number), A(alpha), dimensions, sizes, strides, offsets, stream);       \
  }
LAUNCHER(float16, __half, float, float)
LAUNCHER(bfloat16, __nv_bfloat16, float, float)
LAUNCHER(float32, float, float, float)
LAUNCHER(float64, double, double, double)
LAUNCHER(int32, int, int, unsigned)
using unsigned_long = unsigned long long;
LAUNCHER(int64, long long, long long, unsigned_long)
