"""The device ``gpu``: an NVIDIA GPU, whose memory, streams and events belong to the runner (CuPy).

The judge never holds a CUDA context. It sends every array with its guard zones and gets all of it back.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from grader.devices import calls, condition, models, profile, programs
from grader.devices.device import Answer, Call, LoadError, Memory, Schedule, Status
from grader.devices.kernels import Kernels
from grader.devices.runner import LIMITS, Runner, RunnerError, Start
from grader.devices.sharing import Sharing
from grader.devices.timed import TimedSession
from grader.records.errors import DeviceError, MachineError
from grader.runner.protocol import MalformedError
from grader.sandbox.process import ProcessSandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from grader.devices.device import ModelProgram, Script
    from grader.runner.protocol import Bytes, Frame, Header
    from grader.sandbox.sandbox import Limits, Sandbox

PROBE_SECONDS = 90.0
DRIVER_BYTES = 6 << 30  # host memory for the driver, CuPy and arrays in transfer
LARGEST_FILE = 1 << 30  # size of the largest file that the driver writes
PACKAGES = ("cupy", "cupyx", "cupy_backends", "fastrlock", "cuda", "numpy", "numpy.libs")
INSTALL = "python -m pip install 'kernel-grader[gpu]'"

_PROBE = """
import json, sys
sys.path += sys.argv[1:]
import cupy
x = cupy.cuda.alloc(1 << 20)
cupy.cuda.runtime.memset(x.ptr, 1, 1 << 20)
kernel = cupy.RawModule(code='extern "C" __global__ void one(int* p) { *p = 42; }').get_function("one")
kernel((1,), (1,), (x,))
seen = cupy.ndarray((1,), cupy.int32, memptr=x).get()[0]
device = cupy.cuda.Device(0)
name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
architecture, l2_bytes = f"sm_{device.compute_capability}", device.attributes["L2CacheSize"]
works = int(seen) == 42
print(json.dumps({"works": works, "name": name, "architecture": architecture, "l2_bytes": l2_bytes}))
"""


@dataclass(frozen=True)
class GpuProbe:
    """Whether a GPU works here; ``reason`` says what is missing and, where known, how to install it.

    ``identity`` is a name by which all processes of this machine know the GPU.
    """

    usable: bool
    identity: str = ""
    name: str = ""
    architecture: str = ""
    l2_bytes: int = 0
    reason: str = ""


def probe(runtime: Path | None) -> GpuProbe:  # noqa: PLR0911 - each returns another reason
    """Run a kernel on the GPU in a separate process, so that this one never holds a CUDA context."""
    if shutil.which("nvidia-smi") is None and not Path("/dev/nvidiactl").exists():
        return GpuProbe(usable=False, reason="no NVIDIA driver on this machine")
    if importlib.util.find_spec("cupy") is None:
        return GpuProbe(usable=False, reason=f"CuPy is not installed ({INSTALL})")
    if runtime is None:
        return GpuProbe(usable=False, reason="no libcudart.so.13 beside nvcc")
    identity = condition.identity()
    try:
        with Sharing(identity).shared():
            done = subprocess.run(
                [sys.executable, "-I", "-c", _PROBE, *dict.fromkeys(str(path.parent) for path in packages())],
                capture_output=True,
                text=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return GpuProbe(usable=False, reason=f"a kernel did not end within {PROBE_SECONDS:g} s")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return GpuProbe(usable=False, reason=f"a kernel does not run: {lines[-1]}")
    answer = json.loads(done.stdout)
    if not answer["works"]:
        return GpuProbe(usable=False, reason="a kernel gave a wrong number")
    return GpuProbe(
        usable=True,
        identity=identity,
        name=answer["name"],
        architecture=answer["architecture"],
        l2_bytes=answer["l2_bytes"],
    )


def packages() -> tuple[Path, ...]:
    """The folders of CuPy and its dependencies, the only packages here that a runner may read."""
    specs = (importlib.util.find_spec(name) for name in ("cupy", "numpy"))
    sites = {Path(spec.origin).parents[1] for spec in specs if spec is not None and spec.origin}
    return tuple(path for site in sorted(sites) for name in PACKAGES if (path := site / name).exists())


class Gpu:
    """One GPU; see ``Device``.

    Opening a session and every call of one share the GPU with others. What is timed has to have it alone.

    Attributes:
        identity: the name by which all processes of this machine know it.
        sharing: who uses it at a time.
    """

    kind: Literal["gpu", "sim"] = "gpu"
    # As many as the sim has: a kernel that is right on some contents only must not pass here and fail there.
    schedules: tuple[Schedule, ...] = (Schedule.PROGRAM, Schedule.AGAIN, Schedule.AGAIN)

    def __init__(self, sandbox: Sandbox, runtime: Path, found: GpuProbe, limits: Limits = LIMITS) -> None:
        self.name = found.name
        self.architecture = found.architecture
        self.l2_bytes = found.l2_bytes
        self.identity = found.identity
        self.sharing = Sharing(found.identity)
        self._sandbox = sandbox
        self._runtime = runtime
        self._limits = replace(
            limits,
            data_bytes=None if limits.data_bytes is None else limits.data_bytes + DRIVER_BYTES,
            file_bytes=max(LARGEST_FILE, limits.file_bytes),
        )

    def open(self, library: Path, entry_points: tuple[str, ...]) -> GpuSession:
        """Start a runner, which creates a CUDA context, and load ``library``."""
        return GpuSession(self._start({library: entry_points}), self._sandbox, self.sharing)

    def open_program(self, program: Path, libraries: Sequence[Path] = ()) -> GpuProgramSession:
        """Get ready to run ``program`` once at each call, with NVIDIA's ``libraries``."""
        runtime = runtime_library(self._runtime)
        start = programs.Start(program, runtime, self._limits, libraries=libraries, gpu=True)
        return GpuProgramSession(start, self._sandbox, self.sharing)

    def open_model(
        self, program: ModelProgram, libraries: Mapping[Path, tuple[str, ...]], memory: Memory
    ) -> GpuModelSession:
        """Start a runner whose context belongs to PyTorch, and load ``libraries``."""
        kernels = self._start(libraries)
        start = replace(
            kernels,
            packages=models.packages(),
            inputs=tuple({package.parent for package in models.packages()}),
            program=program,
            memory=memory,
        )
        return GpuModelSession(start, kernels, self._sandbox, self.sharing)

    def open_script(self, script: Script, entry_points: tuple[str, ...]) -> GpuScriptSession:
        """Start a runner with PyTorch and Triton, and load ``script``."""
        start = self._start_script(script, entry_points)
        return GpuScriptSession(start, self._sandbox, self.sharing, Kernels(script))

    def open_timed_script(
        self, script: Script, entry_points: tuple[str, ...], baseline: Sequence[Path]
    ) -> TimedSession:
        """Start a fresh runner for timing with ``script``; otherwise as ``open_timed``."""
        start = self._start_script(script, entry_points)
        start = replace(start, inputs=(*start.inputs, *baseline))
        runner = Runner(self._sandbox, start, builds=Kernels(script), using=self.sharing.shared)
        return TimedSession(runner, calls.of_python)

    def open_timed(
        self, library: Path, entry_points: tuple[str, ...], baseline: Sequence[Path]
    ) -> TimedSession:
        """Start a fresh runner for timing, which may also load the ``baseline`` libraries.

        Raises:
            RunnerError: the runner ended while loading.
        """
        start = replace(self._start({library: entry_points}), inputs=tuple(baseline))
        return TimedSession(Runner(self._sandbox, start, using=self.sharing.shared))

    def profiled(self, library: Path, call: Call) -> list[str]:
        """A line on each kernel of a call, from Nsight Compute, in a separate runner.

        In the sandbox ``process``, this runner is not confined by Landlock, because inside it a child process
        finds no driver and ncu does not find its files.

        Raises:
            ProfileError: there is no profile; the text says why.
        """
        if self._sandbox.image is not None:
            raise profile.ProfileError(profile.NO_IMAGE)
        ncu = profile.find()
        start = replace(
            self._start({library: (call.entry_point,)}),
            through=profile.command(ncu),
            inputs=profile.folders(ncu),
        )
        trusted = self._sandbox.name == "process"
        try:
            with closing(Runner(ProcessSandbox(walled=False) if trusted else self._sandbox, start)) as runner:
                answer = calls.run(runner, call)
                text = runner.finish(profile.END_SECONDS)
        except RunnerError as error:
            raise self._not_profiled(error.printed, str(error)) from error
        except (DeviceError, LoadError, OSError) as error:
            raise self._not_profiled("", str(error)) from error
        if lines := profile.lines(text):
            return lines
        raise self._not_profiled(text, answer.message or profile.NO_KERNEL)

    def _not_profiled(self, printed: str, otherwise: str) -> profile.ProfileError:
        walls = "" if self._sandbox.name == "process" else profile.WALLS
        return profile.ProfileError((profile.reason(printed) or otherwise) + walls)

    def _start_script(self, script: Script, entry_points: tuple[str, ...]) -> Start:
        return replace(
            self._start(dict.fromkeys(script.extensions.values(), ())),
            packages=tuple(dict.fromkeys((*packages(), *script.packages))),
            inputs=tuple({package.parent for package in script.packages}),
            script=(script.file, entry_points),
            form=script.form,
            extensions=script.extensions,
            kernels=script.kernels,
        )

    def _start(self, libraries: Mapping[Path, tuple[str, ...]]) -> Start:
        return Start(
            libraries,
            runtime_library(self._runtime),
            gpu=True,
            packages=packages(),
            limits=self._limits,
            environment={"CUPY_CACHE_IN_MEMORY": "1", "CUDA_CACHE_DISABLE": "1"},
        )


