// What the judge gets to know of the programs beside the device's own findings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../device.h"
#include "../errors.h"

namespace sim {

struct Failure {
  std::uint32_t code = success;
  std::string message;
};

class Report {
 public:
  void finding(std::string_view tool, std::string_view kind, std::string_view kernel, std::string message,
               std::string_view file = {}, unsigned line = 0) {
    for (auto& known : findings) {
      if (known.kind == kind && known.kernel == kernel && known.message == message) {
        ++known.count;
        return;
      }
    }
    if (findings.size() < limit) {
      findings.push_back(
          {std::string(tool), std::string(kind), std::string(kernel), std::string(file), line, std::move(message), 1});
    }
  }
  void failure(std::uint32_t code, std::string_view message) {
    if (first_failure.code == success) first_failure = {code, std::string(message)};
  }
  void gap(Gap lack) {
    if (unsupported.size() < limit && std::ranges::find(unsupported, lack) == unsupported.end())
      unsupported.push_back(std::move(lack));
  }
  void forged(std::string_view what) {
    if (tampering.size() < limit && std::ranges::find(tampering, what) == tampering.end()) tampering.emplace_back(what);
  }
  void error(std::string_view call, std::uint32_t code) {
    const std::pair<std::string, std::uint32_t> entry(call, code);
    if (errors.size() < limit && std::ranges::find(errors, entry) == errors.end()) errors.push_back(entry);
  }
  void print(std::string_view text) {
    printed.append(text.substr(0, printed_limit - std::min(printed_limit, printed.size())));
  }

  std::vector<Finding> findings;
  std::vector<Gap> unsupported;
  std::vector<std::string> tampering;
  std::vector<std::pair<std::string, std::uint32_t>> errors;  // runtime call, code that it returned
  std::string printed;
  Failure first_failure;  // of a kernel or its launch, since the judge last asked
  std::map<std::string, std::uint64_t, std::less<>> launched;  // how often each kernel
  std::uint64_t launches = 0, kernel_nanoseconds = 0, copies = 0, copied_bytes = 0, host_copies = 0;

 private:
  static constexpr std::size_t limit = 1000, printed_limit = std::size_t{1} << 20;
};

}  // namespace sim
