#include "engine/checks/host_visible.h"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

void join(std::vector<Touched>& pieces) {
  std::ranges::sort(pieces, {}, &Touched::low);
  std::vector<Touched> joined;
  for (const auto& piece : pieces) {
    if (joined.empty() || piece.low > joined.back().high)
      joined.push_back(piece);
    else
      joined.back().high = std::max(joined.back().high, piece.high);
  }
  pieces = std::move(joined);
}

}  // namespace

void HostVisible::add(const Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  const bool strong = a.atomic || i.is_volatile;
  if (strong && !a.write) return;  // it may well look at what the host writes
  const std::lock_guard lock(mutex_);
  auto& pieces = strong ? touched_.updates : a.write ? touched_.writes : touched_.reads;
  const auto& launch = w.worker->launch;
  const auto line = launch.program.places[i.site].line;
  const auto add = [&](Address low, Address high) {
    if (low < shared_arena) return;
    if (!pieces.empty() && pieces.back().high == low)
      pieces.back().high = high;
    else
      pieces.push_back({low, high, line});
  };
  if (rows.count) {
    for (const auto& row : rows) add(row.low, row.high);
  } else {
    for (Mask m = a.mask; m; m &= m - 1) {
      const Address low = a.address[static_cast<std::size_t>(std::countr_zero(m))];
      add(low, low + a.size);
    }
  }
  touched_.kernel = launch.program.kernel;
  touched_.file = launch.program.places.front().file;
  if (pieces.size() > most_pieces_) {
    join(pieces);
    most_pieces_ = std::max(most_pieces_, 2 * pieces.size());
  }
}

Footprint HostVisible::take() {
  for (auto* pieces : {&touched_.reads, &touched_.writes, &touched_.updates}) join(*pieces);
  return std::exchange(touched_, {});
}

}  // namespace sim
