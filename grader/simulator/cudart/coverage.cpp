// What host code that the compiler instrumented (-fsanitize-coverage=trace-pc,trace-cmp) calls: which of its blocks
// run, and which numbers its comparisons meet. The device is told whenever the program waits for it.
//
// A site is where the call is, and from where the function around it was called, twice: `std::min` of two lines is two
// sites. Of a switch, each of its cases is a comparison.
#include <link.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "connection.h"
#include "coverage.h"

namespace cudart {
namespace {

using Code = std::uint64_t;  // an address in a library, as its file has it; 0: none
constexpr std::size_t most_sites = 4096;

struct Site {
  std::array<Code, 3> at{};  // the innermost first
  std::uint32_t number = 0;  // of the case of a switch
  bool compares = false, below = false, equal = false, above = false;
  std::int64_t a_low = 0, a_high = 0, b_low = 0, b_high = 0;
  bool used = false;
};

struct Library {
  std::uintptr_t base = 0, low = 0, high = 0;
};

// Not in std::map or its like, which might call instrumented code again.
class Sites {
 public:
  Site* find(const std::array<Code, 3>& at, std::uint32_t number, bool compares) {
    const auto start = (at[0] * 0x9e3779b97f4a7c15u ^ at[1] * 0xbf58476d1ce4e5b9u ^ at[2] ^ number) >> 7;
    for (std::size_t n = 0; n < most_sites; ++n) {
      Site& site = sites_[(start + n) % most_sites];
      if (!site.used) {
        if (++count_ > most_sites / 2) return nullptr;
        site.at = at, site.number = number, site.compares = compares, site.used = true;
        return &site;
      }
      if (site.at == at && site.number == number && site.compares == compares) return &site;
    }
    return nullptr;
  }
  std::size_t count() const { return std::min(count_, most_sites / 2); }
  template <class F> void take(F f) {
    for (Site& site : sites_) {
      if (site.used) f(site);
      site = {};
    }
    count_ = 0;
  }

 private:
  std::array<Site, most_sites> sites_{};
  std::size_t count_ = 0;
};

std::mutex mutex;
Sites sites;
std::vector<Library> libraries;

const Library* library_of(std::uintptr_t at) {
  const auto holds = [at](const Library& one) { return at >= one.low && at < one.high; };
  const auto known = std::ranges::find_if(libraries, holds);
  return known == libraries.end() ? nullptr : &*known;
}

// The executable segment around an address.
void learn_library(std::uintptr_t at) {
  Library found{at, 0, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Library*>(data);
        for (int n = 0; n < info->dlpi_phnum; ++n) {
          const auto& segment = info->dlpi_phdr[n];
          const std::uintptr_t low = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || wanted.base < low || wanted.base >= low + segment.p_memsz) continue;
          wanted = {info->dlpi_addr, low, low + segment.p_memsz};
          return 1;
        }
        return 0;
      },
      &found);
  if (found.high != 0) libraries.push_back(found);
}

// Instrumented code is compiled with frame pointers, so the frame of a caller is where its own one says, as long as the
// call came from such code.
std::array<Code, 3> place(std::uintptr_t pc, const std::uintptr_t* frame) {
  if (library_of(pc) == nullptr) learn_library(pc);
  std::array<Code, 3> at{};
  std::uintptr_t code = pc;
  for (auto& one : at) {
    const Library* library = library_of(code);
    if (library == nullptr) break;
    one = code - library->base;
    code = frame[1];
    frame = reinterpret_cast<const std::uintptr_t*>(frame[0]);
  }
  return at;
}

void meet(std::uintptr_t pc, const std::uintptr_t* frame, std::uint32_t number, std::int64_t a, std::int64_t b) {
  const std::lock_guard lock(mutex);
  Site* site = sites.find(place(pc, frame), number, true);
  if (site == nullptr) return;
  const bool fresh = !site->below && !site->equal && !site->above;
  site->a_low = fresh ? a : std::min(site->a_low, a);
  site->a_high = fresh ? a : std::max(site->a_high, a);
  site->b_low = fresh ? b : std::min(site->b_low, b);
  site->b_high = fresh ? b : std::max(site->b_high, b);
  site->below |= a < b;
  site->equal |= a == b;
  site->above |= a > b;
}

}  // namespace

void tell_coverage() {
  const std::lock_guard lock(mutex);
  if (sites.count() == 0) return;
  Question told(sim::Ask::host_coverage, "host code");
  told.put(static_cast<std::uint32_t>(sites.count()));
  sites.take([&](const Site& site) {
    for (const Code code : site.at) told.put(code);
    told.put(site.number);
    for (const bool set : {site.compares, site.below, site.equal, site.above}) told.put(static_cast<std::uint8_t>(set));
    told.put(site.a_low).put(site.a_high).put(site.b_low).put(site.b_high);
  });
  tell(told);
}

}  // namespace cudart

// The names and parameters are the compiler's. The frame of each of these holds where that of its caller is.
#define CALLER                                                   \
  reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), \
      *static_cast<const std::uintptr_t* const*>(__builtin_frame_address(0))
#define COVERAGE extern "C" __attribute__((visibility("default"), noinline))

namespace {

void compare(std::uintptr_t pc, const std::uintptr_t* frame, std::int64_t a, std::int64_t b) {
  cudart::meet(pc, frame, 0, a, b);
}

}  // namespace

COVERAGE void __sanitizer_cov_trace_pc() {
  const auto reach = [](std::uintptr_t pc, const std::uintptr_t* frame) {
    const std::lock_guard lock(cudart::mutex);
    cudart::sites.find({cudart::place(pc, frame)[0], 0, 0}, 0, false);
  };
  reach(CALLER);
}
COVERAGE void __sanitizer_cov_trace_cmp1(std::int8_t a, std::int8_t b) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_cmp2(std::int16_t a, std::int16_t b) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_cmp4(std::int32_t a, std::int32_t b) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_cmp8(std::int64_t a, std::int64_t b) { compare(CALLER, a, b); }
// The constant comes first.
COVERAGE void __sanitizer_cov_trace_const_cmp1(std::int8_t b, std::int8_t a) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_const_cmp2(std::int16_t b, std::int16_t a) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_const_cmp4(std::int32_t b, std::int32_t a) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_const_cmp8(std::int64_t b, std::int64_t a) { compare(CALLER, a, b); }
COVERAGE void __sanitizer_cov_trace_cmpf(float, float) {}
COVERAGE void __sanitizer_cov_trace_cmpd(double, double) {}
// cases: how many, of how many bits, then each.
COVERAGE void __sanitizer_cov_trace_switch(std::int64_t value, const std::int64_t* cases) {
  const auto each = [=](std::uintptr_t pc, const std::uintptr_t* frame) {
    for (std::int64_t n = 0; n < std::min<std::int64_t>(cases[0], 64); ++n)
      cudart::meet(pc, frame, static_cast<std::uint32_t>(n + 1), value, cases[2 + n]);
  };
  each(CALLER);
}
