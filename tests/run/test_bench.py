"""What gradings share: the machine, and the limits that its devices hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from grader.assignments.rules import WorkLimits
from grader.devices.gpu import DRIVER_BYTES, Gpu, GpuProbe
from grader.devices.runner import LIMITS
from grader.judge.timing.others import Others
from grader.records.errors import DeviceError
from grader.run import bench as bench_of
from grader.run.bench import Bench, alike, find_machine
from grader.sandbox.process import ProcessSandbox
from grader.sandbox.sandbox import Job, SandboxError
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that were to be started."""
    asked: list[Job] = []

    def refuse(_sandbox: ProcessSandbox, job: Job) -> NoReturn:
        asked.append(job)
        raise SandboxError("not here")

    monkeypatch.setattr(ProcessSandbox, "start", refuse)
    return asked


@pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")
def test_a_runner_gets_the_limits_of_the_assignment(jobs: list[Job]) -> None:
    limits = WorkLimits(host_memory_gib=0.5, processes=7, output_mib=0.25, scratch_mib=3.0)
    machine = find_machine("sim", "process", limits)
    with pytest.raises(DeviceError, match="not here"):
        machine.device.open(RUNTIME, ())
    found = jobs[0].limits
    assert (found.data_bytes, found.processes) == (512 * MIB, 7)
    assert (found.output_bytes, found.scratch_bytes, found.file_bytes) == (MIB // 4, 3 * MIB, 3 * MIB)


def test_what_one_process_of_a_batch_has_timed_is_known_to_all(tmp_path: Path) -> None:
    times = Others("PyTorch 2", times={"softmax": {"64": {"its own operator": 4.5}}}, faults={"other": "no"})
    first, second, elsewhere, alone = (
        Bench(kept=kept) for kept in (tmp_path, tmp_path, tmp_path / "another", None)
    )
    assert not first.find_pytorch("GPU-1")
    first.keep_pytorch("GPU-1", times)
    assert second.find_pytorch("GPU-1")
    assert second.pytorch == first.pytorch == times
    assert not any(bench.find_pytorch("GPU-1") for bench in (elsewhere, alone))
    assert not Bench(kept=tmp_path).find_pytorch("GPU-2")
    alone.keep_pytorch("GPU-1", times)
    assert alone.find_pytorch("GPU-1")


def test_one_process_of_a_batch_tries_the_gpu_for_all_unless_it_may_have_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def probe(_runtime: Path | None) -> GpuProbe:
        tried.append("tried")
        return GpuProbe(usable=True, name="a GPU")

    monkeypatch.setattr(bench_of, "probe", probe)
    first, second = Bench(kept=tmp_path), Bench(kept=tmp_path)
    assert first._probed(None, again=True) == second._probed(None, again=False)
    assert len(tried) == 1
    assert second._probed(None, again=True).usable
    assert len(tried) == 2


def test_a_runner_on_a_gpu_has_what_the_driver_needs_beside_them(jobs: list[Job], tmp_path: Path) -> None:
    (tmp_path / "libcudart.so.13").touch()
    limits = replace(LIMITS, data_bytes=512 * MIB, processes=7)
    gpu = Gpu(ProcessSandbox(), tmp_path, GpuProbe(usable=True), limits)
    with pytest.raises(DeviceError, match="not here"):
        gpu.open(RUNTIME, ())
    assert jobs[0].limits.data_bytes == 512 * MIB + DRIVER_BYTES
    assert jobs[0].limits.processes == 7


def test_without_names_the_gpus_of_the_first_one_s_model_are_used() -> None:
    assert alike(lambda _: "0, NVIDIA H100\n1, NVIDIA T4\n2, NVIDIA H100") == ["0", "2"]
    assert alike(lambda _: "") == ["0"]
