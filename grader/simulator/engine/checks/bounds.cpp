// memcheck: an access that the fast path did not let through. Where a GPU has memory behind a wrong address, the access
// is reported and takes place; elsewhere it ends the lane, also with the checker off.
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

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

// So far an index of 32 bits that has wrapped reaches, in elements of 16 bytes. Pointers of the host are farther away.
constexpr Address longest_way = 1ull << 36;
bool beside_an_arena(Address a) {
  const auto near = [&](Address arena) { return a - (arena - longest_way) < (1ull << 44) + longest_way; };
  return near(device_arena) || near(shared_arena);
}
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
  return {.kind = found && !found->live                            ? "use_after_free"
                  : beside_an_arena(address) || near_null(address) ? "global_oob"
                                                                   : "host_pointer",
          .fault = launch.memory.mapped(address, size) ? Fault::none : Fault::illegal_address};
}

// Which arguments of a kernel are null, counted from 1.
std::string null_arguments(const LaunchState& launch) {
  const auto& areas = launch.program.parameters;
  const auto& bytes = launch.launch.parameters;
  std::vector<std::string> numbers;
  for (std::size_t n = 0; n < areas.size(); ++n) {
    Address value = 1;
    if (areas[n].size == sizeof value && areas[n].offset + sizeof value <= bytes.size())
      std::memcpy(&value, bytes.data() + areas[n].offset, sizeof value);
    if (value == 0) numbers.push_back(std::to_string(n + 1));
  }
  std::string list;
  for (std::size_t n = 0; n < numbers.size(); ++n)
    list += (n == 0 ? "" : n + 1 == numbers.size() ? " and " : ", ") + numbers[n];
  return list;
}

// Where an address lies that is wrong.
struct Outside {
  const char* reason;
  Facts facts{};
};
Facts name_of(const LaunchState& launch, Address base) {
  const std::string name = launch.memory.name(base);
  return name.empty() ? Facts{} : Facts{{"array", name}};
}
Outside explain_global(const LaunchState& launch, Address address) {
  const auto found = launch.memory.find(address);
  if (found && !found->live) return {"freed", {{"distance", address - found->base}, {"size", found->size}}};
  if (found && !found->ready) return {"not_ready"};
  if (near_null(address)) {
    const std::string arguments = null_arguments(launch);
    return arguments.empty() ? Outside{"null"} : Outside{"null_argument", {{"arguments", arguments}}};
  }
  const auto near = found ? found : launch.memory.nearest(address, longest_way);
  if (!near) return {beside_an_arena(address) ? "nowhere" : "no_device_address"};
  const Address end = near->base + near->size;
  const auto tell = [&](const char* reason, const char* far, Address distance) {
    return Outside{
        distance < 16 * red_zone ? reason : far,
        both({{"distance", distance}, {near->live ? "size" : "freed_size", near->size}}, name_of(launch, near->base))};
  };
  if (address < near->base) return tell("before", "far_before", near->base - address);
  return address < end ? tell("across", "across", address - near->base) : tell("behind", "far_behind", address - end);
}

std::uint64_t limit_of(const Warp& w, ptx::Space space) {
  return space == ptx::Space::shared ? w.shared_size : w.local_top;
}

Outside explain_own(const LaunchState& launch, const Warp& w, const Access& a) {
  Facts facts{{"size", limit_of(w, a.space)}};
  if (a.space == ptx::Space::shared) facts.emplace_back("dynamic", launch.launch.dynamic_shared);
  return {"outside", std::move(facts)};
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

Place offending(const Warp& w, const Instruction& i, const Access& a, std::uint32_t lane) {
  return w.worker->launch.at(i.site, *w.block, w.number, lane,
                             a.atomic  ? "updates"
                             : a.write ? "writes"
                                       : "reads",
                             a.size);
}

Finding outside(const Warp& w, const Instruction& i, const Access& a, std::uint32_t lane, const char* kind) {
  const LaunchState& launch = w.worker->launch;
  const bool global = a.space == ptx::Space::global;
  const auto [reason, facts] = kind == std::string_view("misaligned") ? Outside{"misaligned"}
                               : global                               ? explain_global(launch, a.address[lane])
                                                                      : explain_own(launch, w, a);
  const char* space = global ? "global" : a.space == ptx::Space::shared ? "shared" : "local";
  return launch.finding(kind, reason, i.site, {offending(w, i, a, lane)},
                        both({{"space", space}, {"address", a.address[lane]}}, facts));
}

void report_into_input(const Warp& w, const Instruction& i, const Access& a, Mask lanes) {
  LaunchState& launch = w.worker->launch;
  if (!launch.options.memcheck || launch.seen("const_input", i.site)) return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto found = launch.memory.find(a.address[lane]);
  if (!found) return;
  launch.report("const_input", "store", i.site, {offending(w, i, a, lane)},
                {{"byte", a.address[lane] - found->base}, {"array", launch.memory.name(found->base)}});
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
  const auto tell = [&](std::uint32_t lane) {
    const char* kind = trouble[lane].kind;
    if (launch.options.memcheck && !launch.seen(kind, i.site)) launch.findings.add(outside(w, i, a, lane, kind));
  };
  const auto first = static_cast<std::uint32_t>(std::countr_zero(bad));
  tell(first);
  if (ended) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(ended));
    if (l != first) tell(l);
    launch.fail(trouble[l].fault, launch.where(i.site) + ": ", false, outside(w, i, a, l, trouble[l].kind));
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
