// out = a + weight (b - a), which is b exactly at weight 1
#include "pointwise.cuh"

template <class A> struct Lerp {
  __device__ A operator()(A a, A b, A weight) const {
    const bool small = weight > A(-0.5) && weight < A(0.5);
    return small ? a + weight * (b - a) : b - (b - a) * (A(1) - weight);
  }
};

#define LAUNCHER(NAME, T, A)                                                                                           \
  extern "C" void launch_lerp_##NAME(T* out, const T* a, const T* b, const T* weight, A weight_number, int dimensions, \
                                     const long long* sizes, const long long* strides, const long long* offsets,       \
                                     cudaStream_t stream) {                                                            \
    const Lerp<arithmetic<T>> f;                                                                                       \
    pointwise(out, f, dimensions, sizes, strides, offsets, stream, operand(a, A()), operand(b, A()),                   \
              operand(weight, weight_number));                                                                         \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
