// What nvcc's generated code calls: registration of device code, and launches.

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "../capability.h"
#include "launch.h"
#include "streams.h"

namespace cudart {
namespace {

using sim::Ask;

struct KernelInfo {
  std::uint32_t bytes = 0;
  std::vector<sim::Parameter> parameters;
  std::uint64_t static_shared = 0, local_bytes = 0;
  std::uint32_t max_threads = 0, registers = 0, dynamic_shared = 0;
};

std::mutex infos_mutex;
std::map<const void*, KernelInfo>& infos() {
  static auto* all = new std::map<const void*, KernelInfo>;  // used until the very end of the process
  return *all;
}

Error fetch(const char* call, const void* function, KernelInfo& info) {
  Question question(Ask::kernel_info, call);
  question.put(reinterpret_cast<std::uint64_t>(function));
  const auto answer = ask(question);
  if (answer.code != sim::success) return answer.code;
  auto reader = answer.reader();
  info.bytes = reader.take<std::uint32_t>();
  info.parameters.resize(reader.take<std::uint32_t>());
  for (auto& parameter : info.parameters) {
    parameter.offset = reader.take<std::uint32_t>();
    parameter.size = reader.take<std::uint32_t>();
  }
  info.static_shared = reader.take<std::uint64_t>();
  info.local_bytes = reader.take<std::uint64_t>();
  info.max_threads = reader.take<std::uint32_t>();
  info.registers = reader.take<std::uint32_t>();
  info.dynamic_shared = reader.take<std::uint32_t>();
  return sim::success;
}

const KernelInfo* known(const char* call, const void* function) {
  const std::lock_guard lock(infos_mutex);
  auto found = infos().find(function);
  if (found == infos().end()) {
    KernelInfo info;
    if (fetch(call, function, info) != sim::success) return nullptr;  // the launch itself meets the same error
    found = infos().emplace(function, std::move(info)).first;
  }
  return &found->second;
}

struct Manner {
  bool cooperative = false, early = false;
};

Question launch_question(Ask what, const char* call, const void* function, Dim3 grid, Dim3 block, void** arguments,
                         std::size_t shared, Stream stream, Manner manner) {
  Question question(what, call);
  question.put(reinterpret_cast<std::uint64_t>(function));
  for (const auto n : {grid.x, grid.y, grid.z, block.x, block.y, block.z}) question.put(n);
  question.put(std::uint64_t{shared}).put(stream_id(stream));
  question.put(std::uint8_t{manner.cooperative}).put(std::uint8_t{manner.early});
  question.bytes(copied(call, function, arguments).bytes);
  return question;
}

Error launch_checked(const char* call, const void* function, Dim3 grid, Dim3 block, void** arguments,
                     std::size_t shared, Stream stream, Manner manner = {}) {
  return run(launch_question(Ask::launch_checked, call, function, grid, block, arguments, shared, stream, manner));
}

Error launch(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared, Stream stream) {
  auto question =
      launch_question(Ask::launch, "cudaLaunchKernel", function, grid, block, arguments, shared, stream, {});
  tell(question);
  expect_launch_error();
  return sim::success;
}

Error launch_configured(const char* call, const LaunchConfig* config, const void* function, void** arguments,
                        bool thread_stream) {
  if (config == nullptr) return remember(sim::invalid_value);
  constexpr int ignored = 0, access_policy = 1, cooperative = 2, cluster = 4, early = 6, priority = 8, carveout = 14;
  Manner manner;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const auto& attribute = config->attributes[i];
    if (attribute.id == cooperative) {
      manner.cooperative = attribute.value != 0;
    } else if (attribute.id == early) {
      manner.early = attribute.value != 0;
    } else if (attribute.id != ignored && attribute.id != access_policy && attribute.id != priority &&
               attribute.id != carveout) {
      const auto which =
          attribute.id == cluster ? "clusters_which_need_sm_90" : "attribute_" + std::to_string(attribute.id);
      return unsupported((call + ("_with_" + which)).c_str());  // no spaces: a name is all that the device believes
    }
  }
  const auto stream = thread_stream ? per_thread(config->stream) : config->stream;
  return launch_checked(call, function, config->grid, config->block, arguments, config->shared, stream, manner);
}

struct Configuration {
  Dim3 grid, block;
  std::size_t shared;
  Stream stream;
};
thread_local std::vector<Configuration> configurations;

struct FatbinWrapper {
  std::uint32_t magic, version;
  const std::byte* data;
  const std::byte* const* linked;  // of a device link (version 2): the code of each object, ended by a null pointer
};

std::span<const std::byte> container(const std::byte* data) {
  std::uint16_t header;
  std::uint64_t size;
  std::memcpy(&header, data + 6, sizeof header);
  std::memcpy(&size, data + 8, sizeof size);
  return {data, header + size};
}

struct Registered {
  std::uint32_t number;
};

Question about_shadow(Ask what, const char* call, void** handle, const void* shadow, const char* name) {
  Question question(what, call);
  question.put(reinterpret_cast<const Registered*>(handle)->number);
  question.put(reinterpret_cast<std::uint64_t>(shadow)).text(name);
  return question;
}

void announce(Question question) { tell(question); }

struct ManagedVariable {
  void** handle;
  void** pointer;
};
std::vector<ManagedVariable>& managed_variables() {
  static auto* all = new std::vector<ManagedVariable>;
  return *all;
}

int blocks_per_multiprocessor(const KernelInfo& info, int threads, std::size_t dynamic_shared) {
  if (threads <= 0 || static_cast<std::uint32_t>(threads) > info.max_threads) return 0;
  return static_cast<int>(sim::limits::resident_blocks(static_cast<std::uint32_t>(threads), info.registers,
                                                       info.static_shared + dynamic_shared));
}

}  // namespace

