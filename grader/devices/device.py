"""The interface between the judge and a device, the same for ``gpu`` and ``sim``.

The judge hands over a call with fresh inputs and gets back everything that it may look at afterwards.
The device decides where the memory is, how the untrusted runner is started and what is poisoned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from grader.records.coverage import NOTHING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from grader.problems.problem import Scalar
    from grader.problems.program import Run
    from grader.records.coverage import Coverage
    from grader.records.findings import Finding, LineCount
    from grader.records.gaps import Gap
    from grader.records.stores import LastStore


class Schedule(StrEnum):
    """An execution order that CUDA allows; the sim follows it, and a GPU only repeats the call."""

    PROGRAM = "program order"
    AGAIN = "a later call with other content"
    REVERSED = "reversed blocks and warps"
    LATE_STREAMS = "streams as late as their events allow"
    OVERFLOW = "program order, following 32-bit indices"


class Memory(StrEnum):
    """Whether the entry point takes device pointers or, as in the original handout, host pointers."""

    DEVICE = "device"
    HOST = "host"


class Status(StrEnum):
    """How a call ended."""

    RETURNED = "returned"
    CUDA_ERROR = "CUDA error"  # the call or a kernel of it failed, with CUDA's name and text
    RAISED = "raised"  # the student's Python code raised an exception; the session goes on
    UNBEGUN = "not begun"  # it raised NotImplementedError: the function is still to be written
    CRASHED = "crashed"  # the runner died of a signal
    EXITED = "exited"  # the student's code ended the runner
    TIMEOUT = "timeout"
    LIMIT = "limit"  # memory, output or processes; the message names the limit
    UNTRUSTED = "untrusted"  # forged channel or tampering
    UNSUPPORTED = "unsupported"  # the sim lacks an instruction or a runtime call; the student is not at fault
    LOST = "lost"  # the machine failed


@dataclass(frozen=True)
class ArrayArgument:
    """An array passed by pointer; ``data`` is None for a null pointer and for an output (poisoned memory).

    ``constant``: whether the function may only read it; ``struct``: of the bytes of an array of structs, what
    C++ calls these, of which each is the last axis.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: NDArray[np.generic] | None
    null: bool = False
    constant: bool = False
    struct: str = ""


@dataclass(frozen=True)
class ScalarArgument:
    """A value; ``ctype`` is that of a ``ScalarParameter``, or ``STRUCT``."""

    name: str
    ctype: str
    value: Scalar


@dataclass(frozen=True)
class StreamArgument:
    """A non-default, non-blocking stream; equal ``index`` means the same stream."""

    name: str
    index: int


@dataclass(frozen=True)
class HandleArgument:
    """The pointer that the step of this number returned."""

    name: str
    step: int


Argument = ArrayArgument | ScalarArgument | StreamArgument | HandleArgument


@dataclass(frozen=True)
class Step:
    """One of the functions that a call calls one after the other.

    Attributes:
        entry_point: name of the function.
        arguments: what it is called with, in order; its arrays are some of the call's.
        returns: whether it returns a pointer, for a later step.
    """

    entry_point: str
    arguments: tuple[Argument, ...]
    returns: bool = False


@dataclass(frozen=True)
class Watched:
    """An element in an array of a call: where its bytes begin there, and how many they are."""

    array: str
    begin: int
    size: int


