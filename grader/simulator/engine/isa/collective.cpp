// shfl, vote, match, redux: the run loop calls them with all the lanes of the member mask that are alive.
// sim: multiversion
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "engine/isa/lanes.h"

namespace sim {
// A lane reads from one that has exited.
void read_from_exited(Warp&, const Instruction&, std::uint32_t lane, std::uint32_t source);
void count_undefined_lane(Warp&, const Instruction&);
}  // namespace sim

namespace sim::SIM_TARGET {
namespace {

// d[lane] = value[source[lane]]
SIM_INLINE void gather(u32* d, Mask mask, const u32* value, const u32* source) {
#ifdef __AVX512F__
  const __m512i low = _mm512_load_si512(value), high = _mm512_load_si512(value + 16);
  const __m512i a = _mm512_permutex2var_epi32(low, _mm512_load_si512(source), high);
  const __m512i b = _mm512_permutex2var_epi32(low, _mm512_load_si512(source + 16), high);
  _mm512_mask_storeu_epi32(d, static_cast<__mmask16>(mask), a);
  _mm512_mask_storeu_epi32(d + 16, static_cast<__mmask16>(mask >> 16), b);
#else
  each(d, mask, [=](u32 l) { return value[source[l]]; });
#endif
}

enum class Shuffle { up, down, bfly, idx };

// What a lane gets from one that takes no part is undefined. Here it is what a lane that has exited last had in its
// register, and for others what the reader itself holds.
// o: d, p, a, b, c, members; target bit 0: p is wanted.
template <Shuffle S> void shuffle(Warp& w, const Instruction& i, Mask mask) {
  alignas(64) u32 source[lane_count], value[lane_count];
  const u32 *a = at<u32>(w, i.o[2]), *b = at<u32>(w, i.o[3]), *c = at<u32>(w, i.o[4]);
  std::memcpy(value, a, sizeof value);
  Mask inside = 0;
  for (u32 l = 0; l < lane_count; ++l) {
    const s32 lane = static_cast<s32>(l), by = static_cast<s32>(b[l] & 31);
    const s32 clamp = static_cast<s32>(c[l] & 31), segment = static_cast<s32>(c[l] >> 8 & 31);
    const s32 last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    s32 j;
    bool in;
    switch (S) {
      case Shuffle::up:
        j = lane - by;
        in = j >= last;
        break;
      case Shuffle::down:
        j = lane + by;
        in = j <= last;
        break;
      case Shuffle::bfly:
        j = lane ^ by;
        in = j <= last;
        break;
      default:
        j = first | (by & ~segment);
        in = j <= last;
        break;
    }
    source[l] = static_cast<u32>(in ? j : lane) & 31;
    inside |= in ? lane_bit[l] : 0;
  }
  if ((w.started & ~w.live) | (~w.started)) [[unlikely]] {
    const u32* members = at<u32>(w, i.o[5]);
    for (Mask m = mask; m; m &= m - 1) {
      const auto l = static_cast<u32>(std::countr_zero(m));
      if (members[l] & ~w.live & lane_bit[source[l]]) {
        read_from_exited(w, i, l, source[l]);
        break;
      }
    }
  }
  if (mask != all_lanes) {
    const Mask holding = mask | (w.started & ~w.live);
    for (Mask m = mask; m; m &= m - 1) {
      const auto l = static_cast<u32>(std::countr_zero(m));
      if (!(mask & lane_bit[source[l]])) count_undefined_lane(w, i);
      if (!(holding & lane_bit[source[l]])) source[l] = l;
    }
  }
  gather(at<u32>(w, i.o[0]), mask, value, source);
  if (i.target & 1) set_predicate(w, i.o[1], inside, mask);
}

// o: d, a, members.
void vote_all(Warp& w, const Instruction& i, Mask mask) {
  set_predicate(w, i.o[0], (predicate(w, i.o[1]) & mask) == mask ? mask : 0, mask);
}
void vote_any(Warp& w, const Instruction& i, Mask mask) {
  set_predicate(w, i.o[0], predicate(w, i.o[1]) & mask ? mask : 0, mask);
}
void vote_uniform(Warp& w, const Instruction& i, Mask mask) {
  const Mask p = predicate(w, i.o[1]) & mask;
  set_predicate(w, i.o[0], p == 0 || p == mask ? mask : 0, mask);
}
void vote_ballot(Warp& w, const Instruction& i, Mask mask) {
  const Mask p = predicate(w, i.o[1]) & mask;
  each(at<u32>(w, i.o[0]), mask, [=](u32) { return p; });
}
void active_mask(Warp& w, const Instruction& i, Mask mask) {
  each(at<u32>(w, i.o[0]), mask, [=](u32) { return mask; });
}

// o: d, p, a, members.
template <class T> void match_any(Warp& w, const Instruction& i, Mask mask) {
  alignas(64) T a[lane_count];
  std::memcpy(a, at<T>(w, i.o[2]), sizeof a);
  u32* d = at<u32>(w, i.o[0]);
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    d[l] = collect([&](u32 k) { return a[k] == a[l]; }) & mask;
  }
}
template <class T> void match_all(Warp& w, const Instruction& i, Mask mask) {
  const T* a = at<T>(w, i.o[2]);
  const T first = a[std::countr_zero(mask)];
  const bool same = (collect([&](u32 l) { return a[l] == first; }) & mask) == mask;
  const Mask result = same ? mask : 0;
  each(at<u32>(w, i.o[0]), mask, [=](u32) { return result; });
  if (i.target & 1) set_predicate(w, i.o[1], result, mask);
}

template <class T, auto F> void reduce(Warp& w, const Instruction& i, Mask mask) {
  const T* a = at<T>(w, i.o[1]);
  T result = a[std::countr_zero(mask)];
  for (Mask m = mask & (mask - 1); m; m &= m - 1) result = F(result, a[std::countr_zero(m)]);
  each(at<T>(w, i.o[0]), mask, [=](u32) { return result; });
}
template <class T> constexpr auto smaller = [](T a, T b) { return a < b ? a : b; };
template <class T> constexpr auto larger = [](T a, T b) { return a > b ? a : b; };

void synchronise(Warp&, const Instruction&, Mask) {}

}  // namespace

