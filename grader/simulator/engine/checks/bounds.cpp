// memcheck: an access that the fast path did not let through. Where a GPU has memory behind a wrong address, the access
// is reported and takes place; elsewhere it ends the lane, also with the checker off.
#include <array>
#include <bit>
#include <cinttypes>
#include <cstdio>

#include "engine/checks/checks.h"

namespace sim {

ptx::Space space_of(Address a) {
  if (a - shared_window < window_size) return ptx::Space::shared;
  if (a - local_window < window_size) return ptx::Space::local;
  return ptx::Space::global;
}

namespace {

// What is wrong with a lane's access, and the fault that ends it; none where a GPU goes on.
struct Trouble {
  const char* kind = nullptr;
  Fault fault = Fault::illegal_address;
  bool into_input = false;  // a store that takes place, where the function may only read
};

std::string hex(Address a) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%" PRIx64, a);
  return buffer;
}
std::string bytes(std::uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

bool in_an_arena(Address a) { return a - device_arena < (1ull << 44) || a - shared_arena < (1ull << 44); }
bool near_null(Address a) { return a < 1 << 16; }

// region: the allocation around the access, if the next ones there need no look.
Trouble look_global(const LaunchState& launch, const Access& a, Address address, Region& region) {
  const auto size = a.size;
  const auto found = launch.memory.find(address);
  if (found && found->live && found->ready && size <= found->size - (address - found->base)) {
    region = {};
    if (found->constant && (a.write || a.atomic)) return {.into_input = true};
    region = {found->base, found->base + found->size};
    return {};
  }
  return {.kind = found && !found->live                        ? "use_after_free"
                  : in_an_arena(address) || near_null(address) ? "global_oob"
                                                               : "host_pointer",
          .fault = launch.memory.mapped(address, size) ? Fault::none : Fault::illegal_address};
}

std::string explain_global(const LaunchState& launch, Address address) {
  const auto found = launch.memory.find(address);
  if (found && !found->live) {
    return "which lies " + bytes(address - found->base) + " into an allocation of " + bytes(found->size) +
           " that has been freed";
  }
  if (found && !found->ready)
    return "which a cudaMallocAsync allocates in another stream, and nothing makes this kernel wait for it";
  if (const auto near = found ? found : launch.memory.nearest(address)) {
    const Address end = near->base + near->size;
    const std::string what = (near->live ? "an allocation of " : "a freed allocation of ") + bytes(near->size);
    if (address < near->base) return "which lies " + bytes(near->base - address) + " before " + what;
    if (address >= end) return "which lies " + bytes(address - end) + " behind the end of " + what;
    return "which begins " + bytes(address - near->base) + " into " + what + " and reaches beyond its end";
  }
  if (near_null(address)) return "a null pointer or an offset from one";
  if (in_an_arena(address)) return "which lies in no allocation";
  return "which is no device address; is it a pointer to host memory that was never copied to the device?";
}

std::uint64_t limit_of(const Warp& w, ptx::Space space) {
  return space == ptx::Space::shared ? w.shared_size : w.local_top;
}

Trouble look(const LaunchState& launch, const Warp& w, const Access& a, Address address, Region& region) {
  Trouble t;
  if (a.space == ptx::Space::global) {
    t = look_global(launch, a, address, region);
  } else {
    const bool shared = a.space == ptx::Space::shared;
    const std::uint64_t limit = limit_of(w, a.space), end = address + a.size;
    const bool overflows = end < a.size;
    if (end > limit || overflows) {
      t.kind = shared ? "shared_oob" : "local_oob";
      const std::uint64_t window = shared  ? (limit + shared_granularity - 1) / shared_granularity * shared_granularity
                                   : limit ? limit + local_margin
                                           : 0;
      if (end <= window && !overflows) t.fault = Fault::none;
    }
  }
  if (address & (a.size - 1)) {
    if (!t.kind) t.kind = "misaligned";
    if (t.fault == Fault::none || t.kind == std::string_view("misaligned")) t.fault = Fault::misaligned_address;
  }
  return t;
}

std::string describe(const Warp& w, const Access& a, std::uint32_t lane, std::string_view kind) {
  const LaunchState& launch = w.worker->launch;
  const bool global = a.space == ptx::Space::global, shared = a.space == ptx::Space::shared;
  return name_thread(launch, *w.block, w.number, lane) +
         (a.atomic  ? " updates "
          : a.write ? " writes "
                    : " reads ") +
         bytes(a.size) + " of " +
         (global   ? "global"
          : shared ? "shared"
                   : "local") +
         " memory at " + hex(a.address[lane]) + ", " +
         (kind == "misaligned" ? "which is not a multiple of " + std::to_string(a.size)
          : global             ? explain_global(launch, a.address[lane])
                               : (shared ? "which is outside the block's " : "which is outside the thread's ") +
                                     bytes(limit_of(w, a.space)) + (shared ? " of shared memory" : " of local memory"));
}

void report_into_input(const Warp& w, const Instruction& i, const Access& a, Mask lanes) {
  LaunchState& launch = w.worker->launch;
  const auto count = static_cast<std::uint64_t>(std::popcount(lanes));
  if (!launch.options.memcheck || launch.seen("const_input", i.site, count)) return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto found = launch.memory.find(a.address[lane]);
  if (!found) return;
  launch.report("memcheck", "const_input", i.site,
                name_thread(launch, *w.block, w.number, lane) + (a.atomic ? " updates " : " writes ") + bytes(a.size) +
                    " at byte " + std::to_string(a.address[lane] - found->base) + " of " +
                    launch.memory.constant_name(found->base) +
                    ", an input that the function may only read, even if its old values come back",
                {.count = count});
}

}  // namespace

bool admit(Warp& w, const Instruction& i, Access& a) {
  LaunchState& launch = w.worker->launch;
  Region region;
  Mask bad = 0, ended = 0, into_input = 0;
  std::array<Trouble, lane_count> trouble;
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    const Address address = a.address[l];
    const bool known = a.space == ptx::Space::global && address >= region.base && address < region.end &&
                       a.size <= region.end - address && !(address & (a.size - 1));
    if (known) continue;
    trouble[l] = look(launch, w, a, address, region);
    into_input |= Mask{trouble[l].into_input} << l;
    if (!trouble[l].kind) continue;
    bad |= 1u << l;
    if (trouble[l].fault != Fault::none) ended |= 1u << l;
  }
  if (region.end) w.regions[i.site] = region;
  if (into_input) report_into_input(w, i, a, into_input);
  if (!bad) return true;
  const auto tell = [&](std::uint32_t lane, Mask lanes) {
    const char* kind = trouble[lane].kind;
    const auto count = static_cast<std::uint64_t>(std::popcount(lanes));
    if (launch.options.memcheck && !launch.seen(kind, i.site, count))
      launch.report("memcheck", kind, i.site, describe(w, a, lane, kind), {.count = count});
  };
  const auto first = static_cast<std::uint32_t>(std::countr_zero(bad));
  tell(first, bad);
  if (ended) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(ended));
    if (l != first) tell(l, ended);
    launch.fail(trouble[l].fault, launch.where(i.site) + ": " + describe(w, a, l, trouble[l].kind), false);
  }
  w.fallen |= ended;
  a.mask &= ~ended;
  a.outside = bad & ~ended;
  if (a.write && a.space == ptx::Space::local) w.wrote_margin = true;
  if (a.write && a.space == ptx::Space::global) {
    for (Mask m = a.outside; m; m &= m - 1) note_written(launch.memory, a.address[std::countr_zero(m)], a.size);
  }
  return a.mask != 0;
}

}  // namespace sim
