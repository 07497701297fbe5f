#include "judge.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace sim {
namespace {

constexpr std::size_t judge_frame_limit = (std::size_t{1} << 32) - 1;

// Sealed, or a program could shrink it under the device.
int shared_memory(std::uint64_t bytes) {
  const int descriptor = memfd_create("grader-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw std::system_error(errno, std::generic_category(), "no shared memory");
  }
  return descriptor;
}

void put_failure(Writer& result, const Failure& failure) {
  const auto* text = error_text(failure.code);
  result.put(failure.code).text(text != nullptr ? text->name : "cudaErrorUnknown").text(failure.message);
}

void put_gaps(Writer& result, const std::vector<Gap>& gaps) {
  result.put(static_cast<std::uint32_t>(gaps.size()));
  for (const auto& gap : gaps) {
    result.put(static_cast<std::uint32_t>(gap.kind)).text(gap.subject).text(gap.feature);
    result.text(gap.function).text(gap.file).put(gap.line);
  }
}

void put_texts(Writer& result, const std::vector<std::string>& texts) {
  result.put(static_cast<std::uint32_t>(texts.size()));
  for (const auto& text : texts) result.text(text);
}

void put_finding(Writer& result, const Finding& finding) {
  result.text(finding.tool).text(finding.kind).text(finding.kernel).text(finding.file).put(finding.line);
  result.text(finding.message).put(finding.count).put(static_cast<std::uint32_t>(finding.severity));
  result.put(static_cast<std::uint32_t>(finding.places.size()));
  for (const auto& lines : finding.places) {
    result.put(static_cast<std::uint32_t>(lines.size()));
    for (const auto& [file, line] : lines) result.text(file).put(line);
  }
}

void put_coverage(Writer& result, const Coverage& c) {
  const auto flag = [&](bool set) { result.put(static_cast<std::uint8_t>(set)); };
  result.text(c.kernel).put(c.fewest_blocks).put(c.most_blocks).put(c.threads).put(c.shared_bytes);
  result.put(static_cast<std::uint32_t>(c.ways.size()));
  for (const auto& way : c.ways) {
    result.put(way.number).text(way.file).put(way.line);
    for (const bool set : {way.taken, way.passed}) flag(set);
  }
  result.put(static_cast<std::uint32_t>(c.comparisons.size()));
  for (const auto& one : c.comparisons) {
    result.put(one.number).text(one.file).put(one.line);
    for (const bool set : {one.is_signed, one.equality, one.below, one.equal, one.above}) flag(set);
    result.put(one.a_low).put(one.a_high).put(one.b_low).put(one.b_high);
  }
}

void put_site(Writer& result, const HostSite& site) {
  for (const auto code : site.at) result.put(code);
  result.put(site.number);
  for (const bool set : {site.compares, site.below, site.equal, site.above}) result.put(static_cast<std::uint8_t>(set));
  result.put(site.a_low).put(site.a_high).put(site.b_low).put(site.b_high);
}

// A question that cannot be answered; the text goes to the judge.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

Judge::Judge(int descriptor, std::uint64_t device_bytes, std::uint64_t shared_bytes)
    : channel_(descriptor, judge_frame_limit, true),
      shared_descriptor_(shared_memory(shared_bytes)),
      device_bytes_(device_bytes),
      shared_bytes_(shared_bytes),
      device_(device_bytes, shared_descriptor_, shared_bytes) {}

Judge::~Judge() {
  programs_.clear();
  close(shared_descriptor_);
}

void Judge::serve() {
  try {
    while (true) {
      bool judge_ready = false;
      poll_programs(-1, judge_ready);
      if (!judge_ready) continue;
      const bool open = channel_.fill();
      while (const auto frame = channel_.next()) command(*frame);
      if (!open) return;
    }
  } catch (const Disconnected&) {}
}

void Judge::poll_programs(int timeout_ms, bool& judge_ready) {
  std::vector<pollfd> sockets{{channel_.descriptor(), POLLIN, 0}};
  for (const auto& program : programs_) sockets.push_back({program.descriptor(), POLLIN, 0});
  if (poll(sockets.data(), sockets.size(), timeout_ms) < 0) return;
  judge_ready = sockets[0].revents != 0;
  auto socket = std::next(sockets.begin());
  for (auto program = programs_.begin(); program != programs_.end(); ++socket) {
    if (socket->revents != 0 && !program->serve()) {
      program = programs_.erase(program);
    } else {
      ++program;
    }
  }
}

void Judge::drain() {
  while (true) {
    std::vector<pollfd> sockets;
    for (const auto& program : programs_) sockets.push_back({program.descriptor(), POLLIN, 0});
    if (poll(sockets.data(), sockets.size(), 0) <= 0) return;
    bool judge_ready = false;
    poll_programs(0, judge_ready);
  }
}

void Judge::command(std::span<const std::byte> frame) {
  Writer result(0);
  try {
    Reader in(frame);
    const auto what = static_cast<Command>(in.take<std::uint32_t>());
    perform(what, in, result);
  } catch (const std::runtime_error& error) {  // Refused, Refusal, Malformed, FatbinError
    result = Writer(1);
    result.text(error.what());
  }
  channel_.send(result.frame());
}

void Judge::perform(Command command, Reader& in, Writer& result) {
  const auto u64 = [&] { return in.take<std::uint64_t>(); };
  switch (command) {
    case Command::load: {
      const auto before = code_.size();
      load(std::string(in.text()));
      result.put(static_cast<std::uint32_t>(code_.size() - before));
      return;
    }
    case Command::load_ptx: code_.push_back({std::string(in.text()), {}}); return;
    case Command::allocate: {
      const auto bytes = u64();
      const auto base = device_.allocate(bytes, static_cast<Space>(in.take<std::uint8_t>()));
      if (base == 0) throw Refused("the simulated device has no room for " + std::to_string(bytes) + " bytes");
      device_.surround(base, bytes);
      result.put(base);
      return;
    }
    case Command::release:
      if (!device_.release(u64(), true)) throw Refused("not the start of a live allocation");
      return;
    case Command::write: {
      const auto to = u64();
      if (!device_.write(to, in.bytes())) throw Refused("a write outside any live allocation");
      return;
    }
    case Command::read: {
      const auto from = u64();
      const auto bytes = u64();
      if (bytes > judge_frame_limit / 2) throw Refused("a read of more than fits a frame");
      if (!device_.read(from, result.room(bytes))) throw Refused("a read outside any live allocation");
      return;
    }
    case Command::fill: {
      const auto to = u64();
      const auto bytes = u64();
      if (!device_.fill(to, static_cast<std::byte>(in.take<std::uint8_t>()), bytes)) {
        throw Refused("a fill outside any live allocation");
      }
      return;
    }
    case Command::launch: return launch(in, result);
    case Command::synchronize:
      drain();
      for (auto& program : programs_) program.finish();
      put_failure(result, std::exchange(report_.first_failure, {}));
      return;
    case Command::take_findings: {
      const auto seen = device_.take_findings();
      const auto own = std::exchange(report_.findings, {});
      result.put(static_cast<std::uint32_t>(seen.size() + own.size()));
      for (const auto& finding : seen) put_finding(result, finding);
      for (const auto& finding : own) put_finding(result, finding);
      return;
    }
    case Command::take_counts: {
      const auto counts = device_.take_counts();
      result.put(static_cast<std::uint32_t>(counts.size()));
      for (const auto& line : counts) {
        result.text(line.kernel).text(line.file).put(line.line);
        for (const auto n : {line.instructions, line.lanes, line.global_requests, line.global_sectors,
                             line.minimal_sectors, line.global_bytes, line.shared_requests, line.shared_wavefronts,
                             line.minimal_wavefronts, line.barriers, line.undefined_lanes}) {
          result.put(n);
        }
      }
      return;
    }
    case Command::take_coverage: {
      const auto kernels = device_.take_coverage();
      result.put(static_cast<std::uint32_t>(kernels.size()));
      for (const auto& kernel : kernels) put_coverage(result, kernel);
      const auto reached = std::exchange(report_.reached, {});
      result.put(static_cast<std::uint32_t>(reached.size()));
      for (const auto& [_, site] : reached) put_site(result, site);
      return;
    }
    case Command::take_printed: result.text(std::exchange(report_.printed, {})); return;
    case Command::take_unsupported: return put_gaps(result, std::exchange(report_.unsupported, {}));
    case Command::take_tampering: return put_texts(result, std::exchange(report_.tampering, {}));
    case Command::take_errors: {
      const auto errors = std::exchange(report_.errors, {});
      result.put(static_cast<std::uint32_t>(errors.size()));
      for (const auto& [call, code] : errors) result.text(call).put(code);
      return;
    }
    case Command::configure:
      configure(in);
      result.put(judge_protocol_version);
      return;
    case Command::add_client: {
      const int socket = channel_.take_descriptor();
      if (socket < 0) throw Refused("no socket came with the question");
      programs_.emplace_back(socket,
                             World{device_, report_, policy_, code_, shared_descriptor_, device_bytes_, shared_bytes_});
      return;
    }
    case Command::reset:
      programs_.clear();
      device_.reset();
      code_.clear();
      modules_.clear();
      report_ = {};
      return;
    case Command::statistics: {
      result.put(report_.launches).put(report_.kernel_nanoseconds).put(report_.copies).put(report_.copied_bytes);
      Program::Held all;
      std::uint64_t crossings = 0;
      for (const auto& program : programs_) {
        const auto held = program.held();
        crossings += program.crossings();
        all.allocations += held.allocations;
        all.bytes += held.bytes;
      }
      result.put(report_.host_copies).put(all.allocations).put(all.bytes).put(crossings);
      result.put(static_cast<std::uint32_t>(report_.launched.size()));
      for (const auto& [kernel, times] : report_.launched) result.text(kernel).put(times);
      return;
    }
    case Command::set_constant: {
      const auto base = u64();
      const bool constant = in.take<std::uint8_t>() != 0;
      if (!device_.set_constant(base, in.text(), constant)) throw Refused("not the start of a live allocation");
      return;
    }
  }
  throw Refused("a question that does not exist");
}

void Judge::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw Refused("cannot read " + path);
  auto found = code_of_elf(std::as_bytes(std::span(content)));
  std::ranges::move(found, std::back_inserter(code_));
}

