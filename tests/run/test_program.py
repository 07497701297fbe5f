"""Program problems on the simulator: real builds and runs, and a message for whatever goes wrong in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from grader.assignments.assignment import EXAMPLE_PROGRAM, read
from grader.assignments.names import check
from grader.assignments.rules import AssignmentError, parse
from grader.devices import condition
from grader.devices.device import Answer, Schedule, Status
from grader.judge.correctness.cases import Judged
from grader.judge.correctness.programs import judged
from grader.languages.cuda import executable
from grader.languages.language import Build
from grader.problems.program import STDOUT, ProgramProblem, Run, program
from grader.records.record import BuildResult, CaseResult, PerformanceResult
from grader.records.verdict import Verdict
from grader.reports.fix_first import fix_first
from grader.run import grading
from grader.run import program as run_program
from grader.run.options import GradingOptions
from grader.run.scoring import score_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.devices.device import Call
    from grader.records.record import ProblemResult, Record

pytestmark = pytest.mark.usefixtures("ptx_only")

RULES = """
id = "answers"
title = "Programs"

[limits]
run_seconds_sim = 1.0
scratch_mib = 8.0

[[problems]]
id = "answer"
title = "The answer"
correctness = 10.0

[problems.program]
files = ["answer.cu"]
"""

UNRULY = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

__global__ void answer(int *x, int places) {
  if (threadIdx.x < places) x[threadIdx.x] = 42;
}

__global__ void last_comes_last(int *x) { *x = blockIdx.x == 0 ? 41 : 42; }

int compute(int places) {
  int *x, result = 0;
  cudaMalloc(&x, sizeof(int));
  answer<<<1, 32>>>(x, places);
  if (cudaMemcpy(&result, x, sizeof(int), cudaMemcpyDeviceToHost)) {
    fprintf(stderr, "CUDA failed\n");
    exit(1);
  }
  return result;
}

int main(int count, char **words) {
  const char *deed = words[count - 1];
  if (!strcmp(deed, "cpu")) return !printf("42\n");
  if (!strcmp(deed, "absent") || !strcmp(deed, "outside")) {
    FILE *file = strcmp(deed, "absent") ? fopen("/usr/result.txt", "w") : fopen("data.txt", "r");
    if (!file) perror(deed);
    return file ? 0 : 2;
  }
  if (!strcmp(deed, "139")) return 139;
  if (!strcmp(deed, "crash")) *(volatile int *)8 = 1;
  if (!strcmp(deed, "nothing")) return compute(1) != 42;
  if (!strcmp(deed, "stdin")) {
    int letters = 0;
    while (getchar() != EOF) ++letters;
    return !printf("%d\n", letters + 0 * compute(1));
  }
  if (!strcmp(deed, "beyond")) return !printf("%d\n", compute(2));
  if (!strcmp(deed, "order")) {
    int *x, result;
    cudaMalloc(&x, sizeof(int));
    last_comes_last<<<2, 1>>>(x);
    cudaMemcpy(&result, x, sizeof(int), cudaMemcpyDeviceToHost);
    return !printf("%d\n", result);
  }
  if (!strcmp(deed, "flood"))
    while (puts("42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42") > 0) {}
  if (!strcmp(deed, "sleep")) sleep(1000);
  if (!strcmp(deed, "spin"))
    for (volatile int i = 0;; ++i) {}
  printf("%d%s\n", compute(1), strcmp(deed, "wrong") ? "" : "0");
}
"""

DEEDS = {  # what a case makes the program do, in the order of the cases, and what is said of it
    "0_right": "",
    "139": "the program died of SIGSEGV (Segmentation fault): exit code 139",
    "absent": 'the program ended with exit code 2: it said "absent: No such file or directory"',
    "beyond": "",  # a finding of memcheck costs points, and the number is right
    "cpu": "the output is right, but no kernel was launched: the program has to compute on the GPU",
    "crash": "the program died of SIGSEGV (Segmentation fault): exit code 139",
    "nothing": "the program printed nothing, and ended with exit code 0",
    "order": 'line 1 of stdout, word 1: "41" instead of "42"',
    "outside": 'the program ended with exit code 2: it said "outside: Read-only file system"',
    "stdin": 'line 1 of stdout, word 1: "0" instead of "42"',
    "wrong": 'line 1 of stdout, word 1: "420" instead of "42"',
    "y_flood": "more than 1 MiB of printed output",
    "y_sleep": "the host code slept for 5 s while no kernel ran: it waits for something that does not happen",
    "y_spin": "the host code used more than 1 s of processor time: an endless loop, or far too slow?",
}


def assignment(folder: Path, cases: Mapping[str, Mapping[str, str]], rules: str = RULES) -> Path:
    """Write an assignment with these cases, each with the content of its files."""
    (folder / "student_template").mkdir(parents=True)
    (folder / "assignment.toml").write_text(rules)
    for case, files in cases.items():
        (folder / "cases" / case).mkdir(parents=True)
        for name, text in files.items():
            (folder / "cases" / case / name).write_text(text)
    return folder


