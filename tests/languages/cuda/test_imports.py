"""What honest code imports passes, what a launcher must not do is named. Host code suffices here."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from grader.languages.cuda.imports import violations

if TYPE_CHECKING:
    from pathlib import Path

HONEST = r"""
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
static std::mutex lock;
static std::map<int, std::vector<float>> buffers;
extern "C" int cudaMalloc(void**, size_t);
extern "C" double launch(int n, char* text) {
  std::lock_guard<std::mutex> guard(lock);
  std::unordered_map<std::string, int> table{{text, n}};
  std::stringstream stream;
  stream << std::setw(3) << std::hex << n << std::sin(n) * std::pow(n, .3) << expf(n) << std::endl;
  std::mt19937 random(n);
  std::normal_distribution<float> normal;
  auto& v = buffers[n];
  for (auto& x : v) x = normal(random);
  std::sort(v.begin(), v.end());
  auto shared = std::make_shared<int>(n);
  static int once = *shared + 1;
  assert(n > 0);
  printf("%s %s\n", stream.str().c_str(), getenv("DEBUG"));
  fprintf(stderr, "%d", once);
  fflush(stdout);
  std::cerr << "said";
  void* p = nullptr;
  if (cudaMalloc(&p, 4)) exit(EXIT_FAILURE);
  if (n < 3) throw std::invalid_argument("n");
  try { v.at(n); } catch (const std::exception& error) { puts(error.what()); }
  std::function<int(int)> f = [=](int k) { return k + n; };
  memset(text, 0, n);
  return f(3) + strtod(text, nullptr) + rand() + atoi(text) + std::stoi(text);
}
"""


def _library(folder: Path, source: str, *flags: str) -> Path:
    (folder / "a.cpp").write_text(source)
    library = folder / "a.so"
    subprocess.run(
        ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", "-o", library, folder / "a.cpp", *flags], check=True
    )
    return library


@pytest.mark.parametrize("flag", ["-O3", "-D_FORTIFY_SOURCE=2", "-fstack-protector-all"])
def test_honest_code_passes(tmp_path: Path, flag: str) -> None:
    assert violations(_library(tmp_path, HONEST, flag)) == ()


@pytest.mark.parametrize(
    ("header", "body", "reason"),
    [
        ("thread", "std::thread([] {}).join()", "starts threads: std::thread::_M_start_thread"),
        ("future", "std::async(std::launch::async, [] {}).get()", "starts threads"),
        ("pthread.h", "pthread_create(nullptr, nullptr, nullptr, nullptr)", "starts threads: pthread_create"),
        ("fstream", 'std::ofstream("/tmp/x") << 1', "reaches files"),
        ("cstdio", 'fopen("/etc/passwd", "r")', "reaches files: fopen"),
        ("fcntl.h", 'open("/etc/passwd", 0)', "reaches files: open"),
        ("filesystem", 'std::filesystem::remove("/x")', "reaches files"),
        ("cstdio", "getchar()", "reads its standard input"),
        ("unistd.h", "write(3, nullptr, 0)", "uses descriptors: write"),
        ("sys/socket.h", "socket(1, 1, 0)", "uses the network: socket"),
        ("cstdlib", 'system("id")', "starts or replaces programs: system"),
        ("unistd.h", "fork()", "starts or replaces programs: fork"),
        ("dlfcn.h", 'dlopen("x", 1)', "loads code at run time: dlopen"),
        ("unistd.h", "syscall(1)", "calls the kernel directly: syscall"),
        ("sys/ptrace.h", "ptrace(PTRACE_TRACEME)", "calls the kernel directly: ptrace"),
        ("csignal", "signal(11, nullptr)", "catches signals: signal"),
        ("sys/mman.h", "mprotect(nullptr, 0, 7)", "maps or protects memory: mprotect"),
        ("unistd.h", "sleep(1)", "waits instead of working: sleep"),
        ("ctime", "time(nullptr)", "reads the clock: time"),
        (
            "chrono",
            "(void)std::chrono::steady_clock::now()",
            "reads the clock: std::chrono::_V2::steady_clock::now",
        ),
        ("cmath", 'asm volatile("syscall" ::: "rax", "rcx", "r11")', "holds a raw system call: syscall"),
        ("cmath", 'asm volatile("rdtsc" ::: "rax", "rdx")', "holds a raw read of the clock: rdtsc"),
        ("cmath", 'extern "C" int cudaGetDriverEntryPoint(); cudaGetDriverEntryPoint()', "the driver behind"),
        ("cmath", 'extern "C" int cuInit(int); cuInit(0)', "the driver behind the runtime: cuInit"),
        (
            "cmath",
            'extern "C" void PyRun_SimpleString(); PyRun_SimpleString()',
            "no kernel launcher needs: PyRun",
        ),
    ],
)
def test_what_no_launcher_may_do_is_named(tmp_path: Path, header: str, body: str, reason: str) -> None:
    declaration, _, call = body.rpartition("; ") if body.startswith("extern") else ("", "", body)
    source = f'#include <{header}>\n{declaration};\nextern "C" void launch() {{ {call}; }}\n'
    (found,) = violations(_library(tmp_path, source, "-w"))
    assert reason in found


def test_the_source_line_is_told(tmp_path: Path) -> None:
    source = "#include <unistd.h>\n#include <chrono>\n\nint launch() { return fork(); }\n"
    source += "auto other() { return std::chrono::steady_clock::now(); }\n"
    found = violations(_library(tmp_path, source), {"k.cu": source.encode()})
    assert "starts or replaces programs: fork (k.cu:4)" in found
    assert any("steady_clock::now (k.cu:5)" in reason for reason in found)


@pytest.mark.parametrize(
    "name",
    [
        "_Z",
        "_ZZIiS",
        "_ZSt6thread1_M_start_theadESt10unique_trIN_6_StateESt14default_deleteIS1_EEPFvvE",
        "_ZNKStSactypeIcE8do_wdeEnEc",
        "_ZNI3abc3dRefEERKiPFv0EE",
    ],
)
def test_what_no_compiler_calls_a_function_stays_mangled(tmp_path: Path, name: str) -> None:
    library = _library(tmp_path, f'void evil() asm("{name}"); __attribute__((constructor)) void evil() {{}}')
    assert violations(library) == (f"runs code before the first call: {name}",)


def test_a_name_that_stands_for_an_endless_one_stays_mangled(tmp_path: Path) -> None:
    name = f"_Z4forkI1aIiiE{''.join(f'S0_IS{n}_S{n}_E' for n in '123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ')}Evv"
    library = _library(tmp_path, f'void evil() asm("{name}"); __attribute__((constructor)) void evil() {{}}')
    assert violations(library) == (f"runs code before the first call: {name}",)


def test_what_runs_before_the_first_call_is_named(tmp_path: Path) -> None:
    early = (
        "int n; struct S { S() { n = 2; } } s; __attribute__((constructor)) static void early() { n = 1; }"
    )
    assert violations(_library(tmp_path, early)) == ("runs code before the first call: early",)


def test_replacing_what_the_runner_calls_is_named(tmp_path: Path) -> None:
    source = 'extern "C" int cudaDeviceSynchronize() { return 0; } extern "C" long stride() { return 1; }'
    found = violations(_library(tmp_path, source))
    assert found == ("defines what belongs to the system: cudaDeviceSynchronize",)


def test_an_assignment_may_permit_more(tmp_path: Path) -> None:
    source = "#include <unistd.h>\nint launch() { return fork(); }\n"
    assert violations(_library(tmp_path, source), allowed=("v?fork",)) == ()
    assert violations(_library(tmp_path, source), allowed=("f",))


def test_another_library_is_named(tmp_path: Path) -> None:
    library = _library(tmp_path, "", "-Wl,--no-as-needed", "-lutil", "-lresolv")
    assert any("needs another library: libresolv.so.2" in reason for reason in violations(library))


def test_what_cannot_be_read_does_not_pass(tmp_path: Path) -> None:
    library = _library(tmp_path, HONEST)
    library.write_bytes(library.read_bytes()[:900])
    assert violations(library)
    library.write_bytes(b"not an object")
    assert "cannot be read" in violations(library)[0]
