"""What a language of submissions offers: build the files, inspect what came of them, explain what failed."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations of builds
from typing import TYPE_CHECKING, Protocol

from grader.records.verdict import Ending

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from grader.devices.device import Call, Device, Memory, Session
    from grader.devices.gpu import Gpu
    from grader.devices.timed import TimedSession
    from grader.problems.problem import KernelProblem
    from grader.records.findings import Line


@dataclass(frozen=True)
class Resources:
    """The resources that one kernel takes on the GPU."""

    kernel: str  # demangled, without its parameters
    registers: int  # per thread
    spill_bytes: int  # per thread, stored plus loaded
    shared_bytes: int  # static, per block
    code_bytes: int | None = None  # of machine code; None where that is not known


@dataclass(frozen=True)
class Build:
    """The result of compiling one source file."""

    source: str  # the file's name in the submission
    ok: bool
    artefact: Path | None  # what a device opens; None unless ok
    seconds: float
    cached: bool
    command: str  # what a student can type to see the same
    log: str  # the compiler's words, the student's own lines first
    resources: tuple[Resources, ...]
    ending: Ending = Ending.USUAL


class Stage(IntEnum):
    """How far a file is on the way to an answer."""

    FOREIGN = -1  # in another language
    GIVEN = 0  # as the assignment gives it, or with nothing but a place to write in
    CHANGED = 1  # but without the function that is asked for
    BEGUN = 2


@dataclass(frozen=True)
class LeftOut:
    """A function that a partial build does without, and the lines that it stands in."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class Partial:
    """A build of a part of a file.

    Attributes:
        build: of what was left.
        left_out: the functions that are gone.
    """

    build: Build
    left_out: tuple[LeftOut, ...]

    def lacks(self, name: str) -> bool:
        """Whether the function ``name`` is among those that are gone."""
        return any(function.name == name for function in self.left_out)

    @property
    def note(self) -> str:
        """A sentence for the author about the functions that were left out."""
        gone = ", ".join(
            f"{function.name} (lines {function.first} to {function.last})" for function in self.left_out
        )
        return (
            f"{self.build.source} does not compile as a whole; graded without what does not and what calls "
            f"it, none of which this problem uses: {gone}"
        )


@dataclass(frozen=True)
class FileBuild:
    """The build of a full file and, where that failed, of the part of it that compiles."""

    full: Build
    partial: Partial | None = None


@dataclass(frozen=True)
class EntryPoint:
    """An entry point of an artefact: its symbol, "" if it is not there, and a note to its author."""

    symbol: str
    note: str = ""


@dataclass(frozen=True)
class Inspection:
    """The breaches of the policy and the entry points that an artefact holds.

    Attributes:
        forbidden: why it breaks the policy of what a submission may use, a sentence per reason.
        entry_points: those that were looked for, in their order.
        mistaken: whether all of that is a mistake, and no attempt to reach anything.
    """

    forbidden: tuple[str, ...]
    entry_points: tuple[EntryPoint, ...]
    mistaken: bool = False


@dataclass(frozen=True)
class HostCode:
    """The host code of a library.

    Attributes:
        blocks: the addresses of its blocks.
        functions: those at which functions begin, in order.
        starts: the addresses at which lines begin, in order.
        lines: the line at each of these.
    """

    blocks: frozenset[int] = frozenset()
    functions: Sequence[int] = ()
    starts: Sequence[int] = ()
    lines: Sequence[Line] = ()

    def function(self, address: int) -> int:
        """The number of the function around ``address``."""
        return bisect.bisect_right(self.functions, address)

    def line(self, address: int) -> Line | None:
        """The line of the call before ``address``."""
        at = bisect.bisect_right(self.starts, address - 1) - 1
        return self.lines[at] if at >= 0 else None


class LauncherError(Exception):
    """The launcher cannot be called; the message says what it takes and what it should."""


