"""What this machine can do, and the command that installs what it lacks."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any

from grader.languages.cuda.toolchain import Toolchain, ToolchainError, find
from grader.sandbox.backends import BACKENDS
from grader.sandbox.loader import loader_path

_CUPY = "python -m pip install 'kernel-grader[gpu]'"
_SIMULATOR = "python -m pip install .    (in the source; or install a wheel made for this machine)"
_TRITON = "python -m pip install 'kernel-grader[triton]'"


class State(StrEnum):
    """How a part of the machine is; only a MISSING one keeps the grader from grading."""

    READY = "ready"
    ABSENT = "absent"  # and not needed for grading
    MISSING = "missing"


@dataclass(frozen=True)
class Part:
    """One thing that the grader uses."""

    name: str
    state: State
    detail: str  # what is there, or what was looked for
    remedy: str = ""  # what to do if it is not there: commands


@dataclass(frozen=True)
class Diagnosis:
    """All parts, in the order in which a run needs them."""

    system: str
    parts: tuple[Part, ...]

    @property
    def ready(self) -> bool:
        """Whether submissions can be graded here."""
        return all(part.state is not State.MISSING for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """All parts as plain data for JSON."""
        return {"ready": self.ready, **asdict(self)}


def examine() -> Diagnosis:
    """Look at this machine; runs the compilers' ``--version`` and one trivial job in each sandbox."""
    system = f"{platform.platform()}, Python {platform.python_version()}"
    return Diagnosis(system, (*_compilers(), _simulator(), _triton(), *_gpu(), *_sandboxes(), _slurm()))


def render(diagnosis: Diagnosis) -> str:
    """One line per part, remedies below those that want one."""
    marks = {State.READY: "ok", State.ABSENT: "--", State.MISSING: "!!"}
    width = max(len(part.name) for part in diagnosis.parts)
    lines = [diagnosis.system, ""]
    for part in diagnosis.parts:
        lines.append(f"{marks[part.state]}  {part.name:{width}}  {part.detail}")
        lines += [f"    {line}" for line in part.remedy.splitlines()]
    lines += ["", "Ready to grade." if diagnosis.ready else "Not ready: install what is marked !! above."]
    return "\n".join(lines)


def _compilers() -> tuple[Part, ...]:
    try:
        toolchain: Toolchain = find()
    except ToolchainError as error:
        reason, _, remedy = str(error).partition("\n")
        return (Part("compiler", State.MISSING, reason, remedy),)
    return (
        Part("nvcc", State.READY, f"{toolchain.version} in {toolchain.root}"),
        Part("g++", State.READY, toolchain.cxx_version),
    )


def _simulator() -> Part:
    folder = Path(__file__).parents[1] / "simulator" / "lib"
    program = folder / "grader-sim"
    if not program.exists() or not any(folder.glob("libcudart.so.*")):
        return Part("simulator", State.MISSING, f"not built, looked in {folder}", _SIMULATOR)
    try:
        process = subprocess.run([program, "--simd"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:  # made for another kind of processor
        return Part("simulator", State.MISSING, f"does not run: {error}", _SIMULATOR)
    if process.returncode != 0:
        return Part("simulator", State.MISSING, f"does not run: {process.stderr.strip()}", _SIMULATOR)
    return Part("simulator", State.READY, f"built, runs as {process.stdout.partition(',')[0]}")


def _triton() -> Part:
    if importlib.util.find_spec("triton") is None:
        return Part(
            "Triton", State.ABSENT, "not installed: needed for submissions and scripts in Triton", _TRITON
        )
    return Part("Triton", State.READY, metadata.version("triton"))


def _gpu() -> tuple[Part, ...]:
    tool = shutil.which("nvidia-smi")
    listed = ""
    if tool is not None:
        query = [tool, "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
        process = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
        listed = "; ".join(process.stdout.splitlines()) if process.returncode == 0 else ""
    if not listed:
        reason = "none found: correctness is graded on the simulator, performance is not measured"
        driver = loader_path("libcuda.so.1")
        remedy = f"The driver library is there ({driver}), but nvidia-smi lists no GPU." if driver else ""
        return (Part("GPU", State.ABSENT, reason, remedy),)
    cupy = importlib.util.find_spec("cupy") is not None
    return (
        Part("GPU", State.READY, f"{listed}; nox -s throughput tells how many submissions an hour"),
        Part("CuPy", State.READY, "installed")
        if cupy
        else Part("CuPy", State.ABSENT, "not installed", _CUPY),
    )


def _sandboxes() -> tuple[Part, ...]:
    parts = []
    for backend, opened in BACKENDS.items():
        probe = opened().probe()
        name = f"sandbox {backend}"
        if probe.usable:
            lacks = f"; does not stop: {', '.join(probe.not_enforced)}" if probe.not_enforced else ""
            parts.append(Part(name, State.READY, probe.version + lacks))
        else:
            parts.append(Part(name, State.ABSENT, "does not work here", probe.remedy))
    return tuple(parts)


def _slurm() -> Part:
    tool = shutil.which("sbatch")
    if tool is None:
        return Part("Slurm", State.ABSENT, "no sbatch: batches run on this machine")
    try:
        process = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return Part("Slurm", State.ABSENT, "sbatch does not answer: batches run on this machine")
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        return Part("Slurm", State.ABSENT, f"batches run on this machine, as sbatch does not work: {reason}")
    return Part("Slurm", State.READY, process.stdout.strip())
