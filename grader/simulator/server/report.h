// What the judge gets to know of the programs beside the device's own findings.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
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

// Instrumented host code that has run; see cudart/coverage.cpp.
struct HostSite {
  std::array<std::uint64_t, 3> at{};  // addresses in its library, the innermost first, then whence that was called
  std::uint32_t number = 0;  // of the case of a switch
  bool compares = false, below = false, equal = false, above = false;
  std::int64_t a_low = 0, a_high = 0, b_low = 0, b_high = 0;
  auto key() const { return std::tuple(at, number, compares); }
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
  void reach(const HostSite& site) {
    if (reached.size() >= most_sites && !reached.contains(site.key())) return;
    const auto [known, fresh] = reached.try_emplace(site.key(), site);
    if (fresh) return;
    HostSite& all = known->second;
    all.below |= site.below;
    all.equal |= site.equal;
    all.above |= site.above;
    all.a_low = std::min(all.a_low, site.a_low);
    all.a_high = std::max(all.a_high, site.a_high);
    all.b_low = std::min(all.b_low, site.b_low);
    all.b_high = std::max(all.b_high, site.b_high);
  }
  void print(std::string_view text) {
    printed.append(text.substr(0, printed_limit - std::min(printed_limit, printed.size())));
  }

  std::vector<Finding> findings;
  std::vector<Gap> unsupported;
  std::vector<std::string> tampering;
  std::vector<std::pair<std::string, std::uint32_t>> errors;  // runtime call, code that it returned
  std::string printed;
  std::map<std::tuple<std::array<std::uint64_t, 3>, std::uint32_t, bool>, HostSite> reached;
  Failure first_failure;  // of a kernel or its launch, since the judge last asked
  std::map<std::string, std::uint64_t, std::less<>> launched;  // how often each kernel
  std::uint64_t launches = 0, kernel_nanoseconds = 0, copies = 0, copied_bytes = 0, host_copies = 0, fetches = 0;

 private:
  static constexpr std::size_t limit = 1000, printed_limit = std::size_t{1} << 20, most_sites = 4096;
};

}  // namespace sim
