"""Whole programs that cheat, break out or break something: what the policy lets through, the sandbox holds.

One program does what a case names, and ends with exit code 77 if it managed. It must not earn the case, nor
see or leave anything outside of its folder.
"""

# ruff: noqa: E501 - C++ in one line

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grader
from grader.assignments.assignment import read
from grader.records.verdict import Ending, Verdict
from grader.run import grading
from grader.run.options import GradingOptions
from grader.sandbox.backends import select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.records.record import CaseResult, ProblemResult

pytestmark = pytest.mark.usefixtures("ptx_only")

RULES = """
id = "attacks"
title = "Attacks"

[limits]
run_seconds_sim = 2.0
host_memory_gib = 0.25
scratch_mib = 8.0

[[problems]]
id = "answer"
title = "The answer"
correctness = 10.0

[problems.program]
files = ["answer.cu"]
output = "out.txt"
"""

PROGRAM = r"""
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

__global__ void answer(int *x) { *x = 42; }

static void managed(const char *what) { fprintf(stderr, "%s\n", what); _exit(77); }
static void show(const std::string &path) {
  char text[64];
  int file = open(path.c_str(), O_RDONLY);
  if (file >= 0 && read(file, text, sizeof text) > 0) managed(path.c_str());
  if (file >= 0) close(file);
}
static void list(const std::string &path) {
  DIR *folder = opendir(path.c_str());
  if (!folder) return;
  int entries = 0;
  while (readdir(folder)) ++entries;
  if (entries > 2) managed(path.c_str());
}
static void spoil(const std::string &path) {
  int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (file >= 0 && write(file, "x", 1) == 1) managed(path.c_str());
  if (file >= 0) close(file);
}
static void right() {
  if (FILE *file = fopen("out.txt", "w")) {
    fputs("42\n", file);
    fclose(file);
  }
}

int main(int, char **words) {
  std::string deed = words[1], what = words[2];
  if (deed == "right") { int *x; cudaMalloc(&x, 4); answer<<<1, 1>>>(x); cudaDeviceSynchronize(); right(); return 0; }
  if (deed == "show") show(what);
  if (deed == "list") list(what);
  if (deed == "spoil") spoil(what);
  if (deed == "spoil_itself") spoil(words[0]);
  if (deed == "remove") { if (unlink(what.c_str()) == 0) managed("remove"); }
  if (deed == "right_without_a_kernel") { right(); return 0; }
  if (deed == "link") { if (symlink(what.c_str(), "out.txt")) return 1; return 0; }
  if (deed == "folder") { mkdir("out.txt", 0777); return 0; }
  if (deed == "pipe") { mkfifo("out.txt", 0666); return 0; }
  if (deed == "sparse") { int file = open("out.txt", O_WRONLY | O_CREAT, 0666); if (ftruncate(file, 1l << 40) == 0) managed("sparse"); return 0; }
  if (deed == "many_files") {
    std::string block(1 << 20, 'x');
    int written = 0;
    for (int i = 0; i < 64; ++i) {
      FILE *file = fopen(("f" + std::to_string(i)).c_str(), "w");
      if (file && fwrite(block.data(), 1, block.size(), file) == block.size() && fclose(file) == 0) ++written;
    }
    sleep(1);  // for those who look now and then
    if (written == 64) managed("many_files");
    right();
    return 0;
  }
  if (deed == "memory") { std::vector<std::string> all; for (int i = 0; i < 64; ++i) all.emplace_back(16 << 20, 'x'); sleep(1); managed("memory"); right(); return 0; }
  if (deed == "threads") { for (int i = 0; i < 500; ++i) std::thread([] { sleep(1000); }).detach(); managed("threads"); right(); return 0; }
  if (deed == "device") {  // nonsense for the device, and what the host may not touch there
    int fd = atoi(getenv("GRADER_SIM_FD") ? getenv("GRADER_SIM_FD") : "-1");
    int *x;
    cudaMalloc(&x, 4);
    char nonsense[64];
    memset(nonsense, 0xff, sizeof nonsense);
    if (fd >= 0 && write(fd, nonsense, sizeof nonsense) < 0) managed("nothing");
    answer<<<1, 1>>>(x);
    if (cudaDeviceSynchronize() == cudaSuccess) right();
    return 0;
  }
  if (deed == "host_reads_device") { int *x; cudaMalloc(&x, 4); answer<<<1, 1>>>(x); cudaDeviceSynchronize(); if (*(volatile int *)x == 42) right(); return 0; }
  if (deed == "print_for_ever") { for (;;) fprintf(stderr, "42 42 42 42 42 42 42 42 42 42 42 42 42 42\n"); }
  return 0;
}
"""