def submission(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / re.sub("_(?=cu$|h$|txt$)", ".", name)).write_text(text)
    return folder


def record(assignment_folder: Path, path: Path, seed: int = 1, sandbox: str = "auto") -> Record:
    chosen = read(assignment_folder)
    names = tuple(problem.id for problem in chosen.rules.problems)
    request = grading.GradingRequest(path, chosen, names, GradingOptions("sim", sandbox), seed)
    return grading.grade(request)


def graded(assignment_folder: Path, path: Path, seed: int = 1) -> ProblemResult:
    return record(assignment_folder, path, seed).problems[0]


@cache
def one_case(folder: Path) -> Path:
    return assignment(folder / "assignment", {"one": {"args": "right", "expected.txt": "42\n"}})


@pytest.fixture(scope="module")
def unruly(tmp_path_factory: pytest.TempPathFactory) -> ProblemResult:
    """The result of the program that does whatever a case says."""
    folder = tmp_path_factory.mktemp("unruly")
    cases = {
        name: {"args": f'"two words" {name.rpartition("_")[2]}', "expected.txt": "42\n"} for name in DEEDS
    }
    return graded(assignment(folder / "assignment", cases), submission(folder / "ann", answer_cu=UNRULY))


@pytest.fixture(scope="module")
def by_name(unruly: ProblemResult) -> Mapping[str, CaseResult]:
    return {case.name: case for case in unruly.correctness.cases}


@pytest.mark.parametrize("deed", DEEDS)
def test_each_deed_has_its_own_message(by_name: Mapping[str, CaseResult], deed: str) -> None:
    case = by_name[deed]
    assert case.verdict is (Verdict.FAIL if DEEDS[deed] else Verdict.PASS)
    assert DEEDS[deed] in (case.message or case.diagnosis)


def test_the_reversed_order_shows_what_depends_on_the_order(by_name: Mapping[str, CaseResult]) -> None:
    assert by_name["order"].schedule == Schedule.REVERSED.value
    assert by_name["wrong"].schedule is None


def test_findings_name_lines_and_cost_points_as_they_do_for_launchers(unruly: ProblemResult) -> None:
    lines = {(check.tool, one.file, one.line) for check in unruly.checks for one in check.findings}
    assert lines == {("memcheck", "answer.cu", 8), ("racecheck", "answer.cu", 11)}
    assert [group.verdict for group in unruly.correctness.groups] == [Verdict.FAIL, Verdict.FAIL]
    assert unruly.points.earned == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__global__ void k() {}\n", "no main: answer.cu has no function main, with which a program begins"),
        (
            "__global__ void k() {}\nint helper();\nint main() { return helper(); }\n",
            "answer.cu was not linked, as nothing defines helper(): it was never written",
        ),
        ("int main() { return x; }\n", "answer.cu did not compile"),
        (
            'extern "C" int f(int);\nnamespace { int f(float) { return 1; } }\nint main() { return f(2); }\n',
            'answer.cu was not linked: what calls f asks for an extern "C" function, and answer.cu',
        ),
        (
            "int f(int);\nstatic int f(float) { return 1; }\nint main() { return f(2); }\n",
            "answer.cu was not linked: what calls f asks for f(int), and answer.cu defines f with other",
        ),
    ],
    ids=["no main", "undefined", "compile error", 'without extern "C"', "other parameters"],
)
def test_what_is_not_built_says_why(tmp_path: Path, text: str, message: str) -> None:
    result = graded(one_case(tmp_path), submission(tmp_path / "ann", answer_cu=text))
    assert result.verdict is Verdict.FAIL
    assert result.message.startswith(message)
    assert result.build is not None
    assert not result.build.ok
    assert result.build.log


def test_a_program_runs_in_a_sandbox_that_only_bounds_its_process(tmp_path: Path) -> None:
    cases = {
        "one": {"args": "right", "expected.txt": "42"},
        "two": {"args": "139", "expected.txt": "42"},
        "three": {"args": "absent", "expected.txt": "42", "exit": "2"},
    }
    folder = assignment(tmp_path / "a", cases)
    (result,) = record(folder, submission(tmp_path / "ann", answer_cu=UNRULY), sandbox="process").problems
    said = {case.name: case.message for case in result.correctness.cases}
    assert said == {
        "one": "",
        "two": DEEDS["139"],
        "three": "the program printed nothing, and ended with exit code 2",
    }


IDLE = """#include <cstdio>
__global__ void k(int *x) { BODY }
int main() {
  int *x, y = 0;
  cudaMalloc(&x, 4);
  k<<<1, 1>>>(x);
  cudaDeviceSynchronize();
  HOST
  cudaFree(x);
}
"""
FETCHED = r'cudaMemcpy(&y, x, 4, cudaMemcpyDefault); printf("%d\n", y);'


