// A CUDA device for a PyTorch that was built for the CPU alone: tensors on it are in the memory of the simulator.
//
// PyTorch itself knows what a tensor on a device may do: which views it has, how gradients flow, what is refused. What
// it lacks is four parts, which are here: an allocator, a guard that tells which device is current, the hooks that ask
// for generators and pinned memory, and operators. The operators are those of the CPU: each runs on copies of its
// tensors, and what it changes or returns is copied to the device.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

extern "C" {  // the simulator's runtime, which this process has loaded
unsigned cudaMalloc(void**, std::size_t);
unsigned cudaFree(void*);
unsigned cudaMallocHost(void**, std::size_t);
unsigned cudaFreeHost(void*);
unsigned cudaMemcpy2DAsync(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, void*);
unsigned cudaStreamSynchronize(void*);
unsigned cudaDeviceSynchronize();
const char* cudaGetErrorString(unsigned);
unsigned __cudaReadTensor(void*, const void*, std::size_t pitch, std::size_t width, std::size_t height, void* stream,
                          std::uint64_t* unwritten);
void __cudaTensorUnwritten(const void*, std::size_t pitch, std::size_t width, std::size_t height, const char* reader,
                           const char* file, unsigned line);
}

namespace {

using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::IValue;
using c10::Stream;

constexpr int to_device = 1, within_device = 3;  // of cudaMemcpyKind
const Device the_device(DeviceType::CUDA, 0);

void require(unsigned error) { TORCH_CHECK(error == 0, "CUDA error: ", cudaGetErrorString(error)); }

// Where the script is, asked only when something is to be said about it.
struct Position {
  const char* file;
  unsigned line;
};
void (*position_of_script)(Position*) = nullptr;

// PyTorch works on the stream that the thread has chosen last.
thread_local std::uint64_t current_stream = 0;
void* stream() { return reinterpret_cast<void*>(current_stream); }

// --- the device -----------------------------------------------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device) const override { return the_device; }
  Device getDevice() const override { return the_device; }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device device) const override {
    return Stream(Stream::UNSAFE, device, static_cast<c10::StreamId>(current_stream));
  }
  Stream getDefaultStream(Device device) const override { return Stream(Stream::DEFAULT, device); }
  Stream exchangeStream(Stream chosen) const override {
    const auto before = getStream(chosen.device());
    current_stream = static_cast<std::uint64_t>(chosen.id());
    return before;
  }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  // Events of the autograd engine: operators end before they return, so there is nothing to wait for.
  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream& waited) const override {
    require(cudaStreamSynchronize(reinterpret_cast<void*>(waited.id())));
  }
  void synchronizeDevice(const DeviceIndex) const override { require(cudaDeviceSynchronize()); }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};

// Memory of the device that tensors hold; none is given back after `forget_memory`, when the runtime has gone.
class Blocks {
 public:
  void add(void* block) {
    const std::scoped_lock lock(mutex_);
    live_.insert(block);
  }
  void release(void* block) {
    const std::scoped_lock lock(mutex_);
    if (live_.erase(block) != 0) cudaFree(block);
    told_.erase(block);
  }
  void release_all() {
    const std::scoped_lock lock(mutex_);
    for (auto* block : live_) cudaFree(block);
    live_.clear();
  }
  // Whether it is the first time that this is told of the block: to print a tensor reads it five times.
  bool tell(const void* block) {
    const std::scoped_lock lock(mutex_);
    return told_.insert(block).second;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<void*> live_;
  std::unordered_set<const void*> told_;
};
Blocks& blocks() {
  static auto* const all = new Blocks;  // tensors may outlive what is destroyed at exit
  return *all;
}
void release(void* block) { blocks().release(block); }

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = nullptr;
    if (bytes != 0) {
      const auto error = cudaMalloc(&block, bytes);
      TORCH_CHECK_WITH(OutOfMemoryError, error == 0, "CUDA out of memory. Tried to allocate ", bytes,
                       " bytes: ", cudaGetErrorString(error));
      blocks().add(block);
    }
    return {block, block, &release, the_device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    require(cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, within_device, stream()));
  }
};
DeviceAllocator device_allocator;