REFUSED = {  # what a program may not even be linked with, and as what it is told
    "return system(words[0]);": "starts or replaces programs: system",
    "return execve(words[0], words, 0);": "starts or replaces programs: execve",
    "return vfork();": "starts or replaces programs: vfork",
    "return popen(words[0], words[0]) != 0;": "starts or replaces programs: popen",
    "pid_t child; return posix_spawn(&child, words[0], 0, 0, words, 0);": "starts or replaces programs: posix_spawn",
    "return dlopen(words[0], 1) != 0;": "loads code at run time: dlopen",
    "return dlsym(0, words[0]) != 0;": "loads code at run time: dlsym",
    "return socket(1, 1, 0);": "uses the network: socket",
    "return getaddrinfo(words[0], 0, 0, 0);": "uses the network: getaddrinfo",
    "return syscall(57);": "calls the kernel directly: syscall",
    "return ptrace(PTRACE_TRACEME);": "calls the kernel directly: ptrace",
    "return kill(1, 9);": "calls the kernel directly: kill",
    "cudaIpcMemHandle_t handle; return cudaIpcGetMemHandle(&handle, words);": "shares memory with other processes: cudaIpcGetMemHandle",
    'long code = 57; asm volatile("syscall" : "+a"(code)); return code;': "holds a raw system call: syscall",
}

HEADERS = """
#include <dlfcn.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
"""


def assignment(folder: Path, deeds: Mapping[str, tuple[str, str]]) -> Path:
    for name, (deed, what) in deeds.items():
        (folder / "cases" / name).mkdir(parents=True)
        (folder / "cases" / name / "args").write_text(f"{deed} '{what}'\n")
        (folder / "cases" / name / "input.txt").write_text("1\n")
        (folder / "cases" / name / "expected.txt").write_text("42\n")
    (folder / "assignment.toml").write_text(RULES)
    return folder


def graded(folder: Path, text: str, sandbox: str) -> ProblemResult:
    submission = folder.parent / "ann"
    submission.mkdir(exist_ok=True)
    (submission / "answer.cu").write_text(text)
    request = grading.GradingRequest(
        submission, read(folder), ("answer",), GradingOptions("sim", sandbox), seed=1
    )
    (result,) = grading.grade(request).problems
    return result


@pytest.mark.parametrize("deed", REFUSED)
def test_the_policy_refuses_it_whatever_the_program_would_do(tmp_path: Path, deed: str) -> None:
    text = f"{HEADERS}__global__ void k() {{}}\nint main(int, char **words) {{ {deed} }}\n"
    result = graded(assignment(tmp_path / "a", {"one": ("", "")}), text, "process")
    assert result.verdict is Verdict.UNTRUSTED
    assert any(reason.startswith(REFUSED[deed]) for reason in result.trust.reasons), result.trust.reasons
    assert result.points.earned == 0


