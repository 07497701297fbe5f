// out = a + alpha b. Write the body; HANDOUT.md says what it must do.
#include "pointwise.cuh"

#define LAUNCHER(NAME, T, N) \
  extern "C" void launch_add_##NAME(T* out, const T* a, const T* b, N a_number, N b_number, N alpha, int dimensions, \
      const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) { \
    /* YOUR CODE HERE (add): call what pointwise.cuh offers. */ \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
