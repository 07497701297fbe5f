// Written by codegen/generate.py: a kernel for each element type and kind of operands.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Strides {
  long long sizes[5], of[3][5];
};

__global__ void ker_float16_flat(__half* out, const bool* condition_data, const __half* a_data, const __half* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<__half>(condition ? a : b);
}

__global__ void ker_float16_strided(__half* out, const bool* condition_data, const __half* a_data, const __half* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<__half>(condition ? a : b);
}

__global__ void ker_float16_a_flat(__half* out, const bool* condition_data, const __half* b_data, float a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<__half>(condition ? a : b);
}

__global__ void ker_float16_a_strided(__half* out, const bool* condition_data, const __half* b_data, float a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<__half>(condition ? a : b);
}

__global__ void ker_float16_b_flat(__half* out, const bool* condition_data, const __half* a_data, float b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float a = static_cast<float>(a_data[i]);
  out[i] = static_cast<__half>(condition ? a : b);
}

__global__ void ker_float16_b_strided(__half* out, const bool* condition_data, const __half* a_data, float b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float a = static_cast<float>(a_data[a_place]);
  out[i] = static_cast<__half>(condition ? a : b);
}

extern "C" void launch_where_float16(__half* out, const bool* condition, const __half* a, const __half* b, float a_number, float b_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_condition = true, flat_a = true, flat_b = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_condition = flat_condition && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (a != nullptr && b != nullptr && flat_condition && flat_a && flat_b) return ker_float16_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (a != nullptr && b != nullptr) return ker_float16_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (b != nullptr && flat_condition && flat_b) return ker_float16_a_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (b != nullptr) return ker_float16_a_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (a != nullptr && flat_condition && flat_a) return ker_float16_b_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
  if (a != nullptr) return ker_float16_b_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
}

__global__ void ker_bfloat16_flat(__nv_bfloat16* out, const bool* condition_data, const __nv_bfloat16* a_data, const __nv_bfloat16* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<__nv_bfloat16>(condition ? a : b);
}

__global__ void ker_bfloat16_strided(__nv_bfloat16* out, const bool* condition_data, const __nv_bfloat16* a_data, const __nv_bfloat16* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<__nv_bfloat16>(condition ? a : b);
}

__global__ void ker_bfloat16_a_flat(__nv_bfloat16* out, const bool* condition_data, const __nv_bfloat16* b_data, float a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<__nv_bfloat16>(condition ? a : b);
}

__global__ void ker_bfloat16_a_strided(__nv_bfloat16* out, const bool* condition_data, const __nv_bfloat16* b_data, float a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<__nv_bfloat16>(condition ? a : b);
}

__global__ void ker_bfloat16_b_flat(__nv_bfloat16* out, const bool* condition_data, const __nv_bfloat16* a_data, float b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float a = static_cast<float>(a_data[i]);
  out[i] = static_cast<__nv_bfloat16>(condition ? a : b);
}

__global__ void ker_bfloat16_b_strided(__nv_bfloat16* out, const bool* condition_data, const __nv_bfloat16* a_data, float b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float a = static_cast<float>(a_data[a_place]);
  out[i] = static_cast<__nv_bfloat16>(condition ? a : b);
}

extern "C" void launch_where_bfloat16(__nv_bfloat16* out, const bool* condition, const __nv_bfloat16* a, const __nv_bfloat16* b, float a_number, float b_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_condition = true, flat_a = true, flat_b = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_condition = flat_condition && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (a != nullptr && b != nullptr && flat_condition && flat_a && flat_b) return ker_bfloat16_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (a != nullptr && b != nullptr) return ker_bfloat16_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (b != nullptr && flat_condition && flat_b) return ker_bfloat16_a_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (b != nullptr) return ker_bfloat16_a_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (a != nullptr && flat_condition && flat_a) return ker_bfloat16_b_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
  if (a != nullptr) return ker_bfloat16_b_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
}

__global__ void ker_float32_flat(float* out, const bool* condition_data, const float* a_data, const float* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<float>(condition ? a : b);
}

__global__ void ker_float32_strided(float* out, const bool* condition_data, const float* a_data, const float* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<float>(condition ? a : b);
}

