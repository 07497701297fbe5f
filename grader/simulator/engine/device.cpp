// Device of device.h over the engine's parts.
#include "device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "capability.h"
#include "engine/checks/checks.h"
#include "engine/checks/coverage.h"
#include "engine/checks/host_visible.h"
#include "engine/checks/last_stores.h"
#include "engine/checks/races.h"
#include "engine/launch.h"

namespace sim {

class Kernel {
 public:
  const ptx::Module* module = nullptr;
  std::uint32_t number = 0;
  const Layout* layout = nullptr;

  // Decoded at the first use; throws Refusal, each time again.
  const KernelCode& program(const Options& options) const {
    if (refusal_) throw Refusal(*refusal_);
    auto& program = options.overflow ? checked_ : program_;
    try {
      if (!program) program = decode(*module, number, *layout, options.overflow);
    } catch (const Refusal& r) {
      refusal_ = r;
      throw;
    }
    if (options.overflow || !options.coverage) return *program;
    if (!observed_) observed_ = observing(*program);
    return *observed_;
  }

 private:
  mutable std::unique_ptr<KernelCode> program_, checked_, observed_;
  mutable std::optional<Refusal> refusal_;
};

namespace {

constexpr std::uint64_t launch_cost = 1000;  // of Options::total_budget, in warp instructions

struct LoadedModule {
  ptx::Module module;
  Layout layout;
  std::map<std::string_view, Symbol> symbols;
  std::map<std::string_view, std::unique_ptr<Kernel>> kernels;
};

// Told by the code alone: launches run one after the other here, where nothing goes wrong. CUB's kernels wait wherever
// there is an instruction for it, which compute_80 has not, and they are no fault of who calls them.
bool may_be_too_early(const KernelCode& program) {
  return !program.waits_for_launch_ahead && !program.kernel.starts_with("_ZN3cub");
}
Finding too_early(const KernelCode& program) {
  return {"early_launch", "never_waits", std::string(program.kernel), "", 0};
}

// A clock runs since the device was switched on, whenever that was.
std::uint64_t clock_zero(const Options& options) {
  return (options.seed + static_cast<std::uint64_t>(options.order) + 1) * 0x9e3779b97f4a7c15u >> 24;
}

}  // namespace

Facts too_many_blocks(std::uint64_t blocks, std::uint32_t of_each) {
  return {{"blocks", blocks},
          {"resident", std::uint64_t{of_each} * limits::multiprocessors},
          {"on_each", of_each},
          {"multiprocessors", limits::multiprocessors}};
}

struct Device::State {
  Memory memory;
  Findings findings;
  std::map<ModuleId, std::unique_ptr<LoadedModule>> modules;
  ModuleId next_module = 1;
  std::vector<LineCount> counts;
  Coverages coverages;
  GlobalRaces* races = nullptr;
  HostVisible host_visible;
  LastStores last_stores;
  std::uint64_t spent = 0, launches = 0;  // since `configure`, of Options::total_budget
  std::uint64_t clock = 0;  // of the device: warp instructions, and the cost of launches
  Crew crew;

