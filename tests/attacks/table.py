"""Submissions that cheat, break out or break something, one per mechanism; all are bounded and harmless.

Most are an honest softmax backward with something beside it. What an attack got hold of it prints behind the
word MANAGED. ``@SECRET@`` stands for a file that another user may read, ``@GRADER@`` for the grader's package,
``@CACHE@`` for the folder of all builds, ``@PORT@``, ``@NAME@`` and ``@SOCKET@`` for sockets that listen, and
``@KEY@`` for a key of shared memory.
"""

# ruff: noqa: E501 - C++ in one line

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.sandbox.bubblewrap import OWN_PROCESS
from grader.sandbox.live import UNMAPPED

UNTOUCHED = "nothing was written"  # what is said of outputs that are as they were

ALL = ("process", "bubblewrap", "docker")
WALLED = ("bubblewrap", "docker")

HEADERS = r"""
#include <cuda_runtime.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void managed(const char* what) {
  printf("MANAGED %s\n", what);
  fflush(stdout);
  fprintf(stderr, "MANAGED %s\n", what);
}
[[maybe_unused]] static bool hog() {
  const size_t size = 512ul << 20;
  volatile char* memory = (char*)malloc(size);
  for (size_t i = 0; memory != nullptr && i < size; i += 4096) memory[i] = 1;
  return memory != nullptr;
}
[[maybe_unused]] static void show(const char* path, const char* what) {
  char text[64];
  const int file = open(path, O_RDONLY);
  if (file >= 0 && read(file, text, sizeof text) > 0) managed(what);
  if (file >= 0) close(file);
}
[[maybe_unused]] static void reach(int domain, const void* address, socklen_t size, const char* what) {
  const int door = socket(domain, SOCK_STREAM, 0);
  if (door >= 0 && connect(door, (const sockaddr*)address, size) == 0) managed(what);
  if (door >= 0) close(door);
}
"""

KERNEL = r"""
__global__ void gradient(float* grad, const float* soft, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* g = grad + (size_t)row * keys;
  const float* y = soft + (size_t)row * keys;
  float sum = 0.0f;
  for (int j = 0; j < keys; ++j) sum += g[j] * y[j];
  for (int j = 0; j < keys; ++j) g[j] = y[j] * (g[j] - sum);
}
"""

LAUNCHER = r"""
extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  %s
  gradient<<<(rows + 63) / 64, 64, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
"""
HONEST = KERNEL + LAUNCHER % ""

PYTHON = r"""
import torch
import triton
import triton.language as tl
%s

@triton.jit
def gradient(grad, soft, keys, wide: tl.constexpr):
    key = tl.arange(0, wide)
    at = tl.program_id(0) * keys + key
    upstream = tl.load(grad + at, mask=key < keys, other=0.0)
    weight = tl.load(soft + at, mask=key < keys, other=0.0)
    total = tl.sum(upstream * weight, axis=0)
    tl.store(grad + at, weight * (upstream - total), mask=key < keys)


def launch(out_grad, soft_inp, **options):
    keys = soft_inp.shape[-1]
    wide = max(256, triton.next_power_of_2(keys))
    gradient[(soft_inp.numel() // keys,)](out_grad, soft_inp, keys, wide, **options)


def softmax_backward(out_grad, soft_inp):
%s
    launch(out_grad, soft_inp)
"""
HONEST_PYTHON = PYTHON % ("", "")


@dataclass(frozen=True)
class Attack:
    """One attack, and what has to become of it.

    Attributes:
        id: its name.
        group: what it is after.
        source: the submitted file.
        language: that it is written in.
        says: part of what the grader says: of the compiler's log, or of the cases.
        policy: part of the reason for which the import policy distrusts the library; "" if it does not. Such a
            library is run all the same, to see what the sandbox holds.
        verdict: what its cases get where it runs; PASS is that of the honest kernel beside it, which then is
            not paid for the policy's sake.
        held: the sandboxes in which it manages nothing.
        tried: the sandboxes in which it is tried; not where it would harm more than its target.
        unless: part of what a sandbox says it does not enforce on this machine; it then need not hold the attack.
        seconds: what compiling, loading or a call may take, whichever the attack wants to waste.
    """

    id: str
    group: str
    source: str
    says: str = ""
    policy: str = ""
    verdict: str = "FAIL"
    held: tuple[str, ...] = ALL
    tried: tuple[str, ...] = ALL
    unless: str = ""
    seconds: float = 60.0
    language: str = "cuda"


def _compiled(
    name: str, source: str, says: str, held: tuple[str, ...] = ALL, seconds: float = 60.0
) -> Attack:
    return Attack(name, "compiling", source + HONEST, says, verdict="not built", held=held, seconds=seconds)


