// What the simulated device can do: compute capability 8.0, as the PTX that we ask nvcc for.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sim::limits {

inline constexpr int major = 8, minor = 0;
inline constexpr int runtime_version = 13000;
inline constexpr std::uint32_t warp = 32, block_threads = 1024;
inline constexpr std::uint32_t block[3] = {1024, 1024, 64};
inline constexpr std::uint32_t grid[3] = {0x7FFF'FFFF, 65535, 65535};
inline constexpr std::uint32_t shared_bytes = 48 << 10;          // per block, without asking
inline constexpr std::uint32_t shared_optin_bytes = 163 << 10;   // per block, by cudaFuncSetAttribute
inline constexpr std::uint32_t shared_per_sm = 164 << 10;
inline constexpr std::uint32_t registers = 65536;                // per block and per multiprocessor
inline constexpr std::uint32_t threads_per_sm = 2048, blocks_per_sm = 32;
inline constexpr std::uint32_t multiprocessors = 16;
inline constexpr std::uint32_t l2_bytes = 4 << 20;

// Warps get their registers by 256.
constexpr std::uint32_t warp_registers(std::uint32_t of_a_thread) { return (of_a_thread * warp + 255) / 256 * 256; }
// Threads that a block can have; 0 registers: their number is not known.
constexpr std::uint32_t most_threads(std::uint32_t registers_of_a_thread) {
  return registers_of_a_thread == 0 ? block_threads
                                    : std::min(block_threads, registers / warp_registers(registers_of_a_thread) * warp);
}

}  // namespace sim::limits