@dataclass(frozen=True)
class Launcher:
    """An entry point as it is to be called.

    Attributes:
        problem: with the arguments that the launcher takes, in its order.
        memory: which pointers it is given.
        notes: what differs from the assignment's text.
    """

    problem: KernelProblem
    memory: Memory
    notes: tuple[str, ...]


class Language(Protocol):
    """A language that kernels are written in, with the tools of this machine for it."""

    @property
    def name(self) -> str:
        """Its short name, such as ``cuda``."""

    @property
    def memory(self) -> Memory | None:
        """Which pointers its launchers take; None if that is to be tried of each."""

    @property
    def captured(self) -> bool:
        """Whether only calls that can be captured as a CUDA graph are timed."""

    def translated(self, problem: KernelProblem) -> KernelProblem:
        """The problem as it is answered in this language: in which file, by which entry points."""

    def called_by(self, problem: KernelProblem) -> Language:
        """The language that opens artefacts for ``problem``, which may say how its functions are called."""

    def stage(self, problem: KernelProblem, contents: Mapping[str, bytes]) -> Stage:
        """How far a file that differs from the template's is with ``problem``, which is ``translated``."""

    def build(
        self, sources: Mapping[str, Mapping[str, bytes]], entry_points: Mapping[str, Collection[str]]
    ) -> Mapping[str, FileBuild]:
        """Build files side by side, and without what does not compile where one does not.

        Args:
            sources: each file by its name, with what it may include by path from there.
            entry_points: by file, those that a part of it has to keep one of.

        Raises:
            BuildError: the machine failed.
        """

    def inspect(
        self,
        artefact: Path,
        source: str,
        contents: Mapping[str, bytes],
        entry_points: Collection[str],
        further: Collection[str],
        allowed: Collection[str],
    ) -> Inspection:
        """Look for entry points and breaches of the policy in the artefact built of ``source``.

        Args:
            artefact: of the build.
            source: the file's name.
            contents: the file and what it includes.
            entry_points: what to look for.
            further: further entry points that the file has; they are no misspelling of one of those.
            allowed: regular expressions of what it may use beyond the policy.
        """

    def code_bytes(self, artefact: Path) -> int | None:
        """Bytes of machine code in an artefact, whatever it comes from; None where that is not known."""

    def explain(self, build: FileBuild, contents: Mapping[str, bytes]) -> str:
        """Why nothing of a file that did not compile can be graded."""

    def remedy(self, build: FileBuild, contents: Mapping[str, bytes]) -> str:
        """What to do about that, where more is known than the compiler says; else empty."""

    def launcher(self, problem: KernelProblem, contents: Mapping[str, bytes], memory: Memory) -> Launcher:
        """How the launcher of ``problem`` in ``contents`` is to be called.

        Args:
            problem: what the assignment asks for.
            contents: the problem's file and what it includes.
            memory: which pointers to pass; the source does not tell which ones the launcher takes.

        Raises:
            LauncherError: its parameters fit no reading of the problem's.
        """

    def open(self, device: Device, artefact: Path, entry_points: tuple[str, ...]) -> Session:
        """Start a runner on ``device`` with an artefact; see ``Device``.

        Raises:
            LoadError: it cannot be loaded or lacks an entry point; the submission is at fault.
            DeviceError: the machine failed.
        """

    def host_code(self, artefact: Path) -> HostCode:
        """The host code of an artefact as a simulator tells what it reaches; empty where it does not."""

    def open_timed(
        self, gpu: Gpu, artefact: Path, entry_points: tuple[str, ...], baseline: Sequence[Path]
    ) -> TimedSession:
        """Start a fresh runner for timing, which may also load the ``baseline`` libraries.

        Raises:
            RunnerError: the runner ended while loading.
        """

    def profiled(self, gpu: Gpu, artefact: Path, call: Call) -> list[str]:
        """A line on each kernel of a call, or why there is none.

        Raises:
            ProfileError: there is no profile; the text says why.
        """
