"""Programs that call the CUDA runtime, against the simulated device."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from built_programs import call

from grader.languages.cuda.toolchain import find
from grader.records.gaps import Gap, GapKind
from grader.records.sentences import sentence
from grader.simulator.driver import RUNTIME, Options, Simulator

HONEST = (
    "right_numbers",
    "large_copies",
    "rectangles",
    "symbols",
    "host_visible_memory",
    "events_measure_time",
    "host_functions",
    "graphs",
    "graphs_that_allocate",
    "pools",
    "threads",
)


@pytest.mark.parametrize("late", [False, True], ids=["program order", "late streams"])
@pytest.mark.parametrize("function", HONEST)
def test_honest_programs_run_right_and_clean(function: str, late: bool, runtime_library: Path) -> None:
    with Simulator(Options(late_streams=late)) as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, function) == 0
        assert simulator.synchronize()
        assert simulator.unsupported() == simulator.tampering() == ()
        assert simulator.take_findings() == ()


@pytest.mark.parametrize(
    ("function", "late", "answer"),
    [
        ("without_event", False, 4),
        ("without_event", True, 3),
        ("with_event", True, 4),
        ("blocking_stream", True, 4),
        ("non_blocking_stream", False, 4),
        ("non_blocking_stream", True, 3),
        ("allocated_without_event", False, 4),
        ("allocated_without_event", True, 4),
        ("allocated_with_event", True, 4),
    ],
)
def test_late_streams_keep_only_the_promised_order(
    function: str, late: bool, answer: int, runtime_library: Path
) -> None:
    with Simulator(Options(late_streams=late)) as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, function) == answer


def test_memory_used_before_it_is_allocated_is_found_with_its_line(runtime_library: Path) -> None:
    with Simulator(Options(late_streams=True)) as simulator:
        simulator.load(runtime_library)
        call(simulator, runtime_library, "allocated_without_event")
        (finding,) = simulator.take_findings()
    assert (finding.kind, Path(finding.file).name) == ("global_oob", "runtime.cu")
    assert "a cudaMallocAsync allocates in another stream" in str(sentence(finding))


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        ("launch_errors_are_returned_once", {"invalid_launch"}),
        ("launch_error_that_nobody_asks_for", {"invalid_launch", "unchecked_error"}),
        ("beyond_a_symbol", {"memcpy_overflow"}),
        ("bad_arguments", {"memcpy_overflow", "device_pointer_on_host", "double_free"}),
    ],
)
def test_misuse_gets_cudas_errors_and_findings(function: str, kinds: set[str], runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, function) == 0
        simulator.synchronize()
        assert {finding.kind for finding in simulator.take_findings()} == kinds


def test_kernel_faults_stay_until_reset(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "kernel_faults_stay") == 0
        outcome = simulator.synchronize()
        assert outcome.fault == "cudaErrorIllegalAddress"
        assert "scale" in outcome.message
        assert ("cudaMalloc", 700) in simulator.runtime_errors()


def test_unknown_call_is_named(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "unknown_call") == 0
        simulator.synchronize()
        assert simulator.unsupported() == (Gap(GapKind.CALL, "cudaMallocArray"),)


def test_judge_gets_what_kernels_print(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "say_hello") == 0
        simulator.synchronize()
        assert simulator.take_printed() == "hello from the device\n"


def test_host_access_to_device_memory_traps_with_a_finding(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "dereference_on_host") == -11
        simulator.synchronize()
        (finding,) = simulator.take_findings()
        assert (finding.tool, finding.kind) == ("memcheck", "device_pointer_on_host")
        assert "in dereference_on_host of runtime.so" in str(sentence(finding))


def test_leaks_are_reported_when_asked(runtime_library: Path) -> None:
    with Simulator(replace(Options(), leak_check=True)) as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "graphs") == 0
        simulator.synchronize()
        assert {finding.kind for finding in simulator.take_findings()} == {"leak"}


def test_every_call_of_the_real_runtime_is_exported() -> None:
    real, nm = find().runtime, shutil.which("nm")
    if real is None or nm is None:
        pytest.skip("no CUDA 13 runtime to compare with, or no nm")

    def exported(library: Path) -> set[str]:
        command = [nm, "-D", "--defined-only", str(library)]
        listed = subprocess.run(command, check=True, capture_output=True, text=True)
        return set(re.findall(r" T ((?:__)?cuda\w+)@", listed.stdout))

    assert exported(real / RUNTIME.name) <= exported(RUNTIME)
