// The judge's side of the device: its commands, and the programs that it lets in.
#pragma once

#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "../device.h"
#include "../protocol.h"
#include "channel.h"
#include "program.h"
#include "report.h"

namespace sim {

class Judge {
 public:
  Judge(int descriptor, std::uint64_t device_bytes, std::uint64_t shared_bytes);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  void serve();  // until the judge hangs up

 private:
  void command(std::span<const std::byte> frame);
  // What the judge can ask, by number; the first command tells the names and types of all.
  void add_commands();
  template <class F> void add(const char* name, F perform);
  void poll_programs(int timeout_ms, bool& judge_ready);
  // Serves the programs until none of them has anything to say.
  void drain();
  std::size_t load(const std::string& path);
  Ran launch(const std::string& kernel, Launch, const std::vector<std::span<const std::byte>>& arguments);

  Channel channel_;
  int shared_descriptor_;
  std::uint64_t device_bytes_, shared_bytes_;
  Device device_;
  Report report_;
  Policy policy_;
  std::vector<DeviceCode> code_;
  std::vector<ModuleId> modules_;  // of the judge's own launches, the first of code_
  std::list<Program> programs_;
  std::string names_;  // of the commands
  std::vector<std::function<void(Reader&, Writer& result)>> commands_;
};

}  // namespace sim