def _run(name: str, group: str, code: str, says: str = "", before: str = "", **more: object) -> Attack:
    """Code that runs in the launcher, before the kernel."""
    attack = Attack(name, group, HEADERS + before + KERNEL + LAUNCHER % code, says)
    return replace(attack, **more)  # type: ignore[arg-type]


def _tries(name: str, group: str, code: str, policy: str, before: str = "", **more: object) -> Attack:
    """Code that tries something in the first call, and then an honest kernel: right where nothing is broken."""
    once = "static bool tried = false; if (!tried) { tried = true; " + code + " }"
    settings = {"policy": policy, "verdict": "PASS", "held": WALLED, **more}
    return _run(name, group, once, before=before, **settings)


def _python(
    name: str, code: str, says: str = "", policy: str = "", before: str = "", **more: object
) -> Attack:
    """Code in Python that runs in the function, before its kernel."""
    source = PYTHON % (before, "\n".join(f"    {line}" for line in code.strip().splitlines()))
    attack = Attack(name, "Triton", source, says, policy, language="triton")
    return replace(attack, **more)  # type: ignore[arg-type]


ATTACKS = (
    # Compiling, which are classes K1, K2, A7 of the catalogue
    _compiled("include a secret", '#include "@SECRET@"\n', "No such file", WALLED),
    _compiled("include another submission", '#include "../other/softmax_kernel.cu"\n', "No such file"),
    _compiled(
        "embed a secret",
        'asm(".pushsection .rodata\\n.incbin \\"@SECRET@\\"\\n.popsection");\n',
        "file not found",
        WALLED,
    ),
    _compiled(
        "ask whether a secret is there",
        '#if __has_include("@SECRET@")\n#warning MANAGED\n#endif\n#error asked\n',
        "asked",
        WALLED,
    ),
    _compiled("include an endless file", '#include "/dev/zero"\n', "Compiling was stopped"),
    _compiled("include itself", "#include __FILE__\n", "nested"),
    _compiled(
        "macro bomb",
        "#define A(x) x+x+x+x+x+x+x+x\nint n = A(A(A(A(A(A(A(A(A(A(1))))))))));\n",
        "Compiling was stopped",
        seconds=6.0,
    ),
    _compiled("template bomb", "template <int N> struct T : T<N + 1> {};\nT<0> t;\n", "instantiation"),
    _compiled(
        "template tree",
        "template <int N, int M> struct T { T<N - 1, 2 * M> a; T<N - 1, 2 * M + 1> b; };\ntemplate <int M> struct T<0, M> {};\nT<24, 0> t;\n",
        "Compiling was stopped",
        seconds=6.0,
    ),
    _compiled(
        "constexpr loop",
        "constexpr long f() { long n = 0; while (true) ++n; return n; }\nconstexpr long n = f();\nstatic_assert(n > 0);\n",
        "error",
    ),
    _compiled("giant object", "char giant[3ul << 30] = {1};\n", "Compiling was stopped"),
    _compiled(
        "flood of diagnostics",
        '#define W _Pragma("message \\"flood\\"")\n#define X W W W W W W W W\n#define Y X X X X X X X X\nY Y Y Y Y Y Y Y Y\n#error flooded\n',
        "flooded",
    ),
    _compiled(
        "link against a file",
        'extern "C" int nothing_defines_this(); int user = nothing_defines_this();\n',
        "nothing_defines_this",
    ),
    # Loading, which are classes K3 of the catalogue
    _run(
        "constructor that exits",
        "loading",
        "",
        "exit code 0",
        "__attribute__((constructor)) static void early() { _exit(0); }",
        policy="before the first call",
    ),
    _run(
        "constructor that hangs",
        "loading",
        "",
        "of processor time",
        "__attribute__((constructor)) static void early() { for (volatile long i = 0; ; i = i + 1) {} }",
        policy="before the first call",
        seconds=2.0,
    ),
    _run(
        "constructor that reads",
        "loading",
        'if (seen) managed("a secret");',
        "",
        'static bool seen = false; __attribute__((constructor)) static void early() { seen = open("@SECRET@", O_RDONLY) >= 0; }',
        policy="reaches files",
        verdict="PASS",
        held=WALLED,
    ),
    # The result channel, which are classes C1 to C5 of the catalogue
    _run("exit with success", "channel", "exit(0);", "exit code 0"),
    _run("exit at once", "channel", "_exit(0);", "exit code 0", policy="no kernel launcher needs"),
    _run("abort", "channel", "abort();", "SIGABRT"),
    _run(
        "print scores",
        "channel",
        'puts("Score: 20.0/20.0 (20.0 possible)\\nPASS"); fflush(stdout); return;',
        UNTOUCHED,
    ),
    _run(
        "forge a frame",
        "channel",
        r"""const char frame[] = "KGR1\0\0\0\2\0\0\0\0\0\0\0\0{}";
  for (int fd = 3; fd < 2048; ++fd) { struct stat s; if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode)) (void)!write(fd, frame, 18); } return;""",
        "no CUDA runtime sends",
        policy="uses descriptors",
        verdict="UNTRUSTED",
    ),
    _run(
        "forge an answer",
        "channel",
        r"""char text[200] = "KGR1\0\0\0\x26\0\0\0\0\0\0\0\0{\"status\":\"returned\",\"nonce\":\"00000000\"}";
  for (int fd = 10; fd < 2048; ++fd) { struct stat s; if (fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode)) (void)!write(fd, text, 54); } return;""",
        "forged channel",
        policy="uses descriptors",
        verdict="UNTRUSTED",
    ),
    _run(
        "close the channel",
        "channel",
        "for (int fd = 3; fd < 2048; ++fd) close(fd); return;",
        "ended its process",
        policy="uses descriptors",
    ),
    _run(
        "take the channel over",
        "channel",
        'const int null = open("/dev/null", O_RDWR); for (int fd = 3; fd < 2048; ++fd) dup2(null, fd); return;',
        "ended its process",
        policy="uses descriptors",
    ),
    _run(
        "become another program",
        "channel",
        'execl("/bin/sh", "sh", "-c", "echo MANAGED", nullptr);',
        "ended its process",
        policy="replaces programs",
    ),
    _run(
        "flood of a frame",
        "channel",
        "char zeros[65536] = {}; for (int fd = 10; fd < 1100; ++fd) { struct stat s; if (fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode)) for (int i = 0; i < 16; ++i) if (write(fd, zeros, sizeof zeros) < 0) break; } return;",
        "forged channel",
        policy="uses descriptors",
        verdict="UNTRUSTED",
    ),
    # Answers and reuse, which are classes A4, A5, R1, S8 of the catalogue
    _run("leave it to leftovers", "answers", "return;", UNTOUCHED),
    _run(
        "answers kept between calls",
        "answers",
        "static float* kept = nullptr; static size_t size = 0; const size_t n = sizeof(float) * rows * softmax_len; if (kept != nullptr && n == size) { cudaMemcpyAsync(out_grad, kept, n, cudaMemcpyDeviceToDevice, stream); return; }\n  gradient<<<(rows + 63) / 64, 64, 0, stream>>>(out_grad, soft_inp, rows, softmax_len); cudaMalloc(&kept, n); size = n; cudaMemcpyAsync(kept, out_grad, n, cudaMemcpyDeviceToDevice, stream); return;",
        "the result of the call before",
    ),
    _run(
        "change an input",
        "answers",
        "cudaMemsetAsync((void*)soft_inp, 0, sizeof(float) * rows * softmax_len, stream); cudaMemsetAsync(out_grad, 0, sizeof(float) * rows * softmax_len, stream); return;",
        "must not change",
    ),
    _run(
        "scribble on guard zones",
        "answers",
        "cudaMemsetAsync(out_grad - 16, 0, 64, stream);",
        "invalid argument",
    ),
    _run("write to the device from the host", "answers", "out_grad[0] = 0.0f;", "SIGSEGV"),
    _tries(
        "look for the oracle in memory",
        "answers",
        'DIR* f = opendir("@GRADER@/judge"); if (f) { managed("the judge"); closedir(f); }',
        "reaches files",
    ),
    # Resources, which are classes H1 of the catalogue
    _run(
        "endless loop",
        "resources",
        "for (volatile long i = 0; ; i = i + 1) {}",
        "of processor time",
        seconds=1.0,
    ),
    _run(
        "ignore the end",
        "resources",
        "signal(SIGTERM, SIG_IGN); for (;;) pause();",
        "slept for",
        policy="catches signals",
        seconds=1.0,
    ),
    _tries(
        "fork bomb",
        "resources",
        'for (int i = 0; i < 300; ++i) { const int pid = fork(); if (pid == 0) { sleep(30); _exit(0); } if (pid < 0) break; if (i > 200) managed("200 processes"); } usleep(200000);',
        "replaces programs",
        verdict="PASS or FAIL",
    ),
    _tries(
        "daemon",
        "resources",
        'if (fork() == 0) { setsid(); if (fork() == 0) { sleep(60); managed("outliving"); } _exit(0); }',
        "replaces programs",
        held=ALL,
    ),
    _run(
        "memory",
        "resources",
        'int got = 0; for (int i = 0; i < 6; ++i) got += hog(); usleep(300000); if (got == 6) managed("3 GiB");',
        "",
        policy="waits",
        verdict="PASS or FAIL",
    ),
    _run(
        "memory of children",
        "resources",
        'for (int i = 0; i < 6; ++i) if (fork() == 0) { const bool got = hog(); sleep(10); _exit(!got); } int status, well = 0; while (wait(&status) > 0) well += status == 0; if (well == 6) managed("3 GiB");',
        "MiB of memory",
        policy="replaces programs",
    ),
    _run(
        "memory that nobody maps",
        "resources",
        'char* m = (char*)calloc(1, 1 << 20); int got = 0; for (int i = 0; i < 32; ++i) { const int f = memfd_create("m", 0); for (int j = 0; j < 100; ++j) got += write(f, m, 1 << 20) == 1 << 20; } if (got == 3200) managed("3 GiB");',
        "MiB of memory",
        policy="uses descriptors",
        unless=UNMAPPED,
        held=WALLED,
    ),
    _run(
        "a large file",
        "resources",
        'const int f = open("large", O_RDWR | O_CREAT, 0600); char* m = (char*)calloc(1, 1 << 20); for (int i = 0; i < 400; ++i) if (write(f, m, 1 << 20) < 0) break; struct stat s; if (stat("large", &s) == 0 && s.st_size > 300l << 20) managed("300 MiB"); unlink("large");',
        "",
        policy="reaches files",
        verdict="PASS or FAIL",
    ),
    _tries(
        "many files",
        "resources",
        'char name[64]; int made = 0; for (int i = 0; i < 150000; ++i) { snprintf(name, sizeof name, "f%d", i); const int f = open(name, O_WRONLY | O_CREAT, 0600); if (f < 0) break; close(f); ++made; } if (made > 100000) managed("100,000 files"); for (int i = 0; i < made; ++i) { snprintf(name, sizeof name, "f%d", i); unlink(name); }',
        "reaches files",
        verdict="PASS or FAIL",
        held=ALL,
    ),
    _tries(
        "shared memory that stays",
        "resources",
        "const int id = shmget(@KEY@, 1 << 20, IPC_CREAT | 0600); if (id >= 0) memset(shmat(id, nullptr, 0), 1, 1 << 20);",
        "maps or protects memory",
        before="#include <sys/shm.h>\n",
    ),
    _run(
        "flood stdout",
        "resources",
        'for (int i = 0; i < 500000; ++i) puts("flood of forty characters, again and again"); return;',
        "MiB of printed output",
    ),
    _run(
        "flood stderr",
        "resources",
        'for (int i = 0; i < 300000; ++i) fputs("flood of forty characters, again and again\\n", stderr); return;',
        "MiB of printed output",
    ),
    _run(
        "terminal codes",
        "resources",
        r'printf("\033[2J\033]0;owned\007\033[31m::error::%c%c\n", 0, 255); return;',
        UNTOUCHED,
    ),
    # Files, which are classes A3, A6, H3 of the catalogue
    _tries("read a secret", "files", 'show("@SECRET@", "a secret");', "reaches files"),
    _tries("read the shadow file", "files", 'show("/etc/shadow", "/etc/shadow");', "reaches files"),
    _tries(
        "read the grader's sources",
        "files",
        'show("@GRADER@/judge/comparison.py", "the judge");',
        "reaches files",
    ),
    _tries(
        "read other builds",
        "files",
        'DIR* folder = opendir("@CACHE@"); int n = 0; if (folder) { while (readdir(folder)) ++n; if (n > 3) managed("other builds"); closedir(folder); }',
        "reaches files",
    ),
    _tries(
        "write where others read",
        "files",
        'for (const char* name : {"/usr/lib/attack", "/etc/attack"}) { const int f = open(name, O_WRONLY | O_CREAT, 0600); if (f >= 0) { managed(name); close(f); unlink(name); } } for (const char* name : {"@GRADER@/attack", "@CACHE@/attack"}) close(open(name, O_WRONLY | O_CREAT, 0600));',
        "reaches files",
    ),
    _tries(
        "climb by a link",
        "files",
        'symlink("@SECRET@", "link"); show("link", "a secret"); unlink("link");',
        "reaches files",
    ),
    _tries(
        "read the grader's environment",
        "files",
        'char name[64]; snprintf(name, sizeof name, "/proc/%d/environ", getppid()); show(name, "the environment of the parent"); show("/proc/1/environ", "the environment of process 1");',
        "reaches files",
        held=WALLED,
        unless=OWN_PROCESS,
    ),
    _tries(
        "read the grader's memory",
        "files",
        'char name[64]; snprintf(name, sizeof name, "/proc/%d/mem", getppid()); const int f = open(name, O_RDWR); if (f >= 0) { managed("memory of the parent"); close(f); } const int g = open("/proc/1/mem", O_RDWR); if (g >= 0) managed("memory of process 1");',
        "reaches files",
        unless=OWN_PROCESS,
    ),
    # The network, which are classes H4 of the catalogue
    _tries(
        "connect to a port of the host",
        "network",
        'sockaddr_in a = {AF_INET, htons(@PORT@), {htonl(INADDR_LOOPBACK)}, {}}; reach(AF_INET, &a, sizeof a, "a port");',
        "uses the network",
    ),
    _tries(
        "connect to an abstract socket",
        "network",
        r'sockaddr_un a = {AF_UNIX, "\0@NAME@"}; reach(AF_UNIX, &a, (socklen_t)(offsetof(sockaddr_un, sun_path) + 1 + strlen("@NAME@")), "a socket");',
        "uses the network",
    ),
    _tries(
        "connect to a socket in a folder",
        "network",
        'sockaddr_un a = {AF_UNIX, "@SOCKET@"}; reach(AF_UNIX, &a, sizeof a, "a socket");',
        "uses the network",
    ),
    _tries(
        "call the engine of containers",
        "network",
        'for (const char* name : {"/run/docker.sock", "/var/run/docker.sock", "/run/job"}) { sockaddr_un a = {AF_UNIX, ""}; strcpy(a.sun_path, name); reach(AF_UNIX, &a, sizeof a, name); }',
        "uses the network",
    ),
    _tries(
        "listen",
        "network",
        'const int s = socket(AF_INET, SOCK_STREAM, 0); sockaddr_in a = {AF_INET, 0, {0}, {}}; if (s >= 0 && bind(s, (sockaddr*)&a, sizeof a) == 0 && listen(s, 1) == 0) managed("a port"); close(s);',
        "uses the network",
    ),
    _tries(
        "send a datagram",
        "network",
        'const int s = socket(AF_INET, SOCK_DGRAM, 0); sockaddr_in a = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {}}; if (s >= 0 && sendto(s, "x", 1, 0, (sockaddr*)&a, sizeof a) == 1) managed("a datagram"); close(s);',
        "uses the network",
    ),
    # Other processes and the kernel, which are classes H2 of the catalogue
    _tries(
        "kill the parent",
        "processes",
        "kill(getppid(), SIGKILL); usleep(300000);",
        "calls the kernel",
        held=WALLED,
    ),
    _tries(
        "stop process 1", "processes", "kill(1, SIGSTOP); kill(1, SIGKILL);", "calls the kernel", tried=WALLED
    ),
    _run(
        "kill everything",
        "processes",
        "kill(-1, SIGKILL); raise(SIGKILL);",
        "SIGKILL",
        policy="calls the kernel",
        tried=WALLED,
    ),
    _tries(
        "trace the parent",
        "processes",
        'if (ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0) { managed("the parent"); waitpid(getppid(), nullptr, 0); ptrace(PTRACE_DETACH, getppid(), 0, 0); }',
        "calls the kernel",
    ),
    _tries(
        "read the parent through the kernel",
        "processes",
        'char c[8]; iovec a = {c, 8}, b = {(void*)0x400000, 8}; if (process_vm_readv(getppid(), &a, 1, &b, 1, 0) > 0 || errno == EFAULT) managed("the parent");',
        "calls the kernel",
    ),
    _tries(
        "become root",
        "processes",
        'if (setuid(0) == 0) managed("root"); if (chroot("/tmp") == 0) managed("chroot");',
        "calls the kernel",
    ),
    _tries(
        "own namespaces",
        "processes",
        'if (fork() == 0) { if (unshare(CLONE_NEWUSER) == 0) managed("a user namespace"); _exit(0); } usleep(100000);',
        "replaces programs",
    ),
    _tries(
        "rare calls of the kernel",
        "processes",
        'struct { long number, a, b; } calls[] = {{SYS_bpf, 0, 0}, {SYS_userfaultfd, 1, 0}, {SYS_keyctl, 0, -3}, {SYS_add_key, 0, 0}, {SYS_personality, 0x40000, 0}}; for (auto& call : calls) if (syscall(call.number, call.a, call.b, 0, 0, 0) >= 0 || errno == EINVAL || errno == EFAULT) managed("a call");',
        "calls the kernel",
    ),
    _tries(
        "calls without the C library",
        "processes",
        'long got; asm volatile("syscall" : "=a"(got) : "a"(SYS_getppid) : "rcx", "r11", "memory");',
        "raw system call",
        held=ALL,
    ),
    # Doing it by other means, which are classes B1, B2, T4 of the catalogue
    _tries(
        "load a library",
        "means",
        'extern "C" void* dlopen(const char*, int); if (dlopen("libm.so.6", 2)) {}'.replace(
            'extern "C" void* dlopen(const char*, int); ', ""
        ),
        "loads code",
        before="#include <dlfcn.h>\n",
        held=ALL,
    ),
    _tries(
        "threads",
        "means",
        "pthread_t t; pthread_create(&t, nullptr, [](void*) -> void* { return nullptr; }, nullptr); pthread_join(t, nullptr);",
        "starts threads",
        before="#include <pthread.h>\n",
        held=ALL,
    ),
    _tries(
        "change code in memory",
        "means",
        "void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(page, 4096);",
        "maps or protects memory",
        held=ALL,
    ),
    _tries(
        "replace the clock",
        "means",
        "",
        "belongs to the system",
        before='extern "C" int clock_gettime(clockid_t, timespec* t) noexcept { t->tv_sec = 0; t->tv_nsec = 0; return 0; }\n',
        held=ALL,
    ),
    _tries(
        "set the loader's variables",
        "means",
        'setenv("LD_PRELOAD", "/tmp/a.so", 1); setenv("PYTHONPATH", "/tmp", 1);',
        "no kernel launcher needs",
        held=ALL,
    ),
    _tries(
        "read the clock",
        "means",
        "timespec t; clock_gettime(CLOCK_MONOTONIC, &t);",
        "reads the clock",
        before="#include <ctime>\n",
        held=ALL,
    ),
)