__global__ void ker_float32_a_flat(float* out, const bool* condition_data, const float* b_data, float a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<float>(condition ? a : b);
}

__global__ void ker_float32_a_strided(float* out, const bool* condition_data, const float* b_data, float a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<float>(condition ? a : b);
}

__global__ void ker_float32_b_flat(float* out, const bool* condition_data, const float* a_data, float b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const float a = static_cast<float>(a_data[i]);
  out[i] = static_cast<float>(condition ? a : b);
}

__global__ void ker_float32_b_strided(float* out, const bool* condition_data, const float* a_data, float b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const float a = static_cast<float>(a_data[a_place]);
  out[i] = static_cast<float>(condition ? a : b);
}

extern "C" void launch_where_float32(float* out, const bool* condition, const float* a, const float* b, float a_number, float b_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_condition = true, flat_a = true, flat_b = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_condition = flat_condition && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (a != nullptr && b != nullptr && flat_condition && flat_a && flat_b) return ker_float32_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (a != nullptr && b != nullptr) return ker_float32_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (b != nullptr && flat_condition && flat_b) return ker_float32_a_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (b != nullptr) return ker_float32_a_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (a != nullptr && flat_condition && flat_a) return ker_float32_b_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
  if (a != nullptr) return ker_float32_b_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
}

__global__ void ker_float64_flat(double* out, const bool* condition_data, const double* a_data, const double* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const double a = static_cast<double>(a_data[i]);
  const double b = static_cast<double>(b_data[i]);
  out[i] = static_cast<double>(condition ? a : b);
}

__global__ void ker_float64_strided(double* out, const bool* condition_data, const double* a_data, const double* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const double a = static_cast<double>(a_data[a_place]);
  const double b = static_cast<double>(b_data[b_place]);
  out[i] = static_cast<double>(condition ? a : b);
}

__global__ void ker_float64_a_flat(double* out, const bool* condition_data, const double* b_data, double a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const double b = static_cast<double>(b_data[i]);
  out[i] = static_cast<double>(condition ? a : b);
}

__global__ void ker_float64_a_strided(double* out, const bool* condition_data, const double* b_data, double a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const double b = static_cast<double>(b_data[b_place]);
  out[i] = static_cast<double>(condition ? a : b);
}

__global__ void ker_float64_b_flat(double* out, const bool* condition_data, const double* a_data, double b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const double a = static_cast<double>(a_data[i]);
  out[i] = static_cast<double>(condition ? a : b);
}

__global__ void ker_float64_b_strided(double* out, const bool* condition_data, const double* a_data, double b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const double a = static_cast<double>(a_data[a_place]);
  out[i] = static_cast<double>(condition ? a : b);
}

extern "C" void launch_where_float64(double* out, const bool* condition, const double* a, const double* b, double a_number, double b_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_condition = true, flat_a = true, flat_b = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_condition = flat_condition && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (a != nullptr && b != nullptr && flat_condition && flat_a && flat_b) return ker_float64_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (a != nullptr && b != nullptr) return ker_float64_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (b != nullptr && flat_condition && flat_b) return ker_float64_a_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (b != nullptr) return ker_float64_a_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (a != nullptr && flat_condition && flat_a) return ker_float64_b_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
  if (a != nullptr) return ker_float64_b_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
}

__global__ void ker_int32_flat(int* out, const bool* condition_data, const int* a_data, const int* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const unsigned a = static_cast<unsigned>(a_data[i]);
  const unsigned b = static_cast<unsigned>(b_data[i]);
  out[i] = static_cast<int>(condition ? a : b);
}

__global__ void ker_int32_strided(int* out, const bool* condition_data, const int* a_data, const int* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const unsigned a = static_cast<unsigned>(a_data[a_place]);
  const unsigned b = static_cast<unsigned>(b_data[b_place]);
  out[i] = static_cast<int>(condition ? a : b);
}

__global__ void ker_int32_a_flat(int* out, const bool* condition_data, const int* b_data, unsigned a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const unsigned b = static_cast<unsigned>(b_data[i]);
  out[i] = static_cast<int>(condition ? a : b);
}

