#include "program.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "../capability.h"

namespace sim {
namespace {

constexpr std::size_t most_entries = 100'000;

// Names come from the program: keep what an identifier can hold.
std::string identifier(std::string_view name) {
  std::string clean;
  for (const char c : name.substr(0, 64)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') clean += c;
  }
  return clean;
}

std::string printable(std::string_view text) {
  std::string clean(text.substr(0, 500));
  std::ranges::replace_if(clean, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return clean;
}

std::string dimensions(const Dim3& d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

bool on_device(Address at) { return at >= device_arena && at < shared_arena; }
bool in_arena(Address at) { return at >= device_arena && at < shared_arena + (Address{1} << 44); }

bool answered(Ask ask) {
  switch (ask) {
    case Ask::register_fatbin:
    case Ask::register_kernel:
    case Ask::register_variable:
    case Ask::launch:
    case Ask::host_function_done:
    case Ask::unsupported:
    case Ask::host_access:
    case Ask::tensor_unwritten:
    case Ask::host_coverage: return false;
    default: return true;
  }
}

// Calls that a program with a sticky error may still make.
bool survives_fault(Ask ask) {
  return ask == Ask::hello || ask == Ask::last_error || ask == Ask::reset || ask == Ask::memory_info;
}

}  // namespace

Program::Program(int descriptor, const World& world) : world_(world), channel_(descriptor, frame_limit, false) {
  world_.device.limit_heap(default_heap);
}

Program::~Program() {
  forget_launch_error();
  if (fault_.code != success && !fault_seen_) unchecked("at_the_end", fault_);
  for (const auto& [base, space] : allocations_) {
    if (world_.policy.leak_check) {
      const auto found = world_.device.find(base);
      world_.report.finding("leak", "at_the_end", {{"bytes", found ? found->size : 0}, {"address", base}});
    }
    world_.device.release(base);
  }
  for (const auto& [number, module] : modules_) {
    if (module.id) world_.device.unload(*module.id);
  }
}

bool Program::serve() {
  try {
    const bool open = channel_.fill();
    while (const auto frame = channel_.next()) handle(*frame);
    return open;
  } catch (const Disconnected&) {
  } catch (const Malformed& what) {
    world_.report.forged(std::string("the program sent the simulator something that no CUDA runtime sends: ") +
                         what.what());
  }
  return false;
}

void Program::finish() {
  try {
    timeline_.drain();
  } catch (const Disconnected&) {
  } catch (const Malformed& what) {
    world_.report.forged(std::string("the program answered the simulator with nonsense: ") + what.what());
  }
}

Program::Held Program::held() const {
  Held all{allocations_.size()};
  for (const auto& [base, space] : allocations_) {
    if (const auto found = world_.device.find(base)) all.bytes += found->size;
  }
  return all;
}

void Program::handle(std::span<const std::byte> frame) {
  Reader in(frame);
  const auto ask = static_cast<Ask>(in.take<std::uint32_t>());
  const auto call = identifier(in.text());
  if (greeted_ == (ask == Ask::hello)) throw Malformed("a greeting out of turn");
  if (answered(ask)) {
    answer(ask, call, in);
  } else {
    notify(ask, call, in);
  }
  settle();
}

void Program::settle() {
  if (!world_.policy.late_streams || timeline_.overfull()) timeline_.drain();
}

void Program::notify(Ask ask, std::string_view call, Reader& in) {
  switch (ask) {
    case Ask::register_fatbin: return register_fatbin(in);
    case Ask::register_kernel:
    case Ask::register_variable: {
      auto& table = ask == Ask::register_kernel ? kernels_ : variables_;
      const auto module = in.take<std::uint32_t>();
      const auto shadow = in.take<std::uint64_t>();
      if (table.size() >= most_entries || !modules_.contains(module)) throw Malformed("a kernel without a module");
      table[shadow] = {module, std::string(in.text())};
      return;
    }
    case Ask::launch: launch(call, in); return;
    case Ask::unsupported: return world_.report.gap({Gap::Kind::call, std::string(call)});
    case Ask::host_access: {
      const auto address = in.take<std::uint64_t>();
      Facts facts;
      const auto how = in.take<HostAccess>();
      for (const char* name : {"function", "library"}) {
        if (auto text = printable(in.text()); !text.empty()) facts.emplace_back(name, std::move(text));
      }
      if (how == HostAccess::early_read || how == HostAccess::early_write)
        return host_races_.accessed(world_.report, timeline_, address, how == HostAccess::early_write, world_.device,
                                    std::move(facts));
      facts.emplace(facts.begin(), "address", address);
      const char* reason = how == HostAccess::as_source   ? "as_source"
                           : how == HostAccess::as_target ? "as_target"
                                                          : "host_code";
      return world_.report.finding("device_pointer_on_host", reason, std::move(facts));
    }
    case Ask::tensor_unwritten: {
      const auto from = rows(in);
      const auto reader = printable(in.text());
      auto file = printable(in.text());
      return tell_unwritten("read_by_pytorch", reader, from, std::move(file), in.take<std::uint32_t>());
    }
    case Ask::host_coverage: {
      for (auto n = in.take<std::uint32_t>(); n; --n) {
        HostSite site;
        for (auto& code : site.at) code = in.take<std::uint64_t>();
        site.number = in.take<std::uint32_t>();
        for (auto* flag : {&site.compares, &site.below, &site.equal, &site.above}) *flag = in.take<std::uint8_t>() != 0;
        for (auto* extreme : {&site.a_low, &site.a_high, &site.b_low, &site.b_high}) *extreme = in.take<std::int64_t>();
        if (world_.device.options.coverage) world_.report.reach(site);
      }
      return;
    }
    default: throw Malformed("an answer to nothing");
  }
}

void Program::answer(Ask ask, std::string_view call, Reader& in) {
  waiting_ = true;
  Writer result(success);
  std::uint32_t code = success;
  if (fault_.code != success && !survives_fault(ask)) {
    code = fault_.code;
  } else {
    try {
      perform(ask, call, in, result);
    } catch (const Failed& failed) {
      code = failed.code;
    } catch (const UnknownHandle&) {
      code = invalid_resource_handle;
    } catch (const Capturing&) {
      code = capture_unsupported;
    } catch (const Unmatched&) {
      code = capture_unmatched;
    }
    if (fault_.code != success && !survives_fault(ask)) code = fault_.code;
  }
  if (code != success && code != not_ready) world_.report.error(call, code);
  if (fault_.code != success && code == fault_.code) {
    fault_seen_ = true;
    code |= sticky_error;
  }
  result.become(code);
  send(result);
  waiting_ = false;
}

void Program::send(Writer& result) {
  if (!printed_.empty()) {
    channel_.send(Writer(printed_text).text(std::exchange(printed_, {})).frame());
  }
  channel_.send(result.frame());
}

void Program::perform(Ask ask, std::string_view call, Reader& in, Writer& result) {
  const auto u64 = [&] { return in.take<std::uint64_t>(); };
  switch (ask) {
    case Ask::hello:
      if (in.take<std::uint32_t>() != protocol_version) throw Malformed("a CUDA runtime of another version");
      greeted_ = true;
      channel_.send(Writer(success).put(world_.device_bytes).put(world_.shared_bytes).frame(),
                    world_.shared_descriptor);
      return;
    case Ask::kernel_info: {
      const auto function = u64();
      const auto [kernel, info] = target(function);
      result.put(info.parameter_bytes).put(static_cast<std::uint32_t>(info.parameters.size()));
      for (const auto& parameter : info.parameters) result.put(parameter.offset).put(parameter.size);
      const auto asked = kernels_.at(function).dynamic_shared_limit;
      result.put(std::uint64_t{info.static_shared}).put(std::uint64_t{info.local_bytes});
      result.put(std::min(info.max_threads, limits::most_threads(info.registers))).put(info.registers);
      result.put(asked != 0 ? asked : limits::shared_bytes - std::min(limits::shared_bytes, info.static_shared));
      return;
    }
    case Ask::symbol: {
      const auto [address, size] = symbol(u64());
      result.put(address).put(static_cast<std::uint64_t>(size));
      return;
    }
    case Ask::part_of_symbol: {
      const auto variable = u64();
      const auto offset = u64();
      const auto bytes = u64();
      const auto [address, size] = symbol(variable);
      if (offset > size || bytes > size - offset) {
        world_.report.finding("memcpy_overflow", "part_of_variable",
                              {{"call", std::string(call)},
                               {"bytes", bytes},
                               {"offset", offset},
                               {"variable", variables_.at(variable).name},
                               {"size", size}});
        throw Failed{invalid_value};
      }
      result.put(address + offset);
      return;
    }
    case Ask::allocate: {
      const auto bytes = u64();
      const auto space = in.take<std::uint8_t>();
      if (space > static_cast<std::uint8_t>(Space::pinned)) throw Malformed("a kind of memory that does not exist");
      result.put(allocate(bytes, static_cast<Space>(space), true));
      return;
    }
    case Ask::allocate_async: {
      const auto bytes = u64();
      const auto stream = u64();
      const bool captured = timeline_.capture(stream) != 0;  // throws for one that does not exist
      const auto base = allocate(bytes, Space::device, false);
      timeline_.enqueue(stream, [this, base, bytes, captured, call = std::string(call)] {
        if (captured) allocations_[base] = Space::device;  // at every launch of the graph, at the same address
        if (allocations_.contains(base)) world_.device.make_ready(base);
        touched(call, {base, bytes, bytes, 1}, true);
      });
      result.put(base);
      return;
    }
    case Ask::release: {
      const auto base = u64();
      if (!timeline_.capturing()) timeline_.synchronize();
      return release(call, base, in.take<std::uint8_t>() != 0, !timeline_.capturing());
    }
    case Ask::release_async: {
      const auto base = u64();
      return timeline_.enqueue(u64(), [this, base, name = std::string(call)] {
        try {
          const auto found = world_.device.find(base);
          if (found && found->base == base) touched(name, {base, found->size, found->size, 1}, true);
          release(name, base, false);
        } catch (const Failed&) {  // found out too late for the call to say so; the finding does
        }
      });
    }
    case Ask::copy_in: return copy_in(call, in);
    case Ask::copy_out: return copy_out(call, in, result);
    case Ask::read_tensor: return read_tensor(call, in, result);
    case Ask::copy: return copy(call, in);
    case Ask::fill: return fill(call, in);
    case Ask::launch_checked:
      if (const auto code = launch(call, in); code != success) {
        launch_error_ = {};  // the call itself returns it
        throw Failed{code};
      }
      return;
    case Ask::stream_create: result.put(timeline_.create_stream((in.take<std::uint32_t>() & 1) == 0)); return;
    case Ask::stream_destroy: return timeline_.destroy_stream(u64());
    case Ask::stream_synchronize: return timeline_.synchronize(u64());
    case Ask::stream_wait: {
      const auto stream = u64();
      return timeline_.wait(stream, u64());
    }
    case Ask::device_synchronize:
      if (timeline_.capturing()) throw Capturing{};
      return timeline_.synchronize();
    case Ask::event_create:
      in.take<std::uint32_t>();
      result.put(timeline_.create_event());
      return;
    case Ask::event_destroy: return timeline_.destroy_event(u64());
    case Ask::event_record: {
      const auto event = u64();
      return timeline_.record(event, u64());
    }
    case Ask::event_synchronize: return timeline_.synchronize_event(u64());
    case Ask::event_elapsed: {
      const auto start = u64();
      const auto end = u64();
      const auto milliseconds = timeline_.elapsed(start, end);
      if (!milliseconds) throw Failed{invalid_resource_handle};
      result.put(*milliseconds);
      return;
    }
    case Ask::host_function: {
      const auto stream = u64();
      const auto function = u64();
      const auto argument = u64();
      ++with_host_;
      timeline_.enqueue(stream, [this, function, argument] { call_host(function, argument); });
      return settle();  // while the program is there to run it
    }
    case Ask::last_error: {
      const bool keep = in.take<std::uint8_t>() != 0;
      result.put(fault_.code != success ? fault_.code : launch_error_.code);
      fault_seen_ = fault_.code != success;
      launch_error_.finding.reset();  // asked for
      if (!keep) launch_error_ = {};
      return;
    }
    case Ask::kernel_attribute: {
      const auto function = u64();
      const auto attribute = in.take<std::uint32_t>();
      const auto value = in.take<std::uint32_t>();
      const auto info = target(function).info;
      constexpr std::uint32_t dynamic_shared = 8;
      if (attribute != dynamic_shared) return;  // carve-outs and cluster preferences change no result
      if (std::uint64_t{value} + info.static_shared > limits::shared_optin_bytes) throw Failed{invalid_value};
      kernels_.at(function).dynamic_shared_limit = value;
      return;
    }
    case Ask::limit_heap: world_.device.limit_heap(in.take<std::uint64_t>()); return;
    case Ask::memory_info: {
      std::uint64_t used = 0;
      for (const auto& [base, space] : allocations_) {
        const auto found = world_.device.find(base);
        if (space != Space::pinned && found) used += found->size;
      }
      result.put(world_.device_bytes - std::min(used, world_.device_bytes));
      return;
    }
    case Ask::pointer: {
      const auto found = world_.device.find(u64());
      const bool live = found && found->live;
      result.put(live ? found->base : 0).put(std::uint64_t{live ? found->size : 0});
      result.put(live ? static_cast<std::uint8_t>(found->space) : std::uint8_t{0});
      return;
    }
    case Ask::not_waited: {
      const auto ranges = host_races_.ranges(timeline_);
      result.put(static_cast<std::uint32_t>(ranges.size()));
      for (const auto& [low, high, written] : ranges) result.put(low).put(high).put(std::uint8_t{written});
      return;
    }
    case Ask::capture_begin: return timeline_.begin_capture(u64());
    case Ask::capture_end:
      graphs_[next_graph_ += 16] = timeline_.end_capture(u64());
      result.put(next_graph_);
      return;
    case Ask::capture_status: {
      const auto id = timeline_.capture(u64());
      result.put(std::uint32_t{id != 0}).put(id);
      return;
    }
    case Ask::graph_instantiate: {
      const auto found = graphs_.find(u64());
      if (found == graphs_.end() || graphs_.size() >= most_entries) throw Failed{invalid_value};
      const auto graph = found->second;
      graphs_[next_graph_ += 16] = graph;
      result.put(next_graph_);
      return;
    }
    case Ask::graph_launch: {
      const auto found = graphs_.find(u64());
      if (found == graphs_.end()) throw Failed{invalid_value};
      timeline_.launch(found->second, u64());
      return settle();  // it may hold host functions
    }
    case Ask::graph_destroy:
      if (graphs_.erase(u64()) == 0) throw Failed{invalid_value};
      return;
    case Ask::graph_update: {
      const auto executable = graphs_.find(u64());
      const auto graph = graphs_.find(u64());
      if (executable == graphs_.end() || graph == graphs_.end()) throw Failed{invalid_value};
      if (!executable->second->like(*graph->second)) throw Failed{graph_update_failure};
      executable->second = graph->second;
      return;
    }
    case Ask::graph_nodes: {
      const auto found = graphs_.find(u64());
      if (found == graphs_.end()) throw Failed{invalid_value};
      result.put(std::uint64_t{found->second->nodes.size()});
      return;
    }
    case Ask::reset: return reset();
    default: throw Malformed("a question that does not exist");
  }
}

// --- modules ---

void Program::register_fatbin(Reader& in) {
  const auto number = in.take<std::uint32_t>();
  if (modules_.size() >= most_entries || modules_.contains(number)) throw Malformed("a module twice");
  auto& module = modules_[number];
  try {
    for (auto n = in.take<std::uint32_t>(); n; --n) module.code.push_back(code_of(in.bytes()));
  } catch (const FatbinError& error) {
    module = {.code = {}, .problem = error.what(), .id = {}};
    return;
  }
  if (world_.policy.open) return;
  std::erase_if(module.code, [](const DeviceCode& code) { return code.ptx.empty(); });
  for (auto& code : module.code) {
    const auto trusted = std::ranges::find(world_.trusted, code.ptx, &DeviceCode::ptx);
    if (trusted == world_.trusted.end()) {
      module = {};
      return world_.report.forged(
          "the program registered device code that is not in the library that was built from its source");
    }
    code = *trusted;
  }
}

ModuleId Program::load(std::uint32_t number, const std::string& user) {
  auto& module = modules_.at(number);
  if (module.id) return *module.id;
  std::vector<std::string_view> units;
  for (const auto& code : module.code) {
    if (!code.ptx.empty()) units.push_back(code.ptx);
  }
  if (module.problem.empty() && units.empty())
    module.problem = "no PTX for this kernel; compile it with -gencode arch=compute_80,code=compute_80: " + user;
  if (module.problem.empty()) {
    try {
      module.id = world_.device.load(units);
      return *module.id;
    } catch (const Refusal& refusal) {
      module.problem = refusal.what();
    }
  }
  world_.report.gap({Gap::Kind::code, module.problem});
  throw Failed{units.empty() ? std::uint32_t{no_kernel_image} : std::uint32_t{not_supported}};
}

Program::Target Program::target(std::uint64_t host_function) {
  const auto found = kernels_.find(host_function);
  if (found == kernels_.end()) throw Failed{invalid_device_function};
  const auto* kernel = world_.device.kernel(load(found->second.module, found->second.name), found->second.name);
  if (kernel == nullptr) throw Failed{invalid_device_function};
  auto [info, fresh] = infos_.try_emplace(kernel);
  if (fresh) {
    info->second = world_.device.info(kernel);
    for (const auto& code : modules_.at(found->second.module).code) {
      const auto registers = code.registers.find(found->second.name);
      if (registers == code.registers.end()) continue;
      info->second.registers = registers->second;  // after a device link, which stands first
      break;
    }
  }
  return {kernel, info->second};
}

Symbol Program::symbol(std::uint64_t host_variable) {
  const auto found = variables_.find(host_variable);
  if (found == variables_.end()) throw Failed{invalid_symbol};
  const auto place = world_.device.symbol(load(found->second.module, found->second.name), found->second.name);
  if (!place) throw Failed{invalid_symbol};
  return *place;
}

// --- kernels ---

Program::Invalid Program::why_invalid(const Launch& launch, const KernelInfo& info, std::uint32_t dynamic_limit,
                                      std::uint32_t& code) const {
  code = invalid_configuration;
  const auto& [grid, block] = std::pair(launch.grid, launch.block);
  const Facts blocks_of_grid{{"blocks", dimensions(grid)}}, threads_of_block{{"threads", dimensions(block)}};
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return {"empty_grid", blocks_of_grid};
  if (block.x == 0 || block.y == 0 || block.z == 0) return {"empty_block", threads_of_block};
  if (grid.x > limits::grid[0] || grid.y > limits::grid[1] || grid.z > limits::grid[2])
    return {"large_grid", blocks_of_grid};
  if (block.x > limits::block[0] || block.y > limits::block[1] || block.z > limits::block[2] ||
      std::uint64_t{block.x} * block.y * block.z > limits::block_threads)
    return {"large_block", threads_of_block};
  const auto threads = block.x * block.y * block.z;
  if (threads > info.max_threads) {
    code = launch_out_of_resources;
    return {"launch_bounds", {{"threads", threads}, {"most", info.max_threads}}};
  }
  if (threads > limits::most_threads(info.registers)) {
    code = launch_out_of_resources;
    return {"registers", {{"threads", threads}, {"registers", info.registers}, {"most", limits::registers}}};
  }
  code = invalid_value;
  const auto allowed =
      dynamic_limit != 0 ? dynamic_limit : limits::shared_bytes - std::min(limits::shared_bytes, info.static_shared);
  if (launch.dynamic_shared > allowed) {
    return {"shared_memory",
            {{"dynamic", launch.dynamic_shared},
             {"static", info.static_shared},
             {"allowed", allowed},
             {"most", limits::shared_optin_bytes}}};
  }
  if (info.static_shared > limits::shared_bytes) return {"static_shared_memory"};
  const auto resident = limits::resident_blocks(threads, info.registers, info.static_shared + launch.dynamic_shared);
  const auto blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (launch.cooperative && blocks > std::uint64_t{resident} * limits::multiprocessors) {
    code = cooperative_too_large;
    return {"crowded_grid", too_many_blocks(blocks, resident)};
  }
  code = success;
  return {""};
}

std::uint32_t Program::launch(std::string_view call, Reader& in) {
  Launch launch;
  const auto function = in.take<std::uint64_t>();
  for (auto* dimension : {&launch.grid, &launch.block}) {
    *dimension = {in.take<std::uint32_t>(), in.take<std::uint32_t>(), in.take<std::uint32_t>()};
  }
  const auto shared = in.take<std::uint64_t>();
  launch.dynamic_shared = static_cast<std::uint32_t>(std::min<std::uint64_t>(shared, 0xFFFF'FFFF));
  launch.stream = in.take<std::uint64_t>();
  launch.cooperative = in.take<std::uint8_t>() != 0;
  launch.early = in.take<std::uint8_t>() != 0;
  const auto parameters = in.bytes();
  launch.parameters.assign(parameters.begin(), parameters.end());
  if (fault_.code != success) return fault_.code;

  std::uint32_t code = success;
  Finding why{"invalid_launch"};
  bool reported = true;
  try {
    const auto [kernel, info] = target(function);
    if (parameters.size() != info.parameter_bytes) throw Malformed("arguments that do not fit the kernel");
    why.kernel = info.name;
    launch.kernel = kernel;
    launch.registers = info.registers;
    auto [reason, facts] = why_invalid(launch, info, kernels_.at(function).dynamic_shared_limit, code);
    why.reason = reason;
    why.facts = std::move(facts);
    if (code == success) {
      with_host_ += host_sees_memory_;
      timeline_.enqueue(launch.stream, [this, launch] { run(launch); }, sizeof launch + parameters.size());
      return success;
    }
  } catch (const Failed& failed) {
    code = failed.code;
    why.reason = "no_code";
    reported = false;
  } catch (const UnknownHandle&) {
    code = invalid_resource_handle;
    why.reason = "no_stream";
  } catch (const Capturing&) {
    code = capture_unsupported;
    why.reason = "full_graph";
    reported = false;
  }
  if (reported) world_.report.finding(why);
  why.facts.emplace_back("subject", why.kernel.empty() ? "a kernel" : why.kernel);
  world_.report.error(call, code);
  world_.report.failure({code, "", why});
  forget_launch_error();
  launch_error_ = {code, "", std::move(why)};
  return code;
}

void Program::run(const Launch& launch) {
  if (fault_.code != success) return;
  try {
    note_arguments(launch);
    ++world_.report.launches;
    ++world_.report.launched[world_.device.info(launch.kernel).name];
    auto ran = world_.device.launch(launch);
    world_.report.kernel_nanoseconds += ran.nanoseconds;
    host_races_.add(timeline_, world_.device.take_host_visible());
    if (timeline_.several_streams() && ran.fault == Fault::none)
      stream_races_.add(world_.report, timeline_, world_.device.footprint());
    if (world_.policy.prints) printed_ += ran.printed;
    world_.report.print(ran.printed);
    if (ran.gap) world_.report.gap(*ran.gap);
    if (ran.fault != Fault::none) fail({static_cast<std::uint32_t>(ran.fault), ran.message, ran.finding});
  } catch (const Refusal& refusal) {
    world_.report.gap(refusal.gap);
    fail({not_supported, refusal.what()});
  }
}

void Program::note_arguments(const Launch& launch) {
  const auto& all = launch.parameters;
  for (std::size_t at = 0; at + sizeof(Address) <= all.size(); at += sizeof(Address)) {
    Address value;
    std::memcpy(&value, all.data() + at, sizeof value);
    if (!in_arena(value)) continue;
    const auto allocation = world_.device.find(value);
    if (!allocation || receivers_.contains(allocation->base)) continue;
    receivers_[allocation->base] = {world_.device.info(launch.kernel).name, launch.grid, launch.block};
  }
}

void Program::call_host(std::uint64_t function, std::uint64_t argument) {
  if (!waiting_)
    return world_.report.gap({Gap::Kind::code, "a host function in a stream that the program does not wait for"});
  Writer ask(host_call);
  ask.put(function).put(argument);
  send(ask);
  Reader reply(channel_.wait());
  if (static_cast<Ask>(reply.take<std::uint32_t>()) != Ask::host_function_done) {
    throw Malformed("a call from within a host function");
  }
  timeline_.host_waits_for_now();  // it may: the function can tell it by any variable
}

// --- memory ---

Address Program::allocate(std::uint64_t bytes, Space space, bool ready) {
  if (bytes > std::max(world_.device_bytes, world_.shared_bytes) || allocations_.size() >= most_entries)
    throw Failed{memory_allocation};
  const auto base = world_.device.allocate(bytes, space, ready);
  if (base == 0) throw Failed{memory_allocation};
  allocations_[base] = space;
  host_sees_memory_ |= space != Space::device;
  return base;
}

Program::Rows Program::rows(Reader& in) const {
  Rows rows{};
  rows.at = in.take<std::uint64_t>();
  rows.pitch = in.take<std::uint64_t>();
  rows.width = in.take<std::uint64_t>();
  rows.height = in.take<std::uint64_t>();
  std::uint64_t span;
  if (rows.pitch < rows.width || __builtin_mul_overflow(rows.pitch, rows.height, &span)) throw Failed{invalid_value};
  if (rows.width == 0 || rows.height == 0) return {rows.at, 0, 0, 0};
  if (rows.pitch == rows.width) return {rows.at, span, span, 1};
  return rows;
}

void Program::check(std::string_view call, const Rows& rows, std::uint64_t extent, bool writes) {
  extent = std::max(extent, rows.width == 0 || rows.height == 0 ? 0 : rows.pitch * (rows.height - 1) + rows.width);
  if (extent == 0) return;
  const auto found = world_.device.find(rows.at);
  const auto tell = [&](const char* kind, const char* reason, const Facts& more = {}) {
    Facts facts{{"call", std::string(call)}, {"does", writes ? "writes" : "reads"}, {"bytes", extent}};
    facts.insert(facts.end(), more.begin(), more.end());
    world_.report.finding(kind, reason, std::move(facts));
  };
  if (found && found->live) {
    const auto offset = rows.at - found->base;
    if (extent <= found->size - std::min<std::uint64_t>(offset, found->size)) {
      if (writes && found->constant) tell("const_input", "copy", {{"array", world_.device.name(found->base)}});
      return;
    }
    tell("memcpy_overflow", "of_allocation", {{"offset", offset}, {"size", found->size}});
  } else {
    for (const auto& [shadow, variable] : variables_) {
      const auto module = modules_.find(variable.module);
      if (module == modules_.end() || !module->second.id) continue;
      const auto place = world_.device.symbol(*module->second.id, variable.name);
      if (!place || rows.at < place->address || rows.at >= place->address + place->size) continue;
      if (extent <= place->size - (rows.at - place->address)) return;
      tell("memcpy_overflow", "of_variable",
           {{"offset", rows.at - place->address}, {"variable", variable.name}, {"size", place->size}});
      throw Failed{invalid_value};
    }
    if (found) {
      tell("use_after_free", "copy");
    } else if (in_arena(rows.at)) {
      tell("memcpy_overflow", "nowhere", {{"address", rows.at}});
    } else {
      tell("host_pointer", "copy");
    }
  }
  throw Failed{invalid_value};
}

void Program::copy_in(std::string_view call, Reader& in) {
  const auto stream = in.take<std::uint64_t>();
  const auto to = rows(in);
  const auto extent = in.take<std::uint64_t>();
  const bool wait = in.take<std::uint8_t>() != 0;
  const auto data = in.bytes();
  check(call, to, extent, true);
  if (data.size() != to.width * to.height) throw Malformed("a copy of another size than its data");
  if (timeline_.capture(stream) != 0) {  // a graph would read the host's memory anew at every launch
    world_.report.gap({Gap::Kind::code, std::string(call) + " from pageable memory in a captured stream"});
    throw Failed{not_supported};
  }
  auto held = std::make_shared<const std::vector<std::byte>>(data.begin(), data.end());
  ++world_.report.copies;
  ++world_.report.host_copies;
  ++with_host_;
  world_.report.copied_bytes += data.size();
  timeline_.enqueue(
      stream,
      [this, to, held, call = std::string(call)] {
        if (fault_.code != success) return;
        const std::span all(*held);
        for (std::uint64_t row = 0; row < to.height; ++row) {
          if (!world_.device.write(to.at + row * to.pitch, all.subspan(row * to.width, to.width))) {
            return fail({illegal_address,
                         "a copy to the device into memory that is freed before it runs, or allocated behind it"});
          }
        }
        touched(call, to, true);
      },
      data.size());
  if (wait) timeline_.synchronize(stream);
}

void Program::copy_out(std::string_view call, Reader& in, Writer& result) {
  const auto stream = in.take<std::uint64_t>();
  const auto from = rows(in);
  check(call, from, in.take<std::uint64_t>(), false);
  timeline_.synchronize(stream);
  fetch(call, from, result);
  check_written(call, from);
}

void Program::read_tensor(std::string_view call, Reader& in, Writer& result) {
  const auto stream = in.take<std::uint64_t>();
  const auto from = rows(in);
  check(call, from, 0, false);
  timeline_.synchronize(stream);  // what is still to run may write there
  result.put(unwritten(from).bytes);
  fetch(call, from, result);
}

void Program::fetch(std::string_view call, const Rows& from, Writer& result) {
  if (from.width * from.height > copy_chunk) throw Malformed("a copy of more than fits a frame");
  ++world_.report.copies;
  ++world_.report.host_copies;
  ++world_.report.fetches;
  ++with_host_;
  world_.report.copied_bytes += from.width * from.height;
  if (fault_.code != success) throw Failed{fault_.code};
  auto all = result.room(from.width * from.height);
  for (std::uint64_t row = 0; row < from.height; ++row) {
    if (!world_.device.read(from.at + row * from.pitch, all.subspan(row * from.width, from.width))) {
      throw Failed{illegal_address};
    }
  }
  touched(call, from, false);
}

void Program::copy(std::string_view call, Reader& in) {
  const auto stream = in.take<std::uint64_t>();
  Rows to{}, from{};
  to.at = in.take<std::uint64_t>();
  to.pitch = in.take<std::uint64_t>();
  from.at = in.take<std::uint64_t>();
  from.pitch = in.take<std::uint64_t>();
  to.width = from.width = in.take<std::uint64_t>();
  to.height = from.height = in.take<std::uint64_t>();
  const bool wait = in.take<std::uint8_t>() != 0;
  for (const auto& side : {to, from}) {
    std::uint64_t span;
    if (side.pitch < side.width || __builtin_mul_overflow(side.pitch, side.height, &span)) throw Failed{invalid_value};
  }
  if (to.width == 0 || to.height == 0) return;
  check(call, from, 0, false);
  check(call, to, 0, true);
  ++world_.report.copies;
  world_.report.copied_bytes += to.width * to.height;
  timeline_.enqueue(stream, [this, to, from, call = std::string(call)] {
    if (fault_.code != success) return;
    const bool whole = to.pitch == to.width && from.pitch == from.width;
    const auto width = whole ? to.width * to.height : to.width;
    for (std::uint64_t row = 0; row < (whole ? 1 : to.height); ++row) {
      if (width != 0 && !world_.device.copy(to.at + row * to.pitch, from.at + row * from.pitch, width)) {
        return fail(
            {illegal_address, "a copy on the device of memory that is freed before it runs, or allocated behind it"});
      }
    }
    if (!on_device(to.at)) check_written(call, from);
    touched(call, from, false);
    touched(call, to, true);
  });
  if (wait) timeline_.synchronize(stream);
}

void Program::fill(std::string_view call, Reader& in) {
  const auto stream = in.take<std::uint64_t>();
  const auto to = rows(in);
  const auto value = static_cast<std::byte>(in.take<std::uint8_t>());
  const bool wait = in.take<std::uint8_t>() != 0;
  check(call, to, 0, true);
  timeline_.enqueue(stream, [this, to, value, call = std::string(call)] {
    if (fault_.code != success) return;
    for (std::uint64_t row = 0; row < to.height; ++row) {
      if (to.width != 0 && !world_.device.fill(to.at + row * to.pitch, value, to.width)) {
        return fail({illegal_address, "cudaMemset of memory that is freed before it runs, or allocated behind it"});
      }
    }
    touched(call, to, true);
  });
  if (wait) timeline_.synchronize(stream);
}

Unwritten Program::unwritten(const Rows& from) const {
  Unwritten all;
  if (!world_.device.find(from.at)) return all;
  for (std::uint64_t row = 0; row < from.height; ++row) {
    const auto missing = world_.device.unwritten(from.at + row * from.pitch, from.width);
    if (all.bytes == 0) all.first = missing.first;
    all.bytes += missing.bytes;
  }
  return all;
}

void Program::check_written(std::string_view call, const Rows& from) {
  tell_unwritten("copied_out", call, from, "", 0);
}

void Program::tell_unwritten(const char* reason, std::string_view call, const Rows& from, std::string file,
                             std::uint32_t line) {
  const auto all = unwritten(from);
  const auto allocation = world_.device.find(from.at);
  if (all.bytes == 0 || !allocation) return;
  Finding finding{"uninit_global",
                  reason,
                  "",
                  std::move(file),
                  line,
                  {},
                  {{"call", std::string(call)},
                   {"bytes", all.bytes},
                   {"copied", from.width * from.height},
                   {"first", all.first - allocation->base},
                   {"size", allocation->size}},
                  Severity::warning};
  if (const auto receiver = receivers_.find(allocation->base); receiver != receivers_.end()) {
    const auto& [kernel, grid, block] = receiver->second;
    finding.facts.insert(finding.facts.end(),
                         {{"launch", kernel}, {"blocks", dimensions(grid)}, {"threads", dimensions(block)}});
  }
  world_.report.finding(std::move(finding));
}

void Program::touched(std::string_view call, const Rows& rows, bool writes) {
  const bool host_sees = in_arena(rows.at) && !on_device(rows.at);
  if (!(timeline_.several_streams() || host_sees) || !world_.device.options.racecheck) return;
  Footprint all;
  all.kernel = call;
  auto& list = writes ? all.writes : all.reads;
  if (rows.pitch == rows.width) {
    list.push_back({rows.at, rows.at + rows.width * rows.height, 0});
  } else {
    for (std::uint64_t row = 0; row < std::min<std::uint64_t>(rows.height, most_entries); ++row)
      list.push_back({rows.at + row * rows.pitch, rows.at + row * rows.pitch + rows.width, 0});
  }
  if (host_sees) host_races_.add(timeline_, all);
  if (timeline_.several_streams()) stream_races_.add(world_.report, timeline_, std::move(all));
}

void Program::release(std::string_view call, Address base, bool host, bool reuse) {
  const auto own = allocations_.find(base);
  if (own != allocations_.end() && (own->second == Space::pinned) == host) {
    allocations_.erase(own);
    receivers_.erase(base);
    world_.device.release(base, reuse);
    return;
  }
  const auto found = world_.device.find(base);
  world_.report.finding("double_free",
                        found && !found->live && found->base == base ? "freed_before"
                        : own == allocations_.end()                  ? "no_allocation"
                        : host                                       ? "for_cuda_free"
                                                                     : "for_cuda_free_host",
                        {{"call", std::string(call)}, {"address", base}});
  throw Failed{invalid_value};
}

// --- errors ---

void Program::fail(const Failure& failure) {
  if (fault_.code != success) return;
  fault_ = failure;
  world_.report.failure(fault_);
}

void Program::forget_launch_error() {
  if (launch_error_.finding) unchecked("of_a_launch", launch_error_);
  launch_error_ = {};
}

void Program::unchecked(const char* reason, const Failure& failure) {
  Finding finding = failure.finding.value_or(Finding{});
  const auto* text = error_text(failure.code);
  finding.facts.insert(finding.facts.end(), {{"error", text != nullptr ? text->name : "it"},
                                             {"message", failure.message},
                                             {"cause_kind", std::exchange(finding.kind, "unchecked_error")},
                                             {"cause_reason", std::exchange(finding.reason, reason)}});
  finding.kernel = finding.file = "";
  finding.line = 0;
  world_.report.finding(std::move(finding));
}

void Program::reset() {
  timeline_.synchronize();
  timeline_.clear();
  stream_races_.clear();
  host_races_.clear();
  graphs_.clear();
  for (const auto& [base, space] : allocations_) world_.device.release(base);
  allocations_.clear();
  receivers_.clear();
  infos_.clear();
  for (auto& [number, module] : modules_) {  // its variables start anew
    if (module.id) world_.device.unload(*std::exchange(module.id, {}));
  }
  for (auto& [function, kernel] : kernels_) kernel.dynamic_shared_limit = 0;
  fault_ = launch_error_ = {};
  fault_seen_ = false;
}

}  // namespace sim
