"""The machine that a process grades on, and what its gradings share."""

from __future__ import annotations

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from grader.baseline.programs import build_baseline
from grader.devices.budget import Budget
from grader.devices.condition import ask
from grader.devices.gpu import Gpu, GpuProbe, probe
from grader.devices.runner import LIMITS
from grader.devices.select import select as select_device
from grader.devices.sharing import lock
from grader.judge.correctness.remembered import Room, remembered
from grader.judge.correctness.shared import SharedArrays
from grader.judge.timing.others import Others
from grader.languages.cache import Cache
from grader.languages.cuda.toolchain import find as find_toolchain
from grader.records.record import DeviceInfo, SandboxInfo
from grader.sandbox.backends import select as select_sandbox
from grader.sandbox.sandbox import lent_gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.assignments.rules import WorkLimits
    from grader.devices.device import Device
    from grader.devices.sharing import Waiting
    from grader.languages.cuda.toolchain import Toolchain
    from grader.problems.problem import Problem
    from grader.sandbox.sandbox import Sandbox


@dataclass(frozen=True)
class Machine:
    """What was found on this machine to grade with, and how a record tells it."""

    sandbox: Sandbox
    sandbox_info: SandboxInfo
    device_info: DeviceInfo
    toolchain: Toolchain
    device: Device
    checker: Device  # the sim, which has the checkers; the device itself without a GPU
    gpu: Gpu | None  # the device where it has a clock
    building: Future[Mapping[Path, tuple[str, ...]]] | None  # of the baseline for that GPU

    @property
    def baseline(self) -> Mapping[Path, tuple[str, ...]]:
        """What speed is measured against, once it is built; nothing without a GPU.

        Raises:
            BuildError: it does not compile here.
        """
        return {} if self.building is None else self.building.result()


def find_machine(
    device: str,
    sandbox: str,
    limits: WorkLimits,
    probed: Callable[[Path | None], GpuProbe] = probe,
) -> Machine:
    """What this machine has to grade with.

    Args:
        device: the option of ``grade``.
        sandbox: likewise.
        limits: the assignment's, which the devices hold.
        probed: tells whether a GPU works.

    Raises:
        ToolchainError, SandboxError, DeviceError: something is missing; the message says what.
    """
    backend = select_sandbox(sandbox)
    probe = backend.probe()
    sandbox_info = SandboxInfo(
        backend=backend.name, enforced=list(probe.enforced), not_enforced=list(probe.not_enforced)
    )
    toolchain = find_toolchain(backend.image)
    running = replace(
        LIMITS,
        data_bytes=_bytes(limits.host_memory_gib * 1024),
        processes=limits.processes,
        file_bytes=_bytes(limits.scratch_mib),
        output_bytes=_bytes(limits.output_mib),
        scratch_bytes=_bytes(limits.scratch_mib),
    )
    budget = Budget(
        limits.sim_instructions, limits.sim_instructions_per_element, limits.sim_instructions_per_row
    )
    leaks_allowed = limits.leaks_allowed
    choice = select_device(
        *(device, backend, toolchain.runtime, running, budget), leaks_allowed=leaks_allowed, probed=probed
    )
    chosen = choice.device
    device_info = DeviceInfo(
        kind=chosen.kind, name=chosen.name, reason=choice.reason, compiler=f"nvcc {toolchain.version}"
    )
    if not isinstance(chosen, Gpu):
        return Machine(backend, sandbox_info, device_info, toolchain, chosen, chosen, None, None)
    checker = select_device("sim", backend, None, running, budget, leaks_allowed=leaks_allowed).device
    worker = ThreadPoolExecutor(1)
    building = worker.submit(build_baseline, toolchain, backend, Cache(), chosen.architecture)
    worker.shutdown(wait=False)  # it goes on beside the submission's cases
    return Machine(backend, sandbox_info, device_info, toolchain, chosen, checker, chosen, building)


def alike(tell: Callable[[Sequence[str]], str] = ask) -> list[str]:
    """The numbers of the GPUs of the first one's model: times of others do not compare with its times.

    "0" where nvidia-smi does not tell.
    """
    listed = tell(("nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader")).splitlines()
    models = dict(line.split(", ", 1) for line in listed)
    first = next(iter(models.values()), "")
    return [number for number, model in models.items() if model == first] or ["0"]