@pytest.mark.parametrize(
    ("kernel", "host", "message"),
    [
        (
            "",
            'puts("42");',
            "the output is right, but no kernel reads or writes memory, or prints: the program",
        ),
        ("*x = 42;", FETCHED, ""),
        ("atomicExch(x, 42);", FETCHED, ""),
        (r'printf("42\n");', "", ""),
    ],
    ids=["empty kernel", "store", "atomic", "printing kernel"],
)
def test_a_kernel_has_to_determine_the_output(tmp_path: Path, kernel: str, host: str, message: str) -> None:
    text = IDLE.replace("BODY", kernel).replace("HOST", host)
    result = graded(one_case(tmp_path), submission(tmp_path / "ann", answer_cu=text))
    (case,) = result.correctness.cases
    assert (case.verdict is Verdict.FAIL) is bool(message)
    assert case.message.startswith(message)


def test_a_case_without_elements_is_right_if_others_have_some(tmp_path: Path) -> None:
    cases = {
        "none": {"args": "0", "expected.txt": "0\n"},
        "some": {"args": "42", "expected.txt": "42\n"},
    }
    fetched = f'if (n) {{ {FETCHED} }} else puts("0");'
    text = (
        IDLE.replace("BODY", "if (n) *x = n;").replace("HOST", fetched).replace("int *x)", "int *x, int n)")
    )
    text = text.replace("main() {", "main(int, char **words) { const int n = atoi(words[1]);")
    text = text.replace("(x);\n  cudaD", "(x, n);\n  cudaD").replace(
        "<cstdio>", "<cstdio>\n#include <cstdlib>"
    )
    result = graded(assignment(tmp_path / "a", cases), submission(tmp_path / "ann", answer_cu=text))
    assert [case.verdict for case in result.correctness.cases] == [Verdict.PASS, Verdict.PASS]


def test_two_mains_are_told(tmp_path: Path) -> None:
    rules = RULES.replace('files = ["answer.cu"]', 'files = ["answer.cu", "more.cu"]')
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    main = "int main() { return 0; }\n"
    result = graded(folder, submission(tmp_path / "ann", answer_cu=main, more_cu=main))
    assert result.message == (
        "more than one function main: of answer.cu, more.cu and what comes with the assignment, one file "
        "alone may have it"
    )


def test_further_files_may_match_a_pattern(tmp_path: Path) -> None:
    rules = RULES.replace('["answer.cu"]', '["answer.cu", "part_*.cu"]')
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    main = """#include <cstdio>
        int kernels(), more();
        int main() { printf("%d\\n", kernels() + more()); }"""
    kernels = """__global__ void k(int *x) { *x = 40; }
        int kernels() { int *x, y; cudaMalloc(&x, 4); k<<<1, 1>>>(x); cudaMemcpy(&y, x, 4, cudaMemcpyDefault);
          return y; }"""
    more = "int more() { return 2; }"
    ann = submission(tmp_path / "ann", answer_cu=main, part_b_cu=kernels, part_a_cu=more)
    (ann / "old.cu").write_text("int main() { return 1; }")
    (ann / "backup").mkdir()
    (ann / "backup" / "part_a.cu").write_text("int more() { return 3; }")
    result = graded(folder, ann)
    assert result.build is not None
    assert result.build.command.split()[3:6] == ["answer.cu", "part_a.cu", "part_b.cu"]
    assert result.verdict is Verdict.PASS
    (ann / "part_b.cu").unlink()
    assert "nothing defines kernels()" in graded(folder, ann).message


def test_kernels_may_call_functions_of_other_files(tmp_path: Path) -> None:
    rules = RULES.replace('["answer.cu"]', '["answer.cu", "part_*.cu"]') + 'flags = ["-rdc=true"]\n'
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    main = """#include <cstdio>
        extern __device__ int half(int x);
        __global__ void k(int *x) { *x = 2 * half(42); }
        int main() { int *x, y; cudaMalloc(&x, 4); k<<<1, 1>>>(x); cudaMemcpy(&y, x, 4, cudaMemcpyDefault);
          printf("%d\\n", y); }"""
    part = "__device__ int half(int x) { return x / 2; }"
    ann = submission(tmp_path / "ann", answer_cu=main, part_a_cu=part)
    assert graded(folder, ann).verdict is Verdict.PASS
    (ann / "part_a.cu").write_text(part.replace("x / 2", "x / 3"))
    assert graded(folder, ann).verdict is Verdict.FAIL


