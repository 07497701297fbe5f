#include "early_access.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace cudart {
namespace {

const std::uint64_t page_size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
constexpr int most_steps = 20'000;  // then whole pages are let through, so that a program does not become slow

std::vector<WatchedRange> ranges;
int steps = 0;
std::array<std::uint64_t, 2> stepped_over{};  // pages that are open for one instruction; 0: none

void protect(std::uint64_t low, std::uint64_t high, int how) {
  low = low / page_size * page_size;
  high = (high + page_size - 1) / page_size * page_size;
  mprotect(reinterpret_cast<void*>(low), high - low, how);
}

bool touches(const WatchedRange& range, std::uint64_t page) {
  return range.low < page + page_size && page < range.high;
}

#if defined(__x86_64__)
constexpr greg_t trap_flag = 0x100;

void close_pages(int, siginfo_t*, void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
  for (const auto page : std::exchange(stepped_over, {})) {
    if (page == 0) continue;
    bool reading = false, writing = false;
    for (const auto& range : ranges) {
      if (!touches(range, page)) continue;
      (range.written ? writing : reading) = true;
    }
    if (writing || reading) protect(page, page + 1, writing ? PROT_NONE : PROT_READ);
  }
}

// Lets one instruction through; false if that cannot be done.
bool step_over(std::uint64_t page, void* context) {
  const auto free = std::ranges::find(stepped_over, std::uint64_t{0});
  if (free == stepped_over.end() || ++steps > most_steps) return false;
  struct sigaction current{};
  sigaction(SIGTRAP, nullptr, &current);
  if (current.sa_sigaction != close_pages) {
    if (current.sa_handler != SIG_DFL) return false;
    struct sigaction ours{};
    ours.sa_sigaction = close_pages;
    ours.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &ours, nullptr);
  }
  *free = page;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= trap_flag;
  return true;
}
bool is_write(void* context) { return (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0; }
#else
bool step_over(std::uint64_t, void*) { return false; }
bool is_write(void*) { return false; }
#endif

}  // namespace

void watch_ranges(std::vector<WatchedRange> all, void (*handler)(int, siginfo_t*, void*)) {
  for (const auto& range : ranges) protect(range.low, range.high, PROT_READ | PROT_WRITE);
  ranges = std::move(all);
  if (ranges.empty()) return;
  struct sigaction current{};
  sigaction(SIGSEGV, nullptr, &current);
  if (current.sa_sigaction != handler) return ranges.clear();
  for (const bool written : {false, true}) {  // where both meet in a page, the latter counts
    for (const auto& range : ranges) {
      if (range.written == written) protect(range.low, range.high, written ? PROT_NONE : PROT_READ);
    }
  }
}

bool watches() { return !ranges.empty(); }

Trap open_page(std::uint64_t address, void* context) {
  const auto page = address / page_size * page_size;
  if (std::ranges::none_of(ranges, [&](const auto& range) { return touches(range, page); })) return {};
  Trap trap{true, false, is_write(context)};
  trap.early = std::ranges::any_of(ranges, [&](const auto& range) {
    return range.low <= address && address < range.high && (range.written || trap.writes);
  });
  protect(page, page + 1, PROT_READ | PROT_WRITE);
  if (trap.early) {  // told: the rest of the page would say the same
    for (auto& closed : stepped_over) closed = closed == page ? 0 : closed;
  } else {
    step_over(page, context);
  }
  return trap;
}

}  // namespace cudart