def _bytes(mib: float) -> int:
    return int(mib * 2**20)


def _write(file: Path, content: Mapping[str, object]) -> None:
    """Let ``file`` hold ``content`` at once, whoever else writes or reads it."""
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(content), encoding="utf-8")
    unfinished.replace(file)


def _file_name(gpu: str) -> str:
    return f"pytorch-{gpu.replace('/', '-')}"


class Bench:
    """What the gradings of one process share.

    Args:
        remembers: whether to look at the machine once, and to compute inputs and oracles once for all
            submissions that meet the same seed, as far as there is ``Room`` for them (400 MB for the first
            assignment, 4 GiB more where it is timed); with ``kept``, once for all processes.
        problems_at_once: how many problems of a submission are judged side by side on the sim.
        measured_at_once: how many of them are measured side by side on a GPU, which has two runners of each.
        threads: how many draw inputs and compare outputs of what is timed; None for one on each processor.
        kept: the folder in which the processes of a batch leave for each other what is the same for all
            submissions; None where there is one process.
    """

    def __init__(
        self,
        *,
        remembers: bool = False,
        problems_at_once: int | None = None,
        measured_at_once: int = 2,
        threads: int | None = None,
        kept: Path | None = None,
    ) -> None:
        self._remembers = remembers
        self._machines: dict[tuple[str, str, WorkLimits], Machine] = {}
        self._problems: dict[tuple[str, int], Mapping[str, Problem]] = {}
        self.problems_at_once = problems_at_once or os.cpu_count() or 1
        self.measured_at_once = measured_at_once
        self.threads = threads
        self._kept = kept
        self.pytorch: Others | None = None  # what the first grading on a GPU found

    def machine(self, device: str, sandbox: str, limits: WorkLimits, *, again: bool = False) -> Machine:
        """What there is to grade with, looked for ``again`` if so asked; see ``find_machine``."""
        wanted = device, sandbox, limits
        if again or not self._remembers or wanted not in self._machines:
            self._machines[wanted] = find_machine(*wanted, partial(self._probed, again=again))
        return self._machines[wanted]

    def _probed(self, runtime: Path | None, *, again: bool) -> GpuProbe:
        """Whether the GPU works: tried once for all processes of a batch, which start together."""
        file = None if self._kept is None else self._kept / f"gpu-{lent_gpu().replace('/', '-')}.json"
        if file is not None and file.exists() and not again:
            return GpuProbe(**json.loads(file.read_text(encoding="utf-8")))
        found = probe(runtime)
        if file is not None and found.usable:
            _write(file, asdict(found))
        return found

    @contextmanager
    def finding_pytorch(self, gpu: str, waiting: Waiting) -> Iterator[None]:
        """Have to oneself, among the processes of the batch, to find PyTorch's times on ``gpu``."""
        if self._kept is None:
            yield
            return
        with (self._kept / f"{_file_name(gpu)}.lock").open("w") as file:
            lock(file.fileno(), fcntl.LOCK_EX, waiting)
            yield

    def find_pytorch(self, gpu: str) -> bool:
        """Whether PyTorch's times on ``gpu`` are known, of this process or of another one of the batch."""
        file = self._file(gpu)
        if self.pytorch is None and file is not None and file.exists():
            self.pytorch = Others(**json.loads(file.read_text(encoding="utf-8")))
        return self.pytorch is not None

    def keep_pytorch(self, gpu: str, times: Others) -> None:
        """Keep PyTorch's times on ``gpu``, which this process has alone, for all processes of the batch."""
        self.pytorch, file = times, self._file(gpu)
        if file is not None:
            _write(file, asdict(times))

    def _file(self, gpu: str) -> Path | None:
        return None if self._kept is None else self._kept / f"{_file_name(gpu)}.json"

    def problems(self, assignment: Assignment, seed: int) -> Mapping[str, Problem]:
        """The problems of an assignment, for judging their cases drawn from ``seed``."""
        if not self._remembers:
            return assignment.problems
        asked = assignment.sha256, seed
        if asked not in self._problems:  # keep those of one assignment and seed, as they take much memory
            room, shared = Room(), None if self._kept is None else SharedArrays(self._kept / "arrays")
            self._problems = {
                asked: {
                    name: remembered(problem, room, shared, *asked, name)
                    for name, problem in assignment.problems.items()
                }
            }
        return self._problems[asked]
