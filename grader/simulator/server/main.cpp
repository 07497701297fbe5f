// grader-sim: the simulated device as a process. Its owner, the judge, talks to it through the socket named on the
// command line, and hands in the sockets of the programs that may use it.

#include <sys/prctl.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "../simd.h"
#include "judge.h"

int main(int argc, char** argv) {
  if (argc != 4 && !(argc == 2 && std::strcmp(argv[1], "--simd") == 0)) {
    std::fputs("usage: grader-sim JUDGE_SOCKET DEVICE_BYTES SHARED_BYTES (started by the grader), or grader-sim --simd\n", stderr);
    return 2;
  }
  prctl(PR_SET_DUMPABLE, 0);  // programs of the same user must not look inside
  std::signal(SIGINT, SIG_IGN);  // the judge decides when it ends
  try {
    const sim::Simd simd = sim::simd();
    if (argc == 2) {
      std::printf("%s, of:", simd.used.c_str());
      for (const auto& name : simd.usable) std::printf(" %s", name.c_str());
      std::puts("");
      return 0;
    }
    sim::Judge judge(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
    judge.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grader-sim: %s\n", error.what());
    return 1;
  }
  return 0;
}
