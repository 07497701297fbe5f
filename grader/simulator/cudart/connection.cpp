#include "connection.h"

#include "early_access.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

namespace cudart {
namespace {

thread_local Error thread_error = sim::success;
thread_local bool launch_unasked = false, in_host_function = false;
std::atomic<bool> sticky = false;

class Connection {
 public:
  static Connection& get() {
    static auto* connection = new Connection;  // lives until the process ends: atexit handlers still call
    return *connection;
  }

  std::mutex mutex;
  int socket = -1, shared_descriptor = -1;
  bool shared_mapped = false;
  std::uint64_t device_bytes = 0, shared_bytes = 0;

  bool send(std::span<const std::byte> frame) {
    while (socket >= 0 && !frame.empty()) {
      const auto n = ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL);
      if (n > 0) frame = frame.subspan(static_cast<std::size_t>(n));
      if (n < 0 && errno != EINTR) hang_up();
    }
    return socket >= 0;
  }

  // Content of the next frame, after its first field.
  bool receive(std::uint32_t& first, std::vector<std::byte>& content) {
    std::uint32_t head[2];
    if (!receive_exactly(head, sizeof head)) return false;
    first = head[1];
    content.resize(head[0] - 4);
    return receive_exactly(content.data(), content.size());
  }

  // Protects what the device may still use, and opens what it no longer does.
  void watch_host() {
    if (!shared_mapped) return;
    Question question(sim::Ask::not_waited, "cudaDeviceSynchronize");
    std::uint32_t code;
    std::vector<std::byte> content;
    if (!send(question.frame())) return;
    do {
      if (!receive(code, content)) return;
      if (code == sim::printed_text) print(content);
    } while (code == sim::printed_text);
    std::vector<WatchedRange> ranges;
    if (code == sim::success) {
      sim::Reader reader(content);
      for (auto n = reader.take<std::uint32_t>(); n; --n) {
        const auto low = reader.take<std::uint64_t>(), high = reader.take<std::uint64_t>();
        ranges.push_back({low, high, reader.take<std::uint8_t>() != 0});
      }
    }
    if (watches() || !ranges.empty()) watch_ranges(std::move(ranges), trapped);
  }
  static void print(std::span<const std::byte> content) {
    const auto text = sim::Reader(content).text();
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

 private:
  Connection() {
    const char* variable = std::getenv("GRADER_SIM_FD");
    if (variable == nullptr) {
      std::fputs(
          "libcudart: this is the CUDA runtime of the grader's simulator; run the program with `grader simulate -- "
          "PROGRAM`\n",
          stderr);
      return;
    }
    socket = static_cast<int>(std::strtol(variable, nullptr, 10));
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    Question hello(sim::Ask::hello, "cudaInitDevice");
    hello.put(sim::protocol_version);
    std::uint32_t code;
    std::vector<std::byte> sizes, end;
    if (!send(hello.frame()) || !receive(code, sizes) || !receive(code, end)) {
      std::fputs("libcudart: the simulator does not answer on GRADER_SIM_FD\n", stderr);
      return;
    }
    sim::Reader reader(sizes);
    device_bytes = reader.take<std::uint64_t>();
    shared_bytes = reader.take<std::uint64_t>();
    report_traps();
  }

  void hang_up() { socket = -1; }

  bool receive_exactly(void* to, std::size_t n) {
    auto* at = static_cast<std::byte*>(to);
    while (socket >= 0 && n > 0) {
      iovec data{at, n};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
      msghdr message{};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const auto got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        hang_up();
        break;
      }
      if (auto* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        std::memcpy(&shared_descriptor, CMSG_DATA(header), sizeof shared_descriptor);
      }
      at += got;
      n -= static_cast<std::size_t>(got);
    }
    return socket >= 0;
  }

  // Host code that dereferences a device pointer: say so before the process dies of it.
  static void report_traps() {
    struct sigaction current{};
    sigaction(SIGSEGV, nullptr, &current);
    if (current.sa_handler != SIG_DFL) return;
    struct sigaction ours{};
    ours.sa_sigaction = trapped;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &ours, nullptr);
  }

