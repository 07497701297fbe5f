// The structures of the CUDA 13 runtime's binary interface, as far as our calls take them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cudart {

struct Dim3 {
  unsigned x, y, z;
};

using Stream = void*;
using Event = void*;

enum MemcpyKind : int { host_to_host, host_to_device, device_to_host, device_to_device, by_address };

struct Position {
  std::size_t x, y, z;
};
struct Extent {
  std::size_t width, height, depth;
};
struct PitchedPointer {
  void* pointer;
  std::size_t pitch, xsize, ysize;
};
struct Memcpy3D {
  void* source_array;
  Position source_position;
  PitchedPointer source;
  void* target_array;
  Position target_position;
  PitchedPointer target;
  Extent extent;
  MemcpyKind kind;
};

struct LaunchAttribute {
  int id;
  alignas(8) int value;
  char rest[60];
};
struct LaunchConfig {
  Dim3 grid, block;
  std::size_t shared;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct FunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared, carveout;
  int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, cluster_non_portable;
  int reserved[16];
};

struct PointerAttributes {
  int type, device;  // type: 0 unregistered, 1 host, 2 device, 3 managed
  void *device_pointer, *host_pointer;
  long reserved[8];
};

struct MemLocation {
  int type, id;
};

struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
  std::size_t total_global, shared_per_block;
  int registers_per_block, warp_size;
  std::size_t pitch;
  int max_threads_per_block, max_block[3], max_grid[3];
  std::size_t total_constant;
  int major, minor;
  std::size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors, integrated, can_map_host;
  int textures[2 + 2 + 2 + 3 + 2 + 3 + 3 + 1 + 2 + 3 + 2], surfaces[1 + 2 + 3 + 2 + 3 + 1 + 2];
  std::size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines, unified_addressing;
  int bus_width, l2_bytes, persisting_l2_bytes, threads_per_multiprocessor, stream_priorities, global_l1, local_l1;
  std::size_t shared_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_group, host_atomics, pageable_access;
  int concurrent_managed, preemption, registered_host_pointer, cooperative_launch;
  std::size_t shared_per_block_optin;
  int pageable_page_tables, direct_managed, blocks_per_multiprocessor, access_window;
  std::size_t reserved_shared;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, rdma;
  unsigned rdma_flush;
  int rdma_ordering;
  unsigned pool_handles;
  int deferred_arrays, ipc_events, clusters, unified_functions, numa_config, numa_id, mps, host_numa_id;
  unsigned pci_device_id, pci_subsystem_id;
  int host_numa_ipc;
  int reserved[56];
};

}  // namespace cudart
