// One kernel that divides for every operand of every element; the compiler may fuse the product and the difference.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Tensors {
  long long sizes[5], strides[2][5];
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
__global__ void ker(T* out, const T* a_data, const T* b_data, A a_number, A b_number, A alpha, Tensors of,
                    long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const A a = a_data ? static_cast<A>(a_data[of.place(0, i)]) : a_number;
  const A b = b_data ? static_cast<A>(b_data[of.place(1, i)]) : b_number;
  out[i] = static_cast<T>(a - alpha * b);
}

template <class A, class T>
void launch(T* out, const T* a, const T* b, A a_number, A b_number, A alpha, int dimensions, const long long* sizes,
            const long long* strides, const long long* offsets, cudaStream_t stream) {
  Tensors of{};
  of.dimensions = dimensions;
  long long count = 1;
  for (int d = 0; d < dimensions; ++d) {
    count *= of.sizes[d] = sizes[d];
    for (int k = 0; k < 2; ++k) of.strides[k][d] = strides[k * dimensions + d];
  }
  if (count == 0) return;
  ker<A><<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(
      out, a ? a + offsets[0] : a, b ? b + offsets[1] : b, a_number, b_number, alpha, of, count);
}

#define LAUNCHER(NAME, T, N, A)                                                                                      \
  extern "C" void launch_sub_##NAME(T* out, const T* a, const T* b, N a_number, N b_number, N alpha, int dimensions, \
                                    const long long* sizes, const long long* strides, const long long* offsets,      \
                                    cudaStream_t stream) {                                                           \
    launch<A>(out, a, b, A(a_number), A(b_number), A(alpha), dimensions, sizes, strides, offsets, stream);           \
  }
LAUNCHER(float16, __half, float, float)
LAUNCHER(bfloat16, __nv_bfloat16, float, float)
LAUNCHER(float32, float, float, float)
LAUNCHER(float64, double, double, double)
LAUNCHER(int32, int, int, unsigned)
using unsigned_long = unsigned long long;
LAUNCHER(int64, long long, long long, unsigned_long)
