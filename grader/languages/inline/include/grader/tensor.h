// PyTorch's tensor in C++, whose owner is the tensor of Python: what is more than looking at it is asked of PyTorch.
#pragma once

#include <cassert>

#include "grader/bridge.h"
#include "grader/types.h"

namespace at {

using namespace c10;  // NOLINT (as PyTorch has it)

struct TensorOptions {
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions dtype(ScalarType dtype) const {
    auto changed = *this;
    changed.dtype_ = dtype;
    return changed;
  }
  TensorOptions device(Device device) const {
    auto changed = *this;
    changed.device_ = device;
    return changed;
  }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const { return device(Device(type, index)); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  ScalarType dtype() const { return dtype_.value_or(kFloat); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
};

// A number of any type.
class Scalar {
 public:
  template <class Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  Scalar(Number number)
      : kind_(std::is_same_v<Number, bool>       ? grader::boolean
              : std::is_floating_point_v<Number> ? grader::real
                                                 : grader::integer),
        integer_(static_cast<std::int64_t>(number)),
        real_(static_cast<double>(number)) {}
  template <class Number>
  Number to() const {
    return kind_ == grader::real ? static_cast<Number>(real_) : static_cast<Number>(integer_);
  }
  grader::Value value() const { return {kind_, integer_, real_, nullptr}; }

 private:
  grader::Kind kind_;
  std::int64_t integer_;
  double real_;
};

template <class Type>
struct DefaultPtrTraits {
  using PtrType = Type*;
};
template <class Type>
struct RestrictPtrTraits {
  using PtrType = Type* __restrict__;
};

// Elements of a tensor by their indices, in a kernel.
template <class Type, std::size_t dimensions, template <class> class Traits, class Index>
class Accessor {
 public:
  using PtrType = typename Traits<Type>::PtrType;
  C10_HOST_DEVICE Accessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    if constexpr (dimensions == 1) {
      return static_cast<Type&>(data_[strides_[0] * i]);
    } else {
      return Accessor<Type, dimensions - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
  }
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

template <class Type, std::size_t dimensions, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<Type>::PtrType;
  GenericPackedTensorAccessor(PtrType data, const std::int64_t* sizes, const std::int64_t* strides) : data_(data) {
    for (std::size_t i = 0; i < dimensions; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    return Accessor<Type, dimensions, Traits, Index>(data_, sizes_, strides_)[i];
  }
  C10_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  C10_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  Index sizes_[dimensions];
  Index strides_[dimensions];
};
template <class Type, std::size_t dimensions, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<Type, dimensions, Traits, std::int32_t>;
template <class Type, std::size_t dimensions, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<Type, dimensions, Traits, std::int64_t>;
template <class Type, std::size_t dimensions>
using TensorAccessor = Accessor<Type, dimensions, DefaultPtrTraits, std::int64_t>;

// What `Tensor::type` gave before there were types of elements.
struct Type {
  ScalarType scalar_type;
  bool on_device;
  bool is_cuda() const { return on_device; }
  ScalarType scalarType() const { return scalar_type; }
  operator ScalarType() const { return scalar_type; }
};

class Tensor;
using TensorList = ArrayRef<Tensor>;
template <class Result = Tensor, class... Arguments>
Result called(const char* name, const Arguments&... arguments);

class Tensor {
 public:
  Tensor() = default;
  // A tensor that Python calls `name`, whose share of it this owns.
  explicit Tensor(std::int64_t name) : state_(std::make_shared<State>(name)) {}

  std::int64_t name() const { return state_ ? state_->name : 0; }
  bool defined() const { return state_ != nullptr; }
  void reset() { state_.reset(); }
  bool is_same(const Tensor& other) const { return state_ == other.state_; }

  // --- what it looks like
  std::int64_t dim() const { return state().layout.dimensions; }
  std::int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return {state().layout.sizes, static_cast<std::size_t>(dim())}; }
  IntArrayRef strides() const { return {state().layout.strides, static_cast<std::size_t>(dim())}; }
  std::int64_t size(std::int64_t dimension) const { return sizes()[counted(dimension)]; }
  std::int64_t stride(std::int64_t dimension) const { return strides()[counted(dimension)]; }
  std::int64_t storage_offset() const { return state().layout.offset; }
  std::int64_t numel() const {
    std::int64_t count = 1;
    for (const auto size : sizes()) count *= size;
    return count;
  }
  ScalarType scalar_type() const { return static_cast<ScalarType>(state().layout.dtype); }
  ScalarType dtype() const { return scalar_type(); }
  Type type() const { return {scalar_type(), is_cuda()}; }
  Device device() const { return state().layout.on_device != 0 ? Device(kCUDA, 0) : Device(kCPU); }
  std::int64_t get_device() const { return is_cuda() ? 0 : -1; }
  bool is_cuda() const { return state().layout.on_device != 0; }
  bool is_cpu() const { return !is_cuda(); }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  Layout layout() const { return kStrided; }
  std::int64_t element_size() const { return static_cast<std::int64_t>(elementSize(scalar_type())); }
  std::int64_t itemsize() const { return element_size(); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel() * element_size()); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  bool requires_grad() const { return false; }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    std::int64_t expected = 1;
    for (auto i = dim() - 1; i >= 0; --i) {
      if (size(i) != 1 && stride(i) != expected) return numel() == 0;
      expected *= size(i);
    }
    return true;
  }

  // --- where its elements are
  void* data_ptr() const { return state().layout.data; }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class Type>
  Type* data_ptr() const {
    const auto wanted = scalar_type_of<std::remove_const_t<Type>>();
    TORCH_CHECK(wanted == scalar_type(), "expected scalar type ", wanted, " but found ", scalar_type());
    return static_cast<Type*>(data_ptr());
  }
  template <class Type>
  const Type* const_data_ptr() const {
    return data_ptr<Type>();
  }
  template <class Type>
  Type* mutable_data_ptr() const {
    return data_ptr<Type>();
  }
  template <class Type>
  Type* data() const {
    return data_ptr<Type>();
  }
  template <class Type, std::size_t dimensions, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<Type, dimensions, Traits> packed_accessor32() const {
    return packed<Type, dimensions, Traits, std::int32_t>();
  }
  template <class Type, std::size_t dimensions, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<Type, dimensions, Traits> packed_accessor64() const {
    return packed<Type, dimensions, Traits, std::int64_t>();
  }
  template <class Type, std::size_t dimensions, template <class> class Traits = DefaultPtrTraits,
            class Index = std::int64_t>
  GenericPackedTensorAccessor<Type, dimensions, Traits, Index> packed_accessor() const {
    return packed<Type, dimensions, Traits, Index>();
  }
  template <class Type, std::size_t dimensions>
  TensorAccessor<Type, dimensions> accessor() const {
    checked(dimensions);
    return {data_ptr<Type>(), state().layout.sizes, state().layout.strides};
  }

  // --- what is asked of PyTorch
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    return is_contiguous() ? *this : called("contiguous", *this);
  }
  Tensor clone() const { return called("clone", *this); }
  Tensor detach() const { return *this; }
  Tensor view(IntArrayRef sizes) const { return called("view", *this, sizes); }
  Tensor view(ScalarType dtype) const { return called("view_as_type", *this, dtype); }
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape(IntArrayRef sizes) const { return called("reshape", *this, sizes); }
  Tensor flatten(std::int64_t first = 0, std::int64_t last = -1) const { return called("flatten", *this, first, last); }
  Tensor transpose(std::int64_t a, std::int64_t b) const { return called("transpose", *this, a, b); }
  Tensor permute(IntArrayRef order) const { return called("permute", *this, order); }
  Tensor t() const { return called("t", *this); }
  Tensor squeeze() const { return called("squeeze", *this); }
  Tensor squeeze(std::int64_t dimension) const { return called("squeeze", *this, dimension); }
  Tensor unsqueeze(std::int64_t dimension) const { return called("unsqueeze", *this, dimension); }
  Tensor expand(IntArrayRef sizes) const { return called("expand", *this, sizes); }
  Tensor select(std::int64_t dimension, std::int64_t index) const { return called("select", *this, dimension, index); }
  Tensor narrow(std::int64_t dimension, std::int64_t first, std::int64_t length) const {
    return called("narrow", *this, dimension, first, length);
  }
  Tensor slice(std::int64_t dimension = 0, std::optional<std::int64_t> first = {},
               std::optional<std::int64_t> last = {}, std::int64_t step = 1) const {
    return called("slice", *this, dimension, first.value_or(0), last.value_or(size(dimension)), step);
  }
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  Tensor to(ScalarType dtype) const { return dtype == scalar_type() ? *this : called("to", *this, dtype); }
  Tensor to(Device device) const { return device == this->device() ? *this : called("to", *this, device); }
  Tensor to(const TensorOptions& options) const { return called("to", *this, options); }
  Tensor cuda() const { return to(Device(kCUDA)); }
  Tensor cpu() const { return to(Device(kCPU)); }
  const Tensor& zero_() const { return told("zero_", *this); }
  const Tensor& fill_(const Scalar& value) const { return told("fill_", *this, value); }
  const Tensor& copy_(const Tensor& source, bool = false) const { return told("copy_", *this, source); }
  const Tensor& add_(const Tensor& other) const { return told("add_", *this, other); }
  const Tensor& mul_(const Scalar& factor) const { return told("mul_", *this, factor); }
  template <class Number>
  Number item() const {
    return called<Scalar>("item", *this).template to<Number>();
  }
  Tensor sum() const { return called("sum", *this); }
  Tensor sum(IntArrayRef dimensions, bool keep = false) const { return called("sum", *this, dimensions, keep); }
  Tensor mean() const { return called("mean", *this); }
  Tensor max() const { return called("max", *this); }
  Tensor min() const { return called("min", *this); }
  Tensor exp() const { return called("exp", *this); }
  Tensor sqrt() const { return called("sqrt", *this); }
  Tensor matmul(const Tensor& other) const { return called("matmul", *this, other); }
  Tensor mm(const Tensor& other) const { return called("mm", *this, other); }
  Tensor add(const Tensor& other) const { return called("add", *this, other); }
  Tensor mul(const Tensor& other) const { return called("mul", *this, other); }
  Tensor cumsum(std::int64_t dimension) const { return called("cumsum", *this, dimension); }
  Tensor new_empty(IntArrayRef sizes) const { return called("empty", sizes, options()); }
  Tensor new_zeros(IntArrayRef sizes) const { return called("zeros", sizes, options()); }