def deeds(folder: Path) -> dict[str, tuple[str, str]]:
    """What the program does, by the name of the case; some end by a limit, at most two."""
    package = Path(grader.__file__).parent
    return {
        "0 control": ("right", "x"),
        "assignment": ("show", str(folder / "a" / "assignment.toml")),
        "expected output": ("show", str(folder / "a" / "cases" / "other" / "expected.txt")),
        "cases": ("list", str(folder / "a" / "cases")),
        "submission": ("show", str(folder / "ann" / "answer.cu")),
        "grader": ("show", str(package / "judge" / "correctness" / "programs.py")),
        "passwords": ("show", "/etc/shadow"),
        "first process": ("show", "/proc/1/environ"),
        "parent": ("list", "/proc/1/fd"),
        "system": ("spoil", "/usr/bin/true"),
        "outside": ("spoil", str(folder / "spoilt.txt")),
        "itself": ("spoil_itself", "x"),
        "its assignment": ("remove", str(folder / "a" / "assignment.toml")),
        "host reads device": ("host_reads_device", "x"),
        "right without a kernel": ("right_without_a_kernel", "x"),
        "link to what is expected": ("link", str(folder / "a" / "cases" / "other" / "expected.txt")),
        "link to zeros": ("link", "/dev/zero"),
        "folder": ("folder", "x"),
        "pipe": ("pipe", "x"),
        "y many files": ("many_files", "x"),
        "y memory": ("memory", "x"),
    }


LIMITED = {
    "0 control": ("right", "x"),
    "sparse file": ("sparse", "x"),
    "y print for ever": ("print_for_ever", "x"),
    "z device": ("device", "x"),
}
"""What ends a program by a limit, and what ends all that follows."""

UNWALLED = {"parent"}  # the sandbox ``process`` shows all of /proc


def attacked(folder: Path, tried: Mapping[str, tuple[str, str]], sandbox: str) -> Mapping[str, CaseResult]:
    place = assignment(folder / "a", {name.replace(" ", "_"): deed for name, deed in tried.items()})
    result = graded(place, PROGRAM, sandbox)
    cases = {case.name.replace("_", " "): case for case in result.correctness.cases}
    assert not [name for name, case in cases.items() if case.ending is Ending.NOT_RUN]
    assert [name for name, case in cases.items() if case.verdict is Verdict.PASS] == ["0 control"]
    return cases


def chosen(sandbox: str) -> str:
    """The sandbox of this name, where it works as it should."""
    if select(sandbox if sandbox == "process" else "auto").name != sandbox:
        pytest.skip(f"no {sandbox} here")
    enforced = select(sandbox).probe().enforced
    if not any("only the inputs are visible" in text or "but the inputs" in text for text in enforced):
        pytest.skip(f"{sandbox} does not hide files here")
    return sandbox


@pytest.mark.parametrize("sandbox", ["bubblewrap", "process"])
def test_no_deed_manages_anything_or_earns_its_case(tmp_path: Path, sandbox: str) -> None:
    (tmp_path / "a" / "cases" / "other").mkdir(parents=True)
    (tmp_path / "a" / "cases" / "other" / "expected.txt").write_text("42\n")
    (tmp_path / "a" / "cases" / "other" / "args").write_text("nothing x\n")
    cases = attacked(tmp_path, deeds(tmp_path), chosen(sandbox))
    managed = {name for name, case in cases.items() if "exit code 77" in case.message}
    assert managed <= (UNWALLED if sandbox == "process" else set())
    assert not (tmp_path / "spoilt.txt").exists()
    assert (tmp_path / "a" / "assignment.toml").exists()


@pytest.mark.parametrize("sandbox", ["bubblewrap", "process"])
def test_limits_end_a_program_and_nonsense_for_the_device_ends_all(tmp_path: Path, sandbox: str) -> None:
    cases = attacked(tmp_path, LIMITED, chosen(sandbox))
    assert cases["sparse file"].message == "a file larger than the limit"
    assert cases["y print for ever"].message == "more than 1 MiB of printed output"
    assert cases["z device"].verdict is Verdict.UNTRUSTED
    assert "sent the simulator something that no CUDA runtime sends" in cases["z device"].message
