// Notices where host code uses managed or pinned memory that a kernel or a copy may still use: those pages are
// protected until something waits.
#pragma once

#include <csignal>
#include <cstdint>
#include <vector>

namespace cudart {

struct WatchedRange {
  std::uint64_t low, high;
  bool written;  // by the device: else the host may read it
};

// Only while the handler of SIGSEGV is ours: a program may have one of its own.
void watch_ranges(std::vector<WatchedRange>, void (*handler)(int, siginfo_t*, void*));
bool watches();

// What a trap at this address is about.
struct Trap {
  bool watched;  // the access may go on: its page is open, for this instruction at least
  bool early, writes;
};
Trap open_page(std::uint64_t address, void* context);

}  // namespace cudart
