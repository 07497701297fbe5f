"""The commands as a user types them: messages, exit codes, and records that are always valid."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import click
import pytest
from first_assignment import ASSIGNMENT
from forked import run
from privileges import without_privileges

from grader.assignments.assignment import available, load
from grader.cli.main import commands
from grader.cli.new import CLUTTER
from grader.records import record as results
from grader.records.file_names import HANDOUTS
from grader.records.verdict import Ending, Verdict
from grader.sandbox.keeper import _children, _read

GRADER = [sys.executable, "-P", "-m", "grader"]
EMPTY_KERNELS = 'extern "C" void launch_attn_softmax() {}\n'


def fresh(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same from the start of Python."""
    return subprocess.run(
        [*GRADER, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


PROGRAM = """
#include <cstdio>
__global__ void twice(float* data) { data[threadIdx.x] *= 2; }
int main(int count, char** words) {
  float host[2] = {1, 2}, *data;
  cudaMalloc(&data, sizeof host);
  cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
  twice<<<1, count>>>(data);
  cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
  printf("%s %g\\n", words[1], host[1]);
}
"""


def test_a_source_is_built_simulated_and_named_in_the_record(tmp_path: Path) -> None:
    source, record = tmp_path / "twice.cu", tmp_path / "record.json"
    source.write_text(PROGRAM)
    done = run("simulate", "--json", record, source, "two")
    assert (done.returncode, done.stdout, done.stderr) == (0, "two 4\n", "")
    assert json.loads(record.read_text())["program"] == [str(source), "two"]
    done = run("simulate", source, "two", "three")
    assert done.returncode == 86
    assert f"{source}:3: memcheck: global_oob" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.json", "twice.cu"]


def test_a_source_that_nvcc_refuses_shows_nvcc_s_words(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text("int main() { return missing; }\n")
    done = run("simulate", source)
    assert done.returncode == 2
    assert 'identifier "missing" is undefined' in done.stdout + done.stderr
    assert f"{source} was not built: see nvcc's messages above." in done.stderr


PARTS = """
#include "scale.h"
__global__ void scale(float* data) { data[threadIdx.x] *= FACTOR; }
void scaled(float* data) { scale<<<1, 2>>>(data); }
"""
MAKEFILE = """
CUDA_PATH = /opt/cuda
scaled: main.cu parts.cu
\t$(CUDA_PATH)/bin/nvcc -arch=sm_35 -Icommon -DFACTOR=3 -o scaled main.cu parts.cu
"""


def test_a_program_of_several_sources_is_built_with_nvcc_s_options_or_by_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "scale.h").write_text("void scaled(float* data);\n")
    main = PROGRAM.replace("twice<<<1, count>>>(data)", "scaled(data)").replace("__global__ void twice", "//")
    (tmp_path / "main.cu").write_text('#include "scale.h"\n' + main)
    (tmp_path / "parts.cu").write_text(PARTS)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    options = ("-Icommon", "-D", "FACTOR=2", "-std=c++20", "--source", "parts.cu", "--verbose")
    done = run("simulate", *options, "main.cu", "two")
    assert (done.returncode, done.stdout) == (0, "two 4\n")
    assert "-std=c++20" in done.stderr
    assert "c++17" not in done.stderr
    done = run("simulate", "--make", "scaled", "--", "two", "-v")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "two 6")
    assert run("simulate", "--make", "missing").returncode == 2
    done = run("simulate", "-Icommon", "./scaled")
    assert (done.returncode, done.stderr.count("is no source that nvcc could build")) == (2, 1)


def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    done = run("grade", tmp_path / "nowhere")
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_source_file_is_not_graded_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").touch()
    done = run("grade", tmp_path / "softmax_kernel.cu")
    assert done.returncode == 2
    assert f"Name the folder that holds it: grader grade {tmp_path}\n" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("grade", "{}/{}"),
        ("grade", "{0}/hw3", "--json", "{0}/{1}/result.json"),
        ("batch", "{0}/{1}", "--out", "{0}/out"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["closed/below", "x" * 300])
def test_a_path_that_cannot_be_looked_at_is_named(
    name: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "hw3").mkdir()
    (tmp_path / "closed").mkdir(0)
    done = subprocess.run(
        [*GRADER, *(argument.format(tmp_path, name) for argument in arguments)],
        preexec_fn=without_privileges,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    reason = "Permission denied" if name.startswith("closed") else "File name too long"
    (told,) = done.stderr.splitlines()
    assert name in told
    assert reason in told


def test_a_submission_that_may_not_be_read_costs_nobody_points(tmp_path: Path) -> None:
    closed = tmp_path / "src"
    closed.mkdir(0)
    done = subprocess.run(
        [*GRADER, "grade", tmp_path, "--json", tmp_path / "r.json"],
        preexec_fn=without_privileges,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "Score: 0.0/0.0 (100.0 possible)"
    record = results.read(tmp_path / "r.json")
    assert (record.error or "").startswith(
        f"cannot read {closed}: Permission denied. Make it readable (chmod"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--problem", "softmax_foreward"), "Did you mean 'softmax_forward'?"),
        (("--problem", "spmv"), "first_kernels has it: add --assignment first_kernels."),
        (("--assignment", "llm_systems_4"), "llm_systems_3"),
        (("--device", "tpu"), "'auto', 'gpu', 'sim'"),
        (("--json", "/nowhere/result.json"), "/nowhere is no folder"),
    ],
)
def test_a_wrong_option_says_what_would_be_right(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run("grade", tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--partition", "gpu"), "--partition does nothing without --slurm. Name that, too."),
        (("--time", "60"), "--time does nothing without --slurm"),
        (("--slurm-option", "qos=high"), "--slurm-option does nothing without --slurm"),
        (("--slurm", "4", "--shard", "1/2"), "--shard does nothing with --slurm. Leave one of them out."),
        (("--slurm", "4", "--gpus", "2"), "--gpus does nothing with --slurm"),
        (("--slurm", "4", "--slurm-option", "cpus-per-task=two"), "cpus-per-task has to be a number"),
    ],
)
def test_an_option_of_a_batch_that_would_do_nothing_or_is_wrong_is_refused(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run("batch", tmp_path, "--out", tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("kind", ["empty folder", "no zip", "escaping zip"])
def test_a_faulty_submission_has_no_points_and_a_reason(kind: str, tmp_path: Path) -> None:
    """An empty one has 0 of what could be decided; of one that cannot be read nothing is decided."""
    path = tmp_path / "hw3.zip"
    if kind == "empty folder":
        path = tmp_path / "hw3"
        path.mkdir()
    elif kind == "no zip":
        path.write_bytes(b"this is no archive")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("../../evil.cu", "int x;")
    done = run("grade", path, "--json", tmp_path / "result.json")
    assert done.returncode == 1
    decided = 60.0 if kind == "empty folder" else 0.0
    assert done.stdout.splitlines()[-1] == f"Score: 0.0/{decided} (100.0 possible)"
    record = results.read(tmp_path / "result.json")
    assert record.submission.error
    assert record.submission.error in " ".join(done.stdout.split())
    assert ("not graded: " in done.stdout) == (not decided) == bool(record.not_graded)


def test_a_misnamed_file_costs_its_problems_and_names_the_right_name(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernels.cu").write_text(EMPTY_KERNELS)
    done = run("grade", tmp_path, "--problem", "softmax_backward", "--json", tmp_path / "result.json")
    assert done.returncode == 1
    assert "rename it to softmax_kernel.cu" in done.stdout
    record = results.read(tmp_path / "result.json")
    assert record.problems[0].verdict is Verdict.FAIL


def test_a_misspelt_entry_point_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").write_text('extern "C" void launch_attn_softmax_bww() {}\n')
    done = run("grade", tmp_path, "--problem", "softmax_backward")
    assert done.returncode == 1
    assert "launch_attn_softmax_bw" in done.stdout
    assert "launch_attn_softmax_bww" in done.stdout


def test_the_launcher_of_another_problem_is_no_misspelling(tmp_path: Path) -> None:
    launchers = ("launch_softmax", "launch_attn_softmax_bw")
    (tmp_path / "softmax_kernel.cu").write_text(
        "".join(f'extern "C" void {name}() {{}}\n' for name in launchers)
    )
    done = run("grade", tmp_path, "--problem", "softmax_forward")
    assert done.returncode == 1
    hint = "Found launch_softmax (softmax_kernel.cu:1): rename it to launch_attn_softmax."
    assert hint in " ".join(done.stdout.split())


def test_a_compile_error_shows_file_line_and_the_words_of_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").write_text("int main() {\n  return undeclared_name;\n}\n")
    done = run("grade", tmp_path, "--problem", "softmax_forward")
    assert done.returncode == 1
    assert "softmax_kernel.cu(2): error: identifier" in done.stdout


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("<nccl/nccl.h>", "the header <nccl/nccl.h> is not available here. Do without it"),
        ('"tile.cuh"', "tile.cuh was not found beside softmax_kernel.cu or near it. Hand in the folder that"),
    ],
)
def test_a_header_that_is_not_there_is_the_machines_or_the_students(
    header: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "softmax_kernel.cu").write_text(f"#  include   {header}\n{EMPTY_KERNELS}")
    done = run("grade", tmp_path, "--problem", "softmax_forward")
    assert done.returncode == 1
    assert said in " ".join(done.stdout.split())


def test_a_missing_compiler_is_the_fault_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").write_text(EMPTY_KERNELS)
    done = run(
        "grade", tmp_path, "--json", tmp_path / "r.json", environment={"CUDA_HOME": str(tmp_path / "no cuda")}
    )
    assert done.returncode == 3
    assert "CUDA_HOME" in done.stdout
    record = results.read(tmp_path / "r.json")
    assert record.score.decided == 0
    assert record.exit_code == 3


def test_standard_streams_may_be_closed(tmp_path: Path) -> None:
    command = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *GRADER, "grade", str(tmp_path / "nowhere")]
    assert subprocess.run(command, check=False).returncode == 2


@pytest.mark.parametrize(("command", "code"), [("problems", 0), ("--help", 0), ("grade", 1)])
def test_a_reader_of_stdout_may_leave(command: str, code: int, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [command, str(tmp_path)] if command == "grade" else [command]
    done = subprocess.run([*GRADER, *arguments], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("command", ["problems", "--version"])
def test_a_full_stdout_is_the_fault_of_the_machine(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*GRADER, command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "Error: standard output cannot be written to: No space left on device.\n"


def test_a_full_stderr_changes_no_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*GRADER, "grade", str(tmp_path / "nowhere")], stderr=full, check=False)
    assert done.returncode == 2


def test_what_stdout_cannot_encode_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").write_text('int x = "中";\n')
    done = fresh("grade", tmp_path, "--problem", "softmax_forward", PYTHONIOENCODING="latin-1")
    assert done.returncode == 1, done.stderr
    assert "\\u4e2d" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Score: 0.0/")


def test_a_problem_named_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").write_text(EMPTY_KERNELS)
    once = ("--problem", "softmax_forward")
    last = [run("grade", tmp_path, *once * times).stdout.splitlines()[-1] for times in (1, 2)]
    assert last[0].startswith("Score: ")
    assert last[0] == last[1]


def test_a_record_that_cannot_be_written_is_said_and_the_score_still_shown(tmp_path: Path) -> None:
    done = run("grade", tmp_path, "--json", "/proc/result.json")
    assert done.returncode == 3
    assert "/proc/result.json: cannot be written" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("Score: 0.0/")


def test_a_gpu_asked_for_where_none_works_is_the_fault_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "softmax_kernel.cu").write_text(EMPTY_KERNELS)
    done = run("grade", tmp_path, "--device", "gpu", environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert done.returncode == 3
    assert "no GPU works here" in done.stdout


def test_quiet_prints_the_last_line_alone(tmp_path: Path) -> None:
    assert run("grade", tmp_path, "--quiet").stdout == "Score: 0.0/60.0 (100.0 possible)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_valid_record_of_what_was_judged(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "softmax_kernel.cu").write_text(
        """
extern "C" void launch_attn_softmax(float* inp, const float*, int, int, int, int, bool, cudaStream_t stream) {
  for (volatile bool goes_on = true; goes_on;) {}
}
"""
    )
    options = ("--problem", "softmax_forward", "--device", "sim", "--json", str(tmp_path / "r.json"))
    process = subprocess.Popen(
        [*GRADER, "grade", str(tmp_path), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    while not (started := _below(process.pid, "grader-sim")) and process.poll() is None:
        assert time.monotonic() < begun + 120
        time.sleep(0.2)
    started += _below(process.pid, "keeper.py")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out.splitlines()[-1].startswith("Score: 0.0/0.0")
    assert results.read(tmp_path / "r.json").exit_code == 130
    assert not [pid for pid in started if os.path.exists(f"/proc/{pid}")]  # noqa: PTH110


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["rich", "torch"])
def test_an_interrupt_while_a_library_loads_ends_as_any_other(
    module: str, number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text(  # NumPy and PyTorch do so
        "import os\n"
        "try:\n"
        f"    os.kill(os.getpid(), {number:d})\n"
        "except KeyboardInterrupt:\n"
        "    raise ImportError('multiarray failed to import')\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = fresh("grade", tmp_path, PYTHONPATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_an_interrupt_of_the_way_out_shows_no_traceback() -> None:
    late = (
        "import atexit, os, signal, sys\n"
        "from grader.cli.main import main\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['grader', '--version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", late], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    assert done.stdout.startswith("grader, version")


def _below(parent: int, name: str) -> list[int]:
    """The processes called ``name`` that ``parent`` started."""
    return [pid for pid in _children(parent) if name in _read(f"/proc/{pid}/cmdline")]


def test_the_problems_are_listed_with_points_and_targets(tmp_path: Path) -> None:
    assert "softmax_forward" in run("problems").stdout
    assert run("problems", "--json", tmp_path / "p.json").returncode == 0
    listed = json.loads((tmp_path / "p.json").read_text())["problems"]
    assert listed[0]["target"] == 6.5


def test_an_assignment_of_ones_own_is_listed_only_if_it_can_be_graded(tmp_path: Path) -> None:
    text = 'id = "own"\ntitle = "Own"\nextends = "llm_systems_3"\n'
    (tmp_path / "assignment.toml").write_text(text + '[group_points]\n"memory and concurency" = 3.0\n')
    with pytest.raises(click.ClickException, match="Did you mean 'memory and concurrency'"):
        commands.main(["problems", "--assignment", str(tmp_path)], standalone_mode=False)
    (tmp_path / "assignment.toml").write_text(text)
    assert commands.main(["problems", "--assignment", str(tmp_path)], standalone_mode=False) == 0


def test_new_copies_the_template_and_keeps_what_is_there(tmp_path: Path) -> None:
    assert run("new", tmp_path / "hw3").returncode == 0
    wanted = {path.name for path in ASSIGNMENT.template.iterdir() if path.is_file()} | {"grader.toml"}
    assert {path.name for path in (tmp_path / "hw3").iterdir()} == wanted
    done = run("new", tmp_path / "hw3")
    assert done.returncode == 2
    assert "is there already" in done.stderr


@pytest.mark.parametrize("name", available())
def test_what_a_student_reads_says_how_to_grade_the_folder_that_new_makes(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "hw"
    assert commands.main(["new", str(folder), "--assignment", name], standalone_mode=False) == 0
    (handout,) = (folder / text for text in HANDOUTS if (folder / text).exists())
    assert "grader grade ." in handout.read_text()
    assert not [path for path in folder.rglob("*") if path.name in CLUTTER or path.name.startswith(".")]


def test_new_leaves_what_working_in_the_template_has_made(tmp_path: Path) -> None:
    template = tmp_path / "student_template"
    (template / "__pycache__").mkdir(parents=True)
    (template / "build").mkdir()
    (template / "row.cu").write_text("")
    (tmp_path / "assignment.toml").write_text('id = "own"\ntitle = "Own"\nextends = "llm_systems_3"\n')
    done = run("new", tmp_path / "hw", "--assignment", tmp_path)
    assert done.stdout == (
        f"Write your kernels, then: grader grade {tmp_path / 'hw'} --assignment {tmp_path}\n"
    )
    assert {path.name for path in (tmp_path / "hw").iterdir()} == {"row.cu", "grader.toml"}


def test_a_folder_of_ones_own_assignment_is_graded_without_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "course" / "own"
    own.mkdir(parents=True)
    (own / "assignment.toml").write_text('id = "own"\ntitle = "Own"\nextends = "first_kernels"\n')
    assert run("new", tmp_path / "hw", "--assignment", own).returncode == 0
    done = run("grade", tmp_path / "hw", "--problem", "saxpy", "--device", "sim")
    assert done.returncode == 2
    assert "named by --assignment FOLDER, or by its id once GRADER_ASSIGNMENTS names" in done.stderr
    monkeypatch.setenv("GRADER_ASSIGNMENTS", str(own.parent))
    assert run("new", tmp_path / "again", "--assignment", "own").stdout.endswith(
        f"grader grade {tmp_path / 'again'}\n"
    )
    done = run("grade", tmp_path / "hw", "--problem", "saxpy", "--device", "sim", "--fast")
    assert done.returncode == 1
    assert "(saxpy)" in done.stdout


def test_a_failing_case_runs_alone_by_the_command_that_the_report_ends_with(tmp_path: Path) -> None:
    homework, record = tmp_path / "hw", tmp_path / "record.json"
    assert run("new", homework, "--assignment", "first_kernels").returncode == 0
    right = (load("first_kernels").reference / "saxpy.cu").read_text()
    (homework / "saxpy.cu").write_text(right.replace("fmaf(a, add.y, sum.y)", "fmaf(a, add.y, sum.x)"))
    whole = run("grade", homework, "--problem", "saxpy", "--device", "sim", "--fast")
    *_, command, _ = whole.stdout.splitlines()
    assert command.startswith(f"One case alone: grader grade {homework} --problem saxpy --case ")
    words = shlex.split(command.partition(": grader ")[2])
    alone = run(*words, "--device", "sim", "--json", record)
    assert "One case alone" not in alone.stdout
    cases = results.read(record).problems[0].correctness.cases
    ran = {case.name: case.verdict for case in cases if case.ending is not Ending.NOT_RUN}
    assert ran == {words[words.index("--case") + 1]: Verdict.FAIL}
    assert len(cases) > 1
    other = run(*words, "--case", "none such")
    assert other.returncode == 2
    assert "--case none such: there is no such case with --seed" in other.stderr


def test_new_copies_what_the_problems_of_an_extension_need(tmp_path: Path) -> None:
    entries = "".join(f'[[problems]]\nid = "{name}"\n' for name in ("saxpy", "scan"))
    rules = f'id = "own"\ntitle = "Own"\nextends = "first_kernels"\n{entries}'
    (tmp_path / "assignment.toml").write_text(rules)
    done = run("new", tmp_path / "hw", "--assignment", tmp_path)
    assert done.returncode == 0
    assert "HANDOUT.md is that of first_kernels, which has further problems: write your own" in done.stderr
    files = {path.name for path in (tmp_path / "hw").iterdir()}
    assert files == {"saxpy.cu", "scan.cu", "grader.toml", "HANDOUT.md"}
    (tmp_path / "HANDOUT.md").write_text("Two kernels.\n")
    assert run("new", tmp_path / "hw2", "--assignment", tmp_path).returncode == 0
    assert (tmp_path / "hw2" / "HANDOUT.md").read_text() == "Two kernels.\n"


def test_a_submission_that_names_a_folder_as_its_assignment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "p.py").write_text("open('taken', 'w')")
    (tmp_path / "assignment.toml").write_text('id = "own"')
    (tmp_path / "grader.toml").write_text(f'assignment = "{tmp_path}"')
    done = run("grade", tmp_path)
    assert done.returncode == 2
    assert "is no installed assignment" in done.stderr
    assert not Path("taken").exists()


def test_a_template_that_is_not_copied_whole_leaves_nothing(tmp_path: Path) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    done = subprocess.run(
        [*GRADER, "new", tmp_path / "hw3"],
        preexec_fn=little_room,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert f"{tmp_path / 'hw3'} cannot be written: [Errno 27] File too large" in done.stderr
    assert not (tmp_path / "hw3").exists()


def test_the_doctor_names_the_parts(tmp_path: Path) -> None:
    done = run("doctor", "--json", tmp_path / "d.json")
    assert done.returncode == 0, done.stderr
    assert {"nvcc", "simulator"} <= {
        part["name"] for part in json.loads((tmp_path / "d.json").read_text())["parts"]
    }


def test_a_place_for_findings_is_looked_at_before_the_program_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    done = run("simulate", "--json", tmp_path / "none" / "findings.json", "--", "touch", ran)
    assert done.returncode == 2
    assert f"{tmp_path / 'none'} is no folder. Name a file in one that is." in done.stderr
    assert not ran.exists()
