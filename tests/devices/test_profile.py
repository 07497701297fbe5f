"""What ncu writes becomes lines for a student; the text below is of its form, and the program a fake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.devices import profile, runner
from grader.devices.device import ArrayArgument, Call, Memory
from grader.devices.gpu import Gpu, GpuProbe
from grader.devices.profile import STALLS, ProfileError, command, lines, reason
from grader.devices.runner import Start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.sandbox.process import ProcessSandbox

NAMES = command(Path("/ncu"))[-1].split(",")
HEAD = ["ID", "Process ID", "Kernel Name", *NAMES]


def row(*cells: object) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def launch(number: int, name: str, bandwidth: str, stalls: dict[str, float]) -> str:
    return row(number, 77, name, bandwidth, 70.4, 61.6, *(stalls.get(stall, 0) for stall in STALLS))


TEXT = "\n".join(
    [
        "==PROF== Connected to process 77",
        "hello from a student, with a comma",
        row(*HEAD),
        row("", "", "", "byte/second", "%", "%", *("" for _ in STALLS)),
        launch(
            0,
            "void ker_layer_norm<32, 8>(float *, int)",
            "2,100,000,000,000",
            {"long_scoreboard": 7.5, "barrier": 2.0, "wait": 0.5, "drain": 0.1},
        ),
        launch(1, "void ker_layer_norm<32, 8>(float *, int)", "1", {}),
        launch(2, "ker_sum(float *)", "90000000000", {}),
    ]
)


def test_each_kernel_is_told_once_with_bandwidth_occupancy_and_what_it_waits_for() -> None:
    norm, total = lines(TEXT)
    assert norm == (
        "profile of void ker_layer_norm<32, 8>: 2,100 GB/s (70 % of the peak), 62 % occupancy; "
        "warps wait for data from global memory (74%), __syncthreads (20%)"
    )
    assert total == "profile of ker_sum: 90 GB/s (70 % of the peak), 62 % occupancy"


@pytest.mark.parametrize(
    "printed",
    [
        "nothing of the kind",
        '"ID"',
        row("ID", "Kernel Name") + "\n\n" + row(1, "ker"),
        row(*HEAD) + "\n" + launch(0, "x" * 200_000, "1", {}),
    ],
)
def test_what_a_submission_prints_is_no_table(printed: str) -> None:
    assert lines(printed) == []


def test_a_table_that_a_submission_forged_stays_short() -> None:
    forged = [launch(number, f"{number}" + "k" * 500, "inf", {"drain": float("nan")}) for number in range(99)]
    told = lines("\n".join([row(*HEAD), row(*HEAD), *forged]))
    assert len(told) == profile.SHOWN_KERNELS
    assert max(map(len, told)) < 200


def test_why_there_is_no_profile_is_said_in_ncus_words() -> None:
    text = "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission to read counters\n==ERROR== more"
    assert reason(text) == "ERR_NVGPUCTRPERM - no permission to read counters"
    assert reason("") == ""


def test_ncu_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "ncu"
    tool.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profile.find() == tool


def test_a_machine_without_ncu_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profile, "PLACES", (str(tmp_path / "*" / "ncu"),))
    with pytest.raises(ProfileError, match="it comes with the CUDA toolkit"):
        profile.find()


class OnTheHost(Gpu):
    """A GPU whose runner stays on the host, where its launchers work, too."""

    def _start(self, libraries: Mapping[Path, tuple[str, ...]]) -> Start:
        return Start(libraries, self._runtime)


@pytest.fixture
def gpu(sandbox: ProcessSandbox, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnTheHost:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return OnTheHost(sandbox, runtime, GpuProbe(usable=True))


RUN = 'while [ "$1" != --metrics ]; do shift; done; shift 2; "$@"\n'


@pytest.fixture
def ncu(tmp_path: Path) -> Path:
    """A program to be written, where it will be found."""
    program = tmp_path / "ncu"
    program.touch(mode=0o755)
    return program


def profiled(gpu: Gpu, library: Path, entry_point: str = "nothing") -> list[str]:
    given = (ArrayArgument("out", "float32", (4,), None),)
    return gpu.profiled(library, Call(entry_point, given, profile.CALL_SECONDS, Memory.HOST))


def test_a_call_is_profiled_by_the_program_that_starts_its_runner(
    gpu: Gpu, ncu: Path, student: Path, tmp_path: Path
) -> None:
    (tmp_path / "table").write_text(TEXT)
    ncu.write_text(f"#!/bin/sh\n{RUN}touch {tmp_path}/lock && cat {tmp_path}/table >&2\n")
    assert len(profiled(gpu, student)) == 2


@pytest.mark.parametrize(
    ("script", "entry_point", "why"),
    [
        ("echo '==ERROR== no counters here' >&2; exit 1", "nothing", "no counters here"),
        (f"{RUN}echo '==ERROR== no counters here' >&2", "nothing", "no counters here"),
        ("exit 9", "nothing", "exit code 9"),
        (RUN, "nothing", "ncu saw no kernel"),
        (RUN, "leave", "exit code 0 instead of returning"),
        (RUN, "is_not_there", "is_not_there"),
    ],
)
def test_an_ncu_that_fails_ends_in_its_reason(
    gpu: Gpu, ncu: Path, student: Path, script: str, entry_point: str, why: str
) -> None:
    ncu.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(ProfileError, match=why):
        profiled(gpu, student, entry_point)


@pytest.mark.parametrize(
    ("script", "entry_point", "limit", "why"),
    [
        ("sleep 600", "nothing", "START_SECONDS", "slept for 5 s"),
        (f"{RUN}sleep 600", "nothing", "END_SECONDS", "did not end within 1 s"),
        (RUN, "hang", "CALL_SECONDS", "more than 1 s of processor time"),
    ],
)
def test_an_ncu_that_hangs_is_ended(
    gpu: Gpu,
    ncu: Path,
    student: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    entry_point: str,
    limit: str,
    why: str,
) -> None:
    monkeypatch.setattr(runner if limit == "START_SECONDS" else profile, limit, 1.0)
    ncu.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(ProfileError, match=why):
        profiled(gpu, student, entry_point)