 private:
  struct State {
    explicit State(std::int64_t name) : name(name) {
      if (grader::bridge.look(name, &layout) != 0) throw grader::PythonRaised();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { grader::bridge.release(name); }
    std::int64_t name;
    grader::Layout layout{};
  };
  const State& state() const {
    TORCH_CHECK(defined(), "the tensor is undefined: nothing was assigned to it");
    return *state_;
  }
  std::size_t counted(std::int64_t dimension) const {
    TORCH_CHECK(-dim() <= dimension && dimension < dim(), "Dimension out of range (expected to be in range of [",
                -dim(), ", ", dim() - 1, "], but got ", dimension, ")");
    return static_cast<std::size_t>(dimension < 0 ? dimension + dim() : dimension);
  }
  void checked(std::size_t dimensions) const {
    TORCH_CHECK(static_cast<std::size_t>(dim()) == dimensions, "TensorAccessor expected ", dimensions,
                " dims but tensor has ", dim());
  }
  template <class Type, std::size_t dimensions, template <class> class Traits, class Index>
  GenericPackedTensorAccessor<Type, dimensions, Traits, Index> packed() const {
    checked(dimensions);
    return {data_ptr<Type>(), state().layout.sizes, state().layout.strides};
  }
  template <class... Arguments>
  const Tensor& told(const char* name, const Arguments&... arguments) const {
    called(name, arguments...);
    return *this;
  }
  std::shared_ptr<State> state_;
};

// --- calls of PyTorch

namespace detail {
using Values = std::vector<grader::Value>;
inline void pass(Values& values, const Tensor& tensor) {
  values.push_back({tensor.defined() ? grader::tensor : grader::nothing, tensor.name(), 0, nullptr});
}
inline void pass(Values& values, ScalarType type) {
  values.push_back({grader::dtype, static_cast<std::int64_t>(type), 0, nullptr});
}
inline void pass(Values& values, const Device& device) {
  values.push_back({grader::device, device.is_cuda(), 0, nullptr});
}
inline void pass(Values& values, const TensorOptions& options) {
  if (options.has_dtype()) pass(values, options.dtype());
  if (options.has_device()) pass(values, options.device());
}
inline void pass(Values& values, const Scalar& number) { values.push_back(number.value()); }
inline void pass(Values& values, bool number) { pass(values, Scalar(number)); }
inline void pass(Values& values, std::int64_t number) { pass(values, Scalar(number)); }
inline void pass(Values& values, double number) { pass(values, Scalar(number)); }
inline void pass(Values& values, IntArrayRef numbers) {
  values.push_back({grader::integers, static_cast<std::int64_t>(numbers.size()), 0, numbers.data()});
}
struct Names {
  explicit Names(TensorList tensors) {
    for (const auto& tensor : tensors) names.push_back(tensor.name());
  }
  std::vector<std::int64_t> names;
};
inline void pass(Values& values, const Names& tensors) {
  values.push_back({grader::tensors, static_cast<std::int64_t>(tensors.names.size()), 0, tensors.names.data()});
}
}  // namespace detail

// What Python gives for the operator `name`: a type and a device among the arguments are named there.
template <class Result, class... Arguments>
Result called(const char* name, const Arguments&... arguments) {
  detail::Values values;
  (detail::pass(values, arguments), ...);
  grader::Value result{};
  if (grader::bridge.call(name, values.data(), static_cast<std::int64_t>(values.size()), &result) != 0) {
    throw grader::PythonRaised();
  }
  if constexpr (std::is_same_v<Result, Scalar>) {
    return result.kind == grader::real ? Scalar(result.real) : Scalar(result.integer);
  } else {
    return result.kind == grader::tensor ? Tensor(result.integer) : Tensor();
  }
}

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}) { return called("empty", sizes, options); }
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) { return called("zeros", sizes, options); }
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) { return called("ones", sizes, options); }
inline Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {}) {
  return called("full", sizes, value, options);
}
inline Tensor empty_like(const Tensor& other, const TensorOptions& options = {}) {
  return called("empty_like", other, options);
}
inline Tensor zeros_like(const Tensor& other, const TensorOptions& options = {}) {
  return called("zeros_like", other, options);
}
inline Tensor ones_like(const Tensor& other, const TensorOptions& options = {}) {
  return called("ones_like", other, options);
}
inline Tensor full_like(const Tensor& other, const Scalar& value, const TensorOptions& options = {}) {
  return called("full_like", other, value, options);
}
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  return called("empty_strided", sizes, strides, options);
}
inline Tensor arange(const Scalar& end, const TensorOptions& options = {}) { return called("arange", end, options); }
inline Tensor cat(TensorList tensors, std::int64_t dimension = 0) {
  return called("cat", detail::Names(tensors), dimension);
}
inline Tensor stack(TensorList tensors, std::int64_t dimension = 0) {
  return called("stack", detail::Names(tensors), dimension);
}
inline Tensor matmul(const Tensor& a, const Tensor& b) { return a.matmul(b); }
inline Tensor mm(const Tensor& a, const Tensor& b) { return a.mm(b); }
inline Tensor sum(const Tensor& tensor) { return tensor.sum(); }
inline Tensor exp(const Tensor& tensor) { return tensor.exp(); }
inline Tensor relu(const Tensor& tensor) { return called("relu", tensor); }
#define GRADER_OPERATOR(sign, name)                                                            \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) { return called(name, a, b); } \
  inline Tensor operator sign(const Tensor& a, const Scalar& b) { return called(name, a, b); }
