"""CUDA C++ as a language of submissions; see ``Language``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.languages.cuda import launchers
from grader.languages.cuda.compile import build, build_all, observed
from grader.languages.cuda.exports import find
from grader.languages.cuda.headers import missing
from grader.languages.cuda.host_code import host_code
from grader.languages.cuda.imports import violations
from grader.languages.cuda.machine_code import machine_code
from grader.languages.cuda.partial import build_partly
from grader.languages.language import FileBuild, HostCode, Inspection, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from grader.devices.device import Call, Device, Memory, Session
    from grader.devices.gpu import Gpu
    from grader.devices.timed import TimedSession
    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.languages.language import Build, Launcher
    from grader.problems.problem import KernelProblem
    from grader.sandbox.sandbox import Limits, Sandbox


@dataclass(frozen=True)
class Cuda:
    """nvcc in a sandbox.

    Attributes:
        toolchain: the compilers.
        sandbox: what confines them.
        limits: what compiling one file may use.
        cache: where builds are kept.
        architecture: the GPU to make machine code for, such as ``sm_90``.
    """

    toolchain: Toolchain
    sandbox: Sandbox
    limits: Limits
    cache: Cache
    architecture: str
    name: str = "cuda"
    memory: Memory | None = None
    captured: bool = False

    def translated(self, problem: KernelProblem) -> KernelProblem:
        """The problem as it stands; see ``Language``."""
        return problem

    def called_by(self, _problem: KernelProblem) -> Cuda:
        """The same for all problems; see ``Language``."""
        return self

    def stage(self, _problem: KernelProblem, _contents: Mapping[str, bytes]) -> Stage:
        """Begun, whatever is in its file: what the linker lacks is said of the build; see ``Language``."""
        return Stage.BEGUN

    def build(
        self, sources: Mapping[str, Mapping[str, bytes]], entry_points: Mapping[str, Collection[str]]
    ) -> Mapping[str, FileBuild]:
        """Build files side by side; see ``Language``."""
        tools = self.toolchain, self.sandbox, self.limits, self.cache, self.architecture
        builds = {}
        for name, full in build_all(sources, *tools).items():

            def compiled(changed: Mapping[str, bytes], name: str = name) -> Build:
                return build(name, changed, *tools)

            rest = None if full.ok else build_partly(full, sources[name], entry_points[name], compiled)
            builds[name] = FileBuild(full, rest)
        return builds

    def inspect(
        self,
        artefact: Path,
        source: str,
        contents: Mapping[str, bytes],
        entry_points: Collection[str],
        further: Collection[str],
        allowed: Collection[str],
    ) -> Inspection:
        """What a library holds; see ``Language``."""
        forbidden = violations(artefact, contents, allowed)
        if forbidden:
            return Inspection(forbidden, ())
        text = contents.get(source, b"")
        return Inspection((), tuple(find(artefact, name, source, further, text) for name in entry_points))

    def code_bytes(self, artefact: Path) -> int | None:
        """The bytes of all kernels and functions of the device; see ``Language``."""
        return sum(machine_code(artefact.read_bytes()).values()) or None

    def explain(self, build: FileBuild, contents: Mapping[str, bytes]) -> str:
        """Why nothing of a file can be graded; see ``Language``."""
        file = build.full.source
        if build.partial is not None:
            return f"{file} did not compile, for what this problem needs"
        if reason := self.remedy(build, contents):
            return f"{file} did not compile: {reason}"
        return (
            f"{file} did not compile, and without the functions that the errors are in, nothing of it can be "
            "graded"
        )

    def remedy(self, build: FileBuild, contents: Mapping[str, bytes]) -> str:
        """What to do about a header that the compiler did not find; see ``Language``."""
        return "" if build.partial is not None else missing(build.full.log, build.full.source, contents)

    def launcher(self, problem: KernelProblem, contents: Mapping[str, bytes], memory: Memory) -> Launcher:
        """How a launcher is to be called; see ``Language``."""
        return launchers.launcher(problem, contents, memory)

    def open(self, device: Device, artefact: Path, entry_points: tuple[str, ...]) -> Session:
        """Start a runner with a library; see ``Language``."""
        observing = observed(artefact) if device.kind == "sim" else None
        return device.open(observing or artefact, entry_points)

    def host_code(self, artefact: Path) -> HostCode:
        """What the simulator tells of a library's host code; see ``Language``."""
        observing = observed(artefact)
        return HostCode() if observing is None else host_code(observing)

    def open_timed(
        self, gpu: Gpu, artefact: Path, entry_points: tuple[str, ...], baseline: Sequence[Path]
    ) -> TimedSession:
        """Start a runner with a library for timing; see ``Language``."""
        return gpu.open_timed(artefact, entry_points, baseline)

    def profiled(self, gpu: Gpu, artefact: Path, call: Call) -> list[str]:
        """What Nsight Compute says of a call; see ``Language``."""
        return gpu.profiled(artefact, call)