def test_warnings_may_be_errors(tmp_path: Path) -> None:
    text = UNRULY.replace("int compute(int places) {", "int compute(int places) {\n  int unused;")
    ann = submission(tmp_path / "ann", answer_cu=text)
    assert graded(one_case(tmp_path / "shown"), ann).verdict is Verdict.PASS
    rules = RULES + 'warnings = "error"\n'
    case = {"one": {"args": "right", "expected.txt": "42\n"}}
    result = graded(assignment(tmp_path / "a", case, rules), ann)
    assert result.message == "answer.cu did not compile: warnings are errors in this assignment"
    assert result.build is not None
    assert 'answer.cu(14): error #177-D: variable "unused"' in result.build.log
    right = submission(tmp_path / "bob", answer_cu=UNRULY)
    assert graded(tmp_path / "a", right).verdict is Verdict.PASS


def test_a_library_that_the_machine_lacks_is_no_fault_of_the_student(tmp_path: Path) -> None:
    rules = RULES + 'flags = ["-lno_such_library"]\n'
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    done = record(folder, submission(tmp_path / "ann", answer_cu="int main() { return 0; }\n"))
    assert done.error is not None
    assert "links with -lno_such_library, which the linker does not find" in done.error
    assert done.score.decided == 0


def test_processes_and_sockets_make_it_untrusted_with_the_line(tmp_path: Path) -> None:
    text = (
        '#include <unistd.h>\nextern "C" int socket(int, int, int);\n'
        "int main() {\n  return fork() + socket(1, 1, 0);\n}\n"
    )
    result = graded(one_case(tmp_path), submission(tmp_path / "ann", answer_cu=text))
    assert result.verdict is Verdict.UNTRUSTED
    assert sorted(result.trust.reasons) == [
        "starts or replaces programs: fork (answer.cu:4)",
        "uses the network: socket (answer.cu:2)",
    ]


MAIN = """
#include <cstdio>
#include "answer.h"
int main() { std::printf("%d\\n", answer()); }
"""
ANSWER = """
#include "answer.h"
__global__ void k(int *x) { *x = WHAT; }
int answer() {
  int *x, y;
  cudaMalloc(&x, 4);
  k<<<1, 1>>>(x);
  cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);
  return y;
}
"""
BY_NVCC = """
NVCC ?= nvcc
NVCCFLAGS = -O2 -arch=sm_90 -gencode arch=compute_90,code=sm_90 --cudart static -DWHAT=42

answer: main.o answer.o
\t$(NVCC) $(NVCCFLAGS) -o $@ $^ -lcudart_static

%.o: %.cu answer.h
\t$(NVCC) $(NVCCFLAGS) -c $< -o $@

%.o: %.cpp answer.h
\t$(NVCC) -c $< -o $@
"""
BY_GCC = """
CUDA_PATH = /opt/cuda
answer: answer.cu main.cpp
\t$(CUDA_PATH)/bin/nvcc -DWHAT=42 -c answer.cu -o answer.o
\tg++ -I$(CUDA_PATH)/include -c main.cpp
\tg++ -o answer main.o answer.o -L$(CUDA_PATH)/lib64 -lcudart
"""


@pytest.mark.parametrize("makefile", [BY_NVCC, BY_GCC], ids=["nvcc", "g++"])
def test_a_makefile_of_the_course_builds_the_program(tmp_path: Path, makefile: str) -> None:
    rules = RULES + 'given = ["Makefile", "main.cpp", "answer.h"]\nmake = "answer"\n'
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    for name, text in {"Makefile": makefile, "main.cpp": MAIN, "answer.h": "int answer();\n"}.items():
        (folder / name).write_text(text)
    result = graded(folder, submission(tmp_path / "ann", answer_cu=ANSWER))
    assert result.build is not None
    assert result.verdict is Verdict.PASS, (result.message, result.build.log)
    wrong = graded(folder, submission(tmp_path / "ben", answer_cu=ANSWER.replace("*x = WHAT", "x[1] = WHAT")))
    lines = {(check.tool, one.file, one.line) for check in wrong.checks for one in check.findings}
    assert ("memcheck", "answer.cu", 3) in lines


def test_a_makefile_may_be_the_student_s(tmp_path: Path) -> None:
    rules = RULES.replace('["answer.cu"]', '["answer.cu", "main.cpp", "Makefile"]\nmake = "answer"')
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    mine = {"answer_cu": ANSWER, "answer_h": "int answer();\n", "main.cpp": MAIN}
    right = submission(tmp_path / "ann", **mine, Makefile=BY_GCC)
    assert graded(folder, right).verdict is Verdict.PASS
    by_path = submission(
        tmp_path / "ben", **mine, Makefile=BY_NVCC.replace("$(NVCC)", shutil.which("nvcc") or "")
    )
    result = graded(folder, by_path)
    assert result.build is not None
    assert (
        "has a CUDA runtime of its own, as its Makefile does not call the nvcc of the grader"
        in result.build.log
    )
    none = submission(tmp_path / "cem", **mine, Makefile="all:\n\ttrue\n")
    assert graded(folder, none).message == (
        "make answer made no program: there is no target answer. "
        "Give the target that makes the program this name"
    )
    absent = submission(tmp_path / "dan", **mine)
    assert graded(folder, absent).message == "Makefile is missing."