void Judge::launch(Reader& in, Writer& result) {
  while (modules_.size() < code_.size()) modules_.push_back(device_.load(code_[modules_.size()].ptx));
  const std::string name(in.text());
  Launch launch;
  for (const auto module : modules_) {
    if (launch.kernel == nullptr) launch.kernel = device_.kernel(module, name);
  }
  if (launch.kernel == nullptr) throw Refused("no kernel " + name + " in what was loaded");
  for (auto* dimension : {&launch.grid, &launch.block}) {
    *dimension = {in.take<std::uint32_t>(), in.take<std::uint32_t>(), in.take<std::uint32_t>()};
  }
  launch.dynamic_shared = static_cast<std::uint32_t>(in.take<std::uint64_t>());
  launch.cooperative = in.take<std::uint8_t>() != 0;
  const auto info = device_.info(launch.kernel);
  if (in.take<std::uint32_t>() != info.parameters.size()) {
    throw Refused(name + " takes " + std::to_string(info.parameters.size()) + " arguments");
  }
  launch.parameters.resize(info.parameter_bytes);
  for (const auto& parameter : info.parameters) {
    const auto argument = in.bytes();
    if (argument.size() != parameter.size) {
      throw Refused("the argument at offset " + std::to_string(parameter.offset) + " of " + name + " has " +
                    std::to_string(parameter.size) + " bytes, not " + std::to_string(argument.size()));
    }
    std::memcpy(launch.parameters.data() + parameter.offset, argument.data(), argument.size());
  }
  ++report_.launches;
  ++report_.launched[name];
  const auto ran = device_.launch(launch);
  report_.kernel_nanoseconds += ran.nanoseconds;
  if (ran.gap) throw Refused(ran.message);
  put_failure(result, {static_cast<std::uint32_t>(ran.fault), ran.message});
  result.text(ran.printed);
}

void Judge::configure(Reader& in) {
  Options options;
  for (auto* checker : {&options.memcheck, &options.initcheck, &options.racecheck, &options.synccheck,
                        &options.counters, &options.overflow, &options.coverage}) {
    *checker = in.take<std::uint8_t>() != 0;
  }
  options.instruction_budget = in.take<std::uint64_t>();
  options.total_budget = in.take<std::uint64_t>();
  options.progress_budget = in.take<std::uint64_t>();
  options.order = static_cast<Order>(in.take<std::uint8_t>());
  options.seed = in.take<std::uint64_t>();
  options.threads = in.take<std::uint32_t>();
  device_.configure(options);
  policy_.late_streams = in.take<std::uint8_t>() != 0;
  policy_.open = in.take<std::uint8_t>() != 0;
  policy_.leak_check = in.take<std::uint8_t>() != 0;
}

}  // namespace sim