@dataclass(frozen=True)
class Call:
    """One call of an entry point, or of several on the same arrays.

    Attributes:
        entry_point: name of the function; of several, the first.
        arguments: what it is called with, in order; of several, all arrays, and all streams.
        seconds: time limit: processor time of the host code, on a GPU device time.
        memory: kind of the pointers.
        schedule: execution order on the sim.
        staged: whether arrays are copied in and out through the call's streams, so that work that the
            submission does on other streams gives wrong results.
        queued: scalars by name for further calls on the same arrays, made behind the first and before
            anything waits. Their results are not used, but they must not disturb what the first has yet to
            do.
        needs: for a model: the calls that it must make, and how often at least.
        launches: for a model: who looks at its launches, if the device makes them for it.
        run: for a program: what it is run with.
        watched: elements of which the answer is to tell what has stored into them last, if it can.
        several: the functions that are called one after the other; empty where it is one.
    """

    entry_point: str
    arguments: tuple[Argument, ...]
    seconds: float
    memory: Memory = Memory.DEVICE
    schedule: Schedule = Schedule.PROGRAM
    staged: bool = False
    queued: Mapping[str, Scalar] = field(default_factory=dict)
    needs: tuple[tuple[Call, int], ...] = ()
    launches: Launches | None = None
    run: Run | None = None
    watched: tuple[Watched, ...] = ()
    several: tuple[Step, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The functions that are called, one after the other."""
        return self.several or (Step(self.entry_point, self.arguments),)


class Launches(Protocol):
    """Looks at the launches that a model makes in one call, and decides what it gets of them.

    Attributes:
        marked: whether the model gets other numbers than a launcher wrote, so that the judge has to be asked.
    """

    marked: bool

    @property
    def most(self) -> int:
        """How many launches a call may make."""

    def take(
        self, entry_point: str, arguments: tuple[Argument, ...], arrays: Mapping[str, NDArray[np.generic]]
    ) -> Mapping[str, NDArray[np.generic]]:
        """What the model gets of the ``arrays`` that a launcher left, by the names in ``arguments``."""


@dataclass(frozen=True)
class ModelProgram:
    """A PyTorch file of a submission and the files with which the runner calls it.

    Attributes:
        file: the student's file.
        harness: the assignment's file that calls it; see ``grader/runner/model.py``.
        given: modules that the student's file imports, taken from the template.
        trains: whether it will train, for which PyTorch imports more.
    """

    file: Path
    harness: Path
    given: tuple[Path, ...]
    trains: bool = False


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel for one specialisation.

    Attributes:
        code: PTX, or machine code for a GPU.
        facts: what a launch needs to know of it, as JSON can hold it.
    """

    code: bytes
    facts: Mapping[str, Any]


class RefusedKernelError(Exception):
    """A kernel cannot be built; the text is for its author."""


@dataclass(frozen=True)
class Form:
    """How a function of a Python file takes the arguments of a call, and gives its outputs back.

    Attributes:
        names: of the arguments, in order.
        made: those that it is not given: it makes tensors of their shapes, and returns them.
        outputs: those that it may return, in order, whether it is given them or not.
        packed: whether it takes one tuple of all that it is given.
        operators: which operators of PyTorch it may use: "none", those that only give "views", or "all".
        initial: of a class, how many of the first arguments an object is made with: its ``forward`` gets the
            others.
        weights: the names of the object's weights that the next arguments are, such as "linear.bias".
    """

    names: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    packed: bool = False
    operators: Literal["none", "views", "all"] = "views"
    initial: int | None = None
    weights: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """A Python file of a submission whose functions launch kernels, each built when it is first needed.

    Attributes:
        file: the student's file.
        packages: folders of the Python packages that it may import.
        build: a kernel of the file for the specialisation that the runner asks for, as it came. Raises
            RefusedKernelError if the author is at fault, and MachineError if the machine is, or if the event
            is set meanwhile: then nobody waits for the kernel any more.
        all_configs: whether autotuning runs every configuration on the simulator, which has no clock.
        form: how its functions are called, where it is not with their arguments one by one.
        extensions: the modules of C++ that it builds: of each the library, by the key of its call.
        kernels: the linker's names of the kernels in these.
        close: ends what builds kernels, once nobody asks for one any more.
    """

    file: Path
    packages: tuple[Path, ...]
    build: Callable[[Mapping[str, Any], threading.Event], DeviceKernel]
    all_configs: bool = False
    form: Form = Form()
    extensions: Mapping[str, Path] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Hint:
    """What the sim counted at one line and why that line would be slow; it never states a speed."""

    kernel: str
    file: str
    line: int
    message: str


@dataclass(frozen=True)
class Answer:
    """The result of a call: how it ended, every array, and which guard zones changed."""

    status: Status
    message: str = ""
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    overrun: tuple[Finding, ...] = ()  # what was written outside of arrays, as guard zones tell
    strayed: bool = False  # whether that may have gone beyond the guard zones, which each call begins anew
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()  # of UNSUPPORTED: what the sim lacks
    counts: tuple[LineCount, ...] = ()
    coverage: Coverage = NOTHING
    printed: str = ""  # what the student's code printed, capped
    files: Mapping[str, bytes] = field(default_factory=dict)  # that a program wrote, with what it printed
    exit_code: int = 0  # of a program
    seconds: float = 0.0  # from the start of its process to its end, where it ended by itself
    kernels: int | None = None  # launches that it made; None where that is not known
    kernels_printed: bool = False  # whether kernels of a program printed something
    faults: tuple[str, ...] = ()  # forbidden things that the code did beside computing its results
    served: bool = False  # whether the judge made the launches of a model, and looked at them
    watchable: bool = False  # a call with elements that are watched would tell of them
    last_stores: tuple[LastStore, ...] = ()  # of those elements, in their order
    on_one_stream: bool = False  # all of its work, none of which meets the host: late streams change nothing

    @property
    def usable(self) -> bool:
        """Whether the arrays may be compared."""
        return self.status is Status.RETURNED

    @property
    def goes_on(self) -> bool:
        """Whether the session can take another call."""
        return self.usable or self.status in {Status.RAISED, Status.UNBEGUN}


class Session(Protocol):
    """One runner with a submission loaded. After an answer that is not ``goes_on`` it must be closed."""

    def run(self, call: Call) -> Answer:
        """Run one call on fresh, poisoned memory; never raises for what the student's code does."""

    def close(self) -> None:
        """End the runner and everything that it started."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Device(Protocol):
    """Where kernels execute."""

    kind: Literal["gpu", "sim"]
    name: str
    architecture: str  # target of the machine code to build, such as "sm_90"
    schedules: tuple[Schedule, ...]  # the execution orders under which each case runs

    def open(self, library: Path, entry_points: tuple[str, ...]) -> Session:
        """Start a runner and load ``library``, an object linked against the shared CUDA runtime.

        Raises:
            LoadError: the library cannot be loaded or lacks an entry point; the submission is at fault.
            DeviceError: the machine failed.
        """

    def open_script(self, script: Script, entry_points: tuple[str, ...]) -> Session:
        """Start a runner with PyTorch and Triton, and load ``script``.

        Raises:
            LoadError: the file cannot be loaded or lacks a function; the submission is at fault.
            DeviceError: the machine failed.
        """

    def open_program(self, program: Path, libraries: Sequence[Path] = ()) -> Session:
        """Get ready to run ``program``, an executable linked against the shared CUDA runtime.

        It may need further ``libraries``, which are looked for beside that.

        Each call runs it once, from its beginning to its end, with the call's ``run``.

        Raises:
            DeviceError: the machine failed.
        """

    def open_model(
        self, program: ModelProgram, libraries: Mapping[Path, tuple[str, ...]], memory: Memory
    ) -> Session:
        """Start a runner with PyTorch for ``program``, whose kernels are in ``libraries``.

        A call then names a function of the program's harness and holds its arrays and scalars.

        Raises:
            LoadError: a library cannot be loaded or lacks an entry point; the submission is at fault.
            DeviceError: the machine failed.
        """


class LoadError(Exception):
    """The student's library cannot be loaded."""