LISTS = """
cmake_minimum_required(VERSION 3.18)
project(answer LANGUAGES CXX CUDA)
add_compile_definitions(WHAT=42)
add_library(answering STATIC gpu/answer.cu)
target_include_directories(answering PUBLIC course)
add_executable(answer course/main.cpp)
target_link_libraries(answer answering)
"""
PROJECT = RULES.replace('["answer.cu"]', '["gpu/answer.cu"]\nproject = "project"\ncmake = "answer"')


def cmake_assignment(folder: Path) -> Path:
    made = assignment(folder, {"one": {"expected.txt": "42"}}, PROJECT)
    for name, text in {
        "CMakeLists.txt": LISTS,
        "course/main.cpp": MAIN,
        "course/answer.h": "int answer();\n",
        "gpu/answer.cu": "int answer() { return 0; }  // to be written\n",
    }.items():
        (made / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (made / "project" / name).write_text(text)
    return made


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_a_cmake_project_of_the_course_builds_the_program_of_the_student_s_part(tmp_path: Path) -> None:
    folder = submission(tmp_path / "ann", answer_cu=ANSWER, CMakeLists_txt="the student's own")
    found = record(cmake_assignment(tmp_path / "a"), folder)
    (result,) = found.problems
    assert result.verdict is Verdict.PASS
    assert result.build is not None
    assert (result.build.command, result.build.log) == ("cmake --build build --target answer", "")
    assert any("CMakeLists.txt" in note for note in found.submission.notes if note.startswith("ignored"))


def test_a_machine_without_cmake_is_no_fault_of_the_student() -> None:
    lacking = executable._lacking
    assert lacking(127, "compile: 10: cmake: not found") == (
        "The assignment is built by cmake, which is not installed on this machine."
    )
    assert lacking(1, "cmake: not found") == ""


PAGE = (Path(__file__).parents[2] / "docs" / "programs.md").read_text()


def test_the_function_of_the_page_makes_a_problem(tmp_path: Path) -> None:
    (module,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    rules = RULES.partition("[problems.program]")[0].replace("answer", "vector_add")
    folder = assignment(tmp_path / "a", {}, rules)
    (folder / "problems").mkdir()
    (folder / "problems" / "vector_add.py").write_text(module)
    result = graded(folder, EXAMPLE_PROGRAM / "reference")
    assert result.verdict is Verdict.PASS
    assert [len(case.outputs) for case in result.correctness.cases] == [1, 1, 1]


def test_the_table_of_the_page_is_one() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (table,) = [text for text in blocks if "kernels =" in text]
    rules = parse({"id": "a", "title": "A", **tomllib.loads(table)}, Path("assignment.toml"))
    assert rules.problems[0].program is not None
    assert rules.problems[0].program.model_fields_set >= {"files", "given", "flags", "kernels"}
    (speed,) = [text for text in blocks if "bands =" in text]
    entry = parse({"id": "a", "title": "A", **tomllib.loads(speed)}, Path("assignment.toml")).problems[0]
    assert (entry.performance, [step.points for step in entry.steps]) == (5.0, [1.0, 3.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("files", "file"), "unknown key 'problems[0].program.file'. Did you mean 'files'?"),
        (('["answer.cu"]', "[]"), "at least 1 item"),
        (('["answer.cu"]', '["*.cu"]'), "files: name a file before the pattern '*.cu', such as that with"),
        (('["answer.cu"]', '["answer.cu"]\nignore = ["("]'), "ignore: '(' is no regular expression"),
        (
            ('["answer.cu"]', '["answer.cu"]\nflags = ["-arch=sm_90"]'),
            "-arch=sm_90 is the grader's to choose",
        ),
        (
            ('["answer.cu"]', '["answer.cu"]\ngiven = ["main.cu"]'),
            "main.cu, a file of the assignment, is missing",
        ),
        (('["answer.cu"]', '["answer.cu"]\ncases = "tests"'), "tests is missing: put a folder there"),
        (
            ('["answer.cu"]', '["answer.cu"]\nmake = "all"'),
            "make = 'all' needs a Makefile in files, or in given",
        ),
        (
            ("correctness = 10.0", "correctness = 10.0\nperformance = 5.0\ntarget = 1.0"),
            "answer gives points for speed and has no cases to time: name their folder as timed",
        ),
        (('["answer.cu"]', '["answer.cu"]\nregion = "(?P<minutes>.*)"'), "needs a group named s, ms or us"),
        (('["answer.cu"]', '["answer.cu"]\nregion = "("'), "region: '(' is no regular expression"),
        (('["answer.cu"]', '["answer.cu"]\ntimed = "large"'), "large is missing: put a folder there"),
        (
            ("correctness = 10.0", "correctness = 10.0\nbands = [{ up_to = 1.2, point = 5.0 }]"),
            "unknown key 'problems[0].bands[0].point'. Did you mean 'points'",
        ),
        (
            (
                "correctness = 10.0",
                "correctness = 10.0\nbands = [{ up_to = 2.0, points = 5.0 }, { up_to = 1.5, points = 2.0 }]",
            ),
            "Each step has to be faster",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_told(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(AssignmentError) as caught:
        check(read(assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, RULES.replace(*change, 1))))
    assert message in str(caught.value)


def test_a_problem_in_a_module_and_in_a_table_is_refused(tmp_path: Path) -> None:
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}})
    (folder / "problems").mkdir()
    (folder / "problems" / "answer.py").write_text(FRESH)
    with pytest.raises(AssignmentError, match="answer has both a module and a table"):
        check(read(folder))


def test_another_expected_output_makes_another_assignment(tmp_path: Path) -> None:
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}})
    before = read(folder).sha256
    (folder / "cases" / "one" / "expected.txt").write_text("43")
    assert read(folder).sha256 != before


