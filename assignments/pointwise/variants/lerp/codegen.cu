// Written by codegen/generate.py: a kernel for each element type and kind of operands.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Strides {
  long long sizes[5], of[3][5];
};

__global__ void ker_float16_flat(__half* out, const __half* a_data, const __half* b_data, const __half* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  const float weight = static_cast<float>(weight_data[i]);
  out[i] = static_cast<__half>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float16_strided(__half* out, const __half* a_data, const __half* b_data, const __half* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0, weight_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
    weight_place += place * strides.of[2][d];
  }
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  const float weight = static_cast<float>(weight_data[weight_place]);
  out[i] = static_cast<__half>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float16_weight_flat(__half* out, const __half* a_data, const __half* b_data, float weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<__half>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float16_weight_strided(__half* out, const __half* a_data, const __half* b_data, float weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
  }
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<__half>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

extern "C" void launch_lerp_float16(__half* out, const __half* a, const __half* b, const __half* weight, float weight_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_a = true, flat_b = true, flat_weight = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_weight = flat_weight && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (weight != nullptr && flat_a && flat_b && flat_weight) return ker_float16_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (weight != nullptr) return ker_float16_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (flat_a && flat_b) return ker_float16_weight_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
  if (true) return ker_float16_weight_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
}

__global__ void ker_bfloat16_flat(__nv_bfloat16* out, const __nv_bfloat16* a_data, const __nv_bfloat16* b_data, const __nv_bfloat16* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  const float weight = static_cast<float>(weight_data[i]);
  out[i] = static_cast<__nv_bfloat16>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_bfloat16_strided(__nv_bfloat16* out, const __nv_bfloat16* a_data, const __nv_bfloat16* b_data, const __nv_bfloat16* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0, weight_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
    weight_place += place * strides.of[2][d];
  }
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  const float weight = static_cast<float>(weight_data[weight_place]);
  out[i] = static_cast<__nv_bfloat16>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_bfloat16_weight_flat(__nv_bfloat16* out, const __nv_bfloat16* a_data, const __nv_bfloat16* b_data, float weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<__nv_bfloat16>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_bfloat16_weight_strided(__nv_bfloat16* out, const __nv_bfloat16* a_data, const __nv_bfloat16* b_data, float weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
  }
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<__nv_bfloat16>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

extern "C" void launch_lerp_bfloat16(__nv_bfloat16* out, const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* weight, float weight_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_a = true, flat_b = true, flat_weight = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_weight = flat_weight && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (weight != nullptr && flat_a && flat_b && flat_weight) return ker_bfloat16_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (weight != nullptr) return ker_bfloat16_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (flat_a && flat_b) return ker_bfloat16_weight_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
  if (true) return ker_bfloat16_weight_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
}

__global__ void ker_float32_flat(float* out, const float* a_data, const float* b_data, const float* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  const float weight = static_cast<float>(weight_data[i]);
  out[i] = static_cast<float>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float32_strided(float* out, const float* a_data, const float* b_data, const float* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0, weight_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
    weight_place += place * strides.of[2][d];
  }
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  const float weight = static_cast<float>(weight_data[weight_place]);
  out[i] = static_cast<float>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float32_weight_flat(float* out, const float* a_data, const float* b_data, float weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const float a = static_cast<float>(a_data[i]);
  const float b = static_cast<float>(b_data[i]);
  out[i] = static_cast<float>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float32_weight_strided(float* out, const float* a_data, const float* b_data, float weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
  }
  const float a = static_cast<float>(a_data[a_place]);
  const float b = static_cast<float>(b_data[b_place]);
  out[i] = static_cast<float>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

extern "C" void launch_lerp_float32(float* out, const float* a, const float* b, const float* weight, float weight_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_a = true, flat_b = true, flat_weight = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_weight = flat_weight && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (weight != nullptr && flat_a && flat_b && flat_weight) return ker_float32_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (weight != nullptr) return ker_float32_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (flat_a && flat_b) return ker_float32_weight_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
  if (true) return ker_float32_weight_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
}

__global__ void ker_float64_flat(double* out, const double* a_data, const double* b_data, const double* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const double a = static_cast<double>(a_data[i]);
  const double b = static_cast<double>(b_data[i]);
  const double weight = static_cast<double>(weight_data[i]);
  out[i] = static_cast<double>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float64_strided(double* out, const double* a_data, const double* b_data, const double* weight_data, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0, weight_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
    weight_place += place * strides.of[2][d];
  }
  const double a = static_cast<double>(a_data[a_place]);
  const double b = static_cast<double>(b_data[b_place]);
  const double weight = static_cast<double>(weight_data[weight_place]);
  out[i] = static_cast<double>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float64_weight_flat(double* out, const double* a_data, const double* b_data, double weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  const double a = static_cast<double>(a_data[i]);
  const double b = static_cast<double>(b_data[i]);
  out[i] = static_cast<double>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

__global__ void ker_float64_weight_strided(double* out, const double* a_data, const double* b_data, double weight, Strides strides, long long count) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
  long long rest = i, a_place = 0, b_place = 0;
  for (int d = 4; d >= 0; --d) {
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
    a_place += place * strides.of[0][d];
    b_place += place * strides.of[1][d];
  }
  const double a = static_cast<double>(a_data[a_place]);
  const double b = static_cast<double>(b_data[b_place]);
  out[i] = static_cast<double>(fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight));
}

extern "C" void launch_lerp_float64(double* out, const double* a, const double* b, const double* weight, double weight_number, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {
  Strides all{};
  long long count = 1;
  bool flat_a = true, flat_b = true, flat_weight = true;
  for (int d = 4; d >= 0; --d) {
    const int from = d - 4 - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < 3; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
    flat_a = flat_a && (all.sizes[d] == 1 || all.of[0][d] == count);
    flat_b = flat_b && (all.sizes[d] == 1 || all.of[1][d] == count);
    flat_weight = flat_weight && (all.sizes[d] == 1 || all.of[2][d] == count);
    count *= all.sizes[d];
  }
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  if (weight != nullptr && flat_a && flat_b && flat_weight) return ker_float64_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (weight != nullptr) return ker_float64_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight + offsets[2], all, count);
  if (flat_a && flat_b) return ker_float64_weight_flat<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
  if (true) return ker_float64_weight_strided<<<blocks, 256, 0, stream>>>(out, a + offsets[0], b + offsets[1], weight_number, all, count);
}
