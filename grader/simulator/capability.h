// What the simulated device can do: compute capability 8.0, as the PTX that we ask nvcc for.
#pragma once

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

}  // namespace sim::limits
