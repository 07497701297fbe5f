// The types that PyTorch's C++ has beside its tensors: elements, devices, lists, errors.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(__CUDACC__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#define C10_RESTRICT __restrict__
#define C10_UNUSED [[maybe_unused]]
#define C10_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define C10_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)

namespace c10 {

// --- errors

class Error : public std::runtime_error {
 public:
  Error(const std::string& message, const char* file, int line)
      : std::runtime_error(message), file_(file), line_(line) {}
  const char* file() const { return file_; }
  int line() const { return line_; }

 private:
  const char* file_;
  int line_;
};

namespace detail {
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}
template <class... Parts>
std::string message_of(const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(parts) == 0) {
    return joined("Expected ", condition, " to be true, but got false.");
  } else {
    return joined(parts...);
  }
}
}  // namespace detail

// --- elements

// Sixteen bits that count as a number; on the host they do so, too.
template <class Native>
struct alignas(2) Narrow {
  unsigned short x;

  Narrow() = default;
  C10_HOST_DEVICE Narrow(float value) : Narrow(from(value)) {}
  C10_HOST_DEVICE Narrow(Native value) { __builtin_memcpy(&x, &value, sizeof x); }
  C10_HOST_DEVICE operator float() const { return to(native()); }
  C10_HOST_DEVICE operator Native() const { return native(); }

  C10_HOST_DEVICE Narrow& operator+=(Narrow other) { return *this = float(*this) + float(other); }
  C10_HOST_DEVICE Narrow& operator-=(Narrow other) { return *this = float(*this) - float(other); }
  C10_HOST_DEVICE Narrow& operator*=(Narrow other) { return *this = float(*this) * float(other); }
  C10_HOST_DEVICE Narrow& operator/=(Narrow other) { return *this = float(*this) / float(other); }

 private:
  C10_HOST_DEVICE Native native() const {
    Native value;
    __builtin_memcpy(&value, &x, sizeof x);
    return value;
  }
  C10_HOST_DEVICE static Native from(float value) {
    if constexpr (std::is_same_v<Native, __half>) {
      return __float2half_rn(value);
    } else {
      return __float2bfloat16_rn(value);
    }
  }
  C10_HOST_DEVICE static float to(Native value) {
    if constexpr (std::is_same_v<Native, __half>) {
      return __half2float(value);
    } else {
      return __bfloat162float(value);
    }
  }
};
using Half = Narrow<__half>;
using BFloat16 = Narrow<__nv_bfloat16>;

#define GRADER_ARITHMETIC(type, sign)                                                               \
  C10_HOST_DEVICE inline type operator sign(type a, type b) { return float(a) sign float(b); }      \
  C10_HOST_DEVICE inline float operator sign(type a, float b) { return float(a) sign b; }           \
  C10_HOST_DEVICE inline float operator sign(float a, type b) { return a sign float(b); }           \
  C10_HOST_DEVICE inline double operator sign(type a, double b) { return double(float(a)) sign b; } \
  C10_HOST_DEVICE inline double operator sign(double a, type b) { return a sign double(float(b)); } \
  C10_HOST_DEVICE inline type operator sign(type a, int b) { return float(a) sign float(b); }       \
  C10_HOST_DEVICE inline type operator sign(int a, type b) { return float(a) sign float(b); }
#define GRADER_NUMBERS(type) \
  GRADER_ARITHMETIC(type, +) \
  GRADER_ARITHMETIC(type, -) \
  GRADER_ARITHMETIC(type, *) \
  GRADER_ARITHMETIC(type, /) \
  C10_HOST_DEVICE inline type operator-(type a) { return -float(a); }
GRADER_NUMBERS(Half)
GRADER_NUMBERS(BFloat16)
#undef GRADER_NUMBERS
#undef GRADER_ARITHMETIC

// Number, type and the last part of its constant's name, as `kFloat`.
#define GRADER_SCALAR_TYPES(row)                                                                                    \
  row(0, std::uint8_t, Byte) row(1, std::int8_t, Char) row(2, std::int16_t, Short) row(3, std::int32_t, Int)        \
      row(4, std::int64_t, Long) row(5, Half, Half) row(6, float, Float) row(7, double, Double) row(11, bool, Bool) \
          row(15, BFloat16, BFloat16)

enum class ScalarType : std::int8_t {
#define GRADER_ROW(number, type, name) name = number,
  GRADER_SCALAR_TYPES(GRADER_ROW)
#undef GRADER_ROW
      Undefined = 127,
};

#define GRADER_ROW(number, type, name) constexpr ScalarType k##name = ScalarType::name;
GRADER_SCALAR_TYPES(GRADER_ROW)
#undef GRADER_ROW
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong;
constexpr ScalarType kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;

