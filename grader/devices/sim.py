"""The device ``sim``: a simulator that the judge owns, and a runner that only launches kernels.

Device memory belongs to the simulator. The judge allocates, writes and reads it, and the runner gets only
addresses. So outputs, findings and counts never pass through the student's process, and memcheck reports an
access outside an array with its line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from grader.devices import arrays, calls, layout, models, programs
from grader.devices.budget import BUDGET, Budget
from grader.devices.device import Answer, Call, LoadError, Memory, Schedule, Status
from grader.devices.kernels import Kernels
from grader.devices.leaks import Leaks
from grader.devices.runner import LIMITS, Runner, RunnerError, Start, flooded
from grader.problems.dtypes import DTYPES
from grader.records.coverage import NOTHING
from grader.records.errors import MachineError
from grader.records.findings import Finding, by_descriptor, facts, in_cpp
from grader.records.gaps import Gap, GapKind
from grader.records.stores import LastStore, StoreInTriton
from grader.simulator.driver import (
    ALL_CONFIGS,
    LIBRARIES,
    ON_THE_CPU,
    RUNTIME,
    SOCKET_VARIABLE,
    Element,
    Options,
    Order,
    RefusedError,
    Simulator,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from grader.devices.device import ArrayArgument, DeviceKernel, ModelProgram, Script
    from grader.records.findings import Place
    from grader.sandbox.sandbox import Limits, Sandbox

_SCHEDULES = {  # memory traffic is the same in every order, so it is counted only once
    Schedule.PROGRAM: Options(coverage=True),
    Schedule.AGAIN: Options(counters=False),
    Schedule.REVERSED: Options(order=Order.REVERSED, counters=False),
    Schedule.LATE_STREAMS: Options(late_streams=True, counters=False),
    Schedule.OVERFLOW: Options(overflow=True, counters=False),
}


_OUT_OF_MEMORY = 2  # of cudaError_t
_APART = re.compile(rb"cudaStreamCreate|Async|cudaMallocManaged|cudaMallocHost|cudaHost")
"""In the names of the calls without which no work of a program is on another stream, or met by its host."""


PYTORCH_BYTES = 16 << 20
NO_LAUNCH = "no kernel was launched: PyTorch computed the result"
COPIED = "copied between the host and the device: kernels alone may compute"
FETCHED = "copied from the device to the host: kernels alone may compute"


class Sim:
    """The simulator as a device; see ``Device``."""

    kind: Literal["gpu", "sim"] = "sim"
    name = "simulator of this package, playing an NVIDIA A100-SXM4-80GB"
    architecture = "sm_80"  # the library's machine code is not executed: the sim executes its PTX
    schedules: tuple[Schedule, ...] = (Schedule.PROGRAM, Schedule.REVERSED, Schedule.LATE_STREAMS)

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits = LIMITS,
        budget: Budget = BUDGET,
        *,
        leaks_allowed: bool = True,
    ) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._budget = budget
        self._leaks_allowed = leaks_allowed

    def open(self, library: Path, entry_points: tuple[str, ...]) -> SimSession:
        """Start a simulator and a runner, and load ``library``."""
        leaks = Leaks(allowed=self._leaks_allowed)
        libraries = {library: entry_points}
        return SimSession(self._sandbox, self._limits, self._budget, libraries, leaks)

    def open_program(self, program: Path, libraries: Sequence[Path] = ()) -> SimProgramSession:
        """Start a simulator, on which each call runs ``program`` once, with ``libraries`` of the judge."""
        leak_check = not self._leaks_allowed
        return SimProgramSession(
            self._sandbox, self._limits, self._budget, program, libraries, leak_check=leak_check
        )

    def open_model(
        self, program: ModelProgram, libraries: Mapping[Path, tuple[str, ...]], memory: Memory
    ) -> SimModelSession:
        """Start a simulator and a runner with PyTorch, and load ``libraries``."""
        return SimModelSession(self._sandbox, self._limits, self._budget, program, libraries, memory)

    def open_script(self, script: Script, entry_points: tuple[str, ...]) -> SimScriptSession:
        """Start a simulator and a runner with PyTorch and Triton, and load ``script``.

        Raises:
            LoadError: the file cannot be loaded or lacks a function; the submission is at fault.
            DeviceError: the machine failed.
        """
        return SimScriptSession(self._sandbox, self._limits, self._budget, script, entry_points)


class SimSession:
    """One simulator and one runner with the libraries loaded; see ``Session``."""

    _shared_bytes = 1 << 30  # of memory that the runner and the device share
    _leaks: Leaks | None = None  # told of where nobody but launchers allocates

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits,
        budget: Budget,
        libraries: Mapping[Path, tuple[str, ...]],
        leaks: Leaks | None,
    ) -> None:
        self._leaks = leaks
        start = Start(libraries, RUNTIME, limits=limits, inputs=(LIBRARIES,))
        self._begin(sandbox, start, budget)

    def _begin(
        self,
        sandbox: Sandbox,
        start: Start,
        budget: Budget,
        builds: Kernels | None = None,
    ) -> None:
        self._limits = start.limits
        self._budget = budget
        self._held: dict[str, tuple[int, int]] = {}  # array name -> address, bytes
        self._failed: Answer | None = None
        self._runner: Runner | None = None
        self._simulator = Simulator(shared_bytes=self._shared_bytes)
        try:
            self._start(sandbox, start, builds)
        except RefusedError as error:
            self._failed = _lacking(str(error))
        except RunnerError as error:
            lacking = error.answer.status is Status.UNSUPPORTED
            self._failed = _lacking(error.answer.message) if lacking else error.answer
        except (LoadError, MachineError):
            self.close()
            raise

    def _start(
        self,
        sandbox: Sandbox,
        start: Start,
        builds: Kernels | None,
    ) -> None:
        for library in start.libraries:
            self._simulator.load(library)
        with self._simulator.client_socket() as socket:
            variables = {SOCKET_VARIABLE: str(socket.fileno()), **(start.environment or {})}
            start = replace(start, environment=variables, pass_fds=(socket.fileno(),))
            self._runner = Runner(sandbox, start, self._simulator.working, builds)

    def run(self, call: Call) -> Answer:
        """Run one call; see ``Session``."""
        if self._failed is not None or self._runner is None:
            return self._failed or Answer(Status.LOST, "the session is closed")
        try:
            total = self._budget.total(call)
            options = replace(
                _SCHEDULES[call.schedule],
                instruction_budget=total,
                total_budget=total,
                progress_budget=self._budget.progress(call),
            )
            if call.watched:
                options = replace(options, counters=False, coverage=False)
            self._simulator.configure(options)
            before = self._simulator.statistics()
            answer = self._judged(self._call(self._runner, call), self._runner, call.seconds)
            answer = replace(answer, findings=arrays.named(answer.findings, call))
            if answer.usable:
                statistics = self._simulator.statistics()
                leaks = () if self._leaks is None else self._leaks.behind(call, statistics)
                answer = replace(
                    answer,
                    findings=(*answer.findings, *leaks),
                    on_one_stream=statistics.crossings == before.crossings,
                    kernels=statistics.launches - before.launches,
                    watchable=call.memory is Memory.DEVICE,
                    last_stores=self._last_stores(call),
                )
        except (MachineError, RefusedError) as error:
            answer = Answer(Status.LOST, str(error))
        if not answer.goes_on:
            self._failed = answer
        return answer

    def _call(self, runner: Runner, call: Call) -> Answer:
        if call.memory is Memory.HOST:
            return calls.run(runner, call)
        again = call.schedule is not Schedule.PROGRAM
        pointers = {argument.name: self._address(argument, again=again) for argument in calls.arrays(call)}
        for argument in calls.arrays(call):
            watched = argument.constant and not call.staged  # the runner itself stages inputs, by copies
            constant = watched and argument.data is not None
            self._simulator.name_allocation(pointers[argument.name], argument.name, constant=constant)
        self._watch(call, pointers)
        try:
            header = runner.ask(self._request(call, pointers), (), 0, call.seconds).header
        except RunnerError as error:
            return error.answer
        if header["status"] != "returned":
            return calls.failed(header)
        if failure := self._synchronized(runner, call.seconds, header["printed"]):
            return failure  # in kernels on streams that the launcher did not wait for
        arrays = {}
        for argument in calls.arrays(call):
            data = self._simulator.read(pointers[argument.name], layout.data_bytes(argument))
            arrays[argument.name] = layout.array(argument, np.frombuffer(data, np.uint8))
        return Answer(Status.RETURNED, arrays=arrays, printed=header["printed"])

    def _watch(self, call: Call, pointers: Mapping[str, int]) -> None:
        """Let the device keep what stores into the elements that the call asks about."""
        if call.watched:
            self._simulator.watch(
                [Element(pointers[each.array] + each.begin, each.size) for each in call.watched]
            )

    def _last_stores(self, call: Call) -> tuple[LastStore, ...]:
        """What has stored into those elements; nothing is watched any more."""
        if not call.watched or call.memory is Memory.HOST:
            return ()
        stores = self._simulator.last_stores()
        self._simulator.watch(())
        return tuple(replace(store, place=_without_folders(store.place)) for store in stores)

    def _request(self, call: Call, pointers: Mapping[str, int]) -> Mapping[str, Any]:
        return calls.request(call, pointers)

    def _address(self, argument: ArrayArgument, *, again: bool) -> int:
        """The address of the array; an input of unchanged size keeps its memory, outputs get new memory.

        ``again``, in another order than program order, an output of unchanged size keeps its memory as well:
        where all addresses are those of its last call, a launcher may take the numbers for the same, too.
        New memory holds bytes of 0xFF, which are right for some integers. So outputs of these types then hold
        other poison, and count as written for it.
        """
        address, size = self._held.get(argument.name, (0, -1))
        needed = layout.data_bytes(argument)
        if address and size == needed and argument.data is None and again:
            self._simulator.renew(address)
        elif size != needed or argument.data is None:
            if address:
                self._simulator.release(address)
            address = self._simulator.allocate(needed)
        self._held[argument.name] = (address, needed)
        if argument.data is not None:
            self._simulator.write(address, layout.content(argument).data)
        elif again and DTYPES[argument.dtype].exact:
            self._simulator.write(address, layout.unwritten(argument).data)
        return address

    def _synchronized(self, runner: Runner, seconds: float, printed: str) -> Answer | None:
        """Run all pending work; return the answer if that fails, otherwise None."""
        patience = runner.patience(seconds)
        outcome = self._simulator.synchronize(patience.over)
        if outcome.timed_out:
            return runner.expired(patience).answer
        if not outcome:
            return Answer(Status.CUDA_ERROR, f"{outcome.fault}: {outcome.message}", printed=printed)
        return None

    def _judged(self, answer: Answer, runner: Runner, seconds: float) -> Answer:
        """The answer with the simulator's facts, which override what the runner said."""
        if answer.status is not Status.TIMEOUT:  # after a time-out there is no runner any more
            answer = self._synchronized(runner, seconds, answer.printed) or answer
        return self._reported(answer)

    def _reported(self, answer: Answer) -> Answer:
        """The answer with all that the simulator has to report."""
        if not self._simulator.alive:
            return answer
        printed = self._simulator.take_printed()
        failed = [call for call, code in self._simulator.runtime_errors() if code == _OUT_OF_MEMORY]
        no_memory = (Finding("failed_allocation", "no_memory", facts=facts(call=call)) for call in failed)
        answer = replace(
            answer,
            findings=tuple(
                replace(
                    finding,
                    file=PurePath(finding.file).name,
                    places=tuple(_without_folders(access) for access in finding.places),
                )
                for finding in (*no_memory, *self._simulator.take_findings())
            ),
            counts=self._simulator.take_counts(),
            coverage=self._simulator.take_coverage() if self._simulator.options.coverage else NOTHING,
            printed=answer.printed if answer.files else printed + answer.printed,
            kernels_printed=bool(printed),
        )
        gaps, forged = self._simulator.unsupported(), self._simulator.tampering()
        if forged:
            return replace(answer, status=Status.UNTRUSTED, message="; ".join(forged), arrays={})
        if gaps:
            named = tuple(replace(gap, file=PurePath(gap.file).name) for gap in gaps)
            message = "; ".join(map(str, named))
            return replace(answer, status=Status.UNSUPPORTED, message=message, gaps=named, arrays={})
        if len(printed.encode()) >= self._limits.output_bytes:
            text = flooded(self._limits.output_bytes)
            return replace(answer, status=Status.LIMIT, message=text, arrays={})
        return answer

    def close(self) -> None:
        """End the runner and the simulator."""
        if self._runner is not None:
            self._runner.close()
        self._simulator.kill()
        self._simulator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SimProgramSession(SimSession):
    """A simulator on which a whole program runs at each call, in a process of its own; see ``Session``.

    The device forgets all between two runs. What it executes is the device code of the judge's build.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits,
        budget: Budget,
        program: Path,
        libraries: Sequence[Path],
        *,
        leak_check: bool,
    ) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._budget = budget
        self._program = program
        self._libraries = libraries
        self._in_step = _APART.search(program.read_bytes()) is None
        self._leak_check = leak_check
        self._failed: Answer | None = None
        self._runner = None
        self._simulator = Simulator(shared_bytes=self._shared_bytes)

    def run(self, call: Call) -> Answer:
        """Run the program once; see ``Session``."""
        if self._failed is not None:
            return self._failed
        try:
            answer = self._run(call)
        except (MachineError, RefusedError) as error:
            answer = Answer(Status.LOST, str(error))
        if not answer.goes_on:
            self._failed = answer
        return answer

    def _run(self, call: Call) -> Answer:
        assert call.run is not None
        self._simulator.reset()
        try:
            for code in (self._program, *self._libraries):
                self._simulator.load(code)
        except RefusedError as error:
            return _lacking(str(error))
        total = self._budget.total(call)
        self._simulator.configure(
            replace(
                _SCHEDULES[call.schedule],
                coverage=False,
                instruction_budget=total,
                total_budget=total,
                progress_budget=self._budget.progress(call),
                leak_check=self._leak_check,
                prints=True,
            )
        )
        before = self._simulator.statistics()
        with self._simulator.client_socket() as socket:
            variables = {SOCKET_VARIABLE: str(socket.fileno())}
            start = programs.Start(
                self._program,
                RUNTIME,
                self._limits,
                self._libraries,
                environment=variables,
                pass_fds=(socket.fileno(),),
            )
            answer = programs.run(self._sandbox, start, call.run, call.seconds, self._simulator.working)
        if answer.usable:
            self._simulator.synchronize()  # a GPU would drop what is left; here it may show what is wrong
        after = self._simulator.statistics()
        return self._reported(
            replace(
                answer,
                kernels=after.launches - before.launches,
                on_one_stream=self._in_step,
            )
        )


class SimModelSession:
    """A runner in which a PyTorch file works on the CPU, and the simulator for its launches; see ``Session``.

    The runner has no device. It asks for each launch, which ``models.Served`` makes in a session with the
    libraries, so the file has no part in what the device does, and its count of launches is not asked for.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits,
        budget: Budget,
        program: ModelProgram,
        libraries: Mapping[Path, tuple[str, ...]],
        memory: Memory,
    ) -> None:
        self._failed: Answer | None = None
        self._runner: Runner | None = None
        self._kernels = SimSession(sandbox, limits, budget, libraries, None)
        entry_points = {name for names in libraries.values() for name in names}
        self._served = models.Served(self._kernels, entry_points)
        start = Start(
            {},
            RUNTIME,
            packages=models.packages(),
            limits=limits,
            inputs=(LIBRARIES, *{package.parent for package in models.packages()}),
            environment=ON_THE_CPU,
            program=program,
            memory=memory,
        )
        try:
            self._runner = Runner(sandbox, start, launches=self._served)
        except RunnerError as error:
            self._failed = error.answer
        except (LoadError, MachineError):
            self.close()
            raise

    def run(self, call: Call) -> Answer:
        """Run one call; see ``Session``."""
        if self._failed is not None or self._runner is None:
            return self._failed or Answer(Status.LOST, "the session is closed")
        self._served.begin(call)
        answer = self._served.end(models.run(self._runner, call, served=True))
        if not answer.goes_on:
            self._failed = answer
        return answer

    def close(self) -> None:
        """End the runner and the simulator."""
        if self._runner is not None:
            self._runner.close()
        self._kernels.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SimScriptSession(SimSession):
    """A simulator and a runner in which functions in Python launch kernels; see ``Session``.

    The runner asks for each kernel when it first launches it. Arrays are on the device alone: the functions
    get tensors without content, so nothing but kernels can compute.
    """

    def __init__(
        self, sandbox: Sandbox, limits: Limits, budget: Budget, script: Script, entry_points: tuple[str, ...]
    ) -> None:
        start = Start(
            dict.fromkeys(script.extensions.values(), ()),
            RUNTIME,
            packages=script.packages,
            limits=limits,
            inputs=(LIBRARIES, *{package.parent for package in script.packages}),
            environment={**ON_THE_CPU, **(ALL_CONFIGS if script.all_configs else {})},
            script=(script.file, entry_points),
            form=script.form,
            extensions=script.extensions,
            kernels=script.kernels,
        )
        self._descriptors = b"descriptor" in script.file.read_bytes().lower()
        self._computes = script.form.operators == "all"
        self._in_cpp = bool(script.extensions)  # whose launchers may bring constants along
        self._in_triton: set[str] = set()  # kernels by their names
        # PyTorch's operators reach the device's memory through memory that both share; a launcher needs none,
        # and there has to be some.
        self._shared_bytes = PYTORCH_BYTES if self._computes else 4096
        self._begin(sandbox, start, budget, Kernels(script, self._load))

    def _load(self, kernel: DeviceKernel) -> None:
        """Let the device know a kernel, which it runs when the runner launches one of the same code."""
        self._simulator.load_ptx(kernel.code.decode(errors="replace"))
        self._in_triton.add(str(kernel.facts.get("name")))

    def _last_stores(self, call: Call) -> tuple[LastStore, ...]:
        return tuple(
            StoreInTriton(**vars(store)) if store.kernel in self._in_triton else store
            for store in super()._last_stores(call)
        )

    def _reported(self, answer: Answer) -> Answer:
        """The answer with all that the simulator has to report, in the words of each kernel's language."""
        reported = super()._reported(answer)
        if not self._in_cpp:
            return reported
        told = (
            finding if finding.kernel in self._in_triton else in_cpp(finding) for finding in reported.findings
        )
        return replace(reported, findings=tuple(told))

    def run(self, call: Call) -> Answer:
        """Run one call; copies between host and device are none of a kernel's and make it untrusted.

        Where PyTorch's operators may compute, at least one kernel has to be launched beside them.
        """
        if self._failed is not None:
            return self._failed
        before = self._simulator.statistics()
        answer = super().run(call)
        after = self._simulator.statistics()
        if answer.goes_on and self._in_cpp and after.fetches > before.fetches:
            answer = replace(answer, faults=(*answer.faults, FETCHED))
        if answer.goes_on and not self._in_cpp and after.host_copies > before.host_copies:
            answer = self._failed = Answer(Status.UNTRUSTED, COPIED, printed=answer.printed)
        if answer.usable and self._computes and after.launches == before.launches:
            answer = replace(answer, faults=(*answer.faults, NO_LAUNCH))
        if self._descriptors:
            answer = replace(answer, findings=tuple(map(by_descriptor, answer.findings)))
        return answer

    def _request(self, call: Call, pointers: Mapping[str, int]) -> Mapping[str, Any]:
        return calls.of_python(call, pointers)


def _lacking(reason: str) -> Answer:
    """The answer where the code as a whole cannot be run."""
    return Answer(Status.UNSUPPORTED, reason, gaps=(Gap(GapKind.CODE, reason),))


def _without_folders(access: Place) -> Place:
    calls = tuple(replace(call, file=PurePath(call.file).name) for call in access.calls)
    return replace(access, file=PurePath(access.file).name, calls=calls)