Arguments copied(const char* call, const void* function, void** arguments) {
  Arguments copy;
  const auto* info = known(call, function);
  if (info == nullptr) return copy;
  copy.bytes.resize(info->bytes);
  for (std::size_t i = 0; i < info->parameters.size(); ++i) {
    const auto& [offset, size] = info->parameters[i];
    std::memcpy(copy.bytes.data() + offset, arguments[i], size);
    copy.offsets.push_back(offset);
  }
  return copy;
}

CUDART_API void** __cudaRegisterFatBinary(const FatbinWrapper* wrapper) {
  static std::uint32_t next = 0;
  auto* registered = new Registered{++next};
  constexpr std::uint32_t device_link = 2;
  std::vector<std::span<const std::byte>> containers{container(wrapper->data)};
  if (wrapper->version == device_link) {
    for (const auto* object = wrapper->linked; object != nullptr && *object != nullptr; ++object)
      containers.push_back(container(*object));
  }
  Question question(Ask::register_fatbin, "__cudaRegisterFatBinary");
  question.put(registered->number).put(static_cast<std::uint32_t>(containers.size()));
  for (const auto& content : containers) question.bytes(content);
  tell(question);
  return reinterpret_cast<void**>(registered);
}
CUDART_API void __cudaRegisterFatBinaryEnd(void**) {}
CUDART_API void __cudaUnregisterFatBinary(void**) {}  // the device forgets it with the process

CUDART_API void __cudaRegisterFunction(void** handle, const void* function, char*, const char* name, int, void*, void*,
                                       void*, void*, int*) {
  announce(about_shadow(Ask::register_kernel, "__cudaRegisterFunction", handle, function, name));
}
CUDART_API void __cudaRegisterVar(void** handle, const void* variable, char*, const char* name, int, std::size_t, int,
                                  int) {
  announce(about_shadow(Ask::register_variable, "__cudaRegisterVar", handle, variable, name));
}
CUDART_API void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name, int, std::size_t, int,
                                         int) {
  announce(about_shadow(Ask::register_variable, "__cudaRegisterManagedVar", handle, static_cast<const void*>(pointer),
                        name));
  managed_variables().push_back({handle, pointer});
}
CUDART_API void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}
// Called before the program first touches a managed variable.
CUDART_API char __cudaInitModule(void** handle) {
  for (const auto& [owner, pointer] : managed_variables()) {
    if (owner != handle) continue;
    Question question(Ask::symbol, "__cudaInitModule");
    question.put(reinterpret_cast<std::uint64_t>(pointer));
    const auto answer = ask(question);
    if (remember(answer.code) != sim::success) continue;
    auto* const address = reinterpret_cast<void*>(answer.reader().take<std::uint64_t>());
    if (on_device(address)) {
      unsupported("__managed__");
    } else {
      map_shared();
      *pointer = address;
    }
  }
  return 1;
}

CUDART_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, Stream stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
CUDART_API Error __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  if (configurations.empty()) return remember(sim::missing_configuration);
  const auto top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<Stream*>(stream) = top.stream;
  return sim::success;
}

// A kernel's handle is the address of its stub on the host.
CUDART_API Error __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return sim::success;
}
CUDART_API Error cudaGetKernel(void** kernel, const void* function) { return __cudaGetKernel(kernel, function); }
CUDART_API Error cudaGetFuncBySymbol(void** kernel, const void* function) { return __cudaGetKernel(kernel, function); }