GRADER_OPERATOR(+, "add")
GRADER_OPERATOR(-, "sub")
GRADER_OPERATOR(*, "mul")
GRADER_OPERATOR(/, "div")
#undef GRADER_OPERATOR

inline TensorOptions dtype(ScalarType dtype) { return dtype; }
inline TensorOptions device(Device device) { return device; }
inline TensorOptions device(DeviceType type) { return type; }
inline std::optional<Device> device_of(const Tensor& tensor) { return tensor.device(); }
template <class Number>
constexpr Number ceil_div(Number a, Number b) {
  return (a + b - 1) / b;
}

// Wider than its elements, where many are added.
template <class Type, bool on_device>
struct AccumulateType {
  using type = std::conditional_t<std::is_integral_v<Type>, std::int64_t,
                                  std::conditional_t<std::is_same_v<Type, double>, double, float>>;
};
template <class Type, bool on_device>
using acc_type = typename AccumulateType<Type, on_device>::type;
template <class Type>
using opmath_type = std::conditional_t<sizeof(Type) == 2 && !std::is_integral_v<Type>, float, Type>;

}  // namespace at

namespace torch {
using namespace at;  // NOLINT (as PyTorch has it)
}  // namespace torch

#include "grader/dispatch.h"
#include "grader/streams.h"