__global__ void ker_int32_a_strided(int* out, const bool* condition_data, const int* b_data, unsigned a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const unsigned b = static_cast<unsigned>(b_data[b_place]);
  out[i] = static_cast<int>(condition ? a : b);
}

__global__ void ker_int32_b_flat(int* out, const bool* condition_data, const int* a_data, unsigned b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const unsigned a = static_cast<unsigned>(a_data[i]);
  out[i] = static_cast<int>(condition ? a : b);
}

__global__ void ker_int32_b_strided(int* out, const bool* condition_data, const int* a_data, unsigned b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const unsigned a = static_cast<unsigned>(a_data[a_place]);
  out[i] = static_cast<int>(condition ? a : b);
}

extern "C" void launch_where_int32(int* out, const bool* condition, const int* a, const int* b, int a_number, int b_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_condition = true, flat_a = true, flat_b = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_condition = flat_condition && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (a != nullptr && b != nullptr && flat_condition && flat_a && flat_b) return ker_int32_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (a != nullptr && b != nullptr) return ker_int32_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (b != nullptr && flat_condition && flat_b) return ker_int32_a_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (b != nullptr) return ker_int32_a_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (a != nullptr && flat_condition && flat_a) return ker_int32_b_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
  if (a != nullptr) return ker_int32_b_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
}

__global__ void ker_int64_flat(long long* out, const bool* condition_data, const long long* a_data, const long long* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const unsigned long long a = static_cast<unsigned long long>(a_data[i]);
  const unsigned long long b = static_cast<unsigned long long>(b_data[i]);
  out[i] = static_cast<long long>(condition ? a : b);
}

__global__ void ker_int64_strided(long long* out, const bool* condition_data, const long long* a_data, const long long* b_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const unsigned long long a = static_cast<unsigned long long>(a_data[a_place]);
  const unsigned long long b = static_cast<unsigned long long>(b_data[b_place]);
  out[i] = static_cast<long long>(condition ? a : b);
}

__global__ void ker_int64_a_flat(long long* out, const bool* condition_data, const long long* b_data, unsigned long long a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const unsigned long long b = static_cast<unsigned long long>(b_data[i]);
  out[i] = static_cast<long long>(condition ? a : b);
}

__global__ void ker_int64_a_strided(long long* out, const bool* condition_data, const long long* b_data, unsigned long long a, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    b_place += place * strides.of[2][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const unsigned long long b = static_cast<unsigned long long>(b_data[b_place]);
  out[i] = static_cast<long long>(condition ? a : b);
}

__global__ void ker_int64_b_flat(long long* out, const bool* condition_data, const long long* a_data, unsigned long long b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const bool condition = static_cast<bool>(condition_data[i]);
  const unsigned long long a = static_cast<unsigned long long>(a_data[i]);
  out[i] = static_cast<long long>(condition ? a : b);
}

__global__ void ker_int64_b_strided(long long* out, const bool* condition_data, const long long* a_data, unsigned long long b, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, condition_place = 0, a_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    condition_place += place * strides.of[0][d];
    a_place += place * strides.of[1][d];
  }
  const bool condition = static_cast<bool>(condition_data[condition_place]);
  const unsigned long long a = static_cast<unsigned long long>(a_data[a_place]);
  out[i] = static_cast<long long>(condition ? a : b);
}

extern "C" void launch_where_int64(long long* out, const bool* condition, const long long* a, const long long* b, long long a_number, long long b_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_condition = true, flat_a = true, flat_b = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_condition = flat_condition && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (a != nullptr && b != nullptr && flat_condition && flat_a && flat_b) return ker_int64_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (a != nullptr && b != nullptr) return ker_int64_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b + offsets[2], all, count);
  if (b != nullptr && flat_condition && flat_b) return ker_int64_a_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (b != nullptr) return ker_int64_a_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], b + offsets[2], a_number, all, count);
  if (a != nullptr && flat_condition && flat_a) return ker_int64_b_flat<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
  if (a != nullptr) return ker_int64_b_strided<<<blocks, 256, 0, stream>>>(out, condition + offsets[0], a + offsets[1], b_number, all, count);
}