FRESH = '''"""Doubles a number, which every run draws anew."""

import numpy as np

from grader.problems.formats import write_numbers
from grader.problems.program import Numbers, Run, program


def run(case):
    x = np.random.default_rng(case.seed).integers(1000, 1_000_000, case.sizes["n"])
    return Run(
        arguments=("in.txt", "out.txt"),
        files={"in.txt": write_numbers(x)},
        expected={"out.txt": Numbers(2 * x)},
    )


PROBLEM = program(id="answer", file="answer.cu", run=run, sizes={"sizes": [{"n": 1}, {"n": 3}]})
'''

DOUBLE = r"""
#include <cstdio>
#include "double.h"

int main(int, char **words) {
  FILE *in = fopen(words[1], "r"), *out = fopen(words[2], "w");
  int *x;
  cudaMallocManaged(&x, sizeof(int));
  while (fscanf(in, "%d", x) == 1) {
    twice<<<1, 1>>>(x);
    cudaDeviceSynchronize();
    fprintf(out, "%d\n", PRINTED);
  }
}
"""


def fresh(tmp_path: Path) -> Path:
    rules = RULES.partition("[problems.program]")[0]
    folder = assignment(tmp_path / "a", {}, rules)
    (folder / "problems").mkdir()
    (folder / "problems" / "answer.py").write_text(FRESH)
    return folder


def test_content_is_fresh_so_what_was_expected_once_is_wrong_the_next_time(tmp_path: Path) -> None:
    folder = fresh(tmp_path)
    kernel = "__global__ void twice(int *x) { *x *= 2; }\n"
    right = submission(tmp_path / "ann", answer_cu=DOUBLE.replace("PRINTED", "*x"), double_h=kernel)
    assert graded(folder, right).verdict is Verdict.PASS
    first = 2 * int(
        read(folder)
        .problems["answer"]
        .run(  # type: ignore[attr-defined]
            read(folder).problems["answer"].cases(1)[0]
        )
        .files["in.txt"]
    )
    known = submission(tmp_path / "eve", answer_cu=DOUBLE.replace("PRINTED", str(first)), double_h=kernel)
    for seed in (1, 2):
        result = graded(folder, known, seed)
        assert result.verdict is Verdict.FAIL
        case = result.correctness.cases[0]
        assert f"element [0] of out.txt is {first} instead of" in case.diagnosis
    assert result.correctness.cases[0].schedule is None  # wrong at once with another seed


def test_a_host_that_does_not_wait_for_the_device_is_wrong_with_late_streams(tmp_path: Path) -> None:
    text = DOUBLE.replace("PRINTED", "*x").replace("    cudaDeviceSynchronize();\n", "")
    kernel = "__global__ void twice(int *x) { *x *= 2; }\n"
    result = graded(fresh(tmp_path), submission(tmp_path / "ann", answer_cu=text, double_h=kernel))
    assert [case.verdict for case in result.correctness.cases] == [Verdict.FAIL] * 2
    assert "in the first call" not in "".join(case.diagnosis for case in result.correctness.cases)


def test_files_of_the_assignment_come_before_those_of_the_student(tmp_path: Path) -> None:
    rules = RULES + 'given = ["course.cu", "course.h"]\n'
    folder = assignment(tmp_path / "a", {"one": {"expected.txt": "42"}}, rules)
    (folder / "course.h").write_text("int answer();\n")
    (folder / "course.cu").write_text(
        '#include <cstdio>\n#include "course.h"\nint main() { printf("%d\\n", answer()); }\n'
    )
    mine = """
#include "course.h"
__global__ void k(int *x) { *x = 42; }
int answer() {
  int *x, y;
  cudaMalloc(&x, 4);
  k<<<1, 1>>>(x);
  cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost);
  return y;
}
"""
    result = graded(folder, submission(tmp_path / "ann", answer_cu=mine, course_h="#error never read\n"))
    assert result.verdict is Verdict.PASS
    assert result.notes == ["course.h: the assignment's was taken, not yours"]
    missing = mine.replace("= 42", "= ANSWER")
    result = graded(folder, submission(tmp_path / "ben", answer_cu=missing, course_h="#define ANSWER 42\n"))
    assert result.verdict is Verdict.FAIL
    assert result.message.endswith("; course.h: the assignment's was taken, not yours")
    first = fix_first(result)
    assert first is not None
    assert first.do == "course.h: the assignment's was taken, not yours."


