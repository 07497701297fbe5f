// The judge's side of the device: its commands, and the programs that it lets in.
#pragma once

#include <list>
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
  void perform(Command, Reader&, Writer& result);
  void poll_programs(int timeout_ms, bool& judge_ready);
  // Serves the programs until none of them has anything to say.
  void drain();
  void load(const std::string& path);
  void launch(Reader&, Writer& result);
  void configure(Reader&);

  Channel channel_;
  int shared_descriptor_;
  std::uint64_t device_bytes_, shared_bytes_;
  Device device_;
  Report report_;
  Policy policy_;
  std::vector<DeviceCode> code_;
  std::vector<ModuleId> modules_;  // of the judge's own launches, the first of code_
  std::list<Program> programs_;
};

}  // namespace sim