  static void trapped(int, siginfo_t* info, void* context) {
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    auto how = sim::HostAccess::by_itself;
    if (const auto trap = open_page(address, context); trap.watched) {
      if (!trap.early) return;
      how = trap.writes ? sim::HostAccess::early_write : sim::HostAccess::early_read;
    } else {
      std::signal(SIGSEGV, SIG_DFL);  // the access is made again, and ends the process
      if (!on_device(info->si_addr)) return;
    }
    Question notice(sim::Ask::host_access, "cudaMemcpy");
    const auto [function, library] = place(context);
    notice.put(address).put(how).text(function).text(library);
    get().send(notice.frame());
  }

  // The function and its library, as far as the symbols tell.
  static std::pair<std::string, std::string> place(void* context) {
    const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    auto* const at = reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    auto* const at = reinterpret_cast<void*>(machine.pc);
#else
    void* const at = nullptr;
    static_cast<void>(machine);
#endif
    Dl_info symbol{};
    if (dladdr(at, &symbol) == 0 || symbol.dli_fname == nullptr) return {};
    const std::string path(symbol.dli_fname);
    return {symbol.dli_sname != nullptr ? symbol.dli_sname : "", path.substr(path.find_last_of('/') + 1)};
  }
};

}  // namespace

Answer ask(sim::Writer& question) {
  if (in_host_function) return {sim::not_permitted, {}};
  auto& connection = Connection::get();
  const std::lock_guard lock(connection.mutex);
  if (connection.socket < 0) return {sim::initialization_error, {}};
  Answer answer{sim::unknown, {}};
  if (!connection.send(question.frame())) return answer;
  std::uint32_t what;
  while (connection.receive(what, answer.content)) {
    if (what == sim::printed_text) {
      Connection::print(answer.content);
    } else if (what == sim::host_call) {
      auto reader = answer.reader();
      const auto function = reader.take<std::uint64_t>();
      const auto argument = reader.take<std::uint64_t>();
      watch_ranges({}, nullptr);  // it runs behind what its stream has done
      in_host_function = true;
      reinterpret_cast<void (*)(void*)>(function)(reinterpret_cast<void*>(argument));
      in_host_function = false;
      Question done(sim::Ask::host_function_done, "cudaLaunchHostFunc");
      connection.send(done.frame());
    } else {
      if ((what & sim::sticky_error) != 0) sticky = true;
      answer.code = what & ~sim::sticky_error;
      connection.watch_host();
      return answer;
    }
  }
  return {sim::unknown, {}};
}

void tell(sim::Writer& notice) {
  if (in_host_function) return;
  auto& connection = Connection::get();
  const std::lock_guard lock(connection.mutex);
  connection.send(notice.frame());
  connection.watch_host();
}

Error remember(Error code) {
  if (code != sim::success && code != sim::not_ready) thread_error = code;
  return code;
}

Error unsupported(const char* call) {
  Question notice(sim::Ask::unsupported, call);
  tell(notice);
  return remember(sim::not_supported);
}

void expect_launch_error() { launch_unasked = true; }

Error last_error(const char* call, bool keep) {
  Error code = sim::success;
  if (launch_unasked || sticky) {
    Question question(sim::Ask::last_error, call);
    question.put(std::uint8_t{keep});
    const auto answer = ask(question);
    code = answer.code != sim::success ? answer.code : answer.reader().take<std::uint32_t>();
    launch_unasked = launch_unasked && keep;
  }
  if (code == sim::success) code = thread_error;
  if (!keep) thread_error = sim::success;
  return code;
}

bool on_device(const void* pointer) {
  const auto at = reinterpret_cast<std::uint64_t>(pointer);
  return at >= sim::device_arena && at - sim::device_arena < Connection::get().device_bytes;
}

bool device_visible(const void* pointer) {
  const auto at = reinterpret_cast<std::uint64_t>(pointer);
  return on_device(pointer) || (at >= sim::shared_arena && at - sim::shared_arena < Connection::get().shared_bytes);
}

void map_shared() {
  auto& connection = Connection::get();
  const std::lock_guard lock(connection.mutex);
  if (connection.shared_mapped || connection.shared_descriptor < 0) return;
  auto* const at = reinterpret_cast<void*>(sim::shared_arena);
  if (mmap(at, connection.shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
           connection.shared_descriptor, 0) != at) {
    std::perror("libcudart: cannot map managed and pinned memory");
    std::abort();
  }
  connection.shared_mapped = true;
}

}  // namespace cudart