def runtime_library(folder: Path) -> Path:
    """The libcudart in ``folder`` with the shortest name, such as ``libcudart.so.13``.

    Raises:
        DeviceError: there is none.
    """
    libraries = sorted(folder.glob("libcudart.so.[0-9]*"), key=lambda path: len(path.name))
    if not libraries:
        raise DeviceError(f"no libcudart.so in {folder}")
    return libraries[0]


class GpuSession:
    """One runner with a CUDA context and the library loaded; see ``Session``."""

    def __init__(
        self,
        start: Start,
        sandbox: Sandbox,
        sharing: Sharing,
        builds: Kernels | None = None,
        launches: Callable[[Frame], tuple[Header, Sequence[Bytes]]] | None = None,
    ) -> None:
        self._failed: Answer | None = None
        self._runner: Runner | None = None
        self._sharing = sharing
        try:
            self._runner = Runner(sandbox, start, builds=builds, launches=launches, using=sharing.shared)
        except RunnerError as error:
            self._failed = error.answer

    def run(self, call: Call) -> Answer:
        """Run one call; see ``Session``."""
        if self._failed is not None or self._runner is None:
            return self._failed or Answer(Status.LOST, "the session is closed")
        answer = self._answer(self._runner, call)
        if not answer.goes_on:
            self._failed = answer
        return answer

    def _answer(self, runner: Runner, call: Call) -> Answer:
        return calls.run(runner, call, using=self._sharing.shared)

    def close(self) -> None:
        """End the runner and everything that it started."""
        if self._runner is not None:
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GpuProgramSession:
    """Runs a whole program at each call, in a process with a context of its own; see ``Session``."""

    def __init__(self, start: programs.Start, sandbox: Sandbox, sharing: Sharing) -> None:
        self._start, self._sandbox, self._sharing = start, sandbox, sharing

    def run(self, call: Call) -> Answer:
        """Run the program once; see ``Session``."""
        assert call.run is not None
        try:
            with self._sharing.shared():
                return programs.run(self._sandbox, self._start, call.run, call.seconds)
        except MachineError as error:
            return Answer(Status.LOST, str(error))

    def close(self) -> None:
        """Nothing runs between calls."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GpuScriptSession(GpuSession):
    """A runner in which functions in Python launch kernels; see ``Session``.

    The tensors that they get have no content for PyTorch, so nothing but kernels can compute.
    """

    def _answer(self, runner: Runner, call: Call) -> Answer:
        try:
            return calls.run(runner, call, calls.of_python, self._sharing.shared)
        except MachineError as error:  # while it built a kernel
            return Answer(Status.LOST, str(error))


class GpuModelSession(GpuSession):
    """A runner in which a PyTorch file calls the libraries; see ``Session``.

    The launches are counted by the runner here. Where the judge marks what they write, it makes them itself,
    in a session with the libraries, as it does on the sim, where the same cases run.
    """

    def __init__(self, start: Start, kernels: Start, sandbox: Sandbox, sharing: Sharing) -> None:
        self._open_kernels = partial(GpuSession, kernels, sandbox, sharing)
        self._kernels: GpuSession | None = None
        self._entry_points = kernels.entry_points
        self._served: models.Served | None = None
        super().__init__(start, sandbox, sharing, launches=self._launched)

    def _launched(self, frame: Frame) -> tuple[Header, Sequence[Bytes]]:
        if self._served is None:
            raise MalformedError("a launch that the runner has to make itself")
        return self._served(frame)

    def _answer(self, runner: Runner, call: Call) -> Answer:
        if call.launches is None or not call.launches.marked:
            return models.run(runner, call, served=False, using=self._sharing.shared)
        if self._kernels is None:
            self._kernels = self._open_kernels()
        self._served = models.Served(self._kernels, self._entry_points)
        self._served.begin(call)
        using = self._sharing.shared
        answer = self._served.end(models.run(runner, call, served=True, using=using))
        self._served = None
        return answer

    def close(self) -> None:
        """End both runners."""
        super().close()
        if self._kernels is not None:
            self._kernels.close()