void add_collective(Table& t) {
  t.add("shfl.sync.up.b32", shuffle<Shuffle::up>);
  t.add("shfl.sync.down.b32", shuffle<Shuffle::down>);
  t.add("shfl.sync.bfly.b32", shuffle<Shuffle::bfly>);
  t.add("shfl.sync.idx.b32", shuffle<Shuffle::idx>);
  t.add("vote.sync.all.pred", vote_all);
  t.add("vote.sync.any.pred", vote_any);
  t.add("vote.sync.uni.pred", vote_uniform);
  t.add("vote.sync.ballot.b32", vote_ballot);
  t.add("match.any.sync.b32", match_any<u32>);
  t.add("match.any.sync.b64", match_any<u64>);
  t.add("match.all.sync.b32", match_all<u32>);
  t.add("match.all.sync.b64", match_all<u64>);
  t.add("redux.sync.add.u32", reduce<u32, [](u32 a, u32 b) { return a + b; }>);
  t.add("redux.sync.add.s32", reduce<u32, [](u32 a, u32 b) { return a + b; }>);
  t.add("redux.sync.min.u32", reduce<u32, smaller<u32>>);
  t.add("redux.sync.max.u32", reduce<u32, larger<u32>>);
  t.add("redux.sync.min.s32", reduce<s32, smaller<s32>>);
  t.add("redux.sync.max.s32", reduce<s32, larger<s32>>);
  t.add("redux.sync.and.b32", reduce<u32, [](u32 a, u32 b) { return a & b; }>);
  t.add("redux.sync.or.b32", reduce<u32, [](u32 a, u32 b) { return a | b; }>);
  t.add("redux.sync.xor.b32", reduce<u32, [](u32 a, u32 b) { return a ^ b; }>);
  t.add("bar.warp.sync", synchronise);
  t.add("activemask.b32", active_mask);
}

}  // namespace sim::SIM_TARGET
