"""Real compiles are few, because each takes seconds; the rest is tried on a compiler's recorded words."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from interrupted import InterruptedPool

from grader.languages.cache import Cache
from grader.languages.cuda import compile  # noqa: A004 - the module
from grader.languages.cuda.compile import build, build_all, diagnostics, resources, short_name
from grader.languages.cuda.imports import violations
from grader.languages.cuda.machine_code import machine_code
from grader.languages.cuda.toolchain import Toolchain, find
from grader.languages.jobs import BuildError, compile_limits
from grader.records.verdict import Ending
from grader.sandbox.backends import select
from grader.sandbox.sandbox import Ended, Job, Outcome

if TYPE_CHECKING:
    from pathlib import Path

GOOD = b"""
#include "includes/scale.cuh"
#include "../beside/row.cuh"
#include "../../top.cuh"
#include "lost.cuh"
#include <cooperative_groups.h>
#include <cublas_v2.h>
#include <curand_kernel.h>
#include <cub/cub.cuh>
#include <cstdio>
#include <cassert>
#include <iostream>
#include <vector>
template <int N> __global__ void sum(float* x, int n) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  cooperative_groups::this_thread_block().sync();
  float total = Reduce(storage).Sum(x[threadIdx.x]);
  assert(n > 0);
  if (threadIdx.x == 0) { x[0] = total * SCALE + ROW + TOP + LOST; printf("%f", total); }
}
extern "C" void launch(float* x, int n, cudaStream_t stream) {
  static std::vector<float> sizes(3);
  sum<2><<<1, 128, 0, stream>>>(x, n);
  if (cudaGetLastError() != cudaSuccess) { std::cerr << "failed" << std::endl; throw std::bad_alloc(); }
}
"""
BAD = b'#include "includes/scale.cuh"\n__global__ void k(float* x) { x[0] = missing; }\n'
FILES = {
    "good.cu": GOOD,
    "bad.cu": BAD,
    "includes/scale.cuh": b'#include "number.h"\n#include <cublasLt.h>\n#define SCALE NUMBER\n',
    "includes/number.h": b"#define NUMBER 2.0f\n",
    "../beside/row.cuh": b"#define ROW 1\n",
    "../../top.cuh": b"#define TOP 1\n",
    "../lost.cuh": b"#define LOST 1\n",
    "other.cu": b"#error\n",
}


OUT_OF_MEMORY = "Compiling was stopped: more than 6144 MiB of memory."
OUT_OF_SPACE = "Compiling was stopped: more than 1024 MiB of files written."


@dataclass
class Recorded:
    """A sandbox in which every job ends in one way."""

    outcome: Outcome
    name: str = "recorded"
    jobs: list[Job] = field(default_factory=list)

    def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:  # noqa: ARG002 - ends at once
        self.jobs.append(job)
        return self.outcome


def _outcome(
    text: str = "", code: int = 1, ended: Ended = Ended.EXITED, note: str = "", **files: bytes
) -> Outcome:
    artefacts = {name.replace("_", "."): content for name, content in files.items()}
    return Outcome(ended, code, 1.0, text.encode(), b"", truncated=False, artefacts=artefacts, note=note)


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    for name in ("nvcc", "g++"):
        (tmp_path / name).touch()
    return Toolchain(tmp_path / "nvcc", "13.0.88", tmp_path, tmp_path / "g++", "g++ 12", tmp_path)


def _build(toolchain: Toolchain, sandbox: Recorded, cache: Cache, changed: str = ""):  # noqa: ANN202
    files = FILES | ({changed: b"changed"} if changed else {})
    return build("good.cu", files, toolchain, sandbox, compile_limits(), cache)  # type: ignore[arg-type]


def test_compiles_for_both_devices_and_passes_the_import_policy(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    sandbox = select("auto")
    sources = {"good.cu": FILES, "bad.cu": FILES}
    builds = build_all(sources, find(), sandbox, compile_limits(), cache)
    good, bad = builds["good.cu"], builds["bad.cu"]

    assert good.ok, good.log
    assert good.artefact is not None
    assert [kernel.kernel for kernel in good.resources] == ["sum<2>"]
    assert good.resources[0].registers > 0
    assert good.resources[0].shared_bytes > 0
    assert good.resources[0].code_bytes == machine_code(good.artefact.read_bytes())["_Z3sumILi2EEvPfi"]
    content = good.artefact.read_bytes()
    assert b".target sm_80" in content, "the PTX must be readable in the library"
    assert b"libcudart.so.13" in content
    assert violations(good.artefact) == ()

    assert not bad.ok
    assert bad.artefact is None
    assert bad.log.startswith('bad.cu(2): error: identifier "missing" is undefined\n')

    again = build_all(sources, find(), sandbox, compile_limits(), Cache(tmp_path / "cache"))
    assert again["good.cu"].cached
    assert again["good.cu"].artefact == good.artefact
    assert (again["bad.cu"].cached, again["bad.cu"].log) == (True, bad.log)


LAMBDAS = b"""
template <class F> __global__ void each(F f) { f(threadIdx.x); }
extern "C" void launch(float* x, cudaStream_t stream) {
  each<<<1, 32, 0, stream>>>([=] __device__ (int i) { x[i] *= 2; });
  each<<<1, 32, 0, stream>>>([=] __host__  __device__ (int i) { x[i] += 1; });
}
"""


def test_lambdas_of_the_device_get_the_flag_that_they_need(tmp_path: Path) -> None:
    cache, sources = Cache(tmp_path / "cache"), {"good.cu": FILES, "lambdas.cu": {"lambdas.cu": LAMBDAS}}
    builds = build_all(sources, find(), select("auto"), compile_limits(), cache)
    library = builds["lambdas.cu"].artefact
    assert library is not None, builds["lambdas.cu"].log
    assert violations(library) == ()
    assert [name for name, one in builds.items() if "--extended-lambda" in one.command] == ["lambdas.cu"]


def test_compiling_shows_no_foreign_file(tmp_path: Path) -> None:
    if select("auto").name != "bubblewrap":
        pytest.skip("the process sandbox does not stop this, and says so")
    secret = tmp_path / "secret.h"
    secret.write_text("the_answer")
    secret.chmod(0o644)
    files = {"spy.cu": f'#include "{secret}"\n'.encode()}
    spied = build("spy.cu", files, find(), select("auto"), compile_limits(), Cache(tmp_path / "cache"))
    assert not spied.ok
    assert spied.log.startswith("spy.cu:1:")
    assert "the_answer" not in spied.log


def test_only_what_a_source_may_include_travels_and_counts(tmp_path: Path, toolchain: Toolchain) -> None:
    sandbox, cache = Recorded(_outcome(code=0, library_so=b"elf")), Cache(tmp_path / "cache")
    first = _build(toolchain, sandbox, cache)
    assert (first.ok, first.cached) == (True, False)
    empty = {f"stand-ins/{name}": b"" for name in ("cublas_v2.h", "cublasLt.h", "curand_kernel.h")}
    sent = sandbox.jobs[0].files
    above = {f"two-up/{name}" for name in ("top.cuh", "one-up/lost.cuh", "one-up/beside/row.cuh")}
    below = {"good.cu", "includes/scale.cuh", "includes/number.h"}
    assert sent.keys() == {*below, *above, "two-up/one-up/here/empty", *empty}
    assert sent.items() >= empty.items()
    assert _build(toolchain, sandbox, cache, "other.cu").cached
    assert not _build(toolchain, sandbox, cache, "includes/scale.cuh").cached
    (toolchain.nvcc).write_text("another compiler")
    assert not _build(toolchain, sandbox, cache).cached


def test_headers_above_are_named_as_they_are_from_the_source(tmp_path: Path, toolchain: Toolchain) -> None:
    said = (
        "/tmp/two-up/one-up/row.h(3): error: a\n\n"
        "two-up/one-up/here/../beside/tile.h(4): error: b\n\n"
        'In file included from two-up/top.h:1,\n  "two-up/one-up/row.h"\n'
    )
    failed = Recorded(_outcome(said))
    built = _build(toolchain, failed, Cache(tmp_path / "cache"))
    assert "\n../row.h(3): error: a\n" in f"\n{built.log}\n"
    assert "\n../beside/tile.h(4): error: b\n" in f"\n{built.log}\n"
    assert 'from ../../top.h:1,\n  "../row.h"' in built.log


def test_a_damaged_build_is_made_again(tmp_path: Path, toolchain: Toolchain) -> None:
    sandbox, cache = Recorded(_outcome(code=0, library_so=b"elf")), Cache(tmp_path / "cache")
    library = _build(toolchain, sandbox, cache).artefact
    assert library is not None
    for damaged in (library, library.with_name("build.json")):
        damaged.write_bytes(b"{")
        again = _build(toolchain, sandbox, cache)
        assert (again.cached, again.artefact) == (False, library)
        assert library.read_bytes() == b"elf"
    assert _build(toolchain, sandbox, cache).cached


def test_a_real_header_is_not_replaced(tmp_path: Path, toolchain: Toolchain) -> None:
    (toolchain.root / "include").mkdir()
    (toolchain.root / "include" / "cublas_v2.h").touch()
    sandbox = Recorded(_outcome(code=0, library_so=b"elf"))
    _build(toolchain, sandbox, Cache(tmp_path / "cache"))
    assert "stand-ins/cublas_v2.h" not in sandbox.jobs[0].files


def test_who_uses_an_empty_header_is_told_that_it_is_empty(tmp_path: Path, toolchain: Toolchain) -> None:
    sandbox = Recorded(_outcome('good.cu(9): error: identifier "cublasHandle_t" is undefined'))
    log = _build(toolchain, sandbox, Cache(tmp_path / "cache")).log
    assert log.splitlines()[1].startswith("(cublas_v2.h, cublasLt.h, curand_kernel.h: empty here")


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (
            _outcome(ended=Ended.TIMEOUT, note="more than 180 s of processor time"),
            "Compiling was stopped: more than 180 s of processor time.",
        ),
        (_outcome("nvcc: out of memory"), OUT_OF_MEMORY),
        (_outcome("virtual memory exhausted: Cannot allocate memory"), OUT_OF_MEMORY),
        (
            _outcome("cub/x.h(60): catastrophic error: out of memory\n\n1 catastrophic error", 4),
            OUT_OF_MEMORY,
        ),
        (_outcome("terminate called after throwing an instance of 'std::bad_alloc'", 134), OUT_OF_MEMORY),
        (_outcome("x.o: No space left on device"), OUT_OF_SPACE),
        (
            _outcome("<built-in>: fatal error: when writing output to /tmp/x.ii: No space left on device"),
            OUT_OF_SPACE,
        ),
        (_outcome("good.cu:3:1: fatal error: error writing to x.s: No space left on device"), OUT_OF_SPACE),
        (_outcome("'as' died due to signal 25"), "Compiling was stopped: a file larger than 256 MiB."),
        (_outcome("File size limit exceeded", 153), "Compiling was stopped: a file larger than 256 MiB."),
    ],
)
def test_a_limit_is_a_failed_build_that_names_it(
    tmp_path: Path, toolchain: Toolchain, outcome: Outcome, reason: str
) -> None:
    cache = Cache(tmp_path / "cache")
    built = _build(toolchain, Recorded(outcome), cache)
    assert not built.ok
    assert (built.log.splitlines()[0], built.ending) == (reason, Ending.LIMIT)
    assert not _build(toolchain, Recorded(outcome), cache).cached, "another time it may fit"


@pytest.mark.parametrize(
    "outcome",
    [
        _outcome(ended=Ended.SETUP_ERROR, note="bwrap: no"),
        _outcome(ended=Ended.LOST, note="gone"),
        _outcome(ended=Ended.BUSY, note="the machine was too busy: 3600 s passed"),
        _outcome("sh: nvcc: not found", code=127),
        _outcome("nvcc error : 'cicc' died due to signal 9 (Kill signal)", code=9),
        _outcome("Killed", code=137),
        _outcome(
            'good.cu(3): warning #177-D: variable "x" was declared but never referenced\n\n'
            "gcc: fatal error: Killed signal terminated program cc1plus\ncompilation terminated."
        ),
        _outcome(code=9, ended=Ended.SIGNALLED),
        _outcome("", code=1),
    ],
)
def test_what_the_machine_did_is_never_a_failed_build(
    tmp_path: Path, toolchain: Toolchain, outcome: Outcome
) -> None:
    with pytest.raises(BuildError):
        _build(toolchain, Recorded(outcome), Cache(tmp_path / "cache"))


@pytest.mark.parametrize(
    "line",
    [
        "#error died due to signal 9",
        "#error out of memory",
        "#error No space left on device",
        '#include "died due to signal 25"',
        r'static_assert(false, "\nnvcc error   : \'cicc\' died due to signal 9 (Kill signal)\n");',
        "std::bad_alloc2 x;  // Killed signal terminated",
    ],
)
def test_what_a_source_says_is_taken_for_no_limit(line: str, tmp_path: Path) -> None:
    files = {"said.cu": f"{line}\n".encode()}
    said = build("said.cu", files, find(), select("auto"), compile_limits(), Cache(tmp_path / "cache"))
    assert not said.ok
    assert said.log.startswith("said.cu")
    assert "was stopped" not in said.log


def test_a_compile_is_bounded_by_what_it_does() -> None:
    limits = compile_limits(30)
    assert (limits.processor_seconds, limits.asleep_seconds, limits.wall_seconds) == (30, 60, 600)


def test_a_busy_machine_is_said(tmp_path: Path, toolchain: Toolchain) -> None:
    sandbox = Recorded(_outcome(ended=Ended.BUSY, note="the machine was too busy: 3600 s passed"))
    with pytest.raises(BuildError, match=r"as the machine was too busy: 3600 s passed\. Grade again"):
        _build(toolchain, sandbox, Cache(tmp_path / "cache"))


def test_compiles_wait_for_a_slot_and_one_that_fails_ends_the_wait(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("grader.languages.slots.count", lambda: 1)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    begun: list[int] = []

    class Failing(Recorded):
        def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
            begun.append(1)
            time.sleep(0.3)
            assert len(begun) == 1
            return super().run(job, given_up)

    sources = {f"{number}.cu": {f"{number}.cu": b""} for number in range(4)}
    sandbox = Failing(_outcome(ended=Ended.LOST))
    with pytest.raises(BuildError, match="could not be run"):
        build_all(sources, toolchain, sandbox, compile_limits(), Cache(tmp_path / "cache"))  # type: ignore[arg-type]
    assert len(begun) == 1


def test_an_interrupt_while_builds_begin_ends_their_wait(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[bool] = []
    monkeypatch.setattr(compile, "build", lambda *given: waits.append(given[-1].wait(60)))
    monkeypatch.setattr(compile, "ThreadPoolExecutor", InterruptedPool)
    sources = {f"{number}.cu": {f"{number}.cu": b""} for number in range(4)}
    with pytest.raises(KeyboardInterrupt):
        build_all(sources, toolchain, select("process"), compile_limits(), Cache(tmp_path / "cache"))
    assert waits == [True]


def test_an_interrupt_ends_a_compile_that_runs(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Outcome] = []
    process = select("process")
    compiles = threading.Event()

    class Sleeping(Recorded):
        def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
            compiles.set()
            ended.append(process.run(Job(("sleep", "60"), job.limits), given_up))
            return ended[-1]

    # An interrupt before the compile has its slot would end the wait for the slot, and no compile.
    monkeypatch.setattr(InterruptedPool, "ready", compiles)
    monkeypatch.setattr(compile, "ThreadPoolExecutor", InterruptedPool)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # slots of its own: other tests compile, too
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        build_all(
            {"a.cu": {"a.cu": b""}},
            toolchain,
            Sleeping(_outcome()),
            compile_limits(),
            Cache(tmp_path / "cache"),
        )
    assert time.monotonic() - began < 30
    assert [outcome.ended for outcome in ended] == [Ended.SIGNALLED]


def test_a_full_disk_is_the_machine_s(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))  # type: ignore[attr-defined]
    with pytest.raises(BuildError, match=r"disk of .* is full: free some space, or set TMPDIR"):
        _build(toolchain, Recorded(_outcome("No space left on device")), Cache(tmp_path / "cache"))


def test_the_student_s_errors_come_first_and_the_rest_is_cut_by_lines() -> None:
    text = "\n".join(
        [
            "ptxas info    : Used 8 registers",
            "/usr/include/x.h(7): error: from a header",
            "  there",
            'good.cu(9): warning #177-D: variable "x" was declared but never referenced',
            "good.cu:3:10: fatal error: y.h: No such file or directory",
            "    3 | #include <y.h>",
            *(f"/usr/include/z.h({n}): warning: noise" for n in range(100)),
        ]
    )
    lines = diagnostics(text, {"good.cu"}).splitlines()
    assert lines[:4] == [
        "good.cu:3:10: fatal error: y.h: No such file or directory",
        "    3 | #include <y.h>",
        "/usr/include/x.h(7): error: from a header",
        "  there",
    ]
    assert lines[4].startswith("good.cu(9): warning")
    assert lines[-1] == "[...] 45 lines omitted"


def test_resources_of_the_student_s_kernels() -> None:
    text = """\
ptxas info    : Compiling entry function 'void cub::detail::EmptyKernel<void>()' for 'sm_80'
ptxas info    : Used 4 registers, used 0 barriers, 352 bytes cmem[0]
ptxas info    : Compiling entry function 'void k<2, f(int)>(float*, void (*)(int))' for 'sm_90a'
ptxas info    : Function properties for void k<2>(float*, int)
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 24 bytes smem, 364 bytes cmem[0]
ptxas info    : Compile time = 4.977 ms
"""
    (kernel,) = resources(text, [128, 896])
    assert (kernel.kernel, kernel.registers, kernel.spill_bytes, kernel.shared_bytes, kernel.code_bytes) == (
        "k<2, f(int)>",
        255,
        28,
        24,
        896,
    )
    assert [one.code_bytes for one in resources(text)] == [None]


def test_short_names() -> None:
    assert short_name("ker_attn_softmax") == "ker_attn_softmax"
    assert short_name("void a::b<(int)3>(float*)") == "a::b<(int)3>"


@pytest.mark.parametrize("held", [b"", b"not an object", b"\x7fELF\x02\x01" + bytes(80)])
def test_no_machine_code_in_what_is_no_object(held: bytes) -> None:
    assert machine_code(held) == {}