def test_a_program_is_graded_without_pytorch_which_takes_a_second_to_load() -> None:
    modules = "grader.cli.outputs, grader.run.bench, grader.run.grading, grader.assignments.programs"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TIMED = RULES.replace(
    "correctness = 10.0",
    """correctness = 10.0
bands = [{ up_to = 1.25, points = 5.0 }, { up_to = 2.0, points = 3.0 }, { up_to = 10.0, points = 1.0 }]""",
).replace('["answer.cu"]', '["answer.cu"]\ntimed = "timed"')


def timed_assignment(folder: Path) -> Path:
    made = assignment(folder, {"one": {"expected.txt": "42"}}, TIMED)
    shutil.copytree(made / "cases", made / "timed")
    submission(made / "reference", answer_cu=UNRULY)
    return made


@pytest.mark.parametrize(
    ("times", "points"), [(1.0, 5.0), (1.25, 5.0), (1.9, 3.0), (2.1, 1.0), (9.0, 1.0), (10.5, 0.0)]
)
def test_bands_give_points_by_the_reference_s_time(tmp_path: Path, times: float, points: float) -> None:
    entry = read(timed_assignment(tmp_path / "a")).rules.problems[0]
    assert (entry.possible, entry.performance, entry.target) == (15.0, 5.0, 0.8)
    verdict = Verdict.PASS if times <= 1.25 else Verdict.FAIL
    speed = PerformanceResult(verdict=verdict, target=entry.target, speedup=1 / times)
    right = CaseResult(name="one", group="cases", verdict=Verdict.PASS)
    score = score_problem(entry, {}, ("cases",), [right], Verdict.PASS, speed)
    assert score.points.earned == 10.0 + points


def test_an_assignment_may_have_other_bands_or_targets_than_the_one_that_it_extends(tmp_path: Path) -> None:
    timed_assignment(tmp_path / "a")
    other = tmp_path / "b"
    other.mkdir()
    table = 'id = "b"\ntitle = "B"\nextends = "../a"\n[[problems]]\nid = "answer"\n'
    (other / "assignment.toml").write_text(table)
    assert read(other).rules.problems[0].steps == read(tmp_path / "a").rules.problems[0].steps
    (other / "assignment.toml").write_text(table + "target = 0.9\n")
    assert read(other).rules.problems[0].target == 0.9
    (other / "assignment.toml").write_text(table + "bands = [{ up_to = 2.0, points = 7.0 }]\n")
    entry = read(other).rules.problems[0]
    assert (entry.performance, entry.target, entry.steps) == (7.0, 0.5, ())


def test_a_timed_case_is_part_of_the_assignment_and_needs_a_reference(tmp_path: Path) -> None:
    folder = timed_assignment(tmp_path / "a")
    check(read(folder))
    (case,) = read(folder).problems["answer"].timing_cases(1)
    assert (case.name, case.group) == ("one", "timed")
    before = read(folder).sha256
    (folder / "timed" / "one" / "expected.txt").write_text("43")
    assert read(folder).sha256 != before
    (folder / "reference" / "answer.cu").unlink()
    with pytest.raises(
        AssignmentError, match=r"answer is timed beside the reference, which has no answer\.cu"
    ):
        check(read(folder))


