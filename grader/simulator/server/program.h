// One program that uses the device: the state of the CUDA runtime as it would be in that process.
//
// Everything that arrives here was written by untrusted code.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../device.h"
#include "../protocol.h"
#include "channel.h"
#include "fatbin.h"
#include "host_races.h"
#include "report.h"
#include "stream_races.h"
#include "timeline.h"

namespace sim {

struct Policy {
  bool late_streams = false;  // work runs only when something waits for it
  bool open = false;          // runs whatever PTX the program brings; otherwise only what the judge has loaded
  bool leak_check = false;
  bool prints = false;  // whether what kernels print is output of the program, too
};

// What all programs of a device share.
struct World {
  Device& device;
  Report& report;
  const Policy& policy;
  const std::vector<DeviceCode>& trusted;
  int shared_descriptor;
  std::uint64_t device_bytes, shared_bytes;
};

class Program {
 public:
  Program(int descriptor, const World&);
  ~Program();  // frees what the program holds, and reports what it never asked for
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int descriptor() const { return channel_.descriptor(); }
  // Serves what has arrived, without waiting for more. False if the program is gone or had to be cut off.
  bool serve();
  // Runs all that is queued.
  void finish();
  // What it has allocated and not freed.
  struct Held {
    std::uint64_t allocations = 0, bytes = 0;
  };
  Held held() const;
  // How often work met other streams or the host: what a later moment, or another order of streams, might change.
  std::uint64_t crossings() const { return timeline_.crossings() + with_host_; }

 private:
  struct Module {
    std::vector<DeviceCode> code;  // several where nvcc -rdc=true made it
    std::string problem;           // empty if there is PTX
    std::optional<ModuleId> id;
  };
  struct Entity {  // a kernel or variable, known by the address of its shadow in the program
    std::uint32_t module = 0;
    std::string name;
    std::uint32_t dynamic_shared_limit = 0;  // 0: not asked for
  };
  struct Target {
    const Kernel* kernel;
    KernelInfo info;
  };
  struct Rows {
    Address at;
    std::uint64_t pitch, width, height;
  };
  // A launch that gets a pointer.
  struct Receiver {
    std::string kernel;
    Dim3 grid, block;
  };
  // A call ends early with this code.
  struct Failed {
    std::uint32_t code;
  };

  void handle(std::span<const std::byte> frame);
  void notify(Ask, std::string_view call, Reader&);
  void answer(Ask, std::string_view call, Reader&);
  void perform(Ask, std::string_view call, Reader&, Writer& result);
  void send(Writer& result);
  void settle();

  ModuleId load(std::uint32_t module, const std::string& user);  // a kernel or variable of it
  Target target(std::uint64_t host_function);
  Symbol symbol(std::uint64_t host_variable);
  void register_fatbin(Reader&);

  // The code of a launch that the device refuses; otherwise queues it.
  std::uint32_t launch(std::string_view call, Reader&);
  // Why a kernel does not start, as the reason of a finding.
  struct Invalid {
    const char* reason;
    Facts facts{};
  };
  Invalid why_invalid(const Launch&, const KernelInfo&, std::uint32_t dynamic_limit, std::uint32_t& code) const;
  void run(const Launch&);
  void note_arguments(const Launch&);
  void call_host(std::uint64_t function, std::uint64_t argument);

  Address allocate(std::uint64_t bytes, Space, bool ready);
  Rows rows(Reader&) const;
  void check(std::string_view call, const Rows&, std::uint64_t extent, bool writes);
  void copy_in(std::string_view call, Reader&);
  void copy_out(std::string_view call, Reader&, Writer& result);
  void read_tensor(std::string_view call, Reader&, Writer& result);
  void fetch(std::string_view call, const Rows&, Writer& result);
  void copy(std::string_view call, Reader&);
  void fill(std::string_view call, Reader&);
  void release(std::string_view call, Address, bool host, bool reuse = false);
  // A warning, if what is copied to the host was never written.
  Unwritten unwritten(const Rows&) const;
  void check_written(std::string_view call, const Rows& from);
  void tell_unwritten(const char* reason, std::string_view call, const Rows& from, std::string file,
                      std::uint32_t line);
  // That the work at hand has touched this, as the checker of races between streams wants to know.
  void touched(std::string_view call, const Rows&, bool writes);
  void fail(const Failure&);
  void forget_launch_error();
  // An error that nobody has asked for, with what led to it.
  void unchecked(const char* reason, const Failure&);
  void reset();

  World world_;
  Channel channel_;
  Timeline timeline_;
  StreamRaces stream_races_;
  HostRaces host_races_;
  std::map<std::uint32_t, Module> modules_;
  std::map<std::uint64_t, Entity> kernels_, variables_;
  std::map<const Kernel*, KernelInfo> infos_;
  std::map<Address, Space> allocations_;
  std::map<Address, Receiver> receivers_;  // by the allocation, the first launch that got a pointer into it
  std::map<std::uint64_t, Graph> graphs_;
  std::uint64_t next_graph_ = 0x1000;
  Failure fault_, launch_error_;  // sticky; of the last launch that did not start
  bool fault_seen_ = false, waiting_ = false, greeted_ = false;
  bool host_sees_memory_ = false;  // some that kernels use, too
  std::uint64_t with_host_ = 0;    // work that it sees or has a part in
  std::string printed_;
};

}  // namespace sim