template <class Type>
constexpr ScalarType scalar_type_of() {
#define GRADER_ROW(number, type, name) \
  if (std::is_same_v<Type, type>) return k##name;
  GRADER_SCALAR_TYPES(GRADER_ROW)
#undef GRADER_ROW
  if (std::is_same_v<Type, __half>) return kHalf;
  if (std::is_same_v<Type, __nv_bfloat16>) return kBFloat16;
  if (std::is_integral_v<Type> && sizeof(Type) == 8) return kLong;
  return ScalarType::Undefined;
}
template <class Type>
struct CppTypeToScalarType : std::integral_constant<ScalarType, scalar_type_of<Type>()> {};

inline const char* toString(ScalarType type) {
  switch (type) {
#define GRADER_ROW(number, type, name) \
  case k##name: return #name;
    GRADER_SCALAR_TYPES(GRADER_ROW)
#undef GRADER_ROW
    default: return "Undefined";
  }
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }
inline std::size_t elementSize(ScalarType type) {
  switch (type) {
#define GRADER_ROW(number, type, name) \
  case k##name: return sizeof(type);
    GRADER_SCALAR_TYPES(GRADER_ROW)
#undef GRADER_ROW
    default: return 0;
  }
}
inline bool isFloatingType(ScalarType type) {
  return type == kHalf || type == kFloat || type == kDouble || type == kBFloat16;
}
inline bool isIntegralType(ScalarType type, bool with_bool = false) {
  return type == kBool ? with_bool : !isFloatingType(type);
}
inline ScalarType typeMetaToScalarType(ScalarType type) { return type; }

// --- devices

using DeviceIndex = std::int8_t;
enum class DeviceType : std::int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

struct Device {
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const char* name) : Device(std::string(name)) {}
  Device(const std::string& name) : Device(name.rfind("cuda", 0) == 0 ? kCUDA : kCPU) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return type_ == kCUDA ? 0 : index_; }  // there is one of them
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  bool operator==(const Device& other) const { return type_ == other.type_; }
  bool operator!=(const Device& other) const { return !(*this == other); }
  std::string str() const { return is_cuda() ? "cuda:0" : "cpu"; }

 private:
  DeviceType type_;
  DeviceIndex index_;
};
inline std::ostream& operator<<(std::ostream& out, DeviceType type) { return out << (type == kCUDA ? "cuda" : "cpu"); }
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }

enum class Layout : std::int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : std::int8_t { Contiguous, Preserve };

// --- lists

// Elements that live elsewhere.
template <class Type>
class ArrayRef {
 public:
  using value_type = Type;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const Type& element) : data_(&element), size_(1) {}
  constexpr ArrayRef(const Type* data, std::size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<Type>& elements) : data_(elements.data()), size_(elements.size()) {}
  template <std::size_t count>
  constexpr ArrayRef(const std::array<Type, count>& elements) : data_(elements.data()), size_(count) {}
  constexpr ArrayRef(const std::initializer_list<Type>& elements) : data_(elements.begin()), size_(elements.size()) {}
  constexpr const Type* begin() const { return data_; }
  constexpr const Type* end() const { return data_ + size_; }
  constexpr const Type* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const Type& operator[](std::size_t index) const { return data_[index]; }
  const Type& front() const { return data_[0]; }
  const Type& back() const { return data_[size_ - 1]; }
  ArrayRef slice(std::size_t first, std::size_t count) const { return {data_ + first, count}; }
  std::vector<Type> vec() const { return {begin(), end()}; }
  bool equals(ArrayRef other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }
  friend std::ostream& operator<<(std::ostream& out, ArrayRef elements) {
    out << '[';
    for (std::size_t i = 0; i < elements.size(); ++i) out << (i == 0 ? "" : ", ") << elements[i];
    return out << ']';
  }

 private:
  const Type* data_ = nullptr;
  std::size_t size_ = 0;
};
using IntArrayRef = ArrayRef<std::int64_t>;

template <class Type>
using optional = std::optional<Type>;
constexpr auto nullopt = std::nullopt;
template <class Number>
constexpr Number divup(Number a, Number b) {
  return (a + b - 1) / b;
}

}  // namespace c10

#define TORCH_CHECK(condition, ...)                                                                             \
  do {                                                                                                          \
    if (C10_UNLIKELY(!(condition)))                                                                             \
      throw ::c10::Error(::c10::detail::message_of(#condition __VA_OPT__(, ) __VA_ARGS__), __FILE__, __LINE__); \
  } while (false)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), "Check failed: " #a " == " #b)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), "Check failed: " #a " != " #b)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), "Check failed: " #a " < " #b)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), "Check failed: " #a " <= " #b)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), "Check failed: " #a " > " #b)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), "Check failed: " #a " >= " #b)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_WARN(...) (void)(::std::cerr << "Warning: " << ::c10::detail::joined(__VA_ARGS__) << '\n')
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, ::c10::detail::joined(__VA_ARGS__))

#define C10_CUDA_CHECK(call)                                                                    \
  do {                                                                                          \
    const cudaError_t grader_error = (call);                                                    \
    TORCH_CHECK(grader_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(grader_error)); \
  } while (false)
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                   \
  for (index_type i = index_type(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += index_type(blockDim.x) * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
