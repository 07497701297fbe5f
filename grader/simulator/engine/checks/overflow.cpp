#include "engine/checks/overflow.h"

#include <bit>
#include <functional>
#include <string>

#include "engine/execution.h"

namespace sim {
namespace {

// What does not fit into 64 bits wraps there, as addresses do.
using Exact = std::uint64_t;

Exact extended(std::int32_t value) { return static_cast<Exact>(std::int64_t{value}); }

// A source of an instruction: exact values, or registers of 32 bits.
class Source {
 public:
  Source(const Warp& w, const Instruction& i, unsigned n)
      : wide_(i.target >> n & 1), at_(lanes_at<std::byte>(w, i.o[n])) {}
  Exact operator[](unsigned lane) const {
    return wide_ ? reinterpret_cast<const Exact*>(at_)[lane]
                 : extended(reinterpret_cast<const std::int32_t*>(at_)[lane]);
  }

 private:
  bool wide_;
  const std::byte* at_;
};

template <class F> void each_lane(const Warp& w, const Instruction& i, Mask mask, F f) {
  auto* d = lanes_at<Exact>(w, i.o[0]);
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(m));
    d[l] = f(l);
  }
}

template <class F> void binary(const Warp& w, const Instruction& i, Mask mask, F f) {
  const Source a(w, i, 1), b(w, i, 2);
  each_lane(w, i, mask, [&](unsigned l) { return f(a[l], b[l]); });
}

Exact own(const Warp& w, Slot s, unsigned size, unsigned lane) {
  return size == 8 ? lanes_at<Exact>(w, s)[lane] : extended(lanes_at<std::int32_t>(w, s)[lane]);
}

}  // namespace

void exact_add(Warp& w, const Instruction& i, Mask mask) { binary(w, i, mask, std::plus{}); }
void exact_subtract(Warp& w, const Instruction& i, Mask mask) { binary(w, i, mask, std::minus{}); }
void exact_multiply(Warp& w, const Instruction& i, Mask mask) { binary(w, i, mask, std::multiplies{}); }
void exact_multiply_add(Warp& w, const Instruction& i, Mask mask) {
  const Source a(w, i, 1), b(w, i, 2), c(w, i, 3);
  each_lane(w, i, mask, [&](unsigned l) { return a[l] * b[l] + c[l]; });
}
void exact_shift(Warp& w, const Instruction& i, Mask mask) {
  binary(w, i, mask, [](Exact a, Exact b) { return b > 63 ? 0 : a << b; });
}
void exact_widen(Warp& w, const Instruction& i, Mask mask) {
  const Source a(w, i, 1);
  each_lane(w, i, mask, [&](unsigned l) { return a[l]; });
}

// Registers have no sign, and exact values take them as signed. So one below zero may as well be an unsigned one of
// 2^31 or more: then it is believed.
void exact_widen_unsigned(Warp& w, const Instruction& i, Mask mask) {
  const auto* exact = lanes_at<Exact>(w, i.o[1]);
  const auto* value = lanes_at<std::uint32_t>(w, i.o[2]);
  each_lane(w, i, mask, [&](unsigned l) { return exact[l] >> 63 ? value[l] : exact[l]; });
}

void exact_choice(Warp& w, const Instruction& i, Mask mask) {
  each_lane(w, i, mask, [&](unsigned l) {
    const Exact value = own(w, i.o[1], i.size, l);
    for (unsigned n = 2; n < 2 + 2 * i.target; n += 2) {
      if (own(w, i.o[n + 1], i.size, l) == value) return lanes_at<Exact>(w, i.o[n])[l];
    }
    return value;
  });
}

void check_overflow(Warp& w, const Instruction& i, Mask mask) {
  const auto *exact = lanes_at<Exact>(w, i.o[0]), *value = lanes_at<Exact>(w, i.o[1]);
  Mask lanes = 0;
  for (unsigned l = 0; l < lane_count; ++l) lanes |= Mask{exact[l] != value[l]} << l;
  lanes &= mask;
  if (!lanes) [[likely]]
    return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
  std::uint32_t site = i.site;
  Exact result = 0;
  const std::uint32_t* list = w.lists + i.target;
  for (std::uint32_t n = *list++; n; --n, list += 3) {
    result = lanes_at<Exact>(w, list[1])[lane];
    if (result == own(w, list[2], 4, lane)) continue;
    site = list[0];
    break;
  }
  LaunchState& launch = w.worker->launch;
  if (launch.seen("index_overflow", site)) return;
  const bool here = site == i.site;
  launch.report("index_overflow", here ? "of_this_line" : "of_a_value", site,
                {launch.at(site, *w.block, w.number, lane), launch.at(i.site)},
                here ? Facts{} : Facts{{"value", result}});
}

}  // namespace sim
