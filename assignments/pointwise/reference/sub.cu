// out = a - alpha b
#include "pointwise.cuh"

template <class A> struct Sub {
  A alpha;
  __device__ A operator()(A a, A b) const { return a - alpha * b; }
};

#define LAUNCHER(NAME, T, A)                                                                                         \
  extern "C" void launch_sub_##NAME(T* out, const T* a, const T* b, A a_number, A b_number, A alpha, int dimensions, \
                                    const long long* sizes, const long long* strides, const long long* offsets,      \
                                    cudaStream_t stream) {                                                           \
    const Sub<arithmetic<T>> f{static_cast<arithmetic<T>>(alpha)};                                                   \
    pointwise(out, f, dimensions, sizes, strides, offsets, stream, operand(a, a_number), operand(b, b_number));      \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
