// grader-sim: the simulated device as a process. Its owner, the judge, talks to it through the socket named on the
// command line, and hands in the sockets of the programs that may use it.

#include <malloc.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "../simd.h"
#include "judge.h"

int main(int argc, char** argv) {
  const std::string_view option = argc == 2 ? argv[1] : "";
  if (argc != 4 && option != "--simd" && option != "--instructions") {
    std::fputs(
        "usage: grader-sim JUDGE_SOCKET DEVICE_BYTES SHARED_BYTES (started by the grader), or grader-sim --simd | "
        "--instructions\n",
        stderr);
    return 2;
  }
  // What a launch works with comes and goes; pages that are given back cost more to get again than a small launch
  // takes.
  constexpr int kept = 32 << 20;
  mallopt(M_TRIM_THRESHOLD, kept);
  mallopt(M_MMAP_THRESHOLD, kept);
  prctl(PR_SET_DUMPABLE, 0);  // programs of the same user must not look inside
  std::signal(SIGUSR1, [](int) { sim::end_launches(); });
  // The judge decides when it ends, also where a terminal or timeout(1) signals the whole group.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_IGN);
  try {
    const sim::Simd simd = sim::simd();
    if (option == "--instructions") {
      for (const auto& name : sim::instruction_names()) std::puts(name.c_str());
      return 0;
    }
    if (option == "--simd") {
      std::printf("%s, of:", simd.used.c_str());
      for (const auto& name : simd.usable) std::printf(" %s", name.c_str());
      std::puts("");
      return 0;
    }
    const auto socket = static_cast<int>(std::strtol(argv[1], nullptr, 10));
    sim::Judge judge(socket, std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
    judge.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grader-sim: %s\n", error.what());
    return 1;
  }
  return 0;
}
