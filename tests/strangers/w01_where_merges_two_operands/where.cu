// out = condition ? a : b. Neighbouring dimensions are merged first, so that most tensors have one dimension.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Plan {
  int dims;
  long long count, size[5], stride[3][5], offset[3];
};

template <class T>
__global__ void ker_where(T* out, const bool* condition, const T* a, const T* b, T a_value, T b_value, Plan p) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step) {
    long long rest = i, c_at = p.offset[0], a_at = p.offset[1], b_at = p.offset[2];
    for (int d = p.dims - 1; d >= 0; --d) {
      const long long at = rest % p.size[d];
      rest /= p.size[d];
      c_at += at * p.stride[0][d];
      a_at += at * p.stride[1][d];
      b_at += at * p.stride[2][d];
    }
    out[i] = condition[c_at] ? (a ? a[a_at] : a_value) : (b ? b[b_at] : b_value);
  }
}

static bool joins(const Plan& p, int operand, int last, long long size, long long stride) {
  return p.stride[operand][last] == size * stride;
}

template <class T, class N>
static void choose(T* out, const bool* condition, const T* a, const T* b, N a_number, N b_number, int dimensions,
                   const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) {
  Plan p{};
  p.count = 1;
  for (int k = 0; k < 3; ++k) p.offset[k] = offsets[k];
  for (int d = 0; d < dimensions; ++d) {
    p.count *= sizes[d];
    if (sizes[d] == 1) continue;
    const int last = p.dims - 1;
    if (last >= 0 && joins(p, 0, last, sizes[d], strides[d]) && joins(p, 1, last, sizes[d], strides[dimensions + d])) {
      p.size[last] *= sizes[d];
      for (int k = 0; k < 3; ++k) p.stride[k][last] = strides[k * dimensions + d];
    } else {
      p.size[p.dims] = sizes[d];
      for (int k = 0; k < 3; ++k) p.stride[k][p.dims] = strides[k * dimensions + d];
      ++p.dims;
    }
  }
  if (p.count == 0) return;
  const long long blocks = (p.count + 255) / 256;
  ker_where<T><<<blocks < 65536 ? static_cast<int>(blocks) : 65536, 256, 0, stream>>>(
      out, condition, a, b, static_cast<T>(a_number), static_cast<T>(b_number), p);
}

#define LAUNCHER(NAME, T, N) \
  extern "C" void launch_where_##NAME(T* out, const bool* condition, const T* a, const T* b, N a_number, N b_number, int dimensions, \
      const long long* sizes, const long long* strides, const long long* offsets, cudaStream_t stream) { \
    choose<T, N>(out, condition, a, b, a_number, b_number, dimensions, sizes, strides, offsets, stream); \
  }
LAUNCHER(float16, __half, float)
LAUNCHER(bfloat16, __nv_bfloat16, float)
LAUNCHER(float32, float, float)
LAUNCHER(float64, double, double)
LAUNCHER(int32, int, int)
LAUNCHER(int64, long long, long long)
