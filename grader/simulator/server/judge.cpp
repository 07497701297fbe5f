#include "judge.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "wire.h"

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

Outcome outcome(Failure failure, std::string printed = {}) {
  const auto* text = error_text(failure.code);
  return {failure.code, text != nullptr ? text->name : "cudaErrorUnknown", std::move(failure.message),
          std::move(failure.finding), std::move(printed)};
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
      device_(device_bytes, shared_descriptor_, shared_bytes) {
  add_commands();
}

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
    const auto number = in.take<std::uint32_t>();
    if (number >= commands_.size()) throw Refused("a question that does not exist");
    commands_[number](in, result);
  } catch (const std::runtime_error& error) {  // Refused, Refusal, Malformed, FatbinError
    result = Writer(1);
    result.text(error.what());
  }
  channel_.send(result.frame());
}

template <class F> void Judge::add(const char* name, F perform) {
  const auto typed = [&]<class Result, class... Field>(const std::function<Result(Field...)>& function) {
    std::string fields;
    ((fields += (fields.empty() ? "" : ",") + name_of<std::decay_t<Field>>()), ...);
    names_.append(name).append("(").append(fields).append(")->").append(name_of<Result>()).append("\n");
    commands_.push_back([function](Reader& in, Writer& result) {
      std::tuple<std::decay_t<Field>...> values{take<std::decay_t<Field>>(in)...};
      if constexpr (std::is_void_v<Result>) {
        std::apply(function, std::move(values));
      } else {
        put(result, std::apply(function, std::move(values)));
      }
    });
  };
  typed(std::function(std::move(perform)));
}

void Judge::add_commands() {
  using Bytes = std::span<const std::byte>;
  add("describe", [this] { return names_; });
  add("load", [this](const std::string& path) { return load(path); });
  add("load_ptx", [this](std::string text) { code_.push_back({std::move(text), {}}); });
  add("allocate", [this](std::uint64_t bytes, Space space) {
    const auto base = device_.allocate(bytes, space);
    if (base == 0) throw Refused("the simulated device has no room for " + std::to_string(bytes) + " bytes");
    device_.surround(base, bytes);
    return base;
  });
  add("renew", [this](Address base) {
    if (!device_.renew(base)) throw Refused("not the start of a live allocation");
  });
  add("release", [this](Address base) {
    if (!device_.release(base, true)) throw Refused("not the start of a live allocation");
  });
  add("write", [this](Address to, Bytes data) {
    if (!device_.write(to, data)) throw Refused("a write outside any live allocation");
  });
  add("read", [this](Address from, std::uint64_t bytes) {
    if (bytes > judge_frame_limit / 2) throw Refused("a read of more than fits a frame");
    return Content{bytes, [this, from](std::span<std::byte> to) {
                     if (!device_.read(from, to)) throw Refused("a read outside any live allocation");
                   }};
  });
  add("fill", [this](Address to, std::uint64_t bytes, std::uint8_t value) {
    if (!device_.fill(to, static_cast<std::byte>(value), bytes)) throw Refused("a fill outside any live allocation");
  });
  add("launch", [this](const std::string& kernel, Dim3 grid, Dim3 block, const std::vector<Bytes>& arguments,
                       std::uint32_t shared, bool cooperative) {
    Launch how;
    how.grid = grid;
    how.block = block;
    how.dynamic_shared = shared;
    how.cooperative = cooperative;
    auto ran = launch(kernel, std::move(how), arguments);
    return outcome({static_cast<std::uint32_t>(ran.fault), std::move(ran.message), std::move(ran.finding)},
                   std::move(ran.printed));
  });
  add("synchronize", [this] {
    drain();
    for (auto& program : programs_) program.finish();
    return outcome(std::exchange(report_.first_failure, {}));
  });
  add("take_findings", [this] {
    auto all = device_.take_findings();
    std::ranges::move(std::exchange(report_.findings, {}), std::back_inserter(all));
    return all;
  });
  add("take_counts", [this] { return device_.take_counts(); });
  add("take_coverage", [this] {
    Reached reached{device_.take_coverage(), {}};
    for (const auto& [_, site] : std::exchange(report_.reached, {})) reached.host.push_back(site);
    return reached;
  });
  add("take_printed", [this] { return std::exchange(report_.printed, {}); });
  add("take_unsupported", [this] { return std::exchange(report_.unsupported, {}); });
  add("take_tampering", [this] { return std::exchange(report_.tampering, {}); });
  add("take_errors", [this] { return std::exchange(report_.errors, {}); });
  add("configure", [this](Settings settings) {
    device_.configure(settings);
    policy_ = settings;
  });
  add("add_client", [this] {  // and its socket as a descriptor
    const int socket = channel_.take_descriptor();
    if (socket < 0) throw Refused("no socket came with the question");
    programs_.emplace_back(socket,
                           World{device_, report_, policy_, code_, shared_descriptor_, device_bytes_, shared_bytes_});
  });
  add("reset", [this] {
    programs_.clear();
    device_.reset();
    code_.clear();
    modules_.clear();
    report_ = {};
  });
  add("statistics", [this] {
    Program::Held all;
    std::uint64_t crossings = 0;
    for (const auto& program : programs_) {
      const auto held = program.held();
      crossings += program.crossings();
      all.allocations += held.allocations;
      all.bytes += held.bytes;
    }
    return Statistics{report_.launches,    report_.kernel_nanoseconds,
                      report_.copies,      report_.copied_bytes,
                      report_.host_copies, report_.fetches,
                      all.allocations,     all.bytes,
                      crossings,           report_.launched};
  });
  add("watch", [this](std::vector<Element> elements) { device_.watch(std::move(elements)); });
  add("last_stores", [this] { return device_.last_stores(); });
  add("name_allocation", [this](Address base, bool constant, const std::string& name) {  // constant: only to be read
    if (!device_.describe(base, name, constant)) throw Refused("not the start of a live allocation");
  });
}

std::size_t Judge::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw Refused("cannot read " + path);
  auto images = code_of_elf(std::as_bytes(std::span(content)));
  std::ranges::move(images, std::back_inserter(code_));
  return images.size();
}

Ran Judge::launch(const std::string& kernel, Launch launch, const std::vector<std::span<const std::byte>>& arguments) {
  while (modules_.size() < code_.size()) modules_.push_back(device_.load(code_[modules_.size()].ptx));
  for (const auto module : modules_) {
    if (launch.kernel == nullptr) launch.kernel = device_.kernel(module, kernel);
  }
  if (launch.kernel == nullptr) throw Refused("no kernel " + kernel + " in what was loaded");
  const auto info = device_.info(launch.kernel);
  if (arguments.size() != info.parameters.size())
    throw Refused(kernel + " takes " + std::to_string(info.parameters.size()) + " arguments");
  launch.parameters.resize(info.parameter_bytes);
  for (std::size_t n = 0; n < arguments.size(); ++n) {
    const auto [offset, size] = info.parameters[n];
    if (arguments[n].size() != size) {
      throw Refused("the argument at offset " + std::to_string(offset) + " of " + kernel + " has " +
                    std::to_string(size) + " bytes, not " + std::to_string(arguments[n].size()));
    }
    std::memcpy(launch.parameters.data() + offset, arguments[n].data(), size);
  }
  ++report_.launches;
  ++report_.launched[kernel];
  auto ran = device_.launch(launch);
  report_.kernel_nanoseconds += ran.nanoseconds;
  if (ran.gap) throw Refused(ran.message);
  return ran;
}

}  // namespace sim