void release_pinned(void* block) { cudaFreeHost(block); }

std::mutex pinned_mutex;
std::set<const void*>& pinned_blocks() {
  static auto* const all = new std::set<const void*>;
  return *all;
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = nullptr;
    if (bytes != 0) {
      require(cudaMallocHost(&block, bytes));
      const std::scoped_lock lock(pinned_mutex);
      pinned_blocks().insert(block);
    }
    return {block, block, &release_pinned, Device(DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};
PinnedAllocator pinned_allocator;

// Random numbers on the device are those that the CPU draws with the same seed.
struct DeviceGenerator final : c10::GeneratorImpl {
  explicit DeviceGenerator(at::Generator numbers)
      : GeneratorImpl(the_device, c10::DispatchKeySet(c10::DispatchKey::CUDA)), numbers(std::move(numbers)) {}
  void set_current_seed(std::uint64_t seed) override { numbers.set_current_seed(seed); }
  void set_offset(std::uint64_t offset) override { numbers.set_offset(offset); }
  std::uint64_t get_offset() const override { return numbers.get_offset(); }
  std::uint64_t current_seed() const override { return numbers.current_seed(); }
  std::uint64_t seed() override { return numbers.seed(); }
  void set_state(const c10::TensorImpl& state) override { numbers.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return numbers.unsafeGetGeneratorImpl()->get_state();
  }
  DeviceGenerator* clone_impl() const override { return new DeviceGenerator(numbers.clone()); }
  at::Generator numbers;
};

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void deviceSynchronize(DeviceIndex) const override { require(cudaDeviceSynchronize()); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &device_allocator; }
  bool isPinnedPtr(const void* pointer) const override {
    const std::scoped_lock lock(pinned_mutex);
    return pinned_blocks().contains(pointer);
  }
  const at::Generator& getDefaultGenerator(DeviceIndex) const override {
    static const at::Generator numbers = at::make_generator<DeviceGenerator>(at::detail::getDefaultCPUGenerator());
    return numbers;
  }
  at::Generator getNewGenerator(DeviceIndex) const override {
    return at::make_generator<DeviceGenerator>(at::detail::createCPUGenerator());
  }
  Device getDeviceFromPtr(void*) const override { return the_device; }
};

// --- copies ---------------------------------------------------------------------------------------------------------

// The bytes of a tensor: `height` rows of `width` bytes, `pitch` apart, at each of some offsets from its first byte.
struct Layout {
  std::size_t width, height, pitch;
  std::vector<std::int64_t> offsets;
};

Layout layout_of(const Tensor& tensor) {
  struct Dimension {
    std::int64_t size, stride;  // in bytes
  };
  const auto item = static_cast<std::int64_t>(tensor.element_size());
  std::vector<Dimension> dimensions;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) != 1 && tensor.stride(i) != 0) dimensions.push_back({tensor.size(i), tensor.stride(i) * item});
  }
  std::ranges::sort(dimensions, {}, &Dimension::stride);
  Layout layout{static_cast<std::size_t>(item), 1, static_cast<std::size_t>(item), {0}};
  std::size_t next = 0;
  for (; next < dimensions.size() && dimensions[next].stride == static_cast<std::int64_t>(layout.width); ++next) {
    layout.width *= static_cast<std::size_t>(dimensions[next].size);
  }
  layout.pitch = layout.width;
  if (next < dimensions.size() && dimensions[next].stride > static_cast<std::int64_t>(layout.width)) {
    layout.pitch = static_cast<std::size_t>(dimensions[next].stride);
    layout.height = static_cast<std::size_t>(dimensions[next].size);
    ++next;
  }
  for (; next < dimensions.size(); ++next) {
    std::vector<std::int64_t> all;
    for (const auto offset : layout.offsets) {
      for (std::int64_t i = 0; i < dimensions[next].size; ++i) all.push_back(offset + i * dimensions[next].stride);
    }
    layout.offsets = std::move(all);
  }
  return layout;
}

