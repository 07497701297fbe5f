"""``grader simulate``: run a program that nvcc built with the shared runtime, on the sim, with all checks.

Or a Python script with kernels in Triton, which a driver in the script's process brings to the sim.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from grader.records.errors import DeviceError
from grader.records.findings import Severity, by_descriptor
from grader.records.sentences import sentence
from grader.simulator.driver import (
    ALL_CONFIGS,
    LIBRARIES,
    ON_THE_CPU,
    RUNTIME,
    SOCKET_VARIABLE,
    Options,
    Simulator,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.records.findings import Finding

EXIT_FINDINGS = 86
BUDGET = 1_000_000_000  # warp instructions of one kernel: some 10 to 30 s
WITHOUT_PROGRESS = 5  # times less of them until one of its warps ends or passes a barrier
_SCRIPTS = "grader.runner.triton.script"  # a module that only the script's process loads
_PYTORCH_DEVICE = "GRADER_PYTORCH_DEVICE"  # of its environment: the library of PyTorch's device
_EXIT_USAGE = 2
_EXIT_MACHINE = 3
_EXIT_TIME_UP = 124  # as timeout(1)
_EXIT_INTERRUPTED = 130
_PATIENCE_SECONDS = 1.0


def simulate(
    argv: Sequence[str],
    *,
    json_path: Path | None,
    leak_check: bool,
    overflow: bool = False,
    all_configs: bool = False,
    budget: int | None = None,
    seconds: float | None = None,
    shown_argv: Sequence[str] = (),
    pytorch_device: Callable[[], Path] | None = None,
) -> int:
    """Run ``argv`` on the sim and print what the checkers saw to stderr.

    Args:
        argv: the program, by path or by its name on PATH, or a script ``*.py`` in Triton, and its arguments;
            its input and output are ours.
        json_path: where findings and gaps go as JSON, too.
        leak_check: also report what the program did not free.
        overflow: also report 32-bit arithmetic that wraps and decides an address.
        all_configs: whether autotuning in a script runs every configuration once.
        budget: warp instructions after which a kernel counts as hung, ``BUDGET`` if None; a fifth of them if
            none of its warps ends or passes a barrier meanwhile.
        seconds: of wall time, after which the program is ended; never if None.
        shown_argv: what the JSON names in place of ``argv``, if it was built of that.
        pytorch_device: the library through which a script's PyTorch has a CUDA device; asked for a script.

    Raises:
        MachineError: that library cannot be built.

    Returns:
        The program's exit code (128 + n for signal n), or 86 if it is 0 and there are errors found, 2 if the
        program cannot run here, 3 if the simulator failed or lacks what the program needs, 124 if its time
        was up, 130 if it was interrupted. After the last two, what was found until then is told, too.
    """
    try:
        command = _command(argv)
    except _CannotRunError as error:
        return _complain(str(error), _EXIT_USAGE)
    variables = dict(ALL_CONFIGS) if all_configs else {}
    if _is_script(argv) and pytorch_device is not None:
        variables[_PYTORCH_DEVICE] = str(pytorch_device())
    options = Options(
        open=True,
        leak_check=leak_check,
        prints=True,
        counters=False,  # nobody asks for them here
        overflow=overflow,
        threads=len(os.sched_getaffinity(0)),
        instruction_budget=budget or BUDGET,
        progress_budget=(budget or BUDGET) // WITHOUT_PROGRESS,
    )
    try:
        with Simulator(options) as simulator:
            code, ended = _run(command, simulator, seconds, variables)
            findings = tuple(map(_named, simulator.take_findings()))
            lacking = simulator.unsupported()
            gaps = (*map(str, lacking), *simulator.tampering())
            kernels = simulator.statistics().kernels
    except DeviceError as error:
        return _complain(str(error), _EXIT_MACHINE)

    if findings:
        sys.stderr.write("\n")  # what the program has printed may end within a line
    sys.stderr.write(describe(findings, gaps))
    if ended:
        sys.stderr.write(f"grader: {ended}\n")
    has_errors = any(finding.severity is Severity.ERROR for finding in findings)
    exit_code = code or (_EXIT_MACHINE if gaps else EXIT_FINDINGS if has_errors else 0)
    if json_path is not None:
        record = {
            "program": list(shown_argv or argv),
            "exit_code": exit_code,
            "ended": ended,  # by us, and why
            "launches": dict(kernels),
            "findings": [
                {**asdict(finding), "tool": finding.tool, "message": str(sentence(finding))}
                for finding in findings
            ],
            "unsupported": list(gaps),
            "gaps": [asdict(gap) for gap in lacking],
        }
        try:
            json_path.write_text(json.dumps(record, indent=2) + "\n")
        except OSError as error:
            return _complain(f"{json_path} cannot be written: {error.strerror}", _EXIT_USAGE)
    return exit_code


def _named(finding: Finding) -> Finding:
    """A finding, which may be about a store by a descriptor only where its file speaks of descriptors."""
    file = Path(finding.file)
    speaks = file.suffix == ".py" and file.is_file() and b"descriptor" in file.read_bytes().lower()
    return by_descriptor(finding) if speaks else finding


class _CannotRunError(Exception):
    """What is asked for cannot run on the sim; the text says why and what helps."""


def _command(argv: Sequence[str]) -> list[str]:
    """What to start for ``argv``: the program, or our Python for a script.

    Raises:
        _CannotRunError: there is no such program, or it cannot run here.
    """
    if _is_script(argv):
        if importlib.util.find_spec("triton") is None:
            raise _CannotRunError(
                f"{argv[0]} is run with Triton, which is not installed: "
                "python -m pip install 'kernel-grader[triton]' (for a script without Triton: python "
                f"{argv[0]})"
            )
        return [sys.executable, "-m", _SCRIPTS, *argv]
    program = shutil.which(argv[0])
    reason = _not_found(argv[0]) if program is None else why_not(Path(program))
    if program is None or reason:
        raise _CannotRunError(reason)
    return [program, *argv[1:]]


def _is_script(argv: Sequence[str]) -> bool:
    return argv[0].endswith(".py") and Path(argv[0]).is_file()


def _not_found(name: str) -> str:
    hint = " that can be run; name what runs it first, such as: python" if Path(name).is_file() else ""
    return f"{name}: no such program{hint}"


def why_not(program: Path) -> str:
    """Why an executable cannot run on the sim, with the nvcc option that helps; empty if it can.

    A script may run: what it starts is not looked at.
    """
    with program.open("rb") as file:
        try:
            elf = ELFFile(file)
            dynamic = elf.get_section_by_name(".dynamic")
            device_code = elf.get_section_by_name(".nv_fatbin") is not None
        except ELFError:
            return ""
        needed: list[str] = []
        if isinstance(dynamic, DynamicSection):
            needed = [getattr(tag, "needed") for tag in dynamic.iter_tags("DT_NEEDED")]  # noqa: B009 (untyped there)
    if not device_code or RUNTIME.name in needed:
        return ""
    if other := next((name for name in needed if name.startswith("libcudart.so")), None):
        return f"{program} is linked with {other}; the simulator plays {RUNTIME.name}: build it with nvcc 13"
    return f"{program} holds a CUDA runtime of its own, which wants a GPU; link it with: nvcc -cudart shared"


def describe(findings: Sequence[Finding], gaps: Sequence[str]) -> str:
    """The report for people, a line or two per finding; empty if there is nothing to say."""
    lines = []
    for finding in findings:
        position = f"{finding.file}:{finding.line}: " if finding.file else ""
        kernel = f" in {finding.kernel}" if finding.kernel else ""
        warning = "warning: " if finding.severity is Severity.WARNING else ""
        lines.append(f"{position}{warning}{finding.tool}: {finding.kind}{kernel}: {sentence(finding)}")
    lines += [f"not simulated: {gap}" for gap in gaps]
    if findings:
        lines.append(f"{len(findings)} finding{'s' if len(findings) > 1 else ''}")
    return "".join(f"grader: {line}\n" for line in lines)


def _run(
    argv: list[str], simulator: Simulator, seconds: float | None, variables: Mapping[str, str]
) -> tuple[int, str]:
    """Run the program to its end: its exit code as a shell would give it, and why we ended it, if we did."""
    with simulator.client_socket() as channel:
        # PyTorch comes with a runtime and finds that first, unless there is one already.
        first = {"LD_LIBRARY_PATH": str(LIBRARIES), "LD_PRELOAD": str(RUNTIME)}
        paths = {
            name: os.pathsep.join(filter(None, (path, os.environ.get(name)))) for name, path in first.items()
        }
        environment = {**os.environ, **paths, **ON_THE_CPU, **variables}
        environment[SOCKET_VARIABLE] = str(channel.fileno())
        process = subprocess.Popen(argv, env=environment, pass_fds=[channel.fileno()])
    try:
        code = process.wait(seconds)
        simulator.synchronize()
    except subprocess.TimeoutExpired:
        _end(process, simulator)
        return _EXIT_TIME_UP, f"the program was ended after {seconds:g} s, as --seconds asks"
    except KeyboardInterrupt:
        _end(process, simulator)
        return _EXIT_INTERRUPTED, "the program was interrupted"
    return 128 - code if code < 0 else code, ""


def _end(process: subprocess.Popen[bytes], simulator: Simulator) -> None:
    """End the program, first as the terminal would, and then what it left running on the device."""
    process.terminate()
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    simulator.end_launches()


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"grader: {message}\n")
    return code
