// out = a + weight (b - a), with a fast path for contiguous operands.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Plan {
  int dims;
  long long count, size[5], stride[3][5], offset[3];
};

template <class T> struct Wide { using type = float; };
template <> struct Wide<double> { using type = double; };

template <class A>
__device__ A mix(A a, A b, A w) {
  const A d = b - a;
  return (w < A(0.5) && w > A(-0.5)) ? a + w * d : b - d * (A(1) - w);
}

template <class T>
__global__ void ker_flat(T* out, const T* a, const T* b, const T* weight, typename Wide<T>::type number, long long n) {
  using A = typename Wide<T>::type;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    out[i] = static_cast<T>(mix<A>(static_cast<A>(a[i]), static_cast<A>(b[i]), weight ? static_cast<A>(weight[i]) : number));
}

template <class T>
__global__ void ker_any(T* out, const T* a, const T* b, const T* weight, typename Wide<T>::type number, Plan p) {
  using A = typename Wide<T>::type;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step) {
    long long rest = i, at[3] = {p.offset[0], p.offset[1], p.offset[2]};
    for (int d = p.dims - 1; d >= 0; --d) {
      const long long x = rest % p.size[d];
      rest /= p.size[d];
      for (int k = 0; k < 3; ++k) at[k] += x * p.stride[k][d];
    }
    out[i] = static_cast<T>(mix<A>(static_cast<A>(a[at[0]]), static_cast<A>(b[at[1]]),
                                   weight ? static_cast<A>(weight[at[2]]) : number));
  }
}

template <class T, class N>
static void lerp(T* out, const T* a, const T* b, const T* weight, N number, int dimensions, const long long* sizes,
                 const long long* strides, const long long* offsets, cudaStream_t stream) {
  Plan p{};
  p.dims = dimensions;
  p.count = 1;
  bool dense = true;
  for (int d = dimensions - 1; d >= 0; --d) {
    p.size[d] = sizes[d];
    for (int k = 0; k < 3; ++k) p.stride[k][d] = strides[k * dimensions + d];
    if (sizes[d] != 1) dense = dense && p.stride[0][d] == p.count && p.stride[1][d] == p.count;
    p.count *= sizes[d];
  }
  for (int k = 0; k < 3; ++k) p.offset[k] = offsets[k];
  if (p.count == 0) return;
  const long long blocks = (p.count + 255) / 256;
  const int grid = blocks < 65536 ? static_cast<int>(blocks) : 65536;
  if (dense)
    ker_flat<T><<<grid, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight ? weight + offsets[2] : nullptr, number, p.count);
  else
    ker_any<T><<<grid, 256, 0, stream>>>(out, a, b, weight, number, p);
}

#define LAUNCHER(NAME, T, N) \
  extern "C" void launch_lerp_##NAME(T* out, const T* a, const T* b, const T* weight, N weight_number, int dimensions, \
      const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) { \
    lerp<T, N>(out, a, b, weight, weight_number, dimensions, sizes, strides, offsets, stream); \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
