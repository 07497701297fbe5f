// memcheck: an access that the fast path did not let through. Enforced also with the checker off; then it only faults.
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

struct Trouble {
  const char* kind = nullptr;
  Fault fault = Fault::illegal_address;
  std::string text;
};

std::string hex(Address a) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%" PRIx64, a);
  return buffer;
}
std::string bytes(std::uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

Trouble look_global(const LaunchState& launch, Address address, std::uint32_t size, Region& region) {
  const auto found = launch.memory.find(address);
  if (found && found->live && found->ready && size <= found->size - (address - found->base)) {
    region = {found->base, found->base + found->size};
    return {};
  }
  Trouble t;
  t.kind = "global_oob";
  if (found && !found->live) {
    t.kind = "use_after_free";
    t.text = "which lies " + bytes(address - found->base) + " into an allocation of " + bytes(found->size) +
             " that has been freed";
    return t;
  }
  if (found && !found->ready) {
    t.text = "which a cudaMallocAsync allocates in another stream, and nothing makes this kernel wait for it";
    return t;
  }
  if (const auto near = found ? found : launch.memory.nearest(address)) {
    const Address end = near->base + near->size;
    const char* what = near->live ? "an allocation of " : "a freed allocation of ";
    if (address < near->base) {
      t.text = "which lies " + bytes(near->base - address) + " before " + what + bytes(near->size);
    } else if (address < end) {
      t.text = "which begins " + bytes(address - near->base) + " into " + what + bytes(near->size) +
               " and reaches beyond its end";
    } else {
      t.text = "which lies " + bytes(address - end) + " behind the end of " + what + bytes(near->size);
    }
    return t;
  }
  const bool in_arena = address - device_arena < (1ull << 44) || address - shared_arena < (1ull << 44);
  if (address < 1 << 16) {
    t.text = "a null pointer or an offset from one";
  } else if (in_arena) {
    t.text = "which lies in no allocation";
  } else {
    t.kind = "host_pointer";
    t.text = "which is no device address; is it a pointer to host memory that was never copied to the device?";
  }
  return t;
}

Trouble look(const LaunchState& launch, const Warp& w, const Access& a, Address address, Region& region) {
  Trouble t;
  if (a.space == ptx::Space::global) {
    t = look_global(launch, address, a.size, region);
  } else {
    const bool shared = a.space == ptx::Space::shared;
    const std::uint64_t limit = shared ? w.shared_size : w.local_top;
    if (address + a.size > limit || address + a.size < a.size) {
      t.kind = shared ? "shared_oob" : "local_oob";
      t.text = std::string(shared ? "which is outside the block's " : "which is outside the thread's ") + bytes(limit) +
               (shared ? " of shared memory" : " of local memory");
    }
  }
  if (!t.kind && address & (a.size - 1)) {
    t = {"misaligned", Fault::misaligned_address, "which is not a multiple of " + std::to_string(a.size)};
  }
  return t;
}

}  // namespace

bool admit(Warp& w, const Instruction& i, Access& a) {
  LaunchState& launch = w.worker->launch;
  Region region;
  Mask bad = 0;
  Trouble first;
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    const Address address = a.address[l];
    const bool known = a.space == ptx::Space::global && address >= region.base && address + a.size <= region.end &&
                       !(address & (a.size - 1));
    if (known) continue;
    Trouble t = look(launch, w, a, address, region);
    if (!t.kind) continue;
    if (!bad) first = std::move(t);
    bad |= 1u << l;
  }
  if (region.end) w.regions[i.site] = region;
  if (!bad) return true;
  const auto l = static_cast<std::uint32_t>(std::countr_zero(bad));
  const char* space = a.space == ptx::Space::global ? "global" : a.space == ptx::Space::shared ? "shared" : "local";
  const std::string message = name_thread(launch, *w.block, w.number, l) +
                              (a.atomic  ? " updates "
                               : a.write ? " writes "
                                         : " reads ") +
                              bytes(a.size) + " of " + space + " memory at " + hex(a.address[l]) + ", " + first.text;
  const auto count = static_cast<std::uint64_t>(std::popcount(bad));
  if (launch.options.memcheck && !launch.seen(first.kind, i.site, count))
    launch.report("memcheck", first.kind, i.site, message, count);
  launch.fail(first.fault, launch.where(i.site) + ": " + message, false);
  w.fallen |= bad;
  a.mask &= ~bad;
  return a.mask != 0;
}

}  // namespace sim
