// grader-sim: the simulated device as a process. Its owner, the judge, talks to it through the socket named on the
// command line, and hands in the sockets of the programs that may use it.

#include <sys/prctl.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "judge.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: grader-sim JUDGE_SOCKET DEVICE_BYTES SHARED_BYTES (started by the grader)\n", stderr);
    return 2;
  }
  prctl(PR_SET_DUMPABLE, 0);  // programs of the same user must not look inside
  std::signal(SIGINT, SIG_IGN);  // the judge decides when it ends
  try {
    sim::Judge judge(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
    judge.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grader-sim: %s\n", error.what());
    return 1;
  }
  return 0;
}
