"""A kernel is built from the file that was handed in and what the runner asks for, whatever that is."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from grader.devices.device import RefusedKernelError
from grader.languages.cache import Cache
from grader.languages.jobs import BuildError, compile_limits
from grader.languages.triton.kernels import Compiler, Target
from grader.sandbox.backends import BACKENDS
from grader.sandbox.sandbox import Ended, Job, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from grader.sandbox.sandbox import Running, Sandbox

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")

TEXT = """
import nothing_of_this_name
import triton
import triton.language as tl

OFFSET = tl.constexpr(3)
raise SystemExit("code of the file runs")


@triton.jit
def shifted(value):
    return value + OFFSET


@triton.autotune([triton.Config({"size": 64})], key=[])
@triton.jit
def kernel(y, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(y + at, shifted(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def wrong(y):
    tl.store(y, nothing)
"""
ASKED: dict[str, Any] = {
    "kernel": "kernel",
    "signature": [["y", "*fp32"], ["x", "*fp32"], ["n", "i32"], ["size", "constexpr"]],
    "constants": [[[3], {"value": 64}]],
    "attributes": [[[0], [["tt.divisibility", 16]]], [[1], [["tt.divisibility", 16]]], [[2], []]],
    "options": {"num_warps": 2},
}


IMPORTED = """
import dataclasses, nothing_of_this_name
import operator as op
from functools import nothing_of_this_name as neither, reduce

import torch
import triton
import triton.language as tl

SIZES = [4, 8]
SIZES.append(nothing_of_this_name)
SIZES[1] = 16
TYPES = {torch.float32: tl.float32}


@dataclasses.dataclass
class Tile:
    size: int


def halved(size):
    return size // 2


try:
    TILE = Tile(halved(2 * reduce(op.mul, SIZES)))
except ValueError:
    TILE = Tile(1)
SIZE, KIND = tl.constexpr(min(TILE.size, 1024)), TYPES[torch.float32]


@triton.jit
def kernel(y, x, n, size: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y + at, tl.load(x + at, mask=at < n).to(KIND), mask=at < n)
"""


LAUNCHED = """
import nothing_of_this_name as torch
import triton
import triton.language as tl

x = torch.ones(3)


@triton.jit
def kernel(y, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def launch(x):
    y, n = torch.empty_like(x), x.numel()
    kernel[(triton.cdiv(n, 64),)](y, x, n, 64)
    return y
"""


SIM, GPU = Target("ptx", 80), Target("cubin", 90)


class Counting:
    """A sandbox that counts its jobs."""

    image = None

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.jobs = 0
        self.started: list[Running] = []

    def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
        self.jobs += 1
        return self._sandbox.run(job, given_up)

    def start(self, job: Job) -> Running:
        self.started.append(self._sandbox.start(job))
        return self.started[-1]


@pytest.fixture(scope="module")
def sandbox() -> Counting:
    return Counting(BACKENDS["process"]())


@pytest.fixture(scope="module")
def compiler(sandbox: Counting, tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    cache = Cache(tmp_path_factory.mktemp("kernels"))
    return Compiler(sandbox, compile_limits(), cache, (SIM, GPU))  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.py"
    path.write_text(TEXT)
    return path


def test_a_kernel_is_built_once_without_running_the_rest_of_its_file(
    compiler: Compiler, sandbox: Counting, file: Path
) -> None:
    before = sandbox.jobs
    built = compiler.build(file, SIM, ASKED)
    assert b".visible .entry kernel(" in built.code
    assert b".target sm_80" in built.code
    assert (built.facts["name"], built.facts["num_warps"]) == ("kernel", 2)
    assert compiler.build(file, SIM, ASKED) == built
    assert sandbox.jobs == before + 1
    other = compiler.build(file, SIM, {**ASKED, "constants": [[[3], {"value": 128}]]})
    assert other.code != built.code


def test_what_the_constants_of_a_kernel_are_computed_with_is_imported(
    compiler: Compiler, tmp_path: Path
) -> None:
    (path := tmp_path / "imported.py").write_text(IMPORTED)
    assert b".visible .entry kernel(" in compiler.build(path, SIM, ASKED).code


def test_a_launcher_whose_variables_have_the_names_of_those_of_a_kernel_is_not_run(
    compiler: Compiler, tmp_path: Path
) -> None:
    (path := tmp_path / "launched.py").write_text(LAUNCHED)
    assert b".visible .entry kernel(" in compiler.build(path, SIM, ASKED).code


def test_a_gpu_gets_machine_code_from_the_same_job(compiler: Compiler, sandbox: Counting, file: Path) -> None:
    compiler.build(file, SIM, ASKED)
    before = sandbox.jobs
    built = compiler.build(file, GPU, ASKED)
    assert sandbox.jobs == before
    assert built.code[:4] == b"\x7fELF"
    assert b"kernel" in built.code
    assert built.facts == {**compiler.build(file, SIM, ASKED).facts, "shared": built.facts["shared"]}


def with_size(size: int) -> dict[str, Any]:
    return {**ASKED, "constants": [[[3], {"value": size}]]}


def test_all_kernels_of_a_file_come_from_a_process_that_stays(file: Path, tmp_path: Path) -> None:
    sandbox = Counting(BACKENDS["process"]())
    alone = Compiler(sandbox, compile_limits(), Cache(tmp_path / "alone"), (SIM, GPU))  # type: ignore[arg-type]
    staying = replace(alone, cache=Cache(tmp_path / "staying")).staying(file)
    for size in (16, 32):
        assert staying.build(file, SIM, with_size(size)) == alone.build(file, SIM, with_size(size))
    assert (sandbox.jobs, len(sandbox.started)) == (2, 1)
    asked = {**ASKED, "kernel": "wrong", "signature": [["y", "*fp32"]], "constants": [], "attributes": []}
    with pytest.raises(RefusedKernelError, match=r"^file.py:\d+: the kernel wrong does not compile"):
        staying.build(file, SIM, asked)
    assert staying.build(file, GPU, with_size(64)).code[:4] == b"\x7fELF"
    assert (sandbox.jobs, len(sandbox.started)) == (2, 1)
    staying.close()
    (process,) = sandbox.started
    assert process.wait(0.0) is not None
    staying.build(file, SIM, with_size(256))
    assert (sandbox.jobs, len(sandbox.started)) == (3, 1)


@pytest.mark.parametrize(
    "deed",
    [
        "os.kill(os.getppid(), 9)",
        "os.write(11, b'KGR1' + bytes(12))",
        "os.write(11, b'no frame')",
        "os._exit(3)",
    ],
)
def test_a_file_that_disturbs_the_process_has_its_kernel_from_a_job_of_its_own(
    deed: str, tmp_path: Path
) -> None:
    sandbox = Counting(BACKENDS["process"]())
    value = f"({deed}, 3)[1] if os.getcwd()[-9:-1] == '/kernel-' else 3"
    (path := tmp_path / "file.py").write_text(
        "import os\n" + TEXT.replace("OFFSET = tl.constexpr(3)", f"OFFSET = tl.constexpr({value})")
    )
    compiler = Compiler(sandbox, compile_limits(), Cache(tmp_path / "kernels"), (SIM,)).staying(path)  # type: ignore[arg-type]
    for size in (16, 32):
        assert b".visible .entry kernel(" in compiler.build(path, SIM, with_size(size)).code
    compiler.close()
    assert sandbox.started
    assert all(process.wait(0.0) is not None for process in sandbox.started)


def test_what_does_not_compile_is_told_once_with_its_line(
    compiler: Compiler, sandbox: Counting, file: Path
) -> None:
    asked = {**ASKED, "kernel": "wrong", "signature": [["y", "*fp32"]], "constants": [], "attributes": []}
    before = sandbox.jobs
    for _ in range(2):
        with pytest.raises(
            RefusedKernelError, match=r"^file.py:\d+: the kernel wrong does not compile: .*nothing"
        ):
            compiler.build(file, SIM, asked)
    assert sandbox.jobs == before + 1


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {**ASKED, "kernel": "../../file"},
        {**ASKED, "signature": 3},
        {**ASKED, "constants": [[[3], {"dtype": "nothing"}]]},
        {**ASKED, "options": {"num_warps": 3}},
        {"kernel": "x" * 100_000},
    ],
)
def test_whatever_a_runner_asks_for_is_no_fault_of_the_machine(
    compiler: Compiler, file: Path, asked: dict[str, Any]
) -> None:
    with pytest.raises(RefusedKernelError):
        compiler.build(file, SIM, asked)


def test_options_that_lead_to_files_are_left_out(compiler: Compiler, file: Path) -> None:
    options = {**ASKED["options"], "ir_override": "/etc/passwd", "extern_libs": {"a": "/etc/passwd"}}
    asked = {**ASKED, "options": options}
    assert compiler.build(file, SIM, asked).code == compiler.build(file, SIM, ASKED).code


def test_a_limit_is_told_and_not_kept(file: Path, tmp_path: Path) -> None:
    class Ending(Counting):
        def run(self, _job: Job, _given_up: threading.Event | None = None) -> Outcome:
            self.jobs += 1
            return Outcome(Ended.TIMEOUT, 9, 1.0, b"", b"", False, {}, "more than 1 s")

    ending = Ending(BACKENDS["process"]())
    compiler = Compiler(ending, compile_limits(), Cache(tmp_path / "kernels"), (SIM,))  # type: ignore[arg-type]
    for times in (1, 2):
        with pytest.raises(RefusedKernelError, match="more than 1 s"):
            compiler.build(file, SIM, ASKED)
        assert ending.jobs == times


def test_a_compile_that_nobody_waits_for_any_more_ends_and_is_not_kept(file: Path, tmp_path: Path) -> None:
    process, given_up = BACKENDS["process"](), threading.Event()

    class Sleeping(Counting):
        def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
            self.jobs += 1
            return process.run(Job(("sleep", "300"), job.limits), given_up)

    sleeping = Sleeping(process)
    compiler = Compiler(sleeping, compile_limits(), Cache(tmp_path / "kernels"), (SIM,))  # type: ignore[arg-type]
    threading.Timer(0.3, given_up.set).start()
    began = time.monotonic()
    with pytest.raises(BuildError, match="interrupted while it was compiled"):
        compiler.build(file, SIM, ASKED, given_up)
    assert time.monotonic() - began < 30
    assert sleeping.jobs == 1
