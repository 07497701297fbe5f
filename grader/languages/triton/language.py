"""Triton as a language of submissions; see ``Language``.

The build of a file only reads it: its kernels are built one by one, when they are launched, for what they are
launched with.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from grader.devices import models
from grader.devices.device import Form, Memory, Script
from grader.languages import policy
from grader.languages.cache import key
from grader.languages.language import Build, FileBuild, HostCode, Inspection, Stage
from grader.languages.triton import source
from grader.languages.triton.kernels import Compiler, Target, folder
from grader.problems.module import ModuleProblem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from grader.devices.device import Call, Device, Session
    from grader.devices.gpu import Gpu
    from grader.devices.timed import TimedSession
    from grader.languages.cache import Cache
    from grader.languages.language import Launcher
    from grader.problems.problem import KernelProblem
    from grader.sandbox.sandbox import Limits, Sandbox

_FORMAT = "triton file 1"


@dataclass(frozen=True)
class Triton:
    """Triton in a sandbox.

    Attributes:
        sandbox: what confines it.
        limits: what compiling one kernel may use.
        cache: where files and kernels are kept.
        devices: all that judge.
        all_configs: whether autotuning runs every configuration on the simulator.
        form: how the functions of a file are called.
        taken: the names of all languages that the assignment takes.
    """

    sandbox: Sandbox
    limits: Limits
    cache: Cache
    devices: Collection[Device]
    all_configs: bool = False
    name: str = "triton"
    memory: Memory | None = Memory.DEVICE
    captured: bool = True
    form: Form = field(default_factory=Form)
    taken: tuple[str, ...] = ("triton",)

    def translated(self, problem: KernelProblem) -> KernelProblem:
        """The problem in a Python file; see ``Language``."""
        return source.translated(problem)

    def called_by(self, problem: KernelProblem) -> Triton:
        """The language for a problem whose functions may return tensors, or take them as a tuple."""
        if not isinstance(problem, ModuleProblem):
            return self
        names = tuple(parameter.name for parameter in problem.parameters)
        form = Form(
            names,
            problem.made,
            problem.outputs,
            problem.packed,
            problem.torch_operators,
            problem.initial,
            problem.weights,
        )
        return replace(self, form=form)

    def stage(self, problem: KernelProblem, contents: Mapping[str, bytes]) -> Stage:
        """Whether a function has the problem's name, and does more than raise an error; see ``Language``."""
        content = contents[problem.file]
        if source.language(content, problem.file) != self.name:
            return Stage.FOREIGN
        function = source.function(content, problem.file, problem.entry_point)
        if function is None:
            return Stage.CHANGED
        return Stage.BEGUN if function.begun else Stage.GIVEN

    def build(
        self, sources: Mapping[str, Mapping[str, bytes]], _entry_points: Mapping[str, Collection[str]]
    ) -> Mapping[str, FileBuild]:
        """Read files; see ``Language``."""
        return {name: FileBuild(self._read(name, contents[name])) for name, contents in sources.items()}

    def _read(self, name: str, content: bytes) -> Build:
        folder()  # nothing of it runs without Triton
        began, log, artefact = time.monotonic(), "", None
        try:
            source.parsed(content, name)
            artefact = self._stored(name, content)
        except SyntaxError as error:
            log = f"{name}:{error.lineno}: {type(error).__name__}: {error.msg}"
        return Build(
            source=name,
            ok=artefact is not None,
            artefact=artefact,
            seconds=round(time.monotonic() - began, 3),
            cached=False,
            command=f"python -m py_compile {name}",
            log=log,
            resources=(),
        )

    def _stored(self, name: str, content: bytes) -> Path:
        """The file where it outlives the submission's private copy."""
        entry = key(_FORMAT, name, content)
        return (self.cache.find(entry) or self.cache.store(entry, {name: content})) / name

    def inspect(
        self,
        artefact: Path,
        source_name: str,
        _contents: Mapping[str, bytes],
        entry_points: Collection[str],
        further: Collection[str],
        _allowed: Collection[str],
    ) -> Inspection:
        """What a file holds; see ``Language``."""
        tree = source.parsed(artefact.read_bytes(), source_name)
        review = policy.review(tree, source_name, languages=self.taken)
        if review.reasons:
            return Inspection(review.reasons, (), review.mistaken)
        return Inspection((), tuple(source.find(tree, source_name, name, further) for name in entry_points))

    def code_bytes(self, artefact: Path) -> int | None:
        """Not known: each kernel is built for what it is launched with; see ``Language``."""

    def explain(self, build: FileBuild, _contents: Mapping[str, bytes]) -> str:
        """Why nothing of a file can be graded; see ``Language``."""
        return f"{build.full.source} is no Python"

    def remedy(self, _build: FileBuild, _contents: Mapping[str, bytes]) -> str:
        """Python's own message says it; see ``Language``."""
        return ""

    def launcher(self, problem: KernelProblem, contents: Mapping[str, bytes], _memory: Memory) -> Launcher:
        """How a function is to be called; see ``Language``."""
        tree = source.parsed(contents[problem.file], problem.file)
        function = {function.name: function for function in source.functions(tree)}[problem.entry_point]
        return source.launcher(problem, function, problem.file)

    def open(self, device: Device, artefact: Path, entry_points: tuple[str, ...]) -> Session:
        """Start a runner with a file; see ``Language``."""
        return device.open_script(self._script(device, artefact), entry_points)

    def host_code(self, _artefact: Path) -> HostCode:
        """None that tells what it reaches; see ``Language``."""
        return HostCode()

    def open_timed(
        self, gpu: Gpu, artefact: Path, entry_points: tuple[str, ...], baseline: Sequence[Path]
    ) -> TimedSession:
        """Start a runner with a file for timing; see ``Language``."""
        return gpu.open_timed_script(self._script(gpu, artefact), entry_points, baseline)

    def profiled(self, _gpu: Gpu, _artefact: Path, _call: Call) -> list[str]:
        """Nothing is known of how its kernels run; see ``Language``."""
        return ["not profiled: the kernels are in Triton"]

    def _script(self, device: Device, artefact: Path) -> Script:
        targets = tuple(dict.fromkeys(map(_target, self.devices)))
        compiler = Compiler(self.sandbox, self.limits, self.cache, targets).staying(artefact)
        packages = (*models.packages(), folder())
        return Script(
            artefact,
            packages,
            partial(compiler.build, artefact, _target(device)),
            self.all_configs,
            self.form,
            close=compiler.close,
        )


def _target(device: Device) -> Target:
    """The target that kernels are compiled for on ``device``."""
    capability = int(device.architecture.rpartition("_")[2])
    return Target("ptx" if device.kind == "sim" else "cubin", capability)
