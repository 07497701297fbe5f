// The GPU that the simulator plays: an NVIDIA A100 with 80 GB, whose compute capability is that of the PTX that we ask
// nvcc for. Its figures are those of the CUDA C++ Programming Guide, "Compute Capabilities", and of deviceQuery.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sim::limits {

inline constexpr char name[] = "NVIDIA A100-SXM4-80GB";
inline constexpr int major = 8, minor = 0;
inline constexpr int runtime_version = 13000;
inline constexpr std::uint32_t warp = 32, block_threads = 1024;
inline constexpr std::uint32_t block[3] = {1024, 1024, 64};
inline constexpr std::uint32_t grid[3] = {0x7FFF'FFFF, 65535, 65535};
inline constexpr std::uint32_t shared_bytes = 48 << 10;          // per block, without asking
inline constexpr std::uint32_t shared_optin_bytes = 163 << 10;   // per block, by cudaFuncSetAttribute
inline constexpr std::uint32_t shared_per_sm = 164 << 10;
inline constexpr std::uint32_t shared_of_system = 1 << 10;       // per block
inline constexpr std::uint32_t shared_unit = 128;                // bytes that a block's is rounded up to
inline constexpr std::uint32_t registers = 65536;                // per block and per multiprocessor
inline constexpr std::uint32_t threads_per_sm = 2048, blocks_per_sm = 32;
inline constexpr std::uint32_t warps_per_sm = threads_per_sm / warp;
inline constexpr std::uint32_t partitions = 4;  // of a multiprocessor, each with registers of its own
inline constexpr std::uint32_t multiprocessors = 108;
inline constexpr std::uint32_t l2_bytes = 40 << 20;
inline constexpr int clock_khz = 1'410'000, memory_clock_khz = 1'593'000, memory_bus_bits = 5120;
inline constexpr int copy_engines = 3;
inline constexpr std::uint32_t persisting_l2_bytes = 30 << 20, access_window_bytes = 134'213'632;
inline constexpr int pci_bus = 7;
inline constexpr std::uint64_t global_bytes = 85'198'045'184;  // of which a program gets what the host can spare

// Warps get their registers by 256.
constexpr std::uint32_t warp_registers(std::uint32_t of_a_thread) { return (of_a_thread * warp + 255) / 256 * 256; }
// Warps whose registers a multiprocessor has; 0 registers: their number is not known.
constexpr std::uint32_t most_warps(std::uint32_t registers_of_a_thread) {
  return registers_of_a_thread == 0
             ? warps_per_sm
             : std::min(warps_per_sm, registers / partitions / warp_registers(registers_of_a_thread) * partitions);
}
// Threads that a block can have.
constexpr std::uint32_t most_threads(std::uint32_t registers_of_a_thread) {
  return std::min(block_threads, most_warps(registers_of_a_thread) * warp);
}
// Blocks of so many threads and bytes of shared memory that a multiprocessor holds at a time.
constexpr std::uint32_t resident_blocks(std::uint64_t threads, std::uint32_t registers_of_a_thread,
                                        std::uint64_t shared) {
  if (threads == 0) return 0;
  const std::uint64_t warps = (threads + warp - 1) / warp;
  const std::uint64_t bytes = (shared + shared_of_system + shared_unit - 1) / shared_unit * shared_unit;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>({blocks_per_sm, most_warps(registers_of_a_thread) / warps, shared_per_sm / bytes}));
}

}  // namespace sim::limits
