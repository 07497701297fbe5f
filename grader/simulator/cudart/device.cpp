// The device as programs ask for it, versions, limits, and errors.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "../capability.h"
#include "abi.h"
#include "connection.h"
#include "coverage.h"

namespace cudart {
namespace {

namespace limits = sim::limits;

struct Attribute {
  int id, value;
};

// Those of cudaDeviceAttr that say something; all others are 0.
constexpr Attribute attributes[] = {
    {1, limits::block_threads},
    {2, limits::block[0]},
    {3, limits::block[1]},
    {4, limits::block[2]},
    {5, limits::grid[0]},
    {6, limits::grid[1]},
    {7, limits::grid[2]},
    {8, limits::shared_bytes},
    {9, 65536},
    {10, limits::warp},
    {11, 0x7FFF'FFFF},
    {12, limits::registers},
    {13, limits::clock_khz},
    {14, 512},
    {15, 1},
    {16, limits::multiprocessors},
    {19, 1},
    {31, 1},
    {32, 1},
    {33, limits::pci_bus},
    {36, limits::memory_clock_khz},
    {37, limits::memory_bus_bits},
    {38, limits::l2_bytes},
    {39, limits::threads_per_sm},
    {40, limits::copy_engines},
    {41, 1},
    {45, 32},
    {75, limits::major},
    {76, limits::minor},
    {78, 1},
    {79, 1},
    {80, 1},
    {81, limits::shared_per_sm},
    {82, limits::registers},
    {83, 1},
    {87, 2},
    {90, 1},
    {89, 1},
    {95, 1},
    {97, limits::shared_optin_bytes},
    {99, 1},
    {106, limits::blocks_per_sm},
    {108, limits::persisting_l2_bytes},
    {109, limits::access_window_bytes},
    {111, limits::shared_of_system},
    {115, 1},
};

// cudaLimit: stack, printf buffer, malloc heap, nesting depth, pending launches, L2 fetch granularity, persisting L2.
constexpr int malloc_heap = 2;
std::array<std::size_t, 7> device_limits = {1024, 1 << 20, sim::default_heap, 2, 2048, 64, 0};

Error only_device(int device) { return remember(device == 0 ? sim::success : sim::invalid_device); }

}  // namespace

CUDART_API Error cudaGetDeviceCount(int* count) {
  *count = 1;
  return sim::success;
}
CUDART_API Error cudaGetDevice(int* device) {
  *device = 0;
  return sim::success;
}
CUDART_API Error cudaSetDevice(int device) { return only_device(device); }
CUDART_API Error cudaInitDevice(int device, unsigned, unsigned) { return only_device(device); }
CUDART_API Error cudaSetValidDevices(int*, int) { return sim::success; }
CUDART_API Error cudaChooseDevice(int* device, const DeviceProperties*) { return cudaGetDevice(device); }
CUDART_API Error cudaSetDeviceFlags(unsigned) { return sim::success; }
CUDART_API Error cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return sim::success;
}
CUDART_API Error cudaDeviceGetAttribute(int* value, int attribute, int device) {
  const auto* found = std::ranges::find(attributes, attribute, &Attribute::id);
  *value = found != std::end(attributes) ? found->value : 0;
  return only_device(device);
}
CUDART_API Error cudaGetDeviceProperties(DeviceProperties* properties, int device) {
  auto& p = *properties = {};
  std::ranges::copy(limits::name, p.name);
  p.total_global = limits::global_bytes;
  p.shared_per_block = limits::shared_bytes;
  p.registers_per_block = p.registers_per_multiprocessor = limits::registers;
  p.warp_size = limits::warp;
  p.pitch = 0x7FFF'FFFF;
  p.max_threads_per_block = limits::block_threads;
  std::ranges::copy(limits::block, p.max_block);
  std::ranges::copy(limits::grid, p.max_grid);
  p.total_constant = 65536;
  p.major = limits::major;
  p.minor = limits::minor;
  p.texture_alignment = 512;
  p.texture_pitch_alignment = 32;
  p.multiprocessors = limits::multiprocessors;
  p.can_map_host = p.concurrent_kernels = p.ecc = p.unified_addressing = p.preemption = 1;
  p.pci_bus = limits::pci_bus;
  p.async_engines = limits::copy_engines;
  p.bus_width = limits::memory_bus_bits;
  p.l2_bytes = limits::l2_bytes;
  p.access_window = limits::access_window_bytes;
  p.persisting_l2_bytes = limits::persisting_l2_bytes;
  p.threads_per_multiprocessor = limits::threads_per_sm;
  p.stream_priorities = p.global_l1 = p.local_l1 = 1;
  p.shared_per_multiprocessor = limits::shared_per_sm;
  p.managed_memory = p.concurrent_managed = p.cooperative_launch = p.host_register = p.memory_pools = 1;
  p.shared_per_block_optin = limits::shared_optin_bytes;
  p.blocks_per_multiprocessor = limits::blocks_per_sm;
  p.reserved_shared = limits::shared_of_system;
  return only_device(device);
}
CUDART_API Error cudaDeviceSynchronize() {
  tell_coverage();
  return run(Question(sim::Ask::device_synchronize, __func__));
}
CUDART_API Error cudaDeviceReset() { return run(Question(sim::Ask::reset, __func__)); }
CUDART_API Error cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(std::max(length, 0)), "0000:%02x:00.0", limits::pci_bus);
  return only_device(device);
}
CUDART_API Error cudaDeviceGetByPCIBusId(int* device, const char*) { return cudaGetDevice(device); }
CUDART_API Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = 0;
  return sim::success;
}
CUDART_API Error cudaDeviceSetLimit(int limit, std::size_t value) {
  if (limit < 0 || limit >= static_cast<int>(device_limits.size())) return remember(sim::unsupported_limit);
  device_limits[static_cast<std::size_t>(limit)] = value;
  if (limit != malloc_heap) return sim::success;
  Question question(sim::Ask::limit_heap, __func__);
  question.put(std::uint64_t{value});
  return run(question);
}
CUDART_API Error cudaDeviceGetLimit(std::size_t* value, int limit) {
  if (limit < 0 || limit >= static_cast<int>(device_limits.size())) return remember(sim::unsupported_limit);
  *value = device_limits[static_cast<std::size_t>(limit)];
  return sim::success;
}
CUDART_API Error cudaCtxResetPersistingL2Cache() { return sim::success; }
CUDART_API Error cudaDeviceSetCacheConfig(int) { return sim::success; }
CUDART_API Error cudaDeviceGetCacheConfig(int* config) {
  *config = 0;
  return sim::success;
}
CUDART_API Error cudaDeviceSetSharedMemConfig(int) { return sim::success; }
CUDART_API Error cudaDeviceGetSharedMemConfig(int* config) {
  *config = 0;
  return sim::success;
}
CUDART_API Error cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return sim::success;
}
CUDART_API Error cudaDeviceEnablePeerAccess(int, unsigned) { return remember(sim::peer_access_unsupported); }
CUDART_API Error cudaDeviceDisablePeerAccess(int) { return remember(sim::peer_access_unsupported); }
CUDART_API Error cudaProfilerStart() { return sim::success; }
CUDART_API Error cudaProfilerStop() { return sim::success; }
CUDART_API Error cudaDriverGetVersion(int* version) {
  *version = limits::runtime_version;
  return sim::success;
}
CUDART_API Error cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

CUDART_API Error cudaGetLastError() { return last_error(__func__, false); }
CUDART_API Error cudaPeekAtLastError() { return last_error(__func__, true); }
CUDART_API const char* cudaGetErrorName(Error code) {
  const auto* text = sim::error_text(code);
  return text != nullptr ? text->name : "unrecognized error code";
}
CUDART_API const char* cudaGetErrorString(Error code) {
  const auto* text = sim::error_text(code);
  return text != nullptr ? text->text : "unrecognized error code";
}

}  // namespace cudart
