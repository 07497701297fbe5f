// Host code that does not come back, asleep or at work, as launchers of submissions may.
#include <ctime>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace {
__attribute__((noinline)) void helper_wait(long seconds) {
  const timespec time{seconds, 0};
  while (nanosleep(&time, nullptr) != 0) continue;
}
}  // namespace
static __attribute__((noinline)) void spin_forever(volatile int* place) {
  for (;;) *place = *place + 1;
}
static __attribute__((noinline)) int one_more(volatile int* place) {
  *place = *place + 1;
  return *place;
}
extern "C" {
void launch_attn_softmax() { helper_wait(1000); helper_wait(1000); }
void launch_softmax() { int place = 0; spin_forever(&place); }
void launch_often() { volatile int place = 0; while (one_more(&place) != 0) continue; }
void launch_poll() { poll(nullptr, 0, -1); }
void launch_child() {
  if (fork() == 0) for (;;) pause();
  waitpid(-1, nullptr, 0);
}
void launch_lock() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (;;) never.wait(lock);
}
}
