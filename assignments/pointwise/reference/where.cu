// out = a where condition is true, else b
#include "pointwise.cuh"

template <class A> struct Where {
  __device__ A operator()(bool condition, A a, A b) const { return condition ? a : b; }
};

#define LAUNCHER(NAME, T, A)                                                                                         \
  extern "C" void launch_where_##NAME(T* out, const bool* condition, const T* a, const T* b, A a_number, A b_number, \
                                      int dimensions, const long long* sizes, const long long* strides,              \
                                      const long long* offsets, cudaStream_t stream) {                               \
    const Where<arithmetic<T>> f;                                                                                    \
    pointwise(out, f, dimensions, sizes, strides, offsets, stream, operand(condition, false), operand(a, a_number),  \
              operand(b, b_number));                                                                                 \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