// Bytes from a tensor's first element to the end of its last.
std::size_t span_of(const Tensor& tensor) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<std::size_t>(last + 1) * tensor.element_size();
}

char* first_byte(const Tensor& tensor) {
  auto* const start = static_cast<char*>(tensor.unsafeGetTensorImpl()->storage().mutable_data());
  return start + static_cast<std::size_t>(tensor.storage_offset()) * tensor.element_size();
}

enum class Unwritten { is_told, is_fine };

// Copies a tensor's bytes from the device to `host`, which has the same layout.
void fetch(const Tensor& tensor, char* host, Unwritten unwritten, const char* reader) {
  if (tensor.numel() == 0) return;
  const auto layout = layout_of(tensor);
  std::vector<char> rows(layout.height > 1 ? layout.width * layout.height : 0);
  for (const auto offset : layout.offsets) {
    const auto* const from = first_byte(tensor) + offset;
    auto* const to = rows.empty() ? host + offset : rows.data();
    std::uint64_t missing = 0;
    require(__cudaReadTensor(to, from, layout.pitch, layout.width, layout.height, stream(), &missing));
    for (std::size_t row = 0; !rows.empty() && row < layout.height; ++row) {
      std::memcpy(host + offset + row * layout.pitch, rows.data() + row * layout.width, layout.width);
    }
    if (missing == 0 || unwritten == Unwritten::is_fine || !blocks().tell(tensor.storage().data())) continue;
    Position position{"", 0};
    if (position_of_script != nullptr) position_of_script(&position);
    __cudaTensorUnwritten(from, layout.pitch, layout.width, layout.height, reader, position.file, position.line);
  }
}

void store(const Tensor& tensor, const char* host) {
  if (tensor.numel() == 0) return;
  const auto layout = layout_of(tensor);
  for (const auto offset : layout.offsets) {
    require(cudaMemcpy2DAsync(first_byte(tensor) + offset, layout.pitch, host + offset, layout.pitch, layout.width,
                              layout.height, to_device, stream()));
  }
}

// A tensor of the CPU with the sizes and strides of one on the device, and with memory of its own.
Tensor host_twin(const Tensor& tensor) {
  const auto bytes = tensor.numel() == 0 ? 0 : static_cast<std::int64_t>(span_of(tensor));
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator(), true);
  auto twin = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                       tensor.dtype());
  twin.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.is_conj()) twin.unsafeGetTensorImpl()->_set_conj(true);
  if (tensor.is_neg()) twin.unsafeGetTensorImpl()->_set_neg(true);
  return twin;
}

Tensor empty_on_device(c10::IntArrayRef size, c10::IntArrayRef stride, c10::ScalarType dtype) {
  return at::detail::empty_strided_generic(size, stride, &device_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           dtype);
}

Tensor moved_to_device(const Tensor& host) {
  auto tensor = empty_on_device(host.sizes(), host.strides(), host.scalar_type());
  store(tensor, static_cast<const char*>(host.const_data_ptr()));
  return tensor;
}

// --- operators ------------------------------------------------------------------------------------------------------

// One call of an operator of the CPU on copies of tensors of the device.
class CallOnCopies {
 public:
  CallOnCopies(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op), stack_(stack), name_(op.schema().name().substr(op.schema().name().find(':') + 2)) {
    if (name_ == "_local_scalar_dense") name_ = "item";
  }