  State(std::size_t device_bytes, int fd, std::size_t shared_bytes)
      : memory(device_bytes, fd, shared_bytes), races(make_global_races(memory)) {}
  ~State() { destroy_global_races(races); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void lay_out(LoadedModule&);
};

// Globals and constants live in device memory, each an allocation of its own.
void Device::State::lay_out(LoadedModule& m) {
  for (const auto& v : m.module.variables) {
    if ((v.space != ptx::Space::global && v.space != ptx::Space::constant) || (v.external && v.values.empty()))
      continue;
    const Address at = memory.allocate(v.size, v.managed ? sim::Space::managed : sim::Space::device);
    if (!at) throw Refusal("the variable " + std::string(v.name) + " does not fit the device memory");
    std::memset(reinterpret_cast<void*>(at), 0, v.size);
    memory.mark(at, v.size, true);
    m.layout.globals[v.name] = at;
    m.symbols[v.name] = {at, v.size};
  }
  for (const auto& v : m.module.variables) {
    const auto found = m.layout.globals.find(v.name);
    if (found == m.layout.globals.end()) continue;
    for (const auto& value : v.values) {
      std::uint64_t bits = value.bits;
      if (!value.symbol.empty()) {
        const auto global = m.layout.globals.find(value.symbol);
        const auto function = m.module.by_name.find(value.symbol);
        if (global != m.layout.globals.end()) {
          bits += global->second;
        } else if (function != m.module.by_name.end()) {
          bits += function_window + 16ull * function->second;
        } else {
          throw Refusal("the variable " + std::string(v.name) + " is initialised with " + std::string(value.symbol) +
                        ", which the module does not define");
        }
      }
      std::memcpy(reinterpret_cast<void*>(found->second + value.offset), &bits, std::min<std::size_t>(value.width, 8));
    }
  }
}

Device::Device(std::size_t device_bytes, int shared_fd, std::size_t shared_bytes)
    : state_(std::make_unique<State>(device_bytes, shared_fd, shared_bytes)) {}
Device::~Device() = default;

ModuleId Device::load(const std::vector<std::string_view>& units) {
  auto m = std::make_unique<LoadedModule>();
  if (units.size() == 1) {
    ptx::parse(m->module, units.front());
  } else {
    std::vector<std::unique_ptr<ptx::Module>> parts;
    for (const auto unit : units) ptx::parse(*parts.emplace_back(std::make_unique<ptx::Module>()), unit);
    ptx::link(m->module, std::move(parts));
  }
  state_->lay_out(*m);
  for (std::uint32_t n = 0; n < m->module.functions.size(); ++n) {
    const auto& f = m->module.functions[n];
    if (!f.entry || !f.defined) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->module = &m->module;
    kernel->number = n;
    kernel->layout = &m->layout;
    m->kernels[f.name] = std::move(kernel);
  }
  const ModuleId id = state_->next_module++;
  state_->modules[id] = std::move(m);
  return id;
}

void Device::unload(ModuleId id) {
  const auto found = state_->modules.find(id);
  if (found == state_->modules.end()) return;
  for (const auto& [name, symbol] : found->second->symbols) state_->memory.release(symbol.address);
  state_->modules.erase(found);
}

const Kernel* Device::kernel(ModuleId id, std::string_view name) const {
  const auto m = state_->modules.find(id);
  if (m == state_->modules.end()) return nullptr;
  const auto found = m->second->kernels.find(name);
  return found == m->second->kernels.end() ? nullptr : found->second.get();
}

KernelInfo Device::info(const Kernel* kernel) const {
  const auto& f = kernel->module->functions[kernel->number];
  KernelInfo result;
  result.name = f.name;
  for (const Area& a : parameter_layout(f, result.parameter_bytes)) result.parameters.push_back({a.offset, a.size});
  result.max_threads = std::min(f.max_threads, 1024u);
  try {
    const KernelCode& p = kernel->program(options);
    result.static_shared = p.static_shared;
    result.local_bytes = p.functions[0].local_bytes;
  } catch (const Refusal&) {
    // The launch will say it; what is known without the code stands.
  }
  return result;
}

std::optional<Symbol> Device::symbol(ModuleId id, std::string_view name) const {
  const auto m = state_->modules.find(id);
  if (m == state_->modules.end()) return std::nullopt;
  const auto found = m->second->symbols.find(name);
  if (found == m->second->symbols.end()) return std::nullopt;
  return found->second;
}

Address Device::allocate(std::size_t bytes, Space space, bool ready) {
  return state_->memory.allocate(bytes, space, ready);
}
void Device::make_ready(Address address) { state_->memory.make_ready(address); }
void Device::surround(Address address, std::size_t bytes) { state_->memory.surround(address, bytes); }
bool Device::renew(Address base) { return state_->memory.renew(base); }
bool Device::describe(Address base, std::string_view name, bool constant) {
  return state_->memory.describe(base, name, constant);
}
std::string Device::name(Address base) const { return state_->memory.name(base); }
bool Device::release(Address address, bool reuse) { return state_->memory.release(address, reuse); }
std::optional<Allocation> Device::find(Address address) const { return state_->memory.find(address); }

bool Device::write(Address to, std::span<const std::byte> data) {
  if (!state_->memory.inside(to, data.size())) return false;
  std::memcpy(reinterpret_cast<void*>(to), data.data(), data.size());
  state_->last_stores.copied(to, data.size());
  state_->memory.mark(to, data.size(), true);
  return true;
}
bool Device::read(Address from, std::span<std::byte> data) const {
  if (!state_->memory.inside(from, data.size())) return false;
  std::memcpy(data.data(), reinterpret_cast<const void*>(from), data.size());
  return true;
}
bool Device::fill(Address to, std::byte value, std::size_t bytes) {
  if (!state_->memory.inside(to, bytes)) return false;
  std::memset(reinterpret_cast<void*>(to), static_cast<int>(value), bytes);
  state_->last_stores.copied(to, bytes);
  state_->memory.mark(to, bytes, true);
  return true;
}
bool Device::copy(Address to, Address from, std::size_t bytes) {
  if (!state_->memory.inside(to, bytes) || !state_->memory.inside(from, bytes)) return false;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  state_->memory.copy_marks(to, from, bytes);
  state_->last_stores.copied(to, bytes);
  return true;
}

Unwritten Device::unwritten(Address address, std::size_t bytes) const {
  return options.initcheck ? state_->memory.unwritten(address, bytes) : Unwritten{};
}

void Device::watch(std::vector<Element> elements) { state_->last_stores.watch(std::move(elements)); }
const std::vector<LastStore>& Device::last_stores() const { return state_->last_stores.all(); }

Footprint Device::take_host_visible() { return state_->host_visible.take(); }
Footprint Device::footprint() const { return options.racecheck ? sim::footprint(*state_->races) : Footprint{}; }

Ran Device::launch(const Launch& launch) {
  const KernelCode& program = launch.kernel->program(options);
  LaunchState s(program, *launch.kernel->module, launch, options, state_->memory, state_->findings,
                *launch.kernel->layout);
  const auto& [x, y, z] = launch.block;
  s.threads_per_block = std::uint64_t{x} * y * z;
  s.blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const auto info = this->info(launch.kernel);
  const auto wrong = [&](Fault fault, const std::string& why) {
    return Ran{fault, std::string(program.kernel) + ": " + why, {}};
  };
  if (s.threads_per_block == 0 || s.blocks == 0)
    return wrong(Fault::invalid_configuration, "a grid and a block have at least one thread in every dimension");
  if (s.threads_per_block > info.max_threads) {
    return wrong(Fault::invalid_value, "a block of " + std::to_string(s.threads_per_block) +
                                           " threads; the kernel allows " + std::to_string(info.max_threads));
  }
  if (launch.parameters.size() < info.parameter_bytes)
    return wrong(Fault::invalid_value, "the parameters are " + std::to_string(info.parameter_bytes) + " bytes, " +
                                           std::to_string(launch.parameters.size()) + " are given");
  const std::uint64_t shared = std::uint64_t{program.static_shared} + launch.dynamic_shared;
  if (shared > (1u << 20))
    return wrong(Fault::invalid_value, "a block asks for " + std::to_string(shared) + " bytes of shared memory");
  const auto resident = limits::resident_blocks(s.threads_per_block, launch.registers, shared);
  s.residency.begin(std::max(resident, 1u), s.blocks);
  if (launch.cooperative && s.blocks > s.residency.most()) {
    return {Fault::cooperative_too_large, std::string(program.kernel) + ": ",
            Finding{"invalid_launch", "crowded_grid", {}, {}, 0, {}, too_many_blocks(s.blocks, s.residency.of_each())}};
  }
  s.clock_start = clock_zero(options) + state_->clock;
  s.shared_size = static_cast<std::uint32_t>(shared);
  if (program.reserved_shared) s.shared_size = (s.shared_size + 15) / 16 * 16 + program.reserved_shared;
  if (launch.early && options.racecheck && may_be_too_early(program)) state_->findings.add(too_early(program));
  s.races = options.racecheck ? state_->races : nullptr;
  s.host_visible = options.racecheck ? &state_->host_visible : nullptr;
  state_->host_visible.clear();
  s.last_stores = state_->last_stores.any() ? &state_->last_stores : nullptr;
  if (s.races) begin_launch(*s.races, s);
  state_->spent += launch_cost;
  ++state_->launches;
  if (options.total_budget && state_->spent > options.total_budget) {
    const auto finding = s.finding("budget", "launches", 0, {s.at(0)}, {{"launches", state_->launches}});
    state_->findings.add(finding);
    return {Fault::launch_timeout, std::string(program.kernel) + ": ", finding};
  }
  s.spent_before = state_->spent;
  auto ran = run_launch(s, state_->crew, state_->counts, state_->coverages);
  state_->spent += s.executed;
  state_->clock += launch_cost + s.executed;
  return ran;
}

void Device::configure(const Options& changed) {
  options = changed;
  state_->spent = state_->launches = 0;
}

std::vector<Finding> Device::take_findings() { return state_->findings.take(); }
std::vector<LineCount> Device::take_counts() { return std::exchange(state_->counts, {}); }
std::vector<Coverage> Device::take_coverage() {
  std::vector<Coverage> taken;
  for (auto& [_, coverage] : std::exchange(state_->coverages, {})) taken.push_back(std::move(coverage));
  return taken;
}

void Device::limit_heap(std::size_t bytes) { state_->memory.heap_limit = bytes; }

void Device::reset() {
  state_->modules.clear();
  state_->memory.reset();
  state_->last_stores.watch({});
  state_->findings.take();
  state_->counts.clear();
  state_->coverages.clear();
}

}  // namespace sim