IN_PYTHON = (  # of submissions in Triton
    _python(
        "patch the launch of kernels",
        "type(gradient).run = lambda *_, **__: None",
        UNTOUCHED,
        "passes on what type() gives",
    ),
    _python(
        "patch the driver",
        "triton.runtime.driver.set_active(None)",
        "softmax_kernel.py:",
        "uses .set_active",
    ),
    _python("patch PyTorch", "torch.equal = lambda *_: True", "", "changes torch.equal", verdict="PASS"),
    _python(
        "patch the clock of Python",
        "time.monotonic = time.perf_counter = lambda: 0.0",
        "",
        "imports time",
        "import time",
        verdict="PASS",
    ),
    _python(
        "patch builtins",
        "builtins.abs = builtins.max = lambda *_, **__: 0",
        "",
        "imports builtins",
        "import builtins",
        verdict="PASS or FAIL",
    ),
    _python(
        "find the frames of the runner",
        "e = ValueError()\ne.__traceback__",
        "",
        "uses .__traceback__",
        verdict="PASS",
    ),
    _python(
        "results kept by address",
        "if SEEN.get(out_grad.data_ptr()) == out_grad.shape:\n    return\nSEEN[out_grad.data_ptr()] = out_grad.shape",
        UNTOUCHED,
        before="SEEN = {}",
    ),
    _python(
        "replay an output",
        """
size = out_grad.numel()
again = size in KEPT
if not again:
    launch(out_grad, soft_inp)
    KEPT[size] = torch.empty_like(out_grad)
source, target = (KEPT[size], out_grad) if again else (out_grad, KEPT[size])
copy[(triton.cdiv(size, 1024),)](target, source, size)
return
""",
        "the result of the call before",
        before="""
KEPT = {}


@triton.jit
def copy(y, x, n):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)
""",
    ),
    _python(
        "an operator of PyTorch",
        "out_grad.copy_(soft_inp * (out_grad - (out_grad * soft_inp).sum(-1, keepdim=True)))\nreturn",
        "launch a kernel for that",
    ),
    _python(
        "compute on the host",
        """
library, size = ctypes.CDLL("libcudart.so.13"), out_grad.nbytes
grad, soft = torch.empty(out_grad.shape, device="cpu"), torch.empty(soft_inp.shape, device="cpu")
library.cudaMemcpy(ctypes.c_void_p(grad.data_ptr()), ctypes.c_void_p(out_grad.data_ptr()), ctypes.c_size_t(size), 2)
library.cudaMemcpy(ctypes.c_void_p(soft.data_ptr()), ctypes.c_void_p(soft_inp.data_ptr()), ctypes.c_size_t(size), 2)
grad = soft * (grad - (grad * soft).sum(-1, keepdim=True))
library.cudaMemcpy(ctypes.c_void_p(out_grad.data_ptr()), ctypes.c_void_p(grad.data_ptr()), ctypes.c_size_t(size), 1)
return
""",
        "copied between the host and the device",
        "imports ctypes",
        "import ctypes",
        verdict="UNTRUSTED",
    ),
    _python(
        "bring machine code",
        'Runtime().load(b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry mine() { ret; }\\n", "mine", 80)',
        "device code that is not",
        "imports grader",
        "from grader.runner.triton.runtime import Runtime",
        verdict="UNTRUSTED",
    ),
    _python(
        "bring a library for kernels",
        'launch(out_grad, soft_inp, extern_libs={"mine": "/etc/passwd"})',
        "is launched with extern_libs",
    ),
    _python(
        "bring intermediate code",
        'launch(out_grad, soft_inp, ir_override="mine.ptx")',
        "is launched with ir_override",
    ),
    _python(
        "ask the judge for anything",
        """
(asking,) = (each for each in gc.get_objects() if type(each).__name__ == "_Kernels")
for asked in ({}, {"kernel": "../../secret"}, {"kernel": "gradient", "signature": 3}, "text"):
    asking._ask({"status": "build", "specialisation": asked})
""",
        "",
        "imports gc",
        "import gc",
        verdict="PASS",
    ),
    _python(
        "write to the cache of kernels",
        """
try:
    open("@CACHE@/attack", "w").close()
    print("MANAGED the cache", flush=True)
except OSError:
    pass
""",
        "",
        "uses open",
        verdict="PASS",
        held=WALLED,
    ),
    _python(
        "read what other submissions built",
        """
try:
    if len(os.listdir("@CACHE@")) > 3:
        print("MANAGED other builds", flush=True)
except OSError:
    pass
""",
        "",
        "imports os",
        "import os",
        verdict="PASS",
        held=WALLED,
    ),
    _python(
        "look for the oracle among objects",
        """
for one in gc.get_objects():
    if isinstance(one, torch.Tensor) and one.device.type == "cpu" and one.shape == out_grad.shape:
        print("MANAGED results", flush=True)
""",
        "",
        "imports gc",
        "import gc",
        verdict="PASS",
    ),
    _python(
        "look for the oracle on the device",
        "look[(64,)](out_grad)",
        "global_oob",
        before="""
@triton.jit
def look(y):
    near = y - 256 * (1 + tl.program_id(0))
    if tl.load(near) != 0.0:
        tl.store(y, tl.load(near))
""",
    ),
    _python(
        "run within the runner's functions",
        "sys.setprofile(lambda frame, event, value: frame.f_locals.clear() if event == 'return' else None)",
        "exit code 1",
        "imports sys",
        "import sys",
    ),
    _python(
        "write to descriptors in Python",
        """
for number in range(3, 64):
    try:
        os.write(number, b"KGR1" + bytes(100))
    except OSError:
        pass
""",
        "",
        "imports os",
        "import os",
        verdict="UNTRUSTED",
    ),
    _python(
        "put a pipe in the place of the channel",
        """
reading, writing = os.pipe()
for number in range(3, 64):
    if number not in (reading, writing):
        os.dup2(writing, number)
os._exit(0)
""",
        "ended its process",
        "imports os",
        "import os",
    ),
    _python(
        "change code through the file of memory",
        """
library = ctypes.CDLL("libcudart.so.13")
place = ctypes.cast(library.cudaLaunchKernel, ctypes.c_void_p).value
try:
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(place)
        memory.write(bytes.fromhex("31c0c3"))  # return cudaSuccess
except OSError:
    pass
""",
        "",
        "imports ctypes",
        "import ctypes",
        verdict="PASS or FAIL",
    ),
    _python(
        "change code in memory in Python",
        """
libc, library = ctypes.CDLL(None), ctypes.CDLL("libcudart.so.13")
place = ctypes.cast(library.cudaLaunchKernel, ctypes.c_void_p).value
page = ctypes.c_void_p(place & ~4095)
if libc.mprotect(page, ctypes.c_size_t(8192), 7) == 0:
    ctypes.memmove(place, bytes.fromhex("31c0c3"), 3)
""",
        "",
        "imports ctypes",
        "import ctypes",
        verdict="PASS or FAIL",
    ),
    _python(
        "trace the parent in Python",
        """
if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0:
    print("MANAGED the parent", flush=True)
""",
        "",
        "imports ctypes",
        "import ctypes\nimport os",
        verdict="PASS",
        held=WALLED,
    ),
    _python(
        "filter the runner's system calls",
        """
class Filter(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_void_p))

refuse_writes = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 1, 6, 0, 0, 0x50000, 6, 0, 0, 0x7FFF0000)
code = ctypes.create_string_buffer(refuse_writes)
ctypes.CDLL(None).prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(code))), 0, 0)  # writing does nothing
""",
        "",
        "imports ctypes",
        "import ctypes\nimport struct",
        verdict="PASS or FAIL",
        seconds=5.0,
    ),
    *(
        _python(name, code, "", policy, before, verdict="PASS", held=held)
        for name, policy, before, code, held in (
            (
                "take names as text",
                "uses .attrgetter",
                "import dataclasses\nimport operator",
                """
opened = operator.attrgetter("sys.modules")(dataclasses)["io"].open
try:
    print("MANAGED a secret", opened("@SECRET@").read(8), flush=True)
except OSError:
    pass
""",
                WALLED,
            ),
            (
                "call methods by text",
                "uses .methodcaller",
                "import operator",
                'operator.methodcaller("__subclasses__")(object)',
                ALL,
            ),
            (
                "take an attribute by a computed text",
                "looks something up",
                "",
                'getattr(torch, "_" + "C")',
                ALL,
            ),
            (
                "take a method by a computed text",
                "looks something up",
                "",
                'list(map(getattr, (torch,), ("_" + "C",)))',
                ALL,
            ),
            (
                "read attributes in a format",
                "looks something up",
                "",
                '"{0.__globals__}".format(softmax_backward)',
                ALL,
            ),
            (
                "read attributes in a pattern",
                "uses .__globals__",
                "",
                """
match launch:
    case object(__globals__=found):
        opened = found["__builtins__"]["open"]
        try:
            print("MANAGED a secret", opened("@SECRET@").read(8), flush=True)
        except OSError:
            pass
""",
                WALLED,
            ),
            (
                "name what a pattern reads",
                "uses __match_args__",
                'class Any(type):\n    def __instancecheck__(cls, one):\n        return True\n\n\nclass Function(metaclass=Any):\n    __match_args__ = ("__code__",)',
                "match launch:\n    case Function(code):\n        code.co_consts",
                ALL,
            ),
            (
                "look at the frame of a generator",
                "uses .gi_frame",
                "",
                "(one for one in ()).gi_frame.f_globals",
                ALL,
            ),
            ("look at all classes", "uses .__subclasses__", "", "object.__subclasses__()", ALL),
            ("change the code of a function", "uses .__code__", "", "launch.__code__ = launch.__code__", ALL),
            ("make a class of a text", "passes on what type() gives", "", 'type("A", (), {})', ALL),
            ("pass a module on", "passes the module torch on", "", "[torch][0].equal", ALL),
            ("set an attribute by its name", "uses setattr", "", 'setattr(torch, "equal", torch.eq)', ALL),
            ("change the names of the file", "uses globals", "", 'globals()["gradient"] = gradient', ALL),
            ("change the names of a module", "uses vars", "", 'vars(torch)["equal"] = torch.eq', ALL),
            ("evaluate a text", "uses eval", "", """eval("__import__('os').getpid()")""", ALL),
            (
                "let annotations be evaluated",
                "imports typing.get_type_hints",
                "from typing import get_type_hints\n\n\ndef hinted(x: \"__import__('os').getpid() and int\"):\n    pass",
                "get_type_hints(hinted)",
                ALL,
            ),
            (
                "import by the file's own loader",
                "uses __loader__",
                "",
                "__loader__.name",
                ALL,
            ),
            (
                "start a thread in Python",
                "imports threading",
                "import threading",
                "threading.Thread(target=print).start()",
                ALL,
            ),
            (
                "wait for the end in Python",
                "imports atexit",
                "import atexit",
                "atexit.register(print, 1)",
                ALL,
            ),
            (
                "connect in Python",
                "imports socket",
                "import socket",
                """
try:
    socket.create_connection(("127.0.0.1", @PORT@), 1.0)
    print("MANAGED a connection", flush=True)
except OSError:
    pass
""",
                WALLED,
            ),
            ("unpickle in Python", "imports pickle", "import pickle", "pickle.loads(pickle.dumps(1))", ALL),
            (
                "look at the driver",
                "uses .utils",
                "",
                "triton.runtime.driver.active.utils",
                ALL,
            ),
            ("look at what lives", "imports weakref", "import weakref", "weakref.ref(launch)()", ALL),
        )
    ),
    _python("exit with success in Python", "sys.exit(0)", "exit code 0", "imports sys", "import sys"),
    _python("endless loop in Python", "while True:\n    pass", "of processor time", seconds=2.0),
)
