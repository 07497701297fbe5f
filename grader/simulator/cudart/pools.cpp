// Memory pools. All take from the one memory of the device: what a program sets decides how fast a GPU is, not what it
// computes.

#include <array>
#include <cstdint>

#include "abi.h"
#include "connection.h"

namespace cudart {
namespace {

// As cudaMemPoolAttr has them: three switches (int), then a threshold in bytes. What comes behind are statistics.
enum Attribute : int { first_switch = 1, last_switch = 3, release_threshold = 4, reserved_high = 6, used_high = 8 };

struct Pool {
  std::array<int, last_switch> switches{1, 1, 1};
  std::uint64_t threshold = 0;
};
struct PoolProperties {  // cudaMemPoolProps
  int allocation, handles;
  MemLocation location;
};

constexpr int on_a_device = 1, read_and_write = 3;
Pool of_the_device;
Pool* current = &of_the_device;

Error give(void** pool, Pool* which) {
  if (pool == nullptr) return remember(sim::invalid_value);
  *pool = which;
  return sim::success;
}

}  // namespace

CUDART_API Error cudaMemPoolCreate(void** pool, const PoolProperties* properties) {
  if (pool == nullptr || properties == nullptr) return remember(sim::invalid_value);
  if (properties->location.type != on_a_device) return unsupported("cudaMemPoolCreate_elsewhere_than_on_a_device");
  return give(pool, new Pool);
}
CUDART_API Error cudaMemPoolDestroy(void* pool) {
  if (pool == nullptr || pool == &of_the_device) return remember(sim::invalid_value);
  if (current == pool) current = &of_the_device;
  delete static_cast<Pool*>(pool);
  return sim::success;
}
CUDART_API Error cudaDeviceGetDefaultMemPool(void** pool, int) { return give(pool, &of_the_device); }
CUDART_API Error cudaDeviceGetMemPool(void** pool, int) { return give(pool, current); }
CUDART_API Error cudaDeviceSetMemPool(int, void* pool) {
  if (pool == nullptr) return remember(sim::invalid_value);
  current = static_cast<Pool*>(pool);
  return sim::success;
}

CUDART_API Error cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  if (pool == nullptr || value == nullptr) return remember(sim::invalid_value);
  if (attribute >= first_switch && attribute <= last_switch) {
    static_cast<Pool*>(pool)->switches[attribute - first_switch] = *static_cast<int*>(value);
  } else if (attribute == release_threshold) {
    static_cast<Pool*>(pool)->threshold = *static_cast<std::uint64_t*>(value);
  } else if (attribute != reserved_high && attribute != used_high) {
    return remember(sim::invalid_value);
  }
  return sim::success;
}
CUDART_API Error cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  if (pool == nullptr || value == nullptr) return remember(sim::invalid_value);
  if (attribute >= first_switch && attribute <= last_switch) {
    *static_cast<int*>(value) = static_cast<Pool*>(pool)->switches[attribute - first_switch];
  } else if (attribute == release_threshold) {
    *static_cast<std::uint64_t*>(value) = static_cast<Pool*>(pool)->threshold;
  } else {
    return unsupported("cudaMemPoolGetAttribute_of_statistics");
  }
  return sim::success;
}

// There is one device, which has access to all.
CUDART_API Error cudaMemPoolSetAccess(void*, const void*, std::size_t) { return sim::success; }
CUDART_API Error cudaMemPoolGetAccess(int* access, void*, MemLocation*) {
  *access = read_and_write;
  return sim::success;
}
CUDART_API Error cudaMemPoolTrimTo(void*, std::size_t) { return sim::success; }

}  // namespace cudart
