// What the registers of a warp hold of memory that nothing has written. To load such bytes is no error: the padding of
// a structure is copied with its members, and compilers load ahead of a condition. So initcheck follows the values, bit
// by bit, until they decide something: an address, a branch, an atomic, or what is stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/machine.h"

namespace sim {

struct Frame;
struct LaunchState;
struct WarpState;

class UnwrittenValues {
 public:
  // The load that a value comes from.
  struct Origin {
    const char* kind = nullptr;
    std::uint32_t site = 0;
    bool computed = false;  // not copied alone
    bool data = false;  // no padding: other lanes had it, or it is of a real type
  };
  struct Value {
    std::array<std::uint64_t, lane_count> bits{};  // those that nothing has written; one of a predicate
    Origin origin;
    bool any() const {
      return std::ranges::any_of(bits, [](auto b) { return b != 0; });
    }
  };

  bool empty() const { return values_.empty(); }
  const Value* find(Slot slot) const {
    const auto at = std::ranges::find(values_, slot, &Entry::first);
    return at == values_.end() ? nullptr : &at->second;
  }
  // For the lanes of the mask.
  void set(Slot slot, const Value& value, Mask lanes) {
    auto at = std::ranges::find(values_, slot, &Entry::first);
    if (at == values_.end()) {
      if (!value.any()) return;
      at = values_.insert(at, {slot, {}});
    }
    for (unsigned l = 0; l < lane_count; ++l) {
      if (lanes >> l & 1) at->second.bits[l] = value.bits[l];
    }
    if (value.origin.kind) at->second.origin = value.origin;
    if (!at->second.any()) values_.erase(at);
  }

 private:
  using Entry = std::pair<Slot, Value>;
  std::vector<Entry> values_;
};

// Before the lanes `mask` come to an instruction, and those of `active` execute it.
void follow_unwritten(WarpState&, Frame&, std::uint32_t pc, Mask mask, Mask active);
// Whether the load's values are followed; of others it is an error at once that something is missing.
bool is_followed(const Warp&, const Instruction&);
// The bytes of each lane's access that are missing, as bits.
using Missing = std::array<std::uint32_t, lane_count>;
void note_unwritten(Warp&, const Instruction&, const Access&, const Missing&, const char* kind);
// A store to shared or global memory, when the map of what is written knows of it: copies of what nothing has written
// count as not written either.
void store_unwritten(Warp&, const Instruction&, const Access&);
// At the end of a launch: of the copies in global memory, those that are no padding are errors. Padding comes behind a
// member and is shorter than the alignment of what follows.
void settle_unwritten(LaunchState&);

}  // namespace sim