// Behind <<<>>>, which looks at no result: the error waits for cudaGetLastError, as it would behind a launch that is
// still on its way to a GPU.
CUDART_API Error __cudaLaunchKernel(void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                                    Stream stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}
CUDART_API Error __cudaLaunchKernel_ptsz(void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                                         Stream stream) {
  return launch(kernel, grid, block, arguments, shared, per_thread(stream));
}
CUDART_API Error cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                                  Stream stream) {
  return launch_checked(__func__, kernel, grid, block, arguments, shared, stream);
}
CUDART_API Error cudaLaunchKernel_ptsz(const void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared,
                                       Stream stream) {
  return launch_checked("cudaLaunchKernel", kernel, grid, block, arguments, shared, per_thread(stream));
}
CUDART_API Error cudaLaunchCooperativeKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                             std::size_t shared, Stream stream) {
  return launch_checked(__func__, kernel, grid, block, arguments, shared, stream, {.cooperative = true});
}
CUDART_API Error cudaLaunchCooperativeKernel_ptsz(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                                  std::size_t shared, Stream stream) {
  return launch_checked("cudaLaunchCooperativeKernel", kernel, grid, block, arguments, shared, per_thread(stream),
                        {.cooperative = true});
}
CUDART_API Error cudaLaunchKernelExC(const LaunchConfig* config, const void* kernel, void** arguments) {
  return launch_configured(__func__, config, kernel, arguments, false);
}
CUDART_API Error cudaLaunchKernelExC_ptsz(const LaunchConfig* config, const void* kernel, void** arguments) {
  return launch_configured("cudaLaunchKernelExC", config, kernel, arguments, true);
}

CUDART_API Error cudaFuncGetAttributes(FunctionAttributes* attributes, const void* function) {
  KernelInfo info;
  const auto code = fetch(__func__, function, info);
  if (code != sim::success) return remember(code);
  *attributes = {};
  attributes->shared_bytes = info.static_shared;
  attributes->local_bytes = info.local_bytes;
  attributes->max_threads = static_cast<int>(info.max_threads);
  attributes->registers = static_cast<int>(info.registers);
  attributes->ptx_version = attributes->binary_version = sim::limits::major * 10 + sim::limits::minor;
  attributes->max_dynamic_shared = static_cast<int>(info.dynamic_shared);
  attributes->carveout = -1;
  return sim::success;
}
CUDART_API Error cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset, std::size_t* size) {
  KernelInfo info;
  const auto code = fetch(__func__, function, info);
  if (code != sim::success) return remember(code);
  if (offset == nullptr || index >= info.parameters.size()) return remember(sim::invalid_value);
  *offset = info.parameters[index].offset;
  if (size != nullptr) *size = info.parameters[index].size;
  return sim::success;
}
CUDART_API Error cudaFuncSetAttribute(const void* function, int attribute, int value) {
  if (value < 0 && attribute == 8) return remember(sim::invalid_value);
  Question question(Ask::kernel_attribute, __func__);
  question.put(reinterpret_cast<std::uint64_t>(function)).put(static_cast<std::uint32_t>(attribute));
  question.put(static_cast<std::uint32_t>(value));
  return run(std::move(question));
}
CUDART_API Error cudaFuncSetCacheConfig(const void*, int) { return sim::success; }
CUDART_API Error cudaFuncSetSharedMemConfig(const void*, int) { return sim::success; }

CUDART_API Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                        std::size_t shared, unsigned) {
  KernelInfo info;
  const auto code = fetch("cudaOccupancyMaxActiveBlocksPerMultiprocessor", function, info);
  if (code == sim::success) *blocks = blocks_per_multiprocessor(info, threads, shared);
  return remember(code);
}
CUDART_API Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                               std::size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}
CUDART_API Error cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function, int blocks, int) {
  KernelInfo info;
  const auto code = fetch(__func__, function, info);
  if (code == sim::success) {
    const auto each = sim::limits::shared_per_sm / static_cast<unsigned>(blocks < 1 ? 1 : blocks);
    const auto taken = info.static_shared + sim::limits::shared_of_system;
    *bytes = std::min<std::size_t>(each > taken ? each - taken : 0, info.dynamic_shared);
  }
  return remember(code);
}

CUDART_API Error cudaGetSymbolAddress(void** address, const void* variable) {
  Question question(Ask::symbol, __func__);
  question.put(reinterpret_cast<std::uint64_t>(variable));
  return run<std::uint64_t>(std::move(question), address);
}
CUDART_API Error cudaGetSymbolSize(std::size_t* bytes, const void* variable) {
  Question question(Ask::symbol, __func__);
  question.put(reinterpret_cast<std::uint64_t>(variable));
  const auto answer = ask(question);
  if (answer.code == sim::success) {
    auto reader = answer.reader();
    reader.take<std::uint64_t>();
    *bytes = reader.take<std::uint64_t>();
  }
  return remember(answer.code);
}

}  // namespace cudart
