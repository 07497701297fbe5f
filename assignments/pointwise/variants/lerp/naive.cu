// One kernel that divides for every operand of every element, and computes both ends where threads disagree.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Tensors {
  long long sizes[5], strides[3][5];
  int dimensions;

  __device__ long long place(int operand, long long i) const {
    long long at = 0;
    for (int d = dimensions - 1; d >= 0; --d) {
      at += i % sizes[d] * strides[operand][d];
      i /= sizes[d];
    }
    return at;
  }
};

template <class A, class T>
__global__ void ker(T* out, const T* a_data, const T* b_data, const T* weight_data, A weight_number, Tensors of,
                    long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const A a = static_cast<A>(a_data[of.place(0, i)]);
  const A b = static_cast<A>(b_data[of.place(1, i)]);
  const A weight = weight_data ? static_cast<A>(weight_data[of.place(2, i)]) : weight_number;
  out[i] = static_cast<T>(fabs(weight) < A(0.5) ? a + weight * (b - a) : b - (b - a) * (A(1) - weight));
}

template <class A, class T>
void launch(T* out, const T* a, const T* b, const T* weight, A weight_number, int dimensions, const long long* sizes,
            const long long* strides, const long long* offsets, cudaStream_t stream) {
  Tensors of{};
  of.dimensions = dimensions;
  long long count = 1;
  for (int d = 0; d < dimensions; ++d) {
    count *= of.sizes[d] = sizes[d];
    for (int k = 0; k < 3; ++k) of.strides[k][d] = strides[k * dimensions + d];
  }
  if (count == 0) return;
  ker<A><<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(
      out, a + offsets[0], b + offsets[1], weight ? weight + offsets[2] : weight, weight_number, of, count);
}

#define LAUNCHER(NAME, T, N, A)                                                                                        \
  extern "C" void launch_lerp_##NAME(T* out, const T* a, const T* b, const T* weight, N weight_number, int dimensions, \
                                     const long long* sizes, const long long* strides, const long long* offsets,       \
                                     cudaStream_t stream) {                                                            \
    launch<A>(out, a, b, weight, A(weight_number), dimensions, sizes, strides, offsets, stream);                       \
  }
LAUNCHER(float16, __half, float, float)
LAUNCHER(bfloat16, __nv_bfloat16, float, float)
LAUNCHER(float32, float, float, float)
LAUNCHER(float64, double, double, double)
