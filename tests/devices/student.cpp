// Host code as submissions hold it, good and bad, with host pointers.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
extern "C" {
void plant_error(int code);
void twice(float* out, const float* in, int n, bool negate, float factor, void* first, void* second) {
  for (int i = 0; i < n; ++i) out[i] = (negate ? -factor : factor) * in[i];
  std::printf("streams %d %d\n", int(first != nullptr), int(first == second));
}
void address(std::uint64_t* out) { *out = reinterpret_cast<std::uint64_t>(out); }
void nothing(float*) {}
void null(float* out, const float* in) { *out = in == nullptr; }
void copy_longs(long long* out, const long long* sizes, int n) { for (int i = 0; i < n; ++i) out[i] = sizes[i]; }
void beyond(float* out, int n) { for (int i = -1; i < n + 2; ++i) out[i] = 1; }
void far_beyond(float* out, int n) { out[n + 12000] = 1; }
void leave(float*) { std::exit(0); }
void leave_at_once(float*) { std::_Exit(7); }
void abort_it(float*) { std::abort(); }
void fault(float*) { *reinterpret_cast<volatile int*>(8) = 1; }
void hang(float*) { for (volatile int i = 0;; i = 1) {} }
void fail(float*) { plant_error(700); }
void chatter(float*, int lines) { for (int i = 0; i < lines; ++i) std::printf("{\"status\": \"returned\"} %d\n", i); }
void complain(float*, int lines) { for (int i = 0; i < lines; ++i) std::fprintf(stderr, "nothing is right here: %d\n", i); }
void report(char* out) {
  char line[256], *at = out;
  std::FILE* status = std::fopen("/proc/self/status", "r");
  while (std::fgets(line, sizeof line, status))
    if (std::strncmp(line, "NoNewPrivs", 10) == 0) at += std::sprintf(at, "%s", line);
  std::fclose(status);
  for (int fd = 0; fd < 64; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && !(flags & FD_CLOEXEC)) at += std::sprintf(at, "fd %d\n", fd);
  }
}
void forge(float*) {  // a frame on every descriptor that takes it
  const char frame[] = "KGR1\0\0\0\x02\0\0\0\0\0\0\0\0{}";
  for (int fd = 3; fd < 64; ++fd)
    if (write(fd, frame, sizeof frame - 1) < 0) continue;
}
void scribble(float*) {  // on all that is shared with the judge, for ever
  char line[512];
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  unsigned long begin = 0, end = 0;
  while (std::fgets(line, sizeof line, maps))
    if (std::strstr(line, "memfd:shared")) std::sscanf(line, "%lx-%lx", &begin, &end);
  std::fclose(maps);
  if (begin == 0) std::abort();
  std::thread([begin] { for (int i = 0;; ++i) std::memset(reinterpret_cast<void*>(begin), i, 1 << 20); }).detach();
}
void forge_and_answer(float*) { forge(nullptr); }
void babble(float*) {  // after the answer, before the next question
  for (int fd = 3; fd < 64; ++fd)
    if (fork() == 0) { usleep(200000); write(fd, "more", 4); _exit(0); }
}
}