  void run() {
    const auto& schema = op_.schema();
    const auto first = stack_.size() - schema.arguments().size();
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* const alias = schema.arguments()[i].alias_info();
      stack_[first + i] = on_host(stack_[first + i], alias != nullptr && alias->isWrite());
    }
    refuse_other_devices();
    op_.callBoxed(stack_);
    for (const auto& copy : copies_) {
      if (copy.written) write_back(copy);
    }
    const auto results = stack_.size() - schema.returns().size();
    for (std::size_t i = results; i < stack_.size(); ++i) stack_[i] = on_device(stack_[i]);
  }

 private:
  struct Copy {
    Tensor original, host;
    bool written;
  };

  IValue on_host(const IValue& value, bool written) {
    if (value.isTensor()) return copy_of(value.toTensor(), written);
    if (value.isTensorList()) {
      c10::List<Tensor> all;
      for (const Tensor& tensor : value.toTensorList()) all.push_back(copy_of(tensor, written));
      return all;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> all;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorList()) {
        all.push_back(tensor ? std::optional(copy_of(*tensor, written)) : std::nullopt);
      }
      return all;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) return Device(DeviceType::CPU);
    if (value.isGenerator() && value.toGenerator().device().is_cuda()) {
      return static_cast<const DeviceGenerator*>(value.toGenerator().unsafeGetGeneratorImpl())->numbers;
    }
    return value;
  }

  Tensor copy_of(const Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) {
      if (tensor.dim() > 0 && !other_) other_ = tensor;
      return tensor;
    }
    for (auto& copy : copies_) {
      if (!copy.original.is_same(tensor)) continue;
      copy.written |= written;
      return copy.host;
    }
    auto host = host_twin(tensor);
    // Operators that change a tensor seldom look at what it was.
    const auto unwritten = written ? Unwritten::is_fine : Unwritten::is_told;
    fetch(tensor, static_cast<char*>(host.unsafeGetTensorImpl()->storage().mutable_data()), unwritten, name_.c_str());
    copies_.push_back({tensor, host, written});
    return host;
  }

  void refuse_other_devices() const {
    static const std::set<std::string> mixing{"index", "index_put_", "_index_put_impl_", "_unsafe_index",
                                              "_unsafe_index_put"};
    if (!other_ || mixing.contains(name_)) return;
    if (name_ == "equal") {
      TORCH_WARN_ONCE("torch.equal compares a tensor on the device with one of the host, which a GPU refuses");
      return;
    }
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and ",
                other_->device(), "!");
  }

  static void write_back(const Copy& copy) {
    auto original = copy.original;
    if (original.sizes() != copy.host.sizes() || original.strides() != copy.host.strides()) {  // out= of another size
      const auto fresh = empty_on_device(copy.host.sizes(), copy.host.strides(), copy.host.scalar_type());
      original.unsafeGetTensorImpl()->set_storage_keep_dtype(fresh.storage());
      original.unsafeGetTensorImpl()->set_sizes_and_strides(fresh.sizes(), fresh.strides(), 0);
    }
    store(original, static_cast<const char*>(copy.host.const_data_ptr()));
  }

  IValue on_device(const IValue& value) const {
    if (value.isTensor()) return original_of(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<Tensor> all;
    for (const Tensor& tensor : value.toTensorList()) all.push_back(original_of(tensor));
    return all;
  }

  Tensor original_of(const Tensor& result) const {
    if (!result.defined() || copies_.empty()) return result;
    for (const auto& copy : copies_) {
      if (result.is_same(copy.host)) return copy.original;
    }
    for (const auto& copy : copies_) {
      if (result.numel() != 0 && result.storage().is_alias_of(copy.host.storage())) return view(copy.original, result);
    }
    return moved_to_device(result);
  }

  // What a view of the copy is of the original.
  static Tensor view(const Tensor& original, const Tensor& of_copy) {
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(original.storage()),
                                                           original.key_set(), of_copy.dtype());
    const auto front = original.storage_offset() * static_cast<std::int64_t>(original.element_size());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
        of_copy.sizes(), of_copy.strides(),
        front / static_cast<std::int64_t>(of_copy.element_size()) + of_copy.storage_offset());
    return tensor;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::string name_;  // as people call the operator
  std::vector<Copy> copies_;
  std::optional<Tensor> other_;  // that is not on the device, and more than a number
};