class Answering:
    """A session whose program prints 42 after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(self, _call: Call) -> Answer:
        return Answer(Status.RETURNED, files={STDOUT: b"42"}, seconds=self.seconds)


def test_a_program_is_timed_beside_the_assignment_s_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = read(timed_assignment(tmp_path / "a"))
    problem, entry = chosen.problems["answer"], chosen.rules.problems[0]
    assert isinstance(problem, ProgramProblem)
    built: dict[Path, str] = {}

    def build(_material: object, _problem: object, contents: Mapping[str, bytes], _matched: object) -> Build:
        built[tmp_path / "reference"] = contents["answer.cu"].decode()
        made = tmp_path / "reference"
        return Build(
            "answer.cu", ok=True, artefact=made, seconds=0, cached=True, command="", log="", resources=()
        )

    monkeypatch.setattr(run_program, "_built", build)
    toolchain: Any = None
    monkeypatch.setattr(condition, "look", lambda _moment: None)
    seconds = {tmp_path / "reference": 0.2, tmp_path / "submission": 0.1}
    gpu: Any = SimpleNamespace(
        kind="gpu",
        open_program=lambda path, _: Answering(seconds[path]),
        sharing=SimpleNamespace(alone=lambda _waiting: nullcontext()),
    )
    machine = SimpleNamespace(toolchain=None, sandbox=None)
    material = SimpleNamespace(assignment=chosen, seed=1, precise=False, machine=machine)
    conduct: Any = SimpleNamespace(material=material, begin=lambda _text: None, waiting=None)
    answer = run_program.PreparedProgram(
        problem,
        entry,
        tmp_path / "submission",
        (),
        toolchain,
        (),
        BuildResult(ok=True, seconds=0.0, cached=True, command="", log="", resources=[]),
    )
    performance = answer.measured(gpu, {}, conduct).performance
    assert performance.verdict is Verdict.PASS
    assert performance.speedup == pytest.approx(2.0)
    assert performance.compared_with == "the reference program"
    assert built == {tmp_path / "reference": UNRULY}
    (chosen.reference / "answer.cu").unlink()
    without = answer.measured(gpu, {}, conduct).performance
    assert without.verdict is Verdict.INFRA_ERROR
    assert "the reference: reference holds no source file. Expected: answer.cu." in without.message


CHECK = """
def check(case, run, outputs):
    number = float(outputs["stdout"])
    return "" if number == float(run.arguments[0]) else f"{number:g} is not {run.arguments[0]}"
"""


def test_the_checker_of_a_table_needs_no_expected_output(tmp_path: Path) -> None:
    folder = assignment(tmp_path / "a", {"one": {"args": "42"}}, RULES + 'checker = "check.py"\n')
    with pytest.raises(AssignmentError, match=r"check\.py, the checker, is missing"):
        assert read(folder).problems
    (folder / "check.py").write_text("CHECK = 1")
    with pytest.raises(AssignmentError, match="there is no function check"):
        assert read(folder).problems
    before = read(folder).sha256
    for name, text in (("b", "def check(outputs): ..."), ("c", CHECK)):
        (tmp_path / name).mkdir()
        folder = folder.rename(tmp_path / name / "a")  # a module is imported once
        (folder / "check.py").write_text(text)
        if text != CHECK:
            with pytest.raises(
                AssignmentError, match=r"it gets case, run, outputs, so write def check\(case, run"
            ):
                assert read(folder).problems
    assert read(folder).sha256 != before
    problem = read(folder).problems["answer"]
    assert isinstance(problem, ProgramProblem)
    (case,) = problem.cases(1)
    answer = Answer(Status.RETURNED, files={STDOUT: b"41"})
    assert judged(problem, case, problem.run(case), answer).message == "41 is not 42"


def test_cases_may_be_for_one_kind_of_device_alone(tmp_path: Path) -> None:
    files = {"args": "right", "expected.txt": "42\n"}
    cases = {f"{group}/one": files for group in ("both", "large", "small")}
    rules = RULES + 'on = { large = "gpu", small = "sim" }\n'
    folder = assignment(tmp_path / "a", cases, rules)
    result = graded(folder, submission(tmp_path / "ann", answer_cu=UNRULY))
    assert [case.name for case in result.correctness.cases] == ["both/one", "small/one"]
    verdicts = {group.name: group.verdict for group in result.correctness.groups}
    assert verdicts["large"] is Verdict.NOT_MEASURED
    assert result.points.decided < result.points.possible == 10.0

    def ran(*names: str) -> Judged:
        return Judged(tuple(CaseResult(name=name, group="", verdict=Verdict.PASS) for name in names))

    answer: Any = SimpleNamespace()
    both = run_program.PreparedProgram.combined(answer, ran("both", "large"), ran("both", "small"), "H100")
    assert [case.name for case in both] == ["both", "small", "large"]
    with pytest.raises(AssignmentError, match=r"there is no group of cases 'larg'\. Did you mean 'large'"):
        assert read(assignment(tmp_path / "b", cases, RULES + 'on = { larg = "gpu" }\n')).problems


def test_a_file_of_another_problem_is_not_said_to_be_ignored() -> None:
    given = {"gpu/scan.cu": b"to be written", "course/main.cu": b"main"}
    sizes = {"a": [{"n": 1}]}
    file = "gpu/sort.cu"
    problem = program(id="sort", file=file, run=lambda _: Run({}), sizes=sizes, given=given, cmake="sort")
    contents = {"gpu/sort.cu": b"sort", "gpu/scan.cu": b"scan", "course/main.cu": b"another"}
    assert run_program._overridden(problem, contents, {"scan.cu", "sort.cu"}) == ["course/main.cu"]
    assert run_program._overridden(problem, contents, {"sort.cu"}) == ["gpu/scan.cu", "course/main.cu"]
