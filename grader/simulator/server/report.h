// What the judge gets to know of the programs beside the device's own findings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../device.h"
#include "../errors.h"

namespace sim {

struct Failure {
  std::uint32_t code = success;
  std::string message;  // before the finding, if there is one
  std::optional<Finding> finding{};
};

class Report {
 public:
  void finding(Finding fresh) {
    if (findings.size() < limit && std::ranges::find(findings, fresh) == findings.end())
      findings.push_back(std::move(fresh));
  }
  void finding(const char* kind, const char* reason, Facts facts) {
    finding(Finding{kind, reason, "", "", 0, {}, std::move(facts)});
  }
  void failure(const Failure& fresh) {
    if (first_failure.code == success) first_failure = fresh;
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
