// What an access would ask of the memory system: 32-byte sectors of global memory, wavefronts of shared memory. And how
// often a shuffle has no value to give.
#include <algorithm>
#include <array>
#include <bit>

#include "engine/checks/checks.h"

namespace sim {
namespace {

constexpr std::uint64_t sector = 32;

std::uint64_t sectors_of(const Access& a, const Rows& rows) {
  if (rows.count) {
    std::uint64_t total = 0, next = 0;  // the first sector that is not counted yet
    bool rising = true;
    for (const Row& row : rows) {
      const std::uint64_t first = row.low / sector, last = (row.high - 1) / sector;
      rising = rising && first + 1 >= next;
      total += last + 1 - std::max(first, next);
      next = last + 1;
    }
    if (rising) return total;
  }
  if (const std::uint64_t low = a.low / sector; (a.high - 1) / sector - low < 64) {
    std::uint64_t asked = 0;
    for (Mask m = a.mask; m; m &= m - 1) {
      const Address at = a.address[std::countr_zero(m)];
      asked |= std::uint64_t{1} << (at / sector - low) | std::uint64_t{1} << ((at + a.size - 1) / sector - low);
    }
    return static_cast<std::uint64_t>(std::popcount(asked));
  }
  std::array<std::uint64_t, 2 * lane_count> list;
  std::size_t n = 0;
  bool sorted = true;
  const auto add = [&](std::uint64_t number) {
    if (n && list[n - 1] == number) return;
    sorted = sorted && (n == 0 || list[n - 1] < number);
    list[n++] = number;
  };
  for (Mask m = a.mask; m; m &= m - 1) {
    const Address at = a.address[std::countr_zero(m)];
    add(at / sector);
    add((at + a.size - 1) / sector);
  }
  const auto end = list.begin() + static_cast<std::ptrdiff_t>(n);
  if (sorted) return n;
  std::sort(list.begin(), end);
  return static_cast<std::uint64_t>(std::unique(list.begin(), end) - list.begin());
}

// Accesses of 8 bytes go by half warps, of 16 bytes by quarters; in each, a bank serves one word at a time.
std::uint64_t wavefronts_of(const Access& a, Worker& worker) {
  if (a.shape == Access::Shape::uniform) return 1;
  const unsigned group = a.size <= 4 ? 32 : a.size == 8 ? 16 : 8;
  if (a.shape == Access::Shape::contiguous && a.size >= 4) {
    std::uint64_t groups = 0;
    for (unsigned first = 0; first < lane_count; first += group)
      groups += (a.mask >> first & (group == 32 ? all_lanes : (1u << group) - 1)) != 0;
    return groups;
  }
  auto& seen = worker.seen_words;
  if (seen.size() < worker.launch.shared_size / 4 + 8) seen.resize(worker.launch.shared_size / 4 + 8);
  std::uint64_t total = 0;
  for (unsigned first = 0; first < lane_count; first += group) {
    std::array<std::uint8_t, 32> banks{};
    ++worker.seen_tick;
    std::uint8_t worst = 0;
    for (unsigned l = first; l < first + group; ++l) {
      if (!(a.mask >> l & 1)) continue;
      for (std::uint64_t word = a.address[l] / 4; word <= (a.address[l] + a.size - 1) / 4; ++word) {
        if (seen[word] == worker.seen_tick) continue;
        seen[word] = worker.seen_tick;
        worst = std::max(worst, ++banks[word % 32]);
      }
    }
    total += worst;
  }
  return total;
}

}  // namespace

void count_global(Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  SiteCount& c = w.worker->counts.memory[i.site];
  const auto bytes = std::uint64_t{count_lanes(a.mask)} * a.size;
  ++c.global_requests;
  c.global_sectors += sectors_of(a, rows);
  c.minimal_sectors +=
      a.shape == Access::Shape::uniform ? (a.size + sector - 1) / sector : (bytes + sector - 1) / sector;
  c.global_bytes += bytes;
}

void count_shared(Warp& w, const Instruction& i, const Access& a) {
  SiteCount& c = w.worker->counts.memory[i.site];
  const auto bytes = std::uint64_t{count_lanes(a.mask)} * a.size;
  ++c.shared_requests;
  c.shared_wavefronts += wavefronts_of(a, *w.worker);
  c.minimal_wavefronts += a.shape == Access::Shape::uniform ? 1 : (bytes + 127) / 128;
}

void count_atomics(Warp& w, const Instruction& i, Mask mask) {
  if (w.worker->counting) w.worker->counts.memory[i.site].atomics += count_lanes(mask);
}

void count_undefined_lane(Warp& w, const Instruction& i) {
  if (w.worker->counting) ++w.worker->counts.memory[i.site].undefined_lanes;
}

}  // namespace sim