void on_copies(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  CallOnCopies(op, *stack).run();
}

Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
             std::optional<Device>, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(size, &device_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                     std::optional<c10::Layout>, std::optional<Device>, std::optional<bool>) {
  return empty_on_device(size, stride, c10::dtype_or_default(dtype));
}

bool alike(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.scalar_type() == b.scalar_type() &&
         a.is_non_overlapping_and_dense() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

Tensor& copy_(Tensor& to, const Tensor& from, bool) {
  if (to.is_same(from) || to.numel() == 0) return to;
  if (to.is_cuda() && from.is_cuda() && alike(to, from)) {  // with what nobody has written in it
    device_allocator.copy_data(first_byte(to), first_byte(from), to.nbytes());
    return to;
  }
  auto source = from;
  if (from.is_cuda()) {
    source = host_twin(from);
    fetch(from, static_cast<char*>(source.unsafeGetTensorImpl()->storage().mutable_data()), Unwritten::is_told,
          to.is_cuda() ? "copy_" : "cpu");
  }
  if (!to.is_cuda()) return to.copy_(source);
  const auto twin = host_twin(to);
  twin.copy_(source);
  store(to, static_cast<const char*>(twin.const_data_ptr()));
  return to;
}

const Tensor& resize_(const Tensor& tensor, c10::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
  auto* const impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const auto needed = at::detail::computeStorageNbytesContiguous(size, tensor.element_size(),
                                                                 static_cast<std::size_t>(tensor.storage_offset()));
  if (needed > impl->storage().nbytes()) {
    auto block = device_allocator.allocate(needed);
    if (impl->storage().nbytes() != 0) {
      device_allocator.copy_data(block.get(), impl->storage().data(), impl->storage().nbytes());
    }
    impl->storage().set_data_ptr_noswap(std::move(block));
    impl->storage().set_nbytes(needed);
  }
  if (format) impl->empty_tensor_restride(*format);
  return tensor;
}

Tensor& set_storage(Tensor& tensor, c10::Storage source, std::int64_t offset, c10::IntArrayRef size,
                    c10::IntArrayRef stride) {
  auto* const impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  if (stride.data() == nullptr) {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(offset);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  return tensor;
}

Tensor& set_whole_storage(Tensor& tensor, c10::Storage source) {
  const auto size = static_cast<std::int64_t>(source.nbytes() / tensor.element_size());
  return set_storage(tensor, std::move(source), 0, {size}, {});
}

Tensor& set_tensor(Tensor& tensor, const Tensor& source) {
  return set_storage(tensor, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

void record_stream(Tensor&, Stream) {}

}  // namespace

C10_REGISTER_GUARD_IMPL(CUDA, Guard);
// PyTorch keeps the hooks that it finds at its first look, so this library has to be loaded before ``import torch``.
const bool hooks_are_registered [[maybe_unused]] =
    (at::CUDAHooksRegistry()->Register(
         "CUDAHooks", [](at::CUDAHooksArgs) { return std::unique_ptr<at::CUDAHooksInterface>(new Hooks); }),
     true);
REGISTER_ALLOCATOR(DeviceType::CUDA, &device_allocator);

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_copies>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("unfold", at::native::unfold);
  library.impl("resize_", resize_);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("copy_", copy_);
  library.impl("record_stream", record_stream);
  // These would choose an operator of their own for a CUDA device.
  for (const char* name : {"convolution", "convolution_backward"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&on_copies>());
  }
}

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void grader_ask_position(void (*position)(Position*)) { position_of_script = position; }
EXPORT void grader_set_stream(std::uint64_t chosen) { current_stream = chosen; }
EXPORT std::uint64_t grader_stream() { return current_stream; }
EXPORT void grader_release_memory() { blocks().release_all(); }
